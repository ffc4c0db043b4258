"""Replicas purged: as fast as it goes against ``rm -rf``, and paced beside a neighbour that syncs what it writes.

``python -m benchmarks.purge [--dir DIR …] [--rounds N] [--partitions N] [--segments N] [--megabytes N]``

Spec: design §10, row "purge unpaced / paced"; reliability §2.3, §7 row 15.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import NamedTuple

from benchmarks.file_systems import dirs_or_images, measured
from benchmarks.measure import ROUNDS, Row, run, show
from benchmarks.neighbour import neighbour
from benchmarks.stage import items_of
from benchmarks.trees import META
from benchmarks.unsynced import default_dir, opened, timed, topic_id
from logdir.decide.staged.purge import ClaimLimit, claim_limit_of
from logdir.disk.kernel.file_system import fs_type_at
from logdir.disk.kernel.host import HostDisk
from logdir.disk.kernel.in_use import in_use
from logdir.disk.replica import staging
from logdir.disk.replica.purge import Listing, claim_all, remove_all
from logdir.disk.replica.rate_limiter import BYTES_PER_SECOND, FILES_PER_SECOND, RateLimiter
from logdir.disk.replica.replica_dir import require_marker
from logdir.disk.root.init import init
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.plan import plan_init
from logdir.formats.own.replica_marker import ReplicaMarker

PARTITIONS = 600
FILES = 30
SEGMENTS = 10
MEGABYTES = 128
_UNPACED, _PACED = 1.2, 2.0
_UNPACED_XFS = 1.3
_AS_IT_IS = "decided before"
_PART = 8 << 20
_SETTLE_S = 1.0
_AFTER_S = 0.2
"""So long a removal may still be felt: what it freed is yet to be written down."""
DISCARD = "discard"
"""Freed blocks are told to the device at once, as where purges hurt most."""

_Fill = Callable[[Sequence[str]], None]


class Staged(NamedTuple):
    """A log dir with replicas that are all staged, and their markers by name."""

    log_dir: str
    markers: dict[str, ReplicaMarker]


def _fill_small(paths: Sequence[str]) -> None:
    names = [f"{number:020}.{kind}" for number in range(FILES // 3 - 1) for kind in ("log", "index", "timeindex")]
    for path in paths:
        for name in (*names, "leader-epoch-checkpoint"):
            with open(os.path.join(path, name), "xb") as file:
                file.write(bytes(100))


def _fill_big(paths: Sequence[str], megabytes: int) -> None:
    """Write one segment in each, in turn as a broker appends to them, so that their extents lie among each other."""
    part = os.urandom(_PART)
    files = [os.open(os.path.join(path, f"{0:020}.log"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644) for path in paths]
    for _ in range((megabytes << 20) // _PART):
        for file in files:
            os.write(file, part)
            os.fdatasync(file)
    for file in files:
        os.close(file)


@contextmanager
def _staged(home: str, partitions: int, fill: _Fill) -> Iterator[Staged]:
    """Make a log dir with so many replicas, all staged."""
    with tempfile.TemporaryDirectory(prefix="logdird-bench-", dir=home) as work:
        log_dir = os.path.join(work, "d1")
        os.mkdir(log_dir)
        with open(os.path.join(log_dir, "meta.properties"), "w", encoding="utf-8") as file:
            file.write(META.format(node=1, disk="F0"))
        paths = [os.path.join(log_dir, f"topic-{index:05}-0") for index in range(partitions)]
        for index, path in enumerate(paths):
            os.mkdir(path)
            with open(os.path.join(path, "partition.metadata"), "xb") as file:
                file.write(f"version: 0\ntopic_id: {topic_id(index)}".encode())
        fill(paths)
        init(HostDisk(), plan_init(HostDisk(), log_dir, fs_type="ext4", unsupported_fs=True), made_at_ms=0)
        with opened(HostDisk(), [log_dir]) as (open_dir,):
            if any(outcome.place is None for outcome in staging.stage(open_dir, items_of(open_dir))):
                raise SystemExit("not all were staged")
            markers = _markers(open_dir)
        os.sync()
        yield Staged(log_dir, markers)


def _markers(open_dir: OpenLogDir) -> dict[str, ReplicaMarker]:
    """Read what every purge is decided on."""
    markers = {}
    for name in open_dir.deleting.names():
        with open_dir.deleting.open(name) as directory:
            markers[name] = require_marker(open_dir, directory)
    return markers


def _purge(staged: Staged, pace: RateLimiter, room: ClaimLimit) -> None:
    """Remove all that is staged, in batches as ``logdirctl staged purge`` makes them."""
    with opened(HostDisk(), [staged.log_dir]) as (open_dir,):
        left = staged.markers
        while left:
            seen: dict[str, Listing] = {}
            claims = claim_all(open_dir, dict(islice(left.items(), room.partitions)), room=room, seen=seen)
            gone = remove_all(open_dir, tuple(seen), pace, in_use=in_use, seen=seen, at_once=pace.at_once)
            for outcome in (*claims, *gone):
                if outcome.error is not None:
                    raise SystemExit(f"not purged: {outcome}")
            left = dict(islice(left.items(), len(claims), None))


def _look_and_purge(staged: Staged) -> None:
    with opened(HostDisk(), [staged.log_dir]) as (open_dir,):
        markers = _markers(open_dir)
    _purge(staged._replace(markers=markers), RateLimiter(0, 0), claim_limit_of(0, 0))


def _rm(staged: Staged) -> None:
    with opened(HostDisk(), [staged.log_dir]) as (open_dir,):
        run(["rm", "-rf", open_dir.deleting.path])


def _bare(staged: Staged) -> None:
    """Make the calls that a claim and a removal cannot do without, and no others: what they take is the kernel's."""
    with opened(HostDisk(), [staged.log_dir]) as (open_dir,):
        top = os.open(open_dir.deleting.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in staged.markers:
            os.rename(name, f"{name}.purging", src_dir_fd=top, dst_dir_fd=top)
        os.fsync(top)
        for name in staged.markers:
            directory = os.open(f"{name}.purging", os.O_RDONLY | os.O_DIRECTORY, dir_fd=top)
            for file in os.listdir(directory):
                os.unlink(file, dir_fd=directory)
            os.close(directory)
            os.rmdir(f"{name}.purging", dir_fd=top)
        os.fsync(top)
    finally:
        os.close(top)


def unpaced(home: str, partitions: int = PARTITIONS, rounds: int = ROUNDS) -> list[Row]:
    """Remove equal trees in turn, and one round more to begin with; only removing is timed, once it is decided."""
    ways: dict[str, Callable[[Staged], None]] = {
        "rm -rf": _rm,
        "renames, syncs and unlinks alone": _bare,
        _AS_IT_IS: lambda staged: _purge(staged, RateLimiter(0, 0), claim_limit_of(0, 0)),
        "all markers read before": _look_and_purge,
        "each synced": lambda staged: _purge(staged, RateLimiter(0, 0), claim_limit_of(0, 0)._replace(partitions=1)),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            with _staged(home, partitions, _fill_small) as staged:
                seconds = timed(partial(way, staged))
            if number:
                taken[name].append(seconds)
    medians = {name: statistics.median(times) for name, times in taken.items()}
    base = medians.pop("rm -rf")
    what = f"purge unpaced of {partitions:,} × {FILES} files"
    budget = _UNPACED_XFS if fs_type_at(home) == "xfs" else _UNPACED
    return [
        Row(f"{what}, {name}", 1000 * took, took / base, "rm -rf", budget if name == _AS_IT_IS else None)
        for name, took in medians.items()
    ]


def beside_neighbour(home: str, segments: int = SEGMENTS, megabytes: int = MEGABYTES, rounds: int = 1) -> list[Row]:
    """Remove big segments in several ways, in turn, beside a neighbour; compare its syncs with those of idle times.

    Before every removal it is left alone for as long as a paced removal takes.
    """
    ways: dict[str, Callable[[Staged], None]] = {
        "purge paced": lambda staged: _purge(staged, RateLimiter(), claim_limit_of(BYTES_PER_SECOND, FILES_PER_SECOND)),
        "purge unpaced": lambda staged: _purge(staged, RateLimiter(0, 0), claim_limit_of(0, 0)),
        "rm -rf": _rm,
    }
    alone_s = max(1.0, segments * (megabytes << 20) / BYTES_PER_SECOND)
    idle: list[float] = []
    beside: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            with _staged(home, segments, partial(_fill_big, megabytes=megabytes)) as staged:
                time.sleep(_SETTLE_S)
                with neighbour(os.path.dirname(staged.log_dir)) as found:
                    time.sleep(alone_s)
                    began = time.monotonic()
                    way(staged)
                    ended = time.monotonic() + _AFTER_S
                    time.sleep(_AFTER_S)
                idle += found.took_ms([(began - alone_s, began)])
                beside[name] += found.took_ms([(began, ended)])
    base = f"idle ({_p99(idle):.1f} ms)"
    return [
        Row(
            f"fsync p99 beside {name} of {segments} × {megabytes} MiB (worst {max(took):.1f} ms)",
            _p99(took),
            _p99(took) / _p99(idle),
            base,
            _PACED if name == "purge paced" else None,
        )
        for name, took in beside.items()
    ]


def _p99(times: Sequence[float]) -> float:
    return sorted(times)[len(times) * 99 // 100]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", nargs="*", default=[], help="on which file systems; else on an ext4 and an XFS image")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--neighbour-rounds", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--segments", type=int, default=SEGMENTS)
    parser.add_argument("--megabytes", type=int, default=MEGABYTES, help="of a segment")
    given = parser.parse_args()
    home = default_dir()
    dirs = dirs_or_images(given.dir, home)
    rows = []
    if given.rounds:
        rows += measured(dirs, home, lambda path: unpaced(path, given.partitions, given.rounds))
    if given.neighbour_rounds:
        how = given.segments, given.megabytes, given.neighbour_rounds
        rows += measured(dirs, home, lambda path: beside_neighbour(path, *how), DISCARD)
    print(show(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
