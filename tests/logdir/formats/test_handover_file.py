"""``handover.json``: written and read back, refused when it is anything else."""

from __future__ import annotations

import json

import pytest

from logdir.errors import MalformedFileError, UnsupportedVersionError
from logdir.formats.own import handover_file, own_json
from logdir.formats.own.handover_file import MAX_BYTES, HandoverFile
from tests.logdir.formats.contract import only_format_errors
from tests.proof.plugin import Recorder

NAMES = (
    "recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)  # fmt: skip
NONE = HandoverFile("f251f93c-c03a-428b-afb6-8d376a2dcf1c", 0, 0, dict.fromkeys(NAMES))
SOME = NONE._replace(
    boot_id="b",
    boottime_ms=7,
    checkpoints={**NONE.checkpoints, NAMES[1]: b"0\n1\npay 0 17\n", NAMES[2]: b"\xff"},
)


@pytest.mark.parametrize("value", [NONE, SOME], ids=["none", "some"])
def test_what_is_rendered_reads_back(value: HandoverFile) -> None:
    assert handover_file.parse(handover_file.render(value)) == value


def test_it_is_one_line_with_each_file_in_base64() -> None:
    data = handover_file.render(SOME)
    assert data.count(b"\n") == 1
    values = json.loads(data)
    assert values["handover"] == 1
    assert values["checkpoints"] == {**dict.fromkeys(NAMES), NAMES[1]: "MAoxCnBheSAwIDE3Cg==", NAMES[2]: "/w=="}


def test_files_that_are_too_large_together_or_not_all_four_are_not_written() -> None:
    with pytest.raises(ValueError, match="16777216 bytes"):
        handover_file.render(SOME._replace(checkpoints={**NONE.checkpoints, NAMES[0]: bytes(MAX_BYTES)}))
    with pytest.raises(ValueError, match="the files"):
        handover_file.render(SOME._replace(checkpoints={NAMES[0]: b""}))


def _with(**changed: object) -> bytes:
    values = json.loads(handover_file.render(SOME))
    del values["sha256"], values["handover"]
    return own_json.render("handover", 1, {**values, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"boot_id": ""},
        {"boot_id": "x" * 65},
        {"boottime_ms": -1},
        {"boottime_ms": None},
        {"wall_ms": 1.5},
        {"checkpoints": []},
        {"checkpoints": {NAMES[0]: ""}},
        {"checkpoints": {**dict.fromkeys(NAMES), NAMES[0]: "?"}},
        {"checkpoints": {**dict.fromkeys(NAMES), NAMES[0]: 1}},
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(MalformedFileError, match="/w"):
        handover_file.parse(_with(**changed), "/w")


def test_one_too_large_or_newer_is_refused() -> None:
    with pytest.raises(MalformedFileError, match="at most"):
        handover_file.parse(b" " * (MAX_BYTES + 1), "/w")
    with pytest.raises(UnsupportedVersionError, match="handover version 1"):
        handover_file.parse(own_json.render("handover", 2, {}), "/w")


def test_a_key_we_do_not_know_is_passed_over() -> None:
    assert handover_file.parse(_with(later=1)) == SOME


def test_damaged_files_raise_only_format_errors(record_proof: Recorder) -> None:
    pieces = [b'"', b"{}", b"null", b"\n", b"\xff", b"-1", b'"checkpoints":{},']
    originals = [handover_file.render(NONE), handover_file.render(SOME)]
    only_format_errors(record_proof, "handover.json", handover_file.parse, originals, pieces)
