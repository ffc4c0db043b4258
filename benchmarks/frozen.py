"""A daemon one of whose four disks hangs: what it captures on the others, how soon it answers, how soon it starts.

``python -m benchmarks.frozen [--partitions N] [--rounds N]``, as root: the four disks are ext4 in image files. One is
frozen (``FIFREEZE``: every write hangs), or lies on a FUSE server that answers no READ. The rate is a ratio against
that of the same daemon with four good disks, in the same run; the other figures hold on a quiet machine only.

Spec: design §10; reliability §6.3.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.daemon import Daemon, delete, started
from benchmarks.measure import drop_caches
from benchmarks.trees import make_log_dir
from benchmarks.unsynced import default_dir
from logdir.daemon.state import LogDirState
from logdir.disk.kernel.host import HostDisk
from logdir.disk.root.init import init
from logdir.disk.root.plan import plan_init
from tests.hung.rig import Answering, lacking
from tests.kernel.images import Images, Mounted, copy_sparse, leave_mounts

DISKS, PARTITIONS, ROUNDS, ANSWERS = 4, 100, 7, 101
_MEGABYTES = 512
_INODES = ("-N", "262144")
_PATIENCE_S = 60.0
Row = tuple[str, str, str, bool | None]


class Broker:
    """Four log dirs on a disk each, and the daemon's configuration."""

    def __init__(self, work: Path, disks: list[Path], partitions: int) -> None:
        self.work = work
        self.log_dirs = [disk / "kafka" for disk in disks]
        self._left: dict[Path, list[Path]] = {}
        for number, log_dir in enumerate(self.log_dirs, start=1):
            make_log_dir(str(log_dir), partitions=partitions, disk=number)
            init(HostDisk(), plan_init(HostDisk(), str(log_dir), fs_type="ext4"), made_at_ms=0)
            self._left[log_dir] = sorted(log_dir.glob("topic-*"))
        (work / "server.properties").write_text(f"broker.id=1\nlog.dirs={','.join(map(str, self.log_dirs))}\n")
        (work / "b1.yaml").write_text(
            "server.properties: server.properties\nstate.dir: state\nsocket: s.sock\nstaged.min.free: 1\n"
            "auto.while.stopped: true\n"
            "sweep.interval.ms: 500\n"
        )

    def delete(self, log_dir: Path, count: int) -> None:
        """Rename so many replicas of a log dir as a broker does."""
        some, self._left[log_dir] = self._left[log_dir][:count], self._left[log_dir][count:]
        delete(some)


def captured(daemon: Daemon) -> int:
    """Return how many directories it has captured."""
    found = daemon.status()
    return 0 if found is None else found.captured


def is_online(daemon: Daemon, log_dir: Path) -> bool:
    """Whether a log dir is ONLINE in the status."""
    found = daemon.status()
    states = {} if found is None else {one.log_dir: one.state for one in found.log_dirs}
    return states.get(str(log_dir)) is LogDirState.ONLINE


def await_state(daemon: Daemon, log_dir: Path, *, online: bool) -> float:
    """Wait until a log dir is ONLINE or is not; return the seconds."""
    began = time.perf_counter()
    while is_online(daemon, log_dir) is not online:
        if time.perf_counter() - began > _PATIENCE_S:
            raise SystemExit(f"{log_dir}: not {'ONLINE' if online else 'left out'} after {_PATIENCE_S:g} s")
        time.sleep(0.01)
    return time.perf_counter() - began


def rounds_of(broker: Broker, daemon: Daemon, rounds: int, each: int) -> list[float]:
    """Delete on the first three disks; return the seconds until all were captured, of each round."""
    times = []
    for _ in range(rounds):
        wanted = captured(daemon) + 3 * each
        for log_dir in broker.log_dirs[:3]:
            broker.delete(log_dir, each)
        times.append(daemon.until(wanted))
    return times


def answers(daemon: Daemon) -> float:
    """Return the longest of many status answers, in milliseconds."""
    times = []
    for _ in range(ANSWERS):
        began = time.perf_counter()
        daemon.status()
        times.append(1000 * (time.perf_counter() - began))
    return max(times)


class Disk(NamedTuple):
    """A disk that can be let hang."""

    path: Path
    hang: Callable[[], None]
    go_on: Callable[[], None]
    remount: Callable[[], None]
    """Forget what of it lies in memory."""


