"""An operation whose crashes are enumerated, with a recovery and a judge of its own.

Not here: those of one replica and one file (``operations``), which share a recovery and an oracle.

Spec: reliability §4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from logdir.disk.io import Call
from tests.crash.enumerate import Judge, Run, State
from tests.crash.model import Killed, ModelHost
from tests.crash.recording import Acks
from tests.crash.tree import World


def loud(call: Call) -> bool:
    """Tell that a call of a second recovery is a change: any is."""
    return False


class Case(NamedTuple):
    """What is crashed."""

    name: str
    start: ModelHost
    run: Run
    recover: Callable[[ModelHost], None]
    judge: Judge
    quiet: Callable[[Call], bool] = loud
    """Which calls change nothing in the end, and need not be durable: a probe renamed there and back."""


Do = Callable[[ModelHost], None]
DONE = "done"


def acknowledged(do: Do) -> Run:
    """Return what says at its end that it is done."""

    def run(host: ModelHost, acks: Acks) -> None:
        do(host)
        acks.ack(DONE)

    return run


def resumed(do: Do, at: int) -> Run:
    """Return what is killed before a call, and done again by another process of the same boot, which says it is done.

    Nothing of what the first did need be durable when the second begins.
    """

    def run(host: ModelHost, acks: Acks) -> None:
        host.kill(len(host.records) + at)
        try:
            do(host)
        except Killed:
            host.kill_at, host.is_dead = None, False
            do(host)
        host.kill_at = None
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


def ends_as(end: World) -> Judge:
    """Return the judge of what must come to one end, and be there before any recovery once it was acknowledged."""

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = differences(seen(end), seen(state.recovered), "other")
        return wrong + (differences(seen(end), seen(state.crashed), "lost") if DONE in acks else [])

    return judge
