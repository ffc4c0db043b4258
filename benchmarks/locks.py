"""How much of the time for which Kafka's locks are held goes into looking: ``reconcile --apply`` on a big broker.

``python -m benchmarks.locks [--dir DIR] [--log-dirs N] [--partitions N] [--gone N] [--rounds N] [--profile]``: replicas
of topics that the cluster removed are staged, and put back untimed. Looking is a batch's look at all log dirs and at
the ages of directories; the baseline is the whole hold of the locks.

Spec: design §2 law 4.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import statistics
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

from benchmarks.measure import Row, show
from benchmarks.trees import META
from benchmarks.unsynced import default_dir
from logdir.decide.staged.deadline import DelayPolicy
from logdir.disk.kernel.host import HostDisk
from logdir.disk.root.init import init
from logdir.disk.root.plan import plan_init
from logdir.formats.own.replica_marker import FILE_NAME
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts, Replica
from logdir.service import reconcile
from logdir.service.batch import reconcile_apply
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.kafka_locks import HeldLocks
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.opening import opened
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.reconcile import Policy
from logdir.service.report.reporter import SILENT
from logdir.service.report.result import ItemState
from logdir.worker.look import EVERY_LIVE, Deep
from tests.logdir.cluster.log_dir import LogDir, noop, register, remove, topic
from tests.logdir.cluster.log_dir import partition as claimed

LOG_DIRS, PARTITIONS, GONE, ROUNDS = 12, 4_000, 2_000, 3
_ROOM = 40
"""Partitions of one topic."""
_AT_MOST = 0.1
_LONG_AGO_S = 1_600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed(OpenBroker):
    """A broker that times its batches and its looks."""

    held: list[float] = field(default_factory=list)
    """Seconds of each hold of the locks."""
    looked: list[float] = field(default_factory=list)
    """Seconds of it."""

    @contextmanager
    def batch(self) -> Iterator[HeldLocks]:
        """Time a hold, from when all locks are there."""
        with OpenBroker.batch(self) as held:
            self.looked.append(0.0)
            began = time.perf_counter()
            yield held
            self.held.append(time.perf_counter() - began)

    @contextmanager
    def _looking(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        if len(self.looked) > len(self.held):
            self.looked[-1] += time.perf_counter() - began

    def look(self, deep: Deep = EVERY_LIVE) -> tuple[LogDirFacts, ...]:
        """As the broker's; timed under the locks."""
        with self._looking():
            return OpenBroker.look(self, deep)

    def look_again(
        self,
        deep: Deep,
        places: Collection[tuple[str, str]],
        *,
        named: Iterable[str] = (),
        partitions: Iterable[int] = (),
    ) -> tuple[LogDirFacts, ...]:
        """As the broker's; timed under the locks."""
        with self._looking():
            return OpenBroker.look_again(self, deep, places, named=named, partitions=partitions)

    def births_of(self, replicas: Iterable[Replica]) -> Mapping[tuple[str, str], int]:
        """As the broker's; timed under the locks."""
        with self._looking():
            return OpenBroker.births_of(self, replicas)


def _id_of(number: int) -> TopicId:
    return TopicId((number + 1).to_bytes(16, "big")[::-1])


