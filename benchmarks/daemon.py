"""The daemon of a broker of twelve log dirs and 20,000 partitions: start, memory, captures, status, idle time.

``python -m benchmarks.daemon [--dir DIR] [--partitions N] [--deleted N] [--idle SECONDS]``

The log dirs hold 20 files a partition on the disks that a capture works on, and few elsewhere. Figures, not ratios:
they hold on a quiet machine only. A capture is timed from the rename to the answer of the status, after it.

Spec: design §10 rows "supervisor / worker memory", "start of the daemon"; baselines §6.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.measure import HOME
from benchmarks.trees import META, make_log_dir
from benchmarks.unsynced import default_dir, opened
from logdir.daemon.report.status import StatusResult
from logdir.daemon.socket import client
from logdir.disk.kernel.host import HostDisk
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.replica.capture import capture
from logdir.disk.replica.capture_item import CaptureItem
from logdir.disk.root.init import init
from logdir.disk.root.plan import plan_init
from logdir.errors import LogDirError
from logdir.worker.operations import CAPTURED_AT_ONCE

LOG_DIRS, PARTITIONS, DELETED, IDLE_S = 12, 20_000, 1_000, 60
_CODE = "import sys; from tools.entry import logdird; sys.exit(logdird())"
_UNIQUE = "0123456789abcdef0123456789abcdef"
_PATIENCE_S = 300
_ALL_THREADS = 2


def make(work: Path, partitions: int, full: int) -> list[Path]:
    """Make the log dirs: of the first disk ``full`` partitions of 30 files, of the others small ones."""
    tops = [work / f"d{number + 1}" for number in range(LOG_DIRS)]
    make_log_dir(str(tops[0]), partitions=full, disk=1)
    each = (partitions - full) // (LOG_DIRS - 1)
    for number, top in enumerate(tops[1:], start=1):
        top.mkdir()
        (top / "meta.properties").write_text(META.format(node=1, disk=f"{number + 10}"))
        for index in range(each):
            path = top / f"small-{number}-{index // 40:04}-{index % 40}"
            path.mkdir()
            text = f"eXOy6xj-Q8iv{number:02}{index // 40:06}kw"
            (path / "partition.metadata").write_bytes(f"version: 0\ntopic_id: {text}".encode())
            (path / f"{0:020}.log").write_bytes(bytes(100))
    for top in tops:
        init(HostDisk(), plan_init(HostDisk(), str(top), fs_type="ext4", unsupported_fs=True), made_at_ms=0)
    (work / "server.properties").write_text(f"broker.id=1\nlog.dirs={','.join(map(str, tops))}\n")
    (work / "b1.yaml").write_text(
        "server.properties: server.properties\nstate.dir: state\nsocket: s.sock\nstaged.min.free: 1\n"
        "auto.while.stopped: true\n"
    )
    return tops


class Daemon:
    """A daemon that is measured."""

    def __init__(self, work: Path) -> None:
        self.socket = str(work / "s.sock")
        with open(work / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _CODE, "--config", str(work / "b1.yaml")], cwd=HOME, stderr=log
            )

    def status(self) -> StatusResult | None:
        try:
            return client.status(self.socket)
        except LogDirError:
            return None

    def until(self, captured: int | None, poll_s: float = 0.001) -> float:
        """Return the seconds until it runs, or has captured so many; each question costs it time."""
        began = time.perf_counter()
        while True:
            if self.process.poll() is not None:
                raise SystemExit(f"the daemon ended with {self.process.returncode}")
            if time.perf_counter() - began > _PATIENCE_S:
                raise SystemExit(f"not there after {_PATIENCE_S} s: {self.status()}")
            found = self.status()
            if found is not None and found.state == "RUNNING" and (captured is None or found.captured >= captured):
                return time.perf_counter() - began
            time.sleep(poll_s)

    def processes(self) -> dict[int, str]:
        """Return every process by its part."""
        found = {self.process.pid: "supervisor"}
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            children: list[str] = []
            with suppress(FileNotFoundError):  # The thread of a request ends with it.
                children = (task / "children").read_text().split()
            for pid in map(int, children):
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                found[pid] = "watch" if b"worker.watch" in line else "worker"
        return found

    def cpu_seconds(self) -> float:
        """Return what all its threads have used, those that ended, too; to the nanosecond: ticks are too coarse."""
        # The CPU clock of another process, as clock_getcpuclockid() returns it.
        return sum(time.clock_gettime((~pid << 3) | _ALL_THREADS) for pid in self.processes())


def memory(pid: int, what: str) -> float:
    """Return megabytes: ``Rss`` or ``Pss``."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{what}:")) / 1024


@contextmanager
def started(work: Path) -> Iterator[Daemon]:
    """Start it, and end it."""
    daemon = Daemon(work)
    try:
        yield daemon
    finally:
        daemon.process.terminate()
        daemon.process.wait(60)


def delete(paths: list[Path]) -> None:
    """Rename partitions as a broker does."""
    for path in paths:
        path.rename(path.with_name(f"{path.name}.{_UNIQUE}-delete"))


