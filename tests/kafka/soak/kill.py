"""Kills processes amid an operation: waits for the first changes, stops them, looks, and kills or lets them go on.

What is in progress is told from the names on the disks alone: every process of the daemon stands still meanwhile.

Not here: what is done (``rounds``), and what must hold afterwards (``model``).
"""

from __future__ import annotations

import os
import random
import select
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from logdir.errors import LogDirError
from logdir.service.report.exit_status import AnsweredError
from tests.kafka.client import ClientError
from tests.kafka.soak.disk import MARKER, NEW_MARKER, work_of
from tests.soak.watch import Watch

IDLE: Final = "nothing in progress"
_END_SECONDS: Final = 30
_CHANGES: Final = {"capture": 50, "purge": 25, "stage": 12, "restore": 8, "adopt": 40, "hold": 3}
"""A kill comes after one change of an operation, or after so many at most."""
_STOP_S: Final = 1.0
_CALM_S: Final = 0.25
"""After so long without a change an operation is over."""


class Doing(NamedTuple):
    """What the daemon was given to do: a request, or to follow a broker."""

    kind: str
    """``capture``, ``purge``, ``stage``, ``restore``, ``adopt``, ``hold``."""
    keys: tuple[str, ...]
    """Topic ids and partitions it is about, as names below ``deleting/``."""
    names: tuple[str, ...] = ()
    """Live names it is about."""
    made: tuple[str, ...] = ()
    """Names below ``incoming/`` that an adoption makes, without their marks."""


def in_progress(log_dirs: Sequence[Path], doing: Doing) -> str:
    """Return what has begun and has not ended, by the names on the disks; ``IDLE`` if nothing has."""
    live: set[str] = set()
    staged: set[str] = set()
    incoming: set[str] = set()
    for log_dir in log_dirs:
        live.update(os.listdir(log_dir))
        staged.update(os.listdir(f"{work_of(log_dir)}/deleting"))
        incoming.update(os.listdir(f"{work_of(log_dir)}/incoming"))
    incoming = {name for name in incoming if name != "probe"}
    purging = {name for name in staged if name.endswith(".purging")}
    # Others may be captured, and what is due be purged, while topics are adopted.
    if doing.kind == "adopt" and (_heads(incoming) & set(doing.made) or _heads(purging) & set(doing.keys)):
        return "adopt"
    if purging:
        return "claim-remove"
    if incoming:
        return "capture"
    if doing.kind in ("stage", "restore", "adopt"):
        tops = (log_dir / name / MARKER for log_dir in log_dirs for name in doing.names)
        if any(path.exists() for path in tops):
            return doing.kind
    if doing.kind != "hold" and _is_part(doing.keys, staged):
        return f"{doing.kind}, between two replicas"
    if doing.kind == "hold" and any(_has_new_marker(log_dir, doing.keys) for log_dir in log_dirs):
        return "hold"
    return IDLE


def _heads(names: Collection[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def _is_part(keys: Collection[str], staged: Collection[str]) -> bool:
    """Whether some of these are staged and others are not."""
    there = _heads(staged) & set(keys)
    return 0 < len(there) < len(set(keys))


def _has_new_marker(log_dir: Path, keys: Collection[str]) -> bool:
    return any(Path(work_of(log_dir), "deleting", key, NEW_MARKER).exists() for key in keys)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, of all its threads."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def is_watch(pid: int) -> bool:
    """Whether a process of the daemon is one that watches a log dir."""
    try:
        return b"worker.watch" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@contextmanager
def ends(pids: Sequence[int]) -> Iterator[Callable[[], list[int]]]:
    """Take hold of processes; yield what waits for their end and returns those that do not come to it."""
    held: dict[int, int] = {}
    for pid in pids:
        with suppress(ProcessLookupError):
            held[pid] = os.pidfd_open(pid)

    def left() -> list[int]:
        until = time.monotonic() + _END_SECONDS
        found = []
        for pid, descriptor in held.items():
            if not select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
                found.append(pid)
        return found

    try:
        yield left
    finally:
        for descriptor in held.values():
            os.close(descriptor)


def _is_moving(pid: int) -> bool:
    """Whether a process does not stand still yet: a signal arrives when the call in progress returns."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] not in b"TtZX"
    except OSError:
        return False


@contextmanager
def standing_still(pids: Sequence[int]) -> Iterator[None]:
    """Stop processes, and let those that still live go on at the end."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    until = time.monotonic() + _STOP_S
    while any(map(_is_moving, pids)) and time.monotonic() < until:
        time.sleep(0.0005)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


class Task(threading.Thread):
    """Something that runs beside the aiming; what it raises is kept."""

    def __init__(self, run: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._do = run
        self.answer: object = None

    def run(self) -> None:
        """Do it."""
        try:
            self.answer = self._do()
        except (LogDirError, AnsweredError, ClientError, OSError) as error:
            self.answer = error


class Aim:
    """Waits for a good moment and kills then."""

    def __init__(self, log_dirs: Sequence[Path], draw: random.Random) -> None:
        self._log_dirs, self._draw = log_dirs, draw

    def _tops(self, doing: Doing) -> list[Path]:
        tops = [Path(work_of(log_dir), name) for log_dir in self._log_dirs for name in ("deleting", "incoming")]
        live = (log_dir / name for log_dir in self._log_dirs for name in doing.names)
        return [*tops, *filter(Path.is_dir, live)]

    def kill(
        self,
        doing: Doing,
        task: Task,
        processes: Callable[[], list[int]],
        victim: Callable[[], int | None],
        *,
        seconds: float,
        is_aimed: bool = True,
    ) -> str:
        """Begin something and kill a process amid it, or a while after it.

        Args:
            doing: What begins.
            task: Begins it, and is alive for as long as it is certainly not over.
            processes: The daemon and all it has started.
            victim: The process to kill; ``None``: the one that was meant does not live, and the first of all does.
            seconds: How long to wait for something to be in progress.
            is_aimed: Whether to wait for that at all; else the kill comes at the end of ``seconds``.

        Returns:
            What was in progress when it was killed.
        """
        watch = Watch(self._tops(doing))
        try:
            task.start()
            return self._wait(watch, doing, task, processes, victim, time.monotonic() + seconds, is_aimed=is_aimed)
        finally:
            watch.close()

    def _wait(
        self,
        watch: Watch,
        doing: Doing,
        task: Task,
        processes: Callable[[], list[int]],
        victim: Callable[[], int | None],
        until: float,
        *,
        is_aimed: bool,
    ) -> str:
        wanted, changes = self._draw.randint(1, _CHANGES[doing.kind]), 0
        while True:
            is_over = time.monotonic() > until
            pause = _CALM_S if changes else 0.1
            ready, _, _ = select.select([watch.descriptor], [], [], 0.0 if is_over else pause)
            changes += watch.count() if ready else 0
            is_calm = bool(changes) and not ready and not task.is_alive()
            if not is_over and (not is_aimed or (changes < wanted and not is_calm)):
                continue
            pids = processes()
            with standing_still(pids):
                what = in_progress(self._log_dirs, doing)
                if what != IDLE or is_over or is_calm:
                    target = victim()
                    with suppress(ProcessLookupError):
                        os.kill(pids[0] if target is None else target, signal.SIGKILL)
                    return what
            wanted = changes + self._draw.randint(1, 4)
