"""Errors of the kernel that name the whole path: a call relative to a descriptor knows one component of it only.

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
    """Let an ``OSError`` of a call name the whole path of the entry it is about."""

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
    """Return what is wrong if something else lies where a file was to be read; ``None`` for any other error."""
    if error.errno not in _OTHER_KINDS or not isinstance(error.filename, str):
        return None
    if error.errno == errno.EINVAL and error.strerror != NO_REGULAR_FILE:
        return None
    return _refused(error.errno, error.filename)


def a_directory(path: str) -> RefusedError:
    """Return what is wrong if a directory lies where a file is to be."""
    return _refused(errno.EISDIR, path)


def _refused(number: int, path: str) -> RefusedError:
    expected, found = _OTHER_KINDS[number]
    return RefusedError(
        path, why=Why.WRONG_FILE_TYPE, expected=expected, found=found, fix="look at what lies there, and move it away"
    )
