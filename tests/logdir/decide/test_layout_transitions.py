"""What a change of layout does next: names decide, ``layout.json`` only refuses."""

from __future__ import annotations

import itertools

import pytest

from logdir.decide.layout import transitions
from logdir.decide.layout.action import (
    Decision,
    LayoutView,
    LiftStartBlock,
    MoveToTopicIds,
    MoveToTopicNames,
    RemoveLayoutFile,
    Replica,
    SetLayoutState,
    SetStartBlock,
    ToIds,
    ToNames,
)
from logdir.errors import RefusedError
from logdir.formats.own.layout_file import LayoutFile, LayoutState
from logdir.formats.own.plan_document import Header, IdFrom, PlanDocument, Step
from logdir.ids import TopicId
from logdir.names import render_id_dir
from logdir.replica_ref import ReplicaRef, TopicIdPartition
from tests.builders import TOPIC_ID

A = TopicId.parse(TOPIC_ID)
B = TopicId.parse("bXOy6xj-Q8ivrWAlsZGnkw")
C = TopicId.parse("cXOy6xj-Q8ivrWAlsZGnkw")
SHA = "ab" * 32
OTHER_SHA = "cd" * 32
D1, D2 = "/d1", "/d2"


def step(
    number: int, log_dir: str, topic: str, topic_id: TopicId, partition: int, id_from: IdFrom = IdFrom.OWN
) -> Step:
    place = render_id_dir(topic_id, partition)
    return Step(number, log_dir, f"{topic}-{partition}", place, topic, topic_id, partition, id_from, 1)


def plan(*steps: Step, sha256: str = SHA, **header: object) -> PlanDocument:
    found = Header("c", "cluster", 1, "", (D1, D2))._replace(**header)  # type: ignore[arg-type]
    return PlanDocument(found, steps, sha256)


PLAN = plan(step(1, D1, "a", A, 0), step(2, D1, "a", A, 1), step(3, D2, "b", B, 0, IdFrom.MINTED))


def named(topic: str, topic_id: TopicId | None, partition: int, trouble: str = "") -> Replica:
    return Replica(f"{topic}-{partition}", ReplicaRef(topic=topic, topic_id=topic_id, partition=partition), trouble)


def under_id(topic: str | None, topic_id: TopicId, partition: int, trouble: str = "") -> Replica:
    ref = ReplicaRef(topic=topic, topic_id=topic_id, partition=partition)
    return Replica(render_id_dir(topic_id, partition), ref, trouble)


def said(state: LayoutState | None, sha256: str = SHA) -> LayoutFile | None:
    return None if state is None else LayoutFile(state, sha256, "cluster", 1)


def seen(
    log_dir: str, *replicas: Replica, state: LayoutState | None = None, futures: tuple[tuple[str, int], ...] = ()
) -> LayoutView:
    return LayoutView(log_dir, "cluster", 1, said(state), replicas, futures)


BEFORE = (seen(D1, named("a", A, 0), named("a", A, 1)), seen(D2, named("b", None, 0)))


def after(one: LayoutState | None, two: LayoutState | None) -> tuple[LayoutView, LayoutView]:
    return seen(D1, under_id("a", A, 0), under_id("a", A, 1), state=one), seen(D2, under_id("b", B, 0), state=two)


def items(decision: Decision) -> list[tuple[str, str]]:
    return [
        (action.log_dir, item.path)
        for action in decision.actions
        if isinstance(action, MoveToTopicIds | MoveToTopicNames)
        for item in action.items
    ]


def refusals(decision: Decision) -> str:
    return "\n".join(map(str, decision.refused))


def test_an_apply_says_so_everywhere_bars_everywhere_and_only_then_moves() -> None:
    decision = transitions.apply(PLAN, BEFORE)
    a0 = ToIds(ref=TopicIdPartition(topic="a", topic_id=A, partition=0))
    a1 = ToIds(ref=TopicIdPartition(topic="a", topic_id=A, partition=1))
    b0 = ToIds(ref=TopicIdPartition(topic="b", topic_id=B, partition=0), has_own_id=False)
    assert decision.phases == (
        (SetLayoutState(D1, LayoutState.APPLYING), SetLayoutState(D2, LayoutState.APPLYING)),
        (SetStartBlock(),),
        (
            MoveToTopicIds(D1, (a0, a1)),
            SetLayoutState(D1, LayoutState.APPLIED),
            MoveToTopicIds(D2, (b0,)),
            SetLayoutState(D2, LayoutState.APPLIED),
        ),
    )
    assert (decision.plan_sha256, decision.refused, decision.done) == (SHA, (), 0)
    assert transitions.check(PLAN, BEFORE) == decision


