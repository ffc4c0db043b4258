"""Turn an ``OSError`` of the kernel into an error of ours that names the log dir and what to do.

Spec: style §5.6; attacks A10, A23, A40.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from logdir.disk.failure import (
    full_disk,
    is_denied,
    is_full,
    is_read_only,
    is_sick,
    mounted_read_only,
    no_permission,
    read_only,
)
from logdir.disk.site import Site
from logdir.disk.whole_path import not_a_file
from logdir.errors import DiskError, DiskFullError, LogDirOfflineError, Problem, ReadOnlyDiskError
from logdir.service.quarantine import failed_of


@contextmanager
def told(path: str) -> Iterator[None]:
    """Turn an error of the kernel into one of ours."""
    try:
        yield
    except OSError as error:
        raise as_refusal(path, error) from error


@contextmanager
def told_or_closed(
    log_dir: str, without: Collection[str], close: Callable[[str, Problem], None], path: str | None = None
) -> Iterator[None]:
    """As ``told``; one that is said to have failed is closed by an error of its disk, and no error is raised.

    Args:
        log_dir: Whose disk it is.
        without: Those that are said to have failed.
        close: Told the log dir and what is wrong with it.
        path: What is worked on, if not the log dir.

    Raises:
        LogDirOfflineError, ReadOnlyDiskError, DiskFullError: one of which that was not said does not answer, or takes
            no change.
    """
    try:
        with told(path or log_dir):
            yield
    except (LogDirOfflineError, ReadOnlyDiskError, DiskFullError) as error:
        close(log_dir, failed_of(error, log_dir, without))


def as_refusal(path: str, error: OSError) -> DiskError:
    """Return an error of the kernel as one of ours."""
    found = error.strerror or str(error)
    if (something_else := not_a_file(error)) is not None:
        return something_else
    at = error.filename
    if isinstance(at, str) and at.startswith("/") and not f"{at}/".startswith(f"{path}/"):
        path = at  # of another disk, or of one of several
    if is_denied(error):
        return no_permission(path, error, "the right to do it")
    if is_full(error):
        return full_disk(path, error)
    if is_read_only(error):
        return mounted_read_only(path, error)
    return LogDirOfflineError(path, expected="a disk that answers", found=found, fix="look at the kernel's log")


@contextmanager
def sick_disks(notes: list[Problem], sick: set[str], site: Site) -> Iterator[None]:
    """Go on with the other disks when one takes no more changes."""
    try:
        yield
    except ReadOnlyDiskError as error:
        sick.add(site.log_dir)
        notes.append(error.problem())
    except OSError as error:
        sick.add(site.log_dir)
        notes.append(
            (
                read_only(site.top, error, "a call that succeeds")
                if is_sick(error)
                else as_refusal(site.log_dir, error)
            ).problem()
        )
