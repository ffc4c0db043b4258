"""A million metadata records over 200,000 partitions read: ``python -m benchmarks.metadata_records [RECORDS]``.

Our readers in processes of their own, and the stock decoder on the same file where the cache of the Kafka tests holds a
release; all output goes to nowhere. Not here: folding the records into an image.

Spec: design §10, metadata; kafka-formats §9.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import HOME, Row, in_turn, rows_of, show
from logdir.wire.batch_writer import metadata_batch
from logdir.wire.metadata_records import MetadataRecord, encode
from tests.kafka.fetch import cache_dir, is_whole

RECORDS = 1_000_000
PARTITIONS_OF_A_TOPIC = 50
RECORDS_OF_A_BATCH = 20
"""A controller writes what belongs together as one batch: a topic's making, a broker's fall."""

ROUNDS = 3
_RELEASE = "4.3.1"

_READ = """
import mmap, sys
from logdir.wire.batches import read_batches, read_values
from logdir.wire.metadata_fast import read_fast
from logdir.wire.metadata_records import decode
with open(sys.argv[2], "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
    count = 0
    for batch in read_batches(data, sys.argv[2]):
        if sys.argv[1] == "fast":
            for _ in read_fast(batch):
                count += 1
        else:
            for _, value in read_values(batch):
                decode(value)
                count += 1
assert count == int(sys.argv[3]), count
"""


def _values(records: int) -> Iterator[bytes]:
    """Yield a fifth of partitions, with their topics, then changes of random partitions."""
    draw = random.Random(1)
    partitions = records // 5
    topics = [draw.randbytes(16) for _ in range(-(-partitions // PARTITIONS_OF_A_TOPIC))]
    directories = [draw.randbytes(16) for _ in range(60)]
    made = 0
    for number, topic in enumerate(topics):
        yield encode(MetadataRecord(type=2, version=0, fields={"name": f"topic-{number}", "topicId": topic}))
        made += 1
        for partition in range(min(PARTITIONS_OF_A_TOPIC, partitions - number * PARTITIONS_OF_A_TOPIC)):
            replicas = tuple(draw.sample(range(1, 101), 3))
            fields = {
                "partitionId": partition, "topicId": topic, "replicas": replicas, "isr": replicas,
                "removingReplicas": (), "addingReplicas": (), "leader": replicas[0], "leaderEpoch": 0,
                "partitionEpoch": 0, "directories": tuple(draw.sample(directories, 3)),
            }  # fmt: skip
            yield encode(MetadataRecord(type=3, version=2, fields=fields))
            made += 1
    for _ in range(records - made):
        fields = {
            "partitionId": draw.randrange(PARTITIONS_OF_A_TOPIC), "topicId": draw.choice(topics),
            "isr": tuple(draw.sample(range(1, 101), draw.choice((2, 3)))),
        }  # fmt: skip
        if draw.random() < 0.5:
            fields["leader"] = draw.randrange(1, 101)
        yield encode(MetadataRecord(type=5, version=2, fields=fields))


def write_log(path: str, records: int) -> None:
    """Write a segment of the metadata log."""
    lot: list[bytes] = []
    offset = 0
    with open(path, "wb") as file:
        for value in _values(records):
            lot.append(value)
            if len(lot) == RECORDS_OF_A_BATCH or offset + len(lot) == records:
                file.write(metadata_batch(lot, base_offset=offset, epoch=1, timestamp_ms=1_700_000_000_000))
                offset += len(lot)
                lot = []


def stock_decoder(path: str) -> list[str]:
    """Return the command that decodes a log; empty where no release is at hand."""
    release = cache_dir(os.environ) / _RELEASE
    if not is_whole(Path(release)):
        return []
    start = [
        "java",
        "-XX:-UsePerfData",
        "-Xmx512m",
        "-cp",
        f"{release}/libs/*",
        "org.apache.kafka.tools.DumpLogSegments",
    ]
    return [*start, "--cluster-metadata-decoder", "--files", path]


def measure(records: int = RECORDS, rounds: int = ROUNDS) -> list[Row]:
    """Write the log, read it in turn."""
    with tempfile.TemporaryDirectory(prefix="logdird-metadata-") as work:
        path = os.path.join(work, "00000000000000000000.log")
        write_log(path, records)
        ours = [sys.executable, "-c", f"import sys; sys.path.insert(0, {HOME!r}){_READ}"]
        commands = {name: [*ours, name, path, str(records)] for name in ("fast", "tables")}
        stock = stock_decoder(path)
        if stock:
            commands["stock decoder"] = stock
        medians = in_turn(commands, rounds)
    baseline = "stock decoder" if stock else "tables"
    return rows_of(
        medians, {"fast": baseline, "tables": baseline}, {"fast": 2.0} if stock else {}, f", {records:,} records"
    )


def main() -> int:
    """Measure and print."""
    print(show(measure(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
