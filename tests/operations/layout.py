"""Bar, change of layout and way back: whole, batch by batch, and taken up where another process was killed.

Starts and judges are those of ``tests.logdir.disk.test_layout_crash``.

Spec: design §3.1, §8; attacks A21, A37.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import partial

from logdir.decide.layout_action import ToNames
from logdir.disk.bar import bar, unbar
from logdir.disk.recovery import recover_broker
from logdir.disk.relayout import remove_empty_prefixes, to_ids, to_names
from logdir.formats import bar_file, layout_file
from logdir.observe.classify import Type
from tests.crash.enumerate import Judge, State
from tests.crash.model import ModelHost
from tests.crash.recording import Acks
from tests.crash.soak.hands import Hands
from tests.crash.soak.seen import Seen
from tests.crash.tree import World
from tests.logdir.disk import layout_rig
from tests.logdir.disk import test_layout_crash as rig
from tests.logdir.disk.layout_rig import opened, unlocked
from tests.operations import functions, wrong
from tests.operations.case import DONE, UNTOLD, Case, Do, acknowledged, below, resumed, unchanged, with_missing
from tests.operations.operation import Draw, Make, Operation, Syncs, Trait, When, Written
from tests.operations.seeded import Change, Seeded, call, drop, once, wrapped


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
        with opened(host, rig.log_dirs(host)) as sites:
            assert not recover_broker(sites, is_whole=is_whole).troubled
        verb(host)

    return recovering


def _judged(
    judge: Judge, first: World, *, end: World | None = None, goes_back: bool = False, has_bar: bool = True
) -> Judge:
    """Return the judge of every model: with a disk missing, the others are judged by themselves.

    Args:
        judge: With all disks.
        first: In the topic-name layout, without a bar.
        end: What was acknowledged.
        goes_back: Whether the others are taken back where one does not answer.
        has_bar: Whether the bar is set before a replica moves: not where a batch is tried by itself.
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
    kept = files.get(f"{name}bar.json")
    if meta != rig.META_TEXT and (kept is None or bar_file.parse(kept).original != rig.META_TEXT):
        wrong.append(f"lost: {name}meta.properties is barred, and what is true is kept nowhere")
    under_ids = [at for at in files if at.startswith(name) and at.endswith(".log") and at.count("/") == 5]
    if has_bar and under_ids and meta == rig.META_TEXT:
        wrong.append(f"half: {under_ids[0]} lies under an id, and its log dir is not barred")
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
        return first, rig.barred, rig.ended(first, rig.barred), rig.unbarred
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
    """Return of each log dir whether it is barred, and whether what is true is kept in it."""
    metas = [files.get(f"/d{number}/k/meta.properties") for number in (1, 2)]
    return [data != rig.META_TEXT for data in metas], [f"/d{number}/k/bar.json" in files for number in (1, 2)]


def _set_and_lifted(name: str) -> Case:
    """A log dir that is barred always holds what is true; once it is lifted all is as at first."""
    first, there, _, back = _there("", is_bar=True)

    def run(host: ModelHost, acks: Acks) -> None:
        there(host)
        acks.ack("barred")
        back(host)
        acks.ack("open")

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = rig.differences(rig.seen(first.world()), rig.seen(state.recovered))
        barred, kept = _barred_and_kept(state.crashed.files())
        if any(is_barred and not is_kept for is_barred, is_kept in zip(barred, kept, strict=True)):
            wrong.append(f"lost: barred are {barred}, what is true is kept in {kept}")
        told = [f"/d{number}/k/logdird-bar.txt" in state.crashed.files() for number in (1, 2)]
        if any(is_barred and not is_told for is_barred, is_told in zip(barred, told, strict=True)):
            wrong.append(f"half: barred are {barred}, a text says why in {told}")
        if "open" in acks:
            wrong += rig.differences(rig.seen(first.world()), rig.seen(state.crashed))
        return wrong

    judged = _judged(judge, first.world(), goes_back=True)
    return Case(name, first, run, _recovered(back, back), judged, reaches=frozenset({"barred", "open"}))


