"""What an error of the kernel means for an operation: undone, again after the reserve is given up, or no more writing.

A failed sync is never repeated: the kernel has then marked the pages clean, and a second call would say yes to data
that is gone. The disk is READ_ONLY from there on; the others go on.

Spec: design §3.4, law 6; reliability §4.3; attacks A10.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from logdir.disk.calls import Directory
from logdir.errors import ReadOnlyDiskError

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
RESERVE = "reserve"


def is_sick(error: OSError) -> bool:
    """Whether nothing more may be written to the disk."""
    return error.errno in _SICK


def is_full(error: OSError) -> bool:
    """Whether room would help."""
    return error.errno in _FULL


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
    """Make a call; on a full disk give up the reserve and make it once more.

    Args:
        work: The work root that holds the reserve.
        call: Changes nothing when it fails.

    Raises:
        OSError: as the call, the second time too.
    """
    try:
        return call()
    except OSError as error:
        if not is_full(error) or not give_up_reserve(work):
            raise
        return call()


def give_up_reserve(work: Directory) -> bool:
    """Truncate the reserve; return whether there was one."""
    try:
        if work.stat(RESERVE).size_bytes == 0:
            return False
        work.truncate(RESERVE, 0)
    except OSError:
        return False
    return True
