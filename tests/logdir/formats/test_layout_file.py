"""``layout.json`` and ``relayout.json``: read back as written, refused when torn, altered or newer."""

from __future__ import annotations

import json

import pytest

from logdir.errors import FormatError, MalformedFileError, UnsupportedVersionError
from logdir.formats.own import layout_file, own_json
from logdir.formats.own.layout_file import LayoutFile, LayoutState
from tests.mutation import mutations

FILE = LayoutFile(LayoutState.APPLYING, "ab" * 32, "MkU3OEVBNTcwNTJENDM2Qk", 1)


@pytest.mark.parametrize("state", LayoutState)
def test_what_is_rendered_reads_back(state: LayoutState) -> None:
    for value in (FILE._replace(state=state), LayoutFile(state, "", None, None)):
        assert layout_file.parse(layout_file.render(value)) == value


def test_it_is_one_line_with_sorted_keys() -> None:
    values = json.loads(layout_file.render(FILE))
    assert list(values) == ["cluster_id", "for_broker", "layout", "node_id", "plan_sha256", "sha256", "state"]
    assert (values["layout"], values["state"]) == (1, "applying")


def test_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"/d/layout.json.*layout version 1.*found 2"):
        layout_file.parse(own_json.render("layout", 2, {"state": "sideways"}), "/d/layout.json")


def test_a_state_we_do_not_know_is_malformed() -> None:
    data = own_json.render("layout", 1, {"state": "sideways", "plan_sha256": "", "cluster_id": None, "node_id": None})
    with pytest.raises(MalformedFileError, match="applying or applied"):
        layout_file.parse(data, "/d/layout.json")


def test_damage_is_refused_and_nothing_else_is_raised() -> None:
    whole = layout_file.render(FILE)
    for data in mutations([whole], [b'"layout":1', b"null"], 500):
        if data != whole:
            with pytest.raises(FormatError):
                layout_file.parse(data)


def test_a51_the_broker_that_reads_the_layout_is_kept_and_may_be_missing() -> None:
    final = FILE._replace(state=LayoutState.FINAL, for_broker="kafka 9 of \u00e4 team")
    assert layout_file.parse(layout_file.render(final)) == final
    assert len(layout_file.render(final._replace(for_broker="\U0001f600" * 200))) < 4096
    older = own_json.render("layout", 1, {"state": "final", "plan_sha256": "", "cluster_id": None, "node_id": None})
    assert layout_file.parse(older).for_broker is None
    wrong = own_json.render(
        "layout", 1, {"state": "final", "plan_sha256": "", "cluster_id": None, "node_id": None, "for_broker": 9}
    )
    with pytest.raises(MalformedFileError, match="for_broker"):
        layout_file.parse(wrong)
