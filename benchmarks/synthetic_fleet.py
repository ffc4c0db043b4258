"""Inventories of a fleet of any size: 100 brokers with 10 disks each, three replicas, five racks.

``python -m benchmarks.synthetic_fleet DIR N`` writes about N partition directories into ``DIR`` and ``DIR/fleet.yaml``.
Every run writes the same bytes. Ten of the brokers share topics of their own, a few of which are wrong in each way the
planner must find; the other ninety are clean, so that nearly every partition directory gets a step.

Spec: design §7.1, §7.2, §10 "fleet plan"; spec/baselines.md §9.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from multiprocessing import get_context
from operator import itemgetter

from logdir.formats.own.inventory import Disk, Entry, render
from logdir.ids import TopicId

BROKERS, DISKS, REPLICAS, RACKS = 100, 10, 3, 5
PARTITIONS = 20
"""Of one topic."""
_TROUBLED = 10
"""Brokers, the last ones, that hold what is wrong; they have as many partitions each as the others."""
_SHIFTS = 30
"""Distances between the brokers of one partition, as a stock cluster varies them: some 2,700 sets of brokers."""
TAKEN_AT_MS = 1_700_000_000_000
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
# One topic in so many; coprime, so that they seldom meet.
_TWO_IDS, _NO_ID, _DELETED, _SHARED_ID = 503, 401, 307, 701


def _draw(text: str) -> str:
    counter = 0
    while (drawn := TopicId.from_random(sha256(f"{text} {counter}".encode()).digest()[:16])) is None:
        counter += 1
    return str(drawn)


@lru_cache(maxsize=4096)
def topic_id(topic: int, is_troubled: bool) -> str | None:
    """Return a topic's id; ``None`` for the few without one."""
    if topic % _NO_ID == 7:
        return None
    # Some topics have the id of the one before.
    return _draw(f"topic {topic - 1 if is_troubled and topic % _SHARED_ID == 11 else topic}")


def replicas_of(broker: int, partitions: int) -> Iterator[tuple[int, int]]:
    """Yield (partition of the fleet, which replica) for all that one broker holds."""
    # Whole topics on either side of the border.
    border = partitions * (BROKERS - _TROUBLED) // BROKERS // PARTITIONS * PARTITIONS
    first, pool, begin, end = 0, BROKERS - _TROUBLED, 0, border
    if broker >= pool:
        first, pool, begin, end = pool, _TROUBLED, border, partitions
    for block in range((end - begin + pool - 1) // pool):
        # No two replicas of a partition on one broker: one and two steps lead elsewhere.
        step = 1 + block % min(_SHIFTS, (pool - 1) // 2)
        for replica in range(REPLICAS):
            index = begin + block * pool + (broker - first - replica * step) % pool
            if index < end:
                yield index, replica


def _entry(broker: int, index: int, replica: int) -> Entry:
    topic, partition = divmod(index, PARTITIONS)
    name = f"topic-{topic:07}"
    is_troubled = broker >= BROKERS - _TROUBLED
    found = topic_id(topic, is_troubled)
    if found is not None and is_troubled and replica == 1 and topic % _TWO_IDS == 3:
        found = _draw(f"other {topic}")
    kind, path = "live", f"{name}-{partition}"
    if topic % _DELETED == 5:
        kind, path = "delete", f"{path}.{sha256(path.encode()).hexdigest()[:32]}-delete"
    size = 1 << (10 + index % 20)
    problems = ("partition-metadata-missing",) if found is None else ()
    return Entry(
        kind, "log-dir", path, None, name, found, partition, size, size, 6, 2, index, index + 10_000,
        TAKEN_AT_MS - 90_000_000 - index, TAKEN_AT_MS - index, problems,
    )  # fmt: skip


def write_broker(work: tuple[str, int, int]) -> int:
    """Write the inventories of one broker: (folder, broker, partitions of the fleet); return their entries."""
    folder, broker, partitions = work
    entries: list[list[Entry]] = [[] for _ in range(DISKS)]
    for index, replica in replicas_of(broker, partitions):
        entries[(index // BROKERS + replica) % DISKS].append(_entry(broker, index, replica))
    log_dirs = tuple(f"/disks/{number}/kafka" for number in range(DISKS))
    for number, log_dir in enumerate(log_dirs):
        bits = sha256(f"disk {broker} {number}".encode()).digest()[:16]
        disk = Disk(
            log_dir, TAKEN_AT_MS, False, "ok", (), CLUSTER, broker, f"rack-{broker % RACKS}", log_dirs,
            "A" + base64.urlsafe_b64encode(bits)[:20].decode() + "A", f"8:{number}", "xfs",
            1 << 42, 1 << 41, 1 << 28, 1 << 27, "topic-name" if entries[number] else "empty",
        )  # fmt: skip
        name = f"{broker}-{sha256(log_dir.encode()).hexdigest()[:12]}.jsonl"
        with open(os.path.join(folder, name), "wb") as file:
            file.writelines(render(disk, sorted(entries[number], key=itemgetter(1, 2))))
    return sum(map(len, entries))


def write_fleet(directory: str, partition_directories: int) -> int:
    """Write a fleet into a directory that does not exist; return the entries written."""
    os.makedirs(directory)
    partitions = max(1, partition_directories // REPLICAS)
    brokers = [
        {"node_id": broker, "rack": f"rack-{broker % RACKS}", "inventories": [f"{broker}-*.jsonl"]}
        for broker in range(BROKERS)
    ]
    fleet = {"clusters": [{"name": "synthetic", "cluster_id": CLUSTER, "min.insync.replicas": 2, "brokers": brokers}]}
    with get_context("spawn").Pool(len(os.sched_getaffinity(0))) as pool:
        written = sum(pool.imap_unordered(write_broker, [(directory, broker, partitions) for broker in range(BROKERS)]))
    path = os.path.join(directory, "fleet.yaml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(fleet, file, indent=1)  # JSON is YAML
        file.write("\n")
    return written


if __name__ == "__main__":
    print(write_fleet(sys.argv[1], int(sys.argv[2])), "partition directories")
