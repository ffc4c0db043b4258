"""Ways to lose data by believing the wrong thing of the cluster: each test bears the number of its row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdir.decide.admission import Code
from logdir.decide.second_look import SecondLook, against_purge
from logdir.desired import request_document
from logdir.desired.image import Image
from logdir.desired.metadata_log import Watermark
from logdir.errors import MalformedFileError, Problem
from logdir.evidence import Evidence, Proof, Removed
from logdir.formats import controller_file
from logdir.formats.controller_file import ControllerFile, MetadataMark, RequestMark
from logdir.formats.replica_marker import Intent, ReplicaMarker
from logdir.ids import TopicId, Uuid
from logdir.observe.facts import LogDirFacts, Replica, SetAside
from logdir.reasons import Reason
from tests.logdir.desired.log_dir import (
    DIR,
    INCARNATION,
    LogDir,
    change,
    noop,
    partition,
    record,
    register,
    remove,
    topic,
)
from tests.reconcile import universe
from tests.reconcile.disk import CLUSTER, DIRECTORY, HOUR_MS, NODE, NOW, WALL_MS, disk, live
from tests.reconcile.disk import staged as set_aside
from tests.reconcile.stories import FRESH, Broker, codes, given, held, reconcile, staged, standing, up_to, why
from tests.reconcile.universe import BOTH, OTHER, RIGHT, document, listed, stopped

A, B = RIGHT["a"], RIGHT["b"]
A0 = OTHER["a"]
Z = "JXU9oWORQXexuCoDVTCJZg"
EVERY = tuple(range(20))
FULL, INCREMENTAL = 2, 1
MARGIN_MS = 10 * 60 * 1000
OTHERS = tuple(live("z", Z, number, log_dir="/d9") for number in range(20))


def raw(topic_id: str) -> bytes:
    return bytes(TopicId.parse(topic_id))


def item(
    topic_id: str | None,
    *,
    reason: Reason = Reason.ABSENT,
    evidence: Evidence | None = None,
    name: str = "a",
    number: int = 0,
    delay_ms: int | None = 4 * HOUR_MS,
    **changed: Any,
) -> SetAside:
    marker = ReplicaMarker(
        intent=Intent.STAGED,
        cluster_id=CLUSTER,
        node_id=NODE,
        directory_id=DIRECTORY,
        topic=name,
        topic_id=None if topic_id is None else TopicId.parse(topic_id),
        partition=number,
        birth_inode=77,
        path=f"{name}-{number}",
        reason=reason,
        evidence=evidence or Removed(proof=Proof.FULL_REQUEST, as_of_ms=WALL_MS - HOUR_MS),
        staged_at_ms=WALL_MS - HOUR_MS,
        delay_ms=delay_ms,
        boot_id="boot-1",
        boottime_ms=0,
        clean=True,
    )
    return replace(set_aside(marker), **changed)


def pair(*replicas: Replica, aside: tuple[SetAside, ...] = ()) -> tuple[LogDirFacts, LogDirFacts]:
    """The disk at stake, and one that holds enough else."""
    return disk(*replicas, set_aside=aside), disk(*OTHERS, log_dir="/d9")


@pytest.fixture
def log(tmp_path: Path) -> LogDir:
    """A log in which both topics are this node's, up to an hour before now."""
    made = LogDir(tmp_path / "__cluster_metadata-0")
    made.time_ms = WALL_MS - HOUR_MS
    made.lead(1)
    made.append(register(1), register(2), register(3), topic("z", raw(Z)))
    made.append(*(partition(raw(Z), number, (1, 2)) for number in range(20)))
    for name, topic_id in (("a", A), ("b", B)):
        made.append(topic(name, raw(topic_id)), *(partition(raw(topic_id), number, (1, 2)) for number in BOTH))
    return made


def later(log: LogDir, by_ms: int = HOUR_MS - 5000) -> None:
    log.time_ms += by_ms
    log.append(noop())


