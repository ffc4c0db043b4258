"""What an error of the kernel means for an operation: undone, again after the reserve is given up, or no more writing.

A failed sync is never repeated: the kernel has then marked the pages clean, and a second call would say yes to data
that is gone. The disk is READ_ONLY from there on; the others go on.

Spec: design §3.4, law 6; reliability §4.3; attacks A10.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.whole_path import not_a_file
from logdir.errors import (
    DiskError,
    DiskFullError,
    LogDirError,
    LogDirOfflineError,
    NoPermissionError,
    Problem,
    ReadOnlyDiskError,
)
from logdir.observe.classify import Type
from logdir.paths import RESERVE, SPARE
from logdir.refusal_slug import Why

_T = TypeVar("_T")

# The device or its file system is at fault, not this call.
_SICK = frozenset(
    {
        errno.EIO,
        errno.EROFS,
        errno.ENODEV,
        errno.ENXIO,
        errno.ESTALE,
        errno.EUCLEAN,
        errno.ENOTCONN,
        errno.EREMOTEIO,
        errno.ETIMEDOUT,
    }
)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_AS_IT_WAS = "it is as it was: look at it"
_MAKE_ROOM = "it is as it was; make room on that disk, then do it again"
_WAITS_MS = (1, 2, 4, 8, 16, 32, 64)


def is_sick(error: OSError) -> bool:
    """Whether nothing more may be written to the disk."""
    return error.errno in _SICK


def is_full(error: OSError) -> bool:
    """Whether room would help."""
    return error.errno in _FULL


def is_denied(error: OSError) -> bool:
    """Whether a right is missing, and the disk answered."""
    return error.errno in (errno.EACCES, errno.EPERM)


def no_permission(path: str, error: OSError, expected: str = "the right to open it") -> NoPermissionError:
    """Return the error of what we have no right to.

    Args:
        path: What it is.
        error: For which ``is_denied``.
        expected: What is asked for.
    """
    fix = "run as the owner of the log dirs"
    return NoPermissionError(path, expected=expected, found=error.strerror or error, fix=fix)


def is_read_only(error: OSError) -> bool:
    """Whether the disk is mounted so that it takes no changes."""
    return error.errno == errno.EROFS


def mounted_read_only(path: str, error: OSError, fix: str = "") -> ReadOnlyDiskError:
    """Return the error of a disk that can be read, and takes no changes.

    Args:
        path: Of the log dir, or what was to be changed.
        error: For which ``is_read_only``.
        fix: What else to do.
    """
    look = "look at the kernel's log, and mount it for writing again"
    return ReadOnlyDiskError(
        path,
        expected="a disk that takes changes",
        found=error.strerror or error,
        fix=f"{look}, {fix}" if fix else look,
    )


@contextmanager
def syncing(directory: Directory) -> Iterator[None]:
    """Turn any error of a sync into the end of writing.

    Raises:
        ReadOnlyDiskError: a sync inside failed.
    """
    try:
        yield
    except OSError as error:
        raise read_only(directory, error, "a sync that succeeds") from error


def full_disk(path: str, error: OSError, fix: str = _MAKE_ROOM) -> DiskFullError:
    """Return the error of what finds no room, with nothing left to give up.

    Args:
        path: What was to be written.
        error: For which ``is_full``.
        fix: What to do, where it is not as it was.
    """
    return DiskFullError(path, expected="room on its disk for this", found=error.strerror or error, fix=fix)


@contextmanager
def recording(directory: Directory, name: str) -> Iterator[None]:
    """As ``calling``, around the writing of a file of ours; a full disk is called one.

    Raises:
        DiskFullError: there is no room for it; it is as it was.
        ReadOnlyDiskError: the disk is sick.
        OSError: any other.
    """
    try:
        with calling(directory):
            yield
    except OSError as error:
        if is_full(error):
            raise full_disk(f"{directory.path}/{name}", error) from error
        raise


@contextmanager
def calling(directory: Directory) -> Iterator[None]:
    """Turn an error that tells of a sick disk into the end of writing; others pass.

    Raises:
        ReadOnlyDiskError: the disk is sick.
        OSError: any other.
    """
    try:
        yield
    except OSError as error:
        if is_sick(error):
            raise read_only(directory, error, "a disk that can be written") from error
        raise


def read_only(directory: Directory, error: OSError, expected: str) -> ReadOnlyDiskError:
    """Return the error that ends writing to a disk."""
    return ReadOnlyDiskError(
        directory.path,
        expected=expected,
        found=error.strerror or error,
        fix="nothing more is written here; look at the kernel's log and replace or repair the disk",
    )


def with_reserve(work: Directory, call: Callable[[], _T]) -> _T:
    """Make a call; on a full disk give up what is kept for that, an inode or the reserve, and make it once more.

    Where both are short, it is made once more after each.

    Args:
        work: The work root that holds the reserve and the spare inodes.
        call: Changes nothing when it fails.

    Raises:
        OSError: as the call, with nothing left to give up.
    """
    kept: Iterator[Callable[[Directory], bool]] | None = None
    while True:
        try:
            return call()
        except OSError as error:
            if not is_full(error):
                raise
            kept = _kept(work, error) if kept is None else kept
            if not any(give_up(work) for give_up in kept):
                raise


def _kept(work: Directory, error: OSError) -> Iterator[Callable[[Directory], bool]]:
    """Yield what may help, in the order in which it is to be given up."""
    # Only where it is inodes that are short: what is short of bytes would eat them all.
    if error.errno == errno.EDQUOT or not _has_inodes(work):
        yield give_up_inode
    yield give_up_reserve


def _has_inodes(work: Directory) -> bool:
    try:
        return work.space().free_inodes > 0
    except OSError:
        return True


def give_up_inode(work: Directory) -> bool:
    """Remove one of the files that are kept for their inodes; return whether there was one."""
    try:
        with work.open(SPARE) as directory:
            found = spares(directory)
            if not found:
                return False
            directory.unlink(found[-1])
        _await_inode(work)
    except OSError:
        return False
    return True


def _await_inode(work: Directory) -> None:
    """Wait until a removed file's inode is free: XFS sees to that a moment later, and being asked hastens it."""
    for wait_ms in _WAITS_MS:
        if work.space().free_inodes:
            return
        time.sleep(wait_ms / 1000)


