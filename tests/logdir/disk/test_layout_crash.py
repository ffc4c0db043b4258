"""A change of layout cut off anywhere, by a kill or a power cut: it goes on, or back, to the same end."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress

import pytest

from logdir.decide.layout.action import ToNames
from logdir.disk.record.start_block import StartBlockState, state
from logdir.disk.replica.relayout import remove_empty_prefixes, to_ids, to_names
from logdir.errors import LogDirError
from logdir.formats.own import layout_file
from logdir.formats.own.layout_file import LayoutState
from logdir.observe.classify import Type
from tests.crash.enumerate import State, crashes, explore
from tests.crash.model import Failure, Killed, ModelHost
from tests.crash.recording import Acks, record
from tests.crash.result import Result
from tests.crash.tree import World
from tests.logdir.disk import layout_rig as layout
from tests.logdir.disk.layout_crash import (
    BROKERS,
    META_TEXT,
    OLD,
    apply,
    blocked,
    broker,
    differences,
    ended,
    finalized,
    items_of,
    judge_back,
    judge_end,
    log_dirs,
    planned,
    rollback,
    seen,
    start,
    unbarred,
    untimed,
)
from tests.logdir.disk.layout_rig import opened, unlocked
from tests.operations.case import resumed

MODELS = ("K", "J", "B", "P")


def assert_none(result: Result) -> None:
    assert not result.violations, "\n".join(map(str, result.violations[:3]))
    assert result.states > 20


def acknowledged(run: Callable[[ModelHost], None]) -> Callable[[ModelHost, Acks], None]:
    def acknowledging(host: ModelHost, acks: Acks) -> None:
        run(host)
        acks.ack("done")

    return acknowledging


@pytest.mark.parametrize("name", BROKERS)
def test_an_apply_cut_off_anywhere_goes_back_to_the_same_tree(name: str) -> None:
    host = broker(name)
    plan = planned(host)
    run = acknowledged(lambda host: apply(host, plan))
    assert_none(explore(host, run, rollback, judge_back, MODELS, operation="apply"))


@pytest.mark.parametrize("name", BROKERS)
def test_an_apply_cut_off_anywhere_goes_on_to_the_same_end(name: str) -> None:
    host = broker(name)
    plan = planned(host)
    end = ended(host, lambda host: apply(host, plan))
    again = lambda host: apply(host, plan)  # noqa: E731 - the same call, as run and as recovery
    assert_none(explore(host, acknowledged(again), again, judge_end(end.world()), MODELS, operation="apply"))
    for path, node in end.world().tree().items():
        if path.endswith(("/00000000000000000000.log", "/partition.metadata")) and "bm90" not in path:
            assert node.mtime_ns in (OLD + 1, OLD + 2) or node.data.endswith(b"topic_name: b")


@pytest.mark.parametrize("name", BROKERS)
def test_a_rollback_cut_off_anywhere_ends_in_the_first_tree(name: str) -> None:
    first = broker(name)
    plan = planned(first)
    applied = ended(first, lambda host: apply(host, plan))

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = differences(seen(first.world()), seen(state.recovered))
        return wrong + (differences(seen(first.world()), seen(state.crashed)) if "done" in acks else [])

    assert_none(explore(applied, acknowledged(rollback), rollback, judge, MODELS, operation="rollback"))


def test_an_apply_cut_off_goes_back_also_when_the_way_back_is_cut_off() -> None:
    host = broker("missing")
    plan = planned(host)
    run = acknowledged(lambda host: apply(host, plan))
    result = explore(host, run, rollback, judge_back, ("K", "J"), depth=2, operation="apply")
    assert_none(result)
    assert result.inner > 500


@pytest.mark.parametrize("run", ["apply", "rollback", "bar", "unbar"])
@pytest.mark.parametrize("name", ["plain", "missing", "two-disks"])
def test_what_was_taken_up_after_a_kill_is_durable_when_it_is_said_to_be(name: str, run: str) -> None:
    first = broker(name)
    plan = planned(first)
    there: Callable[[ModelHost], None] = blocked if "bar" in run else lambda host: apply(host, plan)
    back = unbarred if "bar" in run else rollback
    last = ended(first, there)
    begin, end, do = (first, last, there) if run in ("apply", "bar") else (last, first, back)
    whole = ModelHost(begin.world())
    do(whole)
    states = 0
    for at in range(len(whole.records)):
        host = ModelHost(begin.world()).kill(at)
        with pytest.raises(Killed):
            do(host)
        world = host.world()
        # The same boot: what the killed process did is still pending.
        again = record(world._replace(generation=world.generation + 1), acknowledged(do))
        assert not again.error
        for crash in crashes(again, ("J", "B", "P"), len(again.records)):
            states += 1
            wrong = differences(untimed(end.world()), untimed(again.world(crash)))
            assert not wrong, (at, whole.records[at].call, wrong)
    assert states >= len(whole.records)


def test_no_log_dir_is_applied_before_what_a_killed_process_moved_is_synced() -> None:
    """That a later sync of the log dir carries those renames is measured, not promised (reliability §4.1)."""
    first = broker("plain")
    plan = planned(first)
    whole = ModelHost(first.world())
    apply(whole, plan)
    said = 0
    for at in range(len(whole.records)):
        host = ModelHost(first.world()).kill(at)
        with pytest.raises(Killed):
            apply(host, plan)
        world = host.world()
        again = ModelHost(world._replace(generation=world.generation + 1))
        apply(again, plan)
        calls = [(made.call.name, made.call.path) for made in again.records]
        named = [number for number, (_, path) in enumerate(calls) if path.endswith("/layout.json.tmp")]
        if named:
            said += 1
            assert "syncfs" in {name for name, _ in calls[: named[-1]]}, (at, whole.records[at].call, calls)
    assert said > 15


@pytest.mark.parametrize("name", ["plain", "missing", "three"])
def test_a11_a_batch_is_durable_as_soon_as_its_outcomes_are_there(name: str) -> None:
    first = broker(name)
    items = items_of(first)

    def there(host: ModelHost) -> None:
        with opened(host, log_dirs(host)) as (open_dir,):
            here = [item for item in items if item.path in open_dir.top.names()]
            assert all(outcome.error is None for outcome in to_ids(open_dir, here))

    def back(host: ModelHost) -> None:
        with opened(host, log_dirs(host)) as (open_dir,):
            lying = [
                ToNames(ref=i.ref, path=i.place)
                if i.path not in open_dir.top.names()
                else ToNames(ref=i.ref.by_name, path=i.path)
                for i in items
            ]
            assert all(outcome.error is None for outcome in to_names(open_dir, lying))
            assert remove_empty_prefixes(open_dir) == ()

    def only_back(host: ModelHost) -> None:
        with opened(host, log_dirs(host)) as (open_dir,):
            lying = [ToNames(ref=i.ref, path=i.place) for i in items]
            assert all(outcome.error is None for outcome in to_names(open_dir, lying))

    end = ended(first, there)
    models = MODELS if name != "three" else ("K", "J", "P")
    assert_none(explore(first, acknowledged(there), there, judge_end(end.world()), models, operation="to ids"))
    assert_none(explore(first, acknowledged(there), back, judge_back, models, operation="to ids"))

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = differences(seen(first.world()), seen(state.recovered))
        if "done" in acks:
            files = {path: node.data for path, node in state.crashed.tree().items() if node.type is Type.FILE}
            wrong += differences(first.world().files(), files)
        return wrong

    assert_none(explore(end, acknowledged(only_back), back, judge, models, operation="to names"))


def test_a37_a_start_block_cut_off_anywhere_is_set_by_setting_it_again() -> None:
    host = start(disks=2)
    end = ended(host, blocked)
    assert_none(explore(host, acknowledged(blocked), blocked, judge_end(end.world()), MODELS, operation="start block"))


def test_a37_a_start_block_cut_off_anywhere_is_lifted_to_the_same_bytes_and_times() -> None:
    host = start(disks=2)
    assert_none(explore(host, acknowledged(blocked), unbarred, judge_back, MODELS, operation="start block"))
    # Also when the lifting is cut off.
    one = start()
    assert_none(
        explore(one, acknowledged(blocked), unbarred, judge_back, ("K", "J", "B", "P"), 2, operation="start block")
    )


def test_a37_a_lifting_cut_off_anywhere_ends_in_the_same_bytes_and_times() -> None:
    first = start(disks=2)

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = differences(seen(first.world()), seen(state.recovered))
        return wrong + (differences(seen(first.world()), seen(state.crashed)) if "done" in acks else [])

    assert_none(explore(ended(first, blocked), acknowledged(unbarred), unbarred, judge, MODELS, operation="unbar"))
    # Also when that is cut off again.
    first = start()
    assert_none(explore(ended(first, blocked), acknowledged(unbarred), unbarred, judge, MODELS, 2, operation="unbar"))


def test_a37_no_log_dir_is_blocked_before_all_hold_what_is_true() -> None:
    host = start(disks=2)

    def nothing(host: ModelHost) -> None:
        """Leave it as it is."""

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        files = state.recovered.files()
        metas = [files[f"/d{number}/k/meta.properties"] for number in (1, 2)]
        kept = [f"/d{number}/k/start-block.json" in files for number in (1, 2)]
        return ["blocked without what is true"] if metas != [META_TEXT] * 2 and not all(kept) else []

    assert_none(explore(host, acknowledged(blocked), nothing, judge, MODELS, operation="start block"))


def test_a51_a_finalize_cut_off_anywhere_goes_on_or_back() -> None:
    first = broker("two-disks")
    plan = planned(first)

    def verified(host: ModelHost) -> None:
        apply(host, plan)
        with opened(host, log_dirs(host)) as open_dirs:
            assert layout.verify(open_dirs, plan, unlocked).is_finished

    start_of_it = ended(first, verified)
    end = ended(start_of_it, finalized)
    with opened(end, log_dirs(end)) as open_dirs:
        assert state(open_dirs) is StartBlockState.NONE
    assert_none(explore(start_of_it, acknowledged(finalized), finalized, judge_end(end.world()), MODELS))
    saw = set()

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        files = state.crashed.files()
        said = {layout_file.parse(data).state for path, data in files.items() if path.endswith("/layout.json")}
        saw.add(frozenset(said))
        wrong = differences(seen(first.world()), seen(state.recovered))
        if LayoutState.FINAL in said and not said <= {LayoutState.FINAL, LayoutState.FINALIZING}:
            wrong.append(f"final beside {said}")
        return wrong

    assert_none(explore(start_of_it, acknowledged(finalized), rollback, judge, MODELS, operation="finalize"))
    assert {LayoutState.FINAL, LayoutState.FINALIZING} in saw
    assert {LayoutState.VERIFIED, LayoutState.FINALIZING} in saw


def test_a51_a_rollback_from_final_cut_off_anywhere_ends_in_the_first_tree() -> None:
    first = broker("two-disks")
    plan = planned(first)

    def final(host: ModelHost) -> None:
        apply(host, plan)
        with opened(host, log_dirs(host)) as open_dirs:
            assert layout.verify(open_dirs, plan, unlocked).is_finished
        finalized(host)

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = differences(seen(first.world()), seen(state.recovered))
        return wrong + (differences(seen(first.world()), seen(state.crashed)) if "done" in acks else [])

    assert_none(explore(ended(first, final), acknowledged(rollback), rollback, judge, MODELS, operation="rollback"))


def _verified(host: ModelHost) -> None:
    plan = planned(host)
    apply(host, plan)
    with opened(host, log_dirs(host)) as open_dirs:
        assert layout.verify(open_dirs, plan, unlocked).is_finished


def _said(world: World) -> set[LayoutState]:
    files = world.files()
    return {layout_file.parse(data).state for path, data in files.items() if path.endswith("/layout.json")}


def _is_too_early(world: World) -> bool:
    """Whether a log dir is final, or the start block lifted, while another log dir is not even finalizing."""
    said = _said(world)
    metas = {data for path, data in world.files().items() if path.endswith("/meta.properties")}
    is_begun = LayoutState.FINAL in said or META_TEXT in metas
    return is_begun and not said <= {LayoutState.FINAL, LayoutState.FINALIZING}


@pytest.mark.parametrize("at", [3, 7])
def test_a51_no_log_dir_is_durably_final_before_another_is_durably_finalizing(at: int) -> None:
    """A process killed before its sync leaves *finalizing* that a power cut takes away; another goes on from there."""
    begin = ended(broker("two-disks"), _verified)

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        return [f"final beside {_said(state.crashed)}"] if _is_too_early(state.crashed) else []

    assert_none(explore(begin, resumed(finalized, at), finalized, judge, MODELS, operation="finalize"))


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES], ids=errno.errorcode.get)
def test_a51_no_log_dir_is_final_though_a_call_for_another_failed(number: int) -> None:
    begin = ended(broker("two-disks"), _verified)
    whole = ModelHost(begin.world())
    finalized(whole)
    unfinished = 0
    for at in range(len(whole.records)):
        host = ModelHost(begin.world()).fail(Failure(at, number))
        with opened(host, log_dirs(host)) as open_dirs, suppress(LogDirError):
            unfinished += not layout.finalize(open_dirs, "kafka 9", unlocked).is_finished
        assert not _is_too_early(host.world()), host.records[at]
    assert unfinished > 8
