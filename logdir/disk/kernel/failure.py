"""Meaning of kernel errors for an operation: the step is undone, repeated after the reserve is released, or writing
ends.

Not here: a failed sync, after which nothing more is written (``fsync``).

Spec: design §3.4, law 6; reliability §4.3; attacks A10.
"""

from __future__ import annotations

import errno
import threading
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
    LogDirSuspectError,
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
UNKNOWN = (ReadOnlyDiskError, LogDirSuspectError)
"""Errors after which it is not known what a call changed (design §2 law 6)."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_AS_IT_WAS = "it is unchanged; inspect it"
_MAKE_ROOM = "it is unchanged; free space on that disk, then repeat the command"
_REMEDIES = {
    errno.ENAMETOOLONG: "give the log dir a shorter name in log.dirs while its broker is stopped",
    errno.EMFILE: "raise the limit of open files of this process (ulimit -n)",
    errno.ENFILE: "raise the limit of open files of this host (fs.file-max)",
    errno.ENOMEM: "free memory on this host",
    errno.ENOENT: "see what removed that path meanwhile",
    errno.EEXIST: "see what made that path meanwhile, and move it away",
    errno.ENOTEMPTY: "check the content of that directory, and move it away",
    errno.EBUSY: "unmount what is mounted there",
}
_WAITS_MS = (1, 2, 4, 8, 16, 32, 64)


def is_sick(error: OSError) -> bool:
    """Whether the error means that nothing more may be written to the disk."""
    return error.errno in _SICK


def is_full(error: OSError) -> bool:
    """Whether the error means that the disk is out of space or inodes."""
    return error.errno in _FULL


def is_denied(error: OSError) -> bool:
    """Whether the error means a missing permission; the disk itself answered."""
    return error.errno in (errno.EACCES, errno.EPERM)


def remedy_of(error: OSError) -> str:
    """Return the fix for an error about a work root that means no sick disk: what to do before the same command again.

    A missing permission is named only where one is missing.
    """
    if is_denied(error):
        return "repeat the command as the owner of the log dir"
    if is_full(error):
        return "free space on that disk, then repeat the command"
    fallback = "remove the cause that the kernel names (its log may have more)"
    return f"{_REMEDIES.get(error.errno or 0, fallback)}, then repeat the command"


def no_permission(path: str, error: OSError, expected: str = "permission to open it") -> NoPermissionError:
    """Return the error of a path for which this process lacks a permission.

    Args:
        path: The path.
        error: An error for which ``is_denied`` is true.
        expected: The permission that is needed.
    """
    fix = "run as the owner of the log dirs"
    return NoPermissionError(path, expected=expected, found=error.strerror or error, fix=fix)


def is_read_only(error: OSError) -> bool:
    """Whether the error means a file system that is mounted read-only."""
    return error.errno == errno.EROFS


def mounted_read_only(path: str, error: OSError, fix: str = "") -> ReadOnlyDiskError:
    """Return the error of a disk that is mounted read-only.

    Args:
        path: The log dir, or the entry that was to be changed.
        error: An error for which ``is_read_only`` is true.
        fix: A more specific fix for the message.
    """
    look = "check the kernel log, and remount it read-write"
    return ReadOnlyDiskError(
        path,
        expected="a writable disk",
        found=error.strerror or error,
        fix=f"{look}, {fix}" if fix else look,
    )


def full_disk(path: str, error: OSError, fix: str = _MAKE_ROOM) -> DiskFullError:
    """Return the error of a write to a full disk whose reserve is already used.

    Args:
        path: The entry that was to be written.
        error: An error for which ``is_full`` is true.
        fix: The fix for the message; needed where the entry is not unchanged, as the default text promises.
    """
    return DiskFullError(path, expected="free space on its disk", found=error.strerror or error, fix=fix)


@contextmanager
def recording(directory: Directory, name: str) -> Iterator[None]:
    """Turn an ``OSError`` of the body, which writes the file ``name`` of ours, into an error of a sick or full disk.

    Raises:
        DiskFullError: the disk is full; the file is unchanged.
        ReadOnlyDiskError: the disk is sick.
        OSError: any other error.
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
    """Turn an ``OSError`` of the body that means a sick disk into ``ReadOnlyDiskError``; other errors pass unchanged.

    Raises:
        ReadOnlyDiskError: the disk is sick.
        OSError: any other error.
    """
    try:
        yield
    except OSError as error:
        if is_sick(error):
            raise read_only(directory, error, "a writable disk") from error
        raise


def read_only(directory: Directory, error: OSError, expected: str) -> ReadOnlyDiskError:
    """Return the ``ReadOnlyDiskError`` that ends all writing to a disk; ``expected``: what should have succeeded."""
    return _read_only(directory.path, error, expected)


