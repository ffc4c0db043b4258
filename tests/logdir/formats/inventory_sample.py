"""One good inventory with every kind of value, its bytes, and ways to take it apart."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from logdir.errors import FormatError, MalformedFileError
from logdir.formats.own.inventory import MAX_INT, Disk, Entry, Inventory, parse, render

PATH = "/inventories/1-0123456789ab.jsonl"
DISK = Disk(
    log_dir="/var/lib/kafka/d1",
    taken_at_ms=1_700_000_000_123,
    exact=False,
    status="ok",
    cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
    node_id=3,
    rack="eu-1a",
    log_dirs=("/var/lib/kafka/d1", "/var/lib/kafka/d2"),
    directory_id="JEXY6aqzQY-32P5TStzaFg",
    device="8:17",
    fs_type="xfs",
    total_bytes=1 << 40,
    free_bytes=1 << 39,
    total_inodes=1000,
    free_inodes=900,
    layout="topic-name",
)
ENTRIES = (
    Entry("unknown", "log-dir", "b\ufffd-0", "62ff2d30", files=0),
    Entry("file", "log-dir", "meta.properties", bytes=88),
    Entry("live", "log-dir", "x-y-3-0", None, "x-y-3", "eXOy6xj-Q8ivrWAlsZGnkw", 0, 120, 120, 6, 2, 0, 50, -1, 5),
    Entry("live", "log-dir", "é\u2028-1", topic="t", partition=MAX_INT, problems=("symlink", "unreadable")),
    Entry("staged", "work-root", "deleting/no-id.t_5", topic="t", partition=5),
)
GOLDEN = (
    '{"cluster_id":"MkU3OEVBNTcwNTJENDM2Qk","device":"8:17","directory_id":"JEXY6aqzQY-32P5TStzaFg","exact":false,'
    '"free_bytes":549755813888,"free_inodes":900,"fs_type":"xfs","inventory":1,"layout":"topic-name",'
    '"log_dir":"/var/lib/kafka/d1","log_dirs":["/var/lib/kafka/d1","/var/lib/kafka/d2"],"node_id":3,"problems":[],'
    '"rack":"eu-1a","status":"ok","taken_at_ms":1700000000123,"total_bytes":1099511627776,"total_inodes":1000}\n'
    '{"bytes":null,"files":0,"first_offset":null,"kind":"unknown","last_base_offset":null,"log_bytes":null,'
    '"name":"b\ufffd-0","name_hex":"62ff2d30","newest_ms":null,"oldest_ms":null,"partition":null,"problems":[],'
    '"root":"log-dir","segments":null,"topic":null,"topic_id":null}\n'
    '{"bytes":88,"files":null,"first_offset":null,"kind":"file","last_base_offset":null,"log_bytes":null,'
    '"name":"meta.properties","name_hex":null,"newest_ms":null,"oldest_ms":null,"partition":null,"problems":[],'
    '"root":"log-dir","segments":null,"topic":null,"topic_id":null}\n'
    '{"bytes":120,"files":6,"first_offset":0,"kind":"live","last_base_offset":50,"log_bytes":120,'
    '"name":"x-y-3-0","name_hex":null,"newest_ms":5,"oldest_ms":-1,"partition":0,"problems":[],'
    '"root":"log-dir","segments":2,"topic":"x-y-3","topic_id":"eXOy6xj-Q8ivrWAlsZGnkw"}\n'
    '{"bytes":null,"files":null,"first_offset":null,"kind":"live","last_base_offset":null,"log_bytes":null,'
    '"name":"é\u2028-1","name_hex":null,"newest_ms":null,"oldest_ms":null,"partition":9223372036854775807,'
    '"problems":["symlink","unreadable"],"root":"log-dir","segments":null,"topic":"t","topic_id":null}\n'
    '{"bytes":null,"files":null,"first_offset":null,"kind":"staged","last_base_offset":null,"log_bytes":null,'
    '"name":"deleting/no-id.t_5","name_hex":null,"newest_ms":null,"oldest_ms":null,"partition":5,"problems":[],'
    '"root":"work-root","segments":null,"topic":"t","topic_id":null}\n'
).encode()


def whole(disk: Disk = DISK, entries: tuple[Entry, ...] = ENTRIES) -> bytes:
    return b"".join(render(disk, entries))


def read(data: bytes) -> Inventory:
    return parse(data.splitlines(keepends=True) if b"\r" not in data else lines_of(data), PATH)


def lines_of(data: bytes) -> list[bytes]:
    """Split as an open binary file does, by LF alone."""
    return [line for line in data.replace(b"\n", b"\n\0\n").split(b"\0\n") if line]


def refused(data: bytes, line: int, kind: type[FormatError] = MalformedFileError) -> FormatError:
    with pytest.raises(kind) as caught:
        parse(lines_of(data), PATH)
    assert caught.value.path == f"{PATH}:{line}"
    assert "\n" not in str(caught.value)
    assert caught.value.expected
    return caught.value


def signed(lines: list[dict[str, Any]] | list[bytes], **footer: object) -> bytes:
    """Put a true last line under lines that may be anything."""
    body = b"".join(x if isinstance(x, bytes) else json.dumps(x).encode() + b"\n" for x in lines)
    last = {"rows": len(lines) - 1, "sha256": sha256(body).hexdigest()} | footer
    return body + json.dumps(last).encode() + b"\n"


def objects() -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of(whole())[:-1]]
