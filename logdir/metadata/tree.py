"""The tree that the metadata shell walks: the contents of a metadata log as directories and leaves.

The names are those of the stock shell (``/image/topics/byName``, ``/image/configs/TOPIC:t`` …). A node is made
when a path leads to it: there may be hundreds of thousands of partitions.

Not here: paths as people type them (``metadata.paths``), the commands (``tools``).

Spec: KIP-631, "kafka-metadata-shell.sh"; org.apache.kafka.image.node, org.apache.kafka.shell.node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from logdir.errors import InvalidIdError
from logdir.ids import DirectoryId, Uuid
from logdir.metadata.contents import METADATA_VERSION, Contents, Topic
from logdir.metadata.paths import Component
from logdir.metadata.source import Look
from logdir.wire.json_form import to_json
from logdir.wire.metadata_fast import PartitionRow
from logdir.wire.metadata_records import TYPES

_RESOURCES: Final = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
_MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_ENTITIES: Final = {"client-id": "clientId", "ip": "ip", "user": "user"}
_RECOVERY: Final = {0: "RECOVERED", 1: "RECOVERING"}
_MIGRATION: Final = {0: "NONE", 1: "MIGRATION", 2: "PRE_MIGRATION", 3: "POST_MIGRATION", 4: "ZK"}
_FIRST_WITHOUT_ZK: Final = 22
"""Level of ``metadata.version`` 4.0-IV0: from here on the shell has no ``zkMigrationState``."""
_NO_PRODUCER_ID: Final = -1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Leaf(NamedTuple):
    """A node with a value, made of texts, numbers, lists and dictionaries."""

    value: object


class Directory(NamedTuple):
    """A node with nodes below it."""

    names: Callable[[], Iterable[str]]
    """Returns the names of the nodes in it, in any order; see ``children``."""
    child: Callable[[str], Node | None]
    """Returns the node of a name; ``None``: there is none."""


Node = Leaf | Directory


class Found(NamedTuple):
    """A node of the tree, and where it is."""

    names: tuple[str, ...]
    """Names on the way from the root to it; empty: it is the root."""
    node: Node


def build(look: Look, local: Mapping[str, object]) -> Directory:
    """Return the root of the tree.

    Args:
        look: What was read of a metadata log.
        local: More leaves below ``/local``: what the caller knows of itself and of the log dir.
    """
    contents = look.contents
    image: dict[str, Callable[[], Node]] = {
        "provenance": partial(Leaf, _provenance(look)),
        "features": partial(_features, contents),
        "cluster": partial(_cluster, contents),
        "topics": partial(_topics, contents),
        "configs": partial(_configs, contents),
        "clientQuotas": partial(_quotas, contents),
        "producerIds": partial(_fixed, {"nextProducerId": partial(Leaf, _next_producer_id(contents))}),
        "acls": partial(_fixed, {"byId": partial(_ids, contents.acls, _acl)}),
        "scram": partial(_scram, contents),
        "delegationToken": partial(_named, contents.tokens, _token),
    }
    leaves = {**_of_the_log(look), **local}
    return _fixed({
        "image": partial(_fixed, image),
        "local": partial(_named, leaves, Leaf),
    })  # fmt: skip


def children(directory: Directory) -> list[str]:
    """Return the names in a directory: numbers first, by their value, then the others by their letters."""
    return sorted(directory.names(), key=_order)


def find(root: Directory, steps: Sequence[Component]) -> Iterator[Found]:
    """Yield the nodes that a path leads to.

    Args:
        root: The directory at which the path begins.
        steps: The path, as ``metadata.paths.resolve`` returns it.
    """
    yield from _find((), root, steps)


def _find(names: tuple[str, ...], node: Node, steps: Sequence[Component]) -> Iterator[Found]:
    if not steps:
        yield Found(names, node)
        return
    if not isinstance(node, Directory):
        return
    step, left = steps[0], steps[1:]
    fitting = [step.name] if step.name is not None else (name for name in children(node) if step.fits(name))
    for name in fitting:
        child = node.child(name)
        if child is not None:
            yield from _find((*names, name), child, left)


def below(found: Found) -> Iterator[Found]:
    """Yield a node and all nodes below it, each before those below itself."""
    yield found
    if isinstance(found.node, Directory):
        for name in children(found.node):
            child = found.node.child(name)
            if child is not None:
                yield from below(Found((*found.names, name), child))


def _order(name: str) -> tuple[int, int, str]:
    is_number = name.isascii() and name.isdigit() and len(name) <= 10
    return (0, int(name), name) if is_number else (1, 0, name)


def _fixed(nodes: Mapping[str, Callable[[], Node]]) -> Directory:
    return Directory(lambda: nodes, lambda name: nodes[name]() if name in nodes else None)


def _named(values: Mapping[str, Any], make: Callable[[Any], Node]) -> Directory:
    return Directory(lambda: values, lambda name: make(values[name]) if name in values else None)


def _numbered(values: Mapping[int, Any], make: Callable[[Any], Node]) -> Directory:
    def child(name: str) -> Node | None:
        # Of the spellings of a number only the one that is listed.
        number = int(name) if name.isascii() and name.isdigit() and len(name) <= 10 else None
        return make(values[number]) if number is not None and str(number) == name and number in values else None

    return Directory(lambda: map(str, values), child)


def _ids(values: Mapping[bytes, Any], make: Callable[[bytes, Any], Node]) -> Directory:
    def child(name: str) -> Node | None:
        key = _id(name)
        return None if key is None or key not in values else make(key, values[key])

    return Directory(lambda: (str(Uuid(key)) for key in values), child)


def _id(name: str) -> bytes | None:
    """Return the id that a name spells as the tree lists it; ``None``: it is another spelling, or no id."""
    try:
        found = Uuid.parse(name)
    except InvalidIdError:
        return None
    return bytes(found) if str(found) == name else None


def _of_the_log(look: Look) -> dict[str, object]:
    leaves: dict[str, object] = {
        "origin": look.origin,
        "snapshot": look.snapshot,
        "committedOffset": look.committed,
        "endOffset": look.offset,
        "openTransaction": look.open_transaction,
        "logBehindSnapshot": look.is_log_behind,
        "kraftVersion": look.kraft_version,
        "voters": None if look.voters is None else _plain(look.voters),
        "ended": None if look.ended is None else look.ended.line(),
    }
    return {name: value for name, value in leaves.items() if value is not None}


def _provenance(look: Look) -> str:
    time = (_EPOCH + timedelta(milliseconds=look.as_of_ms)).strftime("%Y-%m-%dT%H:%M:%S") if _is_a_time(look) else "?"
    fraction = f".{look.as_of_ms % 1000:03}".rstrip("0").rstrip(".")
    return f"offset {look.offset - 1}, epoch {look.epoch}, time {time}{fraction}Z[UTC]"


def _is_a_time(look: Look) -> bool:
    return 0 <= look.as_of_ms < (datetime.max.replace(tzinfo=UTC) - _EPOCH).total_seconds() * 1000


def _features(contents: Contents) -> Directory:
    leaves: dict[str, object] = {
        f"finalized_{name}": level for name, level in contents.features.items() if name != METADATA_VERSION
    }
    if METADATA_VERSION in contents.features:
        leaves["metadataVersion"] = contents.features[METADATA_VERSION]
    state = contents.zk_migration_state
    if state is None and contents.features.get(METADATA_VERSION, _FIRST_WITHOUT_ZK) < _FIRST_WITHOUT_ZK:
        state = 0  # not written; releases that know ZooKeeper show it all the same
    if state is not None:
        leaves["zkMigrationState"] = _MIGRATION.get(state, state)
    return _named(leaves, Leaf)


def _cluster(contents: Contents) -> Directory:
    return _fixed({
        "brokers": partial(_numbered, contents.brokers, _registration),
        "controllers": partial(_numbered, contents.controllers, _registration),
    })  # fmt: skip


def _registration(fields: Mapping[str, Any]) -> Leaf:
    return Leaf(_plain(fields))


def _plain(value: Any) -> Any:
    """Return fields as Kafka's JSON has them; the only bytes among them are ids."""
    match value:
        case bytes():
            return str(Uuid(value))
        case dict():
            return {key: _plain(one) for key, one in value.items() if key != "_tags"}
        case tuple() | list():
            return [_plain(one) for one in value]
        case _:
            return value


