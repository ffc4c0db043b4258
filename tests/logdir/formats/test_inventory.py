"""The inventory file: whole or refused with its line, whatever was done to it."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdir.errors import FormatError, MalformedFileError, UnsupportedVersionError
from logdir.formats.inventory import (
    DISK_KEYS,
    ENTRY_KEYS,
    MAX_INT,
    Disk,
    Entry,
    Inventory,
    Kind,
    Root,
    digest_of,
    parse,
    render,
    sort_key,
)
from tests.mutation import proof_size

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
    Entry(
        "live", "log-dir", "x-y-3-0", None, "x-y-3", "eXOy6xj-Q8ivrWAlsZGnkw", 0, 120, 120, 6, 2, 0, 50, -1, 5
    ),
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


def test_golden_bytes() -> None:
    last = f'{{"rows":5,"sha256":"{sha256(GOLDEN).hexdigest()}"}}\n'.encode()
    assert whole() == GOLDEN + last
    again = read(GOLDEN + last)
    assert again == Inventory(DISK, ENTRIES, sha256(GOLDEN).hexdigest())
    assert digest_of(DISK, ENTRIES) == again.sha256


def test_keys_are_those_of_the_design() -> None:
    assert set(objects()[0]) == set(DISK_KEYS)
    assert all(set(entry) == set(ENTRY_KEYS) for entry in objects()[1:])


def test_unreadable_disk_is_two_lines() -> None:
    disk = Disk(log_dir="/gone", taken_at_ms=1, exact=True, status="unreadable", problems=("absent",))
    data = whole(disk, ())
    assert data.count(b"\n") == 2
    assert read(data)[:2] == (disk, ())


# Any text UTF-8 can hold; control characters, quotes and line separators included.
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_COUNT = st.none() | st.integers(0, MAX_INT)
_INTEGER = st.integers(-MAX_INT - 1, MAX_INT)
_TEXTS = st.lists(_TEXT, max_size=3).map(tuple)
_DISKS = st.builds(
    Disk,
    log_dir=_TEXT,
    taken_at_ms=_INTEGER,
    exact=st.booleans(),
    status=st.sampled_from(["ok", "unreadable"]),
    problems=_TEXTS,
    cluster_id=st.none() | _TEXT,
    node_id=st.none() | _INTEGER,
    rack=st.none() | _TEXT,
    log_dirs=st.none() | _TEXTS,
    directory_id=st.none() | _TEXT,
    device=st.none() | _TEXT,
    fs_type=st.none() | _TEXT,
    total_bytes=_COUNT,
    free_bytes=_COUNT,
    total_inodes=_COUNT,
    free_inodes=_COUNT,
    layout=st.sampled_from([None, "topic-name", "topic-id", "mixed", "empty"]),
)


@st.composite
def _entries(draw: st.DrawFn) -> Entry:
    raw = draw(st.binary(max_size=12))
    name = raw.decode("utf-8", "replace")
    counts = [draw(_COUNT) for _ in range(7)]
    return Entry(
        draw(st.sampled_from(Kind)).value,
        draw(st.sampled_from(Root)).value,
        name,
        None if name.encode() == raw else raw.hex(),
        draw(st.none() | _TEXT),
        draw(st.none() | _TEXT),
        counts[0],
        counts[1],
        counts[2],
        counts[3],
        counts[4],
        counts[5],
        counts[6],
        draw(st.none() | _INTEGER),
        draw(st.none() | _INTEGER),
        draw(_TEXTS),
    )


@given(disk=_DISKS, entries=st.lists(_entries(), max_size=6))
def test_what_is_written_reads_back_equal(disk: Disk, entries: list[Entry]) -> None:
    ordered = tuple(sorted(entries, key=sort_key))
    data = whole(disk, ordered)
    again = parse(lines_of(data), PATH)
    assert again[:2] == (disk, ordered)
    assert whole(*again[:2]) == data
    for line in lines_of(data):
        value = json.loads(line)
        assert line == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def test_cut_at_every_byte_is_refused_with_the_line() -> None:
    data = whole()
    for size in range(len(data)):
        cut = data[:size]
        # The line that is not whole; at a line's end, the one that should be the last one and is not.
        refused(cut, max(1, len(lines_of(cut)) + (cut.count(b"\n") == 1 and cut.endswith(b"\n"))))


def _damaged(data: bytes, draw: random.Random) -> bytes:
    """One to three wounds: bits, bytes, digits, spans, lines."""
    made = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(made)) if made else 0
        match draw.randrange(8):
            case 0:
                del made[at:]
            case 1 if made:
                made[at] ^= 1 << draw.randrange(8)
            case 2:
                made[at : at + 1] = bytes([draw.randrange(256)])
            case 3:
                pieces = (b"\n", b"\r\n", b"\xef\xbb\xbf", b"0", b" ", b"null", b'"', b"\xff", b"{}\n", b"}", b"\\ud800")
                made[at:at] = draw.choice(pieces)
            case 4:
                del made[at : at + draw.randint(1, 9)]
            case 5:
                made[at:at] = made[at : at + draw.randint(1, 400)]
            case 6:
                digits = [i for i, byte in enumerate(made) if 48 <= byte <= 57]
                if digits:
                    made[draw.choice(digits)] = draw.choice(b"0123456789")
            case _:
                lines = lines_of(bytes(made))
                draw.shuffle(lines)
                made = bytearray(b"".join(lines))
    return bytes(made)


def _mutations(count: int) -> Iterator[bytes]:
    draw = random.Random(20_240_516)
    data = whole()
    for _ in range(count):
        yield _damaged(data, draw)


def test_no_altered_file_is_taken_for_whole() -> None:
    outcomes = {"same": 0, "refused": 0, "equal": 0}
    good = whole()
    before = read(good)
    for data in _mutations(proof_size(10_000)):
        if data == good:
            outcomes["same"] += 1
            continue
        try:
            found = parse(lines_of(data), PATH)
        except FormatError as error:
            outcomes["refused"] += 1
            where, _, line = error.path.rpartition(":")
            assert where == PATH, data
            assert 1 <= int(line) <= max(2, len(lines_of(data))), data
            assert error.expected, data
            assert "\n" not in str(error), data
        else:
            # Only blanks in the last line, which the digest does not cover, may differ.
            outcomes["equal"] += 1
            assert found == before, data
            assert lines_of(data)[:-1] == lines_of(good)[:-1], data
            assert json.loads(lines_of(data)[-1])["rows"] == len(ENTRIES), data
    assert outcomes["refused"] > 0.9 * proof_size(10_000), outcomes


@pytest.mark.parametrize("row", range(1, 6))
def test_every_single_bit_of_a_row_counts(row: int) -> None:
    lines = lines_of(whole())
    for at in range(len(lines[row]) - 1):
        for bit in range(8):
            altered = bytearray(lines[row])
            altered[at] ^= 1 << bit
            with pytest.raises(FormatError):
                parse(lines_of(b"".join([*lines[:row], bytes(altered), *lines[row + 1 :]])), PATH)


def test_unsorted_rows_are_refused_though_signed() -> None:
    rows = objects()
    rows[2], rows[3] = rows[3], rows[2]
    assert "sorted" in refused(signed(rows), 4).expected


def test_rows_are_sorted_by_bytes_not_by_what_is_shown() -> None:
    # U+FFFD of the name sorts after "z"; the byte it stands for, 0xFF, after it too; but 0x80 before U+00E9.
    bad, good = Entry("unknown", "log-dir", "\ufffd", "80"), Entry("unknown", "log-dir", "é")
    assert read(whole(DISK, (bad, good))).entries == (bad, good)
    refused(whole(DISK, (good, bad)), 3)


def test_missing_last_line_feed_is_a_cut() -> None:
    assert "cut off" in refused(whole()[:-1], 7).found


def test_byte_order_mark_and_crlf_are_refused() -> None:
    refused(b"\xef\xbb\xbf" + whole(), 1)
    refused(whole().replace(b"\n", b"\r\n"), 7)
    refused(b"\xef\xbb\xbf" + whole().replace(b"\n", b"\r\n"), 1)


def test_second_last_line_is_refused() -> None:
    lines = lines_of(whole())
    refused(whole() + lines[-1], 7)
    refused(whole() + b"\n", 7)
    refused(whole() + whole(), 7)


def test_empty_file_and_lone_lines_are_refused() -> None:
    refused(b"", 1)
    refused(b"\n", 1)
    refused(lines_of(whole())[0], 2)
    refused(lines_of(whole())[-1], 1)
    refused(b'{"inventory":2}\n', 1, UnsupportedVersionError)


@pytest.mark.parametrize("rows", [4, 6, 0, -1, "5", None, True, 5.0, 10**400])
def test_rows_that_lie_are_refused(rows: object) -> None:
    refused(signed(objects(), rows=rows), 7)


@pytest.mark.parametrize("digest", ["", "0" * 64, None, 7, sha256(GOLDEN).hexdigest().upper()])
def test_digest_that_lies_is_refused(digest: object) -> None:
    refused(signed(objects(), sha256=digest), 7)


@pytest.mark.parametrize("version", [2, 99, 0, -1, 10**30])
def test_other_versions_are_refused_by_name(version: int) -> None:
    rows = objects()
    rows[0]["inventory"] = version
    assert str(version) in refused(signed(rows), 1, UnsupportedVersionError).found


def test_newer_version_speaks_before_what_else_a_newer_file_may_hold() -> None:
    refused(b'{"inventory":2,"disk":"else"}\nwhatever\nand no end', 1, UnsupportedVersionError)


@pytest.mark.parametrize("version", ["1", 1.0, True, None])
def test_version_is_an_integer(version: object) -> None:
    rows = objects()
    rows[0]["inventory"] = version
    refused(signed(rows), 1)


_ALIEN: tuple[object, ...] = (1.5, -1, 2**63, 10**300, True, "1", [], {}, [1], "\ud800", ["\udfff"])


@pytest.mark.parametrize("key", [key for key in DISK_KEYS if key != "inventory"])
def test_disk_values_of_a_wrong_type_are_refused(key: str) -> None:
    _alien_values(0, key)


@pytest.mark.parametrize("key", ENTRY_KEYS)
def test_entry_values_of_a_wrong_type_are_refused(key: str) -> None:
    _alien_values(3, key)


def _alien_values(row: int, key: str) -> None:
    for alien in _ALIEN:
        rows = objects()
        fits = _fits(rows[row][key], alien, key)
        rows[row][key] = alien
        data = signed(rows)
        if fits:
            assert read(data).disk is not None
        else:
            error = refused(data, row + 1)
            assert key in error.expected or "sorted" in error.expected or "name_hex" in error.expected
    rows = objects()
    del rows[row][key]
    assert refused(signed(rows), row + 1).expected == f"the key {key}"


_CLOSED = ("kind", "root", "status", "layout", "name_hex", "name")
_MAY_BE_NEGATIVE = ("node_id", "taken_at_ms", "oldest_ms", "newest_ms")


def _fits(now: object, alien: object, key: str) -> bool:
    """Whether ``alien`` may stand for ``key`` too; the type is told by the value that stands there."""
    if key in _CLOSED:
        return False
    if isinstance(now, bool | str | list):
        return alien in {bool: (True,), str: ("1",), list: ([],)}[type(now)] and type(alien) is type(now)
    return key in _MAY_BE_NEGATIVE and type(alien) is int and alien == -1


@pytest.mark.parametrize(
    "text",
    [
        "1" * 5000,
        "1e400",
        "-1e400",
        "NaN",
        "Infinity",
        "9223372036854775808",
        "1.0",
        "[" * 100_000,
        '"' + "\\ud83d" + '"',
    ],
    ids=["digits", "inf", "-inf", "nan", "infinity", "2**63", "float", "deep", "half"],
)
@pytest.mark.parametrize("place", [b'"files":6', b'"problems":[]', b'"rack":"eu-1a"'], ids=["count", "list", "text"])
def test_numbers_no_machine_holds_are_refused_with_the_line(text: str, place: bytes) -> None:
    body = GOLDEN.replace(place, place.split(b":")[0] + b":" + text.encode(), 1)
    data = body + f'{{"rows":5,"sha256":"{sha256(body).hexdigest()}"}}\n'.encode()
    refused(data, body[: next(i for i in range(len(body)) if body[i] != GOLDEN[i])].count(b"\n") + 1)


def test_pairs_of_surrogates_are_one_character() -> None:
    rows = objects()
    rows[0]["rack"] = "\U0001f980"
    assert b"\\ud83e\\udd80" in signed(rows)
    assert read(signed(rows)).disk.rack == "\U0001f980"


def test_unknown_keys_and_other_spelling_of_json_are_read() -> None:
    rows = objects()
    for row in rows:
        row["future"] = {"a": [1, 2.5, None]}
    found = read(signed(rows, later=1))
    assert found[:2] == (DISK, ENTRIES)


@pytest.mark.parametrize("text", ["6", "zz", "626", "620a", "62ff2d31", ""])
def test_name_hex_that_is_not_the_name_is_refused(text: str) -> None:
    rows = objects()
    rows[1]["name_hex"] = text
    refused(signed(rows), 2)


def test_lines_that_are_no_objects_are_refused() -> None:
    for line in (b"[]", b"1", b'"x"', b"null", b"", b"{", b"\xff"):
        refused(signed([GOLDEN.splitlines(keepends=True)[0], line + b"\n"]), 2)


def test_reading_from_an_open_file(tmp_path: Any) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(whole())
    with open(path, "rb") as file:
        assert parse(file, os.fspath(path))[:2] == (DISK, ENTRIES)
