"""What lies on three log dirs, read with the standard library alone; and the few files of Kafka's that are needed.

Spec: kafka-formats §2 (``meta.properties``), §5 (checkpoints), §6 (names).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
CLEAN = ".kafka_cleanshutdown"
META = "meta.properties"
MARKER = "replica.json"
NO_NODE = "2147483647"
_OURS = re.compile(r"__cluster_metadata-[0-9]+")
"""The one kind of directory that every stock broker passes over; the product tries renames with one."""
_LIVE = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>[0-9]+)")
_DELETE = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>[0-9]+)\.[0-9a-f]{32}-(?P<kind>delete|stray)")
_BY_ID = re.compile(r"(?P<id>[A-Za-z0-9_-]{22})_(?P<partition>[0-9]+)")
_STAGED = re.compile(r"(?P<id>[A-Za-z0-9_-]{22})_(?P<partition>[0-9]+)(?:\.[0-9]+)?(?P<purging>\.purging)?")


class File(NamedTuple):
    """A file as it is: everything that may not change."""

    inode: int
    size: int
    mtime_ns: int
    mode: int
    uid: int
    gid: int
    digest: str


class Partition(NamedTuple):
    """A partition directory where it was found."""

    place: str
    """``live``, ``by-id``, ``delete``, ``stray``, ``staged``, ``purging`` or ``odd``."""
    disk: int
    path: str
    """Relative to the log dir or the work root."""
    inode: int
    mode: int
    uid: int
    gid: int
    files: dict[str, File]
    marker: dict[str, Any] | None


@dataclass(slots=True)
class Seen:
    """All of it at one time."""

    partitions: dict[int, Partition] = field(default_factory=dict)
    """By inode."""
    twice: list[str] = field(default_factory=list)
    checkpoints: list[dict[str, dict[tuple[str, int], int]]] = field(default_factory=list)
    """Of each log dir, by file."""
    tops: list[dict[str, tuple[int, int, int, bytes]]] = field(default_factory=list)
    """Of each log dir its plain files: mode, uid, gid and bytes."""
    broken: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    """Directories that have no business where they are."""
    probes: list[str] = field(default_factory=list)
    work_roots: list[bool] = field(default_factory=list)


def work_root(log_dir: Path) -> Path:
    """Return where the work root of a log dir lies if a sibling can be written."""
    return log_dir.with_name(f"{log_dir.name}.logdird")


def read_file(path: str) -> File:
    """Return a file as it is."""
    with open(path, "rb") as file:
        data, own = file.read(), os.fstat(file.fileno())
    digest = hashlib.blake2b(data, digest_size=12).hexdigest()
    return File(own.st_ino, own.st_size, own.st_mtime_ns, own.st_mode & 0o7777, own.st_uid, own.st_gid, digest)


def read_partition(disk: int, place: str, path: str, base: str) -> Partition:
    """Return a partition directory as it is."""
    whole = f"{base}/{path}"
    own = Path(whole).stat()
    files, marker = {}, None
    for name in sorted(os.listdir(whole)):
        if name == MARKER:
            # Half a marker is none.
            try:
                marker = json.loads(Path(whole, name).read_bytes())
            except ValueError:
                marker = {}
        files[name] = read_file(f"{whole}/{name}")
    return Partition(place, disk, path, own.st_ino, own.st_mode & 0o7777, own.st_uid, own.st_gid, files, marker)


def look(log_dirs: list[Path]) -> Seen:
    """Return everything that lies on the log dirs and their work roots."""
    seen = Seen()
    for disk, log_dir in enumerate(log_dirs):
        tops: dict[str, tuple[int, int, int, bytes]] = {}
        for entry in sorted(os.scandir(log_dir), key=lambda entry: entry.name):
            if not entry.is_dir(follow_symlinks=False):
                if entry.name != ".lock":
                    own = entry.stat()
                    tops[entry.name] = own.st_mode & 0o7777, own.st_uid, own.st_gid, Path(entry.path).read_bytes()
                continue
            _enter(seen, disk, str(log_dir), entry.name)
        seen.tops.append(tops)
        seen.checkpoints.append({name: _entries(seen, tops, name, disk) for name in CHECKPOINTS})
        root = work_root(log_dir)
        seen.work_roots.append(root.is_dir())
        for folder in ("deleting", "incoming"):
            below = root / folder
            for name in sorted(os.listdir(below)) if below.is_dir() else ():
                if name == "probe" and os.listdir(below / name) in ([], ["probe-link"]):
                    seen.probes.append(f"{below}/{name}")
                    continue
                parsed = _STAGED.fullmatch(name)
                place = "odd" if parsed is None or folder == "incoming" else "staged"
                if parsed is not None and parsed["purging"]:
                    place = "purging"
                _keep(seen, read_partition(disk, place, f"{folder}/{name}", str(root)))
    return seen


def _enter(seen: Seen, disk: int, base: str, name: str) -> None:
    if len(name) == 2 and _LIVE.fullmatch(name) is None:
        for inner in sorted(os.listdir(f"{base}/{name}")):
            place = "by-id" if _BY_ID.fullmatch(inner) and inner.startswith(name) else "odd"
            _keep(seen, read_partition(disk, place, f"{name}/{inner}", base))
        return
    if _OURS.fullmatch(name):
        seen.probes.append(f"{base}/{name}")
        seen.odd += [f"{base}/{name}/{inner}" for inner in os.listdir(f"{base}/{name}") if inner != "probe-link"]
        return
    gone = _DELETE.fullmatch(name)
    if gone is not None:
        _keep(seen, read_partition(disk, gone["kind"], name, base))
    elif _LIVE.fullmatch(name):
        _keep(seen, read_partition(disk, "live", name, base))
    else:
        seen.odd.append(f"{base}/{name}")


def _keep(seen: Seen, found: Partition) -> None:
    if found.inode in seen.partitions:
        seen.twice.append(found.path)
    seen.partitions[found.inode] = found


def _entries(
    seen: Seen, tops: dict[str, tuple[int, int, int, bytes]], name: str, disk: int
) -> dict[tuple[str, int], int]:
    if name not in tops:
        return {}
    try:
        return parse_checkpoint(tops[name][3])
    except ValueError as error:
        seen.broken.append(f"disk {disk}: {name}: {error}")
        return {}


def parse_checkpoint(data: bytes) -> dict[tuple[str, int], int]:
    """Return the entries of an offset checkpoint."""
    lines = data.decode("ascii").split("\n")
    if lines[0] != "0" or lines[-1]:
        raise ValueError("no version 0, or no LF at the end")
    rows = [line.split(" ") for line in lines[2:-1]]
    if int(lines[1]) != len(rows):
        raise ValueError(f"{lines[1]} entries expected, {len(rows)} found")
    entries = {(topic, int(partition)): int(offset) for topic, partition, offset in rows}
    if len(entries) != len(rows):
        raise ValueError("an entry twice")
    return entries


def render_checkpoint(entries: dict[tuple[str, int], int]) -> bytes:
    """Return an offset checkpoint."""
    rows = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in entries.items()]
    return f"0\n{len(rows)}\n{''.join(rows)}".encode("ascii")
