"""Operations of one replica after each other, and two at once that decide on what they saw and act on it later.

Spec: design §3.3; attacks A18.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from logdir.disk.replica.outcome import Result
from logdir.disk.replica.purge import claim
from logdir.disk.replica.staging import RestoreItem, restore
from logdir.errors import RefusedError
from logdir.formats.own.replica_marker import ReplicaMarker
from tests.crash.starts import FEW, ONE, A, B, staged, start
from tests.crash.steps import Course, MakeCourse, Steps, cases, course_of, named_at_once, replica_of
from tests.operations import functions
from tests.operations.operation import Operation, Syncs, Trait


def _stage_restore(name: str) -> Course:
    def do(steps: Steps) -> None:
        steps.stage(A)
        if steps.reached:
            steps.restore(A, drop=True)

    return course_of(name, start(A), do, replica_of(A, "live", "staged", "live", drops=FEW[:1]))


def _stage_hold_purge(name: str) -> Course:
    def do(steps: Steps) -> None:
        steps.stage(B)
        if steps.reached.get(B.key) == 1:
            steps.hold(B)
        if steps.reached.get(B.key) == 2:
            steps.purge(B)

    return course_of(name, start(B, files=ONE), do, replica_of(B, "live", "staged", "held", "claimed", "gone"))


def _interleavings(*actors: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield every order of all steps in which each actor's own stay in order."""
    if not any(actors):
        yield ()
    for number, steps in enumerate(actors):
        if steps:
            rest = [other if at != number else other[1:] for at, other in enumerate(actors)]
            yield from ((steps[0], *order) for order in _interleavings(*rest))


def _race(name: str, order: tuple[str, ...]) -> Course:
    """Two who decide on what they saw, and act on it later; who comes second is refused."""
    wins = "restore" if order.index("restore") < order.index("claim") else "purge"

    def do(steps: Steps) -> None:
        seen: dict[str, ReplicaMarker] = {}
        claimed = None
        for step in order:
            if step in ("R sees", "P sees"):
                with suppress(FileNotFoundError):
                    seen[step[0]] = steps.open_dirs.marker(A)
            elif step == "restore" and "R" in seen and (wins == "restore" or claimed):
                item = RestoreItem(name=A.place, marker=seen["R"], path=A.path, drop_last_indexes=False)
                outcome = restore(steps.open_dirs.of(A), item)
                if wins == "restore":
                    steps.say(A, outcome.result is Result.DONE)
                else:
                    assert isinstance(outcome.error, RefusedError), outcome
            elif step == "claim" and "P" in seen:
                if wins == "purge":
                    claimed = steps.claim(A, seen["P"])
                elif A.key in steps.reached:
                    try:
                        claim(steps.open_dirs.of(A), A.place, seen["P"])
                    except FileNotFoundError:
                        continue
                    raise AssertionError("claimed what is live")
            elif step == "remove" and claimed:
                steps.remove(A, claimed)

    course = ("staged", "live") if wins == "restore" else ("staged", "claimed", "gone")
    return course_of(name, staged(A, files=ONE), do, replica_of(A, *course, is_staged=True))


_RACES: dict[str, MakeCourse] = {
    f"race: {', '.join(order)}": partial(_race, order=order)
    for order in _interleavings(("R sees", "restore"), ("P sees", "claim", "remove"))
}
_COURSES: dict[str, MakeCourse] = {
    "stage; restore": _stage_restore,
    "stage; hold; purge": _stage_hold_purge,
    **_RACES,
}
_NAMED = named_at_once(_COURSES, "stage; restore")
OPERATIONS = (
    Operation(
        name="one after another, and two at once",
        cases=cases({**_COURSES, **_NAMED}),
        traits={Trait.ALIKE: (*_RACES, *_NAMED)},
        on_kernels=tuple(_COURSES),
        syncs=(Syncs(of=functions.PURGE_MODULE, cases=("race: P sees, claim, R sees, restore, remove",), depth=2),),
    ),
)
"""The descriptor."""
