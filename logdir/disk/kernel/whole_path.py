"""Errors with the whole path: an ``OSError`` of a call relative to a descriptor names only one path component.

Not here: what an error means (``failure``), the calls (``host``).
"""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from logdir.disk.kernel.calls import Directory
from logdir.errors import RefusedError
from logdir.refusal_slug import Why

_D = TypeVar("_D", bound=Directory)
_P = ParamSpec("_P")
_T = TypeVar("_T")

NO_REGULAR_FILE = "no regular file"
_OTHER_KINDS = {
    errno.ELOOP: ("no link", "a link"),
    errno.ENOTDIR: ("a directory", "something else"),
    errno.EISDIR: ("a regular file", "a directory"),
    errno.EINVAL: ("a regular file", "something else"),
}


def whole_path(
    call: Callable[Concatenate[_D, str, _P], _T],
) -> Callable[Concatenate[_D, str, _P], _T]:
    """Decorate a call so that its ``OSError`` names the whole path of the entry."""

    @functools.wraps(call)
    def named(directory: _D, name: str, /, *arguments: _P.args, **more: _P.kwargs) -> _T:
        try:
            return call(directory, name, *arguments, **more)
        except OSError as error:
            if not isinstance(error.filename, str) or not error.filename.startswith("/"):
                error.filename = f"{directory.path}/{name}"
            raise

    return named


def not_a_file(error: OSError) -> RefusedError | None:
    """Return the error if an entry that is no regular file was to be read as one; ``None`` for any other error."""
    if error.errno not in _OTHER_KINDS or not isinstance(error.filename, str):
        return None
    if error.errno == errno.EINVAL and error.strerror != NO_REGULAR_FILE:
        return None
    return _refused(error.errno, error.filename)


def a_directory(path: str) -> RefusedError:
    """Return the error for a directory that has the name of a file."""
    return _refused(errno.EISDIR, path)


def _refused(number: int, path: str) -> RefusedError:
    expected, found = _OTHER_KINDS[number]
    return RefusedError(
        path, why=Why.WRONG_FILE_TYPE, expected=expected, found=found, fix="inspect it, and move it away"
    )
