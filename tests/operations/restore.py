"""Restoring: a staged replica is live again, with its checkpoint entries, and without the indexes a broker would trust.

Spec: design §3.3 "Restore"; kafka-behaviour §10.6.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from logdir.disk.replica.outcome import Result
from logdir.disk.replica.staging import RestoreItem, restore
from logdir.formats.own.replica_marker import Checkpoints
from tests.crash.soak.hands import Hands
from tests.crash.soak.seen import Seen
from tests.crash.starts import (
    A_BY_ID,
    CLEANER,
    FEW,
    FILE,
    LOG_STARTS,
    NO_POINTS,
    ONE,
    OWNER,
    POINTS,
    A,
    B,
    Part,
    settled,
    staged,
)
from tests.crash.steps import Course, MakeCourse, Steps, cases, course_of, named_at_once, replica_of
from tests.operations import functions
from tests.operations.operation import Draw, Operation, Syncs, Trait, When
from tests.operations.seeded import Change, Seeded, call, never

POINTS_HELD = Checkpoints(log_start=3, cleaner=4)


def _restored(part: Part) -> dict[str, tuple[bytes | None, bytes | None, str]]:
    """Return what restoring it does to two checkpoints: one that is there, one that is not."""
    said = f"{part.key} reached 1"
    entry = f"{part.topic} {part.partition}"
    return {
        f"{part.log_dir}/{LOG_STARTS}": (POINTS, f"0\n2\nother 0 5\n{entry} 3\n".encode(), said),
        f"{part.log_dir}/{CLEANER}": (None, f"0\n1\n{entry} 4\n".encode(), said),
    }


def _restore(name: str, part: Part, *, made: bool = False, points: Checkpoints = POINTS_HELD) -> Course:
    host = staged(part, points=points, clean=False)
    prefix = part.path.rpartition("/")[0]
    if prefix:
        with host.open_top(part.log_dir) as top:
            top.remove(prefix)
        host = settled(host)

    def do(steps: Steps) -> None:
        if made:
            # By a process that was stopped before it could make it durable.
            with suppress(OSError):
                steps.open_dirs.of(part).top.make(prefix, OWNER)
        steps.restore(part, drop=True)

    return course_of(
        name,
        host,
        do,
        replica_of(part, "staged", "live", drops=FEW[:1], is_staged=True),
        files=_restored(part) if points == POINTS_HELD else {},
        directories=frozenset({f"{part.log_dir}/{prefix}"} if prefix else ()),
    )


def _restore_taken(name: str) -> Course:
    """Something of that name lives again, and has its own entries in the checkpoints; another one is restored."""
    host = staged(A, B, files=ONE, points=Checkpoints(log_start=3))
    host.plant(f"/d0/kafka/{A.path}/{ONE[0]}", b"another", owner=FILE)

    def do(steps: Steps) -> None:
        outcome = restore(
            steps.open_dirs.of(A),
            RestoreItem(name=A.place, marker=steps.open_dirs.marker(A), path=A.path, drop_last_indexes=True),
        )
        assert outcome.result is Result.UNDONE
        steps.restore(B)

    said = f"{B.key} reached 1"
    starts: dict[str, tuple[bytes | None, bytes | None, str]] = {
        f"{B.log_dir}/{LOG_STARTS}": (POINTS, b"0\n2\nother 0 5\nb 1 3\n", said)
    }
    replicas = (replica_of(A, "staged", is_staged=True), replica_of(B, "staged", "live", is_staged=True))
    return course_of(name, settled(host), do, *replicas, files=starts)._replace(has_way_back=False)


def _draw(hands: Hands, seen: Seen) -> bool:
    deleted = {(live.parts.topic, live.parts.partition) for live in seen.deleted}
    for aside, marker, token in hands.asides(seen):
        if hands.lives(seen, marker) or (marker.topic, marker.partition) in deleted:
            continue
        is_dropping = not marker.clean
        path = f"{marker.topic}-{marker.partition}"
        item = RestoreItem(name=aside.name, marker=marker, path=path, drop_last_indexes=is_dropping)
        hands.begin("restore", token=token, id=str(marker.topic_id), drops=is_dropping)
        with hands.locked():
            hands.end("restore", restore(aside.open_dir, item))
        return True
    return False


_BEGUN = "restore into a prefix somebody began"
_NO_POINTS = "restore what no checkpoint named"
_COURSES: dict[str, MakeCourse] = {
    "restore": partial(_restore, part=A),
    "restore by id": partial(_restore, part=A_BY_ID),
    _BEGUN: partial(_restore, part=A_BY_ID, made=True),
    _NO_POINTS: partial(_restore, part=A_BY_ID, made=True, points=NO_POINTS),
    "restore where something lives": _restore_taken,
}
_NAMED = named_at_once(_COURSES, "restore")
OPERATIONS = (
    Operation(
        name="restore",
        cases=cases({**_COURSES, **_NAMED}),
        traits={Trait.PREPARED: (_BEGUN, _NO_POINTS), Trait.ALIKE: tuple(_NAMED)},
        on_kernels=tuple(_COURSES),
        syncs=(
            Syncs(of=functions.STAGING_MODULE, cases=("restore", _NO_POINTS), depth=2),
            Syncs(of=functions.RECOVER_MODULE, cases=("restore",), depth=2),
        ),
        draws=(Draw(kind="restore", do=_draw, when=When.NAMES, home=_draw),),
        seeded=(
            Seeded(
                name="indexes kept under a clean marker",
                changes=(Change(functions.RESTORE, never(call("_drop"))),),
                tried=("restore", "--models", "KJBPD"),
                caught_by=frozenset({"K", "J", "B", "P", "DJ"}),
            ),
            Seeded(
                name="checkpoint entries put back over those of what lives there",
                changes=(Change(functions.RESTORE, never(call("is_there"))),),
                tried=("restore where something lives", "--models", "K"),
                caught_by=frozenset({"K"}),
            ),
        ),
    ),
)
"""The descriptor."""
