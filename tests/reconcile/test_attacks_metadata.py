"""Ways to lose data by believing the wrong metadata: each test bears the number of its row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from logdir.decide.reconcile_action import StageReplica
from logdir.errors import Problem
from logdir.evidence import Proof, Removed
from logdir.ids import Uuid
from logdir.reasons import Reason
from tests.logdir.cluster.log_dir import (
    INCARNATION,
    LogDir,
    partition,
    register,
    remove,
    topic,
)
from tests.reconcile.disk import HOUR_MS, NOW, WALL_MS, disk, live
from tests.reconcile.scene import (
    A0,
    MARGIN_MS,
    OTHERS,
    A,
    B,
    Z,
    item,
    later,
    pair,
    raw,
    watermark,
    why_no_purge,
)
from tests.reconcile.stories import FRESH, host_context, reconcile, staged, up_to, why
from tests.reconcile.universe import BOTH


class TestA01:
    def test_a01_lost_metadata_tail(self, log: LogDir) -> None:
        """The topic's record was in the tail the power cut took; its directory survived."""
        facts = pair(live("a", A), live("new", A0))
        image = up_to(log)
        young = {("/d1", "new-0"): image.as_of_ms + 1000, ("/d1", "a-0"): 0}
        for births in ({}, young, {("/d1", "new-0"): 0}):
            plan = reconcile(image, *facts, births=births)
            assert plan.actions == ()
            assert why(plan) == {"new-0": "removal-not-proven"}

    def test_a01_a_restored_metadata_disk_shows_no_removals(self, log: LogDir) -> None:
        """Every directory is unknown to it; nothing was seen to go."""
        log.append(remove(raw(A)), remove(raw(B)))
        log.snapshot(register(1), topic("z", raw(Z)), partition(raw(A0), 0, (1,)))
        log.snapshot(register(1), topic("z", raw(Z)))
        image = up_to(log, watermark=None)
        assert not image.topics.keys() & {raw(A), raw(B)}
        plan = reconcile(image, *pair(live("a", A), live("b", B)))
        assert plan.actions == ()
        assert why(plan) | {} == {"a-0": "removal-not-proven", "b-0": "removal-not-proven"} | {
            one.path: "removal-not-proven" for one in OTHERS
        }

    @pytest.mark.parametrize(("margin_ms", "is_staged"), [(MARGIN_MS, False), (MARGIN_MS + 1, True), (-1, False)])
    def test_a01_an_image_speaks_of_directories_it_is_younger_than(
        self, log: LogDir, margin_ms: int, is_staged: bool
    ) -> None:
        log.append(remove(raw(A)))
        image = up_to(log)
        births = {("/d1", "a-0"): image.as_of_ms - margin_ms}
        plan = reconcile(image, *pair(live("a", A)), births=births)
        assert bool(staged(plan)) is is_staged
        assert why(plan) == ({} if is_staged else {"a-0": "replica-too-young"})
        assert why(reconcile(image, *pair(live("a", A)), births={})) == {"a-0": "replica-too-young"}

    def test_a01_a_removal_that_was_seen_stages(self, log: LogDir) -> None:
        before = up_to(log)
        log.append(remove(raw(A)))
        later(log)
        plan = reconcile(up_to(log), *pair(live("a", A), live("b", B)))
        assert staged(plan) == [("a-0", "topic-removed", True)]
        # Collapsed into a snapshot, only who knew an older image has seen it.
        rest = [topic("b", raw(B)), *(partition(raw(B), number, (1, 2)) for number in BOTH)]
        log.snapshot(register(1), *rest, topic("z", raw(Z)))
        assert staged(reconcile(up_to(log, watermark=None), *pair(live("a", A)))) == []
        plan = reconcile(up_to(log, watermark=None, known=before), disk(live("a", A), live("b", B)))
        assert staged(plan) == [("a-0", "topic-removed", True)]


class TestA02:
    def test_a02_uncommitted_removal(self, log: LogDir) -> None:
        """A deposed leader's RemoveTopic lies in our tail; days pass, and the same log is read again."""
        committed = log.offset
        log.append(remove(raw(A)))
        log.time_ms += 72 * HOUR_MS
        facts = pair(live("a", A), live("b", B))
        in_days = NOW._replace(wall_ms=WALL_MS + 72 * HOUR_MS)
        for mark in (None, watermark(committed, 1), watermark(log.offset + 9, 7)):
            image = up_to(log, watermark=mark)
            plan = reconcile(image, *facts, now=in_days)
            assert staged(plan) == []
            assert not image.removed

    def test_a02_a_removal_below_the_watermark_is_committed(self, log: LogDir) -> None:
        log.append(remove(raw(A)))
        later(log)
        for mark in (watermark(log.offset, 1), watermark(log.offset, 7, is_prefix_checked=True)):
            assert staged(reconcile(up_to(log, watermark=mark), *pair(live("a", A)))) == [
                ("a-0", "topic-removed", True)
            ]

    def test_a02_the_look_before_a_purge_needs_evidence_newer_than_the_staging(self, log: LogDir) -> None:
        seen = Removed(proof=Proof.METADATA_LOG, as_of_ms=WALL_MS - HOUR_MS)
        gone = item(A, reason=Reason.TOPIC_REMOVED, evidence=seen)
        facts = pair(aside=(gone,))
        log.append(remove(raw(A)))
        old = up_to(log)
        later(log)
        new = up_to(log)
        assert old.as_of_ms <= WALL_MS - HOUR_MS + MARGIN_MS < new.as_of_ms
        assert why_no_purge(None, gone, facts) == "no-evidence"
        assert why_no_purge(old, gone, facts) == "no-evidence"
        assert why_no_purge(new, gone, facts) is None

    def test_a02_a_clock_that_is_behind_makes_no_word_newer(self, log: LogDir) -> None:
        """A host without its battery believes in 1970; what it stages then is not purged on the same word again."""
        log.append(remove(raw(A)))
        later(log)
        image = up_to(log)
        then = NOW._replace(wall_ms=0)
        (action,) = reconcile(image, *pair(live("a", A)), now=then).actions
        assert isinstance(action, StageReplica)
        gone = item(A, reason=Reason.TOPIC_REMOVED, evidence=action.evidence)
        gone = replace(gone, marker=action.stage.marker)
        assert why_no_purge(image, gone, pair(aside=(gone,))) == "no-evidence"
        log.time_ms += 2 * MARGIN_MS
        later(log)
        assert why_no_purge(up_to(log), gone, pair(aside=(gone,))) is None


