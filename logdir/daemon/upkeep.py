"""What the daemon does beside captures and purges: it upgrades work roots of an older release and compares checkpoints.

Work roots are brought to the version of this release as soon as they are open, before anything else is written there,
and again where that failed. The checkpoint files are compared with the copies of the last handovers after each start of
the broker: when it takes its locks, two minutes later, and when it releases them; a broker that runs has written its
files anew after a minute. While no broker runs they are compared once a minute if one of them has changed: a start that
fails may be over between two looks.

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
from logdir.errors import DiskFullError, LogDirError, LogDirReplacedError, LogDirSuspectError, Problem
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
        self._older: set[str] | None = None
        """Log dirs whose work root is to be upgraded yet; ``None``: all of them."""
        self._comparisons = Comparisons()
        self.problems: tuple[Problem, ...] = ()
        """What the checkpoint files lost, at the last comparison."""
        self._is_running: bool | None = None
        self._due_ms: int | None = 0
        """When the files are compared next (``CLOCK_BOOTTIME``); ``None``: not before the broker starts or stops."""

    def upgrade(self) -> None:
        """Bring the work roots to the version of this release; called again before each heartbeat.

        A log dir where that fails is quarantined, and gets no heartbeat, until it succeeds. A full disk keeps its work
        root as it is, for the next time: nothing that is new can be written there either.

        Raises:
            LogDirReplacedError: the owner lock or the path of a log dir that was quarantined until now is another one.
        """
        broker, quarantines = self._session.broker, self._session.quarantines
        left, self._older = self._older, set()
        for open_dir in tuple(quarantines.to_upgrade()):
            log_dir = open_dir.log_dir
            if left is not None and log_dir not in left:
                continue
            try:
                with map_os_errors(log_dir):
                    quarantines.require_ours(open_dir)
                    is_older = broker.begin_at(upgrade, open_dir).result()
            except LogDirSuspectError as error:
                broker.ports.note(error)
            except DiskFullError:
                self._older.add(log_dir)
            except LogDirReplacedError:
                raise
            except LogDirError as error:
                self._older.add(log_dir)
                quarantines.begin(open_dir, error)
                quarantines.unready.add(log_dir)
            else:
                quarantines.unready.discard(log_dir)
                if is_older:
                    LOG.warning("work-root.upgraded log_dir=%s: an older release refuses it now", log_dir)
                    self._note("upgraded", log_dir=log_dir)

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
