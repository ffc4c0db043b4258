"""``staging-limit.json``: written and read back, refused when it is anything else."""

from __future__ import annotations

import json

import pytest

from logdir.errors import MalformedFileError, UnsupportedVersionError
from logdir.formats.own import own_json, staging_limit_file
from logdir.formats.own.staging_limit_file import MAX_BYTES, MAX_COUNTS, Count
from tests.logdir.formats.contract import only_format_errors
from tests.proof.plugin import Recorder

COUNTS = (Count(instant_ms=1_700_000_000_000, partitions=9, topics=2), Count(instant_ms=0, partitions=1, topics=1))


@pytest.mark.parametrize("counts", [(), COUNTS], ids=["none", "two"])
def test_what_is_rendered_reads_back(counts: tuple[Count, ...]) -> None:
    assert staging_limit_file.parse(staging_limit_file.render(counts)) == counts


def test_it_is_one_line_with_a_list_of_three_numbers() -> None:
    values = json.loads(staging_limit_file.render(COUNTS))
    assert values["staging_limit"] == 1
    assert values["staged"] == [[1_700_000_000_000, 9, 2], [0, 1, 1]]


def test_as_many_counts_as_there_may_be_fit() -> None:
    full = (Count(instant_ms=2**63 - 1, partitions=2**31, topics=2**31),) * MAX_COUNTS
    data = staging_limit_file.render(full)
    assert len(data) <= MAX_BYTES
    assert staging_limit_file.parse(data) == full
    with pytest.raises(ValueError, match="counts"):
        staging_limit_file.render((*full, full[0]))


@pytest.mark.parametrize(
    "staged", [None, {}, [1], [[1, 2]], [[1, 2, 3, 4]], [[1, 2, "3"]], [[-1, 2, 3]], [[1, True, 3]]]
)
def test_anything_else_is_refused(staged: object) -> None:
    with pytest.raises(MalformedFileError, match="/w"):
        staging_limit_file.parse(own_json.render("staging_limit", 1, {"staged": staged}), "/w")


def test_one_too_long_too_large_or_newer_is_refused() -> None:
    long = own_json.render("staging_limit", 1, {"staged": [[1, 1, 1]] * (MAX_COUNTS + 1)})
    with pytest.raises(MalformedFileError, match="at most"):
        staging_limit_file.parse(long, "/w")
    with pytest.raises(MalformedFileError, match="at most"):
        staging_limit_file.parse(b" " * (MAX_BYTES + 1), "/w")
    with pytest.raises(UnsupportedVersionError, match="staging_limit version 1"):
        staging_limit_file.parse(own_json.render("staging_limit", 2, {}), "/w")


def test_damaged_files_raise_only_format_errors(record_proof: Recorder) -> None:
    pieces = [b"[", b"]", b"[1,2,3],", b"\n", b"\xff", b"-1", b'"staged":[],']
    only_format_errors(
        record_proof,
        "staging-limit.json",
        staging_limit_file.parse,
        [staging_limit_file.render(()), staging_limit_file.render(COUNTS)],
        pieces,
    )
