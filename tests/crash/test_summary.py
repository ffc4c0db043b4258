"""What makes a run of the enumeration worthless, and what a judge says of a deadline that was altered."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from logdir.disk.replica.outcome import undone
from logdir.disk.replica.replica_dir import read_marker
from logdir.disk.replica.staging import StageItem, stage
from logdir.errors import RefusedError
from logdir.formats.own import replica_marker
from logdir.formats.own.replica_marker import ReplicaMarker
from logdir.refusal_slug import Why
from tests.crash import steps
from tests.crash.__main__ import main
from tests.crash.enumerate import explore
from tests.crash.model import ModelHost
from tests.crash.recording import MODELS, Acks
from tests.crash.starts import FILE, A, Sites, marker_for
from tests.crash.steps import recover_all
from tests.crash.summary import worthless
from tests.operations.case import Case
from tests.operations.registry import case


def _worthless(one: Case) -> list[str]:
    return worthless(one, explore(one.start, one.do, one.recovery, one.holds, MODELS, operation=one.name))


def test_an_operation_that_shows_something_is_none_that_is_worthless() -> None:
    assert _worthless(case("stage 1")) == []
    assert _worthless(case("give an id")) == []


def test_an_operation_that_always_refuses_does_not_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(open_dir: object, items: list[StageItem]) -> tuple[object, ...]:
        return tuple(
            undone(
                item.path,
                RefusedError(item.path, why=Why.CHANGED, expected="something else", found="this", fix="look again"),
            )
            for item in items
        )

    monkeypatch.setattr(steps, "stage", refuse)
    assert main(["stage 1", "--jobs", "1"]) == 1
    said = capsys.readouterr().out
    assert "worthless: stage 1 never says 'd0/a-0 reached 1'" in said
    assert "worthless: no state of stage 1 differs from its start" in said
    assert "0 violations (" in said


def test_an_operation_with_fewer_than_twenty_states_does_not_pass() -> None:
    one = case("stage 1")
    few = explore(one.start, lambda host, acks: None, one.recovery, one.holds, MODELS, operation=one.name)
    assert few.states == 7
    assert "worthless: stage 1 has 7 states, fewer than 20" in worthless(one, few)


def _altered(alter: Callable[[ReplicaMarker], ReplicaMarker]) -> list[str]:
    """Return what the judge says of a recovery, or an operation, that writes the marker of what is staged anew."""

    def run(host: ModelHost, acks: Acks) -> None:
        with Sites(host) as open_dirs:
            open_dir = open_dirs.of(A)
            stage(open_dir, [StageItem(path=A.path, marker=marker_for(open_dir, A))])
            with open_dir.deleting.open(A.place) as directory:
                marker = read_marker(directory)
                assert marker is not None
                directory.write("replica.new.json", replica_marker.render(alter(marker)), FILE)
                directory.sync_file("replica.new.json")
                directory.replace("replica.new.json", "replica.json")
                directory.sync()

    one = case("stage 1")
    found = explore(one.start, run, recover_all, one.holds, ("K", "J"))
    return sorted({violation.message.partition(" is ")[0] for violation in found.violations})


@pytest.mark.parametrize(
    "alter",
    [
        lambda marker: replace(marker, staged_at_ms=marker.staged_at_ms - 1),
        lambda marker: replace(marker, delay_ms=14_400_000 - 1),
        lambda marker: replace(marker, delay_ms=0),
        lambda marker: replace(marker, boot_id="another"),
        lambda marker: replace(marker, boottime_ms=marker.boottime_ms - 1),
        lambda marker: replace(marker, boottime_ms=marker.boottime_ms + 60_000),
    ],
    ids=["staged earlier", "a shorter delay", "no delay at all", "another boot", "earlier in its boot", "later"],
)
def test_no_operation_alters_a_deadline(alter: Callable[[ReplicaMarker], ReplicaMarker]) -> None:
    assert _altered(lambda marker: marker) == []
    assert _altered(alter) == ["early: the deadline of d0/a-0"]


def test_a_capture_with_another_deadline_than_was_decided_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    render = replica_marker.render
    monkeypatch.setattr(replica_marker, "render", lambda marker: render(replace(marker, boottime_ms=0)))
    one = case("capture")
    found = explore(one.start, one.do, one.recovery, one.holds, ("K",))
    assert any(violation.message.startswith("early: the deadline of ") for violation in found.violations)


def test_a_missing_disk_may_not_be_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    one = case("init beside")

    def recover(host: ModelHost) -> None:
        for system in host.systems:
            if system.status == "empty":
                with suppress(FileExistsError), host.open_top(system.mount) as top:
                    top.write("made-up", b"", FILE)
        one.recovery(host)

    found = explore(one.start, one.do, recover, one.holds, ("D",), quiet=one.quiet)
    assert "foreign: /d1 is changed though it is empty" in {violation.message for violation in found.violations}


def test_the_figures_of_a_deadline_are_those_of_the_design() -> None:
    with Sites(case("stage 1").start) as open_dirs:
        marker = json.loads(replica_marker.render(marker_for(open_dirs.of(A), A)))
    assert marker["delay_ms"] == 4 * 60 * 60 * 1000