class TestA01:
    def test_a01_lost_metadata_tail(self, log: LogDir) -> None:
        """The topic's record was in the tail the power cut took; its directory survived."""
        facts = pair(live("a", A), live("new", A0))
        image = up_to(log)
        young = {("/d1", "new-0"): image.as_of_ms + 1000, ("/d1", "a-0"): 0}
        for births in ({}, young, {("/d1", "new-0"): 0}):
            plan = reconcile(image, *facts, births=births)
            assert plan.actions == ()
            assert why(plan) == {"new-0": "no-proof"}

    def test_a01_a_restored_metadata_disk_shows_no_removals(self, log: LogDir) -> None:
        """Every directory is unknown to it; nothing was seen to go."""
        log.append(remove(raw(A)), remove(raw(B)))
        log.snapshot(register(1), topic("z", raw(Z)), partition(raw(A0), 0, (1,)))
        log.snapshot(register(1), topic("z", raw(Z)))
        image = up_to(log, watermark=None)
        assert not image.topics.keys() & {raw(A), raw(B)}
        plan = reconcile(image, *pair(live("a", A), live("b", B)))
        assert plan.actions == ()
        assert why(plan) | {} == {"a-0": "no-proof", "b-0": "no-proof"} | {one.path: "no-proof" for one in OTHERS}

    @pytest.mark.parametrize(("margin_ms", "is_staged"), [(MARGIN_MS, False), (MARGIN_MS + 1, True), (-1, False)])
    def test_a01_an_image_speaks_of_directories_it_is_younger_than(
        self, log: LogDir, margin_ms: int, is_staged: bool
    ) -> None:
        log.append(remove(raw(A)))
        image = up_to(log)
        births = {("/d1", "a-0"): image.as_of_ms - margin_ms}
        plan = reconcile(image, *pair(live("a", A)), births=births)
        assert bool(staged(plan)) is is_staged
        assert why(plan) == ({} if is_staged else {"a-0": "too-young"})
        assert why(reconcile(image, *pair(live("a", A)), births={})) == {"a-0": "too-young"}

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
        in_days = replace(NOW, wall_ms=WALL_MS + 72 * HOUR_MS)
        for mark in (None, metadata_mark(committed, 1), metadata_mark(log.offset + 9, 7)):
            image = up_to(log, watermark=mark)
            plan = reconcile(image, *facts, now=in_days)
            assert staged(plan) == []
            assert not image.removed

    def test_a02_a_removal_below_the_watermark_is_committed(self, log: LogDir) -> None:
        log.append(remove(raw(A)))
        later(log)
        for mark in (metadata_mark(log.offset, 1), metadata_mark(log.offset, 7, is_prefix_checked=True)):
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
        assert _why_no_purge(None, gone, facts) == "no-evidence"
        assert _why_no_purge(old, gone, facts) == "no-evidence"
        assert _why_no_purge(new, gone, facts) is None


def metadata_mark(offset: int, epoch: int, *, is_prefix_checked: bool = False) -> Watermark:
    return Watermark(offset=offset, epoch=epoch, is_prefix_checked=is_prefix_checked)


def _why_no_purge(
    image: Image | None, one: SetAside, facts: tuple[LogDirFacts, ...], used: ControllerFile | None = FRESH
) -> str | None:
    refusal = against_purge(SecondLook(image=image, used=used), one, facts)
    return None if refusal is None else refusal.why.value


