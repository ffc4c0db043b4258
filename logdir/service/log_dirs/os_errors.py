"""Turn an ``OSError`` of the kernel into an error of ours that names the log dir and what to do.

Spec: style §5.6; attacks A10, A23, A40.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from logdir.disk.kernel.failure import as_disk_error, disk_error
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import DiskFullError, LogDirOfflineError, LogDirSuspectError, Problem, ReadOnlyDiskError
from logdir.service.log_dirs.quarantine import failed_of


@contextmanager
def map_os_errors(path: str) -> Iterator[None]:
    """Turn an error of the kernel into one of ours."""
    try:
        yield
    except OSError as error:
        raise as_disk_error(path, error) from error


@contextmanager
def map_os_errors_or_quarantine(
    log_dir: str, without: Collection[str], close: Callable[[str, Problem], None], path: str | None = None
) -> Iterator[None]:
    """As ``told``; one that ``--skip-log-dir`` names is closed by an error of its disk, and no error is raised.

    Args:
        log_dir: Whose disk it is.
        without: Those that ``--skip-log-dir`` names.
        close: Told the log dir and what is wrong with it.
        path: What is worked on, if not the log dir.

    Raises:
        LogDirOfflineError, ReadOnlyDiskError, DiskFullError: one of which that was not said does not answer, or takes
            no change.
    """
    try:
        with map_os_errors(path or log_dir):
            yield
    except LogDirSuspectError:
        raise
    except (LogDirOfflineError, ReadOnlyDiskError, DiskFullError) as error:
        close(log_dir, failed_of(error, log_dir, without))


@contextmanager
def sick_disks(notes: list[Problem], sick: set[str], open_dir: OpenLogDir) -> Iterator[None]:
    """Go on with the other disks when one takes no more changes."""
    try:
        yield
    except (ReadOnlyDiskError, LogDirSuspectError) as error:
        sick.add(open_dir.log_dir)
        notes.append(error.problem())
    except OSError as error:
        sick.add(open_dir.log_dir)
        notes.append(disk_error(open_dir.top, open_dir.log_dir, error).problem())