def _read_only(path: str, error: OSError, expected: str) -> ReadOnlyDiskError:
    return ReadOnlyDiskError(
        path,
        expected=expected,
        found=error.strerror or error,
        fix="nothing more is written here; check the kernel log, and repair or replace the disk",
    )


class _Releases:
    """How often this process has released a reserve or a spare inode: of several threads on a full disk one does it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0


_RELEASES = _Releases()


def with_reserve(work: Directory, call: Callable[[], _T]) -> _T:
    """Make a call; if the disk is full, release a spare inode or the reserve and make the call once more.

    If both inodes and bytes are short, the call is repeated once after each release. It is also repeated if another
    thread has released something since it began.

    Args:
        work: The work root that holds the reserve and the spare inodes.
        call: The call; it must change nothing when it fails.

    Raises:
        OSError: the last error of the call, once neither a spare inode nor the reserve is left.
    """
    kept: Iterator[Callable[[Directory], bool]] | None = None
    while True:
        released = _RELEASES.count
        try:
            return call()
        except OSError as error:
            if not is_full(error):
                raise
            kept = _kept(work, error) if kept is None else kept
            with _RELEASES.lock:
                if _RELEASES.count == released:
                    if not any(give_up(work) for give_up in kept):
                        raise
                    _RELEASES.count += 1


def _kept(work: Directory, error: OSError) -> Iterator[Callable[[Directory], bool]]:
    """Yield the functions that release space for this error, in the order in which to try them."""
    # Only if inodes are short: a disk short of bytes would use up all spare inodes.
    if error.errno == errno.EDQUOT or not _has_inodes(work):
        yield give_up_inode
    yield give_up_reserve


def _has_inodes(work: Directory) -> bool:
    try:
        return work.space().free_inodes > 0
    except OSError:
        return True


def give_up_inode(work: Directory) -> bool:
    """Remove one spare inode file; return whether there was one."""
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
    """Wait until the inode of a removed file is free: XFS frees it a moment later, and sooner when asked for free
    space.
    """
    for wait_ms in _WAITS_MS:
        if work.space().free_inodes:
            return
        time.sleep(wait_ms / 1000)


def spares(directory: Directory) -> tuple[str, ...]:
    """Return the names of the spare inode files: empty files with one link whose names are numbers.

    Raises:
        OSError: the directory cannot be listed.
    """
    numbered = [(name, directory.stat(name)) for name in directory.names() if name.isdecimal()]
    return tuple(n for n, found in numbered if (found.type, found.links, found.size_bytes) == (Type.FILE, 1, 0))


def give_up_reserve(work: Directory) -> bool:
    """Free the reserve by truncating its file; return whether that freed any bytes."""
    try:
        if work.stat(RESERVE).size_bytes == 0:
            return False
        work.truncate(RESERVE, 0)
    except OSError:
        return False
    return True


def trouble(path: str, error: LogDirError | OSError) -> Problem:
    """Return, as a problem to report, why recovery leaves an entry unchanged.

    Args:
        path: Absolute path of the entry; an error of ours carries its own path, which is used instead.
        error: The error met while reading the entry.

    Raises:
        ReadOnlyDiskError, LogDirSuspectError, OSError: the same error, if it means that the disk is sick or silent.
    """
    if isinstance(error, LogDirError) and not isinstance(error, UNKNOWN):
        found = error.problem()
        return found._replace(fix=found.fix or _AS_IT_WAS)
    if isinstance(error, OSError) and not is_sick(error):
        return Problem(
            Why.RECOVERY_FAILED.value,
            path,
            "an interrupted change that can be finished or undone",
            error.strerror or str(error),
            _AS_IT_WAS,
        )
    raise error


def as_disk_error(path: str, error: OSError) -> DiskError:
    """Convert an ``OSError`` to the ``DiskError`` that fits its errno; a path in it outside ``path`` counts."""
    found = error.strerror or str(error)
    if (something_else := not_a_file(error)) is not None:
        return something_else
    at = error.filename
    if isinstance(at, str) and at.startswith("/") and not f"{at}/".startswith(f"{path}/"):
        path = at  # The error may be about another disk, or about one of several.
    if is_denied(error):
        return no_permission(path, error, "the permission that this call needs")
    if is_full(error):
        return full_disk(path, error)
    if is_read_only(error):
        return mounted_read_only(path, error)
    return LogDirOfflineError(path, expected="a disk that answers", found=found, fix="check the kernel log")


def disk_error(log_dir: str, error: OSError) -> DiskError:
    """Convert an ``OSError`` that ends the work on a disk to an error of this package.

    Args:
        log_dir: The path of the log dir as configured.
        error: The error of the call.
    """
    return _read_only(log_dir, error, "a call that succeeds") if is_sick(error) else as_disk_error(log_dir, error)
