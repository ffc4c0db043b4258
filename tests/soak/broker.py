"""A broker as far as its log dirs know it: it holds locks, appends, writes checkpoints, deletes, and makes strays."""

from __future__ import annotations

import base64
import fcntl
import os
import random
import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.soak.disk import CHECKPOINTS, CLEAN, META, read_partition, render_checkpoint
from tests.soak.model import STRANGER, Model, Replica

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
TOPICS = ("orders", "pay.ments", "x-y-1", "clicks")
LONG_AGO_NS = 1_600_000_000 * 1_000_000_000
"""Partitions are years old: what a cluster says is younger."""
_BATCH = struct.Struct(">qiibIhiqqqhii")
"""The head of a record batch (kafka-formats §7.3): base offset, length, ..., magic, ..., last offset delta, ..."""
_DELTA = 2000
"""Every log ends behind every log start that a checkpoint says: a broker removes a log that does not."""


def _batch(base: int, records: bytes) -> bytes:
    """Return a record batch whose records nobody can read."""
    length = _BATCH.size - 12 + len(records)
    return _BATCH.pack(base, length, 0, 2, 0, 0, _DELTA, 0, 0, -1, -1, -1, 1) + records


class Broker:
    """The broker of one base folder."""

    def __init__(self, base: Path, chance: random.Random, *, uid: int, gid: int) -> None:
        self._chance = chance
        self.model = Model(log_dirs=[base / f"d{number}" for number in (1, 2, 3)], uid=uid, gid=gid, cluster_id=CLUSTER)
        for number, log_dir in enumerate(self.model.log_dirs):
            log_dir.mkdir()
            os.chown(log_dir, uid, gid)
            self._write(log_dir / STRANGER, b"whose is this?\n")
            self._write(log_dir / ".lock", b"")
            directory = self._an_id()
            lines = "#", "#Tue Nov 14 22:13:20 UTC 2023", "node.id=1", f"directory.id={directory}", "version=1"
            self._write(log_dir / META, "\n".join((*lines, f"cluster.id={CLUSTER}", "")).encode())
            self.model.checkpoints.append({name: {} for name in CHECKPOINTS})
            self.model.tops.append({})
            for _ in range(3):
                self._create(number)
        self.stop(is_clean=True)

    def _an_id(self) -> str:
        while True:
            text = base64.urlsafe_b64encode(self._chance.randbytes(16)).decode().rstrip("=")
            if not text.startswith("-"):
                return text

    def _write(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)
        path.chmod(0o644)
        os.chown(path, self.model.uid, self.model.gid)

    def _create(self, disk: int) -> None:
        """Make a replica of a topic that has no such partition here; its name may be one that was used before."""
        taken = {(replica.topic, replica.partition) for replica in self.model.at("live", "by-id", "stray")}
        free = [(topic, number) for topic in TOPICS for number in range(4) if (topic, number) not in taken]
        if not free:
            return
        topic, partition = self._chance.choice(free)
        topic_id = next((one.topic_id for one in self.model.at("live") if one.topic == topic), None) or self._an_id()
        if any((one.topic_id, one.partition) == (topic_id, partition) for one in self.model.replicas.values()):
            return
        log_dir = self.model.log_dirs[disk]
        folder = log_dir / f"{topic}-{partition}"
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)
        os.chown(folder, self.model.uid, self.model.gid)
        files = {
            "partition.metadata": f"version: 0\ntopic_id: {topic_id}".encode(),
            "leader-epoch-checkpoint": b"0\n1\n0 0\n",
        }
        for base in (0, 500)[: self._chance.randint(1, 2)]:
            files |= {
                f"{base:020}.log": _batch(base, self._chance.randbytes(self._chance.randint(1, 900))),
                f"{base:020}.index": bytes(8), f"{base:020}.timeindex": bytes(12),
            }  # fmt: skip
        for name, data in files.items():
            self._write(folder / name, data)
            os.utime(folder / name, ns=(LONG_AGO_NS, LONG_AGO_NS + self._chance.randrange(10**9)))
        found = read_partition(disk, "live", folder.name, str(log_dir))
        self.model.replicas[found.inode] = Replica(
            topic=topic, topic_id=topic_id, partition=partition, disk=disk, inode=found.inode, mode=found.mode,
            uid=found.uid, gid=found.gid, files=found.files,
        )  # fmt: skip
        for name in CHECKPOINTS:
            if self._chance.random() < 0.8:
                self.model.checkpoints[disk][name][topic, partition] = self._chance.randrange(1000)

    def path(self, replica: Replica, name: str = "") -> Path:
        """Return where a live replica lies, or under another name."""
        return self.model.log_dirs[replica.disk] / (name or replica.name)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Hold what a broker that runs holds."""
        descriptors = []
        try:
            for log_dir in self.model.log_dirs:
                descriptor = os.open(log_dir / ".lock", os.O_RDWR | os.O_CREAT)
                descriptors.append(descriptor)
                _lock(descriptor)
            yield
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def would_not_start(self, tops: list[list[str]]) -> list[str]:
        """Return why a stock broker would stop over the log dirs: what it does not know, or knows twice."""
        live: dict[tuple[str, int], list[int]] = {}
        for replica in self.model.at("live"):
            live.setdefault((replica.topic, replica.partition), []).append(replica.disk)
        wrong = [f"{key} lives on disks {disks}" for key, disks in sorted(live.items()) if len(disks) > 1]
        for disk, names in enumerate(tops):
            known = {replica.name for replica in self.model.at("live") if replica.disk == disk}
            passed = ("-delete", "-stray"), "__cluster_metadata-"
            odd = [n for n in names if n not in known and not n.endswith(passed[0]) and not n.startswith(passed[1])]
            wrong += [f"disk {disk}: a broker does not know {name}" for name in odd]
        return wrong

    def start(self) -> None:
        """Do what a start and a while of work do to the disks; the locks are held."""
        for log_dir in self.model.log_dirs:
            (log_dir / CLEAN).unlink(missing_ok=True)
        for replica in self.model.at("delete"):
            for path in self.model.log_dirs[replica.disk].glob("*-delete"):
                if path.stat().st_ino == replica.inode:
                    shutil.rmtree(path)
                    del self.model.replicas[replica.inode]
        for replica in self.model.at("live"):
            self._serve(replica)
        if self._chance.random() < 0.3 and self.model.at("live"):
            self._retire(self._chance.choice(self.model.at("live")))
        if len(self.model.replicas) < 14:
            for disk in range(3):
                self._create(disk)

    def _serve(self, replica: Replica) -> None:
        folder = self.path(replica)
        # The broker knows neither our marker nor its remains, and leaves them.
        for name in sorted(replica.may_lack):
            if not (folder / name).exists():
                self._write(folder / name, bytes(12))
        replica.may_lack = frozenset()
        if self._chance.random() < 0.5:
            last = max(name for name in replica.files if name.endswith(".log"))
            with (folder / last).open("ab") as log:
                log.write(self._chance.randbytes(50))
        found = read_partition(replica.disk, "live", replica.name, str(self.model.log_dirs[replica.disk]))
        replica.files = {name: file for name, file in found.files.items() if name in replica.files}

    def _retire(self, replica: Replica) -> None:
        kind = self._chance.choice(("delete", "delete", "stray"))
        path = self.path(replica)
        path.rename(path.with_name(f"{replica.name}.{self._chance.randbytes(16).hex()}-{kind}"))
        replica.place = kind

    def stop(self, *, is_clean: bool) -> None:
        """Write the checkpoints of what lives, and, closed cleanly, say so."""
        for disk, log_dir in enumerate(self.model.log_dirs):
            live = {(replica.topic, replica.partition) for replica in self.model.at("live") if replica.disk == disk}
            for name in CHECKPOINTS:
                known = self.model.checkpoints[disk][name]
                entries = {
                    key: offset + self._chance.randrange(3) for key, offset in sorted(known.items()) if key in live
                }
                self.model.checkpoints[disk][name] = entries
                # As Kafka does it.
                self._write(log_dir / f"{name}.tmp", render_checkpoint(entries))
                (log_dir / f"{name}.tmp").rename(log_dir / name)
            if is_clean:
                self._write(log_dir / CLEAN, b'{"version":0,"brokerEpoch":7}')
            self.model.tops[disk] = {
                path.name: (path.stat().st_mode & 0o7777, path.stat().st_uid, path.stat().st_gid, path.read_bytes())
                for path in sorted(log_dir.iterdir())
                if path.is_file() and path.name != ".lock"
            }


def _lock(descriptor: int) -> None:
    """Take a lock; a worker that was killed with its command may hold it a moment longer."""
    until = time.monotonic() + 5
    while True:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.005)
        else:
            return