def _topics(contents: Contents) -> Directory:
    topics = contents.topics

    def by_name(name: str) -> Node | None:
        topic_id = contents.names.get(name)
        return None if topic_id is None else _topic(topic_id, topics[topic_id])

    return _fixed({
        "byName": lambda: Directory(lambda: contents.names, by_name),
        "byId": lambda: _ids(topics, _topic),
    })  # fmt: skip


def _topic(topic_id: bytes, topic: Topic) -> Directory:
    partitions = _numbered(topic.partitions, _partition)
    own = {"name": topic.name, "id": str(Uuid(topic_id))}
    return Directory(
        lambda: [*own, *partitions.names()], lambda name: Leaf(own[name]) if name in own else partitions.child(name)
    )


def _partition(row: PartitionRow) -> Leaf:
    directories = row.directories or (bytes(16),) * len(row.replicas)  # not known: as the stock shell shows it
    return Leaf({
        "replicas": list(row.replicas),
        "directories": [str(DirectoryId(one)) for one in directories],
        "isr": list(row.isr),
        "removingReplicas": list(row.removing_replicas),
        "addingReplicas": list(row.adding_replicas),
        "elr": list(row.eligible_leader_replicas or ()),
        "lastKnownElr": list(row.last_known_elr or ()),
        "leader": row.leader,
        "leaderRecoveryState": _RECOVERY.get(row.leader_recovery_state, row.leader_recovery_state),
        "leaderEpoch": row.leader_epoch,
        "partitionEpoch": row.partition_epoch,
    })  # fmt: skip


