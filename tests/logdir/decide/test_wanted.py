"""Which staged replicas lose their deadline because the cluster assigns them here again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdir.decide.reconcile_action import HoldStaged
from logdir.decide.refusal import Refusal
from logdir.decide.staged.wanted import hold_what_is_wanted
from logdir.errors import Problem
from logdir.evidence import Proof, Removed
from logdir.formats.own.replica_marker import Intent
from logdir.observe.facts import LogDirFacts
from logdir.reasons import Reason
from tests.logdir.decide.builders import MARKER, WALL_MS, assigning, facts, replica, staged_replicas

CAPTURED = replace(
    MARKER,
    intent=Intent.CAPTURED,
    reason=Reason.CAPTURED,
    evidence=Removed(proof=Proof.BROKER_DELETED, as_of_ms=WALL_MS),
    path=f"orders-3.{'0' * 32}-delete",
)
D1 = facts(staged_replicas=(staged_replicas(CAPTURED),))
STALE = Problem("stale-disk", "/d2", "a disk that was never away", "a heartbeat 2 hours behind the other disks'")


def decide(*there: LogDirFacts) -> tuple[tuple[HoldStaged, ...], list[Refusal]]:
    image = assigning().image
    assert image is not None
    refusals: list[Refusal] = []
    usable = [one for one in there if one.quarantined is None]
    return hold_what_is_wanted(image, there, usable, refusals), refusals


def test_a_capture_that_is_assigned_here_again_loses_its_deadline() -> None:
    (held,), refusals = decide(D1)
    assert (held.log_dir, held.marker, refusals) == ("/d1", CAPTURED, [])


def test_a_live_copy_on_another_disk_is_enough() -> None:
    assert decide(D1, facts(replica(log_dir="/d2"), log_dir="/d2")) == ((), [])


@pytest.mark.parametrize(
    "old",
    [
        facts(replica(log_dir="/d2"), log_dir="/d2", quarantined=STALE),
        replace(facts(replica(log_dir="/d2"), log_dir="/d2"), problem=STALE),
    ],
    ids=["quarantined", "not all read"],
)
def test_a25_a_live_copy_on_a_disk_that_is_quarantined_or_not_all_read_is_not(old: LogDirFacts) -> None:
    (held,), refusals = decide(D1, old)
    assert (held.log_dir, refusals) == ("/d1", [])
    assert held.proposes == "/d2/orders-3 is live under its name or id: compare both, then keep one"


def test_a25_without_a_deadline_it_is_reported() -> None:
    one = facts(staged_replicas=(staged_replicas(replace(CAPTURED, delay_ms=None)),))
    holds, (refusal,) = decide(one, facts(replica(log_dir="/d2"), log_dir="/d2", quarantined=STALE))
    assert (holds, refusal.problem.slug) == ((), "assigned-here")


def test_a25_of_two_live_copies_the_one_on_a_disk_in_use_is_enough() -> None:
    old = facts(replica(log_dir="/d2"), log_dir="/d2", quarantined=STALE)
    assert decide(D1, old, facts(replica(log_dir="/d3"), log_dir="/d3")) == ((), [])
