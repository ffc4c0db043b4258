"""``work-root.json`` says whose a work root is, and refuses to be anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from logdir.errors import FormatError, InvalidIdError, MalformedFileError, UnsupportedVersionError
from logdir.formats.kafka import meta_properties
from logdir.formats.own import own_json, work_root_file
from logdir.formats.own.work_root_file import Belonging, WorkRootFile, WorkRootKind, belonging
from logdir.ids import ClusterId, DirectoryId
from tests.mutation import mutations

DIRECTORY_ID = DirectoryId.parse("JEXY6aqzQY-32P5TStzaFg")
BELONGS = Belonging(ClusterId("MkU3OEVBNTcwNTJENDM2Qk"), 1, DIRECTORY_ID)
FILE = WorkRootFile(WorkRootKind.BESIDE, BELONGS, "/d1/kafka", 1_700_000_000_000)
NO_IDS = WorkRootFile(WorkRootKind.IN_PLACE, Belonging(None, 0, None), "/dé", 0)


@pytest.mark.parametrize("value", [FILE, NO_IDS, FILE._replace(kind=WorkRootKind.INSIDE)], ids=str)
def test_what_is_rendered_reads_back(value: WorkRootFile) -> None:
    assert work_root_file.parse(work_root_file.render(value)) == value


def test_it_is_one_line_of_json_with_sorted_keys_and_a_digest() -> None:
    data = work_root_file.render(FILE)
    assert data.count(b"\n") == 1
    values = json.loads(data)
    assert list(values) == sorted(values)
    assert values.pop("sha256")
    assert values == {
        "work_root": 2,
        "kind": "beside",
        "cluster_id": "MkU3OEVBNTcwNTJENDM2Qk",
        "node_id": 1,
        "directory_id": "JEXY6aqzQY-32P5TStzaFg",
        "log_dir": "/d1/kafka",
        "made_at_ms": 1_700_000_000_000,
    }


def _with(version: int = 2, **changed: object) -> bytes:
    values = json.loads(work_root_file.render(FILE))
    del values["sha256"], values["work_root"]
    return own_json.render("work_root", version, {**values, **changed})


def test_a_key_we_do_not_know_is_passed_over() -> None:
    assert work_root_file.parse(_with(later="x")) == FILE


def test_the_version_of_0_2_0_is_read_and_written_as_that_of_this_release() -> None:
    read = work_root_file.parse(_with(1))
    assert read == FILE._replace(version=1)
    assert work_root_file.render(read) == work_root_file.render(FILE)


@pytest.mark.parametrize("version", [0, 3, 2**40])
def test_another_version_is_refused_by_name(version: int) -> None:
    data = own_json.render("work_root", version, {"kind": "elsewhere"})
    with pytest.raises(UnsupportedVersionError, match=rf"/w/work-root.json.*work_root version 1 or 2.*found {version}"):
        work_root_file.parse(data, "/w/work-root.json")


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"kind": "auto"}, MalformedFileError),
        ({"kind": None}, MalformedFileError),
        ({"node_id": "1"}, MalformedFileError),
        ({"node_id": -1}, MalformedFileError),
        ({"cluster_id": 7}, MalformedFileError),
        ({"directory_id": "short"}, InvalidIdError),
        ({"log_dir": None}, MalformedFileError),
        ({"made_at_ms": 1.5}, MalformedFileError),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused(changed: dict[str, Any], error: type[FormatError]) -> None:
    with pytest.raises(error, match="/w"):
        work_root_file.parse(_with(**changed), "/w")


def test_damage_is_refused_or_was_none() -> None:
    originals = [work_root_file.render(FILE), work_root_file.render(NO_IDS)]
    damaged = list(mutations(originals, [b'"', b"{}", b"null", b"\n", b"\xff", b'"kind":"inside",'], 1000))
    read = [value for data in damaged if (value := _read(data)) is not None]
    assert set(read) <= {FILE, NO_IDS}
    assert len(read) < 100


def _read(data: bytes) -> WorkRootFile | None:
    try:
        return work_root_file.parse(data, "/w")
    except FormatError:
        return None


@pytest.mark.parametrize(
    ("then", "now", "accepted"),
    [
        (BELONGS, BELONGS, True),
        (BELONGS, BELONGS._replace(node_id=2), False),
        (BELONGS, BELONGS._replace(cluster_id=ClusterId("other")), False),
        (BELONGS, BELONGS._replace(directory_id=DirectoryId(bytes(15) + b"\xff")), False),
        (BELONGS, BELONGS._replace(directory_id=None), False),
        (BELONGS._replace(directory_id=None), BELONGS, True),
        (BELONGS._replace(directory_id=None), BELONGS._replace(directory_id=None), True),
    ],
    ids=["same", "other node", "other cluster", "other directory", "id lost", "id new in 3.7", "before 3.7"],
)
def test_a_directory_id_may_come_but_never_change(then: Belonging, now: Belonging, accepted: bool) -> None:
    assert then.accepts(now) is accepted


def test_belonging_is_what_meta_properties_says() -> None:
    text = f"version=1\nnode.id=1\ncluster.id={BELONGS.cluster_id}\ndirectory.id={DIRECTORY_ID}\n"
    assert belonging(meta_properties.parse(text.encode())) == BELONGS
