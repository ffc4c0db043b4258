"""One log dir, looked at for those who decide."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from logdir.evidence import Proof, Removed
from logdir.formats.own import replica_marker
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import BY_HAND, Checkpoints, Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.observe.facts import ReplicaIndex, replicas_at
from logdir.observe.replicas import look
from logdir.reasons import Reason
from logdir.replica_ref import ReplicaRef
from tests.builders import CLUSTER, DIRECTORY, TOPIC_ID, log_dir, partition

ID = TopicId.parse(TOPIC_ID)
HIDDEN = "__cluster_metadata-2147483647"


def marker(directory: Path, **changed: Any) -> ReplicaMarker:
    values: dict[str, Any] = {
        "intent": Intent.STAGED, "cluster_id": CLUSTER, "node_id": 1, "directory_id": DIRECTORY, "topic": "orders",
        "topic_id": ID, "partition": 0, "birth_inode": directory.stat().st_ino, "path": "orders-0",
        "reason": Reason.OPERATOR, "evidence": Removed(proof=Proof.OPERATOR, as_of_ms=1), "staged_at_ms": 1,
        "delay_ms": 1, "boot_id": "b", "boottime_ms": 1, "clean": True,
    }  # fmt: skip
    made = ReplicaMarker(**(values | changed))
    (directory / "replica.json").write_bytes(replica_marker.render(made))
    return made


@pytest.fixture
def d1(tmp_path: Path) -> Path:
    return log_dir(tmp_path / "d1")


def test_a_live_replica_with_all_that_is_said_of_it(d1: Path) -> None:
    path = partition(d1 / "orders-0", segments={40: 10, 60: 5})
    (d1 / "recovery-point-offset-checkpoint").write_text("0\n2\norders 0 62\nother 0 7\n")
    (d1 / "log-start-offset-checkpoint").write_text("0\n1\norders 0 41\n")
    facts = look(str(d1))
    (replica,) = facts.replicas
    assert (facts.cluster_id, facts.node_id, facts.directory_id) == (CLUSTER, 1, DIRECTORY)
    assert (facts.layout, facts.has_clean_marker, facts.problem, facts.checkpoint_problem) == (
        "topic-name", False, None, None,
    )  # fmt: skip
    assert (replica.kind, replica.ref) == (Kind.LIVE, ReplicaRef(topic="orders", topic_id=ID, partition=0))
    assert replica.inode == path.stat().st_ino
    assert (replica.log_bytes, replica.segments, replica.first_offset) == (15, 2, 40)
    assert replica.checkpoints == Checkpoints(recovery_point=62, log_start=41)
    assert replica.unexpected_entries == replica.problems == ()


def test_kafkas_clean_marker_is_seen(d1: Path) -> None:
    (d1 / ".kafka_cleanshutdown").touch()
    assert look(str(d1)).has_clean_marker


def test_in_the_other_layout_the_name_holds_the_id(d1: Path) -> None:
    partition(d1 / TOPIC_ID[:2] / f"{TOPIC_ID}_3", topic_id=None)
    partition(d1 / TOPIC_ID[:2] / f"{TOPIC_ID}_4", topic_name="orders")
    third, fourth = look(str(d1)).replicas
    assert (third.ref.topic, third.ref.topic_id, third.ref.partition) == (None, ID, 3)
    assert (fourth.ref.topic, fourth.ref.topic_id, fourth.ref.partition) == ("orders", ID, 4)
    assert third.inode is not None


def test_links_strangers_and_what_cannot_be_read_keep_their_names(d1: Path, tmp_path: Path) -> None:  # A44
    target = partition(tmp_path / "elsewhere")
    (d1 / "linked-0").symlink_to(target)
    (d1 / f"linked-1.{'0' * 32}-future").symlink_to(target)
    (partition(d1 / "nested-0") / "sub").mkdir()
    by_path = {replica.path: replica for replica in look(str(d1)).replicas}
    assert by_path["linked-0"].problems == ("symlink",)
    assert by_path["linked-0"].inode is None
    assert by_path[f"linked-1.{'0' * 32}-future"].kind is Kind.FUTURE
    assert by_path["nested-0"].unexpected_entries == ("sub",)


def test_every_kind_a_broker_keeps_is_told(d1: Path) -> None:
    for name in ("a-0", f"a-0.{'1' * 32}-future", f"b-0.{'2' * 32}-delete", f"c-0.{'3' * 32}-stray"):
        partition(d1 / name)
    partition(d1 / "__cluster_metadata-0")
    facts = look(str(d1))
    assert {replica.kind for replica in facts.replicas} == {
        Kind.LIVE, Kind.FUTURE, Kind.DELETE, Kind.STRAY, Kind.METADATA,
    }  # fmt: skip
    live = next(replica for replica in facts.replicas if replica.kind is Kind.LIVE)
    assert [one.kind for one in ReplicaIndex([facts]).replicas(live.ref, Kind.FUTURE)] == [Kind.FUTURE]


@pytest.mark.parametrize("root", ["d1", "d1.logdird", f"d1/{HIDDEN}"], ids=["inside", "beside", "in place"])
def test_what_is_staged_is_told_wherever_the_work_root_lies(d1: Path, tmp_path: Path, root: str) -> None:
    staged = partition(tmp_path / root / "deleting" / f"{TOPIC_ID}_0")
    purging = partition(tmp_path / root / "deleting" / f"{TOPIC_ID}_0.2.purging")
    coming = partition(tmp_path / root / "incoming" / f"{TOPIC_ID}_1")
    made = marker(staged)
    marker(purging)
    marker(coming, intent=Intent.INCOMING, partition=1)
    found = {item.name: item for item in look(str(d1)).staged}
    assert [item.kind for item in found.values()] == [Kind.STAGED, Kind.PURGING, Kind.INCOMING]
    item = found[f"{TOPIC_ID}_0"]
    assert (item.marker, item.inode, item.problem) == (made, staged.stat().st_ino, None)
    assert (item.ref.topic, item.ref.topic_id, item.ref.partition) == ("orders", ID, 0)
    assert len(ReplicaIndex([look(str(d1))]).staged(item.ref, Kind.STAGED, Kind.PURGING)) == 2


@pytest.mark.parametrize("how", ["none", "torn", "giant", "copied", "link", "directory", "sub-directory"])
def test_a_marker_that_may_not_be_used_is_a_problem(d1: Path, how: str) -> None:
    staged = partition(d1 / HIDDEN / "deleting" / f"{TOPIC_ID}_0")
    file = staged / "replica.json"
    match how:
        case "torn":
            marker(staged)
            file.write_bytes(file.read_bytes()[:-9])
        case "giant":
            file.write_bytes(b"x" * 5000)
        case "copied":
            marker(staged, birth_inode=1)
        case "link":
            marker(staged)
            shutil.move(file, d1 / "owner.lock")
            file.symlink_to(d1 / "owner.lock")
        case "directory":
            file.mkdir()
        case "sub-directory":
            marker(staged)
            (staged / "sub").mkdir()
        case _:
            pass
    (item,) = look(str(d1)).staged
    assert item.problem is not None
    assert str(d1) in item.problem.path or HIDDEN in item.problem.path or "deleting" in item.problem.path
    assert (item.marker is None) is (how not in ("copied", "sub-directory"))
    if how in ("link", "directory"):
        # No right is missing, and no disk fails: the fix is another than for what cannot be read.
        assert (item.problem.slug, item.problem.fix) == ("marker-unusable", BY_HAND)


def test_two_work_roots_with_one_name_are_a_problem_for_both(d1: Path, tmp_path: Path) -> None:
    for root in (tmp_path / "d1.logdird", d1 / HIDDEN):
        marker(partition(root / "deleting" / f"{TOPIC_ID}_0"))
    one, two = look(str(d1)).staged
    assert one.problem is not None
    assert two.problem is not None
    assert "two work roots" in one.problem.found
    assert one.problem.fix == "compare both, and move one of them away; the replica is held until then"


def test_a_log_dir_that_is_not_there_has_its_problem(tmp_path: Path) -> None:
    facts = look(str(tmp_path / "d9"))
    assert facts.problem is not None
    assert facts.problem.found == "no directory there"
    assert facts.replicas == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
@pytest.mark.root
def test_a_prefix_that_cannot_be_listed_is_a_log_dir_that_was_not_wholly_read(d1: Path) -> None:
    prefix = d1 / TOPIC_ID[:2]
    partition(prefix / f"{TOPIC_ID}_0")
    if os.system(f"mount -t tmpfs none {prefix} 2>/dev/null") != 0:
        pytest.skip("needs the right to mount")
    try:
        problem = look(str(d1)).problem
    finally:
        os.system(f"umount {prefix}")
    assert problem is not None
    assert "something is mounted there" in problem.found


@pytest.mark.parametrize("text", ["0\n2\norders 0 62\n", "1\n0\n", "0\nx\n"])
def test_a_checkpoint_that_is_malformed_is_said(d1: Path, text: str) -> None:
    partition(d1 / "orders-0")
    (d1 / "log-start-offset-checkpoint").write_text(text)
    facts = look(str(d1))
    assert facts.checkpoint_problem is not None
    assert facts.checkpoint_problem.path == f"{d1}/log-start-offset-checkpoint"


def test_looking_changes_nothing(d1: Path) -> None:
    marker(partition(d1 / HIDDEN / "deleting" / f"{TOPIC_ID}_0"))
    partition(d1 / "orders-0")

    def tree() -> list[tuple[str, int, int]]:
        return [(str(p), p.lstat().st_mtime_ns, p.lstat().st_size) for p in sorted(d1.rglob("*"))]

    before = tree()
    look(str(d1))
    assert tree() == before


def test_only_what_is_asked_for_is_opened(d1: Path) -> None:
    for name in ("a-0", "b-0"):
        partition(d1 / name)
    a, b = look(str(d1), closely=lambda entry: entry.name == "a-0").replicas
    assert a.inode is not None
    assert b.inode is None


def test_a_replica_is_known_by_its_name_or_by_its_id_and_told_once(d1: Path) -> None:
    partition(d1 / "orders-0")
    partition(d1 / "renamed-0")
    partition(d1 / "orders-1")
    known = ReplicaIndex([look(str(d1))])

    def paths(topic: str | None, topic_id: TopicId | None, number: int) -> list[str]:
        identity = ReplicaRef(topic=topic, topic_id=topic_id, partition=number)
        return [replica.path for replica in known.replicas(identity, Kind.LIVE)]

    assert paths("orders", None, 0) == ["orders-0"]
    assert paths(None, ID, 0) == paths("orders", ID, 0) == ["orders-0", "renamed-0"]
    assert paths("other", None, 0) == paths(None, None, 0) == []


def test_an_index_of_some_partitions_tells_of_these_what_the_whole_one_does(d1: Path, tmp_path: Path) -> None:
    d2 = log_dir(tmp_path / "other")
    for top, name in ((d1, "a-0"), (d1, "a-1"), (d1, "b-2"), (d2, "a-1"), (d2, "b-1")):
        partition(top / name)
    facts = [look(str(d1)), look(str(d2))]
    whole, some = ReplicaIndex(facts), ReplicaIndex(facts, {1, 7})
    for topic in ("a", "b"):
        for number in (0, 1, 2):
            ref = ReplicaRef(topic=topic, topic_id=ID, partition=number)
            assert some.replicas(ref, Kind.LIVE) == (whole.replicas(ref, Kind.LIVE) if number == 1 else ())
    assert len(some.replicas(ReplicaRef(topic="a", topic_id=None, partition=1), Kind.LIVE)) == 2


def test_replicas_are_found_at_their_places_and_nowhere_else(d1: Path, tmp_path: Path) -> None:
    d2 = log_dir(tmp_path / "other")
    for top, name in ((d1, "a-0"), (d1, "a-1"), (d2, "a-0")):
        partition(top / name)
    facts = [look(str(d1)), look(str(d2))]
    asked = [(str(d1), "a-1"), (str(d2), "a-0"), (str(d2), "a-1"), ("/elsewhere", "a-0")]
    found = replicas_at(facts, asked)
    assert found.keys() == set(asked[:2])
    assert all((one.log_dir, replica.path) == place for place, (one, replica) in found.items())
    assert found[str(d2), "a-0"][0] is facts[1]
    assert replicas_at(facts, ()) == {}
