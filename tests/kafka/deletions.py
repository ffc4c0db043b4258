"""Deleting topics by the hundred beside a daemon that is held up, and what each of its hold-ups hit.

What was hit is counted from the names on the disks: directories that a broker had renamed, and that were not captured,
while the daemon got no hint, while a worker stood still, and while no daemon ran.

Not here: that all of them are captured in the end (the test).

Spec: design §3.3, §5; kafka-behaviour §3.2; attacks A17.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from tests.kafka.daemon_rig import work_root
from tests.kafka.rig import Broker, Rig, await_true
from tests.logdir.daemon.rig import Process

LATE_S: Final = 1.5
"""How long a worker stands still: at a delete delay of 5 s its broker removes nothing by then."""
BATCH: Final = 4
"""Topics of one request to delete."""


class Call(NamedTuple):
    """A call that deleted topics, on the monotonic clock."""

    began: float
    ended: float
    directories: int


def most_within(calls: Collection[Call], seconds: float) -> int:
    """Return how many partition directories were deleted, at most, by calls that lie within so many seconds."""
    return max(
        sum(one.directories for one in calls if first.began <= one.began and one.ended <= first.began + seconds)
        for first in calls
    )


def timed(call: Callable[[], object], directories: int) -> Call:
    """Make a call that deletes so many partition directories."""
    began = time.monotonic()
    call()
    return Call(began, time.monotonic(), directories)


def uncaptured(log_dirs: Collection[Path], ids: Mapping[str, str]) -> set[str]:
    """Return what a broker has renamed and no daemon has captured so far, as names below ``deleting/``.

    Args:
        log_dirs: Where.
        ids: Name to topic id.
    """
    found = set()
    for log_dir in log_dirs:
        # In this order: what is captured in between counts as captured.
        names = [name.partition(".")[0] for name in os.listdir(log_dir) if name.endswith("-delete")]
        captured = set(os.listdir(work_root(log_dir) / "deleting"))
        keys = {f"{ids[topic]}_{partition}" for topic, _, partition in (name.rpartition("-") for name in names)}
        found |= keys - captured
    return found


def worker_of(daemon: Process, log_dir: Path) -> int:
    """Return the process that works on a log dir: it alone has the log dir open, and is no watch."""
    for pid in set(daemon.children()) - set(daemon.watches()):
        if log_dir in open_paths(pid):
            return pid
    raise AssertionError(f"no worker has {log_dir} open")


def open_paths(pid: int) -> set[Path]:
    """Return what a process has open, also while it closes some of it; nothing if it has ended."""
    found = set()
    with suppress(FileNotFoundError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.add(entry.readlink())
    return found


@contextmanager
def no_hints(daemon: Process, log_dirs: int) -> Iterator[None]:
    """Let no hint reach the daemon in this block, and none of what happened in it afterwards, either.

    The watches stand still, and are killed at the end: what the kernel has queued for them goes with them.
    """
    await_true("every log dir has its watch", lambda: len(daemon.watches()) == log_dirs, timeout_seconds=60)
    pids = daemon.watches()
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        await_true("they stand still", lambda: all(is_still(pid) for pid in pids))
        yield
        assert all(is_still(pid) for pid in pids)
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    await_true("they have ended", lambda: not set(pids) & set(daemon.watches()))


def is_still(pid: int) -> bool:
    """Whether a process is stopped by a signal."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@dataclass(slots=True)
class Deleted:
    """What was deleted, and what the hold-ups hit."""

    calls: list[Call] = field(default_factory=list)
    late: frozenset[str] = frozenset()
    """What a worker that stood still had to capture when it went on, and has captured soon after."""
    by_start: frozenset[str] = frozenset()
    """What lay uncaptured when a daemon was started."""


class Deletions:
    """Deletes topics beside a daemon."""

    def __init__(self, rig: Rig, broker: Broker, daemon: Process, ids: Mapping[str, str]) -> None:
        """Take the cluster, one broker of it, its daemon, and every topic's id by its name."""
        self._rig, self._broker, self._daemon, self._ids = rig, broker, daemon, ids

    def run(self, topics: Sequence[str], by_tool: Sequence[str], partitions: int, *, down_s: float | None) -> Deleted:
        """Delete topics, some with the stock tool, while the daemon is held up. Blocks until the daemon runs again.

        A worker stands still for the second quarter; then the watches are killed; for the last quarter, and beyond,
        there is no daemon.

        Args:
            topics: Deleted by requests, several in each.
            by_tool: Deleted by the stock tool meanwhile.
            partitions: Of each topic.
            down_s: How long no daemon runs; ``None``: it is not killed.
        """
        done = Deleted()
        batches = [topics[at : at + BATCH] for at in range(0, len(topics), BATCH)]
        assert len(batches) >= 4
        quarter = len(batches) // 4
        with ThreadPoolExecutor() as pool:
            tool = pool.submit(timed, lambda: self._type(by_tool), len(by_tool) * partitions)
            worker, late, back = 0, None, None
            for number, batch in enumerate(batches):
                if number == quarter:
                    worker = worker_of(self._daemon, self._late)
                    os.kill(worker, signal.SIGSTOP)
                    late = pool.submit(self._go_on, worker)
                if number == 2 * quarter and late is not None:
                    done.late = self._captured_by(worker, late.result())
                    for pid in self._daemon.watches():
                        with suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                if number == 3 * quarter and down_s is not None:
                    self._daemon.stop(signal.SIGKILL)
                    back = pool.submit(self._start, down_s)
                done.calls.append(timed(lambda: self._rig.client.delete(*batch), len(batch) * partitions))  # noqa: B023
            done.calls.append(tool.result())
            if back is not None:
                done.by_start = back.result()
                await_true("the daemon runs again", lambda: self._daemon.state() == "RUNNING", timeout_seconds=60)
        return done

    @property
    def _late(self) -> Path:
        """The log dir whose worker stands still."""
        return self._broker.log_dirs[0]

    def _captured_by(self, worker: int, waiting: frozenset[str]) -> frozenset[str]:
        """Wait until a worker that goes on has captured something of what it had to; return that."""
        found: set[str] = set()

        def is_some() -> bool:
            found.update(waiting - uncaptured([self._late], self._ids))
            return bool(found) or not waiting

        await_true("a worker that stood still captures what it had to", is_some)
        assert worker_of(self._daemon, self._late) == worker, "another worker took its place"
        return frozenset(found)

    def _type(self, topics: Sequence[str]) -> None:
        words = ("--bootstrap-server", self._broker.address, "--delete", "--topic", "|".join(topics))
        self._broker.tool("org.apache.kafka.tools.TopicCommand", *words)

    def _go_on(self, pid: int) -> frozenset[str]:
        """Let a worker go on after a while; return what it had to capture."""
        try:
            time.sleep(LATE_S)
            assert is_still(pid)
            return frozenset(uncaptured([self._late], self._ids))
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _start(self, down_s: float) -> frozenset[str]:
        """Start the daemon after a while; return what it had to capture."""
        time.sleep(down_s)
        waiting = frozenset(uncaptured(self._broker.log_dirs, self._ids))
        self._daemon.start(is_awaited=False)
        return waiting
