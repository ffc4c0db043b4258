"""The power goes at any call, on ext4, XFS and btrfs: what comes back is recovered, and the oracle of the model judges.

Spec: issue "Build 6", (b); reliability §4.4 (L2), §7 row 2; attacks A11.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from unittest import mock

import pytest

from logdir.disk.kernel import libc
from tests.crash.recording import Acks
from tests.kernel.__main__ import main
from tests.kernel.cuts import METHODS, Cut, Machine, Violation, recovered, roots_of, shortest
from tests.kernel.errnos import Bench, cases, kill_at
from tests.kernel.host import seen
from tests.kernel.images import FILE_SYSTEMS
from tests.kernel.operations import kernel_operation, names
from tests.kernel.schedule import SEED, cuts
from tests.proof.claims import POWER_CUTS, POWER_CUTS_AGREE, POWER_CUTS_WITHIN
from tests.proof.plugin import Recorder

pytestmark = pytest.mark.root


def violations_of(machine: Machine, todo: list[Cut]) -> Iterator[Violation]:
    for cut in todo:
        outcome = machine.cut(cut)
        if outcome.messages:
            yield Violation(cut, outcome.messages, outcome.calls)


def test_a11_no_power_cut_at_any_call_loses_or_doubles_anything(machine: Machine, record_proof: Recorder) -> None:
    count = POWER_CUTS.count("power cuts")
    todo = list(cuts(count, FILE_SYSTEMS))
    assert len(todo) == count
    found = list(violations_of(machine, todo))
    assert not found, shortest(found)
    kinds = Counter(cut.file_system for cut in todo)
    assert set(kinds) == set(FILE_SYSTEMS)
    if count >= len(names()):
        assert {cut.operation for cut in todo} == set(names())
    counts = {"power cuts": count, **{f"on {kind}": number for kind, number in kinds.items()}}
    counts["calls cut at"] = len({(cut.operation, cut.after) for cut in todo})
    counts["in recovery too"] = sum(cut.again is not None for cut in todo)
    record_proof(POWER_CUTS, counts, seeds=SEED)


def test_a11_nor_does_one_between_the_system_calls_of_a_call(
    machine: Machine, bench: Bench, record_proof: Recorder
) -> None:
    """A real process is killed at one of its system calls, by strace, and the power goes with it."""
    count = POWER_CUTS_WITHIN.count("power cuts")
    rng = random.Random(SEED)
    for number, case in enumerate(cases(count, bench, kills=True, seed=SEED + 2)):
        one = kernel_operation(case.operation)
        kind = FILE_SYSTEMS[number % len(FILE_SYSTEMS)]
        method = rng.choice(METHODS[kind])
        with machine.mounted(one, kind) as mounts:
            heard = bench.tracer.run(one.name, roots_of(mounts), kill_at(bench.heard(one.name)[case.at]))
            assert heard.ended.error == "killed"
            machine.power_cut(mounts, method)
            wrong = recovered(one, machine.start(one, kind).world, roots_of(mounts), Acks(heard.ended.said))
            assert not wrong, (kind, method, str(case), wrong)
    record_proof(POWER_CUTS_WITHIN, {"power cuts": count}, seeds=SEED + 2)


def test_two_ways_to_cut_the_power_leave_the_same(machine: Machine, record_proof: Recorder) -> None:
    count = POWER_CUTS_AGREE.count("power cuts")
    for cut in cuts(count, ("ext4", "xfs"), SEED + 1):
        cut = cut._replace(again=None)
        one, other = (machine.cut(cut._replace(method=method)) for method in ("shutdown", "copy"))
        assert one.messages == other.messages == ()
        assert seen(one.crashed) == seen(other.crashed), cut.render()
    record_proof(POWER_CUTS_AGREE, {"power cuts": count}, seeds=SEED + 1)


def _nothing(*_: object) -> int:
    return 0


@pytest.mark.parametrize("file_system", FILE_SYSTEMS)
@pytest.mark.parametrize("bug", ["no sync at all", "no fsync"])
def test_what_is_never_synced_is_missed(machine: Machine, file_system: str, bug: str) -> None:
    """The proof of the proof: without syncs the same cuts find it."""
    name = "stage 2"
    after = kernel_operation(name).calls
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(os, "fsync", _nothing))
        if bug == "no sync at all":
            stack.enter_context(mock.patch.object(libc._LIBC, "syncfs", _nothing))
        outcome = machine.cut(Cut(file_system, METHODS[file_system][0], name, after))
    assert "lost: d0/a-0 is live, not staged" in outcome.messages
    said = shortest([Violation(Cut(file_system, "copy", name, after), outcome.messages, outcome.calls)])
    assert f"python -m tests.kernel --replay '{file_system}/copy/{after}/{name}'" in said
    assert "rename /d0/kafka/a-0 -> /d0/kafka.logdird/deleting/" in said


def test_a_log_that_is_flushed_shows_names_without_their_bytes(machine: Machine) -> None:
    """That ``flushed`` is another crash than ``shutdown``: a file nobody synced is there, and empty."""
    name, after = "stage 1", 1
    trees = {}
    for method in ("shutdown", "flushed"):
        outcome = machine.cut(Cut("xfs", method, name, after))
        assert outcome.messages == ()
        trees[method] = outcome.crashed.tree()
    marker = "/d0/kafka/a-0/replica.json"
    assert marker not in trees["shutdown"]
    assert trees["flushed"][marker].data == b""


def test_the_choice_is_seeded_and_takes_every_call_before_it_takes_one_twice() -> None:
    everything = list(cuts(1 << 20, FILE_SYSTEMS))
    assert everything == list(cuts(1 << 20, FILE_SYSTEMS))
    assert len({(cut.file_system, cut.operation, cut.after) for cut in everything}) == len(everything)
    for name in names():
        calls = kernel_operation(name).calls + 1
        taken = [cut.after for cut in everything if cut.operation == name]
        assert len(taken) == calls * len(FILE_SYSTEMS)
        assert sorted(taken[:calls]) == list(range(calls))
    assert {cut.method for cut in everything} == {method for methods in METHODS.values() for method in methods}


def test_the_command_replays_a_cut_by_its_text(capsys: pytest.CaptureFixture[str], machine: Machine) -> None:
    assert main(["--replay", "ext4/shutdown/3+1/stage 1", "--replay", "btrfs/neighbour/2/hold"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ext4/shutdown/3+1/stage 1: nothing is wrong"
    assert lines[-1].startswith("2 power cuts, 0 violations")