class TestA03:
    def test_a03_a_replayed_incremental_changes_nothing(self) -> None:
        """INCREMENTAL(A, id0) arrives again after id1 was created."""
        broker = Broker(*pair(live("a", A0)))
        old = document(listed(a=(A0, (0,))), type=INCREMENTAL, sequence=1)
        broker.receives(old)
        broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=2))
        broker.facts = pair(live("a", A), aside=broker.facts[0].set_aside)  # the broker created id1
        again = broker.receives(old)
        assert again.code is Code.STALE_CONTROLLER_EPOCH
        assert again.plan is None
        assert codes(again) == [11]
        assert "a-0" in broker.live()
        # Under a number of its own too: its id was set aside here.
        fresh = broker.receives(document(listed(a=(A0, (0,))), type=INCREMENTAL, sequence=3))
        assert (fresh.code, fresh.plan) == (Code.STALE_CONTROLLER_EPOCH, None)
        assert fresh.problem is not None
        assert "STALE" in fresh.problem.fix
        # An older controller's, whatever its number.
        assert broker.receives(document(listed(a=(A, (0,))), type=FULL, sequence=99, epoch=4)).plan is None

    def test_a03_nothing_is_staged_for_an_id_that_was_set_aside_here(self) -> None:
        """Whatever it was set aside for: it is told of as wanted again, and no live replica goes for it."""
        for reason in (Reason.ABSENT, Reason.STOP_REPLICA, Reason.OPERATOR):
            broker = Broker(*pair(live("a", A0), aside=(item(A, reason=reason),)))
            decided = broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=1))
            assert (codes(decided), staged(decided.plan)) == ([103], [])
            assert why(decided.plan)["a-0"] == "stale"
            assert held(decided.plan) == ([] if reason is Reason.OPERATOR else [f"{A}_0"])
            broker = Broker(*pair(live("a", None), aside=(item(A, reason=reason),)))
            decided = broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=1))
            assert (given(decided.plan), why(decided.plan)["a-0"]) == ([], "stale")

    def test_a03_a_request_for_an_earlier_start_of_the_broker_changes_nothing(self) -> None:
        broker = Broker(*pair(live("a", A0)))
        broker.receives(document(listed(a=(A0, (0,))), type=FULL, sequence=1))
        for kind in (FULL, INCREMENTAL, 0):
            late = broker.receives(document(listed(a=(A, (0,))), type=kind, sequence=2, broker_epoch=39))
            assert (late.code, late.plan) == (Code.STALE_BROKER_EPOCH, None)
        # -1 skips the check (kafka-behaviour §4.2).
        unsaid = document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=2, broker_epoch=-1)
        assert broker.decide(unsaid).plan is not None

    def test_a03_the_pair_is_durable_over_restarts(self) -> None:
        broker = Broker(*pair(live("a", A), live("b", B)))
        full = document(listed(a=(A, (0,)), b=(B, (0,)), z=(Z, EVERY)), type=FULL, sequence=7)
        broker.receives(full)
        broker.restarts()
        assert broker.used is not None
        broker.used = controller_file.parse(controller_file.render(broker.used))
        assert broker.used.requests == RequestMark(controller_epoch=5, sequence=7)
        assert broker.receives(document(listed(a=(A, (0,))), type=FULL, sequence=7)).plan is None
        assert broker.receives(document(listed(a=(A, (0,))), type=FULL, sequence=6)).plan is None
        assert broker.live()[:2] == ["a-0", "b-0"]

    def test_a03_a_lost_file_takes_only_a_full_request_and_only_listens(self) -> None:
        """It might be an old one: nothing is staged, nothing written; the next one counts."""
        facts = pair(live("a", A0), live("b", None), live("c", "b8tRS7h4TJ2Vt43Dp85v2A"))
        for one in (
            document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=1),
            document(listed(a=(A, (0,))), sequence=1),
            document(stopped(delete=True, a=(None, (0,))), api="StopReplica", sequence=1),
        ):
            broker = Broker(*facts, used=None)
            assert broker.receives(one).code is Code.STALE_CONTROLLER_EPOCH
        broker = Broker(*facts, used=None)
        full = document(listed(a=(A, (0,)), b=(OTHER["b"], (0,))), type=FULL, sequence=5)
        decided = broker.receives(full)
        assert codes(decided) == [103, 0]
        assert decided.plan is not None
        assert decided.plan.actions == ()
        assert broker.used is not None
        assert broker.used.is_full_wanted
        full["sequence"] = 6
        assert staged(broker.receives(full).plan)[:2] == [("a-0", "topic-id-mismatch", False), ("c-0", "absent", True)]

    def test_a03_a_document_that_is_cut_off_is_refused(self) -> None:
        whole = universe.text(document(listed(a=(A, BOTH)), type=FULL, sequence=1))
        for end in range(len(whole)):
            with pytest.raises(MalformedFileError):
                request_document.parse(whole[:end], "/inbox/1.json")


