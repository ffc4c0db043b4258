"""Every operation, crashed at every call under every model: nothing lost, early, doubled or stuck."""

from __future__ import annotations

import errno
from functools import cache

import pytest

from tests.crash.__main__ import main, results, unsynced_renames
from tests.crash.enumerate import ERRNOS, explore
from tests.crash.model import SYNCS, Failure, ModelHost
from tests.crash.recording import Acks, record
from tests.crash.result import Result
from tests.crash.steps import recover_all
from tests.operations.case import Case
from tests.operations.operation import REPLICA, Trait
from tests.operations.registry import case, families, having
from tests.proof.claims import CRASHES, CRASHES_WITHIN_RECOVERY, ERRNOS_EVERYWHERE
from tests.proof.plugin import Recorder
from tests.proof.sizes import SIZE, Size

NAMES = families()[REPLICA]
RAW = having(Trait.RAW, Trait.PREPARED)
LONG = having(Trait.LONG)
FULL = SIZE is Size.FULL
DEPTH_1 = NAMES if FULL else tuple(name for name in NAMES if name not in LONG)
"""A taste: ``make crash``, which CI runs, takes all of them."""
FEW_ERRNOS = (errno.EIO, errno.ENOSPC, errno.EACCES, errno.EEXIST, errno.EINTR)


@cache
def _depth_1() -> dict[str, Result]:
    return {result.operation: result for result in results(DEPTH_1)}


def test_every_operation_survives_every_crash(record_proof: Recorder) -> None:
    found = _depth_1()
    assert [str(result) for result in found.values() if result.violating] == []
    distinct = sum(result.distinct for result in found.values())
    assert distinct >= (10_000 if FULL else 1_000)
    record_proof(CRASHES, {"distinct states": distinct})


@pytest.mark.parametrize("name", DEPTH_1)
def test_every_call_is_a_row_and_every_model_a_column(name: str) -> None:
    one, result = case(name), _depth_1()[name]
    recording = record(one.start.world(), one.do)
    calls = len(recording.records)
    rows = {after for after, _, model in result.cells if model in ("K", "J", "B", "P", "DJ")}
    assert rows == set(range(calls + 1))
    failed = {"F", "FK"} if list(recording.syncs()) else set()
    assert {model for _, _, model in result.cells} == {"K", "J", "B", "P", "DJ"} | failed


@pytest.mark.slow
def test_every_operation_survives_a_crash_within_its_recovery(record_proof: Recorder) -> None:
    # The long purges leave ten thousand states whose recovery is one sync: a taste of the others shows the same.
    names = [name for name in NAMES if FULL or name not in LONG]
    inner = 0
    # Not F: after a failed sync nobody recovers that disk in the same boot (design §3.4), so no recovery is cut there.
    for result in results(names, "KJBPD", 2):
        assert not result.violating, str(result)
        inner += result.inner
    record_proof(CRASHES_WITHIN_RECOVERY, {"states": inner})


@pytest.mark.slow
def test_every_errno_at_every_call_ends_done_undone_or_read_only(record_proof: Recorder) -> None:
    names = NAMES if FULL else [name for name in NAMES if name not in LONG | having(Trait.LONG_ERRNOS)]
    states = 0
    for result in results(names, failures=ERRNOS if FULL else FEW_ERRNOS):
        assert not result.violating, str(result)
        states += result.states
    record_proof(ERRNOS_EVERYWHERE, {"states": states})


@pytest.mark.parametrize("name", NAMES)
def test_both_parents_of_a_rename_are_durable_before_it_is_said(name: str) -> None:
    one = case(name)
    assert unsynced_renames(record(one.start.world(), one.do)) == []


def _failing(one: Case, failure: Failure) -> tuple[ModelHost, str]:
    host = ModelHost(one.start.world()).fail(failure)
    try:
        one.do(host, Acks())
    except Exception as error:  # noqa: BLE001 - what it is, is judged
        return host, type(error).__name__
    return host, ""


