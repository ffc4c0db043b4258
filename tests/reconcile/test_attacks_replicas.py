"""Ways to lose a replica that the cluster still wants: each test bears the number of its row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdir.decide.reconcile_action import HoldStaged
from logdir.evidence import Proof, Removed
from logdir.formats.own.controller_file import MetadataMark
from logdir.ids import TopicId
from logdir.observe.facts import Replica
from logdir.reasons import Reason
from logdir.wire.metadata_records import MetadataRecord
from tests.logdir.cluster.log_dir import (
    DIR,
    LogDir,
    change,
    partition,
    record,
    register,
    remove,
    topic,
)
from tests.reconcile.disk import disk, live
from tests.reconcile.scene import (
    A0,
    INCREMENTAL,
    OTHERS,
    A,
    B,
    item,
    later,
    pair,
    raw,
    why_no_purge,
)
from tests.reconcile.stories import FRESH, Broker, given, held, host_context, reconcile, staged, up_to, why
from tests.reconcile.universe import document, listed


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
        without_id = live("a", None)
        one = replace(without_id, ref=replace(without_id.ref, topic_id=spelled), problems=())
        assert staged(reconcile(up_to(log), *pair(one))) == [("a-0", "topic-removed", True)]

    def test_a42_no_id_is_given_where_its_replica_lies_already(self) -> None:
        """Else a broker would find two of one id and partition; the other need not say its name."""
        for name in ("a", None):
            other = disk(live(name, A, layout="topic-id", log_dir="/d2"), log_dir="/d2", layout="topic-id")
            broker = Broker(disk(live("a", None)), other)
            decided = broker.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=1))
            assert (given(decided.plan), why(decided.plan)) == ([], {"a-0": "live-replica-exists"})


class TestA43:
    def test_a43_rolled_back_metadata_holds_everything(self, log: LogDir) -> None:
        log.append(remove(raw(A)))
        later(log)
        image = up_to(log)
        facts = pair(live("a", A))
        for used in ((1, log.offset + 1), (2, 1), (0, log.offset + 1)):
            ahead = replace(FRESH, metadata=MetadataMark(epoch=used[0], offset=used[1]))
            plan = reconcile(image, *facts, host_context=host_context(last_applied=ahead))
            assert plan.actions == ()
            assert plan.refused is not None
            assert plan.holds_purges
            confirmed = host_context(last_applied=ahead, is_position_confirmed=True)
            assert staged(reconcile(image, *facts, host_context=confirmed))
        same = replace(FRESH, metadata=MetadataMark(epoch=1, offset=log.offset))
        plan = reconcile(image, *facts, host_context=host_context(last_applied=same))
        assert staged(plan)
        assert plan.last_applied == same

    def test_a43_a_log_that_was_put_back_and_led_on_is_noticed(self, log: LogDir) -> None:
        """Epoch and offset have overtaken what was used; the record there is another."""
        last_applied = MetadataMark(epoch=1, offset=log.offset - 1)
        image = replace(up_to(log, last_applied=replace(last_applied, epoch=3)), epoch=9)
        plan = reconcile(
            image, *pair(live("a", A)), host_context=host_context(last_applied=replace(FRESH, metadata=last_applied))
        )
        assert plan.refused is not None
        assert "restored from a backup" in plan.refused.fix

    def test_a43_a_lost_file_holds_until_confirmed(self, log: LogDir) -> None:
        log.append(remove(raw(A)))
        later(log)
        plan = reconcile(up_to(log), *pair(live("a", A)), host_context=host_context(last_applied=None))
        assert (plan.actions, plan.holds_purges) == ((), True)
        confirmed = host_context(last_applied=None, is_position_confirmed=True)
        plan = reconcile(up_to(log), *pair(live("a", A)), host_context=confirmed)
        assert staged(plan)
        assert plan.last_applied is not None
        assert plan.last_applied.metadata == MetadataMark(epoch=1, offset=log.offset)

    def test_a43_an_id_that_is_wanted_again_is_never_purged(self, log: LogDir) -> None:
        wanted = item(A)
        facts = pair(aside=(wanted, item(A0, number=1), item(B, name="b", delay_ms=None)))
        plan = reconcile(up_to(log), *facts)
        assert held(plan) == [f"{A}_0"]
        assert why(plan)[f"deleting/{B}_0"] == "assigned-here"
        (action,) = plan.actions
        assert action.rule.value.startswith("design §4")
        assert "restore" in action.proposes  # type: ignore[union-attr] # it is a hold
        assert why_no_purge(up_to(log), wanted, facts) == "assigned-here"

    @pytest.mark.parametrize("reason", [Reason.MOVED, Reason.DUPLICATE, Reason.CAPTURED])
    def test_a43_what_has_a_live_copy_here_is_as_it_should_be(self, log: LogDir, reason: Reason) -> None:
        source = item(A, reason=reason)
        with_copy, without = pair(live("a", A), aside=(source,)), pair(aside=(source,))
        assert held(reconcile(up_to(log), *with_copy)) == []
        assert why_no_purge(up_to(log), source, with_copy) is None
        assert held(reconcile(up_to(log), *without)) == [f"{A}_0"]
        assert why_no_purge(up_to(log), source, without) == "assigned-here"

    @pytest.mark.parametrize("reason", [Reason.DUPLICATE, Reason.CAPTURED])
    @pytest.mark.parametrize(
        "namesake", [live("a", A0), live("a", A, problems=("unreadable",)), live("a", A, problems=("symlink",))]
    )
    def test_a43_what_lives_under_another_id_or_cannot_be_read_is_no_copy(
        self, log: LogDir, namesake: Replica, reason: Reason
    ) -> None:
        captured = item(A, reason=reason)
        facts = pair(namesake, aside=(captured,))
        plan = reconcile(up_to(log), *facts)
        assert held(plan) == [f"{A}_0"]
        assert [one.proposes for one in plan.actions if isinstance(one, HoldStaged)] == [
            "/d1/a-0 is live under its name or id: compare both, then keep one"
        ]
        assert why_no_purge(up_to(log), captured, facts) == "assigned-here"

    def test_a43_a_live_copy_without_an_id_is_one_by_its_name(self, log: LogDir) -> None:
        source = item(A, reason=Reason.DUPLICATE)
        assert why_no_purge(up_to(log), source, pair(live("a", None), aside=(source,))) is None

    def test_a43_another_reason_is_held_beside_a_live_copy(self, log: LogDir) -> None:
        plan = reconcile(up_to(log), *pair(live("a", A), aside=(item(A),)))
        assert held(plan) == [f"{A}_0"]


def _lose_the_other(log: LogDir, gone: str) -> None:
    """Let the one broker that is in sync, or its log dir, answer no more."""
    if gone == "fenced":
        log.append(register(2, epoch=5, fenced=True))
    elif gone == "unregistered":
        log.append(record(1, brokerId=2, brokerEpoch=0))
    else:
        log.append(change(raw(A), 0, directories=(bytes(15) + b"\x07", DIR)))


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

    @pytest.mark.parametrize(
        ("behind", "found"),
        [
            ((change(raw(A), 0, replicas=(1, 2), isr=(2,)),), {"a-0": "removal-not-proven"}),
            ((change(raw(A), 0, addingReplicas=(1,)),), {"a-0": "removal-not-proven"}),
            ((change(raw(A), 0, isr=(1, 2)),), {"a-0": "removal-not-proven"}),
            ((register(2, epoch=5, fenced=True),), {"a-0": "last-copy"}),
            ((record(99),), {"a-0": "removal-not-proven"}),
            ((remove(raw(A)),), {}),
            ((change(raw(A), 0, leader=2),), {}),
        ],
        ids=["assigned", "adding", "in the isr", "holder fenced", "unreadable", "topic gone", "nothing"],
    )
    def test_a46_what_is_not_known_to_be_committed_may_keep_a_replica_that_left(
        self, moving: LogDir, behind: tuple[MetadataRecord, ...], found: dict[str, str]
    ) -> None:
        moving.append(change(raw(A), 0, replicas=(2, 3), addingReplicas=(), removingReplicas=(), isr=(2,)))
        later(moving)
        image = up_to(moving)
        if behind[0].type == 99:
            moving.raw(bytes((1, 99, 0, 0)))
        else:
            moving.append(*behind)
        plan = reconcile(image, *pair(live("a", A), live("a", A, 1)), beyond=(up_to(moving),))
        assert (staged(plan), why(plan)) == ([] if found else [("a-0", "replica-moved-away", True)], found)

    def test_a46_a_replica_that_left_is_one_also_under_a_name_that_has_another_id(self, moving: LogDir) -> None:
        """Its id was not removed: only this node's replica was, and it may be the last one."""
        moving.append(change(raw(A), 0, replicas=(2, 3), addingReplicas=(), removingReplicas=(), isr=(2,)))
        later(moving)
        facts = disk(live("b", A)), disk(live("b", B, 1), live("a", A, 1), *OTHERS, log_dir="/d9")
        assert staged(reconcile(up_to(moving), *facts)) == [("b-0", "replica-moved-away", True)]
        _lose_the_other(moving, "fenced")
        later(moving)
        plan = reconcile(up_to(moving), *facts)
        assert (staged(plan), why(plan)) == ([], {"b-0": "last-copy"})

    def test_a46_a_replica_in_the_isr_is_never_staged(self, moving: LogDir) -> None:
        moving.append(change(raw(A), 0, replicas=(2, 3), addingReplicas=(), removingReplicas=(), isr=(1, 2)))
        later(moving)
        plan = reconcile(up_to(moving), *pair(live("a", A)))
        assert (staged(plan), why(plan)) == ([], {"a-0": "last-copy"})

    @pytest.mark.parametrize("gone", ["fenced", "unregistered", "another log dir"])
    def test_a46_the_only_one_whose_log_dir_answers_is_never_staged(self, moving: LogDir, gone: str) -> None:
        moving.append(change(raw(A), 0, replicas=(2, 3), addingReplicas=(), removingReplicas=(), isr=(2,)))
        _lose_the_other(moving, gone)
        later(moving)
        plan = reconcile(up_to(moving), *pair(live("a", A)))
        assert (staged(plan), why(plan)) == ([], {"a-0": "last-copy"})

    @pytest.mark.parametrize("gone", ["fenced", "unregistered", "another log dir"])
    def test_a46_what_moved_away_stays_if_by_its_deadline_nobody_else_has_it(self, moving: LogDir, gone: str) -> None:
        moving.append(change(raw(A), 0, replicas=(2, 3), addingReplicas=(), removingReplicas=(), isr=(2,)))
        later(moving)
        moved = item(
            A, reason=Reason.REPLICA_MOVED_AWAY, evidence=Removed(proof=Proof.METADATA_LOG, as_of_ms=moving.time_ms)
        )
        assert moved.marker is not None
        moved = replace(moved, marker=replace(moved.marker, staged_at_ms=moving.time_ms))
        later(moving)
        assert why_no_purge(up_to(moving), moved, pair(aside=(moved,))) is None
        _lose_the_other(moving, gone)
        later(moving)
        assert why_no_purge(up_to(moving), moved, pair(aside=(moved,))) == "last-copy"
        moving.append(remove(raw(A)))
        later(moving)
        assert why_no_purge(up_to(moving), moved, pair(aside=(moved,))) is None

    def test_a46_that_it_is_elsewhere_now_proves_nothing_if_it_was_not_seen_to_leave(self, moving: LogDir) -> None:
        rest = [topic("a", raw(A)), partition(raw(A), 0, (2, 3)), topic("b", raw(B)), partition(raw(B), 0, (1, 2))]
        moving.snapshot(register(1), register(2), register(3), *rest)
        plan = reconcile(up_to(moving, watermark=None), disk(live("a", A)))
        assert (staged(plan), why(plan)) == ([], {"a-0": "removal-not-proven"})

    def test_a46_behind_a_record_that_cannot_be_read_it_may_have_come_back(self, moving: LogDir) -> None:
        moving.append(change(raw(A), 0, replicas=(2, 3), addingReplicas=(), removingReplicas=(), isr=(2, 3)))
        moving.append(remove(raw(B)))
        later(moving)
        moving.raw(bytes((1, 99, 0, 0)))
        image = up_to(moving)
        assert image.ended is not None
        plan = reconcile(image, *pair(live("a", A), live("b", B)))
        assert staged(plan) == [("b-0", "topic-removed", True)]
        assert why(plan) == {"a-0": "removal-not-proven"}
