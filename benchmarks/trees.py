"""Log dirs of a given size: many partition directories, many files in each."""

from __future__ import annotations

import os

PARTITIONS = 4_000
FILES = 30
SEGMENTS = 9
"""Of each partition; three files each, and three more files: 30 names, as a broker has them."""
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
NODE = 1
META = f"#\nversion=1\ncluster.id={CLUSTER_ID}\nnode.id={{node}}\ndirectory.id=JEXY6aqzQY-32P5TStza{{disk}}\n"
_ROOM = 40
"""Partitions of one topic."""


def make_log_dir(path: str, *, partitions: int = PARTITIONS, node: int = NODE, disk: int = 1) -> None:
    """Make one log dir of ``partitions`` directories with 30 files each."""
    os.makedirs(path)
    with open(os.path.join(path, "meta.properties"), "w", encoding="utf-8") as file:
        file.write(META.format(node=node, disk=f"F{disk % 10}"))
    for index in range(partitions):
        topic = index // _ROOM
        home = os.path.join(path, f"topic-{disk}-{topic:04}-{index % _ROOM}")
        os.mkdir(home)
        for segment in range(SEGMENTS):
            base = f"{segment * 100_000:020}"
            for suffix, size in ((".log", 100), (".index", 8), (".timeindex", 12)):
                _write(home, base + suffix, bytes(size))
        _write(home, f"{SEGMENTS * 100_000:020}.snapshot", bytes(10))
        _write(home, "leader-epoch-checkpoint", b"0\n1\n0 0\n")
        # A topic id whose text is legal and differs from topic to topic.
        text = f"eXOy6xj-Q8ivr{disk % 10}{topic:06}kw"
        _write(home, "partition.metadata", f"version: 0\ntopic_id: {text}".encode())


def _write(home: str, name: str, data: bytes) -> None:
    descriptor = os.open(os.path.join(home, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
