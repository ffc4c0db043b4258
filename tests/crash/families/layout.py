"""Bar, change of layout and way back: whole, batch by batch, and taken up where another process was killed.

Starts and judges are those of ``tests.logdir.disk.test_layout_crash``.

Spec: design §3.1, §8; attacks A21, A37.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial

from logdir.decide.layout.action import ToNames
from logdir.disk.record.start_block import set_block
from logdir.disk.recover_broker import recover_broker
from logdir.disk.replica.relayout import remove_empty_prefixes, to_ids, to_names
from logdir.formats.own import layout_file, start_block_file
from logdir.observe.classify import Type
from tests.crash.enumerate import Judge, State
from tests.crash.families.case import DONE, UNTOLD, Case, Do, acknowledged, below, resumed, unchanged, with_missing
from tests.crash.model import ModelHost
from tests.crash.recording import Acks
from tests.crash.tree import World
from tests.logdir.disk import layout_rig
from tests.logdir.disk import test_layout_crash as rig
from tests.logdir.disk.layout_rig import opened, unlocked


def _recovered(do: Do, back: Do | None = None) -> Do:
    """Return what is done after a crash: recovery, as each command begins with, and the verb again.

    With a disk missing a change of layout is refused as a whole; its refusal says to take the others back. One that is
    read-only is no such disk: nothing goes on beside it.

    Args:
        do: The verb.
        back: With a disk that does not answer; nothing where that is refused.
    """

    def recovering(host: ModelHost) -> None:
        if any(system.status == "read-only" for system in host.systems):
            return
        is_whole = len(rig.log_dirs(host)) == len(host.systems)
        verb = do if is_whole else back
        if verb is None or not rig.log_dirs(host):
            return
        with opened(host, rig.log_dirs(host)) as open_dirs:
            assert not recover_broker(open_dirs, is_whole=is_whole).troubled
        verb(host)

    return recovering


def _judged(
    judge: Judge, first: World, *, end: World | None = None, goes_back: bool = False, has_bar: bool = True
) -> Judge:
    """Return the judge of every model: with a disk missing, the others are judged by themselves.

    Args:
        judge: With all disks.
        first: In the topic-name layout, without a start block.
        end: What was acknowledged.
        goes_back: Whether the others are taken back where one does not answer.
        has_bar: Whether the start block is set before a replica moves: not where a batch is tried by itself.
    """

    def partly(before: World, state: State, acks: Acks, there: frozenset[str]) -> list[str]:
        wrong = [
            f"{word}, {line}"
            for word, world in (("when crashed", state.crashed), ("when recovered", state.recovered))
            for mount in sorted(there)
            for line in _undamaged(first, world, mount, has_bar=has_bar)
        ]
        if end is not None and DONE in acks:
            found = below(there, rig.untimed(state.crashed))
            wrong += [f"lost: {line}" for line in rig.differences(below(there, rig.untimed(end)), found)]
        if goes_back and "read-only" not in state.statuses:
            return wrong + rig.differences(below(there, rig.seen(first)), below(there, rig.seen(state.recovered)))
        return wrong + unchanged(state)

    def whole(before: World, state: State, acks: Acks) -> list[str]:
        # What was done was taken back on the others by whoever went on without the disk that is back now.
        return judge(before, state, Acks() if state.returned and goes_back and end is not first else acks)

    return with_missing(whole, partly)


def _undamaged(first: World, world: World, mount: str, *, has_bar: bool = True) -> list[str]:
    """Return what is wrong with one log dir, wherever a change of layout stands on it and on the others."""
    files = world.files()
    name = f"{mount}/k/"
    wrong = []
    for path, data in below(frozenset({mount}), first.files()).items():
        found = [at for at, other in files.items() if at.startswith(name) and at.endswith(".log") and other == data]
        if path.endswith(".log") and len(found) != 1:
            wrong.append(f"lost: {path} is {found}")
    meta = files.get(f"{name}meta.properties")
    kept = files.get(f"{name}start-block.json")
    if meta != rig.META_TEXT and (kept is None or start_block_file.parse(kept).original != rig.META_TEXT):
        wrong.append(f"lost: {name}meta.properties is blocked, and what is true is kept nowhere")
    under_ids = [at for at in files if at.startswith(name) and at.endswith(".log") and at.count("/") == 5]
    if has_bar and under_ids and meta == rig.META_TEXT:
        wrong.append(f"half: {under_ids[0]} lies under an id, and its log dir is not blocked")
    return wrong


def _back_to(first: World, *, has_bar: bool = True) -> Judge:
    """All is as at first, times too; also before any recovery, once it was acknowledged."""

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = rig.differences(rig.seen(first), rig.seen(state.recovered))
        return wrong + (rig.differences(rig.seen(first), rig.seen(state.crashed)) if DONE in acks else [])

    return _judged(judge, first, end=first, goes_back=True, has_bar=has_bar)


def _there(broker: str, *, is_bar: bool = False) -> tuple[ModelHost, Do, ModelHost, Do]:
    """Return a start, the way there, the end, and the way back."""
    if is_bar:
        first = rig.start(disks=2)
        return first, rig.blocked, rig.ended(first, rig.blocked), rig.unbarred
    first = rig.broker(broker)
    plan = rig.planned(first)

    def apply(host: ModelHost) -> None:
        rig.apply(host, plan)

    return first, apply, rig.ended(first, apply), rig.rollback


def _ends(name: str, broker: str = "", *, is_bar: bool = False, at: int = -1) -> Case:
    """Go there; where it is cut off, go on."""
    first, there, last, back = _there(broker, is_bar=is_bar)
    run = acknowledged(there) if at < 0 else resumed(there, at)
    judge = _judged(rig.judge_end(last.world()), first.world(), end=last.world(), goes_back=True)
    return Case(name, first, run, _recovered(there, back), judge)


def _undone(name: str, broker: str = "", *, is_bar: bool = False) -> Case:
    """Go there; where it is cut off, go back."""
    first, there, last, back = _there(broker, is_bar=is_bar)
    judge = _judged(rig.judge_back, first.world(), end=last.world(), goes_back=True)
    return Case(name, first, acknowledged(there), _recovered(back, back), judge)


def _returns(name: str, broker: str = "", *, is_bar: bool = False, at: int = -1) -> Case:
    """Go back; where it is cut off, go on back."""
    first, _, last, back = _there(broker, is_bar=is_bar)
    run = acknowledged(back) if at < 0 else resumed(back, at)
    return Case(name, last, run, _recovered(back, back), _back_to(first.world()))


def _barred_and_kept(files: Mapping[str, bytes]) -> tuple[list[bool], list[bool]]:
    """Return of each log dir whether it is blocked, and whether what is true is kept in it."""
    metas = [files.get(f"/d{number}/k/meta.properties") for number in (1, 2)]
    return [data != rig.META_TEXT for data in metas], [f"/d{number}/k/start-block.json" in files for number in (1, 2)]


def _set_and_lifted(name: str) -> Case:
    """A log dir that is blocked always holds what is true; once it is lifted all is as at first."""
    first, there, _, back = _there("", is_bar=True)

    def run(host: ModelHost, acks: Acks) -> None:
        there(host)
        acks.ack("blocked")
        back(host)
        acks.ack("open")

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = rig.differences(rig.seen(first.world()), rig.seen(state.recovered))
        blocked, kept = _barred_and_kept(state.crashed.files())
        if any(is_blocked and not is_kept for is_blocked, is_kept in zip(blocked, kept, strict=True)):
            wrong.append(f"lost: blocked are {blocked}, what is true is kept in {kept}")
        told = [f"/d{number}/k/logdird-start-block.txt" in state.crashed.files() for number in (1, 2)]
        if any(is_blocked and not is_told for is_blocked, is_told in zip(blocked, told, strict=True)):
            wrong.append(f"half: blocked are {blocked}, a text says why in {told}")
        if "open" in acks:
            wrong += rig.differences(rig.seen(first.world()), rig.seen(state.crashed))
        return wrong

    judged = _judged(judge, first.world(), goes_back=True)
    return Case(name, first, run, _recovered(back, back), judged, reaches=frozenset({"blocked", "open"}))


def _kept_before_barred(name: str) -> Case:
    """No log dir is blocked before all hold what is true. Nobody recovers: what is looked at is the crash itself."""
    first, there, _, _ = _there("", is_bar=True)

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        blocked, kept = _barred_and_kept(state.crashed.files())
        # Where a sync failed the start block is taken back, but for the sick disk, to which nothing more is written
        # (design §3.4): that one may be blocked alone then, and it holds what is true itself (``_undamaged``), so that
        # it can be lifted. A broker does not start beside it, for its node id is another one. Only then is that so.
        is_left = state.error.startswith("ReadOnlyDiskError") and any(map(operator.and_, blocked, kept))
        if not any(blocked) or all(kept) or is_left:
            return [line for disk in ("/d1", "/d2") for line in _undamaged(first.world(), state.crashed, disk)]
        return [f"half: blocked are {blocked}, what is true is kept in {kept}"]

    judged = _judged(judge, first.world())
    return Case(name, first, acknowledged(there), lambda host: None, judged)


def _is_barred_where_said(name: str) -> Case:
    """As soon as it is said to be set every log dir is blocked, whatever happens: in none is the broker's node id."""
    first = rig.start(disks=2)

    def there(host: ModelHost) -> None:
        with opened(host, rig.log_dirs(host)) as open_dirs:
            set_block(open_dirs)

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = []
        for word, world in (("lost", state.crashed), ("half", state.recovered)):
            metas = {path: data for path, data in world.files().items() if path.endswith("/meta.properties")}
            if word == "half" or DONE in acks:
                wrong += [
                    f"{word}: {path} is not blocked"
                    for path, data in metas.items()
                    if b"node.id=2147483647\n" not in data
                ]
            wrong += [] if len(metas) == 2 else [f"lost: meta.properties in {sorted(metas)} alone"]
        return wrong

    judged = _judged(judge, first.world(), end=rig.ended(first, there).world())
    return Case(name, first, acknowledged(there), _recovered(there), judged)


