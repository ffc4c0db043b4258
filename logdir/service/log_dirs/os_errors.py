"""Translation of ``OSError`` to errors that name the log dir and a fix.

Spec: style §5.6; attacks A10, A23, A40.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from logdir.disk.kernel.failure import as_disk_error, disk_error
from logdir.errors import DiskFullError, LogDirOfflineError, LogDirSuspectError, Problem, ReadOnlyDiskError
from logdir.service.log_dirs.quarantine import failed_of


@contextmanager
def map_os_errors(path: str) -> Iterator[None]:
    """Raise an ``OSError`` of the body as a ``DiskError`` that names ``path``, or the path in the error."""
    try:
        yield
    except OSError as error:
        raise as_disk_error(path, error) from error


@contextmanager
def map_os_errors_or_quarantine(
    log_dir: str, without: Collection[str], close: Callable[[str, Problem], None], path: str | None = None
) -> Iterator[None]:
    """Translate errors as ``map_os_errors``; quarantine a log dir that ``--skip-log-dir`` names instead of raising.

    Args:
        log_dir: The log dir on whose disk the body works.
        without: Log dirs that ``--skip-log-dir`` names.
        close: Called with the log dir to quarantine and its problem.
        path: The path that the body works on, if not the log dir.

    Raises:
        LogDirOfflineError, ReadOnlyDiskError, DiskFullError: the error of a log dir that is not in ``without``.
    """
    try:
        with map_os_errors(path or log_dir):
            yield
    except LogDirSuspectError:
        raise
    except (LogDirOfflineError, ReadOnlyDiskError, DiskFullError) as error:
        close(log_dir, failed_of(error, log_dir, without))


@contextmanager
def sick_disks(notes: list[Problem], sick: set[str], log_dir: str) -> Iterator[None]:
    """Record a failure of the log dir's disk in the body, instead of raising it; so is a log dir that does not answer.

    Args:
        notes: Gets the problem.
        sick: Gets the path of the log dir.
        log_dir: The path of the log dir on whose disk the body works, as configured.
    """
    try:
        yield
    except (ReadOnlyDiskError, LogDirSuspectError) as error:
        sick.add(log_dir)
        notes.append(error.problem())
    except OSError as error:
        sick.add(log_dir)
        notes.append(disk_error(log_dir, error).problem())
