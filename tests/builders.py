"""Log dirs in two lines."""

from __future__ import annotations

from pathlib import Path

META = "#\n#Tue Nov 14 22:13:20 UTC 2023\nnode.id={node}\ndirectory.id={directory}\nversion=1\ncluster.id={cluster}\n"
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
TOPIC_ID = "eXOy6xj-Q8ivrWAlsZGnkw"


def log_dir(path: Path, *, node: int = 1, directory: str = DIRECTORY, cluster: str = CLUSTER) -> Path:
    """Make a formatted log dir."""
    path.mkdir(parents=True)
    (path / "meta.properties").write_text(META.format(node=node, directory=directory, cluster=cluster))
    return path


def partition(
    path: Path,
    *,
    topic_id: str | None = TOPIC_ID,
    topic_name: str | None = None,
    segments: dict[int, int] | None = None,
) -> Path:
    """Make a partition directory: segments are base offset to size in bytes."""
    path.mkdir(parents=True)
    if topic_id is not None:
        third = "" if topic_name is None else f"\ntopic_name: {topic_name}"
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}{third}")
    for offset, size in ({0: 10} if segments is None else segments).items():
        (path / f"{offset:020}.log").write_bytes(bytes(size))
        (path / f"{offset:020}.index").write_bytes(bytes(4))
    return path