def captures(log_dir: Path, paths: list[Path]) -> list[float]:
    """Capture directories one after the other, without a daemon; return the milliseconds of each."""
    delete(paths)
    times = []
    with opened(HostDisk(), [str(log_dir)]) as (open_dir,):
        for path in paths:
            item = CaptureItem(name=f"{path.name}.{_UNIQUE}-delete", delay_ms=0)
            began = time.perf_counter()
            (outcome,) = capture(open_dir, [item], read_instant)
            times.append(1000 * (time.perf_counter() - began))
            if outcome.error is not None:
                raise SystemExit(outcome.error.problem().line())
    return times


def bare(folder: Path, paths: list[Path]) -> float:
    """Return the seconds that a capture of directories takes of the kernel: its links, syncs and renames alone."""
    incoming, deleting = folder / "incoming", folder / "deleting"
    for made in (incoming, deleting):
        made.mkdir(parents=True)

    def sync(path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    def mark(top: Path) -> None:
        (top / "new").write_bytes(bytes(600))
        sync(top / "new")
        (top / "new").rename(top / "replica.json")
        sync(top)

    def link(path: Path) -> None:
        top = incoming / path.name
        top.mkdir()
        mark(top)
        for entry in path.iterdir():
            os.link(entry, top / entry.name)

    def keep(path: Path) -> None:
        top = incoming / path.name
        for entry in path.iterdir():
            sync(top / entry.name)
        mark(top)
        top.rename(deleting / path.name)
        sync(deleting)
        sync(incoming)

    began = time.perf_counter()
    with ThreadPoolExecutor(CAPTURED_AT_ONCE) as pool:
        for part in (link, keep):
            list(pool.map(part, paths))
    return time.perf_counter() - began


def measure(home: str, partitions: int = PARTITIONS, deleted: int = DELETED, idle_s: int = IDLE_S) -> str:
    """Return the figures as a Markdown table."""
    rows: list[tuple[str, str, str, bool | None]] = []

    def note(what: str, value: float, unit: str, budget: float | None) -> None:
        verdict = None if budget is None else value <= budget
        rows.append((what, f"{value:,.2f} {unit}", "-" if budget is None else f"≤ {budget:g} {unit}", verdict))

    singles = 11
    with tempfile.TemporaryDirectory(prefix="logdird-bench-", dir=home) as name:
        work = Path(name)
        tops = make(work, partitions, full=2 * deleted + 2 * singles)
        with started(work) as daemon:
            note(f"start until RUNNING, {partitions:,} partitions", daemon.until(None), "s", 2)
            time.sleep(2)
            found = daemon.processes()
            parts = {kind: [pid for pid, one in found.items() if one == kind] for kind in set(found.values())}
            note("supervisor, resident", memory(parts["supervisor"][0], "Rss"), "MB", 60)
            note("each worker, proportional, most", max(memory(pid, "Pss") for pid in parts["worker"]), "MB", 24)
            note("each watch, proportional, most", max(memory(pid, "Pss") for pid in parts["watch"]), "MB", None)
            times = []
            for _ in range(101):
                began = time.perf_counter()
                daemon.status()
                times.append(1000 * (time.perf_counter() - began))
            note("a status answer, median", statistics.median(times), "ms", 20)
            before, began = daemon.cpu_seconds(), time.perf_counter()
            time.sleep(idle_s)
            share = 100 * (daemon.cpu_seconds() - before) / (time.perf_counter() - began)
            note("idle, of one core", share, "%", 0.2)
            every = sorted(path for path in tops[0].iterdir() if path.is_dir() and path.name.startswith("topic-"))
            times = []
            for number in range(singles):
                delete([every[number]])
                times.append(1000 * daemon.until(number + 1))
            note("one partition of 30 files, rename to captured, median", statistics.median(times), "ms", None)
            delete(every[singles : singles + deleted])
            note(f"{deleted:,} partitions of 30 files deleted at once", daemon.until(singles + deleted, 0.05), "s", 5)
            note("supervisor, resident, after it", memory(parts["supervisor"][0], "Rss"), "MB", 60)
        others = every[singles + deleted : singles + 2 * deleted]
        note(f"the links, syncs and renames of {deleted:,} such captures alone", bare(work / "bare", others), "s", None)
        alone = captures(tops[0], every[-singles:])
        note("one partition of 30 files captured, without a daemon, median", statistics.median(alone), "ms", 5)
    lines = ["| what | found | budget | |", "| --- | --- | --- | --- |"]
    words = {True: "met", False: "MISSED", None: "-"}
    lines += [f"| {what} | {value} | {budget} | {words[verdict]} |" for what, value, budget, verdict in rows]
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", metavar="DIR")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--deleted", type=int, default=DELETED)
    parser.add_argument("--idle", type=int, default=IDLE_S, metavar="SECONDS")
    wanted = parser.parse_args()
    print(measure(wanted.dir or default_dir(), wanted.partitions, wanted.deleted, wanted.idle))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
