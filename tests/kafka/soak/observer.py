"""Watches the staged directories all the time: which came, with what deadline, and which went before it.

A deadline is judged twice: by the marker of the product, and by what the test asked for and its own clock.

Spec: design §3.3.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.kafka.soak.disk import MARKER, work_of

_PAUSE_S: Final = 0.03
_READ_MS: Final = 20
"""By how much two readings of the clocks within one instant of the product may part."""


class _Asked(NamedTuple):
    """A removal that the test asked for."""

    boottime_ms: int
    """Before it was asked for, and before its copy was begun: nothing of it is staged earlier."""
    delay_ms: int | None
    """How long what it removes is kept; ``None``: until somebody asks for it."""
    is_captured: bool
    """Whether what it removes is captured: a copy is begun in ``incoming/``, and it is staged after that."""


class _Seen(NamedTuple):
    """A staged directory as it was seen last."""

    mtime_ns: int
    staged_at_ms: int | None
    delay_ms: int | None
    asked: _Asked | None
    """The last removal of its topic id as it was seen first; ``None``: nobody asked for one."""


class Observer:
    """Lists ``deleting/`` of every work root some thirty times a second."""

    def __init__(self, log_dirs: Sequence[Path]) -> None:
        self._tops = [f"{work_of(log_dir)}/deleting" for log_dir in log_dirs]
        self._incoming = [f"{work_of(log_dir)}/incoming" for log_dir in log_dirs]
        self._staged: dict[str, _Seen] = {}
        self._known: set[str] = set()
        self._early: list[str] = []
        self._asked: dict[str, _Asked] = {}
        """By topic id."""
        self._begun: dict[str, int] = {}
        """When a copy of a topic id and partition was begun, at the earliest: it was not there yet (boot time)."""
        self._looked_ms = _boottime_ms()
        """When the last look began."""
        self._let_go: set[str] = set()
        self._kept_again: set[str] = set()
        self._lock = threading.Lock()
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observer", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; returns once it has."""
        self._is_stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def expect(self, topic_id: str, delay_ms: int | None, *, is_captured: bool = False) -> None:
        """Expect what is staged of a topic id from now on; call it before its removal is asked for.

        Args:
            topic_id: Of a topic that is about to be deleted, staged, or replaced.
            delay_ms: How long what is staged of it is kept; ``None``: until somebody asks for it.
            is_captured: Whether it is captured, for it is deleted.
        """
        with self._lock:
            self._asked[topic_id] = _Asked(_boottime_ms(), delay_ms, is_captured)
            self._begun = {key: at_ms for key, at_ms in self._begun.items() if _topic_id(key) != topic_id}

    def let_go(self, keys: Sequence[str]) -> None:
        """Expect that these leave ``deleting/`` from now on: an operator asked for it."""
        with self._lock:
            self._let_go.update(keys)
            self._kept_again.difference_update(keys)

    def keep(self, keys: Sequence[str]) -> None:
        """Expect that these stay until they are due, once a look that begins later has seen which are still there."""
        with self._lock:
            self._kept_again.update(keys)

    def has_seen(self, key: str) -> bool:
        """Whether a topic id and partition was ever seen staged."""
        with self._lock:
            return key in self._known

    def early(self) -> list[str]:
        """Return what was staged unasked, or went before its deadline, since the last call, one line each."""
        with self._lock:
            early, self._early = self._early, []
        return early

    def next_due_ms(self) -> int | None:
        """Return the earliest deadline of all that is staged."""
        with self._lock:
            staged = tuple(self._staged.values())
        due = [one.staged_at_ms + one.delay_ms for one in staged if one.delay_ms is not None and one.staged_at_ms]
        return min(due, default=None)

    def _run(self) -> None:
        while not self._is_stopping.wait(_PAUSE_S):
            self.look()

    def look(self) -> None:
        """List once, and judge what went since the last time."""
        found: dict[str, _Seen] = {}
        looked_ms, self._looked_ms = self._looked_ms, _boottime_ms()
        # Before what is staged: a copy that moves on meanwhile is seen there.
        begun = {_key(name) for top in self._incoming for name in os.listdir(top)}
        with self._lock:
            kept_again = self._kept_again.copy()
            for key in begun:
                self._begun.setdefault(key, looked_ms)
        for top in self._tops:
            for entry in os.scandir(top):
                if entry.name == "probe" or entry.name.endswith(".purging"):
                    continue
                before = self._staged.get(entry.path)
                try:
                    mtime_ns = entry.stat().st_mtime_ns
                    if before is not None and before.mtime_ns == mtime_ns:
                        found[entry.path] = before
                        continue
                    marker = json.loads(Path(entry.path, MARKER).read_bytes())
                except (FileNotFoundError, ValueError):
                    continue  # It goes right now: it is judged by what was seen before.
                asked = self._asked_of(entry.path, looked_ms) if before is None else before.asked
                found[entry.path] = _Seen(mtime_ns, marker["staged_at_ms"], marker["delay_ms"], asked)
        # Later than every listing: what is missing then went before it.
        at_ms, boottime_ms = time.time_ns() // 1_000_000, _boottime_ms()
        with self._lock:
            for path, before in self._staged.items():
                if path not in found and _key(path) not in self._let_go:
                    self._judge(path, before, at_ms)
                    self._judge_asked(path, before.asked, boottime_ms)
            self._let_go -= kept_again & self._kept_again
            self._kept_again -= kept_again
            self._staged = found
            self._known.update(_key(path) for path in found)

    def _asked_of(self, path: str, looked_ms: int) -> _Asked | None:
        """Return the removal that a directory was staged for, as it is seen for the first time.

        Args:
            path: The directory.
            looked_ms: When the last look began, which did not see it (boot time).
        """
        with self._lock:
            asked = self._asked.get(_topic_id(_key(path)))
            if asked is None:
                self._early.append(f"unasked: {path} was staged, and nobody asked for its removal")
            elif asked.is_captured:
                begun_ms = self._begun.setdefault(_key(path), looked_ms)
                return asked._replace(boottime_ms=max(asked.boottime_ms, begun_ms))
            return asked

    def _judge_asked(self, path: str, asked: _Asked | None, boottime_ms: int) -> None:
        """Judge what went by the test's own clock: whatever its marker said."""
        if asked is None:
            return
        if asked.delay_ms is None:
            self._early.append(f"early: {path} was to be kept until somebody asks, and went")
        elif (left := asked.boottime_ms + asked.delay_ms - boottime_ms) > _READ_MS:
            self._early.append(f"early: {path} went {left} ms before its delay had passed by the clock of the test")

    def _judge(self, path: str, seen: _Seen, at_ms: int) -> None:
        if seen.staged_at_ms is None:
            return
        if seen.delay_ms is None:
            self._early.append(f"early: {path} was held, and went")
        elif at_ms + _READ_MS < seen.staged_at_ms + seen.delay_ms:
            left = seen.staged_at_ms + seen.delay_ms - at_ms
            self._early.append(f"early: {path} went {left} ms before its deadline")


def _boottime_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def _topic_id(key: str) -> str:
    return key.rpartition("_")[0]


def _key(path: str) -> str:
    return os.path.basename(path).partition(".")[0]