# Batches.


def _to_ids(name: str, broker: str) -> Case:
    first = rig.broker(broker)
    items = rig.items_of(first)

    def there(host: ModelHost) -> None:
        with opened(host, rig.log_dirs(host)) as (open_dir,):
            here = [item for item in items if item.path in open_dir.top.names()]
            assert all(outcome.error is None for outcome in to_ids(open_dir, here))

    last = rig.ended(first, there).world()
    judge = _judged(rig.judge_end(last), first.world(), end=last, has_bar=False)
    return Case(name, first, acknowledged(there), _recovered(there), judge)


def _back(host: ModelHost, first: ModelHost) -> None:
    with opened(host, rig.log_dirs(host)) as (open_dir,):
        lying = [
            ToNames(topic=i.topic, topic_id=i.topic_id, partition=i.partition, path=i.place)
            if i.path not in open_dir.top.names()
            else ToNames(topic=i.topic, topic_id=None, partition=i.partition, path=i.path)
            for i in rig.items_of(first)
        ]
        assert all(outcome.error is None for outcome in to_names(open_dir, lying))
        assert remove_empty_prefixes(open_dir) == ()


def _to_ids_and_back(name: str, broker: str) -> Case:
    """What a batch was cut off in goes back to the same tree."""
    case = _to_ids(name, broker)
    first = rig.broker(broker)
    judge = _judged(rig.judge_back, first.world(), has_bar=False)
    return case._replace(recover=_recovered(lambda host: _back(host, first)), judge=judge)