class TestA04:
    def test_a04_re_minted_ids(self) -> None:
        """Old tools gave a live topic another id: the leader sends it with every request."""
        broker = Broker(*pair(live("a", A0), live("a", A0, 1), live("a", A0, 2)))
        broker.is_confirmed = False
        decided = broker.receives(document(listed(a=(A, (0, 1, 2))), type=INCREMENTAL, sequence=1))
        # The whole topic would go on no more than a name: it waits for an operator.
        assert codes(decided) == [103, 103, 103]
        assert decided.plan is not None
        assert decided.plan.actions == ()
        assert decided.plan.braked is not None
        assert len(decided.plan.waiting) == 3
        # Confirmed, it is set aside without a deadline.
        broker.is_confirmed = True
        decided = broker.receives(document(listed(a=(A, (0, 1, 2))), type=INCREMENTAL, sequence=1))
        assert staged(decided.plan) == [(f"a-{number}", "topic-id-mismatch", False) for number in range(3)]

    def test_a04_a_log_beyond_the_other_replicas_is_a_conflict(self) -> None:
        broker = Broker(*pair(live("a", A0), live("a", A0, 1)))
        broker.options = {"ahead": frozenset({("/d1", "a-0")})}
        decided = broker.receives(document(listed(a=(A, BOTH)), type=INCREMENTAL, sequence=1))
        assert staged(decided.plan) == [("a-1", "topic-id-mismatch", False)]
        assert why(decided.plan) == {"a-0": "conflict"}

    def test_a04_a_full_request_is_no_proof_that_the_old_id_is_gone(self) -> None:
        broker = Broker(*pair(live("a", A0), live("a", A, 1)))
        full = document(listed(a=(A, BOTH), z=(Z, EVERY)), type=FULL, sequence=1)
        assert staged(broker.receives(full).plan) == [("a-0", "topic-id-mismatch", False)]

    def test_a04_metadata_with_another_id_stages_only_if_the_removal_was_seen(self, log: LogDir) -> None:
        image = up_to(log)
        plan = reconcile(image, *pair(live("a", A0), live("a", A, 1)))
        assert (staged(plan), why(plan)) == ([], {"a-0": "no-proof"})
        log.append(remove(raw(A)), topic("a", raw(A0)), partition(raw(A0), 0, (1, 2)))
        later(log)
        plan = reconcile(up_to(log), *pair(live("a", A), live("b", B)))
        assert staged(plan) == [("a-0", "topic-id-mismatch", True)]

    def test_a04_stop_replica_for_the_old_id_is_proof(self) -> None:
        broker = Broker(*pair(live("a", A0), live("a", A, 1)))
        stop = document(stopped(delete=True, a=(A0, (0,))), api="StopReplica", form="kip", sequence=1)
        assert staged(broker.receives(stop).plan) == [("a-0", "stop-replica", True)]


