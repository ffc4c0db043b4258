"""The metrics as a file, for an exporter of the host that reads such files (``metrics.textfile``).

A thread of its own writes the file every 15 seconds, so that a disk that hangs, or is full, delays nothing else. The
file appears whole or not at all. When logdird ends in order the file is removed: what it says would be read for as long
as it lies there, as if it were so. Nothing removes it after a kill; then its age shows it.

Not here: what is in it (``exposition``).

Spec: docs/metrics.md; style §5.5 (a temporary file in the same directory, a rename).
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from logdir import clock
from logdir.errors import Problem
from logdir.paths import TEMPORARY

LOG: Final = logging.getLogger("logdir.daemon")
SLUG: Final = "metrics-unwritten"
EVERY_MS: Final = 15 * 1000
"""Time between two writings."""
SILENT_MS: Final = 60 * 1000
"""How long one writing may take before the status says that it hangs."""
_MODE: Final = 0o644
_BEGINS: Final = b"# HELP logdird_"
"""How each file of ours begins."""
_EXPECTED: Final = "a file of metrics that can be written"


class Textfile:
    """Writes the metrics of one daemon to a file, while there is a path for it."""

    def __init__(
        self, text: Callable[[], bytes], failed: Callable[[Problem], None], *, every_ms: int = EVERY_MS
    ) -> None:
        """Make one without a path; its thread starts with the first path.

        Args:
            text: Returns the metrics; it never waits.
            failed: Called from the thread with each problem that is another one than the last.
            every_ms: Time between two writings.
        """
        self._text, self._failed, self._every_ms = text, failed, every_ms
        self._changed = threading.Condition()
        self._path: str | None = None
        """Where to write; ``None``: nowhere."""
        self._is_asked = False
        """Whether it is to be written at once."""
        self._written: str | None = None
        """Where it was written last, and not removed since."""
        self._begun_ms: int | None = None
        """Since when a writing goes on (monotonic clock); ``None``: none does."""
        self._problem: Problem | None = None
        self._is_closing = False
        self._thread: threading.Thread | None = None

    def write_to(self, path: str | None) -> None:
        """Write there from now on, at once for the first time; remove what was written elsewhere. Returns at once.

        Args:
            path: An absolute path; ``None``: nothing is written.
        """
        with self._changed:
            self._path, self._is_asked = path, True
            if self._thread is None and path is not None:
                thread = threading.Thread(target=self._run, name="textfile", daemon=True)
                with suppress(RuntimeError):  # No more threads can be started: the next path tries again.
                    thread.start()
                    self._thread = thread
            self._changed.notify_all()

    def problems(self) -> tuple[Problem, ...]:
        """Return why the file is not written now, if it is not."""
        with self._changed:
            path, begun_ms, problem = self._path, self._begun_ms, self._problem
        if path is not None and begun_ms is not None and clock.monotonic_ms() - begun_ms > SILENT_MS:
            fix = "check the disk that it lies on, or name another path in metrics.textfile, then restart logdird"
            return (Problem(SLUG, path, _EXPECTED, f"no answer of its disk for {SILENT_MS // 1000} s", fix),)
        return () if problem is None else (problem,)

    def close(self, timeout_s: float) -> bool:
        """Remove the file, and end; return whether that took no longer than ``timeout_s``."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is None:
            return True
        thread.join(timeout_s)
        return not thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                path = None if self._is_closing else self._path
                self._begun_ms, self._is_asked = clock.monotonic_ms(), False
            if self._written is not None and self._written != path:
                _remove(self._written)
                self._written = None
            problem = None if path is None else self._write(path)
            with self._changed:
                self._begun_ms = None
                if self._is_closing and self._written is None:
                    return
                is_new, self._problem = problem is not None and problem != self._problem, problem
            if is_new and problem is not None:
                LOG.error("metrics.unwritten %s", problem.line())
                self._failed(problem)
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing or self._is_asked, self._every_ms / 1000)

    def _write(self, path: str) -> Problem | None:
        """Write the file once; return why it could not be written."""
        try:
            if (stranger := _stranger(path)) is not None:
                return stranger
            _replace(path, self._text())
            self._written = path
        except OSError as error:
            fix = "make room, or let the owner of the log dirs write there; or name another path in metrics.textfile"
            return Problem(SLUG, path, _EXPECTED, error.strerror or str(error), fix)
        except Exception as error:  # If the thread ended, the file would stay as it is until a restart.
            LOG.exception("metrics.fault")
            found = f"{type(error).__name__}: {error}"
            return Problem(SLUG, path, "metrics that can be collected", found, "report this line")
        return None


def _stranger(path: str) -> Problem | None:
    """Return the problem that something else than a file of ours lies there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        data = os.read(descriptor, len(_BEGINS)) if is_file else None
    finally:
        os.close(descriptor)
    if data in (b"", _BEGINS):
        return None
    fix = "move it away, or name another path in metrics.textfile"
    return Problem(SLUG, path, "no file, or one that logdird wrote", "another file", fix)


def _replace(path: str, data: bytes) -> None:
    """Write a file under another name, which no exporter reads, and rename it. Raises ``OSError``."""
    new = f"{path}{TEMPORARY}"
    with suppress(FileNotFoundError):
        Path(new).unlink()  # Of a daemon that was killed.
    # The name is new: what others have put in its place is not followed, and not written into.
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), _MODE)
        Path(new).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(new).unlink()
        raise


def _remove(path: str) -> None:
    with suppress(OSError):
        Path(path).unlink()
