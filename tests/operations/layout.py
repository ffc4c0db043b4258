"""Change of layout and way back: whole, batch by batch, taken up where another process was killed, and its end.

Spec: design §3.1, §8; attacks A21, A37.
"""

from __future__ import annotations

from functools import partial

from logdir.decide.layout.action import ToNames
from logdir.disk.replica.relayout import remove_empty_prefixes, to_ids, to_names
from logdir.formats.own import layout_file
from logdir.observe.classify import Type
from tests.crash.enumerate import State
from tests.crash.model import ModelHost
from tests.crash.recording import Acks
from tests.crash.soak.hands import Hands
from tests.crash.soak.seen import Seen
from tests.crash.tree import World
from tests.logdir.disk import layout_crash as rig
from tests.logdir.disk import layout_rig
from tests.logdir.disk.layout_rig import opened, unlocked
from tests.operations import functions, wrong
from tests.operations.case import DONE, UNTOLD, Case, acknowledged, resumed
from tests.operations.layout_case import MISSES, back_to, barred_and_kept, ends, judged_by, recovered, returns, undone
from tests.operations.operation import Draw, Make, Operation, Syncs, Trait, When, Written
from tests.operations.seeded import Change, Seeded, call, drop, wrapped

# Batches.


def _to_ids(name: str, broker: str) -> Case:
    first = rig.broker(broker)
    items = rig.items_of(first)

    def there(host: ModelHost) -> None:
        with opened(host, rig.log_dirs(host)) as (open_dir,):
            here = [item for item in items if item.path in open_dir.top.names()]
            assert all(outcome.error is None for outcome in to_ids(open_dir, here))

    last = rig.ended(first, there).world()
    judge = judged_by(rig.judge_end(last), first.world(), end=last, has_bar=False)
    return Case(name, first, acknowledged(there), recovered(there), judge)


def _back(host: ModelHost, first: ModelHost) -> None:
    with opened(host, rig.log_dirs(host)) as (open_dir,):
        lying = [
            ToNames(ref=i.ref, path=i.place)
            if i.path not in open_dir.top.names()
            else ToNames(ref=i.ref.by_name, path=i.path)
            for i in rig.items_of(first)
        ]
        assert all(outcome.error is None for outcome in to_names(open_dir, lying))
        assert remove_empty_prefixes(open_dir) == ()


def _to_ids_and_back(name: str, broker: str) -> Case:
    """What a batch was cut off in goes back to the same tree."""
    case = _to_ids(name, broker)
    first = rig.broker(broker)
    judge = judged_by(rig.judge_back, first.world(), has_bar=False)
    return case._replace(recovery=recovered(lambda host: _back(host, first)), holds=judge)


def _to_names(name: str, broker: str, *, prefixes: bool) -> Case:
    first = rig.broker(broker)
    items = rig.items_of(first)
    ids = _to_ids(name, broker)
    last = rig.ended(first, lambda host: ids.do(host, Acks()))

    def back(host: ModelHost) -> None:
        with opened(host, rig.log_dirs(host)) as (open_dir,):
            lying = [ToNames(ref=i.ref, path=i.place) for i in items]
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

    judged = judged_by(judge, first.world(), has_bar=False)
    return Case(name, last, acknowledged(back), recovered(lambda host: _back(host, first)), judged)


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
    blocked, _ = barred_and_kept(world.files())
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
    judged = judged_by(judge, start.world(), end=rig.ended(start, rig.finalized).world(), has_bar=False)
    return Case(name, start, run, recovered(rig.finalized), judged)


def _finalize_and_back(name: str) -> Case:
    """Where it is cut off, take everything back to names."""
    first, start = _verified()
    end = rig.ended(start, rig.finalized).world()

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        # With a disk missing the others were taken back by themselves, and it found them so; a recovery cut off as well
        # has begun the way back, which is judged by where it ends.
        early = [] if state.returned or _is_rolling_back(state.crashed) else _too_early(state.crashed)
        return [*rig.differences(rig.seen(first.world()), rig.seen(state.recovered)), *early]

    judged = judged_by(judge, first.world(), end=end, goes_back=True, has_bar=False)
    return Case(name, start, acknowledged(rig.finalized), recovered(rig.rollback, rig.rollback), judged)


def _back_from_final(name: str, *, at: int = -1) -> Case:
    """Nothing is kept of the start block, and line 3 of partition.metadata is enough."""
    first, start = _verified()
    run = acknowledged(rig.rollback) if at < 0 else resumed(rig.rollback, at)
    judge = back_to(first.world(), has_bar=False)
    return Case(name, rig.ended(start, rig.finalized), run, recovered(rig.rollback, rig.rollback), judge)


def _draw_relayout(hands: Hands, seen: Seen) -> bool:
    if not seen.live:
        return False
    hands.write_plan(seen)
    hands.begin("relayout")
    hands.relayout_on()
    hands.end("relayout")
    hands.is_by_id = hands.is_blocked = True
    return True


def _draw_rollback(hands: Hands, seen: Seen) -> bool:
    hands.begin("rollback")
    hands.relayout_back()
    hands.end("rollback")
    hands.is_by_id = hands.is_blocked = False
    return True


_THERE = (3, 10, 14, 17, 19, 20, 21, 22, 25, 26)
_BACK = (2, 5, 9, 13, 15, 17, 19, 20, 21, 22)
"""Before which calls of a change of layout of one replica, and of its way back, another process is killed."""
_FINALLY = (3, 7, 13, 17, 25, 29, 33)
_BACK_FROM_FINAL = (3, 7, 21, 29, 57, 61)
"""The same of two replicas on two disks, from *verified* on, and back from *final*."""
_LAYOUTS: dict[str, Make] = {
    "layout of three": partial(ends, broker="three"),
    "layout of three, then back where it is cut off": partial(undone, broker="three"),
    "layout over two disks": partial(ends, broker="two-disks"),
    "layout over two disks, then back where it is cut off": partial(undone, broker="two-disks"),
    "way back of three": partial(returns, broker="three"),
    "way back over two disks": partial(returns, broker="two-disks"),
}
_ON_KERNELS = tuple(_LAYOUTS)
_LAYOUTS_TAKEN_UP: dict[str, Make] = {
    **{f"layout, taken up at call {at}": partial(ends, broker="plain", at=at) for at in _THERE},
    **{f"way back, taken up at call {at}": partial(returns, broker="plain", at=at) for at in _BACK},
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
_ANY = frozenset({"K", "J", "B", "P"})
# The first is small, and misses most.
_TO_IDS = (
    "batch to ids of a kept one",
    "batch to ids of a kept one, then back where it is cut off",
    "batch to ids",
)
_LONG = ("layout of three", "layout of three, then back where it is cut off", *tuple(_TO_IDS_AGAIN))
_BACKS = tuple(name for name in _BATCHES if name.endswith("where it is cut off"))
OPERATIONS = (
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
            Syncs(of=functions.RELAYOUT_SYNC, cases=_TO_IDS),
            Syncs(of=functions.RELAYOUT_TO_IDS, cases=(*_TO_IDS, "layout over two disks")),
            Syncs(of=functions.RELAYOUT_TO_NAMES, cases=(*_TO_NAMES_AGAIN, "way back over two disks")),
            Syncs(of=functions.RELAYOUT_PREFIXES, cases=("batch to names, and its prefixes",)),
        ),
        files={"layout.json": Written(cases=(*_TAKEN_UP, "layout over two disks", "finalize"), misses=MISSES)},
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
"""The descriptor."""
