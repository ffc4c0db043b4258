"""What is left of a change of layout before a broker starts, by the states of its log dirs alone."""

from __future__ import annotations

import pytest

from logdir.decide.layout.action import LayoutView, LiftStartBlock, MoveToTopicNames, SetLayoutState
from logdir.decide.layout.handover import hand_over
from logdir.errors import RefusedError
from logdir.formats.own.layout_file import LayoutFile, LayoutState
from tests.logdir.decide.test_layout_transitions import BEFORE, SHA, A, after, under_id

VERIFIED, FINALIZING, FINAL = LayoutState.VERIFIED, LayoutState.FINALIZING, LayoutState.FINAL


def final(number: int, state: LayoutState, for_broker: str | None = "kafka 9") -> LayoutView:
    """Return a log dir amid a finalize."""
    file = LayoutFile(state, SHA, "cluster", 1, for_broker)
    return LayoutView(f"/d{number}", "cluster", 1, file, (under_id("a", A, number),), ())


@pytest.mark.parametrize("states", [(VERIFIED, FINALIZING, FINAL), (FINALIZING, FINALIZING), (FINALIZING, FINAL)])
def test_a_finalize_that_was_cut_off_goes_on_to_final(states: tuple[LayoutState, ...]) -> None:
    views = [final(number, state, None if state is VERIFIED else "kafka 9") for number, state in enumerate(states)]
    actions = hand_over(views, is_begun=True).actions
    assert LiftStartBlock() in actions
    ends = {action.for_broker for action in actions if isinstance(action, SetLayoutState) and action.state is FINAL}
    assert ends == {"kafka 9"}


def test_a_finalize_for_two_brokers_is_nobodys() -> None:
    with pytest.raises(RefusedError, match="layout-change-under-way"):
        hand_over([final(0, FINALIZING, "kafka 9"), final(1, FINALIZING, "kafka 10")], is_begun=True)


def test_what_is_final_is_left_as_it_is_with_a_new_disk_beside_it() -> None:
    views = [final(0, FINAL), replace_view(BEFORE[0], log_dir="/d7", replicas=())]
    assert hand_over(views, is_begun=False).actions == ()


def test_a_rollback_that_was_cut_off_goes_on() -> None:
    views = after(LayoutState.ROLLING_BACK, LayoutState.ROLLING_BACK)
    assert any(isinstance(action, MoveToTopicNames) for action in hand_over(views, is_begun=True).actions)


@pytest.mark.parametrize("state", [LayoutState.APPLYING, LayoutState.APPLIED, VERIFIED])
def test_replicas_under_topic_ids_without_a_last_word_are_refused(state: LayoutState) -> None:
    with pytest.raises(RefusedError, match="layout-change-under-way"):
        hand_over(after(state, state), is_begun=True)


@pytest.mark.parametrize("is_begun", [True, False])
def test_where_nothing_was_moved_only_a_start_block_is_left(is_begun: bool) -> None:
    assert bool(hand_over(BEFORE, is_begun=is_begun).actions) is is_begun


def test_log_dirs_of_two_brokers_and_topic_ids_without_a_file_are_refused() -> None:
    for one, other in ((BEFORE[0], BEFORE[1]), (final(0, FINAL), final(1, FINAL))):
        with pytest.raises(RefusedError, match="foreign"):
            hand_over([one, replace_view(other, node_id=2)], is_begun=False)
    with pytest.raises(RefusedError, match="layout-file-missing"):
        hand_over(after(None, LayoutState.ROLLING_BACK), is_begun=False)


def replace_view(view: LayoutView, **changed: object) -> LayoutView:
    return view._replace(**changed)  # type: ignore[arg-type]
