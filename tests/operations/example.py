"""An example of a new operation: *note* writes a small record into every work root. Nothing of it is in the product.

``README.md`` goes through it; ``test_example`` adds it to the registry and asks every rig for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from logdir.disk.kernel.failure import calling, with_reserve
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.small_file import read_file, replace_file
from logdir.disk.root.open_log_dir import OpenLogDir
from tests.crash.enumerate import State
from tests.crash.model import ModelHost
from tests.crash.recording import Acks
from tests.crash.soak.hands import Hands
from tests.crash.soak.looks import Look
from tests.crash.soak.seen import Seen
from tests.crash.starts import ONE, A, C, Sites, start
from tests.crash.steps import recover_all
from tests.crash.tree import World
from tests.operations import functions
from tests.operations.case import DONE, Case, acknowledged, after, readable
from tests.operations.operation import Draw, Needless, Operation, Syncs, Written
from tests.operations.seeded import Change, Seeded, call, once

NAME, DRAFT = "note.json", "note.draft"
_WRITE = "tests.operations.example:write"  # of an operation of the product they stand in ``functions``
_PUBLISH = "tests.operations.example:publish"
_LOG_DIRS = ("/d0/kafka", "/d1/kafka")
_OLD, _NEW = b"an old note", b"a new note"


def write(open_dirs: Sequence[OpenLogDir], data: bytes) -> None:
    """Write a note into every work root; durable when it returns. What ``logdir.disk`` would hold."""
    for open_dir in open_dirs:
        work = open_dir.work
        with calling(work):
            before = read_file(work, DRAFT)
        replace_file(work, DRAFT, data, before=before, owner=open_dir.owner.for_file(), work=work, keep=False)
        publish(open_dir)


def publish(open_dir: OpenLogDir) -> None:
    """Give a draft the name of a note, durably."""
    work = open_dir.work
    with calling(work):
        with_reserve(work, lambda: work.replace(DRAFT, NAME))
    with syncing(work):
        work.sync()
        open_dir.top.sync()


# On the model disk, and on real kernels.


def _writing(log_dirs: Sequence[str], data: bytes) -> Callable[[ModelHost], None]:
    def do(host: ModelHost) -> None:
        with Sites(host) as open_dirs:
            write([open_dirs.at(log_dir) for log_dir in log_dirs], data)

    return do


def _case(name: str, log_dirs: Sequence[str] = _LOG_DIRS) -> Case:
    def holds(before: World, state: State, acks: Acks) -> list[str]:
        """Wherever it was cut off each note is the old one or the new one; acknowledged, each is the new one."""
        wrong = []
        for world in (state.crashed, state.recovered):
            for log_dir in log_dirs:
                found = world.files().get(f"{log_dir}.logdird/{NAME}")
                if log_dir[:3] in readable(state) and found not in ((_NEW,) if DONE in acks else (_OLD, _NEW)):
                    wrong.append(f"lost: the note of {log_dir} is {found!r}")
        return wrong

    return Case(
        name,
        start=after(start(A, C, files=ONE), _writing(log_dirs, _OLD)),
        do=acknowledged(_writing(log_dirs, _NEW)),
        recovery=recover_all,
        holds=holds,
    )


# In the soak of killed processes, and under the swaps.


def _draw(hands: Hands, seen: Seen) -> bool:
    text = f"note {hands.draw.randrange(10**6)}"
    hands.begin("note", text=text)
    write(hands.open_dirs, text.encode())
    hands.end("note")
    return True


def _holds_when_killed(
    found: Look, ended: Mapping[str, Any] | None, begun: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    may = {None if ended is None else ended["text"], *(about["text"] for about in begun)}
    for disk in range(len({disk for disk, _ in found.files})):
        file = found.files.get((disk, f"work/{NAME}"))
        if (None if file is None else file.data.decode()) not in may:
            yield f"lost: the note of disk {disk} is not one of {may}"


OPERATIONS = (
    Operation(
        name="note",
        family="notes",
        cases={"note": _case},
        syncs=(Syncs(of=_PUBLISH, cases=("note",)),),
        needless=(
            Needless(
                function=_PUBLISH,
                call=call("sync", of="top"),
                because="ext4, XFS, btrfs: nothing was changed in the log dir itself; kept to show how that is said",
            ),
        ),
        # The draft has its name, or has it not: publishing it syncs that directory again.
        files={DRAFT: Written(cases=("note",), misses=frozenset({(functions.REPLACE_FILE, 1)}))},
        draws=(
            Draw(
                kind="note",
                do=_draw,
                leaves=frozenset({f"work/{NAME}", f"work/{DRAFT}", f"work/{DRAFT}.tmp"}),
                holds=_holds_when_killed,
            ),
        ),
        seeded=(
            Seeded(
                name="a note in one work root only",
                changes=(Change(_WRITE, once(call("publish"))),),
                tried=("note", "--models", "KJBP"),
                caught_by=frozenset({"K", "J", "B", "P"}),
                killed=("lost: the note",),
            ),
        ),
    ),
    # A small file on one disk: of the rigs some are for the family of those alone.
    Operation(name="note on one disk", cases={"note on one disk": partial(_case, log_dirs=_LOG_DIRS[:1])}),
)
"""The descriptor, and that of a second operation."""
