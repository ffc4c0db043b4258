"""The start block: set in every log dir or in none, lifted with the bytes and times as they were.

Spec: design §3.1; attacks A21.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Final

from logdir.disk.record.start_block import lift_block, set_block
from tests.crash.enumerate import State
from tests.crash.model import ModelHost
from tests.crash.recording import Acks
from tests.crash.soak.hands import Hands
from tests.crash.soak.seen import Seen
from tests.crash.tree import World
from tests.logdir.disk import layout_crash as rig
from tests.logdir.disk.layout_rig import opened
from tests.operations import functions, wrong
from tests.operations.case import DONE, Case, acknowledged
from tests.operations.layout_case import (
    MISSES,
    barred_and_kept,
    ends,
    judged_by,
    recovered,
    returns,
    undamaged,
    undone,
    way_there,
)
from tests.operations.operation import Draw, Make, Operation, Syncs, Trait, When, Written
from tests.operations.seeded import Change, Seeded, call, drop, once, wrapped


def _set_and_lifted(name: str) -> Case:
    """A log dir that is blocked always holds what is true; once it is lifted all is as at first."""
    first, there, _, back = way_there("", is_bar=True)

    def run(host: ModelHost, acks: Acks) -> None:
        there(host)
        acks.ack("blocked")
        back(host)
        acks.ack("open")

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = rig.differences(rig.seen(first.world()), rig.seen(state.recovered))
        blocked, kept = barred_and_kept(state.crashed.files())
        if any(is_blocked and not is_kept for is_blocked, is_kept in zip(blocked, kept, strict=True)):
            wrong.append(f"lost: blocked are {blocked}, what is true is kept in {kept}")
        told = [f"/d{number}/k/logdird-start-block.txt" in state.crashed.files() for number in (1, 2)]
        if any(is_blocked and not is_told for is_blocked, is_told in zip(blocked, told, strict=True)):
            wrong.append(f"half: blocked are {blocked}, a text says why in {told}")
        if "open" in acks:
            wrong += rig.differences(rig.seen(first.world()), rig.seen(state.crashed))
        return wrong

    judged = judged_by(judge, first.world(), goes_back=True)
    return Case(name, first, run, recovered(back, back), judged, reaches=frozenset({"blocked", "open"}))


def _kept_before_barred(name: str) -> Case:
    """No log dir is blocked before all hold what is true. Nobody recovers: what is looked at is the crash itself."""
    first, there, _, _ = way_there("", is_bar=True)

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        blocked, kept = barred_and_kept(state.crashed.files())
        # Where a sync failed the start block is taken back, but for the sick disk, to which nothing more is written
        # (design §3.4): that one may be blocked alone then, and it holds what is true itself (``_undamaged``), so that
        # it can be lifted. A broker does not start beside it, for its node id is another one. Only then is that so.
        is_left = state.error.startswith("ReadOnlyDiskError") and any(map(operator.and_, blocked, kept))
        if not any(blocked) or all(kept) or is_left:
            return [line for disk in ("/d1", "/d2") for line in undamaged(first.world(), state.crashed, disk)]
        return [f"half: blocked are {blocked}, what is true is kept in {kept}"]

    judged = judged_by(judge, first.world())
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

    judged = judged_by(judge, first.world(), end=rig.ended(first, there).world())
    return Case(name, first, acknowledged(there), recovered(there), judged)


def _draw(hands: Hands, seen: Seen, *, is_set: bool) -> bool:
    change, kind = (set_block, "set block") if is_set else (lift_block, "lift block")
    hands.begin(kind)
    with hands.locked():
        change(hands.open_dirs)
    hands.end(kind)
    hands.is_blocked = is_set
    return True


_SET: Final = partial(_draw, is_set=True)
_LIFT: Final = partial(_draw, is_set=False)
_SAID_TO_BE_SET = "start block reported as set"
_NOT_TAKEN_UP = "start block without recovery"
_BARS: dict[str, Make] = {
    "start block": partial(ends, is_bar=True),
    _SAID_TO_BE_SET: _is_barred_where_said,
    "start block, then lifted where it is cut off": partial(undone, is_bar=True),
    "start block, and lifted": _set_and_lifted,
    _NOT_TAKEN_UP: _kept_before_barred,
    "lifting": partial(returns, is_bar=True),
}
_BARS_TAKEN_UP: dict[str, Make] = {
    f"start block, taken up at call {at}": partial(ends, is_bar=True, at=at) for at in (*range(6, 22, 2), 17)
}
_LIFTINGS_TAKEN_UP: dict[str, Make] = {
    f"lifting, taken up at call {at}": partial(returns, is_bar=True, at=at) for at in range(2, 15)
}
_BLOCKS = (_SAID_TO_BE_SET, "start block", "start block, and lifted", "lifting")
_ANY = frozenset({"K", "J", "B", "P"})
_HALF = Seeded(
    name="the start block on some log dirs only",
    changes=(Change(functions.BLOCK, once(call("_put"))),),
    tried=(_SAID_TO_BE_SET, "--models", "KJBP"),
    caught_by=_ANY,
    killed=(
        "lost: acknowledged is blocked",
        "lost: replicas lie under ids, and blocked are only",
        "stuck: half a start block",
    ),
)
OPERATIONS = (
    Operation(
        name="start block",
        family="layout",
        cases={**_BARS, **_BARS_TAKEN_UP, **_LIFTINGS_TAKEN_UP},
        traits={
            Trait.ALIKE: ("start block, then lifted where it is cut off", _NOT_TAKEN_UP),
            Trait.TAKEN_UP: (*_BARS_TAKEN_UP, *_LIFTINGS_TAKEN_UP),
            Trait.LONG_RECOVERY: (*_BARS_TAKEN_UP, *_LIFTINGS_TAKEN_UP),
        },
        on_kernels=("start block", "lifting"),
        syncs=(
            Syncs(of=functions.BLOCK, cases=tuple(_BARS_TAKEN_UP)),
            Syncs(of=functions.BLOCK_KEEP, cases=(*_BLOCKS, *_BARS_TAKEN_UP)),
            Syncs(of=functions.BLOCK_EXPLAIN, cases=_BLOCKS),
            Syncs(of=functions.BLOCK_PUT, cases=_BLOCKS),
            Syncs(of=functions.BLOCK_LIFT, cases=(*_BLOCKS, *_LIFTINGS_TAKEN_UP)),
        ),
        files={"start-block.json": Written(cases=(*_BLOCKS, *_LIFTINGS_TAKEN_UP), misses=MISSES)},
        draws=(
            Draw(kind="set block", do=_SET, when=When.NAMES),
            Draw(kind="lift block", do=_LIFT, when=When.BLOCKED, home=_LIFT),
        ),
        seeded=(
            _HALF,
            Seeded(
                name="blocked before every log dir holds what is true",
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
                tried=("start block, and lifted", "--models", "KJBP"),
                caught_by=_ANY,
            ),
        ),
    ),
)
"""The descriptor."""
