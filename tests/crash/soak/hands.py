"""A worker's hands: what operations of a soak are drawn with, and how a worker says what it does.

Each operation's own drawing is with its descriptor (``tests.operations``). Every decision is taken from the disk at
that moment: names, markers, files.

Not here: which operation is drawn (``tasks``), the process (``worker``), what must hold (``oracle``).

Spec: design §3.3, §3.1, §8; reliability §7 row 4.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from logdir.clock import Instant
from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.host import HostDisk
from logdir.disk.record.checkpoints import read_entries
from logdir.disk.replica.outcome import Outcome, Result
from logdir.disk.replica.replica_dir import read_marker
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.work_root import WorkRoot
from logdir.evidence import Proof, Removed
from logdir.formats.kafka.offset_checkpoint import TopicPartition
from logdir.formats.own import plan_document
from logdir.formats.own.replica_marker import FILE_NAME, Intent, ReplicaMarker
from logdir.reasons import Reason
from logdir.service.log_dirs.kafka_locks import HeldLocks, hold_all
from tests.crash.soak.progress import IDLE, Progress
from tests.crash.soak.seen import Aside, Live, Seen, look, plan_of, said_of, token_of
from tests.local_ports import ports_here
from tests.logdir.disk import layout_rig

PLAN = "plan.jsonl"
ROUND_MS = 1000
"""By how much the clocks go on from one worker to the next."""
DELAYS_MS = (0, 0, 20 * ROUND_MS, 4 * 60 * 60 * 1000)
"""Due at once; in twenty rounds; never in a soak."""
BATCH = 2
"""Replicas of a change of layout under one hold of the locks."""


def token(parent: Directory, name: str) -> str:
    """Return what the first log of a directory says it is."""
    with parent.open(name) as directory:
        return token_of(directory)


@dataclass(slots=True, kw_only=True)
class Hands:
    """A worker's hands."""

    disk: HostDisk
    roots: Sequence[WorkRoot]
    draw: random.Random
    now: Instant
    aside: Path
    say: Callable[[dict[str, Any]], None]
    progress: Progress
    read: dict[tuple[int, int], tuple[int, ReplicaMarker, str]] = field(default_factory=dict)
    """Time of change, marker and token, by device and inode of a marker: not read again while it is the same."""
    is_by_id: bool = False
    is_blocked: bool = False

    @property
    def open_dirs(self) -> list[OpenLogDir]:
        """Return the open log dirs."""
        return [root.open_dir for root in self.roots]

    def locked(self) -> AbstractContextManager[HeldLocks]:
        """Hold every lock of the broker."""
        ports = ports_here((open_dir.log_dir for open_dir in self.open_dirs), self.disk)
        return hold_all(ports, without=(), now_boottime_ms=self.now.boottime_ms)

    def look(self) -> Seen:
        """List everything."""
        return look(self.open_dirs)

    def begin(self, kind: str, **about: Any) -> None:
        """Say that an operation begins, and on what."""
        self.say({"begin": kind, **about})
        self.progress.begin(kind)

    def end(self, kind: str, *outcomes: Outcome, **about: Any) -> None:
        """Say how it ended: nothing fails here, so whatever was not done is a fault."""
        wrong = [str(one.error) for one in outcomes if one.result is not Result.DONE]
        self.say({"end": kind, "wrong": wrong, **about})
        self.progress.begin(IDLE)

    def marker(self, live: Live, *, reason: Reason = Reason.OPERATOR) -> ReplicaMarker:
        """Return a marker with which a live replica may be staged, with a delay that is drawn."""
        open_dir = live.open_dir
        return ReplicaMarker(
            intent=Intent.STAGED,
            cluster_id=open_dir.cluster_id,
            node_id=open_dir.node_id,
            directory_id=open_dir.directory_id,
            topic=live.parts.topic,
            topic_id=said_of(live).topic_id,
            partition=live.parts.partition,
            birth_inode=open_dir.top.stat(live.name).inode,
            path=live.name,
            reason=reason,
            evidence=Removed(proof=Proof.OPERATOR, as_of_ms=self.now.wall_ms),
            staged_at_ms=self.now.wall_ms,
            delay_ms=self.draw.choice(DELAYS_MS),
            boot_id=self.now.boot_id,
            boottime_ms=self.now.boottime_ms,
            checkpoints=read_entries(open_dir, TopicPartition(live.parts.topic, live.parts.partition)),
            clean=self.draw.random() < 0.5,
        )

    def asides(self, seen: Seen) -> Iterator[tuple[Aside, ReplicaMarker, str]]:
        """Yield what is staged in an order that is drawn, with its marker and token."""
        for aside in self.draw.sample(seen.staged, len(seen.staged)):
            with aside.open_dir.deleting.open(aside.name) as directory:
                found = directory.stat(FILE_NAME)
                said = self.read.get((found.device, found.inode))
                if said is None or said[0] != found.mtime_ns:
                    marker = read_marker(directory)
                    assert marker is not None, directory.path
                    said = self.read[found.device, found.inode] = found.mtime_ns, marker, token_of(directory)
            yield aside, *said[1:]

    def lives(self, seen: Seen, marker: ReplicaMarker) -> list[Live]:
        """Return what lives under the name of something that is staged."""
        key = (marker.topic, marker.partition)
        return [live for live in seen.live if (live.parts.topic, live.parts.partition) == key]

    # The change of layout, which a recovery takes up too.

    def write_plan(self, seen: Seen) -> None:
        """Write the plan that takes everything to ids."""
        fresh = self.aside / f"{PLAN}.new"
        fresh.write_bytes(plan_of(self.open_dirs, seen))
        fresh.replace(self.aside / PLAN)

    def relayout_on(self) -> None:
        """Bring the plan about."""
        plan = plan_document.parse((self.aside / PLAN).read_bytes(), PLAN)
        report = layout_rig.apply(self.open_dirs, plan, self.locked, batch=BATCH)
        assert report.is_finished, (report.failed, report.refused)

    def relayout_back(self) -> None:
        """Take everything back to names."""
        report = layout_rig.rollback(self.open_dirs, self.locked, batch=BATCH)
        assert report.is_finished, (report.failed, report.refused)
