"""One descriptor is all that a new operation needs: every rig picks it up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from tests.crash.__main__ import main
from tests.crash.recording import Acks
from tests.crash.seeded import syncs
from tests.crash.seeded.patched import caught_by, copy
from tests.crash.soak.rounds import Soak, SoakError, Workers
from tests.crash.swaps.assault import attack
from tests.kernel.cuts import recovered, run_to
from tests.kernel.fullness import HOWS
from tests.kernel.host import plant, world_of
from tests.kernel.images import FILE_SYSTEMS
from tests.kernel.operations import kernel_operation, names
from tests.kernel.schedule import END, every_call, full_cuts
from tests.logdir.disk.rescue import quick_path
from tests.operations import example, functions, registry
from tests.operations.operation import Operation
from tests.operations.seeded import Change, Seeded, call, drop, never, seed
from tests.operations.source import ROOT, NoTargetError


@pytest.fixture(autouse=True)
def note() -> Iterator[Operation]:
    """The example, in the registry for as long as a test runs."""
    assert "note" not in registry.cases()
    with registry.added(example.__name__):
        yield example.OPERATIONS[0]
    assert "note" not in registry.cases()


def test_the_enumeration_crashes_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["note", "give an id", "--jobs", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (row,) = (line for line in lines if line.startswith("notes "))
    assert int(row.split()[-1].replace(",", "")) >= 100
    assert lines[-1].endswith(" 0 violations")


def test_the_kernels_list_it_and_a_real_directory_judges_it(tmp_path: Path) -> None:
    assert "note" in names()
    assert len(every_call()["note"]) > 8
    if os.geteuid() != 0:
        pytest.skip("needs root, to give files away")
    one = kernel_operation("note")
    for after in range(one.calls + 1):
        roots = {mount: str(tmp_path / str(after) / mount.strip("/")) for mount in one.mounts}
        for path in roots.values():
            Path(path).mkdir(parents=True)
        plant(one.world(), roots)
        start, acks = world_of(roots), Acks()
        assert run_to(one, roots, acks, after)[1] == ""
        assert recovered(one, start, roots, acks) == []


def passed(*arguments: str, size: str = "") -> dict[str, set[str]]:
    """Run tests of other rigs in a process that begins with the example, as one in the registry is there.

    Args:
        arguments: Of pytest: files, and which tests of them.
        size: A variable that says how large the run is; empty: a taste.

    Returns:
        Of each test function that passed, its parameters.
    """
    scrubbed = {name: text for name, text in os.environ.items() if not name.startswith(("LOGDIRD_", "PYTEST_"))}
    environment = {**scrubbed, registry.MORE: os.environ[registry.MORE], **({size: "1"} if size else {})}
    words = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, set[str]] = {}
    for name, parameter in re.findall(r"::(test_\w+)\[(.*)\] PASSED", done.stdout):
        found.setdefault(name, set()).add(parameter)
    return found


@pytest.mark.slow
def test_failed_calls_failed_syncs_and_full_disks_take_it() -> None:
    """Some are for operations on one replica or one small file alone, some for those with a family of their own."""
    found = passed("tests/crash/families", "tests/crash/test_operations.py", "-k", "note")
    alone = {"note on one disk"}
    assert found == {
        "test_every_case_survives_every_crash": {"notes"},
        "test_every_case_survives_a_crash_within_its_recovery": {"notes"},
        "test_a_case_does_something_and_says_so": {"note"},
        "test_both_parents_of_a_rename_are_durable_before_it_is_said": {"notes", *alone},
        "test_a_sick_disk_is_called_read_only_and_nothing_new_is_written_to_it": {"note", *alone},
        "test_a_disk_that_cannot_be_looked_at_is_called_read_only": {"note", *alone},
        "test_no_disk_is_written_to_after_a_sync_of_it_failed_for_want_of_room": {"note"},
        "test_every_call_is_a_row_and_every_model_a_column": alone,
        "test_a_failed_sync_is_never_repeated_and_nothing_is_written_to_that_disk_after_it": alone,
        "test_a10_a_full_disk_takes_the_reserve_once_and_the_step_again": alone,
    }


def test_each_of_its_syncs_is_missed_or_written_down(note: Operation, tmp_path: Path) -> None:
    """``tests/crash/seeded`` asks so of every sync in ``logdir/disk``, where those of the example are not."""
    (mine,) = note.syncs
    assert (note, mine) in registry.syncs()
    assert set(note.needless) <= set(registry.needless())
    calls = syncs.of(mine.of)
    assert [bool(syncs.why_needless(one)) for one in calls] == [False, True]
    for number, one in enumerate(calls):
        copy(tmp_path / str(number), left_out=one)
        found = caught_by(tmp_path / str(number), syncs.arguments(one))
        assert bool(found) != bool(syncs.why_needless(one)), one.shown


@pytest.mark.slow
def test_its_bug_is_sown_and_the_syncs_of_its_file_are_left_out(note: Operation) -> None:
    (bug,), (file,) = note.seeded, note.files
    files = "tests/crash/seeded/test_families.py", "tests/crash/soak/test_soak.py"
    found = passed(*files, "-k", "draft or (note and only)", size="LOGDIRD_PROOF")
    left_out = found.pop("test_each_file_of_ours_misses_each_sync_of_its_writing")
    assert {one.partition("-LeftOut(")[0] for one in left_out} == {file}
    assert len(left_out) == len(syncs.of(functions.SMALL_FILE_MODULE))
    assert found == {
        "test_every_bug_still_fits_the_source": {bug.name},
        "test_a_bug_that_was_sown_is_caught": {bug.name},
        "test_a_bug_that_was_sown_is_caught_by_killing": {bug.name},
    }


def test_the_kernels_cut_it_off_on_a_full_disk() -> None:
    """Half of the runs come to their end there."""
    runs = [one for one in full_cuts(END, FILE_SYSTEMS) if one.operation == "note"]
    assert {one.file_system for one in runs} == set(FILE_SYSTEMS)
    assert {one.full for one in runs} == set(HOWS)


@pytest.mark.slow
def test_the_soak_draws_it_and_the_swaps_attack_it(tmp_path: Path) -> None:
    with quick_path(tmp_path) as base:
        # Which kills cut it off depends on how fast the machine is.
        soaks = (Soak(base / f"soak-{seed}", seed) for seed in range(1, 9))
        assert any(soak.run(25).done.get("note", 0) > 0 for soak in soaks)
        report = attack(base / "swaps", 200, 1, [base / "sentinel"])
    assert report.done["note"] > 0
    assert (report.escapes, report.faults) == ([], [])


def test_its_bug_is_caught_by_the_enumeration_and_by_killing(note: Operation, tmp_path: Path) -> None:
    (bug,) = note.seeded
    assert bug in [found for _, found in registry.seeded()]
    copy(tmp_path, bug.changes)
    assert frozenset(caught_by(tmp_path, bug.tried)) == bug.caught_by
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    with quick_path(tmp_path) as base, pytest.raises(SoakError) as fault:
        Soak(base / "soak", 1, workers=Workers(environment, cwd=tmp_path)).run(100)
    assert any(line.startswith(bug.killed) for line in str(fault.value).splitlines()), str(fault.value)


SHOWN: dict[str, tuple[Callable[..., None], ...]] = {
    "the model disk, cut off at every call": (test_the_enumeration_crashes_it,),
    "failed calls and syncs, full disks": (test_failed_calls_failed_syncs_and_full_disks_take_it,),
    "real kernels": (
        test_the_kernels_list_it_and_a_real_directory_judges_it,
        test_the_kernels_cut_it_off_on_a_full_disk,
    ),
    "processes killed at random": (test_the_soak_draws_it_and_the_swaps_attack_it,),
    "links swapped under one": (test_the_soak_draws_it_and_the_swaps_attack_it,),
    "bugs and syncs": (
        test_its_bug_is_caught_by_the_enumeration_and_by_killing,
        test_each_of_its_syncs_is_missed_or_written_down,
        test_its_bug_is_sown_and_the_syncs_of_its_file_are_left_out,
    ),
}
"""Which test shows that a rig has picked it up."""


def test_every_rig_of_the_page_is_shown_to_have_picked_it_up(note: Operation) -> None:
    text = Path(__file__).with_name("README.md").read_text("utf-8")
    rows = [row.split("|")[1:4] for row in text.splitlines() if row.startswith("| ")][1:]
    assert [rig.partition(":")[0].strip() for rig, _, _ in rows] == list(SHOWN)
    asked = {name for _, cell, _ in rows for name in re.findall(r"`(\w+)", cell)}
    assert all(callable(getattr(registry, name)) for name in asked)
    # What the descriptor has for a rig is filled in.
    parts = {one.name for one in fields(Operation)} & asked
    assert parts == {"cases", "on_kernels", "draws", "seeded", "syncs", "needless", "files"}
    assert all(getattr(note, name) for name in parts - {"on_kernels"})


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (Change("logdir.disk.nowhere:stage", drop(call("sync"))), "logdir.disk.nowhere:stage"),
        (Change("logdir.disk.replica.staging:nothing", drop(call("sync"))), "nothing is defined 0 times"),
        (
            Change("logdir.disk.replica.staging:stage", drop(call("sync", of="nowhere"))),
            "call of nowhere.sync number 1",
        ),
        (Change("logdir.disk.replica.staging:stage", drop(call("sync", nth=3))), "call of sync number 3"),
        (Change("logdir.disk.replica.staging:stage", drop(call("render"))), "is part of something"),
        (Change("logdir.disk.replica.staging:rewrite_marker", never(call("replace"))), "nothing guards"),
    ],
    ids=["module", "function", "receiver", "number", "expression", "guard"],
)
def test_a_bug_whose_target_is_not_there_fails_with_the_name_it_looked_for(change: Change, name: str) -> None:
    bug = Seeded(name="gone", changes=(change,))
    with pytest.raises(NoTargetError, match=name):
        seed(bug.changes)
