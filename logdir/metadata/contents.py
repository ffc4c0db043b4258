"""Everything in a metadata log, for people to look at: configurations, quotas and access lists too.

An ``Image`` holds what decisions rest on, in little memory; this holds the fields of every record that still counts,
and decides nothing. What both have is the same in both (a test compares them).

Not here: reading files (``source``), how it is laid out as a tree (``tree``).

Spec: kafka-formats §8.4, §9.4; org.apache.kafka.image.MetadataImage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn

from logdir.cluster.metadata_transaction import Transactions
from logdir.errors import MalformedFileError
from logdir.ids import TopicId
from logdir.wire.metadata_fast import PartitionChangeRow, PartitionRow, Row, TopicRow
from logdir.wire.metadata_tables import RecordType

TOPIC_RESOURCE: Final = 2
METADATA_VERSION: Final = "metadata.version"
_UNCHANGED: Final = -2
_Fields = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic: its name and its partitions."""

    name: str
    partitions: dict[int, PartitionRow] = field(default_factory=dict)
    """By partition number; the ``topic_id`` in each row is left empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The state after the records read so far; only ``ContentsFold`` changes its mappings."""

    topics: dict[bytes, Topic] = field(default_factory=dict)
    """Topics by id."""
    names: dict[str, bytes] = field(default_factory=dict)
    """Topic ids by name."""
    brokers: dict[int, _Fields] = field(default_factory=dict)
    """Fields of the registration by broker id, with later changes applied."""
    controllers: dict[int, _Fields] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    zk_migration_state: int | None = None
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    """Settings by type and name of their resource."""
    quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = field(default_factory=dict)
    """Quotas by entity: type and name of each of its parts; a name of ``None``: the default."""
    next_producer_id: int | None = None
    acls: dict[bytes, _Fields] = field(default_factory=dict)
    scram: dict[int, dict[str, _Fields]] = field(default_factory=dict)
    """Records of credentials by number of the mechanism, then by user."""
    tokens: dict[str, _Fields] = field(default_factory=dict)