def _to_names(name: str, broker: str, *, prefixes: bool) -> Case:
    first = rig.broker(broker)
    items = rig.items_of(first)
    ids = _to_ids(name, broker)
    last = rig.ended(first, lambda host: ids.run(host, Acks()))

    def back(host: ModelHost) -> None:
        with opened(host, rig.log_dirs(host)) as (open_dir,):
            lying = [ToNames(topic=i.topic, topic_id=i.topic_id, partition=i.partition, path=i.place) for i in items]
            assert all(outcome.error is None for outcome in to_names(open_dir, lying))
            if prefixes:
                assert remove_empty_prefixes(open_dir) == ()

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = rig.differences(rig.seen(first.world()), rig.seen(state.recovered))
        if DONE in acks:
            found, wanted = (
                {path: node.data for path, node in world.tree().items() if prefixes or node.type is Type.FILE}
                for world in (state.crashed, first.world())
            )
            wrong += rig.differences(wanted, found)
        return wrong

    judged = _judged(judge, first.world(), has_bar=False)
    return Case(name, last, acknowledged(back), _recovered(lambda host: _back(host, first)), judged)


# Its file.


def _verified() -> tuple[ModelHost, ModelHost]:
    """Return a broker before its plan, and after it was applied and verified."""
    first = rig.broker("two-disks")
    plan = rig.planned(first)

    def verify(host: ModelHost) -> None:
        rig.apply(host, plan)
        with opened(host, rig.log_dirs(host)) as open_dirs:
            assert layout_rig.verify(open_dirs, plan, unlocked).is_finished

    return first, rig.ended(first, verify)


def _states(world: World) -> set[layout_file.LayoutState]:
    """Return what the log dirs of a world are in."""
    return {layout_file.parse(data).state for path, data in world.files().items() if path.endswith("/layout.json")}


def _is_rolling_back(world: World) -> bool:
    return layout_file.LayoutState.ROLLING_BACK in _states(world)


def _too_early(world: World) -> list[str]:
    """Return what was done before its time in a world: the start block lifted, or a log dir final."""
    found = _states(world)
    final, on_its_way = layout_file.LayoutState.FINAL, layout_file.LayoutState.FINALIZING
    blocked, _ = _barred_and_kept(world.files())
    wrong = []
    if final in found and not found <= {final, on_its_way}:
        wrong.append(f"half: final beside {found}")
    if final in found and any(blocked):
        wrong.append(f"half: final, and blocked are {blocked}")
    if not all(blocked) and not found <= {final, on_its_way}:
        wrong.append(f"half: blocked are {blocked}, beside {found}")
    return wrong


