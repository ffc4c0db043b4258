"""What stock nodes wrote into their metadata logs, and what the stock decoder prints of it."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

METADATA = Path(__file__).parents[2] / "golden" / "metadata"
FILES = sorted(path for path in METADATA.glob("*/*") if path.suffix in (".log", ".checkpoint"))
DUMPED = [path for path in FILES if path.with_name(path.name + ".dump.txt.gz").exists()]

_RECORD = re.compile(
    r"\| offset: (\d+) CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+) sequence: -1 headerKeys: \[\] (\w+):? (.*)"
)


def label(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@dataclass
class PrintedRecord:
    """A line of a record."""

    offset: int
    timestamp: int
    key_size: int
    value_size: int
    kind: str
    """``payload`` of a metadata record; of a control record its name, or ``controlType`` in older releases."""
    text: str

    @property
    def document(self) -> Any:
        return json.loads(self.text)


@dataclass
class PrintedBatch:
    """A line of a batch, and those of its records."""

    fields: dict[str, str]
    records: list[PrintedRecord] = field(default_factory=list)


def printed(path: Path) -> list[PrintedBatch]:
    """Return what the stock decoder printed of a file."""
    return list(_printed(gzip.decompress(path.with_name(path.name + ".dump.txt.gz").read_bytes()).decode()))


def _printed(text: str) -> Iterator[PrintedBatch]:
    batch = None
    for line in text.splitlines():
        if line.startswith("baseOffset: "):
            if batch:
                yield batch
            batch = PrintedBatch(dict(re.findall(r"(\w+): (\S+)", line)))
        elif line.startswith("| "):
            match = _RECORD.fullmatch(line)
            assert match, line
            assert batch
            offset, timestamp, key_size, value_size = map(int, match.groups()[:4])
            batch.records.append(PrintedRecord(offset, timestamp, key_size, value_size, match[5], match[6]))
        else:
            assert line.startswith(("Dumping ", "Log starting offset: ", "Snapshot end offset: ")), line
    assert batch
    yield batch
