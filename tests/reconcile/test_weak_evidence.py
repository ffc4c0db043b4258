"""Weak evidence does not pass in the company of strong, and an image that says nothing confirms nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from logdir.evidence import Proof, Removed
from logdir.ids import TopicId
from logdir.reasons import Reason
from tests.logdir.cluster.log_dir import LogDir, remove
from tests.reconcile.disk import HOUR_MS, WALL_MS, live
from tests.reconcile.scene import INCREMENTAL, A, B, item, later, pair, raw, why_no_purge
from tests.reconcile.stories import Broker, reconcile, staged, up_to
from tests.reconcile.universe import OTHER, RIGHT, document, listed, stopped


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")], ids=["first by name", "last by name"])
def test_a38_a_whole_topic_on_weak_evidence_does_not_go_behind_one_on_strong(names: tuple[str, str]) -> None:
    """StopReplica names one (strong); the other is named with another id (weak); both within the limit of a tenth."""
    strong, weak = names
    broker = Broker(*pair(live("a", A), live("b", B)))
    broker.is_confirmed = False
    gone: dict[str, Any] = {strong: (RIGHT[strong], (0,))}
    stop = document(stopped(delete=True, **gone), api="StopReplica", form="kip", sequence=1)
    seen = broker.decide(stop)
    assert seen.plan is not None
    broker.known, broker.last_applied = seen.image, seen.plan.last_applied
    decided = broker.decide(document(listed(**{weak: (OTHER[weak], (0,))}), type=INCREMENTAL, sequence=2))
    assert decided.plan is not None
    assert {action.stage.marker.topic for action in decided.plan.waiting} == {strong, weak}
    assert decided.plan.over_limit is not None
    assert decided.plan.over_limit.found.endswith(f" {weak}")
    assert staged(decided.plan) == []


def test_a02_an_image_that_says_nothing_of_it_confirms_no_purge(log: LogDir) -> None:
    """However much newer than the staging: silence is no recheck."""
    seen = Removed(proof=Proof.METADATA_LOG, as_of_ms=WALL_MS - HOUR_MS)
    gone = item(A, reason=Reason.TOPIC_REMOVED, evidence=seen)
    facts = pair(aside=(gone,))
    log.append(remove(raw(A)))
    later(log)
    image = up_to(log)
    assert why_no_purge(image, gone, facts) is None
    conflicting = replace(image, conflicting=frozenset({("a", 0), (TopicId.parse(A), 0)}))
    assert why_no_purge(conflicting, gone, facts) == "no-evidence"


def test_a38_a_topic_on_strong_evidence_alone_goes_within_the_limit(log: LogDir) -> None:
    log.append(remove(raw(A)))
    later(log)
    plan = reconcile(up_to(log), *pair(live("a", A), live("b", B)), is_confirmed=False)
    assert staged(plan) == [("a-0", "topic-removed", True)]
