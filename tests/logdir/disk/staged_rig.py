"""Log dirs on a real file system with their work roots, for the tests of staging, purging and recovery."""

from __future__ import annotations

import hashlib
import os
import stat as st
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from logdir.disk.kernel.host import HostDisk
from logdir.disk.replica.outcome import Outcome
from logdir.disk.replica.staging import RestoreItem, StageItem, restore, stage
from logdir.disk.root.init import init
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.plan import plan_init
from logdir.disk.root.work_root import open_root
from logdir.evidence import Proof, Removed
from logdir.formats.own.replica_marker import FILE_NAME, Intent, ReplicaMarker, parse
from logdir.ids import TopicId
from logdir.reasons import Reason
from tests.builders import DIRECTORY, TOPIC_ID, log_dir, partition

UID, GID = (4321, 4322) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
"""To whom the log dir belongs; somebody else's if we may give it away."""
RESERVE_BYTES = 8192
BY_ID = f"{TOPIC_ID[:2]}/{TOPIC_ID}_0"


def make_log_dir(path: Path, *live: str, directory: str = DIRECTORY) -> Path:
    """Make a formatted log dir with these partitions and its work root, all of somebody else."""
    made = log_dir(path, directory=directory)
    for name in live:
        partition(made / name, segments={0: 40, 7: 20})
        (made / name / "unknown.bin").write_bytes(b"nobody knows")
    for root, names, files in os.walk(made):
        for one in (root, *(os.path.join(root, name) for name in (*names, *files))):
            os.chown(one, UID, GID)
    made.chmod(0o750)
    disk = HostDisk()
    init(disk, plan_init(disk, str(made), fs_type="ext4"), made_at_ms=5, reserve_bytes=RESERVE_BYTES)
    return made


@contextmanager
def opened(path: Path, disk: Any = None) -> Iterator[OpenLogDir]:
    """Open the work root."""
    with open_root(disk or HostDisk(), str(path)) as root:
        yield root.open_dir


def marker_of(
    open_dir: OpenLogDir, at: str, topic: str = "a", topic_id: str | None = TOPIC_ID, **more: Any
) -> ReplicaMarker:
    """Return the marker of a partition directory, due at once."""
    values: dict[str, Any] = {
        "intent": Intent.STAGED,
        "cluster_id": open_dir.cluster_id,
        "node_id": open_dir.node_id,
        "directory_id": open_dir.directory_id,
        "topic": topic,
        "topic_id": None if topic_id is None else TopicId.parse(topic_id),
        "partition": 0,
        "birth_inode": Path(open_dir.log_dir, at).stat().st_ino,
        "path": at,
        "reason": Reason.OPERATOR,
        "evidence": Removed(proof=Proof.OPERATOR, as_of_ms=1),
        "staged_at_ms": 1,
        "delay_ms": 0,
        "boot_id": "boot",
        "boottime_ms": 1,
        "clean": True,
    }
    return ReplicaMarker(**(values | more))


def make_staged(
    open_dir: OpenLogDir, path: str, topic: str = "a", topic_id: str | None = TOPIC_ID, **more: Any
) -> Outcome:
    """Stage one."""
    return stage(open_dir, [StageItem(path=path, marker=marker_of(open_dir, path, topic, topic_id, **more))])[0]


def staged_marker(path: Path) -> ReplicaMarker:
    """Return the marker in a directory."""
    return parse((path / FILE_NAME).read_bytes())


def take_back(open_dir: OpenLogDir, name: str, path: str, *, drop: bool = False, **more: Any) -> Outcome:
    """Restore one, on the marker it has now."""
    marker = staged_marker(Path(open_dir.deleting.path) / name)
    item = RestoreItem(name=name, marker=replace(marker, **more), path=path, drop_last_indexes=drop)
    return restore(open_dir, item)


def seen(path: Path, *, markers: bool = False) -> dict[str, tuple[object, ...]]:
    """Return everything under a path: type and mode, owner, and of files and links size, mtime and digest."""
    found: dict[str, tuple[object, ...]] = {}
    for root, names, files in os.walk(path):
        for name in sorted((*names, *files)):
            if name == FILE_NAME and not markers:
                continue
            one = os.path.join(root, name)
            stat = os.lstat(one)
            facts: tuple[object, ...] = (stat.st_mode, stat.st_uid, stat.st_gid)
            if st.S_ISLNK(stat.st_mode):
                facts += (str(Path(one).readlink()),)
            elif st.S_ISREG(stat.st_mode):
                facts += (stat.st_size, stat.st_mtime_ns, hashlib.sha256(Path(one).read_bytes()).hexdigest())
            found[os.path.relpath(one, path)] = facts
    return found


def owner(path: Path) -> tuple[int, int, int]:
    """Return uid, gid and mode."""
    stat = path.lstat()
    return stat.st_uid, stat.st_gid, stat.st_mode & 0o7777
