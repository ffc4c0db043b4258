"""What lies in the log dirs of a soak, read without the code that is judged: regular expressions, JSON, SHA-256.

Not here: what should lie there (``oracle``).

Spec: design §3.1-§3.3; kafka-formats §2, §5, §6.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat as st
from collections.abc import Sequence
from typing import Any, NamedTuple

_ID = r"(?P<id>[A-Za-z0-9_-]{22})_(?P<partition>\d+)"
_NAMED = re.compile(r"(?P<topic>[a-z0-9.]+)-(?P<partition>\d+)(?P<gone>\.[0-9a-f]{32}-(delete|stray))?")
_BY_ID = re.compile(_ID)
_ASIDE = re.compile(_ID + r"(\.\d+)?(?P<claimed>\.purging)?")
_COMING = re.compile(_ID + r"(\.\d+)?(?P<ready>\.ready)?")
_PREFIX = re.compile(r"[A-Za-z0-9_-]{2}")
_SEGMENT = re.compile(r"\d{20}\.log")
_LINE = re.compile(r"(?P<topic>\S+) (?P<partition>\d+) (?P<offset>\d+)")
_TOKEN = re.compile(rb"(replica-\d+) ")
MARKERS = ("replica.json", "replica.new.json")
HIDDEN_PROBE = "__cluster_metadata-2147483646"
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
WORK = ".logdird"


class File(NamedTuple):
    """One regular file."""

    data: bytes
    digest: str
    mtime_ns: int
    inode: int
    owner: tuple[int, int, int]
    """User, group, permissions."""


class Dir(NamedTuple):
    """One partition directory, wherever it lies."""

    disk: int
    place: str
    """``live``, ``deleted``, ``aside``, ``claimed``, ``begun`` or ``ready``."""
    path: str
    name: str
    is_by_id: bool
    id: str | None
    """As its name says it, else its ``partition.metadata``."""
    topic: str | None
    partition: int
    token: str | None
    """As its first log says it."""
    inode: int
    files: dict[str, File]
    """Without our markers."""
    markers: dict[str, File]
    unexpected_entries: tuple[str, ...]
    """What is no regular file."""
    owner: tuple[int, int, int]


class Look(NamedTuple):
    """Everything at one instant at which no process of ours runs."""

    dirs: tuple[Dir, ...]
    files: dict[tuple[int, str], File]
    """Every other file, by disk and path relative to the log dir, or to ``work/`` for the work root."""
    directories: dict[tuple[int, str], tuple[int, int, int]]
    """Every other directory, and to whom it belongs."""


def _facts(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_uid, found.st_gid, st.S_IMODE(found.st_mode)


def _file(path: str) -> File:
    with open(path, "rb") as file:
        data = file.read()
        found = os.fstat(file.fileno())
    return File(data, hashlib.sha256(data).hexdigest(), found.st_mtime_ns, found.st_ino, _facts(found))


def _id_in(files: dict[str, File]) -> str | None:
    said = files.get("partition.metadata")
    if said is None:
        return None
    matched = re.match(rb"version: 0\ntopic_id: (\S+)", said.data)
    return None if matched is None else matched[1].decode("ascii", "replace")


def _token_in(files: dict[str, File]) -> str | None:
    for name in sorted(files):
        if _SEGMENT.fullmatch(name) and (matched := _TOKEN.match(files[name].data)):
            return matched[1].decode()
    return None


def marker(file: File | None) -> dict[str, Any] | None:
    """Return what a marker says; ``None`` if it is none, or torn: its digest is over the line without that key."""
    if file is None or not file.data.endswith(b"\n"):
        return None
    try:
        values: dict[str, Any] = json.loads(file.data)
    except ValueError:
        return None
    said = values.pop("sha256", None)
    line = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return values if said == hashlib.sha256(line.encode()).hexdigest() else None


def entries(data: bytes) -> dict[tuple[str, int], int] | None:
    """Return what an offset checkpoint says; ``None`` if it is torn."""
    lines = data.decode("ascii", "replace").splitlines()
    if len(lines) < 2 or lines[0] != "0" or not data.endswith(b"\n") or str(len(lines) - 2) != lines[1]:
        return None
    matched = [_LINE.fullmatch(line) for line in lines[2:]]
    if not all(matched):
        return None
    return {(m["topic"], int(m["partition"])): int(m["offset"]) for m in matched if m is not None}


class _Looker:
    def __init__(self) -> None:
        self.dirs: list[Dir] = []
        self.files: dict[tuple[int, str], File] = {}
        self.directories: dict[tuple[int, str], tuple[int, int, int]] = {}

    def replica(self, disk: int, place: str, path: str, matched: re.Match[str], *, is_by_id: bool) -> None:
        said = matched.groupdict()
        files: dict[str, File] = {}
        unexpected_entries = []
        for name in os.listdir(path):
            inner = f"{path}/{name}"
            if st.S_ISREG(os.lstat(inner).st_mode):
                files[name] = _file(inner)
            else:
                unexpected_entries.append(name)
        markers = {name: files.pop(name) for name in MARKERS if name in files}
        found = os.lstat(path)
        self.dirs.append(
            Dir(
                disk,
                place,
                path,
                os.path.basename(path),
                is_by_id,
                said.get("id") or _id_in(files),
                said.get("topic"),
                int(said["partition"]),
                _token_in(files),
                found.st_ino,
                files,
                markers,
                tuple(unexpected_entries),
                _facts(found),
            )
        )

    def rest(self, disk: int, path: str, relative: str) -> None:
        """Note something that is no partition directory, and all that lies below."""
        found = os.lstat(path)
        if st.S_ISDIR(found.st_mode):
            self.directories[disk, relative] = _facts(found)
            for name in os.listdir(path):
                self.rest(disk, f"{path}/{name}", f"{relative}/{name}")
        else:
            self.files[disk, relative] = _file(path)

    def log_dir(self, disk: int, top: str) -> None:
        for name in sorted(os.listdir(top)):
            path = f"{top}/{name}"
            if not st.S_ISDIR(os.lstat(path).st_mode):
                self.rest(disk, path, name)
            elif matched := _NAMED.fullmatch(name):
                self.replica(disk, "deleted" if matched["gone"] else "live", path, matched, is_by_id=False)
            elif _PREFIX.fullmatch(name):
                self.directories[disk, name] = _facts(os.lstat(path))
                for inner in sorted(os.listdir(path)):
                    if matched := _BY_ID.fullmatch(inner):
                        self.replica(disk, "live", f"{path}/{inner}", matched, is_by_id=True)
                    else:
                        self.rest(disk, f"{path}/{inner}", f"{name}/{inner}")
            else:
                self.rest(disk, path, name)

    def work_root(self, disk: int, root: str) -> None:
        for name in sorted(os.listdir(root)):
            path = f"{root}/{name}"
            pattern = {"deleting": _ASIDE, "incoming": _COMING}.get(name)
            if pattern is None:
                self.rest(disk, path, f"work/{name}")
                continue
            self.directories[disk, f"work/{name}"] = _facts(os.lstat(path))
            for inner in sorted(os.listdir(path)):
                matched = pattern.fullmatch(inner)
                if matched is None:
                    self.rest(disk, f"{path}/{inner}", f"work/{name}/{inner}")
                elif name == "deleting":
                    place = "claimed" if matched["claimed"] else "aside"
                    self.replica(disk, place, f"{path}/{inner}", matched, is_by_id=True)
                else:
                    place = "ready" if matched["ready"] else "begun"
                    self.replica(disk, place, f"{path}/{inner}", matched, is_by_id=True)


def look(log_dirs: Sequence[str]) -> Look:
    """Read everything."""
    looker = _Looker()
    for disk, path in enumerate(log_dirs):
        looker.log_dir(disk, path)
        looker.work_root(disk, path + WORK)
    return Look(tuple(looker.dirs), looker.files, looker.directories)