def _kept_before_barred(name: str) -> Case:
    """No log dir is barred before all hold what is true. Nobody recovers: what is looked at is the crash itself."""
    first, there, _, _ = _there("", is_bar=True)

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        barred, kept = _barred_and_kept(state.crashed.files())
        # Where a sync failed the bar is taken back, but for the sick disk, to which nothing more is written (design
        # §3.4): that one may be barred alone then, and it holds what is true itself (``_undamaged``), so that it can be
        # lifted. A broker does not start beside it, for its node id is another one. Only then is that so.
        is_left = state.error.startswith("ReadOnlyDiskError") and any(map(operator.and_, barred, kept))
        if not any(barred) or all(kept) or is_left:
            return [line for disk in ("/d1", "/d2") for line in _undamaged(first.world(), state.crashed, disk)]
        return [f"half: barred are {barred}, what is true is kept in {kept}"]

    judged = _judged(judge, first.world())
    return Case(name, first, acknowledged(there), lambda host: None, judged)


def _is_barred_where_said(name: str) -> Case:
    """As soon as it is said to be set every log dir is barred, whatever happens: in none is the broker's node id."""
    first = rig.start(disks=2)

    def there(host: ModelHost) -> None:
        with opened(host, rig.log_dirs(host)) as sites:
            bar(sites)

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = []
        for word, world in (("lost", state.crashed), ("half", state.recovered)):
            metas = {path: data for path, data in world.files().items() if path.endswith("/meta.properties")}
            if word == "half" or DONE in acks:
                wrong += [
                    f"{word}: {path} is not barred"
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
        with opened(host, rig.log_dirs(host)) as (site,):
            here = [item for item in items if item.path in site.top.names()]
            assert all(outcome.error is None for outcome in to_ids(site, here))

    last = rig.ended(first, there).world()
    judge = _judged(rig.judge_end(last), first.world(), end=last, has_bar=False)
    return Case(name, first, acknowledged(there), _recovered(there), judge)


def _back(host: ModelHost, first: ModelHost) -> None:
    with opened(host, rig.log_dirs(host)) as (site,):
        lying = [
            ToNames(topic=i.topic, topic_id=i.topic_id, partition=i.partition, path=i.place)
            if i.path not in site.top.names()
            else ToNames(topic=i.topic, topic_id=None, partition=i.partition, path=i.path)
            for i in rig.items_of(first)
        ]
        assert all(outcome.error is None for outcome in to_names(site, lying))
        assert remove_empty_prefixes(site) == ()


def _to_ids_and_back(name: str, broker: str) -> Case:
    """What a batch was cut off in goes back to the same tree."""
    case = _to_ids(name, broker)
    first = rig.broker(broker)
    judge = _judged(rig.judge_back, first.world(), has_bar=False)
    return case._replace(recovery=_recovered(lambda host: _back(host, first)), holds=judge)


def _to_names(name: str, broker: str, *, prefixes: bool) -> Case:
    first = rig.broker(broker)
    items = rig.items_of(first)
    ids = _to_ids(name, broker)
    last = rig.ended(first, lambda host: ids.do(host, Acks()))

    def back(host: ModelHost) -> None:
        with opened(host, rig.log_dirs(host)) as (site,):
            lying = [ToNames(topic=i.topic, topic_id=i.topic_id, partition=i.partition, path=i.place) for i in items]
            assert all(outcome.error is None for outcome in to_names(site, lying))
            if prefixes:
                assert remove_empty_prefixes(site) == ()

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
        with opened(host, rig.log_dirs(host)) as sites:
            assert layout_rig.verify(sites, plan, unlocked).is_finished

    return first, rig.ended(first, verify)


def _states(world: World) -> set[layout_file.LayoutState]:
    """Return what the log dirs of a world are in."""
    return {layout_file.parse(data).state for path, data in world.files().items() if path.endswith("/layout.json")}


def _is_rolling_back(world: World) -> bool:
    return layout_file.LayoutState.ROLLING_BACK in _states(world)


def _too_early(world: World) -> list[str]:
    """Return what was done before its time in a world: the bar lifted, or a log dir final."""
    found = _states(world)
    final, on_its_way = layout_file.LayoutState.FINAL, layout_file.LayoutState.FINALIZING
    barred, _ = _barred_and_kept(world.files())
    wrong = []
    if final in found and not found <= {final, on_its_way}:
        wrong.append(f"half: final beside {found}")
    if final in found and any(barred):
        wrong.append(f"half: final, and barred are {barred}")
    if not all(barred) and not found <= {final, on_its_way}:
        wrong.append(f"half: barred are {barred}, beside {found}")
    return wrong


def _finalize(name: str, *, at: int = -1) -> Case:
    """Lift the bar for a broker that reads the layout; where it is cut off, go on."""
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
    """Nothing is kept of the bar, and line 3 of partition.metadata is enough."""
    first, start = _verified()
    run = acknowledged(rig.rollback) if at < 0 else resumed(rig.rollback, at)
    judge = _back_to(first.world(), has_bar=False)
    return Case(name, rig.ended(start, rig.finalized), run, _recovered(rig.rollback, rig.rollback), judge)


def _draw_relayout(hands: Hands, seen: Seen) -> bool:
    if not seen.live:
        return False
    hands.write_plan(seen)
    hands.begin("relayout")
    hands.relayout_on()
    hands.end("relayout")
    hands.is_by_id = hands.is_barred = True
    return True


def _draw_rollback(hands: Hands, seen: Seen) -> bool:
    hands.begin("rollback")
    hands.relayout_back()
    hands.end("rollback")
    hands.is_by_id = hands.is_barred = False
    return True


def _draw_bar(hands: Hands, seen: Seen) -> bool:
    hands.begin("bar")
    with hands.locked():
        bar(hands.sites)
    hands.end("bar")
    hands.is_barred = True
    return True


def _draw_unbar(hands: Hands, seen: Seen) -> bool:
    hands.begin("unbar")
    with hands.locked():
        unbar(hands.sites)
    hands.end("unbar")
    hands.is_barred = False
    return True


_THERE = (3, 10, 14, 17, 19, 20, 21, 22, 25, 26)
_BACK = (2, 5, 9, 13, 15, 17, 19, 20, 21, 22)
"""Before which calls of a change of layout of one replica, and of its way back, another process is killed."""
_FINALLY = (3, 7, 13, 17, 25, 29, 33)
_BACK_FROM_FINAL = (3, 7, 21, 29, 57, 61)
"""The same of two replicas on two disks, from *verified* on, and back from *final*."""
_SAID_TO_BE_SET = "bar that is said to be set"
_NOT_TAKEN_UP = "bar that nobody takes up"
_BARS: dict[str, Make] = {
    "bar": partial(_ends, is_bar=True),
    _SAID_TO_BE_SET: _is_barred_where_said,
    "bar, then lifted where it is cut off": partial(_undone, is_bar=True),
    "bar, and lifted": _set_and_lifted,
    _NOT_TAKEN_UP: _kept_before_barred,
    "lifting": partial(_returns, is_bar=True),
}
_BARS_TAKEN_UP: dict[str, Make] = {
    f"bar, taken up at call {at}": partial(_ends, is_bar=True, at=at) for at in (*range(6, 22, 2), 17)
}
_LIFTINGS_TAKEN_UP: dict[str, Make] = {
    f"lifting, taken up at call {at}": partial(_returns, is_bar=True, at=at) for at in range(2, 15)
}
_LAYOUTS: dict[str, Make] = {
    "layout of three": partial(_ends, broker="three"),
    "layout of three, then back where it is cut off": partial(_undone, broker="three"),
    "layout over two disks": partial(_ends, broker="two-disks"),
    "layout over two disks, then back where it is cut off": partial(_undone, broker="two-disks"),
    "way back of three": partial(_returns, broker="three"),
    "way back over two disks": partial(_returns, broker="two-disks"),
}
_ON_KERNELS = tuple(_LAYOUTS)
_LAYOUTS_TAKEN_UP: dict[str, Make] = {
    **{f"layout, taken up at call {at}": partial(_ends, broker="plain", at=at) for at in _THERE},
    **{f"way back, taken up at call {at}": partial(_returns, broker="plain", at=at) for at in _BACK},
}
_TO_IDS_AGAIN: dict[str, Make] = {
    "batch to ids": partial(_to_ids, broker="three"),
    "batch to ids, then back where it is cut off": partial(_to_ids_and_back, broker="missing"),
    "batch to ids of a kept one": partial(_to_ids, broker="hex"),
    "batch to ids of a kept one, then back where it is cut off": partial(_to_ids_and_back, broker="hex"),
}
_TO_NAMES_AGAIN: dict[str, Make] = {
    "batch to names": partial(_to_names, broker="plain", prefixes=False),
    "batch to names of a kept one": partial(_to_names, broker="hex", prefixes=False),
    "batch to names, and its prefixes": partial(_to_names, broker="missing", prefixes=True),
}
_FINALIZE: dict[str, Make] = {"finalize": _finalize}
_FINALIZE_TAKEN_UP: dict[str, Make] = {f"finalize, taken up at call {at}": partial(_finalize, at=at) for at in _FINALLY}
_FINAL: dict[str, Make] = {
    "finalize, then back where it is cut off": _finalize_and_back,
    "way back from final": _back_from_final,
}
_FINAL_TAKEN_UP: dict[str, Make] = {
    f"way back from final, taken up at call {at}": partial(_back_from_final, at=at) for at in _BACK_FROM_FINAL
}
_BATCHES = {
    **_LAYOUTS, **_LAYOUTS_TAKEN_UP, **_TO_IDS_AGAIN, **_TO_NAMES_AGAIN, **_FINALIZE, **_FINALIZE_TAKEN_UP, **_FINAL,
    **_FINAL_TAKEN_UP,
}  # fmt: skip
_TAKEN_UP = (*_LAYOUTS_TAKEN_UP, *_FINALIZE_TAKEN_UP)
_BLOCKS = (_SAID_TO_BE_SET, "bar", "bar, and lifted", "lifting")
_ANY = frozenset({"K", "J", "B", "P"})
# Where one of these is replaced the log dir is synced once more: after the text beside it, or at the end of each verb.
# Where one is removed it is not.
_MISSES = frozenset({(functions.REPLACE_FILE, 1), (functions.REMOVE_FILE, 1)})
_HALF = Seeded(
    name="the bar on some log dirs only",
    changes=(Change(functions.BLOCK, once(call("_put"))),),
    tried=(_SAID_TO_BE_SET, "--models", "KJBP"),
    caught_by=_ANY,
    killed=("lost: acknowledged is barred", "stuck: half a bar"),
)
_LONG = ("layout of three", "layout of three, then back where it is cut off", *tuple(_TO_IDS_AGAIN))
_BACKS = tuple(name for name in _BATCHES if name.endswith("where it is cut off"))
OPERATIONS = (
    Operation(
        name="start block",
        family="layout",
        cases={**_BARS, **_BARS_TAKEN_UP, **_LIFTINGS_TAKEN_UP},
        traits={
            Trait.ALIKE: ("bar, then lifted where it is cut off", _NOT_TAKEN_UP),
            Trait.TAKEN_UP: (*_BARS_TAKEN_UP, *_LIFTINGS_TAKEN_UP),
            Trait.LONG_RECOVERY: (*_BARS_TAKEN_UP, *_LIFTINGS_TAKEN_UP),
        },
        on_kernels=("bar", "lifting"),
        syncs=(
            Syncs(of=functions.BLOCK, cases=tuple(_BARS_TAKEN_UP)),
            Syncs(of=functions.BLOCK_KEEP, cases=(*_BLOCKS, *_BARS_TAKEN_UP)),
            Syncs(of=functions.BLOCK_EXPLAIN, cases=_BLOCKS),
            Syncs(of=functions.BLOCK_PUT, cases=_BLOCKS),
            Syncs(of=functions.BLOCK_LIFT, cases=(*_BLOCKS, *_LIFTINGS_TAKEN_UP)),
        ),
        files={"bar.json": Written(cases=(*_BLOCKS, *_LIFTINGS_TAKEN_UP), misses=_MISSES)},
        draws=(
            Draw(kind="bar", do=_draw_bar, when=When.NAMES),
            Draw(kind="unbar", do=_draw_unbar, when=When.BLOCKED, home=_draw_unbar),
        ),
        seeded=(
            _HALF,
            Seeded(
                name="barred before every log dir holds what is true",
                changes=(
                    Change(functions.BLOCK, drop(call("_put"))),
                    Change(functions.BLOCK_KEEP, wrapped(wrong.put_at_once)),
                ),
                tried=(_NOT_TAKEN_UP, "--models", "KJBP"),
                caught_by=_ANY,
            ),
            Seeded(
                name="what is true is given up before it is in place everywhere",
                changes=(Change(functions.BLOCK_PUT, wrapped(wrong.given_up_first)),),
                tried=("bar, and lifted", "--models", "KJBP"),
                caught_by=_ANY,
            ),
        ),
    ),
    Operation(
        name="change of layout",
        family="layout",
        cases=_BATCHES,
        traits={
            Trait.ALIKE: _BACKS,
            Trait.TAKEN_UP: (*_TAKEN_UP, *_FINAL_TAKEN_UP),
            Trait.FIRST: ("layout of three", "batch to ids"),
            Trait.LONG: (*_LONG, "layout over two disks, then back where it is cut off", "way back from final"),
            Trait.LONG_CALLS: ("layout of three", "way back of three", "way back over two disks"),
            Trait.LONG_RECOVERY: _LONG,
        },
        on_kernels=_ON_KERNELS,
        syncs=(
            Syncs(of=functions.LAYOUT_SYNC, cases=_TAKEN_UP),
            Syncs(of=functions.LAYOUT_STATE, cases=_TAKEN_UP),
            Syncs(of=functions.RELAYOUT_SYNC, cases=tuple(_TO_IDS_AGAIN)),
            Syncs(of=functions.RELAYOUT_TO_IDS, cases=(*_TO_IDS_AGAIN, "layout over two disks")),
            Syncs(of=functions.RELAYOUT_TO_NAMES, cases=(*_TO_NAMES_AGAIN, "way back over two disks")),
            Syncs(of=functions.RELAYOUT_PREFIXES, cases=("batch to names, and its prefixes",)),
        ),
        files={"layout.json": Written(cases=(*_TAKEN_UP, "layout over two disks", "finalize"), misses=_MISSES)},
        draws=(
            # It takes as long as twenty others.
            Draw(kind="relayout", do=_draw_relayout, when=When.NAMES, share=0.15),
            Draw(kind="rollback", do=_draw_rollback, when=When.IDS, home=_draw_rollback),
        ),
        seeded=(
            Seeded(
                name="final on one log dir before another is finalizing",
                changes=(Change(functions.LAYOUT_FINALIZE, wrapped(wrong.final_with_finalizing)),),
                tried=("finalize", "--models", "KJBP"),
                caught_by=_ANY,
            ),
            Seeded(
                name="final durable before another log dir is durably finalizing",
                changes=(Change(functions.LAYOUT_RUN, drop(call("_sync_all"))),),
                tried=("finalize, taken up at call 7", "--models", "KJBP"),
                caught_by=_ANY - {"K"},
            ),
            Seeded(
                name="moved to ids before its metadata says the topic",
                changes=(
                    Change(functions.RELAYOUT_GIVE_TOPIC, wrapped(wrong.topic_noted)),
                    Change(functions.RELAYOUT_RENAME, wrapped(wrong.topic_said_late)),
                ),
                tried=("batch to ids of a kept one, then back where it is cut off", "--models", "KJBP"),
                caught_by=_ANY,
            ),
        ),
    ),
)
"""The descriptors: of the start block, and of the change of layout and its way back."""
