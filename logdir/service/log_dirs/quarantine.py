"""Quarantined log dirs: those that answer but may not be changed, why, and how later processes learn of it.

There are three causes: a sync failed on the disk since the host was started, the disk is stale, or ``--skip-log-dir``
names a log dir that cannot be locked or changed. A quarantined log dir is read like any other, so that its live names
count as taken; the other log dirs are changed as usual.

Not here: detecting a stale disk (``decide.stale_disk``), the record of failed syncs (``disk.record.quarantine``).

Spec: design §2 laws 2, 6, §3.4; attacks A23, A25; reliability §4.3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from logdir import clock
from logdir.decide.stale_disk import STALE_DISK, returned
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.record import heartbeat
from logdir.disk.record.quarantine import read_quarantine, write_quarantine
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.work_root import path_of
from logdir.errors import DiskError, NoPermissionError, Problem, RefusedError
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.text import quoted

SYNC_FAILED: Final = "sync-failed"
"""Slug of a disk on which a sync failed since the host was started."""
_HOUR_MS = 60 * 60 * 1000


def quarantine_of(open_dirs: Sequence[OpenLogDir], accepted: Collection[str] = ()) -> dict[str, Problem]:
    """Return why log dirs may not be changed, by path; only reads.

    Args:
        open_dirs: All log dirs that answer.
        accepted: Stale disks that an operator has accepted.

    Raises:
        FormatError: a heartbeat is of a newer release, or a ``quarantine.json`` is malformed.
        OSError: a file cannot be read.
    """
    found = {}
    for log_dir, behind_ms in returned({open_dir.log_dir: heartbeat.read(open_dir) for open_dir in open_dirs}).items():
        if log_dir not in accepted:
            found[log_dir] = Problem(
                STALE_DISK,
                log_dir,
                "a disk that was never away",
                f"a heartbeat {behind_ms // _HOUR_MS} hours behind the other disks'",
                "check it for outdated staged replicas, then add --even-if-stale-disk DIR",
            )
    for log_dir, suspect in read_quarantine(open_dirs, clock.boot_id()).items():
        found[log_dir] = _sync_failed(log_dir, suspect.found)
    return found


def failed_of(error: DiskError, log_dir: str, without: Collection[str]) -> Problem:
    """Return an error of a log dir as its problem, if ``--skip-log-dir`` names that log dir.

    Args:
        error: The error.
        log_dir: The log dir.
        without: The log dirs that the option names.

    Raises:
        DiskError: the option does not name the log dir; ``error`` itself, and its fix says that the option would help.
    """
    if log_dir in without:
        return error.problem()
    # The error may be about another log dir: the fix names the one that failed.
    if not is_within(error.path, log_dir):
        raise error
    if isinstance(error, NoPermissionError):
        raise error  # The log dir has not failed.
    fix = f"{error.fix} (if this log dir has failed, add --skip-log-dir {quoted(log_dir)} to go on without it)".strip()
    raise type(error)(error.path, expected=error.expected, found=error.found, fix=fix) from error


def is_within(path: str, log_dir: str) -> bool:
    """Whether a path lies in a log dir or in a work root of it."""
    tops = (log_dir, *(path_of(kind, log_dir) for kind in WorkRootKind))
    return any(f"{path}/".startswith(f"{top}/") for top in tops)


def unlocked(log_dir: str) -> Problem:
    """Return the problem of a skipped log dir whose Kafka lock cannot be held."""
    expected = "a .lock file that can be locked, to be sure that no broker runs"
    return Problem(
        "log-dir-offline",
        log_dir,
        expected,
        "a .lock file that cannot be locked",
        "--skip-log-dir names this log dir: nothing is changed on it",
    )


def require_none_quarantined(quarantined: Mapping[str, Problem]) -> None:
    """Check that no log dir is quarantined, for changes to all log dirs or none.

    Raises:
        RefusedError: a log dir is quarantined.
    """
    for problem in quarantined.values():
        raise RefusedError.of(problem)


def keep_in_mind(
    failed: Mapping[int, str], open_dirs: Sequence[OpenLogDir], quarantined: Collection[str] = ()
) -> dict[str, Problem]:
    """Record for later processes of this boot on which disks a sync failed; changes nothing else. Never raises.

    Args:
        failed: Device to the message of its first failure.
        open_dirs: All log dirs that answer; their owner locks are held.
        quarantined: Log dirs that may not be changed.

    Returns:
        The log dirs on these disks, and why they may not be changed any more.
    """
    if not failed:
        return {}
    sick = write_quarantine(open_dirs, failed, read_instant(), quarantined=quarantined)
    return {log_dir: _sync_failed(log_dir, "a failed sync") for log_dir in sick}


def replacing(log_dir: str) -> str:
    """Return, for a message, how to replace the disk of a log dir while logdird runs."""
    path = quoted(log_dir)
    return f"logdirctl disk release {path}, on the new one logdirctl init --log-dirs {path}, reload logdird (SIGHUP)"


def _sync_failed(log_dir: str, found: str) -> Problem:
    return Problem(
        SYNC_FAILED,
        log_dir,
        "a disk on which no sync failed since this host was started",
        found,
        "nothing is changed on it before it is repaired and the host restarted, or another disk is there: "
        f"{replacing(log_dir)}",
    )
