"""A metadata log folded into an image, its memory, a tail folded on, and disks reconciled with it.

``python -m benchmarks.metadata [RECORDS] [--rounds N]``: a log of a fifth as many partitions as records, with three
replicas each and their directory ids. The image is read in a process of its own, in turn with the stock decoder on the
same file where the cache of the Kafka tests holds a release, else with our plain readers of records; all output goes
to nowhere.

Spec: design §10, metadata; kafka-formats §8, §9.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from benchmarks.measure import HOME, Row, in_turn, rows_of, show
from benchmarks.metadata_records import PARTITIONS_OF_A_TOPIC, RECORDS, stock_decoder, write_log
from logdir.clock import Instant
from logdir.cluster.image import Broker, Image, Partition, Source, Topic
from logdir.decide.image.trust import HostContext
from logdir.decide.reconcile import ReconcileRequest, plan_reconcile
from logdir.decide.staged.deadline import DelayPolicy
from logdir.evidence import Proof, Removed
from logdir.formats.own.controller_file import begin
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Checkpoints
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts, Replica
from logdir.replica_ref import ReplicaRef

ROUNDS = 7
TAIL = 1000
"""Records."""
LOG_DIRS = 12
_NODE, _CLUSTER, _NOW_MS = 7, "MkU3OEVBNTcwNTJENDM2Qk", 1_700_000_000_000
_OF_THE_STOCK_DECODER = 2.0
_REMOVED_EVERY = 100
"""One topic in so many is gone from the cluster."""

_READ = """
import json, sys
def memory(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))
bare = memory("VmRSS:")
import gc, time
from logdir.cluster import metadata_log
from logdir.cluster.metadata_log import Watermark
loaded = memory("VmRSS:")
directory, records, tail, rounds = sys.argv[1], *map(int, sys.argv[2:5])
def read(end, known=None):
    mark = Watermark(offset=end, epoch=1, is_prefix_checked=True)
    return metadata_log.read(directory, node_id=7, cluster_id="MkU3OEVBNTcwNTJENDM2Qk", watermark=mark, known=known)
image = read(records)
assert (image.offset, image.ended) == (records, None), (image.offset, image.ended)
if tail:
    gc.collect()
    said = {"image": memory("VmRSS:") - loaded}
    said["partitions"] = sum(len(topic.partitions) for topic in image.topics.values())
    said["peak"] = memory("VmHWM:") - bare
    said["tail_ms"] = []
    for _ in range(rounds):
        began = time.perf_counter()
        assert read(records + tail, image).offset == records + tail
        said["tail_ms"].append(1000 * (time.perf_counter() - began))
    print(json.dumps(said))
