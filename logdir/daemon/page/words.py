"""Words of the status page: states, reasons, instants, and the commands to type next.

Not here: escaping, sizes and bars, which all pages share (``logdir.markup``); where the words stand (``sections``,
``disks``, ``windows``).

Spec: issue "The daemon at home on a host", status page; design §3.3, §5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from logdir.daemon.config import CONFIG_HOME
from logdir.daemon.report.status import StatusResult
from logdir.daemon.state import DaemonState, LogDirState
from logdir.markup import duration, text
from logdir.reasons import Reason
from logdir.text import quoted, utc

_HOUR_MS: Final = 60 * 60 * 1000
_DAYS_FROM_MS: Final = 48 * _HOUR_MS
"""From here on a time span is shown in days."""
STATE_WORDS: Final[Mapping[str, str]] = {
    DaemonState.NOT_RUNNING.name: "does not run",
    DaemonState.STARTING.name: "is starting",
    DaemonState.RECOVERY.name: "finishes what was interrupted",
    DaemonState.RUNNING.name: "is running",
    DaemonState.PENDING_CONTROLLED_SHUTDOWN.name: "ends after the change in progress",
    DaemonState.SHUTTING_DOWN.name: "is shutting down",
}
"""What the daemon does in each state, after its name."""


class Standing(NamedTuple):
    """How a log dir stands, so that its colour is not all that shows it."""

    css: str
    mark: str
    meaning: str
    """Empty where the state explains itself."""


STANDINGS: Final[Mapping[LogDirState, Standing]] = {
    LogDirState.ONLINE: Standing("clean", "✓", ""),
    LogDirState.READ_ONLY: Standing("unknown", "!", "it can be read, and not written"),
    LogDirState.SUSPECT: Standing("unknown", "?", "it gives no answer"),
    LogDirState.QUARANTINED: Standing("blocked", "✕", "it answers, and may not be changed"),
    LogDirState.OFFLINE: Standing("blocked", "✕", "it cannot be read"),
}
"""How each state of a log dir is shown."""
REASON_WORDS: Final[Mapping[Reason | None, str]] = {
    Reason.ABSENT: "a full request of the controller did not name it",
    Reason.TOPIC_ID_MISMATCH: "a request named its topic with another id",
    Reason.STOP_REPLICA: "a StopReplica request named it",
    Reason.TOPIC_REMOVED: "its topic was removed",
    Reason.REPLICA_MOVED_AWAY: "it had moved to another broker",
    Reason.STRAY: "no assignment claimed it",
    Reason.MOVED: "its copy on another disk is in service",
    Reason.DUPLICATE: "a different copy of it is in service",
    Reason.CAPTURED: "the broker was about to remove it",
    Reason.OPERATOR: "an operator staged it",
    None: "no marker shows why",
}
"""Why a replica was staged, for people; ``None``: it is not known."""


def at(wall_ms: int | None) -> str:
    """Return an instant (wall clock) as HTML, in UTC; a dash for ``None``.

    >>> at(1_700_000_000_000), at(None)
    ('<time>2023-11-14T22:13:20Z</time>', '–')
    """
    if wall_ms is None:
        return "–"
    shown = utc(wall_ms)
    return f"<time>{shown}</time>" if shown.endswith("Z") else text(shown)


def span(length_ms: int) -> str:
    """Return a time span for people.

    >>> span(90 * 60_000), span(75 * 3_600_000)
    ('1 h 30 min', '3 d 3 h')
    """
    if length_ms < _DAYS_FROM_MS:
        return duration(max(0, length_ms))
    hours = length_ms // _HOUR_MS
    return f"{hours // 24:,} d {hours % 24} h"


def since(wall_ms: int, now_ms: int) -> str:
    """Return an instant of the past as HTML, and how long ago it was.

    >>> since(1_700_000_000_000, 1_700_000_060_000)
    '<time>2023-11-14T22:13:20Z</time> (1 min 0 s ago)'
    """
    return f"{at(wall_ms)} ({span(now_ms - wall_ms)} ago)"


def left(due_ms: int, now_ms: int) -> str:
    """Return the time up to a deadline, for people.

    >>> left(61_000, 1000), left(1000, 1000)
    ('in 1 min 0 s', 'due now')
    """
    return f"in {span(due_ms - now_ms)}" if due_ms > now_ms else "due now"


def config_option(status: StatusResult) -> str:
    """Return the option that names the daemon, as it is typed in a command."""
    return f"--config {quoted(status.config or f'{CONFIG_HOME}/{status.name}.yaml')}"


def restore_command(status: StatusResult, topic_id: object | None, topic: str | None) -> str | None:
    """Return the command that takes the staged replicas of a topic back; ``None``: there is no name to select them by.

    Args:
        status: Of the daemon.
        topic_id: The id, by which the command selects if it is known: a name may have been given to another topic.
        topic: The name.
    """
    selector = topic if topic_id is None else str(topic_id)
    return None if not selector else f"logdirctl staged restore {quoted(selector)} {config_option(status)}"
