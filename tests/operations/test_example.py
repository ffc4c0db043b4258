"""One descriptor is all that a new operation needs: every rig picks it up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.__main__ import main
from tests.crash.recording import Acks
from tests.crash.seeded.patched import caught_by, copy
from tests.crash.soak.rounds import Soak, SoakError, Workers
from tests.crash.swaps.assault import attack
from tests.kernel.cuts import recovered, run_to
from tests.kernel.host import plant, world_of
from tests.kernel.operations import kernel_operation, names
from tests.kernel.schedule import every_call
from tests.logdir.disk.rescue import quick_path
from tests.operations import example, registry
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


def test_the_soak_draws_it_and_the_swaps_attack_it(tmp_path: Path) -> None:
    with quick_path(tmp_path) as base:
        assert Soak(base / "soak", 1).run(25).done["note"] > 0
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
