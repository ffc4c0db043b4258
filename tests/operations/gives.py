"""A topic id given to a replica that has none: its file is there whole or not at all, also before any recovery.

What was cut off is given again, as whoever reconciles once more does.

Spec: design §2 law 9, §4; KIP-516, "Migration"; attacks A9.
"""

from __future__ import annotations

from functools import partial

from logdir.disk.replica.give_id import GiveItem, give_id
from logdir.disk.replica.outcome import Result
from logdir.ids import TopicId
from tests.builders import TOPIC_ID
from tests.crash.enumerate import State
from tests.crash.model import ModelHost
from tests.crash.recording import Acks
from tests.crash.starts import FILE, ONE, A, C, Part, Sites, start
from tests.crash.steps import recover_all
from tests.crash.tree import World
from tests.operations import functions
from tests.operations.case import Case, acknowledged, after, answering, ends_as, resumed
from tests.operations.operation import Make, Operation, Syncs, Trait

_WHOLE = f"version: 0\ntopic_id: {TOPIC_ID}".encode()


def _give(host: ModelHost, parts: tuple[Part, ...]) -> None:
    with Sites(host) as open_dirs:
        for part in parts:
            outcome = give_id(open_dirs.of(part), GiveItem(path=part.path, topic_id=TopicId.parse(TOPIC_ID)))
            assert outcome.result is Result.DONE, outcome


def _whole_or_not(parts: tuple[Part, ...], state: State) -> list[str]:
    wrong = []
    for word, world in (("crashed", state.crashed), ("recovered", state.recovered)):
        files, tree = world.files(), world.tree()
        for part in parts:
            path = f"{part.log_dir}/{part.path}/partition.metadata"
            if files.get(path, _WHOLE) != _WHOLE:
                wrong.append(f"half: {path} is {files[path]!r} when {word}")
            if path in tree and tree[path].owner != FILE:
                wrong.append(f"unreadable: {path} belongs to {tree[path].owner}")
    return wrong


def _case(name: str, parts: tuple[Part, ...], *, leftover: bool = False, at: int | None = None) -> Case:
    first = start(*parts, files=ONE)
    if leftover:
        # Of a broker that was killed while it wrote its own.
        path = f"{parts[0].log_dir}/{parts[0].path}/partition.metadata.tmp"
        first.plant(path, b"version: 0\nto", owner=FILE)
        first = after(first, lambda _: None)
    do = partial(_give, parts=parts)
    reached = ends_as(after(first, do).world())

    def recover(host: ModelHost) -> None:
        recover_all(host)
        _give(host, tuple(part for part in parts if part.mount in answering(host)))

    def judge(begun: World, state: State, acks: Acks) -> list[str]:
        return _whole_or_not(parts, state) or reached(begun, state, acks)

    return Case(name, first, acknowledged(do) if at is None else resumed(do, at), recover, judge)


_TAKEN_UP: dict[str, Make] = {
    f"give an id, taken up at call {at}": partial(_case, parts=(A,), at=at) for at in range(1, 5)
}
_CASES: dict[str, Make] = {
    "give an id": partial(_case, parts=(A,)),
    "give an id, over what a broker left": partial(_case, parts=(A,), leftover=True),
    "give ids on two disks": partial(_case, parts=(A, C)),
    **_TAKEN_UP,
}
_GIVEN = ("give an id", "give ids on two disks")
OPERATIONS = (
    Operation(
        name="give id",
        family="gives",
        cases=_CASES,
        traits={Trait.TAKEN_UP: tuple(_TAKEN_UP)},
        on_kernels=(),
        syncs=(Syncs(of=functions.GIVE_ID, cases=_GIVEN), Syncs(of=functions.GIVE_ID_PUT, cases=_GIVEN)),
    ),
)
"""The descriptor."""
