"""The inventory file: whole or refused with its line, whatever was done to it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdir.errors import FormatError
from logdir.formats.own.inventory import (
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
    sort_key,
)
from tests.logdir.formats.inventory_sample import (
    DISK,
    ENTRIES,
    GOLDEN,
    PATH,
    lines_of,
    objects,
    read,
    refused,
    whole,
)
from tests.proof.claims import DAMAGED_INVENTORIES
from tests.proof.plugin import Recorder


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
                pieces = (
                    b"\n",
                    b"\r\n",
                    b"\xef\xbb\xbf",
                    b"0",
                    b" ",
                    b"null",
                    b'"',
                    b"\xff",
                    b"{}\n",
                    b"}",
                    b"\\ud800",
                )
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


_SEED = 20_240_516


def _mutations(count: int) -> Iterator[bytes]:
    draw = random.Random(_SEED)
    data = whole()
    for _ in range(count):
        yield _damaged(data, draw)


def _judged(data: bytes) -> tuple[FormatError | None, Inventory | None]:
    try:
        return None, parse(lines_of(data), PATH)
    except FormatError as error:
        return error, None


def test_no_altered_file_is_taken_for_whole(record_proof: Recorder) -> None:
    count = DAMAGED_INVENTORIES.count("altered files")
    outcomes = {"same": 0, "refused": 0, "equal": 0}
    good = whole()
    before = read(good)
    for data in _mutations(count):
        if data == good:
            outcomes["same"] += 1
            continue
        error, found = _judged(data)
        if error is not None:
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
    assert outcomes["refused"] > 0.9 * count, outcomes
    record_proof(DAMAGED_INVENTORIES, {"altered files": count, "refused": outcomes["refused"]}, seeds=_SEED)


@pytest.mark.parametrize("row", range(1, 6))
def test_every_single_bit_of_a_row_counts(row: int) -> None:
    lines = lines_of(whole())
    for at in range(len(lines[row]) - 1):
        for bit in range(8):
            altered = bytearray(lines[row])
            altered[at] ^= 1 << bit
            with pytest.raises(FormatError):
                parse(lines_of(b"".join([*lines[:row], bytes(altered), *lines[row + 1 :]])), PATH)
