"""The broker of a soak: it makes log dirs and replicas, deletes topics and makes them anew, as Kafka does to a disk.

It works only while a worker waits, after its recovery. Everything in its files says whose it is.

Not here: what our process does (``tasks``), what must hold (``oracle``).

Spec: kafka-behaviour §2.12, §3.2; kafka-formats §2, §5.
"""

from __future__ import annotations

import base64
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from logdir.disk.kernel.host import HostDisk
from logdir.disk.record import heartbeat, staging_limit
from logdir.disk.root.init import init
from logdir.disk.root.plan import plan_init
from logdir.disk.root.work_root import open_root
from tests.builders import CLUSTER, META
from tests.crash.soak.looks import CHECKPOINTS, Dir, Look, entries, marker
from tests.crash.soak.worker import instant
from tests.logdir.disk.staged_rig import GID, UID

DIRECTORY_IDS = ("JEXY6aqzQY-32P5TStzaFg", "KEXY6aqzQY-32P5TStzaFg", "LEXY6aqzQY-32P5TStzaFg")
LAST_INDEXES = ("00000000000000000007.index", "00000000000000000007.timeindex")
METADATA = "partition.metadata"
STRANGERS: Mapping[str, bytes] = {"stranger": b"nobody knows", "__strangers/inner": b"nor this"}
LEAST_LIVE = 7
MOST = 26
"""Replicas on the disks at once, wherever they lie."""
RESERVE_BYTES = 4096
OLD_NS = 1_600_000_000 * 10**9
_TAIL_BYTES = 300


class Born(NamedTuple):
    """A replica as its broker wrote it."""

    token: str
    id: str
    topic: str
    partition: int
    disk: int
    files: dict[str, bytes]
    mtimes_ns: dict[str, int]
    log_start: int


def meta(disk: int) -> bytes:
    """Return the true ``meta.properties`` of a log dir."""
    return META.format(node=1, directory=DIRECTORY_IDS[disk], cluster=CLUSTER).encode()


def make_log_dirs(base: Path, count: int = 3) -> tuple[str, ...]:
    """Make formatted log dirs with work roots, of somebody else if we may give them away."""
    made = []
    for disk in range(count):
        top = base / f"d{disk}"
        top.mkdir(parents=True)
        for name, data in {"meta.properties": meta(disk), **STRANGERS}.items():
            path = top / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            os.utime(path, ns=(OLD_NS, OLD_NS))
        for folder, _, files in os.walk(top):
            for name in (folder, *(os.path.join(folder, file) for file in files)):
                os.chown(name, UID, GID)
        top.chmod(0o755)
        host = HostDisk()
        init(host, plan_init(host, str(top), fs_type="ext4"), made_at_ms=5, reserve_bytes=RESERVE_BYTES)
        with open_root(host, str(top)) as root:
            staging_limit.begin(root.open_dir)
            heartbeat.begin(root.open_dir, instant(1))
        made.append(str(top))
    return tuple(made)


