"""Records folded at once, in pieces, and by a model of their own say the same; what was there stays as it was."""

from __future__ import annotations

import random
from typing import Any

import pytest

from logdir.cluster.fold import Fold
from logdir.cluster.image import Broker, Image, Partition, Source, remembering
from logdir.errors import MalformedFileError
from logdir.ids import TopicId
from logdir.wire.metadata_fast import PartitionChangeRow, PartitionRow, Row, TopicRow
from logdir.wire.metadata_records import MetadataRecord
from tests.logdir.cluster.log_dir import DIR, OLD, A, B, begin, end, record, register, remove

EMPTY = Image(source=Source.METADATA_LOG, origin="/log", node_id=1, cluster_id="x")


def fold(image: Image, *rows: Row, at_ms: int = 5) -> Image:
    folded = Fold(image)
    numbered = [(image.offset + number, row) for number, row in enumerate(rows)]
    folded.add(numbered, epoch=1, timestamp_ms=at_ms, end=image.offset + len(rows))
    return folded.image()


def put(topic_id: bytes = A, number: int = 0, replicas: tuple[int, ...] = (1, 2), **changed: Any) -> PartitionRow:
    return PartitionRow(number, topic_id, replicas, replicas, (), (), replicas[0], 0, 0, ())._replace(**changed)


def test_a_change_replaces_what_it_names_and_counts_epochs() -> None:
    image = fold(EMPTY, TopicRow("a", A), put(directories=(DIR, DIR)))
    before = image.topics[A].partitions[0]
    assert before == Partition((1, 2), (1, 2), (), (), 1, 0, 0, DIR + DIR, ())
    for row, expected in (
        (PartitionChangeRow(0, A, isr=(1,)), before._replace(isr=(1,), partition_epoch=1)),
        (PartitionChangeRow(0, A, leader=1), before._replace(leader_epoch=1, partition_epoch=1)),
        (PartitionChangeRow(0, A, leader=-1), before._replace(leader=-1, leader_epoch=1, partition_epoch=1)),
        (
            PartitionChangeRow(0, A, replicas=(2, 3), adding_replicas=(3,), removing_replicas=(1,)),
            before._replace(replicas=(2, 3), adding=(3,), removing=(1,), directories=b"", partition_epoch=1),
        ),
        (
            PartitionChangeRow(0, A, replicas=(2, 3), directories=(DIR, bytes(16))),
            before._replace(replicas=(2, 3), directories=DIR + bytes(16), partition_epoch=1),
        ),
        (
            PartitionChangeRow(0, A, isr=(), eligible_leader_replicas=(1,), last_known_elr=(2,)),
            before._replace(isr=(), eligible=(1,), last_known=(2,), partition_epoch=1),
        ),
        (PartitionChangeRow(0, A, leader_recovery_state=1), before._replace(partition_epoch=1)),
    ):
        assert fold(image, row).topics[A].partitions[0] == expected


@pytest.mark.parametrize(
    ("row", "eligible", "last_known"),
    [
        (PartitionChangeRow(0, A, last_known_elr=(3,)), (1,), (3,)),
        (PartitionChangeRow(0, A, eligible_leader_replicas=(3,)), (3,), (2,)),
        (PartitionChangeRow(0, A, eligible_leader_replicas=()), (), (2,)),
        (PartitionChangeRow(0, A, isr=(3,)), (1,), (2,)),
        (PartitionChangeRow(0, A, eligible_leader_replicas=(), last_known_elr=()), (), ()),
    ],
    ids=["last known alone", "eligible alone", "eligible emptied", "neither", "both emptied"],
)
def test_a_change_of_one_list_of_eligible_leaders_keeps_the_other(
    row: PartitionChangeRow, eligible: tuple[int, ...], last_known: tuple[int, ...]
) -> None:
    with_both = put(replicas=(2, 3), isr=(), leader=-1, eligible_leader_replicas=(1,), last_known_elr=(2,))
    one = fold(fold(EMPTY, TopicRow("a", A), with_both), row).topics[A].partitions[0]
    assert (one.eligible, one.last_known) == (eligible, last_known)
    assert one.is_in_sync(1) == (1 in eligible)


def test_eligible_leaders_and_directories_can_be_asked_for() -> None:
    one = Partition((1, 2), (), (), (), -1, 0, 0, DIR + bytes(16), (2,))
    assert one.is_in_sync(2)
    assert not one.is_in_sync(1)
    assert one._replace(last_known=(1,)).is_in_sync(1)
    assert bytes(one.directory(2) or b"") == bytes(16)
    assert one.directory(3) is None
    assert one._replace(directories=DIR).directory(1) is None


