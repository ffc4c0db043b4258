"""``handover.json``: written and read back, refused when it is anything else."""

from __future__ import annotations

import json

import pytest

from logdir.errors import MalformedFileError, UnsupportedVersionError
from logdir.formats.own import handover_file, own_json
from logdir.formats.own.handover_file import MAX_BYTES, CheckpointCopy, HandoverFile
from tests.logdir.formats.contract import only_format_errors
from tests.proof.plugin import Recorder

NAMES = (
    "recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)  # fmt: skip
BOOT = "f251f93c-c03a-428b-afb6-8d376a2dcf1c"
EMPTY = CheckpointCopy(0, dict.fromkeys(NAMES), {})
NONE = HandoverFile(BOOT, 0, 0, (EMPTY,))
ID = "JEXY6aqzQY-32P5TStzaFg"
FILES = {**EMPTY.checkpoints, NAMES[1]: b"0\n1\npay 0 17\n", NAMES[2]: b"\xff"}
COPY = CheckpointCopy(6, FILES, {"pay-0": 2**64 - 1}, {"pay-0": ID})
SOME = HandoverFile("b", 7, 8, (COPY, EMPTY, EMPTY, EMPTY))


@pytest.mark.parametrize("value", [NONE, SOME], ids=["none", "some"])
def test_what_is_rendered_reads_back(value: HandoverFile) -> None:
    assert handover_file.parse(handover_file.render(value)) == value
    assert value.checkpoints == value.copies[0].checkpoints


def test_it_is_one_line_with_each_file_in_base64() -> None:
    data = handover_file.render(SOME)
    assert data.count(b"\n") == 1
    values = json.loads(data)
    assert values["handover"] == 2
    assert values["copies"][0] == {
        "wall_ms": 6,
        "checkpoints": {**dict.fromkeys(NAMES), NAMES[1]: "MAoxCnBheSAwIDE3Cg==", NAMES[2]: "/w=="},
        "inodes": {"pay-0": 2**64 - 1},
        "topic_ids": {"pay-0": ID},
    }
    assert len(values["copies"]) == 4


def with_files(**files: bytes) -> HandoverFile:
    return SOME._replace(copies=(COPY._replace(checkpoints=files),))


def test_files_that_are_too_large_together_or_not_all_four_or_no_copy_are_not_written() -> None:
    with pytest.raises(ValueError, match="16777216 bytes"):
        handover_file.render(with_files(**{**dict.fromkeys(NAMES, b""), NAMES[0]: bytes(MAX_BYTES)}))
    with pytest.raises(ValueError, match="the files"):
        handover_file.render(with_files(**{NAMES[0]: b""}))
    for copies in ((), (COPY,) * 5):
        with pytest.raises(ValueError, match="1 to 4 copies"):
            handover_file.render(SOME._replace(copies=copies))


def _with(**changed: object) -> bytes:
    values = json.loads(handover_file.render(SOME))
    del values["sha256"], values["handover"]
    return own_json.render("handover", 2, {**values, **changed})


def _copy(**changed: object) -> dict[str, object]:
    """Change a copy in the file."""
    copy = json.loads(handover_file.render(SOME))["copies"][0]
    return {"copies": [{**copy, **changed}]}


@pytest.mark.parametrize(
    "changed",
    [
        {"boot_id": ""},
        {"boot_id": "x" * 65},
        {"boottime_ms": -1},
        {"boottime_ms": None},
        {"wall_ms": 1.5},
        {"copies": []},
        {"copies": None},
        {"copies": {}},
        {"copies": [{}] * 5},
        {"copies": ["a text"]},
        {"copies": [None]},
        _copy(wall_ms=-1),
        _copy(checkpoints=[]),
        _copy(checkpoints={NAMES[0]: ""}),
        _copy(checkpoints={**dict.fromkeys(NAMES), NAMES[0]: "?"}),
        _copy(checkpoints={**dict.fromkeys(NAMES), NAMES[0]: 1}),
        _copy(inodes=None),
        _copy(inodes=["pay-0"]),
        _copy(inodes={"pay-0": "7"}),
        _copy(inodes={"pay-0": -1}),
        _copy(inodes={"pay-0": 2**64}),
        _copy(topic_ids=None),
        _copy(topic_ids=["pay-0"]),
        _copy(topic_ids={"pay-0": 7}),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(MalformedFileError, match="/w"):
        handover_file.parse(_with(**changed), "/w")


def test_one_too_large_or_newer_is_refused() -> None:
    with pytest.raises(MalformedFileError, match="at most"):
        handover_file.parse(b" " * (MAX_BYTES + 1), "/w")
    with pytest.raises(UnsupportedVersionError, match="handover version 1 or 2"):
        handover_file.parse(own_json.render("handover", 3, {}), "/w")


def test_a_key_we_do_not_know_is_passed_over() -> None:
    assert handover_file.parse(_with(later=1)) == SOME
    assert handover_file.parse(_with(**_copy(later=1))) == SOME._replace(copies=(COPY,))


def test_the_first_version_has_one_copy_without_inodes() -> None:
    values = {
        "boot_id": "b",
        "boottime_ms": 7,
        "wall_ms": 8,
        "checkpoints": {**dict.fromkeys(NAMES), NAMES[1]: "MAoxCnBheSAwIDE3Cg=="},
    }
    read = handover_file.parse(own_json.render("handover", 1, values))
    assert read == HandoverFile(
        "b", 7, 8, (CheckpointCopy(8, {**EMPTY.checkpoints, NAMES[1]: b"0\n1\npay 0 17\n"}, {}),)
    )
    # It is written in the newest one.
    assert json.loads(handover_file.render(read))["handover"] == 2


def test_damaged_files_raise_only_format_errors(record_proof: Recorder) -> None:
    pieces = [b'"', b"{}", b"null", b"\n", b"\xff", b"-1", b'"checkpoints":{},', b'"copies":[],']
    originals = [handover_file.render(NONE), handover_file.render(SOME)]
    only_format_errors(record_proof, "handover.json", handover_file.parse, originals, pieces)
