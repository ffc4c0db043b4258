"""``heartbeat.json``: written and read back, refused when it is anything else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from logdir.errors import MalformedFileError, UnsupportedVersionError
from logdir.formats.own import heartbeat_file, own_json
from logdir.formats.own.heartbeat_file import MAX_BOOTS, MAX_BYTES, Boot, Heartbeat, Steady
from tests.logdir.formats.contract import only_format_errors
from tests.proof.plugin import Recorder

BOOT = Boot(boot_id="f251f93c-c03a-428b-afb6-8d376a2dcf1c", seen_ms=10, credited_ms=0)
ONE = Heartbeat(boots=(BOOT,), wall_ms=1_700_000_000_000, steady=None, gap_from_ms=None)
TWO = Heartbeat(
    boots=(BOOT, Boot(boot_id="b", seen_ms=0, credited_ms=7)),
    wall_ms=0,
    steady=Steady(boottime_ms=3, wall_ms=4),
    gap_from_ms=5,
)
MOVED = replace(TWO, boots=(BOOT, Boot(boot_id="c", seen_ms=9, credited_ms=0, from_ms=5)))


@pytest.mark.parametrize("value", [ONE, TWO, MOVED], ids=["one", "two", "moved"])
def test_what_is_rendered_reads_back(value: Heartbeat) -> None:
    assert heartbeat_file.parse(heartbeat_file.render(value)) == value


def test_it_is_one_line_with_a_list_of_boots() -> None:
    data = heartbeat_file.render(TWO)
    assert data.count(b"\n") == 1
    values = json.loads(data)
    assert values["heartbeat"] == 1
    assert values["boots"][1] == {"boot_id": "b", "seen_ms": 0, "credited_ms": 7}
    moved = json.loads(heartbeat_file.render(MOVED))
    assert moved["boots"][1] == {"boot_id": "c", "seen_ms": 9, "credited_ms": 0, "from_ms": 5}


def test_as_many_boots_as_there_may_be_fit() -> None:
    longest = Boot(boot_id="x" * 64, seen_ms=2**63 - 1, credited_ms=2**63 - 1, from_ms=2**63 - 1)
    full = Heartbeat(boots=(longest,) * MAX_BOOTS, wall_ms=2**63 - 1, steady=None, gap_from_ms=2**63 - 1)
    data = heartbeat_file.render(full)
    assert len(data) <= MAX_BYTES
    assert heartbeat_file.parse(data) == full
    for boots in ((longest,) * (MAX_BOOTS + 1), ()):
        with pytest.raises(ValueError, match="boots"):
            heartbeat_file.render(Heartbeat(boots=boots, wall_ms=0, steady=None, gap_from_ms=None))


def _with(**changed: object) -> bytes:
    values = json.loads(heartbeat_file.render(TWO))
    del values["sha256"], values["heartbeat"]
    return own_json.render("heartbeat", 1, {**values, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"boots": []},
        {"boots": None},
        {"boots": {"0": {}}},
        {"boots": ["b"]},
        {"boots": [{"boot_id": "", "seen_ms": 0, "credited_ms": 0}]},
        {"boots": [{"boot_id": "x" * 65, "seen_ms": 0, "credited_ms": 0}]},
        {"boots": [{"boot_id": "b", "seen_ms": -1, "credited_ms": 0}]},
        {"boots": [{"boot_id": "b", "seen_ms": 0}]},
        {"boots": [{"boot_id": "b", "seen_ms": 0, "credited_ms": 0, "from_ms": -1}]},
        {"boots": [{"boot_id": "b", "seen_ms": 0, "credited_ms": 0, "from_ms": None}]},
        {"wall_ms": None},
        {"wall_ms": 1.5},
        {"steady": 1},
        {"steady": {"boottime_ms": 1}},
        {"gap_from_ms": "1"},
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(MalformedFileError, match="/w"):
        heartbeat_file.parse(_with(**changed), "/w")


def test_one_too_large_or_newer_is_refused() -> None:
    with pytest.raises(MalformedFileError, match="at most"):
        heartbeat_file.parse(b" " * (MAX_BYTES + 1), "/w")
    with pytest.raises(UnsupportedVersionError, match="heartbeat version 1"):
        heartbeat_file.parse(own_json.render("heartbeat", 2, {}), "/w")


def test_a_key_we_do_not_know_is_passed_over() -> None:
    assert heartbeat_file.parse(_with(later=1)) == TWO


def test_damaged_files_raise_only_format_errors(record_proof: Recorder) -> None:
    pieces = [b'"', b"{}", b"null", b"\n", b"\xff", b"-1", b'"boots":[],']
    originals = [heartbeat_file.render(ONE), heartbeat_file.render(TWO)]
    only_format_errors(record_proof, "heartbeat.json", heartbeat_file.parse, originals, pieces)
