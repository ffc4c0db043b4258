"""The proof catches what it is there to catch: bugs sown into a copy of the source, and every sync left out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

from tests.crash.operations import operations
from tests.crash.redundant_syncs import REDUNDANT
from tests.crash.seeded.bugs import BUGS, Bug
from tests.crash.seeded.patched import LeftOut, caught_by, copy, sync_calls
from tests.proof.claims import SYNCS as SYNCS_LEFT_OUT
from tests.proof.plugin import Recorder

_T = TypeVar("_T")
# What these operations consist of. Others have proofs of their own, and their own lists.
MODULES = (
    "replica/staging", "replica/purge", "recover_log_dir",
    "kernel/small_file", "record/checkpoints", "replica/replica_dir",
)  # fmt: skip
TRIED = {
    "staging": (
        "stage 1",
        "stage 2 by id",
        "restore",
        "restore what no checkpoint named",
        "hold",
        "hold after a killed hold",
    ),
    "purge": (
        "purge a small one",
        "purge two together",
        "purge after a killed claim",
        "purge after a killed claim, beside a broker",
        "race: P sees, claim, R sees, restore, remove",
    ),
    "recover_log_dir": ("recover", "restore", "purge after a killed claim", "hold after a killed stage"),
    "small_file": ("replace a file", "make a file", "remove a file"),
}
SYNCS = tuple(call for module in MODULES for call in sync_calls(f"logdir/disk/{module}.py"))


def _tasted(items: Iterable[_T], name: Callable[[_T], str]) -> list[ParameterSet]:
    """Return all of them as parameters: a few for every run, the others, being slow, for those that take the time."""
    return [
        pytest.param(one, id=name(one), marks=() if number % 8 == 0 else pytest.mark.slow)
        for number, one in enumerate(items)
    ]


@pytest.mark.parametrize("bug", _tasted(BUGS, lambda bug: bug.name))
def test_a_bug_that_was_sown_is_caught(bug: Bug, tmp_path: Path) -> None:
    copy(tmp_path, bug.edits)
    assert frozenset(caught_by(tmp_path, bug.tried)) == bug.models


@pytest.mark.parametrize("call", _tasted(SYNCS, lambda call: call.key))
def test_a_sync_left_out_is_caught_or_written_down(call: LeftOut, tmp_path: Path, record_proof: Recorder) -> None:
    copy(tmp_path, left_out=call)
    tried = TRIED[Path(call.file).stem]
    found = caught_by(tmp_path, (*tried, "--models", "KJBP", "--depth", "2"))
    if call.key in REDUNDANT:
        assert found == (), "it is missed after all: take it off the list"
    else:
        assert found, "nothing misses it"
    how = "written down" if not found else "missed by a model" if set(found) - {"order"} else "missed by the order"
    record_proof(SYNCS_LEFT_OUT, {"syncs": 1, how: 1})


def test_at_most_a_fifth_of_all_syncs_is_written_down() -> None:
    keys = [call.key for call in SYNCS]
    assert set(REDUNDANT) <= set(keys)
    assert len([key for key in keys if key in REDUNDANT]) * 5 <= len(keys)
    assert all(reason for reason in REDUNDANT.values())


def test_what_is_tried_are_operations() -> None:
    names = {one.name for one in operations()}
    assert {name for tried in TRIED.values() for name in tried} <= names


def test_a_copy_without_a_change_passes(tmp_path: Path) -> None:
    copy(tmp_path)
    assert caught_by(tmp_path, ("stage 1", "hold", "--models", "KJBP")) == ()
