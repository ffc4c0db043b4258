"""Purging: a staged replica is claimed on its marker read again, then removed, paced.

Spec: design §3.3; attacks A17, A18.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

from logdir.decide.staged.deadline import Due, due
from logdir.disk.kernel.in_use import in_use
from logdir.disk.record import heartbeat
from logdir.disk.recover_log_dir import recover
from logdir.disk.replica.outcome import Result
from logdir.disk.replica.purge import claim, remove, remove_all
from logdir.disk.replica.staging import RestoreItem, StageItem, hold, restore, stage
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import RefusedError
from logdir.formats.own.replica_marker import ReplicaMarker
from logdir.observe.classify import Type
from tests.crash.soak.hands import Hands
from tests.crash.soak.seen import Seen
from tests.crash.starts import DIRECTORIES, FEW, ONE, OWNER, A, B, C, Part, Sites, marker_for, settled, staged, start
from tests.crash.steps import Course, MakeCourse, Steps, cases, course_of, nobody, replica_of
from tests.operations import functions, wrong
from tests.operations.operation import Draw, Operation, Syncs, Trait
from tests.operations.seeded import Change, Seeded, call, never, wrapped


def _purge(name: str, parts: tuple[Part, ...], *, step_bytes: int, files: tuple[str, ...] = FEW) -> Course:
    def do(steps: Steps) -> None:
        for part in parts:
            steps.purge(part)

    replicas = (replica_of(part, "staged", "claimed", "gone", is_staged=True) for part in parts)
    return course_of(name, staged(*parts, files=files), do, *replicas, step_bytes=step_bytes)


def _purge_together(name: str, parts: tuple[Part, ...]) -> Course:
    """Their claims share a sync, and their removals."""

    def do(steps: Steps) -> None:
        steps.purge_judged({part: steps.open_dirs.marker(part) for part in parts})

    replicas = (replica_of(part, "staged", "claimed", "gone", is_staged=True) for part in parts)
    return course_of(name, staged(*parts, files=ONE), do, *replicas)


def _purge_after_a_killed_claim(name: str, *, is_recovered: bool) -> Course:
    """The successor of a process killed between its claim and the sync sees what is claimed, and removes it."""

    def do(steps: Steps) -> None:
        open_dir = steps.open_dirs.of(A)
        claimed = f"{A.place}.purging"
        with suppress(OSError):
            open_dir.deleting.rename(A.place, open_dir.deleting, claimed)
            if is_recovered:
                recover(open_dir)
                remove(open_dir, claimed, in_use=nobody)
            else:
                (outcome,) = remove_all(open_dir, [claimed], in_use=nobody)
                if outcome.error is not None:
                    # What is claimed stays claimed then, nothing is acknowledged. A kernel's calls are not recorded.
                    records = getattr(steps.host, "records", None)
                    assert records is None or any(made.errno for made in records), outcome.error
                    return
            # Whoever was killed had claimed it; that is said with the removal, not before.
            steps.reached[A.key] = 1
            steps.say(A, True)

    replica = replace(replica_of(A, "staged", "claimed", "gone", is_staged=True), is_claimed_before=True)
    return course_of(name, staged(A, files=ONE), do, replica)


def _claim_taken(name: str) -> Course:
    """The name of the claim is taken by an empty directory, over which a plain rename would go; another one goes."""
    host = staged(A, B, files=ONE)
    path = f"/d0/kafka.logdird/deleting/{A.place}.purging"
    host.plant(path, kind=Type.DIRECTORY, owner=OWNER)
    taken = replace(replica_of(A, "claimed"), key="taken", start=path, live="/nowhere")

    def do(steps: Steps) -> None:
        assert steps.claim(A, steps.open_dirs.marker(A)) is None
        steps.purge(B)

    gone = replica_of(B, "staged", "claimed", "gone", is_staged=True)
    return course_of(name, settled(host), do, replica_of(A, "staged", is_staged=True), taken, gone)


def _foreign(name: str) -> Course:
    """The marker is whole, and of another log dir of the host; one of this log dir is held."""
    host = start(A, B)
    with Sites(host) as open_dirs:
        for part, directory_id in ((A, DIRECTORIES[1]), (B, DIRECTORIES[0])):
            marker = replace(marker_for(open_dirs.of(part), part), directory_id=directory_id)
            assert stage(open_dirs.of(part), [StageItem(path=part.path, marker=marker)])[0].result is Result.DONE

    def do(steps: Steps) -> None:
        assert steps.claim(A, steps.open_dirs.marker(A)) is None
        item = RestoreItem(name=A.place, marker=steps.open_dirs.marker(A), path=A.path, drop_last_indexes=False)
        assert isinstance(restore(steps.open_dirs.of(A), item).error, RefusedError)
        assert isinstance(hold(steps.open_dirs.of(A), A.place).error, RefusedError)
        steps.hold(B)

    held = replica_of(B, "staged", "held", is_staged=True)
    op = course_of(name, settled(host), do, replica_of(A, "staged", is_staged=True), held)
    return op._replace(has_way_back=False)


def _draw(hands: Hands, seen: Seen) -> bool:
    if _draw_claimed(hands, seen):
        return True
    for aside, marker, token in hands.asides(seen):
        # Most are not due; the heartbeat is asked of the others.
        may_be = marker.delay_ms is not None and marker.boottime_ms + marker.delay_ms <= hands.now.boottime_ms
        if (may_be or hands.draw.random() < 0.1) and _is_due(hands, aside.open_dir, marker):
            hands.begin("purge", token=token, id=str(marker.topic_id), name=aside.name)
            remove(aside.open_dir, claim(aside.open_dir, aside.name, marker), in_use=in_use)
            hands.end("purge")
            return True
    return False


def _draw_claimed(hands: Hands, seen: Seen) -> bool:
    """Remove what is claimed already."""
    for aside in hands.draw.sample(seen.claimed, len(seen.claimed)):
        disk = hands.open_dirs.index(aside.open_dir)
        hands.begin("purge", token=None, id=str(aside.parts.topic_id), disk=disk, name=aside.name)
        remove(aside.open_dir, aside.name, in_use=in_use)
        hands.end("purge")
        return True
    return False


def _is_due(hands: Hands, open_dir: OpenLogDir, marker: ReplicaMarker) -> bool:
    return isinstance(due(marker, heartbeat.read(open_dir), hands.now), Due)


_IN_STEPS = "purge in steps on two disks"
_KILLED = "purge after a killed claim"
_BESIDE = "purge after a killed claim, beside a broker"
_COURSES: dict[str, MakeCourse] = {
    "claim where the name is taken": _claim_taken,
    "claim what came from another disk": _foreign,
    "purge a small one": partial(_purge, parts=(A,), step_bytes=8, files=ONE),
    "purge": partial(_purge, parts=(A,), step_bytes=4),
    "purge two together": partial(_purge_together, parts=(A, B)),
    "purge on two disks": partial(_purge, parts=(A, C), step_bytes=16, files=ONE),
    _IN_STEPS: partial(_purge, parts=(A, C), step_bytes=8, files=ONE),
    _KILLED: partial(_purge_after_a_killed_claim, is_recovered=True),
    _BESIDE: partial(_purge_after_a_killed_claim, is_recovered=False),
}
OPERATIONS = (
    Operation(
        name="purge",
        cases=cases(_COURSES),
        traits={
            Trait.RAW: (_KILLED, _BESIDE),
            Trait.LONG: ("purge", "purge on two disks", _IN_STEPS),
            Trait.LONG_ERRNOS: ("purge a small one",),
            Trait.LONG_CALLS: ("purge", _IN_STEPS),
            Trait.FIRST: ("purge", _IN_STEPS),
        },
        syncs=(
            Syncs(
                of=functions.PURGE_MODULE, cases=("purge a small one", "purge two together", _KILLED, _BESIDE), depth=2
            ),
            Syncs(of=functions.RECOVER_MODULE, cases=(_KILLED,), depth=2),
        ),
        draws=(Draw(kind="purge", do=_draw, home=_draw_claimed),),
        seeded=(
            Seeded(
                name="a rename that replaces",
                changes=(Change(functions.PURGE_CLAIM, wrapped(wrong.replacing)),),
                tried=("claim where the name is taken",),
                caught_by=frozenset({"plain"}),
            ),
            Seeded(
                name="a purge on a marker not read again",
                changes=(Change(functions.PURGE_JUDGED, never(call("RefusedError"))),),
                tried=("hold, then a claim decided before",),
                caught_by=frozenset({"K", "J", "B", "P", "DJ", "F", "FK"}),
            ),
            Seeded(
                name="a marker of another log dir is taken",
                changes=(Change(functions.REQUIRE_MARKER, never(call("RefusedError", nth=-1))),),
                tried=("claim what came from another disk", "--models", "K"),
                caught_by=frozenset({"plain"}),
            ),
            Seeded(
                name="removed without a claim",
                changes=(Change(functions.PURGE_CLAIM, wrapped(wrong.emptied_first)),),
                killed=("lost: ", "stuck: "),
            ),
        ),
    ),
)
"""The descriptor."""
