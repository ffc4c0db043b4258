"""The watch processes of a broker's log dirs, and the thread that reads their hints.

A log dir without a watch is swept like the others, so its deletions are found, only later. Its watch is tried again
every 30 seconds: a kernel that has no inotify instance left may have one then.

Not here: the process itself (``worker.watch``), the sweeps (``work``).

Spec: design §5; libraries §3.
"""

from __future__ import annotations

import logging
import os
import select
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from logdir import clock
from logdir.daemon.report.status import LogDirStatus
from logdir.daemon.state import LogDirState
from logdir.errors import Problem
from logdir.worker.watch import FAILED, READY, Watch, start_watch

LOG: Final = logging.getLogger(__name__)
SLUG: Final = "log-dir-not-watched"
_AGAIN_MS: Final = 30 * 1000
"""When a watch that ended is started again."""
_LEAVE_MS: Final = 2 * 1000
"""Longest wait for the end of watches that are left."""
_LEAVE_STEP_S: Final = 0.02
_AFTER_FAULT_S: Final = 1.0


class Watches:
    """Keeps one watch process for each log dir, and calls back at every hint."""

    def __init__(self, log_dirs: Sequence[str], hint: Callable[[], None]) -> None:
        """Take the log dirs; nothing is started yet.

        Args:
            log_dirs: Paths as configured.
            hint: Called from the thread of the watches; returns at once.
        """
        self.log_dirs = tuple(log_dirs)
        self._hint = hint
        self._watches: dict[str, Watch] = {}
        self._next_ms = dict.fromkeys(self.log_dirs, 0)
        self._is_stopping = threading.Event()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        """Readable once the thread is to look what has changed."""
        self._lock = threading.Lock()
        """Nothing is written to ``_wake`` after the stop: its number may be that of another file once it is closed."""
        self._thread = threading.Thread(target=self._run, name="watches", daemon=True)
        self._left: frozenset[str] = frozenset()
        self.failed: dict[str, str] = {}
        """Log dirs without a watch, and why: there only the sweep finds deletions."""

    def start(self) -> None:
        """Start the thread, and with it the processes."""
        self._thread.start()

    def failures(self) -> dict[str, str]:
        """Return the log dirs without a watch, and why; may be called from any thread."""
        return dict(self.failed)

    def leave(self, log_dirs: Collection[str]) -> None:
        """Watch all but these log dirs from now on; return once their processes have ended, or after two seconds."""
        self._left = frozenset(log_dirs)
        with self._lock:
            if not self._is_stopping.is_set():
                os.eventfd_write(self._wake, 1)
        until_ms = clock.monotonic_ms() + _LEAVE_MS
        while any(log_dir in self._watches for log_dir in log_dirs) and clock.monotonic_ms() < until_ms:
            self._is_stopping.wait(_LEAVE_STEP_S)

    def stop(self) -> None:
        """End every process; a second call does nothing."""
        with self._lock:
            if self._is_stopping.is_set():
                return
            self._is_stopping.set()
            os.eventfd_write(self._wake, 1)
        self._thread.join()
        os.close(self._wake)

    def _run(self) -> None:
        # The kernel ends a watch process with the thread that started it.
        try:
            while not self._is_stopping.is_set():
                try:
                    self._serve()
                except Exception:  # If the thread ended, only the sweep would find deletions until a restart.
                    LOG.exception("watches.fault")
                    self._is_stopping.wait(_AFTER_FAULT_S)
        finally:
            for watch in self._watches.values():
                watch.close()
            self._watches = {}

    def _serve(self) -> None:
        """Wait for hints and for what is to be done about the watches, and do it."""
        self._end_left()
        self._start_missing()
        poll = select.poll()
        by_number = {watch.connection.fileno(): watch for watch in self._watches.values()}
        for number in (self._wake, *by_number):
            poll.register(number, select.POLLIN)
        for number, _ in poll.poll(self._patience_ms()):
            if number in by_number:
                self._read(by_number[number])
            else:
                os.eventfd_read(self._wake)

    def _patience_ms(self) -> int | None:
        """Return how long nothing is to be started; ``None``: every log dir has its watch."""
        missing = [self._next_ms[one] for one in self.log_dirs if one not in self._watches and one not in self._left]
        return max(0, min(missing) - clock.monotonic_ms()) if missing else None

    def _end_left(self) -> None:
        for log_dir in self._left:
            self.failed.pop(log_dir, None)
        for log_dir in self._left & self._watches.keys():
            self._watches[log_dir].close()
            del self._watches[log_dir]
            self._next_ms[log_dir] = 0

    def _start_missing(self) -> None:
        now_ms = clock.monotonic_ms()
        for log_dir in self.log_dirs:
            if log_dir in self._watches or log_dir in self._left or now_ms < self._next_ms[log_dir]:
                continue
            self._next_ms[log_dir] = now_ms + _AGAIN_MS
            try:
                self._watches[log_dir] = start_watch(log_dir)
            except OSError as error:
                self._fail(log_dir, error.strerror or str(error))

    def _fail(self, log_dir: str, why: str) -> None:
        if self.failed.get(log_dir) != why:
            self.failed[log_dir] = why
            LOG.warning("watch.failed log_dir=%s %s; deletions are found by the sweep alone", log_dir, why)

    def _read(self, watch: Watch) -> None:
        data = watch.read()
        if data is None or data.startswith(FAILED):
            self._fail(watch.log_dir, "it ended" if data is None else data[1:].decode(errors="replace"))
            del self._watches[watch.log_dir]
            watch.close()
            return
        if data.startswith(READY) and self.failed.pop(watch.log_dir, None) is not None:
            LOG.info("watch.restored log_dir=%s", watch.log_dir)
        # A watch that was just set has missed what came before it.
        self._hint()


def shown(
    log_dirs: Sequence[LogDirStatus], failed: Mapping[str, str], sweep_ms: int
) -> tuple[tuple[LogDirStatus, ...], tuple[Problem, ...]]:
    """Return the status of log dirs with whether each is watched, and a problem for each that is not.

    A log dir that cannot be read, or does not answer, has no watch either; that it is so is said already.

    Args:
        log_dirs: Their status.
        failed: Log dirs without a watch, and why.
        sweep_ms: Longest time between two sweeps.
    """
    problems = tuple(
        _not_watched(one.log_dir, failed[one.log_dir], sweep_ms)
        for one in log_dirs
        if one.log_dir in failed and one.state not in (LogDirState.OFFLINE, LogDirState.SUSPECT)
    )
    return tuple(replace(one, is_watched=one.log_dir not in failed) for one in log_dirs), problems


def _not_watched(log_dir: str, why: str, sweep_ms: int) -> Problem:
    return Problem(
        SLUG,
        log_dir,
        "a watch that shows deletions at once",
        why,
        f"deletions are found by the sweep alone, every {sweep_ms / 1000:g} s at the latest; if the kernel has no "
        "inotify instance left, raise fs.inotify.max_user_instances: the watch is tried again every 30 s",
    )