class TestA20:
    def test_a20_node_running_elsewhere(self, log: LogDir) -> None:
        log.append(remove(raw(A)))
        later(log)
        facts = pair(live("a", A))
        ours = replace(FRESH, incarnation_id=str(Uuid(INCARNATION)))
        assert staged(reconcile(up_to(log), *facts, standing=standing(used=ours)))
        log.append(register(1, epoch=9, incarnation=b"another-process!"))
        for known in (ours, FRESH):
            plan = reconcile(up_to(log), *facts, standing=standing(used=known, is_own_log=False))
            assert (plan.actions, plan.refusals) == ((), ())
            assert plan.holds_purges
            assert plan.refused is not None
            assert "NODE_RUNS_ELSEWHERE" in plan.refused.fix
        # Its own log's last registration is ours, if nothing else is remembered; fenced or running here is as well.
        assert reconcile(up_to(log), *facts, standing=standing(is_own_log=True)).refused is None
        assert reconcile(up_to(log), *facts, standing=standing(used=ours, is_own_log=True)).refused is not None
        assert reconcile(up_to(log), *facts, standing=standing(used=ours, is_broker_running=True)).refused is None
        log.append(register(1, epoch=10, incarnation=b"another-process!", fenced=True))
        assert reconcile(up_to(log), *facts, standing=standing(used=ours)).refused is None

    def test_a20_the_incarnation_is_remembered_while_the_broker_runs_here(self, log: LogDir) -> None:
        plan = reconcile(up_to(log), *pair(), standing=standing(is_broker_running=True, max_age_ms=2 * HOUR_MS))
        assert plan.used is not None
        assert plan.used.incarnation_id == str(Uuid(INCARNATION))


class TestA27:
    def test_a27_a_full_for_another_broker_is_refused_whole(self) -> None:
        broker = Broker(*pair(live("a", A), live("b", B)))
        states = listed(a=(A, BOTH))
        states[0]["partitionStates"][1]["replicas"] = [2, 3]
        decided = broker.receives(document(states, type=FULL, sequence=1))
        assert (decided.code, decided.plan) == (Code.INVALID_REQUEST, None)
        assert broker.used == FRESH

    def test_a27_stop_replica_of_another_registration_is_refused(self) -> None:
        """It names no replicas; the broker epoch alone says whom it is for."""
        broker = Broker(*pair(live("a", A), live("b", B)))
        broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=1))
        for epoch in (39, 41):
            stop = document(stopped(delete=True, a=(None, (0,))), api="StopReplica", sequence=2, broker_epoch=epoch)
            assert broker.receives(stop).code is Code.STALE_BROKER_EPOCH
        stop["body"]["brokerEpoch"] = 40
        assert staged(broker.receives(stop).plan) == [("a-0", "stop-replica", True)]

    def test_a27_a_full_in_chunks_is_refused(self) -> None:
        whole = document(listed(a=(A, BOTH), b=(B, BOTH)), type=FULL, sequence=1)
        whole["body"]["topicStates"].pop()
        with pytest.raises(MalformedFileError, match="4 partitions"):
            request_document.parse(universe.text(whole), "/inbox/1.json")

    def test_a27_an_empty_full_is_an_error_not_an_answer(self) -> None:
        broker = Broker(*pair(live("a", A)))
        assert broker.receives(document([], type=FULL, sequence=1)).code is Code.INVALID_REQUEST

    def test_a27_replicas_of_a_dead_disk_are_neither_confirmed_nor_staged(self) -> None:
        gone = Problem("log-dir-offline", "/d2", "a log dir that can be read", "io-error")
        dead = LogDirFacts(log_dir="/d2", problem=gone)
        broker = Broker(*pair(live("a", A), live("b", B)), dead)
        full = document(listed(a=(A, BOTH), z=(Z, EVERY)), type=FULL, sequence=1)
        decided = broker.receives(full)
        assert codes(decided) == [0, 56] + [0] * 20
        assert decided.plan is not None
        assert decided.plan.unseen == (gone,)
        assert staged(decided.plan) == [("b-0", "absent", True)]