def _configs(contents: Contents) -> Directory:
    def name_of(kind: int, resource: str) -> str:
        shown = _RESOURCES.get(kind, f"UNKNOWN({kind})")
        return f"{shown}:{resource}" if resource else shown

    by_name = {name_of(*key): values for key, values in contents.configs.items()}
    return _named(by_name, lambda values: _named(values, Leaf))


def _quotas(contents: Contents) -> Directory:
    by_name = {"_".join(map(_entity, entity)): values for entity, values in contents.quotas.items()}
    return _named(by_name, lambda values: _named(values, Leaf))


def _entity(part: tuple[str, str | None]) -> str:
    """Return one part of a quota's entity as text; the default, which has no name, is its type alone."""
    kind, name = part
    shown = _ENTITIES.get(kind, kind)
    if name is None:
        return shown
    escaped = name.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"{shown}({escaped})"


def _next_producer_id(contents: Contents) -> int:
    return _NO_PRODUCER_ID if contents.next_producer_id is None else contents.next_producer_id


def _as_record(number: int, fields: Mapping[str, Any]) -> Leaf:
    return Leaf(to_json(TYPES[number].fields, 0, dict(fields)))


def _acl(_: bytes, fields: Mapping[str, Any]) -> Leaf:
    return _as_record(18, fields)


def _token(fields: Mapping[str, Any]) -> Leaf:
    return _as_record(10, fields)


def _scram(contents: Contents) -> Directory:
    def users(number: int) -> Directory:
        return _named(contents.scram.get(number, {}), partial(_as_record, 11))

    known = {name: number for number, name in _MECHANISMS.items()}
    more = {f"UNKNOWN({number})": number for number in contents.scram if number not in _MECHANISMS}
    numbers = known | more
    return Directory(lambda: numbers, lambda name: users(numbers[name]) if name in numbers else None)
