"""The same code on the same file system without any sync, as a baseline, and small replicas to work on.

Spec: design §10 ("the same steps without any sync").
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from benchmarks.measure import ROUNDS, Row
from benchmarks.trees import META
from logdir.disk.kernel.host import HostDirectory, HostDisk
from logdir.disk.root.init import init
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.plan import plan_init
from logdir.disk.root.work_root import open_root
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.ports import BrokerPorts
from logdir.worker.port import LocalPort
from logdir.worker.remote import DEFAULT_PATIENCE_MS

PARTITIONS = 10_000
LOG_DIRS = 2
_ROOM = 40
"""Partitions of one topic."""


class _Unsynced(HostDirectory):
    """A directory whose syncs do nothing."""

    __slots__ = ()

    def open(self, name: str) -> HostDirectory:
        """Open a directory in this one, whose syncs do nothing either."""
        return _unsynced(super().open(name))

    def start_writeback(self, name: str) -> None:
        """Do nothing."""

    def sync_file(self, name: str) -> None:
        """Do nothing."""

    def sync_files(self, names: Sequence[str]) -> None:
        """Do nothing."""

    def sync(self) -> None:
        """Do nothing."""

    def sync_disk(self) -> None:
        """Do nothing."""


def _unsynced(directory: HostDirectory) -> HostDirectory:
    directory.__class__ = _Unsynced
    return directory


def ports_of(log_dirs: Sequence[str]) -> BrokerPorts:
    """Return ports that make the calls of log dirs in this process, for Kafka's locks."""
    ports = tuple(map(LocalPort, log_dirs))
    return BrokerPorts(named=BrokerConfig(tuple(log_dirs), None), ports=ports, patience_ms=DEFAULT_PATIENCE_MS)


class UnsyncedDisk(HostDisk):
    """The file systems of this host, without syncs."""

    def open_top(self, path: str) -> HostDirectory:
        """Open a directory by its absolute path."""
        return _unsynced(super().open_top(path))


@contextmanager
def broker(home: str, partitions: int) -> Iterator[list[str]]:
    """Make a broker's log dirs below ``home``, each with a work root and its replicas; yield their paths."""
    with tempfile.TemporaryDirectory(prefix="logdird-bench-", dir=home) as work:
        log_dirs = [os.path.join(work, f"d{disk + 1}") for disk in range(LOG_DIRS)]
        for disk, path in enumerate(log_dirs):
            os.mkdir(path)
            with open(os.path.join(path, "meta.properties"), "w", encoding="utf-8") as file:
                file.write(META.format(node=1, disk=f"F{disk}"))
            for index in range(disk, partitions, LOG_DIRS):
                _make_replica(path, index)
            plan = plan_init(HostDisk(), path, fs_type="ext4", unsupported_fs=True)
            init(HostDisk(), plan, made_at_ms=0)
        yield log_dirs


def topic_id(topic: int) -> str:
    """Return the text of a topic's id."""
    spread = topic * 2654435761 % (1 << 32)
    return f"A{spread:08x}xj{topic:06}Q8ivA"


def _make_replica(log_dir: str, index: int) -> None:
    topic = index // _ROOM
    path = os.path.join(log_dir, f"topic-{topic:05}-{index % _ROOM}")
    os.mkdir(path)
    texts = {
        "00000000000000000000.log": bytes(100),
        "00000000000000000000.index": b"",
        "00000000000000000000.timeindex": b"",
        "partition.metadata": f"version: 0\ntopic_id: {topic_id(topic)}".encode(),
    }
    for name, data in texts.items():
        with open(os.path.join(path, name), "xb") as file:
            file.write(data)


@contextmanager
def opened(disk: HostDisk, log_dirs: Sequence[str]) -> Iterator[tuple[OpenLogDir, ...]]:
    """Open the work roots of a broker."""
    with ExitStack() as stack:
        yield tuple(stack.enter_context(open_root(disk, path)).open_dir for path in log_dirs)


def compared(
    what: str, items: int, budget: float, once: Callable[[HostDisk], float], rounds: int = ROUNDS
) -> list[Row]:
    """Measure durable against unsynced, in turn, and one round more to begin with.

    Args:
        what: The name of the row.
        items: How many replicas a run works on.
        budget: The least share of the unsynced rate.
        once: Works on all of them on a disk, puts everything back, and returns the seconds the work took.
        rounds: How many are counted.
    """
    disks: dict[str, HostDisk] = {"durable": HostDisk(), "unsynced": UnsyncedDisk()}
    taken: dict[str, list[float]] = {name: [] for name in disks}
    for number in range(rounds + 1):
        for name, disk in disks.items():
            os.sync()
            seconds = once(disk)
            if number:
                taken[name].append(seconds)
    durable, unsynced = (statistics.median(taken[name]) for name in ("durable", "unsynced"))
    name = f"{what} of {items:,}: {items / durable:,.0f}/s"
    base = f"unsynced ({items / unsynced:,.0f}/s)"
    return [Row(name, 1000 * durable, durable / unsynced, base, 1 / budget)]


def timed(call: Callable[[], object]) -> float:
    """Return the seconds a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def default_dir() -> str:
    """Return where a broker is made if nobody says where: beside other temporary files."""
    return tempfile.gettempdir()