def test_brokers_come_change_and_go() -> None:
    image = fold(EMPTY, register(1, epoch=7, fenced=True))
    known = image.brokers[1]
    assert known == Broker(
        incarnation=b"incarnation-no-1",
        epoch=7,
        is_fenced=True,
        endpoints=(("PLAINTEXT", "h1", 9092, 0),),
        log_dirs=(DIR,),
    )

    def changed(version: int, **fields: Any) -> MetadataRecord:
        return record(17, version, brokerId=1, brokerEpoch=7, **{"fenced": 0, **fields})

    for row, expected in (
        (changed(0, fenced=-1), known._replace(is_fenced=False)),
        (changed(0, fenced=1), known),
        (changed(1, inControlledShutdown=1), known._replace(is_shutting_down=True)),
        (changed(2, inControlledShutdown=0, logDirs=(bytes(16),)), known._replace(log_dirs=(bytes(16),))),
        (changed(2, inControlledShutdown=0, logDirs=()), known),
        (changed(3, logDirs=(), cordonedLogDirs=(DIR,)), known._replace(cordoned=(DIR,))),
        (changed(3, logDirs=(), cordonedLogDirs=None), known),
        (record(8, id=1, epoch=7), known._replace(is_fenced=False)),
        (record(7, id=1, epoch=7), known),
    ):
        assert fold(image, row).brokers[1] == expected
    assert fold(image, record(1, brokerId=1, brokerEpoch=7)).brokers == {}
    for row in (
        record(1, brokerId=1, brokerEpoch=8),
        record(8, id=2, epoch=7),
        changed(0) and record(7, id=1, epoch=6),
    ):
        with pytest.raises(MalformedFileError, match="a registration of broker"):
            fold(image, row)


def test_features_and_tiered_topics() -> None:
    def level(name: str, value: int) -> MetadataRecord:
        return record(12, name=name, featureLevel=value)

    def config(value: str | None, kind: int = 2, name: str = "remote.storage.enable") -> MetadataRecord:
        return record(4, resourceType=kind, resourceName="a", name=name, value=value)

    image = fold(EMPTY, level("metadata.version", 0), level("group.version", 1), TopicRow("a", A), config("true"))
    assert image.features == {"metadata.version": 0, "group.version": 1}
    assert image.tiered == {"a"}
    assert fold(image, level("group.version", 0)).features == {"metadata.version": 0}
    for row in (config(None), config("false"), remove(A)):
        assert fold(image, row).tiered == set()
    for row in (config("false", kind=4), config("false", name="retention.ms")):
        assert fold(image, row).tiered == {"a"}


@pytest.mark.parametrize(
    "row",
    [put(B), put(A)._replace(topic_id=OLD), PartitionChangeRow(9, A), PartitionChangeRow(0, B), remove(B)],
    ids=str,
)
def test_what_contradicts_what_was_before_is_refused(row: Row) -> None:
    image = fold(EMPTY, TopicRow("a", A), put())
    with pytest.raises(MalformedFileError, match="/log"):
        fold(image, row)


def test_other_records_change_nothing() -> None:
    image = fold(EMPTY, TopicRow("a", A), put())
    after = fold(image, record(20), record(21, zkMigrationState=0), record(28, topicName="a"))
    assert (after.topics, after.brokers, after.offset) == (image.topics, image.brokers, image.offset + 3)


class Model:
    """The same in the plainest way."""

    def __init__(self) -> None:
        self.topics: dict[bytes, tuple[str, dict[int, list[Any]]]] = {}
        self.removed: set[bytes] = set()
        self.left: set[tuple[bytes, int]] = set()

    def apply(self, row: Row) -> None:
        if isinstance(row, TopicRow):
            self.topics[row.topic_id] = row.name, {}
        elif isinstance(row, PartitionRow):
            self.topics[row.topic_id][1][row.partition] = [
                row.replicas, row.isr, row.adding_replicas, row.removing_replicas, row.leader, 0, 0,
            ]  # fmt: skip
        elif isinstance(row, PartitionChangeRow):
            one = self.topics[row.topic_id][1][row.partition]
            was = 1 in one[0] or 1 in one[2]
            for place, value in enumerate((row.replicas, row.isr, row.adding_replicas, row.removing_replicas)):
                if value is not None:
                    one[place] = value
            if row.leader != -2:
                one[4], one[5] = row.leader, one[5] + 1
            one[6] += 1
            now = 1 in one[0] or 1 in one[2]
            if now:
                self.left.discard((row.topic_id, row.partition))
            elif was:
                self.left.add((row.topic_id, row.partition))
        elif row.type == 9:
            del self.topics[row.fields["topicId"]]
            self.removed.add(row.fields["topicId"])

    def compare(self, image: Image) -> None:
        assert {key: topic.name for key, topic in image.topics.items()} == {
            key: name for key, (name, _) in self.topics.items()
        }
        for key, (_, partitions) in self.topics.items():
            assert {number: list(one[:7]) for number, one in image.topics[key].partitions.items()} == partitions
        assert set(image.names.values()) == set(self.topics)
        assert set(image.removed) == self.removed
        assert {key for key in image.left if key[0] not in self.removed} == {
            key for key in self.left if key[0] not in self.removed
        }


