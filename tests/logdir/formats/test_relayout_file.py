"""``relayout.json`` keeps what ``partition.metadata`` was, to the byte."""

from __future__ import annotations

import pytest

from logdir.errors import FormatError, MalformedFileError, UnsupportedVersionError
from logdir.formats.own import own_json, relayout_file
from logdir.formats.own.relayout_file import Original, RelayoutFile
from tests.mutation import mutations

FILE = RelayoutFile(Original(b"version: 0\r\ntopic_id: \xff", 1_700_000_000_123_456_789))


@pytest.mark.parametrize("value", [FILE, RelayoutFile(None), RelayoutFile(Original(b"", 0))])
def test_what_is_rendered_reads_back(value: RelayoutFile) -> None:
    assert relayout_file.parse(relayout_file.render(value)) == value


def test_a_time_before_1970_cannot_be_kept() -> None:
    with pytest.raises(ValueError, match="1970"):
        relayout_file.render(RelayoutFile(Original(b"", -1)))


def test_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"relayout version 1.*found 2"):
        relayout_file.parse(own_json.render("relayout", 2, {}), "/d/relayout.json")


@pytest.mark.parametrize(
    "changed", [{"partition_metadata": "?"}, {"partition_metadata": 1}, {"mtime_ns": None}], ids=str
)
def test_what_it_must_say(changed: dict[str, object]) -> None:
    values = {"partition_metadata": "YQ==", "mtime_ns": 1, **changed}
    with pytest.raises(MalformedFileError):
        relayout_file.parse(own_json.render("relayout", 1, values), "/d/relayout.json")


def test_damage_is_refused_and_nothing_else_is_raised() -> None:
    whole = relayout_file.render(FILE)
    for data in mutations([whole], [b'"relayout":1', b"null"], 500):
        if data != whole:
            with pytest.raises(FormatError):
                relayout_file.parse(data)
