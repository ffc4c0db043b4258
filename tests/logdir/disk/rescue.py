"""A broker's log dirs with something deleted in them, on the model disk or on this host's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from logdir.clock import Instant
from logdir.disk.kernel.calls import Disk
from logdir.disk.kernel.host import Call
from logdir.disk.root.init import init
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.plan import plan_init
from logdir.disk.root.work_root import WorkRoot, open_root
from logdir.evidence import Proof, Removed
from logdir.formats.kafka import offset_checkpoint, partition_metadata
from logdir.formats.kafka.offset_checkpoint import NAMES, TopicPartition
from logdir.formats.kafka.partition_metadata import PartitionMetadata
from logdir.formats.own.replica_marker import Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.reasons import Reason
from tests.builders import CLUSTER, META, TOPIC_ID

OLD = TopicId.parse(TOPIC_ID)
NEW = TopicId.parse("Sx1N2n2bQ6mQ1b8R3gXv7A")
UNIQUE = "0123456789abcdef0123456789abcdef"
DELETED = f"t-0.{UNIQUE}-delete"
STRAY = f"t-0.{UNIQUE}-stray"
DELAY_MS = 4 * 60 * 60 * 1000
SEGMENT = "00000000000000000007"
FILES: Mapping[str, bytes] = {
    "00000000000000000005.log": b"first segment",
    "00000000000000000005.index": b"i5",
    "00000000000000000005.timeindex": b"t5",
    f"{SEGMENT}.log": b"second",
    f"{SEGMENT}.index": bytes(64),
    f"{SEGMENT}.timeindex": bytes(64),
    f"{SEGMENT}.snapshot": b"producers",
    "leader-epoch-checkpoint": b"0\n1\n0 5\n",
    "partition.metadata": partition_metadata.render(PartitionMetadata(0, OLD)),
}
NEW_FILES: Mapping[str, bytes] = {
    "00000000000000000000.log": b"written to the new one",
    "00000000000000000000.index": bytes(32),
    "00000000000000000000.timeindex": bytes(32),
    "leader-epoch-checkpoint": b"0\n1\n0 0\n",
    "partition.metadata": partition_metadata.render(PartitionMetadata(0, NEW)),
}
ADOPTED: Mapping[str, bytes] = {
    **{n: d for n, d in FILES.items() if n not in (f"{SEGMENT}.index", f"{SEGMENT}.timeindex")},
    "partition.metadata": NEW_FILES["partition.metadata"],
}
"""What shall be live after an adoption."""
DIRECTORY_IDS = ("JEXY6aqzQY-32P5TStzaFg", "7f0t7kV0TYqv8m3Jbq4pkA")


def instant(host: object = None) -> Instant:
    return Instant(boot_id="b", boottime_ms=5_000, wall_ms=1_700_000_000_000, is_synchronised=True)


def meta(number: int) -> bytes:
    return META.format(node=1, directory=DIRECTORY_IDS[number], cluster=CLUSTER).encode()


def entries(partition: int = 0, **offsets: int) -> dict[str, bytes]:
    """Return checkpoint files: of a partition of ``t`` those given, of another topic in each."""
    fields = ("recovery_point", "log_start", "high_watermark", "cleaner")
    files = {}
    for field, name in zip(fields, NAMES, strict=True):
        known = {TopicPartition("other", 3): 33}
        if field in offsets:
            known[TopicPartition("t", partition)] = offsets[field]
        files[name] = offset_checkpoint.render(known)
    return files


def make_root(disk: Disk, log_dir: str) -> None:
    init(disk, plan_init(disk, log_dir, fs_type="ext4"), made_at_ms=5, reserve_bytes=48)


def open_site(disk: Disk, log_dir: str) -> WorkRoot:
    return open_root(disk, log_dir)


@contextmanager
def quick_path(path: Path) -> Iterator[Path]:
    """Yield a directory in memory if there is one: these tests sync thousands of times, and not to see a disk do it."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="logdird-", dir=shared) as made:
        yield Path(made)


def put(directory: Path, files: Mapping[str, bytes]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (directory / name).write_bytes(data)


def files_of(directory: Path) -> dict[str, bytes]:
    """Return the files of a partition directory but for our markers."""
    return {p.name: p.read_bytes() for p in directory.iterdir() if not p.name.startswith("replica.")}


def present_marker(open_dir: OpenLogDir, inode: int) -> ReplicaMarker:
    now = instant()
    return ReplicaMarker(
        intent=Intent.STAGED,
        cluster_id=open_dir.cluster_id,
        node_id=open_dir.node_id,
        directory_id=open_dir.directory_id,
        topic="t",
        topic_id=NEW,
        partition=0,
        birth_inode=inode,
        path="t-0",
        reason=Reason.DUPLICATE,
        evidence=Removed(proof=Proof.OPERATOR, as_of_ms=now.wall_ms),
        staged_at_ms=now.wall_ms,
        delay_ms=DELAY_MS,
        boot_id=now.boot_id,
        boottime_ms=now.boottime_ms,
        clean=True,
    )


class Stop(BaseException):
    """The process is gone."""


class Watched(Protocol):
    """A host that asks before each of its calls."""

    before: Callable[[int, Call], None]
    """Called with the number of a call, from 0, and the call."""


@contextmanager
def stopped(host: Watched, is_the_call: Callable[[int, Call], bool]) -> Iterator[None]:
    """Stop the process of the body before a call, which must come; what runs after the body is another process."""

    def before(number: int, call: Call) -> None:
        if is_the_call(number, call):
            raise Stop

    host.before = before
    try:
        yield
    except Stop:
        host.before = lambda number, call: None
    else:
        raise AssertionError("the call never came")


def numbered(at: int) -> Callable[[int, Call], bool]:
    """Return what says whether a call is the one of a number."""
    return lambda number, call: number == at
