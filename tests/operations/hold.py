"""Holding: the deadline of a staged replica goes.

Spec: design §3.3; §2 laws 2, 3.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from logdir.disk.recover_log_dir import recover
from logdir.disk.replica.purge import claim
from logdir.disk.replica.replica_dir import NEW_MARKER
from logdir.disk.replica.staging import hold
from logdir.errors import RefusedError
from logdir.formats.own import replica_marker
from tests.crash.soak.hands import Hands
from tests.crash.soak.seen import Seen
from tests.crash.starts import FILE, A, B, marker_for, staged, start
from tests.crash.steps import Course, MakeCourse, Steps, cases, course_of, named_at_once, replica_of
from tests.operations import functions
from tests.operations.operation import Draw, Operation, Syncs, Trait
from tests.operations.seeded import Change, Seeded, never, raising


def _hold(name: str) -> Course:
    return course_of(name, staged(A), lambda s: s.hold(A), replica_of(A, "staged", "held", is_staged=True))


def _hold_after_a_killed_stage(name: str) -> Course:
    """The successor of a process killed between its rename and the sync sees what is staged, and holds it."""

    def do(steps: Steps) -> None:
        open_dir = steps.open_dirs.of(B)
        with suppress(OSError):
            marker = marker_for(open_dir, B)
            with open_dir.top.open(B.path) as directory:
                directory.write("replica.json", replica_marker.render(marker), FILE)
            open_dir.top.sync_disk()
            open_dir.top.rename(B.path, open_dir.deleting, B.place)
            recover(open_dir)
            steps.say(B, True)
            steps.hold(B)

    return course_of(name, start(B), do, replica_of(B, "live", "staged", "held"))


def _hold_after_a_killed_hold(name: str) -> Course:
    """The successor of a process killed between its new marker's rename and the sync sees it held, and holds it."""

    def do(steps: Steps) -> None:
        with suppress(OSError):
            with steps.open_dirs.of(A).deleting.open(A.place) as directory:
                marker = replace(steps.open_dirs.marker(A), delay_ms=None)
                directory.write(NEW_MARKER, replica_marker.render(marker), FILE)
                directory.sync_file(NEW_MARKER)
                directory.replace(NEW_MARKER, replica_marker.FILE_NAME)
            steps.hold(A)

    return course_of(name, staged(A), do, replica_of(A, "staged", "held", is_staged=True))


def _hold_before_claim(name: str) -> Course:
    """The purge was decided before the operator held it."""

    def do(steps: Steps) -> None:
        marker = steps.open_dirs.marker(A)
        steps.hold(A)
        if steps.reached:
            with suppress(RefusedError):
                claim(steps.open_dirs.of(A), A.place, marker)

    return course_of(name, staged(A), do, replica_of(A, "staged", "held", is_staged=True))


def _draw(hands: Hands, seen: Seen) -> bool:
    for aside, marker, token in hands.asides(seen):
        if marker.delay_ms is not None:
            hands.begin("hold", token=token, id=str(marker.topic_id))
            hands.end("hold", hold(aside.open_dir, aside.name))
            return True
    return False


_COURSES: dict[str, MakeCourse] = {
    "hold": _hold,
    "hold after a killed stage": _hold_after_a_killed_stage,
    "hold after a killed hold": _hold_after_a_killed_hold,
    "hold, then a claim decided before": _hold_before_claim,
}
_NAMED = named_at_once(_COURSES, "hold")
OPERATIONS = (
    Operation(
        name="hold",
        cases=cases({**_COURSES, **_NAMED}),
        traits={Trait.RAW: ("hold after a killed stage", "hold after a killed hold"), Trait.ALIKE: tuple(_NAMED)},
        on_kernels=tuple(_COURSES),
        syncs=(
            Syncs(of=functions.STAGING_MODULE, cases=("hold", "hold after a killed hold"), depth=2),
            Syncs(of=functions.RECOVER_MODULE, cases=("hold after a killed stage",), depth=2),
        ),
        draws=(Draw(kind="hold", do=_draw),),
        seeded=(
            Seeded(
                name="a failed sync is reported as undone",
                changes=(Change(functions.UNDONE, never(raising())),),
                tried=("hold",),
                caught_by=frozenset({"F", "FK"}),
            ),
        ),
    ),
)
"""The descriptor."""
