"""The same of operations with families of their own: every seeded bug is caught, every sync that is left out missed.

Together with ``test_seeded`` this is every sync in ``logdir/disk``. A taste and CI take some, ``make proof`` all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from tests.crash.seeded.patched import ROOT, LeftOut, caught_by, copy, run
from tests.crash.seeded.syncs import arguments, every, is_meant, is_of_a_replica, of, watched, why_needless
from tests.operations import functions, registry
from tests.operations.operation import REPLICA
from tests.operations.seeded import Change, Seeded, seed, valued
from tests.proof.claims import SYNCS
from tests.proof.plugin import Recorder
from tests.proof.sizes import SIZE, Size

_T = TypeVar("_T")
_EVERY = {Size.SAMPLE: 9, Size.CI: 3, Size.FULL: 1}[SIZE]
ALL_BUGS = tuple(bug for _, bug in registry.seeded())
BUGS = tuple(bug for one, bug in registry.seeded() if one.family != REPLICA and bug.tried)
HERE = tuple(call for call in every() if not is_of_a_replica(call))
WRITES = [(record, call) for record in registry.files() for call in of(functions.SMALL_FILE_MODULE)]


def _some(items: Sequence[_T]) -> Sequence[_T]:
    """Return what this size of run takes."""
    return items[2 % _EVERY :: _EVERY]


@pytest.mark.parametrize("bug", ALL_BUGS, ids=lambda bug: bug.name)
def test_every_bug_still_fits_the_source(bug: Seeded) -> None:
    for file, text in seed(bug.changes).items():
        compile(text, file, "exec")


@pytest.mark.parametrize("bug", _some(BUGS), ids=lambda bug: bug.name)
def test_a_bug_that_was_sown_is_caught(bug: Seeded, tmp_path: Path) -> None:
    copy(tmp_path, bug.changes)
    assert frozenset(caught_by(tmp_path, bug.tried)) == bug.caught_by


@pytest.mark.parametrize("call", _some(HERE), ids=lambda call: call.shown)
def test_a_sync_left_out_is_missed_or_written_down(call: LeftOut, tmp_path: Path, record_proof: Recorder) -> None:
    copy(tmp_path, left_out=call)
    found = caught_by(tmp_path, arguments(call))
    assert bool(found) != bool(why_needless(call)), "nothing misses it, or it is missed after all"
    how = "written down" if not found else "missed by a model" if set(found) - {"order"} else "missed by the order"
    record_proof(SYNCS, {"syncs": 1, how: 1})


@pytest.mark.slow
@pytest.mark.parametrize(("record", "call"), _some(WRITES), ids=str)
def test_each_file_of_ours_misses_each_sync_of_its_writing(record: str, call: LeftOut, tmp_path: Path) -> None:
    copy(tmp_path, left_out=call)
    file = registry.files()[record]
    found = caught_by(tmp_path, (*file.cases, "--models", "KJBP"))
    assert bool(found) == ((call.function, call.nth) in file.misses), found


def test_every_sync_of_every_module_must_be_missed_or_at_most_a_fifth_need_not() -> None:
    assert [call.shown for call in every() if not watched(call)] == [], "no operation says which of its cases miss it"
    for _, each in registry.syncs():
        assert of(each.of)
        assert set(each.cases) <= set(registry.cases())
    for one in registry.needless():
        assert [is_meant(one, call) for call in of(one.function)].count(True) == 1
        assert "ext4" in one.because
    assert len(registry.needless()) * 5 <= len(every())


@pytest.mark.slow
def test_a_kernel_asked_for_a_rename_that_replaces_is_caught_on_real_directories(tmp_path: Path) -> None:
    """The model disk has calls of its own, so real directories must tell."""
    copy(tmp_path, (Change(functions.RENAME_FLAG, valued("0")),))
    pytest_of = ("-q", "-c", "/dev/null", "--rootdir", str(tmp_path), "-p", "no:cacheprovider", "-p", "no:randomly")
    test = "test_same_calls_give_the_same_on_the_real_disk"
    done = run(
        tmp_path, "pytest", *pytest_of, "--import-mode=importlib", str(ROOT / f"tests/crash/test_model.py::{test}")
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert test in done.stdout.partition("short test summary")[2]


def test_a_copy_without_a_change_passes(tmp_path: Path) -> None:
    copy(tmp_path)
    some = (
        "adopt",
        "start block, and lifted",
        "export",
        "uninstall beside",
        "staging limit, then stage",
        "sweep of what is due",
    )
    assert caught_by(tmp_path, (*some, "--models", "KJBP")) == ()
