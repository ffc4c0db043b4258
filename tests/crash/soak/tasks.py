"""The operations a worker does, each on something drawn from what lies there; said before it is begun, and after.

Every decision is taken from the disk at that moment: names, markers, files. What may be done to what is kept as the
product keeps it (``logdir.decide``): nothing is restored onto a name that lives, nothing purged before it is due.

Not here: the process (``worker``), what must hold (``oracle``).

Spec: design §3.3, §3.1, §8; reliability §7 row 4.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from logdir.clock import Instant
from logdir.decide.staged.deadline import Due, due
from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.host import HostDisk
from logdir.disk.kernel.in_use import in_use
from logdir.disk.record import heartbeat, staging_limit
from logdir.disk.record.checkpoints import read_entries, set_entries
from logdir.disk.record.start_block import lift_block, set_block
from logdir.disk.replica.adopt import AdoptItem, adopt
from logdir.disk.replica.capture import CaptureItem, capture
from logdir.disk.replica.outcome import Outcome, Result
from logdir.disk.replica.purge import claim, remove
from logdir.disk.replica.replica_dir import read_marker
from logdir.disk.replica.staging import RestoreItem, StageItem, hold, restore, stage
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.work_root import WorkRoot
from logdir.evidence import Proof, Removed
from logdir.formats.kafka.offset_checkpoint import TopicPartition
from logdir.formats.own import plan_document
from logdir.formats.own.replica_marker import FILE_NAME, Checkpoints, Intent, ReplicaMarker
from logdir.formats.own.staging_limit_file import Count
from logdir.ids import TopicId
from logdir.names import DirForm
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
ENTRIES_OF = TopicPartition("other", 7)
_HOW_OFTEN_SAME = 0.2
BATCH = 2
"""Replicas of a change of layout under one hold of the locks."""


@dataclass(slots=True, kw_only=True)
class Tasks:
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

    # One of them.

    def one(self, prefer: Sequence[str]) -> None:
        """Do one operation: of a kind that is preferred, where one can be done."""
        if self.draw.random() < _HOW_OFTEN_SAME:
            for root in self.roots:
                root.require_same(self.disk)
        seen = self.look()
        kinds: dict[str, Callable[[Seen], bool]] = {
            "hold": self._hold,
            "purge": self._purge,
            "file": self._file,
        }
        if self.is_by_id:
            kinds["rollback"] = self._rollback
        elif self.is_blocked:
            kinds["lift block"] = self._lift_block
        else:
            kinds |= {
                "stage": self._stage,
                "restore": self._restore,
                "capture": self._capture,
                "adopt": self._adopt,
                "set block": self._set_block,
            }
            # It takes as long as twenty others.
            if self.draw.random() < 0.15 or "relayout" in prefer:
                kinds["relayout"] = self._relayout
        order = self.draw.sample(sorted(kinds), len(kinds))
        if self.draw.random() < 0.5:
            order.sort(key=lambda kind: kind not in prefer)
        for kind in order:
            if kinds[kind](seen):
                return

    def _begin(self, kind: str, **about: Any) -> None:
        self.say({"begin": kind, **about})
        self.progress.begin(kind)

    def _end(self, kind: str, *outcomes: Outcome, **about: Any) -> None:
        """Say how it ended: nothing fails here, so whatever was not done is a fault."""
        wrong = [str(one.error) for one in outcomes if one.result is not Result.DONE]
        self.say({"end": kind, "wrong": wrong, **about})
        self.progress.begin(IDLE)

    # Staging and taking back.

    def _marker(self, live: Live, *, reason: Reason = Reason.OPERATOR) -> ReplicaMarker:
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

    def _token(self, parent: Directory, name: str) -> str:
        with parent.open(name) as directory:
            return token_of(directory)

    def _stage(self, seen: Seen) -> bool:
        if not seen.live:
            return False
        open_dir = self.draw.choice(seen.live).open_dir
        here = [live for live in seen.live if live.open_dir is open_dir]
        few = self.draw.sample(here, min(len(here), self.draw.randint(1, 3)))
        items = [StageItem(path=live.name, marker=self._marker(live)) for live in few]
        about = [
            {
                "token": self._token(open_dir.top, live.name),
                "id": str(item.marker.topic_id),
                "delay_ms": item.marker.delay_ms,
            }
            for live, item in zip(few, items, strict=True)
        ]
        self._begin("stage", items=about)
        with self.locked():
            self._end("stage", *stage(open_dir, items))
        return True

    def _asides(self, seen: Seen) -> Iterator[tuple[Aside, ReplicaMarker, str]]:
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

    def _lives(self, seen: Seen, marker: ReplicaMarker) -> list[Live]:
        key = (marker.topic, marker.partition)
        return [live for live in seen.live if (live.parts.topic, live.parts.partition) == key]

    def _restore(self, seen: Seen) -> bool:
        deleted = {(live.parts.topic, live.parts.partition) for live in seen.deleted}
        for aside, marker, token in self._asides(seen):
            if self._lives(seen, marker) or (marker.topic, marker.partition) in deleted:
                continue
            is_dropping = not marker.clean
            path = f"{marker.topic}-{marker.partition}"
            item = RestoreItem(name=aside.name, marker=marker, path=path, drop_last_indexes=is_dropping)
            self._begin("restore", token=token, id=str(marker.topic_id), drops=is_dropping)
            with self.locked():
                self._end("restore", restore(aside.open_dir, item))
            return True
        return False

    def _hold(self, seen: Seen) -> bool:
        for aside, marker, token in self._asides(seen):
            if marker.delay_ms is not None:
                self._begin("hold", token=token, id=str(marker.topic_id))
                self._end("hold", hold(aside.open_dir, aside.name))
                return True
        return False

    def _purge(self, seen: Seen) -> bool:
        for aside in self.draw.sample(seen.claimed, len(seen.claimed)):
            disk = self.open_dirs.index(aside.open_dir)
            self._begin("purge", token=None, id=str(aside.parts.topic_id), disk=disk, name=aside.name)
            remove(aside.open_dir, aside.name, in_use=in_use)
            self._end("purge")
            return True
        for aside, marker, token in self._asides(seen):
            # Most are not due; the heartbeat is asked of the others.
            may_be = marker.delay_ms is not None and marker.boottime_ms + marker.delay_ms <= self.now.boottime_ms
            if (may_be or self.draw.random() < 0.1) and self._is_due(aside.open_dir, marker):
                self._begin("purge", token=token, id=str(marker.topic_id), name=aside.name)
                remove(aside.open_dir, claim(aside.open_dir, aside.name, marker), in_use=in_use)
                self._end("purge")
                return True
        return False

    def _is_due(self, open_dir: OpenLogDir, marker: ReplicaMarker) -> bool:
        return isinstance(due(marker, heartbeat.read(open_dir), self.now), Due)

    # What a broker deleted.

    def _capture(self, seen: Seen) -> bool:
        if not seen.deleted:
            return False
        live = self.draw.choice(seen.deleted)
        delay_ms = self.draw.choice(DELAYS_MS)
        token = self._token(live.open_dir.top, live.name)
        held = live.parts.form is DirForm.STRAY
        self._begin("capture", token=token, id=str(said_of(live).topic_id), delay_ms=None if held else delay_ms)
        (outcome,) = capture(live.open_dir, [CaptureItem(name=live.name, delay_ms=delay_ms)], lambda: self.now)
        self._end("capture", outcome)
        return True

    def _adopt(self, seen: Seen) -> bool:
        for aside, marker, token in self._asides(seen):
            lives = self._lives(seen, marker)
            if len(lives) != 1:
                continue
            (live,) = lives
            present_token = self._token(live.open_dir.top, live.name)
            present = self._marker(live, reason=Reason.DUPLICATE)
            # What was adopted before and is staged by now would have a twin: the same files under the same id.
            taken = {(said, str(other.topic_id)) for _, other, said in self._asides(seen)}
            is_twin = present_token == token or (token, str(present.topic_id)) in taken
            is_twin |= bool({present.topic_id, marker.topic_id} & {other.parts.topic_id for other in seen.claimed})
            if present.topic_id in (None, marker.topic_id) or is_twin:
                continue
            assert isinstance(present.topic_id, TopicId)
            item = AdoptItem(
                name=aside.name,
                marker=marker,
                topic=marker.topic,
                topic_id=present.topic_id,
                present=live.open_dir,
                present_marker=present,
                keep=self.draw.random() < 0.3,
            )
            self._begin(
                "adopt",
                token=token,
                id=str(marker.topic_id),
                present={"token": present_token, "id": str(present.topic_id), "delay_ms": present.delay_ms},
                keeps=item.keep,
            )
            with self.locked():
                self._end("adopt", adopt(aside.open_dir, item, self.open_dirs))
            return True
        return False

    # Layout and bar.

    def _relayout(self, seen: Seen) -> bool:
        if not seen.live:
            return False
        fresh = self.aside / f"{PLAN}.new"
        fresh.write_bytes(plan_of(self.open_dirs, seen))
        fresh.replace(self.aside / PLAN)
        self._begin("relayout")
        self.relayout_on()
        self._end("relayout")
        self.is_by_id = self.is_blocked = True
        return True

    def relayout_on(self) -> None:
        """Bring the plan about."""
        plan = plan_document.parse((self.aside / PLAN).read_bytes(), PLAN)
        report = layout_rig.apply(self.open_dirs, plan, self.locked, batch=BATCH)
        assert report.is_finished, (report.failed, report.refused)

    def _rollback(self, seen: Seen) -> bool:
        self._begin("rollback")
        self.relayout_back()
        self._end("rollback")
        self.is_by_id = self.is_blocked = False
        return True

    def relayout_back(self) -> None:
        """Take everything back to names."""
        report = layout_rig.rollback(self.open_dirs, self.locked, batch=BATCH)
        assert report.is_finished, (report.failed, report.refused)

    def _set_block(self, seen: Seen) -> bool:
        self._begin("set block")
        with self.locked():
            set_block(self.open_dirs)
        self._end("set block")
        self.is_blocked = True
        return True

    def _lift_block(self, seen: Seen) -> bool:
        self._begin("lift block")
        with self.locked():
            lift_block(self.open_dirs)
        self._end("lift block")
        self.is_blocked = False
        return True

    # Small files.

    def _file(self, seen: Seen) -> bool:
        number = self.draw.randrange(len(self.open_dirs))
        open_dir = self.open_dirs[number]
        match self.draw.randrange(3):
            case 0:
                fields = ("recovery_point", "log_start", "high_watermark", "cleaner")
                offsets = {name: self.draw.randrange(1, 10**6) for name in fields}
                self._begin("file", what="entries", disk=number, offsets=offsets)
                with self.locked():
                    set_entries(open_dir, ENTRIES_OF, Checkpoints(**offsets))
            case 1:
                self._begin("file", what="heartbeat", disk=number, seen_ms=self.now.boottime_ms)
                assert heartbeat.beat(open_dir, self.now) is not None
            case _:
                count = Count(instant_ms=self.now.wall_ms, partitions=self.draw.randrange(1, 10**6), topics=1)
                self._begin("file", what="staging-limit", partitions=count.partitions)
                staging_limit.write_record(self.open_dirs, (count,))
        self._end("file")
        return True

    # The end.

    def go_home(self) -> None:
        """Take back everything that can be taken back, and finish what was claimed."""
        if self.is_by_id:
            self._rollback(self.look())
        elif self.is_blocked:
            self._lift_block(self.look())
        while self.look().claimed:
            self._purge(replace(self.look(), staged=[]))
        while self._restore(self.look()):
            pass
