"""``quarantine.json``: written and read back, and nothing else taken for one."""

from __future__ import annotations

import pytest

from logdir.errors import FormatError, MalformedFileError, UnsupportedVersionError
from logdir.formats.own import own_json, quarantine_file
from logdir.formats.own.quarantine_file import QuarantinedDisk, QuarantineFile
from tests.mutation import mutations

ONE = QuarantinedDisk("/d1/kafka", "JEXY6aqzQY-32P5TStzaFg", "/d1/kafka: Input/output error", 1_800_000_000_000)
FILE = QuarantineFile("boot", (ONE, QuarantinedDisk("/d2/kafka", None, "No space left on device", 0)))
GOOD = quarantine_file.render(FILE)


def test_what_is_written_is_read() -> None:
    assert quarantine_file.parse(GOOD) == FILE
    assert GOOD.startswith(b'{"boot_id":"boot","disks":[{"at_ms":1800000000000,"directory_id":"JEXY6')
    long = quarantine_file.render(FILE._replace(disks=(ONE._replace(found="x" * 5000),)))
    assert len(quarantine_file.parse(long).disks[0].found) == 200


@pytest.mark.parametrize("count", [0, 101])
def test_no_disk_or_too_many_are_not_written(count: int) -> None:
    with pytest.raises(ValueError, match="disks"):
        quarantine_file.render(FILE._replace(disks=(ONE,) * count))


@pytest.mark.parametrize(
    "values",
    [
        {"boot_id": "b"},
        {"boot_id": "b", "disks": []},
        {"boot_id": "b", "disks": [{}]},
        {"boot_id": "b", "disks": ["d"]},
        {"boot_id": 7, "disks": [ONE._asdict()]},
        {"boot_id": "b", "disks": [{**ONE._asdict(), "at_ms": -1}]},
        {"boot_id": "b", "disks": [{**ONE._asdict(), "directory_id": 3}]},
        {"boot_id": "b", "disks": [ONE._asdict()] * 101},
    ],
)
def test_what_does_not_say_what_it_must_is_malformed(values: dict[str, object]) -> None:
    with pytest.raises(MalformedFileError, match=r"quarantine\.json"):
        quarantine_file.parse(own_json.render("quarantine", 1, values), "/w/quarantine.json")


def test_a_newer_version_is_refused_by_name_and_a_huge_file_not_read() -> None:
    with pytest.raises(UnsupportedVersionError, match="quarantine version 1"):
        quarantine_file.parse(own_json.render("quarantine", 2, {"x": 1}))
    with pytest.raises(MalformedFileError, match="65536"):
        quarantine_file.parse(b"x" * (quarantine_file.MAX_BYTES + 1))


def test_damaged_files_raise_only_format_errors() -> None:
    read = 0
    for data in mutations([GOOD], [b"boot", b"{", b'"disks":[]', b"\n"], 1000):
        try:
            quarantine_file.parse(data, "/w/quarantine.json")
            read += 1
        except FormatError as error:
            assert "/w/quarantine.json" in str(error) or error.path == "/w/quarantine.json"  # noqa: PT017
    assert read < 20