def test_what_is_done_is_no_action_any_more() -> None:
    half = (seen(D1, under_id("a", A, 0), named("a", A, 1), state=LayoutState.APPLYING), BEFORE[1])
    decision = transitions.apply(PLAN, half)
    assert decision.phases[0] == (SetLayoutState(D2, LayoutState.APPLYING),)
    assert items(decision) == [(D1, "a-1"), (D2, "b-0")]
    assert decision.done == 1
    for state in (LayoutState.APPLIED, LayoutState.VERIFIED):
        decision = transitions.apply(PLAN, after(state, state))
        assert (decision.phases, decision.done) == ((), 3)
    decision = transitions.apply(PLAN, after(LayoutState.APPLIED, LayoutState.APPLYING))
    assert decision.actions[-1] == SetLayoutState(D2, LayoutState.APPLIED)


@pytest.mark.parametrize(
    ("replica", "futures", "why"),
    [
        (None, (), "found no such directory; take the inventory and plan again"),
        (named("a", C, 0), (), f"expected topic id {A}, found {C}"),
        (named("a", None, 0), (), f"expected topic id {A}, found no topic id"),
        (named("a", None, 0, "a symbolic link"), (), "found a symbolic link; it stays as it is: inspect it"),
        (named("a", None, 0, "something that cannot be read (x)"), (), "it stays as it is"),
        (named("a", A, 0), (("a", 0),), "expected no -future of it on any disk"),
    ],
)
def test_a_stale_or_held_step_is_refused_by_name_and_the_rest_goes_on(
    replica: Replica | None, futures: tuple[tuple[str, int], ...], why: str
) -> None:
    replicas = (named("a", A, 1),) if replica is None else (replica, named("a", A, 1))
    # A -future counts wherever it lies (A13).
    decision = transitions.apply(PLAN, (seen(D1, *replicas), seen(D2, named("b", None, 0), futures=futures)))
    assert items(decision) == [(D1, "a-1"), (D2, "b-0")]
    assert "/d1/a-0: " in refusals(decision)
    assert why in refusals(decision)
    assert len(decision.refused) == 1
    assert not decision.is_blocked


@pytest.mark.parametrize(
    "twin",
    [
        under_id("a", A, 0),
        named("a", C, 0),
        named("other", A, 0),
        Replica(
            f"79/{A.hex()}_0", ReplicaRef(topic="a", topic_id=A, partition=0), "a topic id in a different spelling"
        ),
        named("a", None, 0, "a symbolic link"),
    ],
    ids=lambda twin: str(twin.path),
)
def test_a42_a_replica_that_lives_twice_in_any_layout_or_spelling_is_refused(twin: Replica) -> None:
    decision = transitions.apply(PLAN, (BEFORE[0], seen(D2, named("b", None, 0), twin, state=LayoutState.APPLYING)))
    assert items(decision) == [(D1, "a-1"), (D2, "b-0")]
    assert "/d1/a-0: expected one live replica on this broker" in refusals(decision)


def test_a42_no_id_is_given_that_a_live_replica_of_another_name_has() -> None:
    """``b-0`` is to get its id; ``other-0`` has that id already."""
    decision = transitions.apply(PLAN, (BEFORE[0], seen(D2, named("b", None, 0), named("other", B, 0))))
    assert items(decision) == [(D1, "a-0"), (D1, "a-1")]
    assert "/d2/b-0: expected one live replica on this broker, found a second one: /d2/other-0" in refusals(decision)


def test_an_id_given_meanwhile_is_taken_if_it_is_the_same() -> None:
    for found, moved in ((B, True), (A, False)):
        decision = transitions.apply(PLAN, (BEFORE[0], seen(D2, named("b", found, 0))))
        assert ((D2, "b-0") in items(decision)) == moved


