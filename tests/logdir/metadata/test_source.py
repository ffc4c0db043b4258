"""All that a metadata log says: a snapshot with its tail and the log from its beginning say one thing, and so does an
image; what cannot be used ends it there, and is told."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logdir.cluster import metadata_log
from logdir.cluster.image import Image
from logdir.cluster.metadata_log import Watermark
from logdir.errors import MalformedFileError, StateError
from logdir.metadata import source
from logdir.metadata.contents import Contents
from logdir.metadata.source import Look, read_directory, read_file
from logdir.wire.metadata_records import MetadataRecord
from tests.logdir.cluster import log_dir
from tests.logdir.cluster.log_dir import A, B, LogDir, abort, begin, change, end, noop, partition, record, remove, topic
from tests.logdir.wire.golden_metadata import METADATA

DIRECTORIES = sorted(path for path in METADATA.iterdir() if path.is_dir())
NAMES = [path.name for path in DIRECTORIES]
WHOLE = Watermark(offset=10**9, epoch=1, is_prefix_checked=True)


def image_of(directory: Path) -> Image:
    return metadata_log.read(str(directory), node_id=1, cluster_id="x", watermark=WHOLE)


def compare(look: Look, image: Image) -> None:
    """Compare with the image, which folds by code of its own."""
    contents = look.contents
    assert (look.offset, look.epoch, look.as_of_ms) == (image.offset, image.epoch, image.as_of_ms)
    assert (contents.names, contents.features) == (image.names, image.features)
    assert contents.topics.keys() == image.topics.keys()
    for topic_id, topic_ in contents.topics.items():
        other = image.topics[topic_id]
        assert (topic_.name, topic_.partitions.keys()) == (other.name, other.partitions.keys())
        for number, row in topic_.partitions.items():
            one = other.partitions[number]
            assert (row.replicas, row.isr, row.adding_replicas, row.removing_replicas) == one[:4]
            assert (row.leader, row.leader_epoch, row.partition_epoch) == one[4:7]
            assert b"".join(row.directories) == one.directories
            if row.eligible_leader_replicas or row.last_known_elr:
                assert (row.eligible_leader_replicas or (), row.last_known_elr or ()) == (one.eligible, one.last_known)
    assert contents.brokers.keys() == image.brokers.keys()
    for number, fields in contents.brokers.items():
        broker = image.brokers[number]
        assert (fields["incarnationId"], fields["brokerEpoch"], fields["fenced"]) == broker[:3]
        assert tuple(fields.get("logDirs", ())) == broker.log_dirs


@pytest.mark.parametrize("directory", DIRECTORIES, ids=NAMES)
def test_snapshot_and_tail_say_what_the_whole_log_says(directory: Path, tmp_path: Path) -> None:
    for segment in directory.glob("*.log"):
        shutil.copy(segment, tmp_path)
    both, alone = read_directory(str(directory)), read_directory(str(tmp_path))
    for name in Contents.__dataclass_fields__:
        assert getattr(both.contents, name) == getattr(alone.contents, name), name
    assert (both.offset, both.epoch) == (alone.offset, alone.epoch)
    assert (both.ended, alone.ended) == (None, None)
    assert (alone.snapshot, alone.committed) == (None, 0)
    assert both.committed == int((both.snapshot or "").partition("-")[0]) > 0
    assert both.contents.topics
    assert both.contents.configs
    # And a segment by itself, where it begins at offset 0.
    (segment,) = directory.glob("*.log")
    assert read_file(str(segment)).contents == alone.contents


@pytest.mark.parametrize("directory", DIRECTORIES, ids=NAMES)
def test_it_says_what_an_image_says(directory: Path) -> None:
    compare(read_directory(str(directory)), image_of(directory))


@pytest.mark.parametrize("directory", DIRECTORIES, ids=NAMES)
def test_a_snapshot_by_itself(directory: Path) -> None:
    snapshot = max(directory.glob("*.checkpoint"))
    look = read_file(str(snapshot))
    compare(look, metadata_log.read(str(directory), node_id=1, cluster_id="x"))
    assert look.offset == look.committed
    if "dynamic" in directory.name:
        assert look.kraft_version == 1
        assert [one["voterId"] for one in look.voters or ()] == [1]
    else:
        assert (look.kraft_version, look.voters) == (None, None)


@pytest.mark.parametrize("seed", range(12))
def test_random_logs_say_what_an_image_says(seed: int, tmp_path: Path) -> None:
    """Rolls, transactions, snapshots and a batch that contradicts what was before."""
    rng = random.Random(seed)
    log = LogDir(tmp_path)
    topics: dict[bytes, int] = {}

    def one() -> list[MetadataRecord]:
        kind = rng.randrange(8)
        if kind == 0 or not topics:
            topic_id = rng.randbytes(16)
            topics[topic_id] = rng.randrange(1, 4)
            name = f"t{len(topics)}"
            return [topic(name, topic_id), *(partition(topic_id, at, (1, 2)) for at in range(topics[topic_id]))]
        topic_id = rng.choice(list(topics))
        if kind == 1 and len(topics) > 2:
            del topics[topic_id]
            return [remove(topic_id)]
        if kind == 2:
            return [log_dir.register(rng.randrange(3), epoch=log.offset)]
        if kind == 3:
            return [record(12, name="metadata.version", featureLevel=rng.randrange(1, 30))]
        if kind == 4:
            return [noop()]
        changed: dict[str, Any] = rng.choice((
            {"isr": (1,)},
            {"leader": rng.choice((-1, 1, 2))},
            {"replicas": (1, 2, 3), "addingReplicas": (3,)},
            {"directories": (log_dir.DIR, log_dir.DIR)},
            {"replicas": (2, 3), "isr": (2,), "directories": (log_dir.DIR, log_dir.DIR)},
        ))  # fmt: skip
        return [change(topic_id, rng.randrange(topics[topic_id]), **changed)]

    for _ in range(120):
        if rng.random() < 0.1:
            log.roll()
        if rng.random() < 0.1:
            log.lead(log.epoch + 1)
        records = [each for _ in range(rng.randrange(1, 4)) for each in one()]
        if rng.random() < 0.15:
            log.append(begin(), *records[:1])
            log.append(*records[1:], end())
        else:
            log.append(*records)
    if seed % 3 == 0:
        log.append(begin(), topic("never", A))
    if seed % 3 == 1:
        log.append(change(B, 0, leader=1))  # of a topic that nobody made
        log.append(noop())
    look = read_directory(str(tmp_path))
    image = image_of(tmp_path)
    if seed % 3 != 0:  # an image goes back to where an open transaction began
        compare(look, image)
    assert "never" not in look.contents.names
    assert (look.open_transaction is None) == (seed % 3 != 0)
    assert (look.ended is None) == (seed % 3 != 1)


def some(log: LogDir) -> None:
    log.append(topic("a", A), partition(A, 0, (1, 2)))
    log.append(topic("b", B), partition(B, 0, (1,)))


def test_an_aborted_transaction_never_was(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    some(log)
    log.append(begin(), remove(A))
    log.append(abort(), change(A, 0, leader=2))
    look = read_directory(str(tmp_path))
    assert sorted(look.contents.names) == ["a", "b"]
    assert look.contents.topics[A].partitions[0].leader == 2
    assert look.open_transaction is None


def test_what_a_removed_topic_was_set_to_goes_with_it(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    some(log)
    for name in ("a", "b"):
        log.append(record(4, resourceType=2, resourceName=name, name="retention.ms", value="1"))
    log.append(remove(A))
    assert read_directory(str(tmp_path)).contents.configs == {(2, "b"): {"retention.ms": "1"}}


def test_settings_quotas_tokens_and_the_like_come_and_go(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    user = ({"entityType": "user", "entityName": "u"},)
    token: dict[str, Any] = {"owner": "o", "requester": "r", "renewers": (), "issueTimestamp": 1, "maxTimestamp": 2}
    scram: dict[str, Any] = {"mechanism": 1, "salt": b"", "storedKey": b"", "serverKey": b"", "iterations": 4096}
    acl: dict[str, Any] = {"resourceType": 2, "resourceName": "t", "patternType": 3, "principal": "User:u", "host": "*"}

    def set_all(value: str | None, *, is_gone: bool) -> None:
        log.append(record(4, resourceType=4, resourceName="1", name="k", value=value))
        log.append(record(14, entity=user, key="request_percentage", value=1.5, remove=is_gone))
        log.append(record(12, name="group.version", featureLevel=0 if is_gone else 1))

    set_all("v", is_gone=False)
    log.append(record(10, **token, expirationTimestamp=3, tokenId="T"), record(11, name="u", **scram))
    log.append(record(18, id=A, **acl, operation=3, permissionType=3))
    log.append(record(15, brokerId=1, brokerEpoch=1, nextProducerId=5000), record(21, zkMigrationState=3))
    contents = read_directory(str(tmp_path)).contents
    assert contents.configs == {(4, "1"): {"k": "v"}}
    assert contents.quotas == {(("user", "u"),): {"request_percentage": 1.5}}
    assert (list(contents.tokens), list(contents.scram[1]), list(contents.acls)) == (["T"], ["u"], [A])
    assert (contents.next_producer_id, contents.zk_migration_state, contents.features) == (
        5000,
        3,
        {"group.version": 1},
    )
    set_all(None, is_gone=True)
    log.append(record(26, tokenId="T"), record(22, name="u", mechanism=1), record(19, id=A))
    gone = read_directory(str(tmp_path)).contents
    assert (gone.configs, gone.quotas, gone.tokens, gone.acls, gone.features) == ({}, {}, {}, {}, {})
    assert not gone.scram[1]


def test_eligible_leaders_are_cleared(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    some(log)
    for topic_id in (A, B):
        one = change(topic_id, 0, eligibleLeaderReplicas=(1,), lastKnownElr=(2,))
        log.append(MetadataRecord(type=5, version=2, fields=one.fields))
    log.append(record(28, topicName="a"))
    topics = read_directory(str(tmp_path)).contents.topics
    assert topics[A].partitions[0].eligible_leader_replicas is None
    assert topics[B].partitions[0].eligible_leader_replicas == (1,)
    log.append(record(28, topicName=""))
    assert read_directory(str(tmp_path)).contents.topics[B].partitions[0].last_known_elr is None


def test_a_snapshot_may_end_within_a_batch(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    log.append(topic("a", A), partition(A, 0, (1, 2)))
    log.append(change(A, 0, leader=2), change(A, 0, leader=1))
    log.snapshot(topic("a", A), partition(A, 0, (1, 2), leader=2, leaderEpoch=1, partitionEpoch=1), offset=3)
    look = read_directory(str(tmp_path))
    row = look.contents.topics[A].partitions[0]
    assert (row.leader, row.leader_epoch, row.partition_epoch) == (1, 2, 2)
    assert (look.committed, look.offset, look.ended) == (3, 4, None)
    compare(look, image_of(tmp_path))


def test_a_log_behind_its_snapshot_is_not_used(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    some(log)
    log.snapshot(topic("a", A), offset=2, epoch=5)
    look = read_directory(str(tmp_path))
    assert (list(look.contents.names), look.offset, look.epoch) == (["a"], 2, 5)
    assert look.is_log_behind
    assert look.ended is None


def test_a_snapshot_without_a_log_and_neither(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    some(log)
    log.snapshot(topic("a", A))
    log.segment.unlink()
    assert list(read_directory(str(tmp_path)).contents.names) == ["a"]
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(MalformedFileError, match="no segment and no snapshot"):
        read_directory(str(tmp_path))
    (tmp_path / f"{5:020d}.log").touch()
    with pytest.raises(MalformedFileError, match="a snapshot at offset 5 or later"):
        read_directory(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        read_directory(str(tmp_path / "none"))
    with pytest.raises(MalformedFileError, match="the segment of offset 0"):
        read_file(str(tmp_path / f"{5:020d}.log"))


def test_a_file_that_goes_away_is_looked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogDir(tmp_path)
    some(log)
    old = log.snapshot(topic("old", A))
    listed: list[int] = []
    list_names: Callable[[str], list[str]] = os.listdir

    def listdir(path: str) -> list[str]:
        names = list_names(path)
        listed.append(len(names))
        if len(listed) == 1:
            old.rename(f"{old}.deleted")
            log.append(noop())
            log.snapshot(topic("new", A))
        return names

    monkeypatch.setattr(os, "listdir", listdir)
    assert list(read_directory(str(tmp_path)).contents.names) == ["new"]
    assert len(listed) == 2

    def vanishing(path: str) -> list[str]:
        return [*list_names(path), f"{99:020d}-{9:010d}.checkpoint"]

    monkeypatch.setattr(os, "listdir", vanishing)
    with pytest.raises(StateError, match="it went away"):
        read_directory(str(tmp_path))


def test_a_batch_being_written_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogDir(tmp_path)
    some(log)
    log.append(topic("late", log_dir.OLD))
    whole = log.segment.read_bytes()
    log.segment.write_bytes(whole[:-7])
    follow = source._Reader.follow

    def followed(self: source._Reader, *args: object, **named: object) -> None:
        follow(self, *args, **named)  # type: ignore[arg-type] # passed on as they are
        log.segment.write_bytes(whole)

    monkeypatch.setattr(source._Reader, "follow", followed)
    look = read_directory(str(tmp_path))
    assert "late" in look.contents.names
    assert look.ended is None