@dataclass(slots=True)
class Broker:
    """Kafka, as far as a disk sees it."""

    log_dirs: Sequence[str]
    draw: random.Random
    count: int = 0

    def _new_id(self) -> str:
        while True:
            text = base64.urlsafe_b64encode(self.draw.randbytes(16)).decode()[:22]
            if text[0] != "-":
                return text

    def make(self, disk: int, topic: str, partition: int) -> Born:
        """Make a replica."""
        self.count += 1
        token, topic_id = f"replica-{self.count}", self._new_id()
        says = f"version: 0\ntopic_id: {topic_id}"
        files = {
            "00000000000000000000.log": f"{token} first ".encode() + self.draw.randbytes(40),
            "00000000000000000000.index": self.draw.randbytes(8),
            "00000000000000000007.log": f"{token} last ".encode() + self.draw.randbytes(_TAIL_BYTES),
            LAST_INDEXES[0]: bytes(64),
            LAST_INDEXES[1]: bytes(64),
            "leader-epoch-checkpoint": b"0\n1\n0 0\n",
            # As some tools write it: what cannot be made again is kept by a change of layout.
            METADATA: f"{says}\n".encode() if self.draw.random() < 0.3 else says.encode(),
            "unknown.bin": self.draw.randbytes(16),
        }
        path = Path(self.log_dirs[disk]) / f"{topic}-{partition}"
        path.mkdir()
        mtimes = {}
        for number, (name, data) in enumerate(files.items()):
            inner = path / name
            inner.write_bytes(data)
            mtimes[name] = OLD_NS + self.count * 1000 + number
            os.utime(inner, ns=(mtimes[name], mtimes[name]))
            os.chown(inner, UID, GID)
        os.chown(path, UID, GID)
        log_start = self.draw.randrange(1, 7)
        self._entries(disk, (topic, partition), log_start)
        return Born(token, topic_id, topic, partition, disk, files, mtimes, log_start)

    def _entries(self, disk: int, key: tuple[str, int], offset: int) -> None:
        """Write the entries of a replica, each file whole."""
        for number, name in enumerate(CHECKPOINTS):
            path = Path(self.log_dirs[disk]) / name
            known: dict[tuple[str, int], int] = {}
            if path.exists():
                known = dict(entries(path.read_bytes()) or {})
            known[key] = offset + number - 1
            lines = [f"{topic} {partition} {value}" for (topic, partition), value in sorted(known.items())]
            fresh = path.with_name(f".fresh-{name}")
            fresh.write_bytes("".join(f"{line}\n" for line in ("0", str(len(lines)), *lines)).encode())
            os.chown(fresh, UID, GID)
            fresh.chmod(0o644)
            fresh.replace(path)

    def delete(self, path: str, form: str) -> str:
        """Rename a live replica, as on the way to its removal; return where it is."""
        gone = f"{path}.{self.draw.randbytes(16).hex()}-{form}"
        Path(path).rename(gone)
        return gone

    @staticmethod
    def remove(path: str) -> None:
        """Remove what was renamed for it."""
        for inner in Path(path).iterdir():
            inner.unlink()
        Path(path).rmdir()

    def turn(self, found: Look) -> tuple[list[Born], dict[str, str]]:
        """Do a little of everything.

        Args:
            found: What lies there.

        Returns:
            What was made, and by path what became of directories: ``deleted``, or ``gone``.
        """
        live = [one for one in found.dirs if one.place == "live"]
        gone = [one for one in found.dirs if one.place == "deleted"]
        aside = {(one.disk, one.id, one.token) for one in found.dirs if one.place == "aside"}
        changed: dict[str, str] = {}
        made: list[Born] = []
        for one in gone:
            # A stray stays; a deletion goes on at any time, whether it was captured or not.
            wanted = 0.4 if (one.disk, one.id, one.token) in aside else 0.05
            if self.draw.random() < wanted and not self._is_begun(one, found):
                self.remove(one.path)
                changed[one.path] = "gone"
        named = {(one.topic, one.partition) for one in live}
        if len(live) > LEAST_LIVE // 2 and self.draw.random() < 0.4:
            one = self.draw.choice(live)
            self.delete(one.path, self.draw.choice(("delete", "delete", "delete", "stray")))
            changed[one.path] = "deleted"
            live.remove(one)
            named.discard((one.topic, one.partition))
        if len(found.dirs) < MOST and self.draw.random() < 0.7:
            named |= {(one.topic, one.partition) for one in gone}
            again = sorted({(_topic(one), one.partition) for one in found.dirs if one.place == "aside"} - named)
            if again:
                made.append(self.make(self.draw.randrange(len(self.log_dirs)), *self.draw.choice(again)))
        while len(live) + len(made) < LEAST_LIVE:
            made.append(self.make(self.draw.randrange(len(self.log_dirs)), f"t{self.count}", self.draw.randrange(4)))
        return made, changed

    def _is_begun(self, one: Dir, found: Look) -> bool:
        return any(other.place == "begun" and other.id == one.id for other in found.dirs)


def _topic(one: Dir) -> str:
    """Return the topic a marker says."""
    said = marker(one.markers.get("replica.json"))
    return said["topic"] if said else ""
