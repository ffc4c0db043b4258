"""Small fleets by hand: inventory files on disk and the values of a fleet file, in a few lines."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from logdir.formats.own.inventory import Disk, Entry, render
from migrate.source.fleet import BrokerEntry, Cluster, Fleet

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"


def an_id(text: str) -> str:
    """Return some topic id, the same for the same text, that does not start with a dash."""
    import base64

    return "A" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())[:20].decode() + "A"


def live(topic: str, partition: int, topic_id: str | None = None, **more: Any) -> Entry:
    """Return a replica in the topic-name layout."""
    values: dict[str, Any] = {"log_bytes": 10, "bytes": 15, "files": 4, "segments": 1}
    return Entry(
        kind="live",
        root="log-dir",
        name=f"{topic}-{partition}",
        topic=topic,
        partition=partition,
        topic_id=topic_id,
        **(values | more),
    )


def live_by_id(topic: str | None, partition: int, topic_id: str, **more: Any) -> Entry:
    """Return a replica in the topic-id layout."""
    entry = live(topic or "", partition, topic_id, **more)
    return entry._replace(name=f"{topic_id[:2]}/{topic_id}_{partition}", topic=topic)


def entry(kind: str, name: str, **more: Any) -> Entry:
    """Return an entry of any kind."""
    return Entry(kind=kind, root="log-dir", name=name, **({"bytes": 7} | more))


@dataclass
class Builder:
    """Collects brokers and their inventories."""

    folder: Path
    clusters: dict[str, list[BrokerEntry]] = field(default_factory=dict)
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: int = 0

    def policy(self, cluster: str, **policy: Any) -> None:
        """Say what the fleet file says of a cluster."""
        self.clusters.setdefault(cluster, [])
        self.policies[cluster] = policy

    def disk(self, entries: list[Entry], *, broken: bool = False, **line: Any) -> str:
        """Write one inventory and return its path."""
        self.files += 1
        path = self.folder / f"{self.files:03}.jsonl"
        log_dir = line.pop("log_dir", f"/data/{self.files}")
        values: dict[str, Any] = {
            "taken_at_ms": 1,
            "exact": True,
            "status": "ok",
            "cluster_id": CLUSTER_ID,
            "directory_id": an_id(f"dir {self.files}"),
            "layout": "topic-name",
        }
        disk = Disk(log_dir=log_dir, **(values | line))
        ordered = sorted(entries, key=lambda e: (e.root, e.raw_name))
        data = b"".join(render(disk, ordered))
        path.write_bytes(data[:-5] if broken else data)
        return str(path)

    def broker(
        self,
        node_id: int,
        /,
        *disks: list[Entry],
        cluster: str = "east",
        rack: str | None = None,
        paths: tuple[str, ...] = (),
        log_dirs: tuple[str, ...] = (),
        **line: Any,
    ) -> None:
        """Add a broker entry with one inventory per list of entries."""
        written = tuple(self.disk(entries, **({"node_id": node_id} | line)) for entries in disks)
        self.clusters.setdefault(cluster, []).append(
            BrokerEntry(node_id=node_id, rack=rack, log_dirs=log_dirs, inventories=(*written, *paths))
        )

    def fleet(self) -> Fleet:
        """Return the fleet."""
        return Fleet(
            clusters=tuple(
                a_cluster(name, tuple(b), **self.policies.get(name, {})) for name, b in self.clusters.items()
            )
        )


def a_cluster(
    name: str,
    brokers: tuple[BrokerEntry, ...],
    *,
    cluster_id: str | None = None,
    min_insync: int | None = None,
    topics: tuple[tuple[str, int], ...] = (),
    racks: Literal["respect", "ignore"] = "respect",
) -> Cluster:
    """Return a cluster of a fleet file."""
    return Cluster(
        name=name, cluster_id=cluster_id, min_insync_replicas=min_insync, topics=topics, racks=racks, brokers=brokers
    )


def read_json(path: Path) -> Any:
    """Return a JSON file's value."""
    return json.loads(path.read_bytes())


def read_lines(path: Path) -> list[Any]:
    """Return the values of a file of JSON lines."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]