def rows_at_random(draw: random.Random, count: int) -> list[Row]:
    rows: list[Row] = []
    partitions: dict[bytes, int] = {}
    for number in range(count):
        kind = draw.random()
        if kind < 0.1 or not partitions:
            topic_id = number.to_bytes(16, "big")
            partitions[topic_id] = 0
            rows.append(TopicRow(f"t{number}", topic_id))
            continue
        topic_id = draw.choice(list(partitions))
        nodes = tuple(draw.sample(range(1, 6), 3))
        if kind < 0.4 or not partitions[topic_id]:
            rows.append(put(topic_id, partitions[topic_id], nodes))
            partitions[topic_id] += 1
        elif kind < 0.43:
            rows.append(remove(topic_id))
            del partitions[topic_id]
        else:
            rows.append(
                PartitionChangeRow(
                    draw.randrange(partitions[topic_id]),
                    topic_id,
                    isr=draw.choice((None, nodes[:1])),
                    leader=draw.choice((-2, -1, nodes[0])),
                    replicas=draw.choice((None, None, nodes)),
                    adding_replicas=draw.choice((None, (), nodes[:1])),
                )
            )
    return rows


def kept_of(image: Image) -> tuple[object, ...]:
    """Copy everything that could be changed in place."""
    topics = {key: (topic, dict(topic.partitions)) for key, topic in image.topics.items()}
    return topics, dict(image.names), dict(image.left), dict(image.removed)


@pytest.mark.parametrize("seed", range(20))
def test_at_once_in_pieces_and_by_a_model_they_say_the_same(seed: int) -> None:
    draw = random.Random(seed)
    rows = rows_at_random(draw, 400)
    model, image, images = Model(), EMPTY, []
    start = 0
    while start < len(rows):
        piece = rows[start : start + draw.randint(1, 40)]
        for row in piece:
            model.apply(row)
        kept = kept_of(image)
        after = fold(image, *piece)
        assert kept_of(image) == kept
        untouched = {key for key, topic in image.topics.items() if after.topics.get(key) is topic}
        assert untouched or len(piece) >= len(image.topics)
        images.append(after)
        image = after
        model.compare(image)
        start += len(piece)
    whole = fold(EMPTY, *rows)
    assert (whole.topics, whole.names, whole.left, whole.removed) == (
        image.topics, image.names, image.left, image.removed,
    )  # fmt: skip


def test_a_transaction_is_held_until_it_ends() -> None:
    folded = Fold(EMPTY)
    folded.add([(0, TopicRow("a", A)), (1, begin()), (2, TopicRow("b", B))], epoch=1, timestamp_ms=1, end=3)
    folded.add([(3, put(B))], epoch=1, timestamp_ms=2, end=4)
    assert folded.offset == 1
    image = folded.image()
    assert (set(image.names), image.as_of_ms) == ({"a"}, 0)
    folded = Fold(image)
    folded.add([(1, begin()), (2, TopicRow("b", B))], epoch=1, timestamp_ms=1, end=3)
    folded.add([(3, put(B)), (4, end())], epoch=1, timestamp_ms=2, end=5)
    image = folded.image()
    assert (set(image.names), image.offset, image.as_of_ms) == ({"a", "b"}, 5, 2)


def test_removals_of_what_does_not_lie_here_can_be_forgotten() -> None:
    image = fold(EMPTY, TopicRow("a", A), put(), TopicRow("b", B), put(B), TopicRow("c", OLD), put(OLD))
    gone = PartitionChangeRow(0, OLD, replicas=(2, 3))
    image = fold(image, remove(A), remove(B), gone)
    kept = remembering(image, [TopicId(A)])
    assert (set(kept.removed), set(kept.left)) == ({A}, set())
    assert set(remembering(image, [TopicId(OLD)]).left) == {(OLD, 0)}
    assert kept.topics is image.topics


def test_a_removed_topic_is_remembered_as_it_was_if_this_node_had_a_replica_of_it() -> None:
    image = fold(EMPTY, TopicRow("a", A), put(replicas=(2, 1)), put(number=1, replicas=(2, 3)))
    image = fold(image, TopicRow("b", B), put(B, replicas=(2, 3)))
    gone = fold(image, remove(A), remove(B))
    assert (gone.topics, set(gone.removed)) == ({}, {A, B})
    assert gone.former == {A: image.topics[A]}
    assert gone.last_of(TopicId(A)) == image.last_of(TopicId(A)) == image.topics[A]
    assert (gone.last_of(TopicId(B)), gone.last_of(TopicId(OLD))) == (None, None)
    assert remembering(gone, [TopicId(A)]).former == gone.former
    assert remembering(gone, [TopicId(B)]).former == {}
    assert fold(gone, TopicRow("a", A)).former == {}  # as in a log that was restored from a backup
