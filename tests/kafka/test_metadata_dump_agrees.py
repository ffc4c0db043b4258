"""Records of every type and version with random values, as the newest stock decoder prints them.

What real brokers log is compared in ``test_metadata_agrees``; here is what they log rarely or never.

Spec: kafka-formats §9; org.apache.kafka.tools.DumpLogSegments.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Final

import pytest

from logdir.cluster.metadata_file import opened
from logdir.metadata.dump import Dump
from logdir.wire.batch_writer import metadata_batch
from logdir.wire.metadata_records import TYPES, MetadataRecord, encode
from tests.kafka.jvm import java_command
from tests.logdir.cluster.odd_log import DOUBLES, TEXTS
from tests.logdir.wire.random_values import random_struct

pytestmark = pytest.mark.kafka

RELEASE: Final = "4.3.1"
SEED: Final = 20_261_121
EACH: Final = 12
"""Records of each version of each type."""


def _random_record(draw: random.Random, number: int, version: int) -> MetadataRecord:
    fields = random_struct(draw, TYPES[number].fields, version, flexible=True)
    # A JVM before 19 writes some numbers with more digits than needed: only such as all write alike.
    fields = {key: draw.choice(DOUBLES) if isinstance(value, float) else value for key, value in fields.items()}
    for key, value in fields.items():
        if isinstance(value, str) and draw.random() < 0.3:
            fields[key] = draw.choice(TEXTS)
    return MetadataRecord(type=number, version=version, fields=fields)


@pytest.mark.timeout(600)
def test_random_records_are_dumped_as_the_stock_decoder_does(jars: Callable[[str], Path], tmp_path: Path) -> None:
    draw = random.Random(SEED)
    values = [
        encode(_random_record(draw, number, version))
        for number, kind in TYPES.items()
        for version in kind.versions.all()
        for _ in range(EACH)
    ]
    assert len(values) >= EACH * len(TYPES)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(
        b"".join(
            metadata_batch(values[at : at + 20], base_offset=at, epoch=1, timestamp_ms=1_700_000_000_000 + at)
            for at in range(0, len(values), 20)
        )
    )
    java = java_command(libs=jars(RELEASE), root=tmp_path, heap_mib=128, level="OFF")
    tool = ["-Dfile.encoding=UTF-8", "org.apache.kafka.tools.DumpLogSegments", "--cluster-metadata-decoder"]
    done = subprocess.run(
        [*java, *tool, "--files", str(path)], capture_output=True, text=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stderr
    head, *theirs = done.stdout.split("\n")[:-1]
    assert head == f"Dumping {path}"
    with opened(str(path)) as file:
        dump = Dump(file)
        ours = list(dump.lines())
    assert dump.problems == []
    differ = [(o, t) for o, t in zip_longest(ours, theirs) if o != t]
    assert differ == [], f"{len(differ)} lines, the first: {differ[0]}"
    assert sum(line.startswith("| offset: ") for line in ours) == len(values)