def make(work: Path, log_dirs: int, partitions: int, gone: int) -> list[str]:
    """Make a broker whose log says that some of its topics are gone; return its log dirs."""
    tops = [work / f"d{disk + 1}" for disk in range(log_dirs)]
    for disk, top in enumerate(tops):
        top.mkdir()
        (top / "meta.properties").write_text(META.format(node=1, disk=f"{disk + 10}"))
    total = log_dirs * partitions
    for index in range(total):
        number, partition = divmod(index, _ROOM)
        path = tops[index % log_dirs] / f"topic-{number}-{partition}"
        path.mkdir()
        files = {"partition.metadata": f"version: 0\ntopic_id: {_id_of(number)}".encode(), f"{0:020}.log": bytes(100)}
        for name, data in files.items():
            (path / name).write_bytes(data)
            os.utime(path / name, (_LONG_AGO_S, _LONG_AGO_S))
    log = LogDir(tops[0] / "__cluster_metadata-0")
    log.lead(1)
    log.append(register(1), register(2))
    # The log names all of it; the snapshot at its end what was not removed.
    topics = {
        number: (
            topic(f"topic-{number}", bytes(_id_of(number))),
            *(claimed(bytes(_id_of(number)), one, (1, 2)) for one in range(min(_ROOM, total - number * _ROOM))),
        )
        for number in range(-(-total // _ROOM))
    }
    for records in topics.values():
        log.append(*records)
    removed = range(-(-gone // _ROOM))
    log.append(*(remove(bytes(_id_of(number))) for number in removed))
    log.append(noop())
    staying = (one for number, records in topics.items() if number not in removed for one in records)
    log.snapshot(register(1), register(2), *staying)
    for top in tops:
        init(HostDisk(), plan_init(HostDisk(), str(top), fs_type="ext4", unsupported_fs=True), made_at_ms=0)
    return [str(top) for top in tops]


def once(log_dirs: list[str], gone: int) -> list[tuple[float, float]]:
    """Reconcile, put everything back; return seconds of each hold and of looking in it."""
    policy = Policy(
        delays=DelayPolicy(), protected=(), percent=100, max_age_ms=1 << 60, is_confirmed=True, is_image_confirmed=True
    )
    with opened(BrokerRequest(log_dirs=",".join(log_dirs)), changes=True) as found:
        broker = Timed(**{one.name: getattr(found, one.name) for one in fields(OpenBroker) if one.init})
        shown = reconcile.plan(broker, SourceRequest(), policy, is_stopped=True)
        done = reconcile_apply.apply(broker, shown.desired, policy, shown.decided, SILENT)
        roots = {root.open_dir.log_dir: root.open_dir.work.path for root in broker.roots}
    staged = [row for row in done.rows if row.state is ItemState.DONE]
    if len(staged) != gone:
        raise SystemExit(f"{len(staged)} of {gone} staged: {shown.decided.refused} {done.problems[:1]} {done.rows[:1]}")
    for row in staged:
        place = f"{roots[row.log_dir]}/{row.new_path}"
        os.unlink(f"{place}/{FILE_NAME}")
        os.rename(place, f"{row.log_dir}/{row.path}")
    for root in roots.values():
        Path(root, "controller.json").unlink(missing_ok=True)
    return list(zip(broker.held, broker.looked, strict=True))


def measure(
    home: str,
    log_dirs: int = LOG_DIRS,
    partitions: int = PARTITIONS,
    gone: int = GONE,
    rounds: int = ROUNDS,
    *,
    profile: bool = False,
) -> list[Row]:
    """Time holds and looks; the worst hold of each round counts."""
    with tempfile.TemporaryDirectory(prefix="logdird-bench-", dir=home) as work:
        tops = make(Path(work), log_dirs, partitions, gone)
        once(tops, gone)
        if profile:
            with cProfile.Profile() as found:
                once(tops, gone)
            pstats.Stats(found).sort_stats("cumtime").print_stats(45)
        taken = [once(tops, gone) for _ in range(rounds)]
    worst = [max(holds, key=lambda one: one[1] / one[0]) for holds in taken]
    looked, held = statistics.median(look for _, look in worst), statistics.median(held for held, _ in worst)
    ratio = statistics.median(look / held for held, look in worst)
    what = f"looking under the locks, {gone:,} of {log_dirs} × {partitions:,} staged"
    count = statistics.median(len(holds) for holds in taken)
    return [Row(what, 1000 * looked, ratio, f"the worst of {count:g} holds ({1000 * held:,.0f} ms)", _AT_MOST)]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", default=default_dir(), help="on which file system")
    parser.add_argument("--log-dirs", type=int, default=LOG_DIRS)
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="of each log dir")
    parser.add_argument("--gone", type=int, default=GONE, help="a multiple of 40")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--profile", action="store_true", help="where the time goes, first")
    given = parser.parse_args()
    rows = measure(given.dir, given.log_dirs, given.partitions, given.gone, given.rounds, profile=given.profile)
    print(show(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
