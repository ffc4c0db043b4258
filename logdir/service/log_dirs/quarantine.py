"""Log dirs of a broker that answer and may not be changed: why, and how the next process learns of it.

Three things close one: a sync failed on its disk since the host was started, it was away while the others lived on, or
it is named by ``--skip-log-dir`` and takes no lock or no change. It is looked at like any other, so that what lives
there keeps
its name; the others are worked on.

Not here: who was away (``decide.returned``), the file that tells of failed syncs (``disk.record.quarantine``).

Spec: design §2 laws 2, 6, §3.4; attacks A23, A25; reliability §4.3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from logdir import clock
from logdir.decide.stale_disk import returned
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.record import heartbeat
from logdir.disk.record.quarantine import read_quarantine, write_quarantine
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.work_root import path_of
from logdir.errors import DiskError, NoPermissionError, Problem, RefusedError
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.text import quoted

_HOUR_MS = 60 * 60 * 1000


def quarantine_of(open_dirs: Sequence[OpenLogDir], accepted: Collection[str] = ()) -> dict[str, Problem]:
    """Return why log dirs may not be changed, by path; only reads.

    Args:
        open_dirs: All that answer.
        accepted: Those of them that an operator has looked at since they came back.

    Raises:
        FormatError: a heartbeat is of a newer release, or nobody can say whom a ``quarantine.json`` means.
        OSError: a file cannot be read.
    """
    found = {}
    for log_dir, behind_ms in returned({open_dir.log_dir: heartbeat.read(open_dir) for open_dir in open_dirs}).items():
        if log_dir not in accepted:
            found[log_dir] = Problem(
                "returned",
                log_dir,
                "a disk that was here all the time",
                f"a heartbeat {behind_ms // _HOUR_MS} hours behind the other disks'",
                "what is staged there may be restored or purged since; look at it, then say --even-if-stale-disk DIR",
            )
    for log_dir, suspect in read_quarantine(open_dirs, clock.boot_id()).items():
        found[log_dir] = Problem(
            "suspect",
            log_dir,
            "a disk on which no sync failed since this host was started",
            suspect.found,
            "repair or replace the disk and restart the host; nothing is changed on it before",
        )
    return found


def failed_of(error: DiskError, log_dir: str, without: Collection[str]) -> Problem:
    """Return what is wrong with a log dir that ``--skip-log-dir`` names.

    Raises:
        DiskError: that was not said; the same, with the words to go on without it.
    """
    if log_dir in without:
        return error.problem()
    # One of several may be at fault: the words are for the one that is.
    paths = {log_dir, *(path_of(kind, log_dir) for kind in WorkRootKind)}
    if not any(f"{error.path}/".startswith(f"{path}/") for path in paths):
        raise error
    if isinstance(error, NoPermissionError):
        raise error  # it has not failed
    fix = f"{error.fix} (if it has failed, --skip-log-dir {quoted(log_dir)} goes on without it)".strip()
    raise type(error)(error.path, expected=error.expected, found=error.found, fix=fix) from error


def unlocked(log_dir: str) -> Problem:
    """Return what is wrong with one that ``--skip-log-dir`` names, and of which Kafka's lock cannot be held."""
    expected = "a lock that can be held, to know that no broker runs"
    return Problem(
        "log-dir-offline",
        log_dir,
        expected,
        "a lock that cannot be held",
        "it is said to have failed: nothing is changed on it",
    )


def require_none_quarantined(quarantined: Mapping[str, Problem]) -> None:
    """Return if no log dir is closed: for what is done to all of them or to none.

    Raises:
        RefusedError: one is.
    """
    for problem in quarantined.values():
        raise RefusedError.of(problem)


def keep_in_mind(failed: Mapping[int, str], open_dirs: Sequence[OpenLogDir], quarantined: Collection[str] = ()) -> None:
    """Record for later processes of this boot on which disks a sync failed; changes nothing else. Never raises.

    Args:
        failed: Device to what was said of the first failure.
        open_dirs: All that answer; their owner locks are held.
        quarantined: Those of them that may not be changed.
    """
    if failed:
        write_quarantine(open_dirs, failed, read_instant(), quarantined=quarantined)
