"""The states of the daemon and of a log dir, and the ways between those of the daemon.

    STARTING ──opened──▶ RECOVERY ──listed──▶ RUNNING
        │                    │                   │
        └──────── stop ──────┴─────── stop ──────┴──▶ PENDING_CONTROLLED_SHUTDOWN ──idle──▶ SHUTTING_DOWN

The numbers are those of a broker (KIP-631, ``kafka.server:type=KafkaServer,name=BrokerState``).

Spec: design §5; KIP-631, "Broker State".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final

from logdir.errors import StateError


class DaemonState(IntEnum):
    """The state of the daemon, in the numbers of KIP-631."""

    NOT_RUNNING = 0
    STARTING = 1
    """The configuration is read, and workers start."""
    RECOVERY = 2
    """The log dirs are open; what an interrupted change left is finished, and the names are listed."""
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    """The change in progress ends; no other begins."""
    SHUTTING_DOWN = 7
    """Locks and directories are released."""


class LogDirState(Enum):
    """The state of one log dir."""

    ONLINE = "online"
    READ_ONLY = "read-only"
    SUSPECT = "suspect"
    """Gives no answer: the outcome of its last call is not known."""
    QUARANTINED = "quarantined"
    """Answers, and may not be changed."""
    OFFLINE = "offline"
    """Cannot be read."""


class Event(Enum):
    """What moves the daemon to its next state."""

    OPENED = "opened"
    LISTED = "listed"
    STOP = "stop"
    IDLE = "idle"


TRANSITIONS: Final[Mapping[tuple[DaemonState, Event], DaemonState]] = {
    (DaemonState.STARTING, Event.OPENED): DaemonState.RECOVERY,
    (DaemonState.RECOVERY, Event.LISTED): DaemonState.RUNNING,
    (DaemonState.STARTING, Event.STOP): DaemonState.PENDING_CONTROLLED_SHUTDOWN,
    (DaemonState.RECOVERY, Event.STOP): DaemonState.PENDING_CONTROLLED_SHUTDOWN,
    (DaemonState.RUNNING, Event.STOP): DaemonState.PENDING_CONTROLLED_SHUTDOWN,
    # A second SIGTERM changes nothing.
    (DaemonState.PENDING_CONTROLLED_SHUTDOWN, Event.STOP): DaemonState.PENDING_CONTROLLED_SHUTDOWN,
    (DaemonState.PENDING_CONTROLLED_SHUTDOWN, Event.IDLE): DaemonState.SHUTTING_DOWN,
    (DaemonState.SHUTTING_DOWN, Event.STOP): DaemonState.SHUTTING_DOWN,
}
"""State and event to the next state; a pair that is missing is an error of this program."""


def after(state: DaemonState, event: Event) -> DaemonState:
    """Return the state after an event.

    Raises:
        StateError: the event cannot happen in that state.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        known = ", ".join(one.name for before, one in TRANSITIONS if before is state) or "no event"
        raise StateError("logdird", expected=f"{known} in state {state.name}", found=event.name) from None
