"""What the daemon does beside captures and purges: it upgrades work roots of an older release and compares checkpoints.

Work roots are brought to the version of this release as soon as they are open. The checkpoint files are compared with
the copies of the last handovers after each start of the broker: when it takes its locks, two minutes later, and when it
releases them; a broker that runs has written its files anew after a minute. While no broker runs they are compared once
a minute if one of them has changed: a start that fails may be over between two looks.

Used by the thread of changes alone.

Not here: comparing (``service.batch.checkpoint_losses``), the upgrade of one work root (``disk.root.upgrade``), whether
a broker runs (``work``).

Spec: design §2 law 2, §8; kafka-behaviour §2.9, §10.3; attacks A24, A30.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from logdir import clock
from logdir.daemon.session import Session
from logdir.disk.root.upgrade import upgrade
from logdir.errors import DiskFullError, LogDirError, LogDirSuspectError, Problem
from logdir.service.batch.checkpoint_losses import Comparisons
from logdir.service.log_dirs.os_errors import map_os_errors

LOG: Final = logging.getLogger("logdir.daemon")
_WRITTEN_MS: Final = 2 * 60 * 1000
"""How long after its start a broker has written all of its checkpoint files anew (kafka-behaviour §3.1)."""
_AGAIN_MS: Final = 60 * 1000
"""When files are compared again without a broker that runs, or with one if something was lost."""


class Upkeep:
    """The upkeep of one open broker."""

    def __init__(self, session: Session, note: Callable[..., None]) -> None:
        """Take a session that was just opened.

        Args:
            session: The open broker.
            note: Writes an event into the history: its name, and values that have a JSON form.
        """
        self._session, self._note = session, note
        self._comparisons = Comparisons()
        self.problems: tuple[Problem, ...] = ()
        """What the checkpoint files lost, at the last comparison."""
        self._is_running: bool | None = None
        self._due_ms: int | None = 0
        """When the files are compared next (``CLOCK_BOOTTIME``); ``None``: not before the broker starts or stops."""

    def upgrade(self) -> None:
        """Bring the work roots to the version of this release.

        A log dir where that fails is quarantined until the daemon is started again: a heartbeat that can be written
        does not show that its work root is of this version. A full disk keeps its work root as it is, for the next
        time.
        """
        broker = self._session.broker
        for open_dir in broker.changeable:
            try:
                with map_os_errors(open_dir.log_dir):
                    is_older = broker.begin_at(upgrade, open_dir).result()
            except LogDirSuspectError as error:
                broker.ports.note(error)
            except DiskFullError:
                continue
            except LogDirError as error:
                self._session.quarantines.begin_for_good(open_dir, _not_upgraded(error))
            else:
                if is_older:
                    LOG.warning("work-root.upgraded log_dir=%s: an older release refuses it now", open_dir.log_dir)
                    self._note("upgraded", log_dir=open_dir.log_dir)

    def look(self, *, is_running: bool | None) -> None:
        """Compare the checkpoint files if it is time for that.

        Args:
            is_running: Whether the broker runs; ``None``: it is not known.
        """
        now_ms = clock.boottime_ms()
        has_changed = is_running is not None and is_running is not self._is_running
        if has_changed:
            self._is_running = is_running
        elif self._due_ms is None or now_ms < self._due_ms:
            return
        before, broker = self.problems, self._session.broker
        self.problems = self._comparisons.compare(broker, broker.open_dirs)
        for problem in self.problems:
            if problem not in before:
                LOG.warning("checkpoints.lost %s", problem.line())
                self._note("checkpoints-lost", problem=problem.line())
        if self._is_running and has_changed:
            self._due_ms = now_ms + _WRITTEN_MS
        else:
            self._due_ms = now_ms + _AGAIN_MS if self.problems or not self._is_running else None

    def look_soon(self) -> None:
        """Compare with the next look: a handover has compared, put back or copied something."""
        self._due_ms = 0


def _not_upgraded(error: LogDirError) -> Problem:
    problem = error.problem()
    way_back = "restart logdird once it is mended: it brings the work root to the version of this release"
    return problem._replace(fix=f"{problem.fix}; {way_back}" if problem.fix else way_back)
