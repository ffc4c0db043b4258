"""The same of the operations with families of their own: every sown bug is caught, every sync that is left out missed.

Together with ``test_seeded`` this is every sync in ``logdir/disk``. A taste and CI take some, ``make proof`` all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from tests.crash.families import CASES
from tests.crash.redundant_syncs import REDUNDANT, REDUNDANT_IN_FAMILIES
from tests.crash.seeded import test_seeded
from tests.crash.seeded.bugs import BUGS, Bug
from tests.crash.seeded.family_bugs import BUILD_6_D, FAMILY_BUGS, NO_MODEL
from tests.crash.seeded.patched import ROOT, LeftOut, caught_by, copy, edited, run, sync_calls
from tests.crash.seeded.syncs import RECORDS, SMALL_FILE, TRIED, calls_of, every_module, module, tried
from tests.proof.claims import SYNCS
from tests.proof.plugin import Recorder
from tests.proof.sizes import SIZE, Size

_T = TypeVar("_T")
_EVERY = {Size.SAMPLE: 9, Size.CI: 3, Size.FULL: 1}[SIZE]
HERE = calls_of(name for name in every_module() if name not in test_seeded.MODULES)
WRITES = [
    (f"{record}: {call.function}, {call.text}", record, call) for record in RECORDS for call in sync_calls(SMALL_FILE)
]
EVERY = frozenset(RECORDS)
MISSED = {
    ("replace_file", "directory.sync_file(temporary)"): EVERY,
    # Of these two the log dir is synced once more: after the text beside the one, at the end of each verb of the other.
    ("replace_file", "directory.sync()"): EVERY - {"start_block.json", "layout.json"},
    # The others are never removed by themselves, or under that last sync.
    ("remove_file", "directory.sync()"): frozenset({"start_block.json", "layout.json"}),
}


def _some(items: Sequence[_T]) -> Sequence[_T]:
    """Return what this size of run takes."""
    return items[2 % _EVERY :: _EVERY]


@pytest.mark.parametrize("bug", [*BUGS, *FAMILY_BUGS], ids=lambda bug: bug.name)
def test_every_bug_still_fits_the_source(bug: Bug) -> None:
    for file, text in edited(bug.edits).items():
        compile(text, file, "exec")


@pytest.mark.parametrize("bug", _some(FAMILY_BUGS), ids=lambda bug: bug.name)
def test_a_bug_that_was_sown_is_caught(bug: Bug, tmp_path: Path) -> None:
    copy(tmp_path, bug.edits)
    assert frozenset(caught_by(tmp_path, bug.tried)) == bug.models


@pytest.mark.parametrize(("key", "call"), _some(HERE), ids=[key for key, _ in _some(HERE)])
def test_a_sync_left_out_is_missed_or_written_down(
    key: str, call: LeftOut, tmp_path: Path, record_proof: Recorder
) -> None:
    copy(tmp_path, left_out=call)
    found = caught_by(tmp_path, (*tried(call), "--models", "KJBP"))
    if key in REDUNDANT_IN_FAMILIES:
        assert found == (), "it is missed after all: take it off the list"
    else:
        assert found, "nothing misses it"
    how = "written down" if not found else "missed by a model" if set(found) - {"order"} else "missed by the order"
    record_proof(SYNCS, {"syncs": 1, how: 1})


@pytest.mark.parametrize(("record", "call"), [one[1:] for one in _some(WRITES)], ids=[one[0] for one in _some(WRITES)])
def test_each_file_of_ours_misses_each_sync_of_its_writing(record: str, call: LeftOut, tmp_path: Path) -> None:
    copy(tmp_path, left_out=call)
    found = caught_by(tmp_path, (*RECORDS[record], "--models", "KJBP"))
    assert bool(found) == (record in MISSED[call.function, call.text]), found


def test_at_most_a_fifth_of_all_syncs_is_written_down() -> None:
    everywhere = calls_of(every_module())
    written = {**REDUNDANT, **REDUNDANT_IN_FAMILIES}
    assert set(REDUNDANT_IN_FAMILIES) <= {key for key, _ in HERE}
    assert len(written) * 5 <= len(everywhere)
    assert all("ext4" in reason for reason in REDUNDANT_IN_FAMILIES.values())


def test_every_sync_of_every_module_is_tried_by_cases_there_are() -> None:
    assert {f"{module(call)}.{call.function}" for _, call in HERE} == set(TRIED)
    assert {name for names in (*TRIED.values(), *RECORDS.values()) for name in names} <= set(CASES)


def test_everything_that_was_asked_for_is_sown() -> None:
    names = {bug.name for bug in (*BUGS, *FAMILY_BUGS)}
    assert [name for name in BUILD_6_D.values() if name not in names] == ["the kernel asked for a rename that replaces"]
    assert len(BUILD_6_D) == 14


def test_a_kernel_asked_for_a_rename_that_replaces_is_caught_on_real_directories(tmp_path: Path) -> None:
    copy(tmp_path, (NO_MODEL,))
    pytest_of = ("-q", "-c", "/dev/null", "--rootdir", str(tmp_path), "-p", "no:cacheprovider", "-p", "no:randomly")
    test = str(ROOT / "tests/crash/test_model.py")
    done = run(tmp_path, "pytest", *pytest_of, "--import-mode=importlib", test)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "test_same_calls_give_the_same_on_the_real_disk" in done.stdout.partition("short test summary")[2]


def test_a_copy_without_a_change_passes(tmp_path: Path) -> None:
    copy(tmp_path)
    some = (
        "adopt",
        "bar, and lifted",
        "export",
        "uninstall beside",
        "staging limit, then stage",
        "sweep of what is due",
    )
    assert caught_by(tmp_path, (*some, "--models", "KJBP")) == ()