@pytest.mark.parametrize("name", NAMES)
def test_a_failed_sync_is_never_repeated_and_nothing_is_written_to_that_disk_after_it(name: str) -> None:
    one = case(name)
    whole = record(one.start.world(), one.do).records
    for at, made in enumerate(whole):
        if made.call.name not in SYNCS:
            continue
        for number in (errno.EIO, errno.ENOSPC, errno.EINTR):
            host, error = _failing(one, Failure(at, number))
            disk = made.call.path[:3]
            assert [later.call for later in host.records[at + 1 :] if later.call.path.startswith(disk)] == []
            assert error in ("ReadOnlyDiskError", "")
            assert error or name in RAW | having(Trait.GOES_ON) or any(other.call.path[:3] != disk for other in whole)


@pytest.mark.parametrize("name", NAMES)
def test_a10_a_full_disk_takes_the_reserve_once_and_the_step_again(name: str) -> None:
    """Whatever step it is: the outcome is the same as on a disk with room (A10)."""
    one = case(name)
    plain = ModelHost(one.start.world())
    acks = Acks()
    one.do(plain, acks)
    for at, made in enumerate(plain.records):
        # Recovery and tidying need no room that they would have to wait for.
        # Nor does a removal, but on btrfs, and then it is undone.
        if made.errno or made.call.name in (*SYNCS, "truncate") or name in RAW | having(Trait.NEEDS_NO_ROOM):
            continue
        if made.call.path.endswith(("replica.json", "replica.new.json", ".old")) and made.call.name == "unlink":
            continue
        host = ModelHost(one.start.world()).fail(Failure(at, errno.ENOSPC, is_short=made.call.name == "write"))
        again = Acks()
        one.do(host, again)
        assert again.said == acks.said, made.call
        given_up = [r.call for r in host.records if r.call.name == "truncate" and r.call.path.endswith("/reserve")]
        assert len(given_up) == 1, made.call


@pytest.mark.parametrize("name", ["stage 1", "hold", "restore", "make a file"])
def test_a09_only_without_unnamed_files_does_a_kill_leave_one_a_broker_cannot_read(name: str) -> None:
    """A process of root killed at any call: a file of ours under a name belongs to the log dir's owner, at once."""
    one = case(name)
    assert not explore(one.start, one.do, recover_all, one.holds, ["K"]).violations
    world = one.start.world()
    named = ModelHost(world._replace(volumes=tuple(v._replace(makes_unnamed=False) for v in world.volumes)))
    found = explore(named, one.do, recover_all, one.holds, ["K"]).violations
    assert {violation.message.partition(":")[0] for violation in found} == {"unreadable"}


def test_the_command_prints_the_matrix_and_ends_with_the_states_of_each_model_and_family(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["hold", "stage 1", "give an id", "--jobs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines if " violations (" in line] == ["hold", "stage 1", "give an id"]
    assert max(map(len, lines)) <= 80
    at = next(number for number, line in enumerate(lines) if line.startswith("states  "))
    assert lines[at].split() == ["states", "K", "J", "B", "P", "F", "D", "all"]
    table = {
        line[:14].strip(): [int(text) for text in line[14:].replace(",", "").split()] for line in lines[at + 1 : at + 4]
    }
    assert list(table) == ["replica, file", "gives", "all"]
    assert all(sum(row[:-1]) == row[-1] and min(row) > 0 for row in table.values())
    assert table["all"] == [sum(column) for column in zip(table["replica, file"], table["gives"], strict=True)]
    assert lines[-1] == f"{table['all'][-1]:,} states, 0 violations"
    assert main(["hold", "--replay", "K@1,0,-:1.0+ok"]) == 0
    assert capsys.readouterr().out == "nothing is wrong\n"


def test_the_errnos_are_those_of_the_specification() -> None:
    assert {errno.errorcode[number] for number in ERRNOS} == {
        "EIO", "ENOSPC", "EROFS", "EDQUOT", "EACCES", "EMFILE", "ENOENT", "EEXIST", "EXDEV", "EINTR",
        "ENODEV", "ESTALE",
    }  # fmt: skip


def test_recovery_of_what_was_never_interrupted_writes_nothing() -> None:
    for one in map(case, NAMES):
        if one.name in having(Trait.AT_WORK):
            continue
        host = ModelHost(one.start.world())
        recover_all(host)
        assert [made.call for made in host.records if made.is_change] == [], one.name
