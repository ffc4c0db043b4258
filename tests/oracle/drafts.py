"""Drafts of a fleet that the generator grows, and how they become files.

What it is: mutable drafts of clusters, brokers and disks; rows of §7.1 as dicts; a writer of inventory files
with every kind of damage that makes a disk unread, and of the fleet file.

What it is not: the project's own format module (it must not be: this one judges it), or a judge of readiness.

Spec: design §7.1, §7.2.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import yaml

DAMAGES = (
    "missing",
    "empty",
    "cut",
    "no-last-line",
    "no-last-lf",
    "altered",
    "more-lines",
    "rows-wrong",
    "cut-gzip",
    "folder",
    "doubled-equal",
    "doubled-other",
    "status-unreadable",
)
"""What can befall a listed inventory file; each makes its disk unread."""


@dataclass(slots=True, kw_only=True)
class DiskDraft:
    """One log dir: line 1, entries, and what befalls its file."""

    line: dict[str, Any]
    entries: list[dict[str, Any]] = field(default_factory=list)
    damage: str | None = None


@dataclass(slots=True, kw_only=True)
class BrokerDraft:
    """One broker entry."""

    node_id: int
    rack: str | None
    disks: list[DiskDraft]
    walked: list[str] = field(default_factory=list)
    """``log_dirs`` of the entry; none of them exists."""


@dataclass(slots=True, kw_only=True)
class ClusterDraft:
    """One cluster: its fleet-file settings and brokers."""

    name: str
    settings: dict[str, Any]
    cluster_id: str
    brokers: list[BrokerDraft]
    topics: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a writer spells its JSON; readers must not care."""

    sort_keys: bool
    ascii_only: bool
    extra_keys: bool
    gzipped: bool


def new_id(rng: Random) -> str:
    """Make a v4 id whose text does not start with ``-``."""
    while True:
        raw = bytearray(rng.randbytes(16))
        raw[6] = 0x40 | (raw[6] & 0x0F)
        raw[8] = 0x80 | (raw[8] & 0x3F)
        text = base64.urlsafe_b64encode(bytes(raw)).decode("ascii")[:22]
        if not text.startswith("-"):
            return text


def new_line(rng: Random, *, cluster_id: str, node_id: int, log_dir: str, rack: str | None) -> dict[str, Any]:
    """Make line 1 of a healthy disk; ``log_dirs`` is filled in by the caller."""
    total = rng.randrange(1, 17) * 10**12
    return {
        "inventory": 1,
        "cluster_id": cluster_id,
        "node_id": node_id,
        "rack": rack,
        "log_dir": log_dir,
        "log_dirs": None,
        "directory_id": base64.urlsafe_b64encode(rng.randbytes(16)).decode("ascii")[:22],
        "device": f"8:{rng.randrange(1, 200)}",
        "fs_type": rng.choice(("ext4", "xfs", "btrfs")),
        "total_bytes": total,
        "free_bytes": rng.randrange(total),
        "total_inodes": 10**8,
        "free_inodes": rng.randrange(10**8),
        "layout": "topic-name",
        "taken_at_ms": 1_700_000_000_000 + rng.randrange(10**9),
        "exact": rng.random() < 0.5,
        "status": "ok",
        "problems": [],
    }


def new_entry(
    rng: Random,
    kind: str,
    name: str,
    *,
    root: str = "log-dir",
    topic: str | None = None,
    topic_id: str | None = None,
    partition: int | None = None,
    problems: tuple[str, ...] = (),
    name_hex: str | None = None,
) -> dict[str, Any]:
    """Make an entry; figures are random, or ``null`` for a symlink and a plain file's segments."""
    entry: dict[str, Any] = {
        "kind": kind,
        "root": root,
        "name": name,
        "name_hex": name_hex,
        "topic": topic,
        "topic_id": topic_id,
        "partition": partition,
    }
    figures = (
        "log_bytes bytes files segments first_offset last_base_offset oldest_ms newest_ms".split()  # noqa: SIM905
    )
    if "symlink" in problems or "unreadable" in problems:
        entry.update(dict.fromkeys(figures))
    elif kind == "file" or "plain-file" in problems:
        entry.update(dict.fromkeys(figures))
        entry.update({"bytes": rng.randrange(5000), "log_bytes": 0, "files": 1, "segments": 0})
    else:
        segments, log_bytes = rng.randrange(1, 40), rng.randrange(1 << 40)
        first = rng.choice((0, rng.randrange(1 << 40)))
        oldest = 1_690_000_000_000 + rng.randrange(10**9)
        values = (
            log_bytes,
            log_bytes + rng.randrange(1 << 20),
            segments * 3 + 1,
            segments,
            first,
            first + rng.randrange(1 << 30),
            oldest,
            oldest + rng.randrange(10**8),
        )
        entry.update(dict(zip(figures, values, strict=True)))
    entry["problems"] = sorted(problems)
    return entry