def test_a_plan_whose_every_step_is_stale_begins_nothing() -> None:
    decision = transitions.apply(PLAN, (seen(D1), seen(D2)))
    assert (decision.phases, len(decision.refused)) == ((), 3)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (plan(cluster_id="other"), "cluster id"),
        (plan(node_id=2), "node id"),
        (plan(log_dirs=(D1,)), "log dirs"),
        (plan(log_dirs=(D1, D2, "/d3")), "log dirs"),
    ],
    ids=["cluster", "node", "fewer", "more"],
)
def test_the_plan_of_another_broker_is_refused(wrong: PlanDocument, what: str) -> None:
    with pytest.raises(RefusedError, match=f"expected {what} .*, this broker's"):
        transitions.apply(wrong, BEFORE)
    with pytest.raises(RefusedError, match=f"expected {what} .*, this broker's"):
        transitions.verify(wrong, after(LayoutState.APPLIED, LayoutState.APPLIED))


def test_log_dirs_of_two_brokers_are_refused() -> None:
    for other in (BEFORE[1]._replace(node_id=2), BEFORE[1]._replace(cluster_id="other")):
        for verb in (
            lambda b: transitions.apply(PLAN, b),
            transitions.rollback,
            lambda b: transitions.finalize(b, "kafka 9"),
        ):
            with pytest.raises(RefusedError, match="of another broker"):
                verb((BEFORE[0], other))
    one, two = after(LayoutState.APPLIED, LayoutState.APPLIED)
    for other in (two._replace(node_id=2), two._replace(cluster_id="other")):
        with pytest.raises(RefusedError, match="of another broker"):
            transitions.verify(PLAN, (one, other))
    foreign = BEFORE[1]._replace(file=LayoutFile(LayoutState.APPLYING, SHA, "cluster", 9))
    with pytest.raises(RefusedError, match=r"layout.json: expected .* node 1, found .* node 9"):
        transitions.rollback((BEFORE[0], foreign))


@pytest.mark.parametrize("state", LayoutState)
def test_a_plan_may_follow_another_only_when_that_is_over(state: LayoutState) -> None:
    broker = after(state, state)
    other = plan(*PLAN.steps, step(4, D2, "c", A, 5), sha256=OTHER_SHA)
    broker = (broker[0], broker[1]._replace(replicas=(*broker[1].replicas, named("c", A, 5))))
    if state in (LayoutState.APPLIED, LayoutState.VERIFIED):
        decision = transitions.apply(other, broker)
        assert decision.phases[0] == (
            SetLayoutState(D1, LayoutState.APPLYING),
            SetLayoutState(D2, LayoutState.APPLYING),
        )
        assert items(decision) == [(D2, "c-5")]
    else:
        with pytest.raises(RefusedError, match=r"layout\.json"):
            transitions.apply(other, broker)


def test_a21_replicas_under_ids_without_layout_json_hold_and_ask() -> None:
    mixed = (seen(D1, under_id("a", A, 0), named("a", A, 1)), BEFORE[1])
    held = r"/d1/layout.json: expected layout.json, .* found no such file"
    with pytest.raises(RefusedError, match=held):
        transitions.apply(PLAN, mixed)
    with pytest.raises(RefusedError, match=held):
        transitions.check(PLAN, mixed)
    with pytest.raises(RefusedError, match=held):
        transitions.rollback(mixed)
    assert transitions.check(PLAN, mixed, confirmed=True) == transitions.apply(PLAN, mixed, confirmed=True)
    assert items(transitions.apply(PLAN, mixed, confirmed=True)) == [(D1, "a-1"), (D2, "b-0")]
    assert transitions.rollback(mixed, confirmed=True).phases[-1] == (RemoveLayoutFile(D1), RemoveLayoutFile(D2))
    one_lost = (after(None, None)[0], after(None, LayoutState.APPLIED)[1])
    with pytest.raises(RefusedError, match="no such file"):
        transitions.rollback(one_lost)
    with pytest.raises(RefusedError, match="no such file"):
        transitions.verify(PLAN, one_lost)


