"""The enumeration catches what it is there to catch: a small protocol, right, and with each known bug."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from logdir.disk.kernel.calls import Directory, Owner
from logdir.disk.kernel.host import Call
from logdir.observe.classify import Type
from tests.crash.enumerate import Run, State, explore, explore_failures, replay
from tests.crash.model import ModelHost
from tests.crash.recording import Acks, Crash, record
from tests.crash.result import Result
from tests.crash.tree import World

FILE = Owner(0, 0, 0o644)
MARKER = b"deadline and digest"
DATA = b"all there is"
ALL = ("K", "J", "B", "P", "F", "D")


def _start(disks: int = 1) -> ModelHost:
    host = ModelHost.with_disks(*(f"/d{number}" for number in range(disks)))
    for number in range(disks):
        host.plant(f"/d{number}/live/t-0/log", DATA)
        host.plant(f"/d{number}/deleting", kind=Type.DIRECTORY)
    return host


def _stage(*, leave_out: str = "", disks: int = 1, retry: bool = False) -> Run:
    """Return the protocol: marker, sync, rename, sync; with one step left out or too late."""

    def sync(what: str, act: Callable[[], None]) -> None:
        if what == leave_out:
            return
        if not retry:
            act()
            return
        # The bug of reliability §4.3.
        try:
            act()
        except OSError:
            act()

    def stage(host: ModelHost, number: int) -> None:
        with host.open_top(f"/d{number}") as top, top.open("live") as live, top.open("deleting") as deleting:
            with live.open("t-0") as replica:
                if leave_out != "order":
                    replica.write("marker", MARKER, FILE)
                    sync("file", lambda: replica.sync_file("marker"))
                    sync("replica", replica.sync)
                live.rename("t-0", deleting, "t-0")
                if leave_out == "order":
                    replica.write("marker", MARKER, FILE)
                    replica.sync_file("marker")
                    replica.sync()
            if leave_out != "parents":
                sync("new parent", deleting.sync)
                sync("old parent", live.sync)

    def run(host: ModelHost, acks: Acks) -> None:
        for number in range(disks):
            stage(host, number)
            acks.ack(f"staged {number}")

    return run


def _drop(directory: Directory) -> None:
    if "marker" in directory.names():
        directory.unlink("marker")
        directory.sync()


def _recover(host: ModelHost) -> None:
    """A live replica with a marker was not staged."""
    for system in host.systems:
        with suppress(FileNotFoundError, PermissionError), host.open_top(f"{system.mount}/live") as live:
            for name in live.names():
                with live.open(name) as replica:
                    try:
                        _drop(replica)
                    except OSError as error:
                        if error.errno != errno.EROFS:
                            raise


def _judge(start: World, state: State, acks: Acks) -> list[str]:
    wrong = []
    files = state.recovered.files()
    for number, (volume, status) in enumerate(zip(state.recovered.volumes, state.statuses, strict=True)):
        if status in ("absent", "empty"):
            continue
        live, staged = (files.get(f"{volume.mount}/{place}/t-0/log") for place in ("live", "deleting"))
        marker = files.get(f"{volume.mount}/deleting/t-0/marker")
        if sorted([live or b"", staged or b""]) != [b"", DATA]:
            wrong.append("not exactly once")
        if staged and marker != MARKER:
            wrong.append("staged without its marker")
        if f"staged {number}" in acks and not staged and not state.error:
            wrong.append("acknowledged, but not staged")
    return wrong


def _explore(run: Run, models: tuple[str, ...] = ALL, depth: int = 2, disks: int = 1) -> Result:
    return explore(_start(disks), run, _recover, _judge, models, depth, operation="stage")


def test_the_right_protocol_holds_under_every_model_also_when_its_recovery_is_cut() -> None:
    result = _explore(_stage())
    assert result.violations == (), str(result)
    assert result.violating == 0
    assert result.inner > 0
    assert {model for _, _, model in result.cells} == {"K", "J", "B", "P", "F", "FK", "DJ"}
    assert {after for after, _, _ in result.cells} == set(range(7))
    assert f"{result.states:,} states, 0 violations" in str(result)


@pytest.mark.parametrize(
    ("bug", "models", "message"),
    [
        ("order", "K J B P", "staged without its marker"),
        ("file", "J B P", "staged without its marker"),
        ("replica", "P", "staged without its marker"),
        ("parents", "J B P", "acknowledged, but not staged"),
    ],
)
def test_a_known_bug_is_caught_and_its_schedule_replays(bug: str, models: str, message: str) -> None:
    result = _explore(_stage(leave_out=bug), ("K", "J", "B", "P"), depth=1)
    caught: dict[str, set[str]] = {}
    for violation in result.violations:
        assert violation.message == message
        crash = Crash.parse(violation.schedule)
        caught.setdefault(crash.model, set()).add(violation.message)
        assert replay(_start(), _stage(leave_out=bug), _recover, _judge, violation.schedule) == [message]
        assert len(violation.lines) in (crash.after + 2, crash.after + 3)
        assert "lost" in str(violation) or "half" in str(violation) or crash.model == "K" or bug == "order"
    assert set(caught) == set(models.split()), str(result)


@pytest.mark.parametrize("parent", ["new parent", "old parent"])
def test_one_of_two_parents_is_enough_where_a_rename_is_atomic(parent: str) -> None:
    """Known, and kept: both are synced because atomicity of a rename cannot be tested away (reliability §4.2)."""
    assert not _explore(_stage(leave_out=parent), ("K", "J", "B", "P"), depth=1).violations


def test_a_sync_tried_again_after_it_failed_is_caught() -> None:
    assert not _explore(_stage(retry=True), ("K", "J", "B", "P")).violations
    result = explore(_start(), _stage(retry=True), _recover, _judge, ["F"])
    assert {violation.message for violation in result.violations} == {
        "staged without its marker",
        "acknowledged, but not staged",
    }
    for violation in result.violations:
        found = replay(_start(), _stage(retry=True), _recover, _judge, violation.schedule)
        assert violation.message in found
        assert "fails with EIO" in str(violation)


def test_two_disks_one_of_which_may_be_gone() -> None:
    result = _explore(_stage(disks=2), disks=2)
    assert result.violations == (), str(result)
    result = _explore(_stage(leave_out="parents", disks=2), ("D",), depth=1, disks=2)
    messages = {violation.message for violation in result.violations}
    assert messages == {"acknowledged, but not staged", "with the disk back: acknowledged, but not staged"}


def test_a_recovery_that_is_never_done_is_caught() -> None:
    def recover(host: ModelHost) -> None:
        with host.open_top("/d0") as top:
            top.write(f"note-{len(top.names())}", b"", FILE)

    result = explore(_start(), _stage(), recover, lambda *_: [], ["K"])
    assert {violation.message for violation in result.violations} == {"second recovery writes: write /d0/note-3"}

    def is_note(call: Call) -> bool:
        return "/note-" in call.path

    assert not explore(_start(), _stage(), recover, lambda *_: [], ["K"], quiet=is_note).violations


def test_a_recovery_that_raises_is_caught() -> None:
    def recover(host: ModelHost) -> None:
        if host.rebooted:
            raise ValueError("cannot go on")

    result = explore(_start(), _stage(), recover, lambda *_: [], ["K", "J"])
    assert {violation.message for violation in result.violations} == {"recovery raises ValueError: cannot go on"}
    assert all(model == "J" for (_, _, model), cell in result.cells.items() if cell.violations)


def test_a_recovery_whose_own_order_is_wrong_is_caught_only_at_depth_2() -> None:
    """It publishes under a new name before the content is durable, which no crash of the operation shows."""

    def recover(host: ModelHost) -> None:
        with host.open_top("/d0") as top:
            if "done" not in top.names():
                if "temp" in top.names():
                    top.unlink("temp")
                top.write("temp", b"12345678", FILE)
                top.rename("temp", top, "done")
                top.sync()

    def judge(start: World, state: State, acks: Acks) -> list[str]:
        done = state.recovered.files().get("/d0/done")
        return [] if done == b"12345678" else ["half done"]

    def run(host: ModelHost, acks: Acks) -> None:
        host.open_top("/d0").sync()

    shallow = explore(_start(), run, recover, judge, ["K", "J"])
    assert not shallow.violations
    deep = explore(_start(), run, recover, judge, ["K", "J"], 2)
    assert {violation.message for violation in deep.violations} == {"half done"}
    for violation in deep.violations:
        assert " > " in violation.schedule
        assert replay(_start(), run, recover, judge, violation.schedule) == ["half done"]


def test_what_is_acknowledged_is_seen_by_the_judge_before_and_after() -> None:
    seen = set()

    def run(host: ModelHost, acks: Acks) -> None:
        with host.open_top("/d0") as top:
            acks.ack("begun")
            top.write("a", b"", FILE)
            top.sync()
            acks.ack("made")

    def judge(start: World, state: State, acks: Acks) -> list[str]:
        names = state.crashed.volumes[0].nodes[state.crashed.volumes[0].root].entries
        seen.add(("a" in names, *acks.said))
        return []

    explore(_start(), run, lambda host: None, judge, ["K", "J"])
    assert seen == {
        (False,),
        (False, "begun"),
        (True, "begun"),
        (True, "begun", "made"),
    }


def test_what_was_acknowledged_is_still_so_when_the_recovery_is_cut() -> None:
    seen = []

    def run(host: ModelHost, acks: Acks) -> None:
        host.open_top("/d0").sync()
        acks.ack("made")

    def recover(host: ModelHost) -> None:
        with host.open_top("/d0") as top:
            if "note" not in top.names():
                top.write("note", b"12", FILE)

    def judge(start: World, state: State, acks: Acks) -> list[str]:
        seen.append(acks.said)
        return []

    explore(_start(), run, recover, judge, ["J"], 2)
    assert ("made",) in seen[2:]


def test_an_operation_that_fails_without_a_crash_is_no_exploration() -> None:
    def run(host: ModelHost, acks: Acks) -> None:
        raise OSError("no such thing")

    with pytest.raises(AssertionError, match="no such thing"):
        explore(_start(), run, _recover, _judge)


def test_the_matrix_names_every_call_and_model() -> None:
    result = _explore(_stage(leave_out="file"), ("K", "J"), depth=1)
    lines = result.table().splitlines()
    assert lines[0] == f"stage: {result.totals()}"
    assert lines[1].split() == ["after", "K", "J"]
    rows = [line.split() for line in lines[2:]]
    assert [row[1] for row in rows if row[0] != "violations"] == [
        "(start)",
        "write",
        "fsync-dir",
        "rename",
        "fsync-dir",
        "fsync-dir",
    ]
    assert sum(cell.violations for cell in result.cells.values()) == result.violating > 0


def test_the_right_protocol_survives_every_failing_call() -> None:
    result = explore_failures(_start(), _stage(), _recover, _judge, operation="stage")
    assert result.violations == (), str(result)
    assert {column for _, _, column in result.cells} >= {"EIO", "ENOSPC", "EROFS", "ESTALE"}
    assert {row for row, _, _ in result.cells} == set(range(1, 7))


def test_a_failure_that_is_swallowed_is_caught() -> None:
    def run(host: ModelHost, acks: Acks) -> None:
        with host.open_top("/d0") as top, top.open("live") as live, top.open("deleting") as deleting:
            with live.open("t-0") as replica:
                with suppress(OSError):
                    replica.write("marker", MARKER, FILE)
                    replica.sync_file("marker")
                replica.sync()
            live.rename("t-0", deleting, "t-0")
            deleting.sync()
            live.sync()
            acks.ack("staged 0")

    assert not _explore(run, ("K", "J", "B", "P")).violations
    result = explore_failures(_start(), run, _recover, _judge, [errno.ENOSPC], operation="stage")
    assert {violation.message for violation in result.violations} == {"staged without its marker"}
    for violation in result.violations:
        assert "fails with ENOSPC" in str(violation)
        assert "staged without its marker" in replay(_start(), run, _recover, _judge, violation.schedule)


def _stopped(after: int, host: ModelHost, acks: Acks) -> None:
    _stage()(host.kill(after), acks)


def test_a_process_really_stopped_leaves_what_the_enumeration_says() -> None:
    recording = record(_start().world(), _stage())
    for after in range(len(recording.records) + 1):
        killed = record(_start().world(), partial(_stopped, after))
        assert killed.error == ("stopped" if after < len(recording.records) else "")
        whole = next(recording.crashes("K", after))
        assert killed.world_now().digest() == recording.world(whole).digest()
        # And of the rest: what the one lets survive of the calls before it, so does the other.
        for model in ("J", "B", "P"):
            assert {killed.world(c).digest() for c in killed.crashes(model, after)} == {
                recording.world(c).digest() for c in recording.crashes(model, after)
            }


def test_a_kill_stays_in_its_boot_and_a_power_cut_does_not() -> None:
    seen: dict[bool, set[tuple[str, int]]] = {True: set(), False: set()}

    def recover(host: ModelHost) -> None:
        seen[host.rebooted].add((host.boot_id, host.boottime_ms() // 60_000))
        assert host.now_ms() > _start().now_ms()

    explore(_start(), lambda host, acks: None, recover, lambda *_: [], ["K", "J"])
    first, second = (f"00000000-0000-4000-8000-00000000000{boot}" for boot in range(2))
    # Each of the two is recovered twice; the second time without another boot.
    assert seen == {False: {(first, 61), (first, 121), (second, 61)}, True: {(second, 1)}}
