"""``gaps.json``: written and read back, and nothing else taken for one."""

from __future__ import annotations

import pytest

from logdir.errors import FormatError, MalformedFileError, UnsupportedVersionError
from logdir.formats.own import gaps_file, own_json
from logdir.formats.own.gaps_file import Gap, GapsFile
from tests.mutation import mutations

BOOT = "f251f93c-c03a-428b-afb6-8d376a2dcf1c"
LAST = Gap(BOOT, 1_000, 1_800_000_000_000, 1_800_000_060_000)
NONE, SOME = GapsFile(0, 1_700_000_000_000, None), GapsFile(3, 1_700_000_000_000, LAST)


@pytest.mark.parametrize("value", [NONE, SOME])
def test_what_is_written_is_read(value: GapsFile) -> None:
    assert gaps_file.parse(gaps_file.render(value)) == value


def test_its_bytes() -> None:
    assert gaps_file.render(SOME).startswith(
        b'{"gaps":1,"last":{"boot_id":"f251f93c-c03a-428b-afb6-8d376a2dcf1c","boottime_ms":1000,'
        b'"from_ms":1800000000000,"to_ms":1800000060000},"sha256":"'
    )
    assert gaps_file.render(SOME).endswith(b'","since_ms":1700000000000,"total":3}\n')


@pytest.mark.parametrize(
    "values",
    [
        {"total": 1, "since_ms": 1},
        {"total": 1, "since_ms": 1, "last": None},
        {"total": -1, "since_ms": 1, "last": None},
        {"total": "1", "since_ms": 1, "last": LAST._asdict()},
        {"total": 1, "last": LAST._asdict()},
        {"total": 1, "since_ms": 1, "last": {**LAST._asdict(), "to_ms": "now"}},
        {"total": 1, "since_ms": 1, "last": {**LAST._asdict(), "boot_id": 7}},
    ],
)
def test_what_does_not_say_what_it_must_is_malformed(values: dict[str, object]) -> None:
    with pytest.raises(MalformedFileError, match=r"/state/gaps\.json"):
        gaps_file.parse(own_json.render("gaps", 1, values), "/state/gaps.json")


def test_a_newer_version_is_refused_by_name_and_a_huge_file_not_read() -> None:
    with pytest.raises(UnsupportedVersionError, match="gaps version 1"):
        gaps_file.parse(own_json.render("gaps", 2, {"x": 1}))
    with pytest.raises(MalformedFileError, match="4096"):
        gaps_file.parse(b"x" * 4097)


def test_damaged_files_raise_only_format_errors() -> None:
    originals = [gaps_file.render(NONE), gaps_file.render(SOME)]
    read = 0
    for data in mutations(originals, [b"total", b"{", b"null", b"-1", b"\n"], 1000):
        try:
            gaps_file.parse(data, "/state/gaps.json")
            read += 1
        except FormatError as error:
            assert error.path == "/state/gaps.json"  # noqa: PT017
    assert read < 1000