def _finalize(name: str, *, at: int = -1) -> Case:
    """Lift the start block for a broker that reads the layout; where it is cut off, go on."""
    _, start = _verified()
    end = rig.judge_end(rig.ended(start, rig.finalized).world())

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        return [*end(before, state, acks), *([] if UNTOLD in acks else _too_early(state.crashed))]

    run = acknowledged(rig.finalized) if at < 0 else resumed(rig.finalized, at)
    judged = _judged(judge, start.world(), end=rig.ended(start, rig.finalized).world(), has_bar=False)
    return Case(name, start, run, _recovered(rig.finalized), judged)


def _finalize_and_back(name: str) -> Case:
    """Where it is cut off, take everything back to names."""
    first, start = _verified()
    end = rig.ended(start, rig.finalized).world()

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        # With a disk missing the others were taken back by themselves, and it found them so; a recovery cut off as well
        # has begun the way back, which is judged by where it ends.
        early = [] if state.returned or _is_rolling_back(state.crashed) else _too_early(state.crashed)
        return [*rig.differences(rig.seen(first.world()), rig.seen(state.recovered)), *early]

    judged = _judged(judge, first.world(), end=end, goes_back=True, has_bar=False)
    return Case(name, start, acknowledged(rig.finalized), _recovered(rig.rollback, rig.rollback), judged)


def _back_from_final(name: str, *, at: int = -1) -> Case:
    """Nothing is kept of the start block, and line 3 of partition.metadata is enough."""
    first, start = _verified()
    run = acknowledged(rig.rollback) if at < 0 else resumed(rig.rollback, at)
    judge = _back_to(first.world(), has_bar=False)
    return Case(name, rig.ended(start, rig.finalized), run, _recovered(rig.rollback, rig.rollback), judge)


_THERE = (3, 10, 14, 17, 19, 20, 21, 22, 25, 26)
_BACK = (2, 5, 9, 13, 15, 17, 19, 20, 21, 22)
"""Before which calls of a change of layout of one replica, and of its way back, another process is killed."""
_FINALLY = (3, 7, 13, 17, 25, 29, 33)
_BACK_FROM_FINAL = (3, 7, 21, 29, 57, 61)
"""The same of two replicas on two disks, from *verified* on, and back from *final*."""
LAYOUT: dict[str, Callable[[str], Case]] = {
    "bar": partial(_ends, is_bar=True),
    "bar that is said to be set": _is_barred_where_said,
    "bar, then lifted where it is cut off": partial(_undone, is_bar=True),
    "bar, and lifted": _set_and_lifted,
    "bar that nobody takes up": _kept_before_barred,
    "lifting": partial(_returns, is_bar=True),
    **{f"bar, taken up at call {at}": partial(_ends, is_bar=True, at=at) for at in (*range(6, 22, 2), 17)},
    **{f"lifting, taken up at call {at}": partial(_returns, is_bar=True, at=at) for at in range(2, 15)},
    "layout of three": partial(_ends, broker="three"),
    "layout of three, then back where it is cut off": partial(_undone, broker="three"),
    "layout over two disks": partial(_ends, broker="two-disks"),
    "layout over two disks, then back where it is cut off": partial(_undone, broker="two-disks"),
    "way back of three": partial(_returns, broker="three"),
    "way back over two disks": partial(_returns, broker="two-disks"),
    **{f"layout, taken up at call {at}": partial(_ends, broker="plain", at=at) for at in _THERE},
    **{f"way back, taken up at call {at}": partial(_returns, broker="plain", at=at) for at in _BACK},
    "batch to ids": partial(_to_ids, broker="three"),
    "batch to ids, then back where it is cut off": partial(_to_ids_and_back, broker="missing"),
    "batch to ids of a kept one": partial(_to_ids, broker="hex"),
    "batch to ids of a kept one, then back where it is cut off": partial(_to_ids_and_back, broker="hex"),
    "batch to names": partial(_to_names, broker="plain", prefixes=False),
    "batch to names of a kept one": partial(_to_names, broker="hex", prefixes=False),
    "batch to names, and its prefixes": partial(_to_names, broker="missing", prefixes=True),
    "finalize": _finalize,
    **{f"finalize, taken up at call {at}": partial(_finalize, at=at) for at in _FINALLY},
    "finalize, then back where it is cut off": _finalize_and_back,
    "way back from final": _back_from_final,
    **{f"way back from final, taken up at call {at}": partial(_back_from_final, at=at) for at in _BACK_FROM_FINAL},
}
"""Name to what makes it."""