class TestA20:
    def test_a20_node_running_elsewhere(self, log: LogDir) -> None:
        log.append(remove(raw(A)))
        later(log)
        facts = pair(live("a", A))
        ours = replace(FRESH, incarnation_id=str(Uuid(INCARNATION)))
        assert staged(reconcile(up_to(log), *facts, host_context=host_context(last_applied=ours)))
        log.append(register(1, epoch=9, incarnation=b"another-process!"))
        for known in (ours, FRESH):
            plan = reconcile(up_to(log), *facts, host_context=host_context(last_applied=known, is_own_log=False))
            assert (plan.actions, plan.refusals) == ((), ())
            assert plan.holds_purges
            assert plan.refused is not None
            assert plan.refused.slug == "node-runs-elsewhere"
        # Its own log's last registration is ours, if nothing else is remembered; fenced or running here is as well.
        assert reconcile(up_to(log), *facts, host_context=host_context(is_own_log=True)).refused is None
        assert (
            reconcile(up_to(log), *facts, host_context=host_context(last_applied=ours, is_own_log=True)).refused
            is not None
        )
        assert (
            reconcile(up_to(log), *facts, host_context=host_context(last_applied=ours, is_broker_running=True)).refused
            is None
        )
        log.append(register(1, epoch=10, incarnation=b"another-process!", fenced=True))
        assert reconcile(up_to(log), *facts, host_context=host_context(last_applied=ours)).refused is None

    def test_a20_the_incarnation_is_remembered_while_the_broker_runs_here(self, log: LogDir) -> None:
        plan = reconcile(up_to(log), *pair(), host_context=host_context(is_broker_running=True, max_age_ms=2 * HOUR_MS))
        assert plan.last_applied is not None
        assert plan.last_applied.incarnation_id == str(Uuid(INCARNATION))


class TestA29:
    def test_a29_foreign_metadata_is_refused(self, log: LogDir) -> None:
        log.append(remove(raw(A)))
        later(log)
        facts = pair(live("a", A))
        image = up_to(log)
        assert staged(reconcile(image, *facts))
        for other in ("another-cluster", None):
            plan = reconcile(replace(image, cluster_id=other), *facts)
            assert (plan.actions, plan.refused is not None) == ((), True)

    def test_a29_an_image_that_nowhere_names_this_node_is_refused(self, log: LogDir) -> None:
        image = replace(up_to(log), node_id=77)
        plan = reconcile(image, *pair(live("a", A)))
        assert plan.refused is not None
        assert "node 77" in plan.refused.expected

    def test_a29_stale_metadata_is_refused_beside_a_running_broker(self, log: LogDir) -> None:
        log.append(remove(raw(A)))
        later(log, HOUR_MS - MARGIN_MS - 10_000)
        running = host_context(is_broker_running=True)
        image = up_to(log)
        age_ms = WALL_MS - image.as_of_ms
        assert age_ms < MARGIN_MS + 10_000
        for limit_ms, is_refused in ((age_ms, False), (age_ms - 1, True)):
            plan = reconcile(image, *pair(live("a", A)), host_context=replace(running, max_age_ms=limit_ms))
            assert (plan.refused is not None) is is_refused
        # While the broker is stopped its log ages: then only removals that were seen count.
        days = NOW._replace(wall_ms=WALL_MS + 72 * HOUR_MS)
        assert staged(reconcile(image, *pair(live("a", A), live("b", A0)), now=days)) == [
            ("a-0", "topic-removed", True)
        ]

    def test_a29_a_disk_of_another_host_is_not_touched(self, log: LogDir) -> None:
        log.append(remove(raw(A)))
        later(log)
        one, other = pair(live("a", A))
        either: tuple[dict[str, Any], ...] = ({"node_id": 2}, {"cluster_id": "another"}, {"cluster_id": None})
        for changed in either:
            plan = reconcile(up_to(log), replace(one, **changed), other)
            assert staged(plan) == []

    def test_a29_a_closed_disk_is_not_touched(self, log: LogDir) -> None:
        log.append(remove(raw(A)))
        later(log)
        one, other = pair(live("a", A), aside=(item(B, name="b"),))
        quarantined = Problem("sync-failed", "/d1", "a disk in step with its siblings", "one hours behind")
        plan = reconcile(up_to(log), replace(one, quarantined=quarantined), other)
        assert plan.actions == ()
        assert why(plan) == {"": "sync-failed"}
