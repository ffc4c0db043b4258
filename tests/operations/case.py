"""One case of an operation, and what cases are put together from.

Not here: the descriptor a case belongs to (``operation``); one replica and one file, which share a recovery and an
oracle (``tests.crash.steps``).

Spec: reliability §4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from logdir.disk.kernel.host import Call
from tests.crash.enumerate import Judge, Run, State
from tests.crash.model import SYNCS, Killed, ModelHost
from tests.crash.recording import Acks
from tests.crash.tree import World

_T = TypeVar("_T")


def loud(call: Call) -> bool:
    """Tell that a call of a second recovery is a change: any is."""
    return False


Do = Callable[[ModelHost], None]
DONE = "done"
UNTOLD = "untold"
"""A sync failed in a process that was killed before it could tell anybody (reliability §4.3)."""


class Case(NamedTuple):
    """One start of an operation, what is done there, and what must hold."""

    name: str
    start: ModelHost
    """The tree it needs; everything on it is durable."""
    do: Run
    """Carries it out, and acknowledges what was done."""
    recovery: Callable[[ModelHost], None]
    """What the next process does first."""
    holds: Judge
    """Says what is wrong, one line each, with a crash and what recovery made of it; the end is one of these states."""
    quiet: Callable[[Call], bool] = loud
    """Which calls change nothing in the end, and need not be durable: a probe renamed there and back."""
    reaches: frozenset[str] = frozenset({DONE})
    """What it acknowledges when nothing is cut off: else it refuses, and nothing of it is crashed."""
    leads_elsewhere: frozenset[int] = frozenset()
    """Errors of the kernel after which it ends well at another place, of which ``holds`` knows nothing."""


def acknowledged(do: Do) -> Run:
    """Return what says at its end that it is done."""

    def run(host: ModelHost, acks: Acks) -> None:
        do(host)
        acks.ack(DONE)

    return run


def resumed(do: Do, at: int) -> Run:
    """Return what is killed before a call, and done again by another process of the same boot, which says it is done.

    Nothing of what the first did need be durable when the second begins. Where a sync of the first failed the second
    says nothing: the kernel told of it once, to one that was killed before it could tell anybody, so no process of
    that boot can know what a later power cut takes (reliability §4.3). What recovery makes of it is judged as ever.
    """

    def run(host: ModelHost, acks: Acks) -> None:
        host.kill(len(host.records) + at)
        try:
            do(host)
        except Killed:
            host.kill_at, host.is_dead = None, False
            if any(made.errno and made.call.name in SYNCS for made in host.records):
                acks.ack(UNTOLD)
            do(host)
        host.kill_at = None
        if not any(made.errno and made.call.name in SYNCS for made in host.records):
            acks.ack(DONE)

    return run


def before_each(host: ModelHost, call: str, once: Callable[[str], bool]) -> None:
    """Let somebody else act before calls of a name, until that says it was done.

    Args:
        host: Whose calls.
        call: The name of calls.
        once: Told the path of the call; what it does itself is not told to it.
    """
    perform = host.perform
    waiting = True

    def performing(made, system, act, short):  # type: ignore[no-untyped-def]
        nonlocal waiting
        if waiting and made.name == call:
            waiting = False
            waiting = not once(made.path)
        perform(made, system, act, short)

    host.perform = performing  # type: ignore[method-assign]


def settled(host: ModelHost) -> ModelHost:
    """Return the same with everything durable, for another process."""
    world = host.world()
    volumes = tuple(volume.durable() for volume in world.volumes)
    return ModelHost(world._replace(volumes=volumes, generation=world.generation + 1))


def after(host: ModelHost, do: Do) -> ModelHost:
    """Return a host on which something was done and is durable."""
    other = ModelHost(host.world())
    do(other)
    return settled(other)


def killed(host: ModelHost, do: Do, at: int) -> ModelHost:
    """Return a host on which something was killed before a call; what it had done is durable."""
    other = ModelHost(host.world()).kill(at)
    try:
        do(other)
    except Killed:
        return settled(other)
    raise ValueError(f"it makes no more than {at} calls")


def calls(host: ModelHost, do: Do) -> tuple[str, ...]:
    """Return the names and paths of the calls something makes."""
    other = ModelHost(host.world())
    do(other)
    return tuple(f"{made.call.name} {made.call.path}" for made in other.records)


def seen(world: World) -> dict[str, tuple[object, ...]]:
    """Return type, owner and content of everything."""
    return {path: (node.type, node.owner, node.data) for path, node in world.tree().items()}


def differences(expected: Mapping[str, object], found: Mapping[str, object], word: str) -> list[str]:
    """Return what differs, one line each."""
    return [
        f"{word}: {path} is {found.get(path)}, not {expected.get(path)}"
        for path in sorted(expected.keys() | found.keys())
        if expected.get(path) != found.get(path)
    ]


# A disk that is missing (model D): not there, read-only, or another, empty one in its place.

Partly = Callable[[World, State, Acks, frozenset[str]], list[str]]
"""As a judge; also told the mounts of the disks that can be read and hold what they held."""


def answering(host: ModelHost) -> list[str]:
    """Return the mounts of the disks that take changes."""
    return [system.mount for system in host.systems if system.status == "ok"]


def is_whole(host: ModelHost) -> bool:
    """Tell whether no disk is missing."""
    return len(answering(host)) == len(host.systems)


def unless_missing(recover: Do, partly: Do = lambda host: None) -> Do:
    """Return a recovery as the commands make it: what needs every disk is refused, and nothing is done.

    Args:
        recover: With all disks.
        partly: With one missing.
    """
    return lambda host: recover(host) if is_whole(host) else partly(host)


def with_missing(judge: Judge, partly: Partly) -> Judge:
    """Return the judge of every model: with a disk missing nothing is done to that one, and the others are judged.

    Args:
        judge: With all disks, also once the one that was missing is back.
        partly: With one missing.
    """

    def judged(before: World, state: State, acks: Acks) -> list[str]:
        if set(state.statuses) == {"ok"}:
            return judge(before, state, acks)
        disks = list(zip(state.crashed.volumes, state.recovered.volumes, state.statuses, strict=True))
        # What takes the place of a disk may be an unmounted mount point: nothing is made up there (attacks A5).
        wrong = [
            f"foreign: {was.mount} is changed though it is {status}"
            for was, now, status in disks
            if status != "ok" and was.digest() != now.digest()
        ]
        return wrong + partly(before, state, acks, readable(state))

    return judged


def readable(state: State) -> frozenset[str]:
    """Return the mounts of the disks that can be read and hold what they held."""
    return frozenset(
        volume.mount
        for volume, status in zip(state.crashed.volumes, state.statuses, strict=True)
        if status in ("ok", "read-only")
    )


def changeable(state: State) -> frozenset[str]:
    """Return the mounts of the disks that took changes during a recovery."""
    return frozenset(
        volume.mount for volume, status in zip(state.crashed.volumes, state.statuses, strict=True) if status == "ok"
    )


def below(mounts: frozenset[str], facts: Mapping[str, _T]) -> dict[str, _T]:
    """Return what lies on these disks."""
    return {path: fact for path, fact in facts.items() if f"/{path.split('/')[1]}" in mounts}


def no_more(before: World, state: State, acks: Acks, there: frozenset[str]) -> list[str]:
    """Say nothing more of the others: there are none, or nothing of the operation lies on them."""
    return []


def unchanged(state: State) -> list[str]:
    """Say what a recovery changed that was to be refused as a whole."""
    return [] if state.crashed.digest()[1:] == state.recovered.digest()[1:] else ["other: changed with a disk missing"]


def ends_as(end: World) -> Judge:
    """Return the judge of what must come to one end, and be there before any recovery once it was acknowledged."""

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = differences(seen(end), seen(state.recovered), "other")
        return wrong + (differences(seen(end), seen(state.crashed), "lost") if DONE in acks else [])

    def partly(before: World, state: State, acks: Acks, there: frozenset[str]) -> list[str]:
        # A disk by itself: the one that is missing keeps no other from its end.
        fine = changeable(state)
        wrong = differences(below(fine, seen(end)), below(fine, seen(state.recovered)), "other")
        lost = differences(below(there, seen(end)), below(there, seen(state.crashed)), "lost")
        return wrong + (lost if DONE in acks else [])

    return with_missing(judge, partly)