class TestA28:
    def test_a28_an_incremental_after_a_gap_stages_mismatches_and_wants_a_full(self) -> None:
        broker = Broker(*pair(live("a", A0), live("a", A, 1), live("b", B)))
        z = (Z, EVERY)
        broker.receives(document(listed(a=(A0, (0,)), b=(B, (0,)), z=z), type=FULL, sequence=1))
        assert broker.used is not None
        assert broker.used.requests == RequestMark(controller_epoch=5, sequence=1)
        assert broker.used.is_full_wanted is False
        broker.facts = pair(live("a", A0), live("a", A, 1), live("b", B))
        decided = broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=3))
        assert staged(decided.plan) == [("a-0", "topic-id-mismatch", False)]
        assert decided.plan is not None
        assert decided.plan.used is not None
        assert decided.plan.used.is_full_wanted
        # What came before the gap is not believed any more.
        assert broker.known is not None
        assert set(broker.known.names) == {"a"}

    def test_a28_purges_of_absent_wait_for_a_full(self) -> None:
        gone = item(A)
        facts = pair(aside=(gone,))
        assert _why_no_purge(None, gone, facts, replace(FRESH, is_full_wanted=False)) is None
        assert _why_no_purge(None, gone, facts, FRESH) == "no-evidence"
        assert _why_no_purge(None, gone, facts, None) == "no-evidence"
        stop = item(A, reason=Reason.STOP_REPLICA, evidence=Removed(proof=Proof.STOP_REPLICA, as_of_ms=1))
        assert _why_no_purge(None, stop, facts, None) is None

    @pytest.mark.parametrize(
        "changed", [{"sequence": 12}, {"sequence": 1, "epoch": 6}, {"sequence": 11, "broker_epoch": 41}], ids=str
    )
    def test_a28_what_may_lack_one_before_it(self, changed: dict[str, Any]) -> None:
        broker = Broker(*pair(live("a", A)))
        z = (Z, EVERY)
        broker.receives(document(listed(a=(A, (0,)), z=z), type=FULL, sequence=10))
        broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, **changed))
        assert broker.used is not None
        assert broker.used.is_full_wanted


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
        running = standing(is_broker_running=True)
        image = up_to(log)
        age_ms = WALL_MS - image.as_of_ms
        assert age_ms < MARGIN_MS + 10_000
        for limit_ms, is_refused in ((age_ms, False), (age_ms - 1, True)):
            plan = reconcile(image, *pair(live("a", A)), standing=replace(running, max_age_ms=limit_ms))
            assert (plan.refused is not None) is is_refused
        # While the broker is stopped its log ages: then only removals that were seen count.
        days = replace(NOW, wall_ms=WALL_MS + 72 * HOUR_MS)
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
        closed = Problem("refused", "/d1", "a disk in step with its siblings", "one hours behind")
        plan = reconcile(up_to(log), replace(one, closed=closed), other)
        assert plan.actions == ()
        assert why(plan) == {"": "closed"}


class TestA33:
    def test_a33_a_tiered_topic_says_so(self, log: LogDir) -> None:
        log.append(record(4, resourceType=2, resourceName="a", name="remote.storage.enable", value="true"))
        log.append(change(raw(A), 0, replicas=(2, 3), isr=(2, 3)), remove(raw(B)))
        later(log)
        actions = reconcile(up_to(log), *pair(live("a", A), live("b", B))).actions
        assert ["local part only" in action.loses for action in actions] == [True, False]


class TestA42:
    def test_a42_two_spellings_of_one_id_are_one_replica(self, log: LogDir) -> None:
        """In both layouts at once, and written in hexadecimal: compared by their 128 bits."""
        both = (
            disk(live("a", A)),
            disk(live("a", A, layout="topic-id", log_dir="/d2"), log_dir="/d2", layout="topic-id"),
            disk(*OTHERS, log_dir="/d9"),
        )
        assert reconcile(up_to(log), *both).actions == ()
        log.append(remove(raw(A)))
        later(log)
        plan = reconcile(up_to(log), *both)
        assert staged(plan) == [("a-0", "topic-removed", True), (f"{A[:2]}/{A}_0", "topic-removed", True)]
        spelled = TopicId.parse_any(TopicId.parse(A).hex())
        one = replace(live("a", None), topic_id=spelled, problems=())
        assert staged(reconcile(up_to(log), *pair(one))) == [("a-0", "topic-removed", True)]

    def test_a42_no_id_is_given_where_its_replica_lies_already(self) -> None:
        """Else a broker would find two of one id and partition; the other need not say its name."""
        for name in ("a", None):
            other = disk(live(name, A, layout="topic-id", log_dir="/d2"), log_dir="/d2", layout="topic-id")
            broker = Broker(disk(live("a", None)), other)
            decided = broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=1))
            assert (given(decided.plan), why(decided.plan)) == ([], {"a-0": "live-twin"})