def test_verify_passes_only_when_all_came_about() -> None:
    applied = after(LayoutState.APPLIED, LayoutState.APPLIED)
    assert transitions.verify(PLAN, applied).actions == (
        SetLayoutState(D1, LayoutState.VERIFIED),
        SetLayoutState(D2, LayoutState.VERIFIED),
    )
    verified = after(LayoutState.VERIFIED, LayoutState.APPLIED)
    assert transitions.verify(PLAN, verified).actions == (SetLayoutState(D2, LayoutState.VERIFIED),)
    gone = (applied[0]._replace(replicas=applied[0].replicas[:1]), applied[1])
    left = (applied[0], applied[1]._replace(replicas=(*applied[1].replicas, named("new", None, 0))))
    broken = (applied[0], applied[1]._replace(replicas=(under_id(None, B, 0, "no topic"),)))
    twice = (applied[0], applied[1]._replace(replicas=(*applied[1].replicas, under_id("a", A, 0))))
    for broker, why in (
        (gone, "found no directory"),
        (left, "found a replica"),
        (broken, "no topic"),
        (twice, "a second one"),
    ):
        decision = transitions.verify(PLAN, broker)
        assert (decision.phases, decision.is_blocked) == ((), True)
        assert why in refusals(decision)


@pytest.mark.parametrize("state", [None, LayoutState.APPLYING, LayoutState.ROLLING_BACK])
def test_verify_refuses_before_apply_and_of_another_plan(state: LayoutState | None) -> None:
    with pytest.raises(RefusedError, match="layout apply first"):
        transitions.verify(PLAN, after(LayoutState.APPLIED, state))
    with pytest.raises(RefusedError, match="layout apply first"):
        transitions.verify(plan(*PLAN.steps, sha256=OTHER_SHA), after(LayoutState.APPLIED, LayoutState.APPLIED))


STATES = (None, *LayoutState)


@pytest.mark.parametrize(("one", "two"), list(itertools.product(STATES, STATES)))
def test_a51_no_log_dir_is_final_before_all_are_finalizing_and_the_start_block_is_lifted(
    one: LayoutState | None, two: LayoutState | None
) -> None:
    broker = after(one, two)
    may = {LayoutState.VERIFIED, LayoutState.FINALIZING, LayoutState.FINAL}
    if one not in may or two not in may:
        with pytest.raises(RefusedError, match="layout verify first"):
            transitions.finalize(broker, "kafka 9")
        return
    phases = transitions.finalize(broker, "kafka 9").phases
    verified = [log_dir for log_dir, state in ((D1, one), (D2, two)) if state is LayoutState.VERIFIED]
    begun = [action for phase in phases[:-2] for action in phase]
    assert {action.log_dir for action in begun if isinstance(action, SetLayoutState)} >= set(verified)
    assert all(isinstance(action, SetLayoutState) and action.state is LayoutState.FINALIZING for action in begun)
    assert [type(action) for action in phases[-2]] == [LiftStartBlock]
    assert phases[-1] == (
        SetLayoutState(D1, LayoutState.FINAL, "kafka 9"),
        SetLayoutState(D2, LayoutState.FINAL, "kafka 9"),
    )


def test_a51_what_is_final_for_a_broker_is_not_made_final_for_it_again() -> None:
    broker = after(LayoutState.FINAL, LayoutState.FINAL)
    final = [one._replace(file=one.file and one.file._replace(for_broker="kafka 9")) for one in broker]
    assert transitions.finalize(final, "kafka 9").phases == ()
    # Another name is written down; no log dir is anything but final meanwhile.
    assert transitions.finalize(final, "kafka 10").phases == (
        (LiftStartBlock(),),
        (SetLayoutState(D1, LayoutState.FINAL, "kafka 10"), SetLayoutState(D2, LayoutState.FINAL, "kafka 10")),
    )


@pytest.mark.parametrize("text", ["", "  ", "x" * 201, "two\nlines", "\x1b[31m"])
def test_a51_no_layout_is_final_for_a_broker_without_a_name(text: str) -> None:
    with pytest.raises(RefusedError, match=r"^for-broker-missing: .*no released Kafka \(2\.8 to 4\.3\) reads"):
        transitions.finalize(after(LayoutState.VERIFIED, LayoutState.VERIFIED), text)


def test_what_was_given_as_the_name_of_a_broker_is_shown_and_nothing_where_there_was_none() -> None:
    for text, found in (("", "found no name;"), ("two\nlines", "found two")):
        with pytest.raises(RefusedError, match=found):
            transitions.finalize(after(LayoutState.VERIFIED, LayoutState.VERIFIED), text)


