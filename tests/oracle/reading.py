"""Read a fleet file and its inventories, for the judge alone.

What it is: design §7.1 and §7.2 read once more, slowly, by code that shares nothing with the project. It
opens files one at a time and holds everything in memory.

What it is not: a reader for the product, a checker of fleet files (those of the generator are valid), or a
walker: a log dir that exists is refused here, because the digest of a walked disk depends on the instant of
the walk.

Spec: design §7.1 (inventory file), §7.2 (fleet file, usable, unread disks).
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """One whole inventory: what line 1 says, the entries in order, the digest of the last line."""

    disk: Row
    entries: tuple[Row, ...]
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """One broker entry of the fleet file. ``ordinal`` is the only key: two entries may claim one node id."""

    ordinal: int
    cluster: str
    node_id: int
    rack: str | None
    usable: tuple[Inventory, ...]
    unread: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster of the fleet file; ``globs`` keeps the order of the file."""

    name: str
    cluster_id: str | None
    min_insync: int | None
    globs: tuple[tuple[str, int], ...]
    respect_racks: bool
    brokers: tuple[Broker, ...]


def parse_inventory(raw: bytes) -> Inventory | None:
    """Read the bytes of one (uncompressed) inventory file; None if it is not whole."""
    if not raw.endswith(b"\n"):
        return None
    lines = raw[:-1].split(b"\n")
    if len(lines) < 2:
        return None
    try:
        rows = [json.loads(line.decode("utf-8")) for line in lines]
    except ValueError:
        return None
    if not all(isinstance(row, dict) for row in rows):
        return None
    first, *entries, last = rows
    if first.get("inventory") != 1 or last.get("rows") != len(entries):
        return None
    body = b"".join(line + b"\n" for line in lines[:-1])
    if last.get("sha256") != hashlib.sha256(body).hexdigest():
        return None
    return Inventory(disk=first, entries=tuple(entries), sha256=last["sha256"])


def read_inventory(path: Path) -> Inventory | None:
    """Read one inventory file; None if it is missing, empty, cut off, altered or cannot be opened."""
    try:
        raw = path.read_bytes()
        if path.name.endswith(".gz"):
            raw = gzip.decompress(raw)
    except (OSError, EOFError, zlib.error):
        return None
    return parse_inventory(raw)


def expand(pattern: str, folder: Path) -> list[Path]:
    """Give the files that one item of ``inventories`` stands for, sorted; a plain path stands for itself."""
    if pattern.startswith("file://"):
        return [Path(unquote(urlsplit(pattern).path))]
    absolute = str(folder / pattern)
    if any(character in pattern for character in "*?["):
        return [Path(found) for found in sorted(glob.glob(absolute))]  # noqa: PTH207 - the pattern is absolute
    return [Path(absolute)]


def read_broker(item: Row, cluster: str, ordinal: int, folder: Path) -> Broker:
    """Read one broker entry with all it lists, and decide which disks are usable and how many are unread."""
    named = [str(folder / path) for path in item.get("log_dirs") or []]
    not_whole = 0
    whole: list[Inventory] = []
    for path in named:
        if Path(path).exists():
            raise AssertionError(f"{path}: the judge walks nothing")
        # "A disk that cannot be read is line 1 and last line": whole, status unreadable, no log_dirs known.
        whole.append(Inventory(disk={"log_dir": path, "log_dirs": None, "status": "unreadable"}, entries=(), sha256=""))
    for pattern in item.get("inventories") or []:
        for path_found in expand(pattern, folder):
            inventory = read_inventory(path_found)
            if inventory is None:
                not_whole += 1
            else:
                whole.append(inventory)
    claims = Counter(inventory.disk["log_dir"] for inventory in whole)
    usable = [
        inventory for inventory in whole if inventory.disk["status"] == "ok" and claims[inventory.disk["log_dir"]] == 1
    ]
    readable = {inventory.disk["log_dir"] for inventory in usable}
    by_listing = not_whole + len({log_dir for log_dir in claims if log_dir not in readable})
    expected = set(named)
    for inventory in whole:
        expected.add(inventory.disk["log_dir"])
        expected.update(inventory.disk["log_dirs"] or [])
    by_name = len(expected - readable)
    racks = sorted(inventory.disk["rack"] for inventory in usable if inventory.disk["rack"] is not None)
    rack = item.get("rack")
    if rack is None and racks:
        rack = racks[0]
    return Broker(
        ordinal=ordinal,
        cluster=cluster,
        node_id=item["node_id"],
        rack=rack,
        usable=tuple(usable),
        unread=max(by_listing, by_name),
    )


def read_fleet(fleet_yaml: Path) -> tuple[Cluster, ...]:
    """Read a valid fleet file and every inventory it lists; clusters and brokers in the file's order."""
    document = yaml.safe_load(fleet_yaml.read_text(encoding="utf-8"))
    folder = fleet_yaml.parent.resolve()
    clusters = []
    ordinal = 0
    for item in document["clusters"]:
        brokers = []
        for entry in item["brokers"]:
            brokers.append(read_broker(entry, item["name"], ordinal, folder))
            ordinal += 1
        globs = (item.get("topics") or {}).items()
        clusters.append(
            Cluster(
                name=item["name"],
                cluster_id=item.get("cluster_id"),
                min_insync=item.get("min.insync.replicas"),
                globs=tuple((pattern, values["min.insync.replicas"]) for pattern, values in globs),
                respect_racks=item.get("racks", "respect") == "respect",
                brokers=tuple(brokers),
            )
        )
    return tuple(clusters)
