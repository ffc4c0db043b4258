"""Ways to lose data by following the wrong request: each test bears the number of its row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from logdir.cluster import request_document
from logdir.decide.image.admission import Code
from logdir.errors import MalformedFileError, Problem
from logdir.evidence import Proof, Removed
from logdir.formats.own import controller_file
from logdir.formats.own.controller_file import MetadataMark, RequestMark
from logdir.observe.facts import LogDirFacts
from logdir.reasons import Reason
from logdir.refusal_slug import Why
from tests.logdir.cluster.log_dir import (
    LogDir,
    partition,
    remove,
    topic,
)
from tests.reconcile import universe
from tests.reconcile.disk import live
from tests.reconcile.scene import (
    A0,
    EVERY,
    FULL,
    INCREMENTAL,
    A,
    B,
    Z,
    item,
    later,
    pair,
    raw,
    why_no_purge,
)
from tests.reconcile.stories import FRESH, Broker, codes, given, held, reconcile, staged, up_to, why
from tests.reconcile.universe import BOTH, OTHER, document, listed, stopped
from tests.whole_refusal import require_whole


class TestA03:
    def test_a03_a_replayed_incremental_changes_nothing(self) -> None:
        """INCREMENTAL(A, id0) arrives again after id1 was created."""
        broker = Broker(*pair(live("a", A0)))
        old = document(listed(a=(A0, (0,))), type=INCREMENTAL, sequence=1)
        broker.receives(old)
        broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=2))
        broker.facts = pair(live("a", A), aside=broker.facts[0].staged)  # the broker created id1
        again = broker.receives(old)
        assert again.code is Code.STALE_CONTROLLER_EPOCH
        assert again.plan is None
        assert codes(again) == [11]
        assert "a-0" in broker.live()
        # Under a number of its own too: its id was staged here.
        fresh = broker.receives(document(listed(a=(A0, (0,))), type=INCREMENTAL, sequence=3))
        assert (fresh.code, fresh.plan) == (Code.STALE_CONTROLLER_EPOCH, None)
        assert fresh.problem is not None
        assert "the request is old" in fresh.problem.fix
        # An older controller's, whatever its number.
        assert broker.receives(document(listed(a=(A, (0,))), type=FULL, sequence=99, epoch=4)).plan is None

    def test_a03_nothing_is_staged_for_an_id_that_was_staged_here(self) -> None:
        """Whatever it was staged for: it is told of as wanted again, and no live replica goes for it."""
        for reason in (Reason.ABSENT, Reason.STOP_REPLICA, Reason.OPERATOR):
            broker = Broker(*pair(live("a", A0), aside=(item(A, reason=reason),)))
            decided = broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=1))
            assert (codes(decided), staged(decided.plan)) == ([103], [])
            assert why(decided.plan)["a-0"] == "stale-topic-id"
            assert held(decided.plan) == [f"{A}_0"]
            broker = Broker(*pair(live("a", None), aside=(item(A, reason=reason),)))
            decided = broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=1))
            assert (given(decided.plan), why(decided.plan)["a-0"]) == ([], "stale-topic-id")

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
        assert broker.last_applied is not None
        broker.last_applied = controller_file.parse(controller_file.render(broker.last_applied))
        assert broker.last_applied.requests == RequestMark(controller_epoch=5, sequence=7)
        assert broker.receives(document(listed(a=(A, (0,))), type=FULL, sequence=7)).plan is None
        assert broker.receives(document(listed(a=(A, (0,))), type=FULL, sequence=6)).plan is None
        assert broker.live()[:2] == ["a-0", "b-0"]

    def test_a03_a_lost_file_takes_only_a_full_request_and_only_listens(self) -> None:
        """It might be an old one: nothing is staged, nothing recorded, until an operator confirms one."""
        facts = pair(live("a", A0), live("b", None), live("c", "b8tRS7h4TJ2Vt43Dp85v2A"))
        for one in (
            document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=1),
            document(listed(a=(A, (0,))), sequence=1),
            document(stopped(delete=True, a=(None, (0,))), api="StopReplica", sequence=1),
        ):
            broker = Broker(*facts, last_applied=None)
            assert broker.receives(one).code is Code.STALE_CONTROLLER_EPOCH
        broker = Broker(*facts, last_applied=None)
        full = document(listed(a=(A, (0,)), b=(OTHER["b"], (0,))), type=FULL, sequence=5)
        decided = broker.receives(full)
        assert codes(decided) == [103, 0]
        assert decided.plan is not None
        assert decided.plan.actions == ()
        assert decided.plan.unrecorded is not None
        assert (decided.plan.unrecorded.slug, decided.plan.is_whole) == ("last-applied-unknown", False)
        assert decided.plan.last_applied is None
        # Not the next one, either: every document of inbox/done may come again, in its order.
        full["sequence"] = 6
        again = broker.receives(full)
        assert again.plan is not None
        assert (again.plan.actions, again.plan.last_applied) == ((), None)
        broker.is_position_confirmed = True
        confirmed = broker.receives(full)
        assert broker.last_applied is not None
        assert broker.last_applied.requests == RequestMark(controller_epoch=5, sequence=6)
        assert not broker.last_applied.is_full_wanted
        assert staged(confirmed.plan)[:2] == [("a-0", "topic-id-mismatch", False), ("c-0", "absent", True)]

    def test_a03_nothing_overtaken_counts_again_where_one_file_is_lost(self) -> None:
        """The files of the other disks still say how far requests were followed."""
        facts = pair(live("a", A0), live("c", "b8tRS7h4TJ2Vt43Dp85v2A"))
        mark = MetadataMark(epoch=7, offset=9000)
        other = replace(
            FRESH,
            requests=RequestMark(controller_epoch=5, sequence=500),
            broker_epoch=40,
            is_full_wanted=False,
            metadata=mark,
        )
        broker = Broker(*facts, last_applied=None, readable=other)
        full = document(listed(a=(A0, (0,))), type=FULL, sequence=7)
        old = broker.receives(full)
        assert (old.code, old.plan, broker.last_applied) == (Code.STALE_CONTROLLER_EPOCH, None, None)
        late = broker.receives(document(listed(a=(A0, (0,))), type=FULL, sequence=501, broker_epoch=39))
        assert (late.code, late.plan) == (Code.STALE_BROKER_EPOCH, None)
        # Neither the last one nor a newer one makes the record whole, or acts, until an operator confirms it.
        for sequence in (500, 501):
            decided = broker.receives(full | {"sequence": sequence})
            assert decided.plan is not None
            assert (decided.plan.actions, decided.plan.last_applied) == ((), None)
        broker.is_position_confirmed = True
        broker.receives(full | {"sequence": 501})
        assert broker.last_applied == replace(other, requests=RequestMark(controller_epoch=5, sequence=501))

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
        assert decided.plan.over_limit is not None
        assert len(decided.plan.waiting) == 3
        # Confirmed, it is staged without a deadline.
        broker.is_confirmed = True
        decided = broker.receives(document(listed(a=(A, (0, 1, 2))), type=INCREMENTAL, sequence=1))
        assert staged(decided.plan) == [(f"a-{number}", "topic-id-mismatch", False) for number in range(3)]

    def test_a04_a_log_beyond_the_other_replicas_is_a_conflict(self) -> None:
        broker = Broker(*pair(live("a", A0), live("a", A0, 1)))
        broker.options = {"ahead": frozenset({("/d1", "a-0")})}
        decided = broker.receives(document(listed(a=(A, BOTH)), type=INCREMENTAL, sequence=1))
        assert staged(decided.plan) == [("a-1", "topic-id-mismatch", False)]
        assert decided.plan is not None
        (refusal,) = decided.plan.refusals
        require_whole(
            refusal.problem,
            Why.LOG_AHEAD,
            path="/d1/a-0",
            expected="a stale replica, where the name has another id",
            found="its log goes further than those of its other replicas",
            fix="compare them first",
        )

    def test_a04_a_full_request_is_no_proof_that_the_old_id_is_gone(self) -> None:
        broker = Broker(*pair(live("a", A0), live("a", A, 1)))
        full = document(listed(a=(A, BOTH), z=(Z, EVERY)), type=FULL, sequence=1)
        assert staged(broker.receives(full).plan) == [("a-0", "topic-id-mismatch", False)]

    def test_a04_metadata_with_another_id_stages_only_if_the_removal_was_seen(self, log: LogDir) -> None:
        image = up_to(log)
        plan = reconcile(image, *pair(live("a", A0), live("a", A, 1)))
        assert (staged(plan), why(plan)) == ([], {"a-0": "removal-not-proven"})
        log.append(remove(raw(A)), topic("a", raw(A0)), partition(raw(A0), 0, (1, 2)))
        later(log)
        plan = reconcile(up_to(log), *pair(live("a", A), live("b", B)))
        assert staged(plan) == [("a-0", "topic-id-mismatch", True)]

    def test_a04_stop_replica_for_the_old_id_is_proof(self) -> None:
        broker = Broker(*pair(live("a", A0), live("a", A, 1)))
        stop = document(stopped(delete=True, a=(A0, (0,))), api="StopReplica", form="kip", sequence=1)
        assert staged(broker.receives(stop).plan) == [("a-0", "stop-replica", True)]


class TestA27:
    def test_a27_a_full_for_another_broker_is_refused_whole(self) -> None:
        broker = Broker(*pair(live("a", A), live("b", B)))
        states = listed(a=(A, BOTH))
        states[0]["partitionStates"][1]["replicas"] = [2, 3]
        decided = broker.receives(document(states, type=FULL, sequence=1))
        assert (decided.code, decided.plan) == (Code.INVALID_REQUEST, None)
        assert broker.last_applied == FRESH

    def test_a27_stop_replica_of_another_registration_is_refused(self) -> None:
        """It names no replicas; the broker epoch alone says whom it is for."""
        broker = Broker(*pair(live("a", A), live("b", B)))
        broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=1))
        for epoch in (39, 41, -1):
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
        assert broker.last_applied is not None
        assert broker.last_applied.requests == RequestMark(controller_epoch=5, sequence=1)
        assert broker.last_applied.is_full_wanted is False
        broker.facts = pair(live("a", A0), live("a", A, 1), live("b", B))
        decided = broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=3))
        assert staged(decided.plan) == [("a-0", "topic-id-mismatch", False)]
        assert decided.plan is not None
        assert decided.plan.last_applied is not None
        assert decided.plan.last_applied.is_full_wanted
        # What came before the gap is not believed any more.
        assert broker.known is not None
        assert set(broker.known.names) == {"a"}

    def test_a28_purges_of_absent_wait_for_a_full(self) -> None:
        gone = item(A)
        facts = pair(aside=(gone,))
        assert why_no_purge(None, gone, facts, replace(FRESH, is_full_wanted=False)) is None
        assert why_no_purge(None, gone, facts, FRESH) == "no-evidence"
        assert why_no_purge(None, gone, facts, None) == "no-evidence"
        stop = item(A, reason=Reason.STOP_REPLICA, evidence=Removed(proof=Proof.STOP_REPLICA, as_of_ms=1))
        assert why_no_purge(None, stop, facts, None) is None

    @pytest.mark.parametrize(
        "changed", [{"sequence": 12}, {"sequence": 1, "epoch": 6}, {"sequence": 11, "broker_epoch": 41}], ids=str
    )
    def test_a28_what_may_lack_one_before_it(self, changed: dict[str, Any]) -> None:
        broker = Broker(*pair(live("a", A)))
        z = (Z, EVERY)
        broker.receives(document(listed(a=(A, (0,)), z=z), type=FULL, sequence=10))
        broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, **changed))
        assert broker.last_applied is not None
        assert broker.last_applied.is_full_wanted
