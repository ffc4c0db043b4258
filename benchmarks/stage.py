"""Replicas of a broker of two disks on one file system set aside, against the same code without any sync.

``python -m benchmarks.stage [--dir DIR] [--partitions N] [--rounds N] [--at-once N] [--profile]``

Spec: design §10, row "stage 10,000 partitions".
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
from collections.abc import Sequence

from benchmarks.measure import ROUNDS, Row, show
from benchmarks.unsynced import PARTITIONS, broker, compared, default_dir, opened, timed
from logdir import clock
from logdir.disk import staging
from logdir.disk.io import HostDisk
from logdir.disk.locks import hold_all
from logdir.disk.site import Site
from logdir.disk.staging import StageItem
from logdir.evidence import Proof, Removed
from logdir.formats.replica_marker import FILE_NAME, Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.reasons import Reason
from tools.logdirctl.stage import _AT_ONCE

_SHARE = 0.6


def items_of(site: Site) -> list[StageItem]:
    """Return what lies there, to be set aside."""
    items = []
    for name in site.top.names():
        topic, _, partition = name.rpartition("-")
        if not topic.startswith("topic-"):
            continue
        with site.top.open(name) as directory:
            text = directory.read("partition.metadata", 200).decode().rpartition(" ")[2]
        marker = ReplicaMarker(
            intent=Intent.STAGED,
            cluster_id=site.cluster_id,
            node_id=site.node_id,
            directory_id=site.directory_id,
            topic=topic,
            topic_id=TopicId.parse(text),
            partition=int(partition),
            birth_inode=site.top.stat(name).inode,
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


def _stage(
    log_dirs: Sequence[str], work: Sequence[tuple[Site, list[StageItem]]], at_once: int
) -> list[tuple[str, str]]:
    """Set aside, as the command does: so many to a sync, and the locks let go of every two seconds."""
    left = [(site, items[first : first + at_once]) for site, items in work for first in range(0, len(items), at_once)]
    moved = []
    while left:
        with hold_all(HostDisk(), log_dirs, now_boottime_ms=clock.boottime_ms()) as held:
            while left and not held.expired(clock.boottime_ms()):
                site, part = left.pop(0)
                for item, outcome in zip(part, staging.stage(site, part), strict=True):
                    if outcome.place is None:
                        raise SystemExit(f"not staged: {outcome}")
                    moved.append((f"{site.work.path}/{outcome.place}", f"{site.log_dir}/{item.path}"))
    return moved


def measure(
    home: str, partitions: int = PARTITIONS, rounds: int = ROUNDS, *, at_once: int = _AT_ONCE, profile: bool = False
) -> list[Row]:
    """Stage in turn, durable and unsynced; taking back is not timed."""
    with broker(home, partitions) as log_dirs:

        def once(disk: HostDisk) -> float:
            with opened(disk, log_dirs) as sites:
                work = [(site, items_of(site)) for site in sites]
                moved: list[tuple[str, str]] = []
                took = timed(lambda: moved.extend(_stage(log_dirs, work, at_once)))
            for place, path in moved:
                os.unlink(f"{place}/{FILE_NAME}")
                os.rename(place, path)
            return took

        if profile:
            with cProfile.Profile() as found:
                once(HostDisk())
            pstats.Stats(found).sort_stats("tottime").print_stats(25)
        return compared(f"stage, {at_once} to a sync,", partitions, _SHARE, once, rounds)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", default=default_dir(), help="on which file system")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--at-once", type=int, default=_AT_ONCE, help="replicas to one sync")
    parser.add_argument("--profile", action="store_true", help="where the time goes, first")
    given = parser.parse_args()
    print(show(measure(given.dir, given.partitions, given.rounds, at_once=given.at_once, profile=given.profile)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
