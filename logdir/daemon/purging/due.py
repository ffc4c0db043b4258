"""When the daemon purges next: at the next deadline, and when the reasons of captures are asked about.

All instants are on the boot-time clock, in milliseconds.

Not here: deadlines (``decide.staged.deadline``), the timer (``scheduler``), the purge (``work``).

Spec: design §3.3; style §4.2 ``next-due``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from logdir import clock
from logdir.daemon.look import Look
from logdir.daemon.state import LogDirState
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Intent
from logdir.observe.facts import LogDirFacts

_ASK_AGAIN_MS: Final = 10 * 60 * 1000
"""When what is due, and was kept by the recheck or could not be removed, is asked about again; and why captured
replicas were removed.
"""
_FIRST_ASK_MS: Final = 60 * 1000
"""Time from a capture to the first such question: the broker's metadata log may lag behind."""


class NextDue:
    """When a purge may find something to do."""

    def __init__(self) -> None:
        self.at_ms: int | None = None
        """``None``: nothing has a deadline."""
        self._asked_ms: int | None = None
        """When it was last asked what may be purged; ``None``: not yet, or not all of it was done."""
        self._reasons_ms: int | None = None
        """When to ask why captured replicas were removed; ``None``: there are none."""

    def note(self, look: Look, facts: Sequence[LogDirFacts]) -> bool:
        """Take a look at the log dirs; return whether the instant is another one now."""
        before, self.at_ms = self.at_ms, self._next(look, facts)
        return before != self.at_ms

    def is_passed(self) -> bool:
        """Whether something may be due."""
        return self.at_ms is not None and self.at_ms <= clock.boottime_ms()

    def ask(self) -> None:
        """Note that it is asked now what may be purged, and why captured replicas were removed."""
        self._asked_ms = clock.boottime_ms()
        self._reasons_ms = self._asked_ms + _ASK_AGAIN_MS

    def go_on(self) -> None:
        """Note that not all that is due was done."""
        self._asked_ms = None

    def _next(self, look: Look, facts: Sequence[LogDirFacts]) -> int | None:
        asked_ms, now_ms = self._asked_ms, clock.boottime_ms()
        wanted = [one for one in look.deadlines if asked_ms is None or one > asked_ms]
        if asked_ms is not None and len(wanted) < len(look.deadlines):
            wanted.append(asked_ms + _ASK_AGAIN_MS)  # It was due when last asked about, and was kept.
        if any(one.purging and one.state is LogDirState.ONLINE for one in look.log_dirs):
            # A removal that was interrupted goes on; one that failed is tried again later.
            wanted.append(now_ms if asked_ms is None else asked_ms + _ASK_AGAIN_MS)
        if not _has_captured(facts):
            self._reasons_ms = None
        else:
            self._reasons_ms = self._reasons_ms or now_ms + _FIRST_ASK_MS
            wanted.append(self._reasons_ms)
        return min(wanted, default=None)


def _has_captured(facts: Sequence[LogDirFacts]) -> bool:
    """Whether a captured replica has a deadline, and may be due before it for the reason of its removal."""
    return any(
        item.marker is not None and item.marker.intent is Intent.CAPTURED and item.marker.delay_ms is not None
        for one in facts
        for item in one.staged
        if item.kind is Kind.STAGED
    )
