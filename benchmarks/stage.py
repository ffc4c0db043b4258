"""Replicas of a broker of two disks on one file system staged, against the same code without any sync.

``python -m benchmarks.stage [--dir DIR] [--partitions N] [--rounds N] [--profile]``

Spec: design §10, row "stage 10,000 partitions".
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
from collections.abc import Sequence

from benchmarks.measure import ROUNDS, Row, show
from benchmarks.unsynced import PARTITIONS, broker, compared, default_dir, opened, ports_of, timed
from logdir import clock
from logdir.disk.kernel.host import HostDisk
from logdir.disk.replica import staging
from logdir.disk.replica.outcome import Outcome
from logdir.disk.replica.staging import StageItem
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.evidence import Proof, Removed
from logdir.formats.own.replica_marker import FILE_NAME, Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.reasons import Reason
from logdir.service.log_dirs.kafka_locks import hold_all

_SHARE = 0.6


def items_of(open_dir: OpenLogDir) -> list[StageItem]:
    """Return what lies there, to be staged."""
    items = []
    for name in open_dir.top.names():
        topic, _, partition = name.rpartition("-")
        if not topic.startswith("topic-"):
            continue
        with open_dir.top.open(name) as directory:
            text = directory.read("partition.metadata", 200).decode().rpartition(" ")[2]
        marker = ReplicaMarker(
            intent=Intent.STAGED,
            cluster_id=open_dir.cluster_id,
            node_id=open_dir.node_id,
            directory_id=open_dir.directory_id,
            topic=topic,
            topic_id=TopicId.parse(text),
            partition=int(partition),
            birth_inode=open_dir.top.stat(name).inode,
            path=name,
            reason=Reason.OPERATOR,
            evidence=Removed(proof=Proof.OPERATOR, as_of_ms=0),
            staged_at_ms=0,
            delay_ms=14_400_000,
            boot_id="b",
            boottime_ms=0,
            clean=True,
        )
        items.append(StageItem(path=name, marker=marker))
    return items


def _stage(log_dirs: Sequence[str], work: Sequence[tuple[OpenLogDir, list[StageItem]]]) -> list[tuple[str, str]]:
    """Staged, as the command does: in batches of one sync, and the locks let go of every two seconds."""
    moved: list[tuple[str, str]] = []
    batches = staging.batches()
    ports = ports_of(log_dirs)
    for open_dir, items in work:
        left: Sequence[StageItem] = items
        while left:
            with hold_all(ports, without=(), now_boottime_ms=clock.boottime_ms()) as held:
                for part in batches.of(left):
                    moved += [_moved(open_dir, *done) for done in zip(part, staging.stage(open_dir, part), strict=True)]
                    left = left[len(part) :]
                    if held.expired(clock.boottime_ms()):
                        break
    return moved


def _moved(open_dir: OpenLogDir, item: StageItem, outcome: Outcome) -> tuple[str, str]:
    if outcome.place is None:
        raise SystemExit(f"not staged: {outcome}")
    return f"{open_dir.work.path}/{outcome.place}", f"{open_dir.log_dir}/{item.path}"


def measure(home: str, partitions: int = PARTITIONS, rounds: int = ROUNDS, *, profile: bool = False) -> list[Row]:
    """Stage in turn, durable and unsynced; taking back is not timed."""
    with broker(home, partitions) as log_dirs:

        def once(disk: HostDisk) -> float:
            with opened(disk, log_dirs) as open_dirs:
                work = [(open_dir, items_of(open_dir)) for open_dir in open_dirs]
                moved: list[tuple[str, str]] = []
                took = timed(lambda: moved.extend(_stage(log_dirs, work)))
            for place, path in moved:
                os.unlink(f"{place}/{FILE_NAME}")
                os.rename(place, path)
            return took

        if profile:
            with cProfile.Profile() as found:
                once(HostDisk())
            pstats.Stats(found).sort_stats("tottime").print_stats(25)
        return compared("stage", partitions, _SHARE, once, rounds)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", default=default_dir(), help="on which file system")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--profile", action="store_true", help="where the time goes, first")
    given = parser.parse_args()
    print(show(measure(given.dir, given.partitions, given.rounds, profile=given.profile)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