@contextmanager
def disks(images: Images, folder: Path, *, is_served: bool) -> Iterator[tuple[list[Path], Disk]]:
    """Mount three good disks and one that can be frozen, or, ``is_served``, whose reads can hang."""
    with ExitStack() as stack:
        good = [images.mount(images.make("ext4", _MEGABYTES, _INODES), "ext4") for _ in range(DISKS - 1)]
        stack.callback(images.forget, *good)
        image = images.make("ext4", _MEGABYTES, _INODES)
        if not is_served:
            sick = images.mount(image, "ext4")
            stack.callback(images.forget, sick)
            yield [one.path for one in good], Disk(sick.path, sick.freeze, sick.thaw, lambda: None)
            return
        backing = folder / "backing"
        backing.mkdir()
        copy_sparse(image, backing / "image")
        image.unlink()
        server = Answering(backing, folder / "served", folder / "control")
        stack.callback(server.close)
        mounted = [Mounted(folder / "served" / "image", folder / "sick", "ext4")]

        def unmount() -> None:
            mounted[0].unmount()

        stack.callback(unmount)
        stack.callback(server.go_on)

        def remount() -> None:
            unmount()
            mounted[0] = Mounted(folder / "served" / "image", folder / "sick", "ext4")

        yield [one.path for one in good], Disk(folder / "sick", lambda: server.hang("READ"), server.go_on, remount)


@contextmanager
def hung(disk: Disk) -> Iterator[None]:
    """Let a disk hang until the block ends."""
    disk.hang()
    try:
        yield
    finally:
        disk.go_on()


def beside(images: Images, home: str, partitions: int, rounds: int, *, is_served: bool) -> list[Row]:
    """Return the figures of a daemon one of whose disks freezes, or whose reads hang, while it captures."""
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="logdird-bench-", dir=home)))
        good, sick = stack.enter_context(disks(images, work, is_served=is_served))
        broker = Broker(work, [*good, sick.path], (3 * rounds + 2) * partitions)
        log_dir = broker.log_dirs[3]
        daemon = stack.enter_context(started(work))
        daemon.until(None)
        before = rounds_of(broker, daemon, rounds, partitions)
        broker.delete(log_dir, 2 * partitions)
        if is_served:
            drop_caches()  # What lies in memory would be read from there.
        with hung(sick):
            left_out_s = await_state(daemon, log_dir, online=False)
            beside = rounds_of(broker, daemon, rounds, partitions)
            longest_ms = answers(daemon)
        await_state(daemon, log_dir, online=True)
        before += rounds_of(broker, daemon, rounds, partitions)
    rate = statistics.median(before) / statistics.median(beside)
    return [
        (
            f"{'the reads of a disk hang' if is_served else 'a disk freezes'}: until it is left out",
            f"{left_out_s:,.1f} s",
            "-",
            None,
        ),
        ("… then captures on the others, to those with four good disks", f"{rate:.2f}", "≥ 0.95", rate >= 0.95),
        (f"… a status answer, longest of {ANSWERS}", f"{longest_ms:,.1f} ms", "≤ 100 ms", longest_ms <= 100),
    ]


def start_beside(images: Images, home: str, *, is_served: bool) -> Row:
    """Return how long a daemon takes to start beside a disk that hangs already."""
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="logdird-bench-", dir=home)))
        good, sick = stack.enter_context(disks(images, work, is_served=is_served))
        broker = Broker(work, [*good, sick.path], PARTITIONS)
        if is_served:
            sick.remount()  # What was written lies in the cache, and would be read from there.
        with hung(sick):
            daemon = stack.enter_context(started(work))
            seconds = daemon.until(None)
            assert not is_online(daemon, broker.log_dirs[3]) or not is_served
    what = "whose reads hang" if is_served else "that is frozen"
    return f"start beside a disk {what}", f"{seconds:,.2f} s", "≤ 5 s", seconds <= 5


def table(home: str, partitions: int = PARTITIONS, rounds: int = ROUNDS) -> str:
    """Return the figures as a Markdown table, or what this machine lacks."""
    if reason := lacking():
        return f"no disk that hangs: {reason}"
    leave_mounts()
    with tempfile.TemporaryDirectory(prefix="logdird-bench-", dir=home) as name:
        images = Images(Path(name))
        try:
            rows = []
            for is_served in (False, True):
                rows += beside(images, home, partitions, rounds, is_served=is_served)
            rows += [start_beside(images, home, is_served=is_served) for is_served in (False, True)]
        finally:
            images.close()
    words = {True: "met", False: "MISSED", None: "-"}
    lines = ["| what | found | budget | |", "| --- | --- | --- | --- |"]
    lines += [f"| {what} | {found} | {budget} | {words[verdict]} |" for what, found, budget, verdict in rows]
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="of each disk, deleted at once")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    wanted = parser.parse_args()
    print(table(default_dir(), wanted.partitions, wanted.rounds))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
