"""Log dirs that the daemon may not change any more: for which disk, for how long, and the way back.

A sick disk stays quarantined until logdird is started again or another disk lies there: nothing shows that it is well.
What a single heartbeat failed for otherwise, a lack of memory or a missing permission, ends with the next heartbeat.

Not here: log dirs that are quarantined when they are opened (``service.log_dirs.quarantine``), when a heartbeat is due
(``session``).

Spec: design §2 law 6, §3.4; attacks A10, A25, A26; reliability §4.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from logdir.disk.kernel.failure import is_sick
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, Problem, ReadOnlyDiskError
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.quarantine import SYNC_FAILED, replacing
from logdir.worker.state import require_in_place, require_owner_lock


class DiskIdentity(NamedTuple):
    """The disk on which a log dir lies, as far as it can be told."""

    directory_id: str | None
    """``None``: ``meta.properties`` has none, as before 3.7."""
    device: int | None
    """``st_dev`` of the log dir; ``None``: it could not be read."""


class Quarantined(NamedTuple):
    """Why a log dir may not be changed, and on which disk."""

    problem: Problem
    disk: DiskIdentity

    def is_over(self, now: DiskIdentity) -> bool:
        """Whether another disk lies there now.

        After a failed sync only another directory id shows that, as in ``quarantine.json``: the device number of one
        disk may be another one after it was mounted again.
        """
        before = self.disk
        if None not in (before.directory_id, now.directory_id) and before.directory_id != now.directory_id:
            return True
        is_device_other = None not in (before.device, now.device) and before.device != now.device
        return is_device_other and self.problem.slug != SYNC_FAILED


def disk_of(open_dir: OpenLogDir) -> DiskIdentity:
    """Return the identity of the disk of an open log dir."""
    device = None
    with suppress(OSError, LogDirError):
        device = open_dir.top.identity().device
    return DiskIdentity(open_dir.directory_id, device)


def still(kept: dict[str, Quarantined], broker: OpenBroker) -> dict[str, Problem]:
    """Return why log dirs of a broker that was just opened stay quarantined, by log dir.

    Args:
        kept: Quarantines by log dir, also of log dirs that are not configured now. Those that are over are removed.
        broker: The broker.
    """
    for open_dir in broker.open_dirs:
        one = kept.get(open_dir.log_dir)
        if one is not None and one.is_over(disk_of(open_dir)):
            del kept[open_dir.log_dir]
    return {log_dir: one.problem for log_dir, one in kept.items() if log_dir in broker.named.log_dirs}


class Quarantines:
    """The quarantines of an open broker that began while it is open."""

    def __init__(self, broker: OpenBroker, kept: dict[str, Quarantined]) -> None:
        """Take an open broker.

        Args:
            broker: The broker; its ``quarantined`` is kept up to date.
            kept: Gets, by log dir, the quarantines that hold for later sessions, too.
        """
        self._broker, self._kept = broker, kept
        self._passing: set[str] = set()
        """Log dirs that are quarantined until the next heartbeat that succeeds."""
        self.unready: set[str] = set()
        """Those of them whose work root is of an older release yet: they get no heartbeat before it is upgraded."""

    def to_beat(self) -> Iterator[OpenLogDir]:
        """Yield the log dirs whose heartbeat is written: those that may be changed, or may be with the next one."""
        return (open_dir for open_dir in self.to_upgrade() if open_dir.log_dir not in self.unready)

    def to_upgrade(self) -> Iterator[OpenLogDir]:
        """Yield the log dirs whose work root may be brought to the version of this release."""
        for open_dir in self._broker.open_dirs:
            if open_dir.log_dir in self._passing or open_dir.log_dir not in self._broker.quarantined:
                yield open_dir

    def require_ours(self, open_dir: OpenLogDir) -> None:
        """Check that a log dir that is quarantined until its next heartbeat is still ours: no look asks for that.

        Raises:
            LogDirReplacedError: its owner lock was replaced, or its path leads to another directory.
        """
        if open_dir.log_dir in self._passing:
            port = self._broker.ports.port(open_dir.log_dir)
            port.run_opened(require_owner_lock)
            port.run_opened(require_in_place)

    def end(self, open_dir: OpenLogDir) -> bool:
        """End the quarantine of a log dir whose heartbeat was written; return whether there was one."""
        if open_dir.log_dir not in self._passing:
            return False
        self._passing.discard(open_dir.log_dir)
        del self._broker.quarantined[open_dir.log_dir]
        return True

    def begin(self, open_dir: OpenLogDir, error: LogDirError) -> None:
        """Quarantine a log dir whose heartbeat failed: for good if its disk is sick."""
        cause = error.__cause__
        if isinstance(error, ReadOnlyDiskError) or (isinstance(cause, OSError) and is_sick(cause)):
            way_back = f"restart logdird once it is repaired, or replace the disk: {replacing(open_dir.log_dir)}"
            self.begin_for_good(open_dir, _with(error, way_back))
        else:
            way_back = "logdird tries again every minute, and when it is reloaded (SIGHUP)"
            self._passing.add(open_dir.log_dir)
            self._broker.quarantined[open_dir.log_dir] = _with(error, way_back)

    def begin_for_good(self, open_dir: OpenLogDir, problem: Problem) -> None:
        """Change nothing more on a log dir until the daemon is started again, or another disk lies there."""
        log_dir = open_dir.log_dir
        if log_dir not in self._kept or problem.slug == SYNC_FAILED:
            self._kept[log_dir] = Quarantined(problem, disk_of(open_dir))
        self._passing.discard(log_dir)
        # In place of ``stale-disk``, with which captures go on.
        self._broker.quarantined[log_dir] = self._kept[log_dir].problem


def why_left_out(error: LogDirError) -> Problem:
    """Return why a log dir that could not be opened is left out.

    Without the advice to add ``--skip-log-dir``, which a daemon does not take; a disk that can be written again is
    opened when the daemon is reloaded.
    """
    own = error.__cause__ if isinstance(error.__cause__, LogDirError) else error
    return _with(own, "then reload logdird (SIGHUP)") if isinstance(own, ReadOnlyDiskError) else own.problem()


def _with(error: LogDirError, way_back: str) -> Problem:
    problem = error.problem()
    return problem._replace(fix=f"{problem.fix}; {way_back}" if problem.fix else way_back)