def new_replica(
    rng: Random,
    topic: str,
    partition: int,
    topic_id: str | None,
    *,
    by_id: bool = False,
    problems: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Make a live replica, in the topic-id layout if asked and if it has an id."""
    name = f"{topic}-{partition}"
    if by_id and topic_id is not None:
        name = f"{topic_id[:2]}/{topic_id}_{partition}"
    if topic_id is None and not problems:
        problems = ("partition-metadata-missing",)
    return new_entry(rng, "live", name, topic=topic, topic_id=topic_id, partition=partition, problems=problems)


def _name_bytes(entry: dict[str, Any]) -> bytes:
    if entry["name_hex"] is not None:
        return bytes.fromhex(entry["name_hex"])
    name: str = entry["name"]
    return name.encode("utf-8")


def render_inventory(line: dict[str, Any], entries: list[dict[str, Any]], style: Style) -> bytes:
    """Write one inventory as §7.1 says, uncompressed."""

    def one(row: dict[str, Any]) -> bytes:
        if style.extra_keys:
            row = {**row, "later_key": {"x": [1, None]}}
        separators = (",", ":") if style.sort_keys else (", ", ": ")
        text = json.dumps(row, sort_keys=style.sort_keys, ensure_ascii=style.ascii_only, separators=separators)
        return text.encode("utf-8") + b"\n"

    ordered = sorted(entries, key=lambda entry: (entry["root"], _name_bytes(entry)))
    by_id = {"/" in entry["name"] for entry in entries if entry["kind"] == "live"}
    layout = {0: "empty", 2: "mixed"}.get(len(by_id), "topic-id" if True in by_id else "topic-name")
    body = b"".join([one({**line, "layout": layout}), *map(one, ordered)])
    return body + one({"rows": len(entries), "sha256": hashlib.sha256(body).hexdigest()})


def _cut(rng: Random, raw: bytes) -> bytes:
    return raw[: rng.randrange(1, len(raw) - 1)]


def damaged(rng: Random, draft: DiskDraft, raw: bytes) -> bytes:
    """Give the (uncompressed) bytes that are left of an inventory."""
    match draft.damage:
        case "empty":
            return b""
        case "cut":
            return _cut(rng, raw)
        case "no-last-line":
            return raw[: raw[:-1].rindex(b"\n") + 1]
        case "no-last-lf":
            return raw[:-1]
        case "altered":
            at = rng.randrange(raw[:-1].rindex(b"\n"))
            return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
        case "more-lines":
            return raw + b"{}\n"
        case "rows-wrong":
            body, last = raw[: raw[:-1].rindex(b"\n") + 1], raw[raw[:-1].rindex(b"\n") + 1 :]
            return body + json.dumps({**json.loads(last), "rows": len(draft.entries) + 1}).encode() + b"\n"
        case _:
            return raw


def write_disk(rng: Random, draft: DiskDraft, folder: Path, stem: str, style: Style) -> list[Path]:
    """Write what there is of one disk's inventory; the paths to list, which may not exist."""
    gzipped = draft.damage == "cut-gzip" or (style.gzipped and rng.random() < 0.7)
    path = folder / f"{stem}.jsonl{'.gz' if gzipped else ''}"
    line, entries = dict(draft.line), draft.entries
    if draft.damage == "status-unreadable":
        line.update({"status": "unreadable", "problems": ["io-error"]})
        entries = []
    if draft.damage == "missing":
        return [path]
    if draft.damage == "folder":
        path.mkdir()
        return [path]
    raw = damaged(rng, draft, render_inventory(line, entries, style))
    content = gzip.compress(raw, mtime=0) if gzipped else raw
    path.write_bytes(_cut(rng, content) if draft.damage == "cut-gzip" else content)
    if draft.damage not in ("doubled-equal", "doubled-other"):
        return [path]
    if draft.damage == "doubled-other":
        line["taken_at_ms"] += 60_000
        entries = entries[: len(entries) // 2]
    twin = folder / f"{stem}-again.jsonl"
    twin.write_bytes(render_inventory(line, entries, style))
    return [path, twin]


def write_fleet(rng: Random, clusters: list[ClusterDraft], folder: Path, style: Style) -> Path:
    """Write all inventories and ``fleet.yaml``; the path of the latter."""
    document: dict[str, Any] = {"clusters": []}
    for number, cluster in enumerate(clusters):
        items = []
        for ordinal, broker in enumerate(cluster.brokers):
            place = folder / f"c{number}" / f"b{ordinal}"
            place.mkdir(parents=True)
            listed: list[str] = []
            whole_place = True
            for index, disk in enumerate(broker.disks):
                for path in write_disk(rng, disk, place, f"d{index}", style):
                    whole_place = whole_place and path.is_file()
                    relative = str(path.relative_to(folder))
                    listed.append(path.resolve().as_uri() if rng.random() < 0.1 else relative)
            if listed and whole_place and rng.random() < 0.4:
                listed = [f"c{number}/b{ordinal}/*.jsonl*"]
            rng.shuffle(listed)
            item: dict[str, Any] = {"node_id": broker.node_id}
            if broker.rack is not None:
                item["rack"] = broker.rack
            if listed:
                item["inventories"] = listed
            if broker.walked:
                item["log_dirs"] = broker.walked
            items.append(item)
        document["clusters"].append({"name": cluster.name, **cluster.settings, "brokers": items})
    path = folder / "fleet.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return path
