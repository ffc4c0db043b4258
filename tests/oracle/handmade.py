"""Fleets written by hand, broker by broker, for tests whose answer was worked out on paper.

What it is: a small writer of inventories and a fleet file. What it is not: random; equal calls
write equal bytes.

Spec: design §7.1, §7.2.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import yaml

from tests.oracle.drafts import Style, new_line, new_replica, render_inventory
from tests.oracle.oracle import Answer, answer

PLAIN = Style(sort_keys=True, ascii_only=False, extra_keys=False, gzipped=False)
ID_A, ID_B = "AcQAAAAAQACAAAAAAAAAAA", "BcQAAAAAQACAAAAAAAAAAA"
Entries = Sequence[dict[str, Any]]


def live(topic: str, partition: int, topic_id: str | None, **changes: Any) -> dict[str, Any]:
    by_id = changes.pop("by_id", False)
    entry = new_replica(Random(0), topic, partition, topic_id, by_id=by_id)
    entry.update({"log_bytes": 100, "bytes": 110, **changes})
    return entry


class Tiny:
    """A fleet written by hand: disks first, then the fleet file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clusters: dict[str, dict[str, Any]] = {}
        self.digests: dict[str, str] = {}

    def cluster(self, name: str, **settings: Any) -> None:
        renamed = {key.replace("_i", ".i").replace("_r", ".r"): value for key, value in settings.items()}
        self.clusters[name] = {"name": name, **renamed, "brokers": []}

    def broker(self, cluster: str, node_id: int, *disks: tuple[str, Entries] | str, **extra: Any) -> None:
        listed = []
        for disk in disks:
            if isinstance(disk, str):
                listed.append(disk)
                continue
            log_dir, entries = disk
            changes = extra.get(log_dir, {})
            line = new_line(Random(log_dir + str(node_id)), cluster_id="K", node_id=node_id, log_dir=log_dir, rack=None)
            raw = render_inventory({**line, **changes}, list(entries), PLAIN)
            path = self.folder / f"{cluster}-{len(self.digests)}.jsonl"
            path.write_bytes(raw)
            self.digests[path.name] = json.loads(raw.splitlines()[-1])["sha256"]
            listed.append(path.name)
        item: dict[str, Any] = {"node_id": node_id, "inventories": listed}
        if "rack" in extra:
            item["rack"] = extra["rack"]
        self.clusters[cluster]["brokers"].append(item)

    def write(self) -> Path:
        path = self.folder / "fleet.yaml"
        path.write_text(yaml.safe_dump({"clusters": list(self.clusters.values())}), encoding="utf-8")
        return path

    def answer(self, former: Path | None = None) -> Answer:
        return answer(self.write(), former)
