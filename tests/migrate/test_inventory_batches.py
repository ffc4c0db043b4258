"""Inventory files as batches: the fast reader never says more than the judge does."""

from __future__ import annotations

import gzip
import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'logdird[fleet]'")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logdir.errors import FormatError
from logdir.formats.own.inventory import Disk, Entry, parse, render, sort_key
from migrate.source import inventory_batches
from migrate.source.inventory_batches import Broken, open_inventory

DISK = Disk(log_dir="/data/a", taken_at_ms=1, exact=False, status="ok", log_dirs=("/data/a", "/data/b"))


def entry(name: str, **changes: object) -> Entry:
    topic, _, index = name.rpartition("-")
    known = {"topic": topic, "partition": int(index), "log_bytes": 5, "bytes": 5, "oldest_ms": -1}
    return Entry("live", "log-dir", name)._replace(**(known | changes))  # type: ignore[arg-type]


ENTRIES = tuple(sorted((entry(f"t-{n}") for n in range(30)), key=sort_key))


def closed(lines: list[bytes]) -> bytes:
    """Return lines with the last line that makes them a file, whatever they say."""
    body = b"".join(line + b"\n" for line in lines)
    last = {"rows": len(lines) - 1, "sha256": sha256(body).hexdigest()}
    return body + json.dumps(last).encode() + b"\n"


def lines_of(disk: Disk = DISK, entries: tuple[Entry, ...] = ENTRIES) -> list[bytes]:
    return b"".join(render(disk, entries)).splitlines()[:-1]


def read(path: Path) -> tuple[Disk, str, list[tuple[object, ...]]] | str:
    with open_inventory(str(path)) as found:
        if isinstance(found, Broken):
            return found.slug
        rows = [tuple(row.values()) for batch in found.batches for row in batch.to_pylist()]
        return found.disk, found.sha256, rows


def judged(data: bytes, path: Path) -> tuple[Disk, str, list[tuple[object, ...]]] | str:
    try:
        found = parse(data.splitlines(keepends=True) if b"\r" not in data else _kept(data), str(path))
    except (FormatError, UnicodeError):
        return "not-whole"
    rows: list[tuple[object, ...]] = [tuple(list(v) if isinstance(v, tuple) else v for v in e) for e in found.entries]
    return found.disk, found.sha256, rows


def _kept(data: bytes) -> list[bytes]:
    *lines, rest = data.split(b"\n")
    return [line + b"\n" for line in lines] + ([rest] if rest else [])


def swap(old: bytes, new: bytes) -> bytes:
    lines = lines_of()
    assert old in lines[5]
    return closed([*lines[:5], lines[5].replace(old, new, 1), *lines[6:]])


@pytest.mark.parametrize("size", [64, 700, 4 * 1024 * 1024])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_whole_file_is_read_whatever_its_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, suffix: str
) -> None:
    monkeypatch.setattr(inventory_batches, "_BLOCK_BYTES", size)
    odd = (
        entry('q"\\\n-1'),
        entry(":x-1"),
        entry("é-2"),
        Entry("unknown", "log-dir", "\ufffdx", name_hex="ff78", problems=("plain-file", "a:b")),
        Entry("staged", "work-root", "deleting/x"),
    )
    entries = tuple(sorted(ENTRIES + odd, key=sort_key))
    data = b"".join(render(DISK, entries))
    path = tmp_path / f"i.jsonl{suffix}"
    path.write_bytes(gzip.compress(data) if suffix else data)
    found = read(path)
    assert found == judged(data, path)
    assert not isinstance(found, str)
    assert len(found[2]) == 35