class TestA43:
    def test_a43_rolled_back_metadata_holds_everything(self, log: LogDir) -> None:
        log.append(remove(raw(A)))
        later(log)
        image = up_to(log)
        facts = pair(live("a", A))
        for used in ((1, log.offset + 1), (2, 1), (0, log.offset + 1)):
            ahead = replace(FRESH, metadata=MetadataMark(epoch=used[0], offset=used[1]))
            plan = reconcile(image, *facts, standing=standing(used=ahead))
            assert plan.actions == ()
            assert plan.refused is not None
            assert plan.holds_purges
            confirmed = standing(used=ahead, is_position_confirmed=True)
            assert staged(reconcile(image, *facts, standing=confirmed))
        same = replace(FRESH, metadata=MetadataMark(epoch=1, offset=log.offset))
        plan = reconcile(image, *facts, standing=standing(used=same))
        assert staged(plan)
        assert plan.used == same

    def test_a43_a_log_that_was_put_back_and_led_on_is_noticed(self, log: LogDir) -> None:
        """Epoch and offset have overtaken what was used; the record there is another."""
        used = MetadataMark(epoch=1, offset=log.offset - 1)
        image = replace(up_to(log, used=replace(used, epoch=3)), epoch=9)
        plan = reconcile(image, *pair(live("a", A)), standing=standing(used=replace(FRESH, metadata=used)))
        assert plan.refused is not None
        assert "put back" in plan.refused.fix

    def test_a43_a_lost_file_holds_until_confirmed(self, log: LogDir) -> None:
        log.append(remove(raw(A)))
        later(log)
        plan = reconcile(up_to(log), *pair(live("a", A)), standing=standing(used=None))
        assert (plan.actions, plan.holds_purges) == ((), True)
        confirmed = standing(used=None, is_position_confirmed=True)
        plan = reconcile(up_to(log), *pair(live("a", A)), standing=confirmed)
        assert staged(plan)
        assert plan.used is not None
        assert plan.used.metadata == MetadataMark(epoch=1, offset=log.offset)

    def test_a43_an_id_that_is_wanted_again_is_never_purged(self, log: LogDir) -> None:
        wanted = item(A)
        facts = pair(aside=(wanted, item(A0, number=1), item(B, name="b", delay_ms=None)))
        plan = reconcile(up_to(log), *facts)
        assert held(plan) == [f"{A}_0"]
        assert why(plan)[f"deleting/{B}_0"] == "wanted"
        (action,) = plan.actions
        assert action.rule.value.startswith("design §4")
        assert "restore" in action.proposes  # type: ignore[union-attr] # it is a hold
        assert _why_no_purge(up_to(log), wanted, facts) == "wanted"

    @pytest.mark.parametrize("reason", [Reason.MOVED, Reason.DUPLICATE, Reason.OPERATOR, Reason.CAPTURED])
    def test_a43_what_has_a_live_copy_here_is_as_it_should_be(self, log: LogDir, reason: Reason) -> None:
        source = item(A, reason=reason)
        with_copy, without = pair(live("a", A), aside=(source,)), pair(aside=(source,))
        assert held(reconcile(up_to(log), *with_copy)) == []
        assert _why_no_purge(up_to(log), source, with_copy) is None
        assert held(reconcile(up_to(log), *without)) == [f"{A}_0"]
        assert _why_no_purge(up_to(log), source, without) == "wanted"

    def test_a43_another_reason_is_held_beside_a_live_copy(self, log: LogDir) -> None:
        plan = reconcile(up_to(log), *pair(live("a", A), aside=(item(A),)))
        assert held(plan) == [f"{A}_0"]


