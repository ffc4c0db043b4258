"""On what the operations start: log dirs that hold everything there is to lose, with their work roots.

Partition directories hold files of Kafka and of nobody; beside them lie checkpoints and strangers. The process is root,
the log dirs belong to somebody else: what is made must be given away.

Not here: what is done to them (``steps``, ``operations``).

Spec: design §3.1, §3.2.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple

from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.failure import calling
from logdir.disk.replica.outcome import Result
from logdir.disk.replica.replica_dir import read_marker
from logdir.disk.replica.staging import StageItem, stage
from logdir.disk.root.init import init
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.plan import plan_init
from logdir.disk.root.work_root import open_root
from logdir.evidence import Proof, Removed
from logdir.formats.own.replica_marker import Checkpoints, Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.reasons import Reason
from tests.builders import CLUSTER, META, TOPIC_ID
from tests.crash.model import ModelHost

OWNER = Owner(7, 8, 0o755)
FILE = Owner(7, 8, 0o644)
STRANGER = Owner(99, 98, 0o600)
OTHER_ID = "-Yf1OJeWTvqJd0KMSlz5WA"
DIRECTORIES = ("JEXY6aqzQY-32P5TStzaFg", "KEXY6aqzQY-32P5TStzaFg")
LAST_INDEXES = ("00000000000000000007.index", "00000000000000000007.timeindex")
FILES = {
    "00000000000000000000.index": b"i",
    "00000000000000000000.log": b"first",
    "00000000000000000007.index": b"\0\0",
    "00000000000000000007.log": b"last",
    "00000000000000000007.timeindex": b"\0\0",
    "partition.metadata": b"version: 0\ntopic_id: ",
    "unknown.bin": b"nobody knows",
}
ONE = ("00000000000000000007.log",)
FEW = ("00000000000000000007.index", "00000000000000000007.log", "unknown.bin")
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER = "cleaner-offset-checkpoint"
POINTS = b"0\n1\nother 0 5\n"
NO_POINTS = Checkpoints()
DEADLINE = (1_600_000_000_000, 4 * 60 * 60 * 1000, "boot", 600_000)
"""What a marker says of when it was staged, for how long, and in which boot since when."""
_RESERVE_BYTES = 32


class Part(NamedTuple):
    """A partition of the start."""

    disk: int
    topic: str
    partition: int = 0
    topic_id: str | None = None
    is_by_id: bool = False
    """It lies in the topic-id layout."""

    @property
    def path(self) -> str:
        """Where it lives, relative to its log dir."""
        if self.is_by_id and self.topic_id:
            return f"{self.topic_id[:2]}/{self.topic_id}_{self.partition}"
        return f"{self.topic}-{self.partition}"

    @property
    def place(self) -> str:
        """Its name under ``deleting/``."""
        return f"{self.topic_id or f'no-id.{self.topic}'}_{self.partition}"

    @property
    def mount(self) -> str:
        """Of its disk."""
        return f"/d{self.disk}"

    @property
    def log_dir(self) -> str:
        """Its log dir."""
        return f"{self.mount}/kafka"

    @property
    def key(self) -> str:
        """What acknowledgements call it."""
        return f"d{self.disk}/{self.path}"


A = Part(0, "a", 0, TOPIC_ID)
B = Part(0, "b", 1)
C = Part(1, "c", 2, OTHER_ID)
A_BY_ID = A._replace(is_by_id=True)
C_BY_ID = C._replace(is_by_id=True, disk=0, partition=5)


def start(*parts: Part, files: tuple[str, ...] = FEW) -> ModelHost:
    """Return a host with these partitions live, and work roots made."""
    disks = 1 + max(part.disk for part in parts)
    host = ModelHost.with_disks(*(f"/d{number}" for number in range(disks)))
    for number in range(disks):
        top = f"/d{number}/kafka"
        meta = META.format(node=1, directory=DIRECTORIES[number], cluster=CLUSTER)
        host.plant(f"{top}/meta.properties", meta.encode(), owner=FILE)
        host.plant(f"{top}/stranger", b"unknown", owner=STRANGER)
        host.plant(f"{top}/{LOG_STARTS}", POINTS, owner=FILE)
    for part in parts:
        for name in files:
            owner = STRANGER if name == "unknown.bin" else FILE
            data = FILES[name] + part.key.encode()
            host.plant(f"{part.log_dir}/{part.path}/{name}", data, owner=owner, mtime_ns=1_600_000_000 * 10**9)
    for number in range(disks):
        init(host, plan_init(host, f"/d{number}/kafka", fs_type="ext4"), made_at_ms=5, reserve_bytes=_RESERVE_BYTES)
    return settled(host)


def settled(host: ModelHost) -> ModelHost:
    """Return the same with everything durable, for another process."""
    world = host.world()
    volumes = tuple(volume.durable() for volume in world.volumes)
    return ModelHost(world._replace(volumes=volumes, generation=world.generation + 1))


def staged(
    *parts: Part, files: tuple[str, ...] = FEW, points: Checkpoints = NO_POINTS, clean: bool = True
) -> ModelHost:
    """Return a host with these partitions staged."""
    host = start(*parts, files=files)
    with Sites(host) as open_dirs:
        for part in parts:
            marker = replace(marker_for(open_dirs.of(part), part), checkpoints=points, clean=clean)
            assert stage(open_dirs.of(part), [StageItem(path=part.path, marker=marker)])[0].result is Result.DONE
    return settled(host)


def marker_for(open_dir: OpenLogDir, part: Part) -> ReplicaMarker:
    """Return the marker of a live partition: cleanly closed, of which no checkpoint said anything."""
    with open_dir.parent_of(part.path) as (parent, name), calling(parent):
        inode = parent.stat(name).inode
    return ReplicaMarker(
        intent=Intent.STAGED,
        cluster_id=open_dir.cluster_id,
        node_id=open_dir.node_id,
        directory_id=open_dir.directory_id,
        topic=part.topic,
        topic_id=None if part.topic_id is None else TopicId.parse(part.topic_id),
        partition=part.partition,
        birth_inode=inode,
        path=part.path,
        reason=Reason.OPERATOR,
        evidence=Removed(proof=Proof.OPERATOR, as_of_ms=1),
        staged_at_ms=DEADLINE[0],
        delay_ms=DEADLINE[1],
        boot_id=DEADLINE[2],
        boottime_ms=DEADLINE[3],
        clean=True,
    )


class Sites:
    """The open work roots of a host."""

    def __init__(self, host: ModelHost) -> None:
        self._host = host
        self._stack = ExitStack()
        self._open: dict[str, OpenLogDir] = {}

    def __enter__(self) -> Sites:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, part: Part) -> OpenLogDir:
        """Return that of a partition's disk."""
        return self.at(part.log_dir)

    def at(self, log_dir: str) -> OpenLogDir:
        """Return that of a log dir."""
        if log_dir not in self._open:
            root = self._stack.enter_context(open_root(self._host, log_dir, cluster_id=CLUSTER, node_id=1))
            self._open[log_dir] = root.open_dir
        return self._open[log_dir]

    def marker(self, part: Part, name: str | None = None) -> ReplicaMarker:
        """Return the marker of a staged partition."""
        deleting = self.of(part).deleting
        with calling(deleting), deleting.open(name or part.place) as directory:
            marker = read_marker(directory)
        assert marker is not None
        return marker
