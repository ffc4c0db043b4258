"""Standard output and standard error of a command: any encoding, a full disk, a reader that has gone.

A write to standard output that fails raises ``StdoutError``, once, whatever command writes; one to standard error is
dropped, because no place is left to report it. Few imports: every command starts with this.

Not here: the texts that are written.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # the module typing takes 7 ms to import
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TextIO


class StdoutError(Exception):
    """A write to standard output failed: its disk is full, its reader has gone, or it is closed."""

    def __init__(self, found: str, *, is_reader_gone: bool) -> None:
        self.found = found
        self.is_reader_gone = is_reader_gone
        """Whether the reader of a pipe closed it, which is no error."""
        super().__init__(found)


class _Guarded:
    """Wraps a stream; every attribute that this class lacks is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def isatty(self) -> bool:
        """Whether the stream is open and a terminal."""
        return not self.stream.closed and self.stream.isatty()


class Stdout(_Guarded):
    """Standard output: a write that fails raises ``StdoutError``."""

    def write(self, text: str) -> int:
        """Write text; return its length."""
        try:
            return self.stream.write(text)
        except (OSError, ValueError) as error:
            raise _failed(error) from error

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts, each as ``write`` does."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush."""
        try:
            self.stream.flush()
        except (OSError, ValueError) as error:
            raise _failed(error) from error


class Stderr(_Guarded):
    """Standard error: a text that cannot be written is dropped."""

    def write(self, text: str) -> int:
        """Write text, or drop it if that fails; return its length."""
        try:
            return self.stream.write(text)
        except (OSError, ValueError):
            return len(text)

    def flush(self) -> None:
        """Flush, and ignore a failure."""
        try:
            self.stream.flush()
        except (OSError, ValueError):
            return


def _failed(error: OSError | ValueError) -> StdoutError:
    if isinstance(error, UnicodeError):
        raise error
    found = (error.strerror or str(error)) if isinstance(error, OSError) else "a stream that is closed"
    return StdoutError(found, is_reader_gone=isinstance(error, BrokenPipeError))


def guarded(out: TextIO, err: TextIO) -> tuple[TextIO, TextIO]:
    """Return both streams wrapped: a failed write raises ``StdoutError`` on ``out`` and is dropped on ``err``."""
    first: Any = out if isinstance(out, Stdout) else Stdout(out)
    second: Any = err if isinstance(err, Stderr) else Stderr(err)
    return first, second


def original(stream: object) -> object:
    """Return the stream that ``guarded`` wrapped, or ``stream`` itself if it is not wrapped."""
    return stream.stream if isinstance(stream, _Guarded) else stream


def as_utf8(stream: TextIO) -> None:
    """Write UTF-8 from here on, whatever the locale: JSON is UTF-8 everywhere."""
    change = getattr(stream, "reconfigure", None)
    if change is not None:
        change(encoding="utf-8")


def standard() -> tuple[TextIO, TextIO]:
    """Return the process's standard output and standard error, fit for any text; opens what the caller closed.

    What the encoding of a locale cannot hold is written with backslashes. A standard descriptor that is closed becomes
    ``/dev/null``, so that no file of ours is opened in its place; standard output then fails at its first write.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free: this one
    for stream in (sys.stdout, sys.stderr):
        change = getattr(stream, "reconfigure", None)
        if change is not None:
            change(errors="backslashreplace")
    return guarded(sys.stdout or _closed(), sys.stderr or _closed())


def _closed() -> TextIO:
    import io

    stream = io.StringIO()
    stream.close()
    return stream


def leave() -> None:
    """Flush standard output a last time; what it does not take is dropped, for the interpreter must not try again."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
