"""Inventory files that are signed and still wrong: each is refused with its line."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import Any

import pytest

from logdir.errors import UnsupportedVersionError
from logdir.formats.own.inventory import (
    DISK_KEYS,
    ENTRY_KEYS,
    Entry,
    parse,
)
from tests.logdir.formats.inventory_sample import (
    DISK,
    ENTRIES,
    GOLDEN,
    lines_of,
    objects,
    read,
    refused,
    signed,
    whole,
)


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