"""


class Figure(NamedTuple):
    """One absolute figure and what it may be."""

    what: str
    found: float
    budget: float

    @property
    def verdict(self) -> str:
        """``met`` or ``MISSED``."""
        return "met" if self.found <= self.budget else "MISSED"


def show_figures(figures: list[Figure]) -> str:
    """Return the figures as a Markdown table."""
    lines = ["| what | found | budget | |", "| --- | --- | --- | --- |"]
    lines += [f"| {one.what} | {one.found:,.1f} | ≤ {one.budget:,g} | {one.verdict} |" for one in figures]
    return "\n".join(lines)


def _command(directory: str, records: int, tail: int, rounds: int = 1) -> list[str]:
    code = f"import sys; sys.path.insert(0, {HOME!r}){_READ}"
    return [sys.executable, "-c", code, directory, str(records), str(tail), str(rounds)]


def read(work: str, records: int, rounds: int) -> tuple[list[Row], list[Figure]]:
    """Write a log, and read it: against the decoder, and for itself.

    Args:
        work: An empty directory.
        records: A multiple of five times what a topic has in partitions.
        rounds: Of each.
    """
    if records <= 0 or records % (5 * PARTITIONS_OF_A_TOPIC):
        raise SystemExit(f"a multiple of {5 * PARTITIONS_OF_A_TOPIC} records, not {records}")
    directory = os.path.join(work, "__cluster_metadata-0")
    os.mkdir(directory)
    path = os.path.join(directory, f"{0:020}.log")
    write_log(path, records)
    stock = stock_decoder(path)
    baseline = "stock decoder" if stock else "records read"
    plain = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from logdir.wire.batches import read_batches\nfrom logdir.wire.metadata_fast import read_fast\n"
        "for batch in read_batches(open(sys.argv[1], 'rb').read()):\n    for _ in read_fast(batch): pass\n"
    )
    commands = {"image of a log": _command(directory, records, 0)}
    commands[baseline] = stock or [sys.executable, "-c", plain, path, HOME]
    medians = in_turn(commands, rounds)
    budgets = {"image of a log": _OF_THE_STOCK_DECODER if stock else None}
    rows = rows_of(medians, {"image of a log": baseline}, budgets, f", {records:,} records")
    with open(path, "ab") as file:
        file.write(_tail(path, records))
    said = json.loads(
        subprocess.run(_command(directory, records, TAIL, rounds), check=True, stdout=subprocess.PIPE).stdout
    )
    return rows, [
        Figure("bytes of the image, a partition", said["image"] / said["partitions"], 600),
        Figure("MB above the interpreter, at most", said["peak"] / 1e6, 200),
        Figure(f"ms to fold {TAIL:,} records on, median", statistics.median(said["tail_ms"]), 50),
    ]


def _tail(path: str, records: int) -> bytes:
    """Return batches of leader changes that go on from a log."""
    from logdir.wire.batch_writer import metadata_batch
    from logdir.wire.batches import read_batches
    from logdir.wire.metadata_fast import PartitionRow, read_fast
    from logdir.wire.metadata_records import MetadataRecord, encode

    with open(path, "rb") as file:
        first = (row for batch in read_batches(file.read(1 << 20), path) for _, row in read_fast(batch))
        known = [(row.topic_id, row.partition) for row in first if isinstance(row, PartitionRow)]
    values = [
        encode(
            MetadataRecord(
                type=5,
                version=2,
                fields={
                    "partitionId": known[number % len(known)][1],
                    "topicId": known[number % len(known)][0],
                    "leader": 1,
                },
            )
        )
        for number in range(TAIL)
    ]
    batches = (
        metadata_batch(values[begin : begin + 20], base_offset=records + begin, epoch=1, timestamp_ms=_NOW_MS + 1)
        for begin in range(0, TAIL, 20)
    )
    return b"".join(batches)


def _broker(partitions: int) -> tuple[Image, tuple[LogDirFacts, ...]]:
    """Return a broker all of whose partitions lie on its disks, and what its cluster says: a topic in 100 is gone."""
    topics: dict[bytes, Topic] = {}
    removed: dict[bytes, Removed] = {}
    replicas: list[list[Replica]] = [[] for _ in range(LOG_DIRS)]
    for number in range(partitions // PARTITIONS_OF_A_TOPIC):
        name, raw = f"topic-{number}", number.to_bytes(16, "big")[::-1]
        if number % _REMOVED_EVERY == 1:
            removed[raw] = Removed(proof=Proof.METADATA_LOG, as_of_ms=_NOW_MS)
        else:
            given = {partition: Partition((_NODE, 8, 9), (_NODE, 8, 9)) for partition in range(PARTITIONS_OF_A_TOPIC)}
            topics[raw] = Topic(name, raw, given)
        for partition in range(PARTITIONS_OF_A_TOPIC):
            at = (number + partition) % LOG_DIRS
            replica = Replica(
                log_dir=f"/d{at}",
                path=f"{name}-{partition}",
                kind=Kind.LIVE,
                ref=ReplicaRef(topic=name, topic_id=TopicId(raw), partition=partition),
                inode=1,
                log_bytes=1000,
                segments=1,
                first_offset=0,
                checkpoints=Checkpoints(),
            )
            replicas[at].append(replica)
    image = Image(
        source=Source.METADATA_LOG,
        origin="/m",
        node_id=_NODE,
        cluster_id=_CLUSTER,
        epoch=1,
        offset=1,
        as_of_ms=_NOW_MS,
        topics=topics,
        names={topic.name: raw for raw, topic in topics.items()},
        brokers={_NODE: Broker(incarnation=bytes(16), epoch=1)},
        removed=removed,
    )
    facts = tuple(
        LogDirFacts(log_dir=f"/d{at}", problem=None, cluster_id=_CLUSTER, node_id=_NODE, replicas=tuple(found))
        for at, found in enumerate(replicas)
    )
    return image, facts


def reconcile(partitions: int, rounds: int) -> Figure:
    """Time what follows for a broker with so many partitions."""
    image, facts = _broker(partitions)
    request = ReconcileRequest(
        image=image,
        now=Instant(boot_id="boot", boottime_ms=10**8, wall_ms=_NOW_MS, is_synchronised=True),
        host_context=HostContext(last_applied=begin(_CLUSTER, _NODE), is_broker_running=False, is_own_log=True),
        births={(one.log_dir, replica.path): 0 for one in facts for replica in one.replicas},
        delays=DelayPolicy(),
        record=(),
        is_confirmed=True,
    )
    wanted = len(image.removed) * PARTITIONS_OF_A_TOPIC
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        plan = plan_reconcile(request, facts)
        times.append(time.perf_counter() - began)
        assert len(plan.actions) == wanted, (plan.refused, len(plan.actions), wanted)
    return Figure(f"s to reconcile {partitions:,} partitions, {wanted:,} of them gone", statistics.median(times), 1.5)


def measure(records: int = RECORDS, rounds: int = ROUNDS) -> str:
    """Measure all of it; return both tables."""
    with tempfile.TemporaryDirectory(prefix="logdird-metadata-") as work:
        rows, figures = read(work, records, rounds)
    return f"{show(rows)}\n\n{show_figures([*figures, reconcile(records // 5, rounds)])}"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=int, nargs="?", default=RECORDS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    print(measure(arguments.records, arguments.rounds))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
