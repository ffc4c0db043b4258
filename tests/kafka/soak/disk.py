"""What lies in three log dirs and their work roots: partition directories, and every record in them.

Read with the standard library alone, so that a fault of the product's readers does not hide itself.

Spec: kafka-formats §4 (record batches), §6 (names).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

MARKER: Final = "replica.json"
NEW_MARKER: Final = "replica.new.json"
"""The marker until it is whole."""
WORK: Final = ".logdird"
_BATCH: Final = struct.Struct(">qiibIhiqqqhii")
_BATCH_SIZE_AT: Final = 12
"""Bytes before the part of a batch that its length counts."""
_LIVE: Final = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)(?:\.[0-9a-f]{32}-(?P<kind>delete|stray))?")
_STAGED: Final = re.compile(r"(?P<id>[A-Za-z0-9_-]{22})_(?P<partition>\d+)(?:\.\d+)?(?P<mark>\.purging|\.ready)?")
_KAFKA_OWN: Final = "__cluster_metadata-"
_PROBE: Final = "probe"


class Record(NamedTuple):
    """One record."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes | None, bytes | None], ...] = ()


class Found(NamedTuple):
    """A partition directory where it was found."""

    place: str
    """``live``, ``delete``, ``stray``, ``staged``, ``purging`` or ``incoming``."""
    disk: int
    name: str
    topic: str
    """By its name; ``""`` in a work root."""
    topic_id: str
    """By its ``partition.metadata``; ``""`` without one."""
    partition: int
    content: str
    """Digest of its records; ``""`` without records."""
    inodes: dict[str, int]
    """Of each of its files."""
    marker: dict[str, Any] | None


def digest(records: Iterable[Record]) -> str:
    """Return the digest of records: of all that each has, in order."""
    whole = hashlib.sha256()
    is_empty = True
    for one in records:
        whole.update(repr(tuple(one)).encode())
        is_empty = False
    return "" if is_empty else whole.hexdigest()


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag varint and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at


def _bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _number(data, at)
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def records_of(data: bytes) -> Iterator[Record]:
    """Yield the records of a segment: whole batches of version 2 without compression, as the tests write them.

    Raises:
        ValueError: A batch is not whole.
        IndexError, struct.error: as well.
    """
    at = 0
    while at < len(data):
        base, length, _, magic, _, _, _, base_timestamp, *_, count = _BATCH.unpack_from(data, at)
        end = at + _BATCH_SIZE_AT + length
        if magic != 2 or end > len(data):
            raise ValueError(f"no whole batch at {at}")
        inner = at + _BATCH.size
        for _ in range(count):
            size, inner = _number(data, inner)
            following = inner + size
            inner += 1  # Attributes of a record are not used.
            timestamp, inner = _number(data, inner)
            delta, inner = _number(data, inner)
            key, inner = _bytes(data, inner)
            value, inner = _bytes(data, inner)
            headers = []
            number, inner = _number(data, inner)
            for _ in range(number):
                header, inner = _bytes(data, inner)
                content, inner = _bytes(data, inner)
                headers.append((header, content))
            if inner != following:
                raise ValueError(f"a record at {inner} ends at {following}")
            yield Record(base + delta, base_timestamp + timestamp, key, value, tuple(headers))
        at = end


def read(path: str, place: str, disk: int, topic: str, partition: int) -> Found:
    """Return a partition directory as it is.

    Raises:
        FileNotFoundError: Somebody removed it, or a file of it, meanwhile.
    """
    inodes: dict[str, int] = {}
    marker: dict[str, Any] | None = None
    topic_id = ""
    records: list[Record] = []
    for name in sorted(os.listdir(path)):
        whole = f"{path}/{name}"
        inodes[name] = Path(whole).stat().st_ino
        if name == MARKER:
            marker = _document(Path(whole).read_bytes())
        elif name == "partition.metadata":
            topic_id = Path(whole).read_text().partition("topic_id: ")[2].partition("\n")[0]
        elif name.endswith(".log"):
            try:
                records += records_of(Path(whole).read_bytes())
            except (ValueError, IndexError, struct.error) as error:
                records.append(Record(-1, 0, name.encode(), str(error).encode()))
    return Found(
        place, disk, os.path.basename(path), topic, topic_id, partition, digest(records), inodes, marker
    )  # fmt: skip


def _document(data: bytes) -> dict[str, Any]:
    """Return a marker; half a marker is none."""
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def work_of(log_dir: Path) -> str:
    """Return the work root of a log dir."""
    return f"{log_dir}{WORK}"


def look(log_dirs: Iterable[Path]) -> tuple[list[Found], list[str]]:
    """Return every partition directory, and the names that belong to nothing.

    What is renamed while it is read is read again; the broker and the daemon may run.
    """
    found: list[Found] = []
    odd: list[str] = []
    for disk, log_dir in enumerate(log_dirs):
        for path, place, topic, partition in _paths(log_dir, odd):
            try:
                found.append(read(path, place, disk, topic, partition))
            except (FileNotFoundError, NotADirectoryError):
                continue
    return found, odd


def _paths(log_dir: Path, odd: list[str]) -> Iterator[tuple[str, str, str, int]]:
    """Yield path, place, topic and partition; work roots last, because captures go there."""
    for name in sorted(os.listdir(log_dir)):
        path = f"{log_dir}/{name}"
        if name.startswith(_KAFKA_OWN) or not Path(path).is_dir():
            continue
        parts = _LIVE.fullmatch(name)
        if parts is None:
            odd.append(path)
            continue
        yield path, parts["kind"] or "live", parts["topic"], int(parts["partition"])
    for folder in ("incoming", "deleting"):
        below = f"{work_of(log_dir)}/{folder}"
        for name in sorted(os.listdir(below)):
            parts = _STAGED.fullmatch(name)
            if name == _PROBE:
                continue
            if parts is None:
                odd.append(f"{below}/{name}")
                continue
            place = "incoming" if folder == "incoming" else "purging" if parts["mark"] else "staged"
            yield f"{below}/{name}", place, "", int(parts["partition"])