class TestA46:
    @pytest.fixture
    def moving(self, log: LogDir) -> LogDir:
        """Partition 0 of a leaves this node, partition 1 of b comes to it."""
        log.append(change(raw(A), 0, replicas=(2, 3, 1), addingReplicas=(3,), removingReplicas=(1,)))
        return log

    def test_a46_reassignment_in_flight_keeps_both_ends(self, moving: LogDir) -> None:
        moving.append(topic("c", raw(A0)), partition(raw(A0), 0, (2,), addingReplicas=(1,)))
        later(moving)
        plan = reconcile(up_to(moving), *pair(live("a", A), live("c", A0)))
        assert (plan.actions, plan.refusals) == ((), ())

    def test_a46_a_replica_that_left_is_staged(self, moving: LogDir) -> None:
        moving.append(change(raw(A), 0, replicas=(2, 3), addingReplicas=(), removingReplicas=(), isr=(2, 3)))
        later(moving)
        plan = reconcile(up_to(moving), *pair(live("a", A), live("a", A, 1)))
        assert staged(plan) == [("a-0", "replica-moved-away", True)]

    def test_a46_a_replica_in_the_isr_is_never_staged(self, moving: LogDir) -> None:
        moving.append(change(raw(A), 0, replicas=(2, 3), addingReplicas=(), removingReplicas=(), isr=(1, 2)))
        later(moving)
        plan = reconcile(up_to(moving), *pair(live("a", A)))
        assert (staged(plan), why(plan)) == ([], {"a-0": "last-copy"})

    @pytest.mark.parametrize("gone", ["fenced", "unregistered", "another log dir"])
    def test_a46_the_only_one_whose_log_dir_answers_is_never_staged(self, moving: LogDir, gone: str) -> None:
        moving.append(change(raw(A), 0, replicas=(2, 3), addingReplicas=(), removingReplicas=(), isr=(2,)))
        if gone == "fenced":
            moving.append(register(2, epoch=5, fenced=True))
        elif gone == "unregistered":
            moving.append(record(1, brokerId=2, brokerEpoch=0))
        else:
            moving.append(change(raw(A), 0, directories=(bytes(15) + b"\x07", DIR)))
        later(moving)
        plan = reconcile(up_to(moving), *pair(live("a", A)))
        assert (staged(plan), why(plan)) == ([], {"a-0": "last-copy"})

    def test_a46_that_it_is_elsewhere_now_proves_nothing_if_it_was_not_seen_to_leave(self, moving: LogDir) -> None:
        rest = [topic("a", raw(A)), partition(raw(A), 0, (2, 3)), topic("b", raw(B)), partition(raw(B), 0, (1, 2))]
        moving.snapshot(register(1), register(2), register(3), *rest)
        plan = reconcile(up_to(moving, watermark=None), disk(live("a", A)))
        assert (staged(plan), why(plan)) == ([], {"a-0": "no-proof"})

    def test_a46_behind_a_record_that_cannot_be_read_it_may_have_come_back(self, moving: LogDir) -> None:
        moving.append(change(raw(A), 0, replicas=(2, 3), addingReplicas=(), removingReplicas=(), isr=(2, 3)))
        moving.append(remove(raw(B)))
        later(moving)
        moving.raw(bytes((1, 99, 0, 0)))
        image = up_to(moving)
        assert image.ended is not None
        plan = reconcile(image, *pair(live("a", A), live("b", B)))
        assert staged(plan) == [("b-0", "topic-removed", True)]
        assert why(plan) == {"a-0": "no-proof"}
