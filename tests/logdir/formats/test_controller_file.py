"""``controller.json``: written and read back, refused when it is anything else."""

from __future__ import annotations

import json

import pytest

from logdir.errors import MalformedFileError, UnsupportedVersionError
from logdir.formats.own import controller_file, own_json
from logdir.formats.own.controller_file import MAX_BYTES, ControllerFile, MetadataMark, RequestMark
from tests.logdir.formats.contract import only_format_errors
from tests.proof.plugin import Recorder

FIRST = controller_file.begin("MkU3OEVBNTcwNTJENDM2Qk", 3)
USED = ControllerFile(
    cluster_id=None,
    node_id=0,
    requests=RequestMark(controller_epoch=0, sequence=1),
    broker_epoch=0,
    is_full_wanted=False,
    metadata=MetadataMark(epoch=0, offset=0),
    incarnation_id="JEXY6aqzQY-32P5TStzaFg",
)


@pytest.mark.parametrize("value", [FIRST, USED], ids=["first", "used"])
def test_what_is_rendered_reads_back(value: ControllerFile) -> None:
    assert controller_file.parse(controller_file.render(value)) == value


def test_it_is_one_line_of_named_numbers() -> None:
    data = controller_file.render(USED)
    assert data.count(b"\n") == 1
    values = json.loads(data)
    assert values["controller"] == 1
    assert (values["controller_epoch"], values["sequence"], values["broker_epoch"]) == (0, 1, 0)
    assert (values["metadata_epoch"], values["metadata_offset"], values["full_wanted"]) == (0, 0, False)


def test_a_first_file_wants_a_full_request() -> None:
    assert FIRST.is_full_wanted
    assert (FIRST.requests, FIRST.metadata, FIRST.broker_epoch, FIRST.incarnation_id) == (None, None, None, None)


def _with(**changed: object) -> bytes:
    values = json.loads(controller_file.render(USED))
    del values["sha256"], values["controller"]
    return own_json.render("controller", 1, {**values, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"cluster_id": 1},
        {"node_id": None},
        {"node_id": 2**31},
        {"sequence": None},
        {"controller_epoch": -1},
        {"broker_epoch": "1"},
        {"full_wanted": None},
        {"metadata_epoch": None},
        {"metadata_offset": 1.5},
        {"incarnation_id": 7},
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(MalformedFileError, match="/s"):
        controller_file.parse(_with(**changed), "/s")


def test_one_too_large_or_newer_is_refused() -> None:
    with pytest.raises(MalformedFileError, match="at most"):
        controller_file.parse(b" " * (MAX_BYTES + 1), "/s")
    with pytest.raises(UnsupportedVersionError, match="controller version 1"):
        controller_file.parse(own_json.render("controller", 2, {}), "/s")
    with pytest.raises(ValueError, match="at most"):
        controller_file.render(controller_file.begin("x" * MAX_BYTES, 1))


def test_a_key_we_do_not_know_is_passed_over() -> None:
    assert controller_file.parse(_with(later=1)) == USED


def test_marks_are_ordered_by_epoch_first() -> None:
    assert RequestMark(controller_epoch=1, sequence=9) < RequestMark(controller_epoch=2, sequence=1)


def test_damaged_files_raise_only_format_errors(record_proof: Recorder) -> None:
    pieces = [b'"', b"{}", b"null", b"\n", b"\xff", b"-1", b'"sequence":1,', b"true"]
    originals = [controller_file.render(FIRST), controller_file.render(USED)]
    only_format_errors(record_proof, "controller.json", controller_file.parse, originals, pieces)
