"""Staging: live replicas get a marker and move under ``deleting/``, one batch a log dir.

Spec: design §3.3, §3.4.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from logdir.disk.replica.staging import StageItem, stage
from tests.crash.soak.hands import Hands, token
from tests.crash.soak.seen import Seen
from tests.crash.starts import A_BY_ID, C_BY_ID, FEW, FILE, FILES, A, B, C, Part, start
from tests.crash.steps import Course, MakeCourse, Steps, cases, course_of, named_at_once, replica_of
from tests.operations import functions, wrong
from tests.operations.operation import Draw, Operation, Syncs, Trait, When
from tests.operations.seeded import Change, Seeded, call, drop, retried, wrapped


def _stage(name: str, parts: tuple[Part, ...], files: tuple[str, ...] = FEW) -> Course:
    host = start(*parts, files=files)
    return course_of(name, host, lambda s: s.stage(*parts), *(replica_of(part, "live", "staged") for part in parts))


def _stage_again(name: str) -> Course:
    """A batch after one that was stopped: its markers are there, half or whole, and not durable."""

    def do(steps: Steps) -> None:
        with suppress(OSError), steps.open_dirs.of(A).top.open(A.path) as directory:
            directory.write("replica.json", b"half", FILE)
        steps.stage(A)

    return course_of(name, start(A), do, replica_of(A, "live", "staged"))


def _draw(hands: Hands, seen: Seen) -> bool:
    if not seen.live:
        return False
    open_dir = hands.draw.choice(seen.live).open_dir
    here = [live for live in seen.live if live.open_dir is open_dir]
    few = hands.draw.sample(here, min(len(here), hands.draw.randint(1, 3)))
    items = [StageItem(path=live.name, marker=hands.marker(live)) for live in few]
    about = [
        {"token": token(open_dir.top, live.name), "id": str(item.marker.topic_id), "delay_ms": item.marker.delay_ms}
        for live, item in zip(few, items, strict=True)
    ]
    hands.begin("stage", items=about)
    with hands.locked():
        hands.end("stage", *stage(open_dir, items))
    return True


_COURSES: dict[str, MakeCourse] = {
    "stage 1": partial(_stage, parts=(A,), files=tuple(FILES)),
    "stage 2": partial(_stage, parts=(A, B)),
    "stage 3 on two disks": partial(_stage, parts=(A, B, C)),
    "stage 2 by id": partial(_stage, parts=(A_BY_ID, C_BY_ID)),
    "stage over a marker": _stage_again,
}
_NAMED = named_at_once(_COURSES, "stage 1", "stage 2")
_NEW_PARENT = Change(functions.STAGE, drop(call("sync", of="deleting")))
_OLD_PARENT = Change(functions.STAGE, drop(call("sync", nth=2)))
OPERATIONS = (
    Operation(
        name="stage",
        cases=cases({**_COURSES, **_NAMED}),
        traits={
            Trait.RAW: ("stage over a marker",),
            Trait.AT_WORK: ("stage over a marker",),
            Trait.ALIKE: tuple(_NAMED),
        },
        on_kernels=tuple(_COURSES),
        syncs=(Syncs(of=functions.STAGING_MODULE, cases=("stage 1", "stage 2 by id"), depth=2),),
        draws=(Draw(kind="stage", do=_draw, when=When.NAMES),),
        seeded=(
            Seeded(
                name="the marker is not synced",
                changes=(Change(functions.STAGE, drop(call("sync_disk"))),),
                tried=("stage 1",),
                caught_by=frozenset({"J", "B", "P", "DJ", "F"}),
            ),
            Seeded(
                name="the new parent is not synced",
                changes=(_NEW_PARENT,),
                tried=("stage 1",),
                caught_by=frozenset({"order"}),
            ),
            Seeded(
                name="the old parent is not synced",
                changes=(_OLD_PARENT,),
                tried=("stage 1",),
                caught_by=frozenset({"order"}),
            ),
            Seeded(
                name="neither parent is synced",
                changes=(_OLD_PARENT, _NEW_PARENT),
                tried=("stage 1",),
                caught_by=frozenset({"order", "J", "B", "P", "DJ"}),
            ),
            Seeded(
                name="renamed before it is marked",
                changes=(
                    Change(functions.STAGE, drop(call("_mark"))),
                    Change(functions.STAGE_RENAME, wrapped(wrong.marked_late)),
                ),
                tried=("stage 1",),
                caught_by=frozenset({"K", "J", "B", "P", "DJ", "F"}),
            ),
            Seeded(
                name="renamed and synced before it is marked",
                changes=(
                    Change(functions.STAGE, drop(call("_mark"))),
                    Change(functions.STAGE_RENAME, wrapped(wrong.marked_later)),
                ),
                killed=("lost: ", "stuck: "),
            ),
            Seeded(
                name="a failed sync is called again",
                changes=(
                    Change(functions.STAGE, retried(call("sync", nth=2))),
                    Change(functions.STAGE, retried(call("sync", nth=1))),
                ),
                tried=("stage 1",),
                caught_by=frozenset({"F"}),
            ),
            Seeded(
                name="a batch half renamed and reported done",
                changes=(
                    Change(functions.STAGE, drop(call("_unmark"))),
                    Change(functions.STAGE_UNDONE, wrapped(wrong.said_to_be_done)),
                ),
                tried=("stage 2", "--failures"),
                caught_by=frozenset({"F", "FK"}),
            ),
        ),
    ),
)
"""The descriptor."""
