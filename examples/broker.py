"""The brokers of the demonstration: trees that stock releases wrote, each under an identity of its own.

Not here: the metadata log (``cluster``), the conflicts (``demo``).
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from examples.cluster import Cluster, directory_id, properties, rename_topics, retell
from logdir.ids import DirectoryId

TREES = Path(__file__).parent / "trees"


class Member(NamedTuple):
    """One broker of the fleet: a copy of a tree under another identity."""

    cluster: str
    node_id: int
    rack: str | None
    tree: str
    folder: str
    """Where its log dirs lie, relative to the demonstration."""
    by_inventory: bool = False
    """Known by inventory files, as on a broker host; else its disks are walked."""
    extra: tuple[str, ...] = ()
    """Log dirs that are configured and not there."""


CLUSTER_IDS = {
    "orders": "MkU3OEVBNTcwNTJENDM2Qk",
    "billing": "XZhFlEqDQ_WJt0fqlZtdxg",
    "events": "ZGVtby1ldmVudHMtY2x1cw",
    "lab": "ZGVtby1sYWItY2x1c3RlcA",
}
TOPICS = {
    "orders": {
        "plain": "orders", "x-y-3": "payments", "rolled": "shipments", "compacted": "customers", "to-delete": "returns",
    }
}  # fmt: skip
"""Other names than those of the tree, by cluster."""


def set_property(log_dir: Path, key: str, value: str) -> None:
    """Set a key of a log dir's ``meta.properties``."""
    path = log_dir / "meta.properties"
    lines = [line for line in path.read_text("latin-1").splitlines() if not line.startswith(f"{key}=")]
    path.write_text("\n".join([*lines, f"{key}={value}", ""]), "latin-1")


def settle(member: Member, target: Path, fleet: Sequence[Member]) -> None:
    """Unpack a tree and give it the broker's identity, its metadata log, and a ``server.properties``.

    Args:
        member: The broker.
        target: Its folder, which is made.
        fleet: All brokers; those of its cluster have a replica of every partition, too.
    """
    with tarfile.open(TREES / f"{member.tree}.tar.xz") as archive:
        archive.extractall(target, filter="data")
    log_dirs = sorted(target.iterdir())
    topics = TOPICS.get(member.cluster, {})
    cluster = _cluster(member, log_dirs, topics, fleet)
    for log_dir in log_dirs:
        text = (log_dir / "meta.properties").read_text("latin-1")
        set_property(log_dir, "node.id" if "node.id=" in text else "broker.id", str(member.node_id))
        set_property(log_dir, "cluster.id", CLUSTER_IDS[member.cluster])
        if "directory.id=" in text:
            set_property(log_dir, "directory.id", str(directory_id(member.folder, log_dir.name)))
        rename_topics(log_dir, topics)
        metadata = log_dir / "__cluster_metadata-0"
        if metadata.is_dir():
            retell(metadata, cluster)
    lines = json.loads((TREES / f"{member.tree}.json").read_text())["server.properties"]
    configured = [*log_dirs, *(target / name for name in member.extra)]
    text = properties(lines, member.node_id, configured, is_first=member.node_id == cluster.nodes[0])
    (target / "server.properties").write_text(text)


def _cluster(member: Member, log_dirs: Sequence[Path], topics: Mapping[str, str], fleet: Sequence[Member]) -> Cluster:
    """Say as what cluster a tree is told: every broker entry has a replica of every partition."""
    folders = {one.node_id: one.folder for one in reversed(fleet) if one.cluster == member.cluster}
    nodes = tuple(sorted(folders))
    directories = {}
    for log_dir in log_dirs:
        for line in (log_dir / "meta.properties").read_text("latin-1").splitlines():
            if line.startswith("directory.id="):
                own = bytes(DirectoryId.parse(line.partition("=")[2].replace("\\", "")))
                folder = {**folders, member.node_id: member.folder}
                directories[own] = tuple(bytes(directory_id(folder[node], log_dir.name)) for node in nodes)
    return Cluster(nodes, directories, topics)
