"""What the daemon does not keep: only what certainly nobody wants back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdir.decide.auto_capture import CapturePolicy, passed_over
from logdir.decide.staged.deadline import DelayPolicy
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Checkpoints
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts, Replica, ReplicaIndex
from logdir.replica_ref import ReplicaRef

UNIQUE = "0123456789abcdef0123456789abcdef"
ID = TopicId.parse("eXOy6xj-Q8ivrWAlsZGnkw")
OTHER = TopicId.parse("MkU3OEVBNTcwNTJENDM2Qg")
CHECKPOINTS = Checkpoints(recovery_point=None, log_start=None, high_watermark=None, cleaner=None)


def replica(
    path: str, kind: Kind, *, log_dir: str = "/d1", topic_id: TopicId | None = ID, topic: str = "pay"
) -> Replica:
    return Replica(
        log_dir=log_dir,
        path=path,
        kind=kind,
        ref=ReplicaRef(topic=topic, topic_id=topic_id, partition=0),
        inode=1,
        log_bytes=1,
        segments=1,
        first_offset=0,
        checkpoints=CHECKPOINTS,
    )


DELETED = replica(f"pay-0.{UNIQUE}-delete", Kind.DELETE)
STRAY = replica(f"pay-0.{UNIQUE}-stray", Kind.STRAY)


STALE = Problem("stale-disk", "/d2", "a disk that was never away", "a heartbeat 2 hours behind the other disks'")


def asked(
    one: Replica,
    *others: Replica,
    policy: CapturePolicy | None = None,
    quarantined: Problem | None = None,
    problem: Problem | None = None,
) -> str | None:
    """Ask about a replica of ``/d1``, with others on ``/d1`` and ``/d2``; the problems are those of ``/d2``."""
    facts = [
        LogDirFacts(
            log_dir=log_dir,
            problem=problem if log_dir == "/d2" else None,
            quarantined=quarantined if log_dir == "/d2" else None,
            replicas=tuple(r for r in (one, *others) if r.log_dir == log_dir),
        )
        for log_dir in ("/d1", "/d2")
    ]
    found = passed_over(one, ReplicaIndex(facts), policy or CapturePolicy())
    # As the daemon asks, which looks up no other partition.
    assert passed_over(one, ReplicaIndex(facts, {one.ref.partition}), policy or CapturePolicy()) == found
    return found


def test_a_deletion_is_captured() -> None:
    assert asked(DELETED) is None
    assert asked(STRAY) is None


def test_what_a_move_between_two_disks_left_is_not() -> None:
    moved = replica("pay-0", Kind.LIVE, log_dir="/d2")
    assert asked(DELETED, moved) == "moved to /d2"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replica("pay-0", Kind.LIVE, log_dir="/d2", topic_id=OTHER), id="another topic of the same name"),
        pytest.param(replica("pay-0", Kind.LIVE, log_dir="/d2", topic_id=None), id="an id that is not known"),
        pytest.param(replica("pay-0", Kind.LIVE, log_dir="/d1"), id="on the same disk: made again"),
        pytest.param(replica(f"pay-0.{UNIQUE}-future", Kind.FUTURE, log_dir="/d2"), id="a move that did not end"),
    ],
)
def test_what_is_not_certain_is_captured(other: Replica) -> None:
    assert asked(DELETED, other) is None


def test_a25_what_is_live_on_a_disk_that_is_quarantined_or_not_all_read_is_captured() -> None:
    old = replica("pay-0", Kind.LIVE, log_dir="/d2")
    assert asked(DELETED, old, quarantined=STALE) is None
    assert asked(DELETED, old, quarantined=STALE._replace(slug="sync-failed")) is None
    assert asked(DELETED, old, problem=STALE._replace(slug="log-dir-offline")) is None


def test_a_stray_is_captured_beside_a_live_replica() -> None:
    assert asked(STRAY, replica("pay-0", Kind.LIVE, log_dir="/d2")) is None


def test_excluded_topics_are_not_captured() -> None:
    policy = CapturePolicy(excluded=("p?y", "x*"))
    assert asked(DELETED, policy=policy) == "capture.exclude names its topic"
    assert asked(STRAY, policy=policy) == "capture.exclude names its topic"
    assert asked(replica(f"Pay-0.{UNIQUE}-delete", Kind.DELETE, topic="Pay"), policy=policy) is None


def test_a_delay_of_0_means_not_captured() -> None:
    policy = CapturePolicy(delays=DelayPolicy(default_ms=1000, patterns=(("pay", 0),)))
    assert asked(DELETED, policy=policy) == "the delay of its topic is 0"
    assert asked(STRAY, policy=policy) is None  # It is held, whatever the delay.
    assert asked(DELETED, policy=CapturePolicy(delays=DelayPolicy(default_ms=0, patterns=(("pay", 1),)))) is None


def test_a_name_that_kafka_cut_says_nothing_of_its_topic() -> None:
    cut = f"{'p' * 213}-0.{UNIQUE}-delete"
    assert len(cut) == 255
    one = replace(DELETED, path=cut, ref=ReplicaRef(topic="p" * 213, topic_id=None, partition=0))
    assert asked(one, policy=CapturePolicy(excluded=("*",))) is None
