"""A metadata log beside the log dirs of a test, for ``--from``: what the cluster assigns of what lies on them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from logdir.ids import TopicId
from logdir.names import parse_partition_dir
from tests.builders import log_dir
from tests.logdir.cluster.log_dir import LogDir, noop, partition, register, topic

Found = dict[tuple[str, bytes], set[int]]
_KNOWN: dict[Path, Found] = {}
"""What was on the disks of a test so far: what is staged by now stays in its cluster."""


def topics_on(disks: Iterable[Path]) -> Found:
    """Return name, id and partitions of every live replica that has an id."""
    found: Found = {}
    for path in (path for disk in disks if disk.exists() for path in disk.iterdir()):
        parts = parse_partition_dir(path.name)
        file = path / "partition.metadata"
        if parts is None or parts.topic.startswith("__cluster") or not file.exists():
            continue
        topic_id = TopicId.parse(file.read_text().splitlines()[1].partition(": ")[2])
        found.setdefault((parts.topic, bytes(topic_id)), set()).add(parts.partition)
    return found


def cluster_log(folder: Path, found: Found, replicas: tuple[int, ...], isr: tuple[int, ...] | None = None) -> LogDir:
    """Write a log with a snapshot at its end: brokers 1, 2 and 3, and these topics."""
    log = LogDir(log_dir(folder) / "__cluster_metadata-0")
    log.lead(1)
    records = [register(1, fenced=True), register(2), register(3)]  # node 1 is stopped
    for (name, topic_id), numbers in found.items():
        records.append(topic(name, topic_id))
        records += [partition(topic_id, number, replicas, isr=isr or replicas) for number in sorted(numbers)]
    for one in records:
        log.append(one)
    log.append(noop())
    log.snapshot(*records)
    return log


def elsewhere(folder: Path) -> tuple[str, str]:
    """Let a cluster assign what lies on ``d1`` and ``d2`` to brokers 2 and 3; return the words that name its log.

    What is staged with these words has a deadline, and no start of the broker serves it empty.
    """
    known = _KNOWN.setdefault(folder, {})
    merged = {
        key: known.get(key, set()) | numbers for key, numbers in topics_on((folder / "d1", folder / "d2")).items()
    }
    if known | merged != known or not (folder / "cluster").exists():
        known |= merged
        shutil.rmtree(folder / "cluster", ignore_errors=True)
        cluster_log(folder / "cluster", known, (2, 3))
    return "--from", f"metadata:{folder}/cluster/__cluster_metadata-0"