def test_disk_without_entries_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "i.jsonl"
    path.write_bytes(b"".join(render(DISK._replace(status="unreadable", problems=("io-error",)), ())))
    found = read(path)
    assert not isinstance(found, str)
    assert (found[0].status, found[2]) == ("unreadable", [])


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(swap(b'"files":null', b'"files":1.0'), id="float"),
        pytest.param(swap(b'"files":null', b'"files":true'), id="bool"),
        pytest.param(swap(b'"files":null', b'"files":"1"'), id="text"),
        pytest.param(swap(b'"files":null', b'"files":-1'), id="negative"),
        pytest.param(swap(b'"files":null', b'"files":9223372036854775808'), id="too large"),
        pytest.param(swap(b'"files":null', b'"files":NaN'), id="NaN"),
        pytest.param(swap(b'"files":null,', b""), id="key missing"),
        pytest.param(swap(b'"files"', b'"filez"'), id="key misspelt"),
        pytest.param(swap(b'"files":null', b'"files":null,"extra":[1]'), id="key unknown"),
        pytest.param(swap(b'"files":null', b'"files":1,"files":null'), id="key twice"),
        pytest.param(swap(b'"files":null', b'"files": null'), id="blank"),
        pytest.param(swap(b'"live"', b'"alive"'), id="kind"),
        pytest.param(swap(b'"log-dir"', b'"logdir"'), id="root"),
        pytest.param(swap(b'"problems":[]', b'"problems":[null]'), id="null in list"),
        pytest.param(swap(b'"problems":[]', b'"problems":null'), id="null list"),
        pytest.param(swap(b'"topic":"t"', b'"topic":"\\ud800"'), id="half a character"),
        pytest.param(swap(b'"topic":"t"', b'"topic":"\\u00e9"'), id="escaped"),
        pytest.param(swap(b'"topic":"t"', b'"topic":"\xff"'), id="no UTF-8"),
        pytest.param(swap(b'"topic":"t"', b'"topic":"\r"'), id="control"),
        pytest.param(swap(b'"name_hex":null', b'"name_hex":"zz"'), id="no hex"),
        pytest.param(swap(b'"name_hex":null', b'"name_hex":"ff"'), id="other name"),
        pytest.param(swap(b"{", b""), id="no object"),
        pytest.param(swap(b"{", b"{{"), id="brace"),
        pytest.param(swap(b"{", b"\n{"), id="empty line"),
        pytest.param(swap(b"}", b"}{}"), id="two on a line"),
        pytest.param(closed(lines_of()[:1] + lines_of()[:0:-1]), id="not sorted"),
        pytest.param(closed([*lines_of()[:5], lines_of()[4], *lines_of()[5:]]), id="entry twice"),
        pytest.param(closed(lines_of()[1:]), id="no disk"),
        pytest.param(closed([lines_of()[0].replace(b":1,", b":2,", 1), *lines_of()[1:]]), id="newer"),
        pytest.param(closed([b"\xef\xbb\xbf" + lines_of()[0], *lines_of()[1:]]), id="BOM"),
        pytest.param(closed([lines_of()[0].replace(b"/data/b", b"\\ud800"), *lines_of()[1:]]), id="half in the disk"),
        pytest.param(closed(lines_of()).replace(b'"rows": 30', b'"rows": 29'), id="rows"),
        pytest.param(closed(lines_of()).replace(b"t-7", b"t-6", 1), id="altered"),
        pytest.param(closed(lines_of())[:-1], id="last LF"),
        pytest.param(closed(lines_of()) + b"\n", id="line after the last"),
        pytest.param(b"\n".join(lines_of()) + b"\n", id="no last line"),
        pytest.param(lines_of()[0] + b"\n", id="only line 1"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\n", id="LF"),
        pytest.param(b"\0" * 5000, id="zeros"),
    ],
)
def test_verdict_is_the_judge_s(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "i.jsonl"
    path.write_bytes(data)
    assert read(path) == judged(data, path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.floats(0, 1, exclude_max=True), byte=st.binary(min_size=0, max_size=2), mend=st.booleans())
def test_mutated_bytes_are_judged_alike(tmp_path: Path, where: float, byte: bytes, mend: bool) -> None:
    data = closed(lines_of(entries=ENTRIES[:4]))
    at = int(where * len(data))
    data = data[:at] + byte + data[at + 1 :]
    if mend:  # a digest that fits: now types and order must be what refuses it
        data = closed(data.split(b"\n")[:-2])
    path = tmp_path / "i.jsonl"
    path.write_bytes(data)
    assert read(path) == judged(data, path)


def test_every_cut_is_not_whole(tmp_path: Path) -> None:
    data = closed(lines_of(entries=ENTRIES[:2]))
    path = tmp_path / "i.jsonl"
    for end in range(len(data)):
        path.write_bytes(data[:end])
        assert read(path) == "not-whole"


def test_every_cut_of_a_packed_file_says_nothing(tmp_path: Path) -> None:
    packed = gzip.compress(closed(lines_of(entries=ENTRIES[:2])), mtime=0)
    path = tmp_path / "i.jsonl.gz"
    for end in range(len(packed)):
        path.write_bytes(packed[:end])
        assert read(path) == "not-whole"
    path.write_bytes(packed[:40] + bytes([packed[40] ^ 255]) + packed[41:])
    assert read(path) == "not-whole"


def test_large_file_waits_on_disk_and_comes_back_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory_batches, "_HELD_BYTES", 1000)
    monkeypatch.setattr(inventory_batches, "_BLOCK_BYTES", 2000)
    data = closed(lines_of())
    path = tmp_path / "i.jsonl"
    path.write_bytes(data)
    assert read(path) == judged(data, path)


def test_line_without_end_is_refused_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory_batches, "_MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(inventory_batches, "_BLOCK_BYTES", 100)
    path = tmp_path / "i.jsonl"
    path.write_bytes(lines_of()[0] + b"\n" + b"x" * 5000 + b"\n{}\n")
    assert read(path) == "not-whole"


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").touch()
    for name, slug in (("none", "absent"), ("file/x", "absent"), (".", "io-error"), ("fifo", "io-error")):
        assert read(tmp_path / name) == slug
    with open_inventory("nosuch://host/file") as found:
        assert isinstance(found, Broken)
        assert found.slug == "io-error"


def test_uri_is_opened_by_pyarrow(tmp_path: Path) -> None:
    path = tmp_path / "i.jsonl.gz"
    path.write_bytes(gzip.compress(closed(lines_of())))
    with open_inventory(path.as_uri()) as found:
        assert not isinstance(found, Broken)
        assert sum(batch.num_rows for batch in found.batches) == 30