class ContentsFold:
    """Folds record batches into ``contents``."""

    def __init__(self, origin: str) -> None:
        """Start with empty contents.

        Args:
            origin: Path of the log or file that is read, for errors.
        """
        self.contents = Contents()
        self._origin = origin
        self._transactions = Transactions(self._apply, self._refuse)
        self._lists: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._others: dict[int, Callable[[_Fields], None]] = {
            RecordType.REGISTER_BROKER: self._register,
            RecordType.UNREGISTER_BROKER: self._unregister,
            RecordType.CONFIG: self._configure,
            RecordType.FENCE_BROKER: lambda fields: self._set_fenced(fields, is_fenced=True),
            RecordType.UNFENCE_BROKER: lambda fields: self._set_fenced(fields, is_fenced=False),
            RecordType.REMOVE_TOPIC: self._remove_topic,
            RecordType.DELEGATION_TOKEN: self._add_token,
            RecordType.USER_SCRAM_CREDENTIAL: self._add_scram,
            RecordType.FEATURE_LEVEL: self._set_feature,
            RecordType.CLIENT_QUOTA: self._set_quota,
            RecordType.PRODUCER_IDS: self._set_producer_ids,
            RecordType.BROKER_REGISTRATION_CHANGE: self._change_broker,
            RecordType.ACCESS_CONTROL_ENTRY: self._add_acl,
            RecordType.REMOVE_ACCESS_CONTROL_ENTRY: self._remove_acl,
            RecordType.ZK_MIGRATION_STATE: self._set_migration,
            RecordType.REMOVE_USER_SCRAM_CREDENTIAL: self._remove_scram,
            RecordType.REMOVE_DELEGATION_TOKEN: self._remove_token,
            RecordType.REGISTER_CONTROLLER: self._register_controller,
            RecordType.CLEAR_ELR: self._clear_elr,
        }

    @property
    def open_transaction(self) -> int | None:
        """Offset at which a transaction began that has not ended: its records do not count; ``None``: none is open."""
        return self._transactions.open_since

    def add(self, rows: Iterable[tuple[int, Row]]) -> None:
        """Fold the rows of a record batch.

        Raises:
            MalformedFileError: the rows contradict earlier ones. This fold cannot be used any more: start again without
                the batch.
        """
        self._transactions.add(rows, 0)

    def _refuse(self, expected: str, found: str, offset: int) -> NoReturn:
        raise self._refused(expected, f"{found} at offset {offset}")

    def _refused(self, expected: str, found: str) -> MalformedFileError:
        return MalformedFileError(self._origin, expected=expected, found=found)

    def _apply(self, row: Row, _: int) -> None:
        if isinstance(row, PartitionChangeRow):
            self._change(row)
        elif isinstance(row, PartitionRow):
            self._topic(row.topic_id).partitions[row.partition] = self._shared(row)
        elif isinstance(row, TopicRow):
            self.contents.topics[row.topic_id] = Topic(name=row.name)
            self.contents.names[row.name] = row.topic_id
        elif (apply := self._others.get(row.type)) is not None:
            apply(row.fields)

    def _topic(self, topic_id: bytes) -> Topic:
        known = self.contents.topics.get(topic_id)
        if known is None:
            raise self._refused("a topic for each partition", f"no topic with id {TopicId(topic_id)}")
        return known

    def _change(self, row: PartitionChangeRow) -> None:
        partitions = self._topic(row.topic_id).partitions
        before = partitions.get(row.partition)
        if before is None:
            raise self._refused("a partition for each change", f"no partition {TopicId(row.topic_id)}_{row.partition}")
        is_led = row.leader != _UNCHANGED
        directories = before.directories if row.replicas is None else ()
        one = before._replace(
            replicas=before.replicas if row.replicas is None else row.replicas,
            isr=before.isr if row.isr is None else row.isr,
            removing_replicas=before.removing_replicas if row.removing_replicas is None else row.removing_replicas,
            adding_replicas=before.adding_replicas if row.adding_replicas is None else row.adding_replicas,
            leader=row.leader if is_led else before.leader,
            # Neither epoch is in the record (kafka-formats §9.4).
            leader_epoch=before.leader_epoch + is_led,
            partition_epoch=before.partition_epoch + 1,
            directories=directories if row.directories is None else row.directories,
            leader_recovery_state=(
                before.leader_recovery_state if row.leader_recovery_state < 0 else row.leader_recovery_state
            ),
            eligible_leader_replicas=(
                before.eligible_leader_replicas
                if row.eligible_leader_replicas is None
                else row.eligible_leader_replicas
            ),
            last_known_elr=before.last_known_elr if row.last_known_elr is None else row.last_known_elr,
        )
        partitions[row.partition] = self._shared(one)

    def _shared(self, row: PartitionRow) -> PartitionRow:
        """Return the row with equal lists of all rows kept once: there may be hundreds of thousands of rows."""
        share = self._lists.setdefault
        return row._replace(
            topic_id=b"",  # it stands under its topic
            replicas=share(row.replicas, row.replicas),
            isr=share(row.isr, row.isr),
            directories=share(row.directories, row.directories),
        )

    def _remove_topic(self, fields: _Fields) -> None:
        topic = self._topic(fields["topicId"])
        del self.contents.topics[fields["topicId"]]
        if self.contents.names.get(topic.name) == fields["topicId"]:
            del self.contents.names[topic.name]
        # No record removes its settings.
        self.contents.configs.pop((TOPIC_RESOURCE, topic.name), None)

    def _clear_elr(self, fields: _Fields) -> None:
        name = fields["topicName"]
        if name and name not in self.contents.names:
            raise self._refused("a topic whose eligible leaders are cleared", f'no topic "{name}"')
        ids = [self.contents.names[name]] if name else list(self.contents.topics)
        for topic_id in ids:
            partitions = self.contents.topics[topic_id].partitions
            for number, one in partitions.items():
                partitions[number] = one._replace(eligible_leader_replicas=None, last_known_elr=None)

    def _register(self, fields: _Fields) -> None:
        self.contents.brokers[fields["brokerId"]] = _ordered(fields)

    def _broker(self, number: int, epoch: int) -> _Fields:
        known = self.contents.brokers.get(number)
        if known is None or known["brokerEpoch"] != epoch:
            found = "none" if known is None else f"epoch {known['brokerEpoch']}"
            raise self._refused(f"a registration of broker {number} at epoch {epoch}", found)
        return known

    def _unregister(self, fields: _Fields) -> None:
        self._broker(fields["brokerId"], fields["brokerEpoch"])
        del self.contents.brokers[fields["brokerId"]]

    def _set_fenced(self, fields: _Fields, *, is_fenced: bool) -> None:
        known = self._broker(fields["id"], fields["epoch"])
        self.contents.brokers[fields["id"]] = known | {"fenced": is_fenced}

    def _change_broker(self, fields: _Fields) -> None:
        number = fields["brokerId"]
        known = dict(self._broker(number, fields["brokerEpoch"]))
        if fields["fenced"]:
            known["fenced"] = fields["fenced"] > 0  # -1 unfences
        if fields.get("inControlledShutdown", 0) > 0:
            known["inControlledShutdown"] = True
        if fields.get("logDirs"):
            known["logDirs"] = fields["logDirs"]
        if fields.get("cordonedLogDirs") is not None:
            known["cordonedLogDirs"] = fields["cordonedLogDirs"]
        self.contents.brokers[number] = known

    def _register_controller(self, fields: _Fields) -> None:
        self.contents.controllers[fields["controllerId"]] = _ordered(fields)

    def _set_feature(self, fields: _Fields) -> None:
        name, level = fields["name"], fields["featureLevel"]
        if level or name == METADATA_VERSION:
            self.contents.features[name] = level
        else:
            self.contents.features.pop(name, None)

    def _set_migration(self, fields: _Fields) -> None:
        self.contents = replace(self.contents, zk_migration_state=fields["zkMigrationState"])

    def _configure(self, fields: _Fields) -> None:
        key = fields["resourceType"], fields["resourceName"]
        values = self.contents.configs.setdefault(key, {})
        if fields["value"] is None:
            values.pop(fields["name"], None)
        else:
            values[fields["name"]] = fields["value"]
        if not values:
            del self.contents.configs[key]

    def _set_quota(self, fields: _Fields) -> None:
        entity = tuple(sorted(((one["entityType"], one["entityName"]) for one in fields["entity"]), key=_entity_order))
        values = self.contents.quotas.setdefault(entity, {})
        if fields["remove"]:
            values.pop(fields["key"], None)
        else:
            values[fields["key"]] = fields["value"]
        if not values:
            del self.contents.quotas[entity]

    def _set_producer_ids(self, fields: _Fields) -> None:
        self.contents = replace(self.contents, next_producer_id=fields["nextProducerId"])

    def _add_acl(self, fields: _Fields) -> None:
        self.contents.acls[fields["id"]] = fields

    def _remove_acl(self, fields: _Fields) -> None:
        self.contents.acls.pop(fields["id"], None)

    def _add_scram(self, fields: _Fields) -> None:
        self.contents.scram.setdefault(fields["mechanism"], {})[fields["name"]] = fields

    def _remove_scram(self, fields: _Fields) -> None:
        self.contents.scram.get(fields["mechanism"], {}).pop(fields["name"], None)

    def _add_token(self, fields: _Fields) -> None:
        self.contents.tokens[fields["tokenId"]] = fields

    def _remove_token(self, fields: _Fields) -> None:
        self.contents.tokens.pop(fields["tokenId"], None)


def _ordered(fields: _Fields) -> _Fields:
    """Return a registration with endpoints and features sorted by name: snapshots and logs order them differently."""
    by_name = {key: tuple(sorted(fields[key], key=lambda one: str(one["name"]))) for key in ("endPoints", "features")}
    return fields | by_name


def _entity_order(one: tuple[str, str | None]) -> tuple[str, bool, str]:
    return one[0], one[1] is not None, one[1] or ""