@pytest.mark.parametrize(("one", "two"), list(itertools.product(STATES, STATES)))
def test_a51_no_state_is_without_a_way_back(one: LayoutState | None, two: LayoutState | None) -> None:
    broker = after(one, two)
    if None in (one, two):
        with pytest.raises(RefusedError, match=r"^layout-file-missing: .*--even-if-found layout-file-missing"):
            transitions.rollback(broker)
    decision = transitions.rollback(broker, confirmed=True)
    assert decision.phases[-2:] == ((LiftStartBlock(),), (RemoveLayoutFile(D1), RemoveLayoutFile(D2)))
    assert not decision.is_blocked
    # Nothing is moved while a broker could start: the start block may have been lifted.
    bars = [number for number, phase in enumerate(decision.phases) if any(isinstance(a, SetStartBlock) for a in phase)]
    moves = [
        number for number, phase in enumerate(decision.phases) if any(isinstance(a, MoveToTopicNames) for a in phase)
    ]
    assert max(bars) < min(moves)


def test_no_live_replica_without_a_step_is_passed_over_by_an_apply() -> None:
    more = (BEFORE[0], BEFORE[1]._replace(replicas=(*BEFORE[1].replicas, named("new", None, 0))))
    decision = transitions.apply(PLAN, more)
    assert (decision.is_blocked, decision.is_plan_stale) == (True, True)
    assert refusals(decision).count("/d2/new-0") == 1
    # The steps are done all the same, also where nothing is left of them.
    assert len(items(decision)) == 3
    over = after(LayoutState.APPLIED, LayoutState.APPLIED)
    later = (over[0], over[1]._replace(replicas=(*over[1].replicas, named("new", None, 0, "a symbolic link"))))
    decision = transitions.apply(PLAN, later)
    assert (decision.phases, decision.is_blocked, "/d2/new-0" in refusals(decision)) == ((), True, True)
    # What lies under its id came there by a former plan.
    former = (over[0], over[1]._replace(replicas=(*over[1].replicas, under_id("new", C, 0))))
    assert transitions.apply(PLAN, former).refused == ()


def test_a_rollback_takes_back_everything_and_only_then_lifts_the_start_block() -> None:
    broker = (seen(D1, under_id("a", A, 0), named("a", A, 1), state=LayoutState.APPLYING), BEFORE[1])
    decision = transitions.rollback(broker)
    assert decision.phases == (
        (SetLayoutState(D1, LayoutState.ROLLING_BACK), SetLayoutState(D2, LayoutState.ROLLING_BACK)),
        (SetStartBlock(),),
        (
            MoveToTopicNames(
                D1,
                (
                    ToNames(ref=ReplicaRef(topic="a", topic_id=A, partition=0), path=render_id_dir(A, 0)),
                    ToNames(ref=ReplicaRef(topic="a", topic_id=None, partition=1), path="a-1"),
                ),
            ),
            MoveToTopicNames(D2, (ToNames(ref=ReplicaRef(topic="b", topic_id=None, partition=0), path="b-0"),)),
        ),
        (LiftStartBlock(),),
        (RemoveLayoutFile(D1), RemoveLayoutFile(D2)),
    )


@pytest.mark.parametrize(
    "replicas",
    [
        (under_id("a", A, 0), named("a", None, 0, "a symbolic link")),
        (under_id("a", A, 0), named("a", B, 0)),
        (under_id(None, A, 0, "no topic"),),
    ],
)
def test_what_cannot_go_back_keeps_the_start_block(replicas: tuple[Replica, ...]) -> None:
    broker = (seen(D1, *replicas, under_id("a", A, 1), state=LayoutState.APPLIED), seen(D2))
    decision = transitions.rollback(broker)
    assert decision.is_blocked
    assert render_id_dir(A, 0) in refusals(decision)
    assert (D1, render_id_dir(A, 1)) in items(decision)
    assert not any(isinstance(action, LiftStartBlock | RemoveLayoutFile) for action in decision.actions)


def test_a_rollback_of_nothing_only_takes_away_what_a_beginning_left() -> None:
    assert transitions.rollback(BEFORE).phases == ((LiftStartBlock(),), (RemoveLayoutFile(D1), RemoveLayoutFile(D2)))


def test_no_step_counts_as_done_where_none_is_decided_on() -> None:
    applied = after(LayoutState.APPLIED, LayoutState.APPLIED)
    verified = after(LayoutState.VERIFIED, LayoutState.VERIFIED)
    for decision in (
        transitions.rollback(applied),
        transitions.rollback(BEFORE),
        transitions.finalize(verified, "kafka 9"),
    ):
        assert decision.done == 0