def spares(directory: Directory) -> tuple[str, ...]:
    """Return the names of the files that are kept for their inodes: empty, with no other name, called by a number.

    Raises:
        OSError: it cannot be listed.
    """
    numbered = [(name, directory.stat(name)) for name in directory.names() if name.isdecimal()]
    return tuple(n for n, found in numbered if (found.type, found.links, found.size_bytes) == (Type.FILE, 1, 0))


def give_up_reserve(work: Directory) -> bool:
    """Truncate the reserve; return whether there was one."""
    try:
        if work.stat(RESERVE).size_bytes == 0:
            return False
        work.truncate(RESERVE, 0)
    except OSError:
        return False
    return True


def trouble(path: str, error: LogDirError | OSError) -> Problem:
    """Return why a recovery leaves something as it was.

    Args:
        path: Absolute; of an error of ours its own path counts.
        error: What came of looking at it.

    Raises:
        ReadOnlyDiskError, OSError: the same: the disk is sick.
    """
    if isinstance(error, LogDirError) and not isinstance(error, ReadOnlyDiskError):
        found = error.problem()
        return found._replace(fix=found.fix or _AS_IT_WAS)
    if isinstance(error, OSError) and not is_sick(error):
        return Problem(
            Why.RECOVERY_FAILED.value, path, "something to recover", error.strerror or str(error), _AS_IT_WAS
        )
    raise error


def as_disk_error(path: str, error: OSError) -> DiskError:
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


def disk_error(top: Directory, log_dir: str, error: OSError) -> DiskError:
    """Return an error of the kernel that ends the work on a disk as one of ours.

    Args:
        top: The log dir, open.
        log_dir: Its path as configured.
        error: What a call said.
    """
    return read_only(top, error, "a call that succeeds") if is_sick(error) else as_disk_error(log_dir, error)
