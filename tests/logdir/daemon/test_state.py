"""The states of the daemon: the numbers of KIP-631, and no way that is not in the table."""

from __future__ import annotations

import pytest

from logdir.daemon.state import TRANSITIONS, DaemonState, Event, after
from logdir.errors import StateError


def test_the_numbers_are_those_of_kip_631() -> None:
    assert {state.name: state.value for state in DaemonState} == {
        "NOT_RUNNING": 0,
        "STARTING": 1,
        "RECOVERY": 2,
        "RUNNING": 3,
        "PENDING_CONTROLLED_SHUTDOWN": 6,
        "SHUTTING_DOWN": 7,
    }


def test_a_daemon_starts_runs_and_stops() -> None:
    state = DaemonState.STARTING
    seen = [state := after(state, event) for event in (Event.OPENED, Event.LISTED, Event.STOP, Event.STOP, Event.IDLE)]
    assert [one.value for one in seen] == [2, 3, 6, 6, 7]


@pytest.mark.parametrize("state", [DaemonState.STARTING, DaemonState.RECOVERY, DaemonState.RUNNING])
def test_a_daemon_can_be_stopped_in_every_state(state: DaemonState) -> None:
    assert after(after(state, Event.STOP), Event.IDLE) is DaemonState.SHUTTING_DOWN


def test_what_is_not_in_the_table_is_refused() -> None:
    for state in DaemonState:
        for event in Event:
            if (state, event) not in TRANSITIONS:
                with pytest.raises(StateError):
                    after(state, event)
