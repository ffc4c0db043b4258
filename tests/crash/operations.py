"""The operations whose crashes are enumerated: on what each starts, what it does, and what ``oracle`` is to expect.

Each starts on log dirs that hold everything there is to lose: partition directories with files of Kafka and of nobody,
checkpoints, strangers. The process is root, the log dirs belong to somebody else: what is made must be given away.

Not here: what must hold (``oracle``), crashing (``enumerate``).

Spec: reliability §4.4; design §3.3.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

from logdir.disk.kernel.small_file import remove_file, replace_file
from logdir.disk.recover_log_dir import recover
from logdir.disk.replica.outcome import Result
from logdir.disk.replica.purge import claim
from logdir.disk.replica.staging import RestoreItem, StageItem, hold, restore, stage
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import RefusedError
from logdir.formats.own import replica_marker
from logdir.formats.own.replica_marker import Checkpoints, Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.observe.classify import Type
from tests.crash.killed_before import hold_after_a_killed_hold, hold_after_a_killed_stage, purge_after_a_killed_claim
from tests.crash.model import ModelHost
from tests.crash.starts import (
    A_BY_ID,
    C_BY_ID,
    CLEANER,
    DIRECTORIES,
    FEW,
    FILE,
    FILES,
    LOG_STARTS,
    NO_POINTS,
    ONE,
    OTHER_ID,
    OWNER,
    POINTS,
    A,
    B,
    C,
    Part,
    Sites,
    marker_for,
    settled,
    staged,
    start,
)
from tests.crash.steps import Operation, Steps, operation_of, replica_of

POINTS_HELD = Checkpoints(log_start=3, cleaner=4)


def _stage(name: str, parts: tuple[Part, ...], files: tuple[str, ...] = FEW) -> Operation:
    host = start(*parts, files=files)
    return operation_of(name, host, lambda s: s.stage(*parts), *(replica_of(part, "live", "staged") for part in parts))


def _restored(part: Part) -> dict[str, tuple[bytes | None, bytes | None, str]]:
    """Return what restoring it does to two checkpoints: one that is there, one that is not."""
    said = f"{part.key} reached 1"
    entry = f"{part.topic} {part.partition}"
    return {
        f"{part.log_dir}/{LOG_STARTS}": (POINTS, f"0\n2\nother 0 5\n{entry} 3\n".encode(), said),
        f"{part.log_dir}/{CLEANER}": (None, f"0\n1\n{entry} 4\n".encode(), said),
    }


def _restore(name: str, part: Part, *, made: bool = False, points: Checkpoints = POINTS_HELD) -> Operation:
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

    return operation_of(
        name,
        host,
        do,
        replica_of(part, "staged", "live", drops=FEW[:1], is_staged=True),
        files=_restored(part) if points == POINTS_HELD else {},
        directories=frozenset({f"{part.log_dir}/{prefix}"} if prefix else ()),
    )


def _hold(name: str) -> Operation:
    return operation_of(name, staged(A), lambda s: s.hold(A), replica_of(A, "staged", "held", is_staged=True))


def _purge(name: str, parts: tuple[Part, ...], *, step_bytes: int, files: tuple[str, ...] = FEW) -> Operation:
    def do(steps: Steps) -> None:
        for part in parts:
            steps.purge(part)

    replicas = (replica_of(part, "staged", "claimed", "gone", is_staged=True) for part in parts)
    return operation_of(name, staged(*parts, files=files), do, *replicas, step_bytes=step_bytes)


def _purge_together(name: str, parts: tuple[Part, ...]) -> Operation:
    """Their claims share a sync, and their removals."""

    def do(steps: Steps) -> None:
        steps.purge_judged({part: steps.open_dirs.marker(part) for part in parts})

    replicas = (replica_of(part, "staged", "claimed", "gone", is_staged=True) for part in parts)
    return operation_of(name, staged(*parts, files=ONE), do, *replicas)


def _replace(name: str, file: str, before: bytes | None, after: bytes | None) -> Operation:
    def do(steps: Steps) -> None:
        open_dir = steps.open_dirs.at("/d0/kafka")
        with suppress(OSError):
            if after is None:
                remove_file(open_dir.top, file)
            else:
                replace_file(
                    open_dir.top, file, after, before=before, owner=open_dir.owner.for_file(), work=open_dir.work
                )
            steps.acks.ack("file reached 1")

    files = {f"/d0/kafka/{file}": (before, after, "file reached 1")}
    return operation_of(name, start(A), do, replica_of(A, "live"), files=files)


def _stage_restore(name: str) -> Operation:
    def do(steps: Steps) -> None:
        steps.stage(A)
        if steps.reached:
            steps.restore(A, drop=True)

    return operation_of(name, start(A), do, replica_of(A, "live", "staged", "live", drops=FEW[:1]))


def _stage_hold_purge(name: str) -> Operation:
    def do(steps: Steps) -> None:
        steps.stage(B)
        if steps.reached.get(B.key) == 1:
            steps.hold(B)
        if steps.reached.get(B.key) == 2:
            steps.purge(B)

    return operation_of(name, start(B, files=ONE), do, replica_of(B, "live", "staged", "held", "claimed", "gone"))


def _stage_again(name: str) -> Operation:
    """A batch after one that was stopped: its markers are there, half or whole, and not durable."""

    def do(steps: Steps) -> None:
        with suppress(OSError), steps.open_dirs.of(A).top.open(A.path) as directory:
            directory.write("replica.json", b"half", FILE)
        steps.stage(A)

    return operation_of(name, start(A), do, replica_of(A, "live", "staged"))


def _recover(name: str) -> Operation:
    """Recovery as an operation: a live marker, one a broker renamed away, half of a new one, an unfinished copy."""
    host = staged(B)
    stray = f"d-0.{32 * 'c'}-stray"
    for path, data in (
        ("kafka/a-0/00000000000000000000.log", b"live"),
        ("kafka/a-0/replica.json", b"half a mar"),
        (f"kafka/{stray}/00000000000000000000.log", b"renamed away"),
        (f"kafka/{stray}/replica.json", b"half a mar"),
        (f"kafka.logdird/deleting/{B.place}/replica.new.json", b"half a mar"),
    ):
        host.plant(f"/d0/{path}", data, owner=FILE)
    copy = f"/d0/kafka.logdird/incoming/{C.place}"
    host.plant(f"{copy}/00000000000000000000.log", b"half a cop", owner=FILE)
    with Sites(host) as open_dirs, open_dirs.of(A).incoming.open(C.place) as directory:
        marker = replace(
            marker_for(open_dirs.of(B), A), intent=Intent.INCOMING, topic="c", topic_id=TopicId.parse(OTHER_ID)
        )
        marker = replace(marker, partition=2, birth_inode=directory.own_stat().inode)
        directory.write("replica.json", replica_marker.render(marker), FILE)
    unfinished = replace(replica_of(C._replace(disk=0), "gone"), start=copy)
    return operation_of(
        name,
        settled(host),
        lambda s: _recover_quietly(s.open_dirs.at("/d0/kafka")),
        replica_of(A._replace(topic_id=None), "live"),
        replica_of(B, "staged", is_staged=True),
        replace(replica_of(Part(0, "d"), "live"), start=f"/d0/kafka/{stray}", live=f"/d0/kafka/{stray}"),
        unfinished,
    )


def _recover_quietly(open_dir: OpenLogDir) -> None:
    recover(open_dir)


def _interleavings(*actors: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield every order of all steps in which each actor's own stay in order."""
    if not any(actors):
        yield ()
    for number, steps in enumerate(actors):
        if steps:
            rest = [other if at != number else other[1:] for at, other in enumerate(actors)]
            yield from ((steps[0], *order) for order in _interleavings(*rest))


def _race(name: str, order: tuple[str, ...]) -> Operation:
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
    return operation_of(name, staged(A, files=ONE), do, replica_of(A, *course, is_staged=True))


def _hold_before_claim(name: str) -> Operation:
    """The purge was decided before the operator held it."""

    def do(steps: Steps) -> None:
        marker = steps.open_dirs.marker(A)
        steps.hold(A)
        if steps.reached:
            with suppress(RefusedError):
                claim(steps.open_dirs.of(A), A.place, marker)

    return operation_of(name, staged(A), do, replica_of(A, "staged", "held", is_staged=True))


def _claim_taken(name: str) -> Operation:
    """The name of the claim is taken by an empty directory, over which a plain rename would go; another one goes."""
    host = staged(A, B, files=ONE)
    path = f"/d0/kafka.logdird/deleting/{A.place}.purging"
    host.plant(path, kind=Type.DIRECTORY, owner=OWNER)
    taken = replace(replica_of(A, "claimed"), key="taken", start=path, live="/nowhere")

    def do(steps: Steps) -> None:
        assert steps.claim(A, steps.open_dirs.marker(A)) is None
        steps.purge(B)

    gone = replica_of(B, "staged", "claimed", "gone", is_staged=True)
    return operation_of(name, settled(host), do, replica_of(A, "staged", is_staged=True), taken, gone)


def _restore_taken(name: str) -> Operation:
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
    return operation_of(name, settled(host), do, *replicas, files=starts)._replace(has_way_back=False)


def _foreign(name: str) -> Operation:
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
    op = operation_of(name, settled(host), do, replica_of(A, "staged", is_staged=True), held)
    return op._replace(has_way_back=False)


_RACES = _interleavings(("R sees", "restore"), ("P sees", "claim", "remove"))
_NEW = b"0\n1\nother 0 6\n"
FACTORIES: dict[str, Callable[[str], Operation]] = {
    "stage 1": partial(_stage, parts=(A,), files=tuple(FILES)),
    "stage 2": partial(_stage, parts=(A, B)),
    "stage 3 on two disks": partial(_stage, parts=(A, B, C)),
    "stage 2 by id": partial(_stage, parts=(A_BY_ID, C_BY_ID)),
    "stage over a marker": _stage_again,
    "restore": partial(_restore, part=A),
    "restore by id": partial(_restore, part=A_BY_ID),
    "restore into a prefix somebody began": partial(_restore, part=A_BY_ID, made=True),
    "restore what no checkpoint named": partial(_restore, part=A_BY_ID, made=True, points=NO_POINTS),
    "restore where something lives": _restore_taken,
    "hold": _hold,
    "hold after a killed stage": hold_after_a_killed_stage,
    "hold after a killed hold": hold_after_a_killed_hold,
    "hold, then a claim decided before": _hold_before_claim,
    "claim where the name is taken": _claim_taken,
    "claim what came from another disk": _foreign,
    "purge a small one": partial(_purge, parts=(A,), step_bytes=8, files=ONE),
    "purge": partial(_purge, parts=(A,), step_bytes=4),
    "purge two together": partial(_purge_together, parts=(A, B)),
    "purge on two disks": partial(_purge, parts=(A, C), step_bytes=16, files=ONE),
    "purge in steps on two disks": partial(_purge, parts=(A, C), step_bytes=8, files=ONE),
    "purge after a killed claim": partial(purge_after_a_killed_claim, is_recovered=True),
    "purge after a killed claim, beside a broker": partial(purge_after_a_killed_claim, is_recovered=False),
    "replace a file": partial(_replace, file=LOG_STARTS, before=POINTS, after=_NEW),
    "make a file": partial(_replace, file=CLEANER, before=None, after=_NEW),
    "remove a file": partial(_replace, file=LOG_STARTS, before=POINTS, after=None),
    "stage; restore": _stage_restore,
    "stage; hold; purge": _stage_hold_purge,
    "recover": _recover,
    **{f"race: {', '.join(order)}": partial(_race, order=order) for order in _RACES},
}
"""Name to what makes it."""
CUT_SHORT = (
    "stage over a marker",
    "purge after a killed claim",
    "purge after a killed claim, beside a broker",
    "hold after a killed stage",
    "hold after a killed hold",
)
"""What begins with the bare calls of a process that was stopped: nobody makes them again, be the disk full."""
_NAMED = ", named at once"
"""Of the same where a file has its name first: killed in the making, it is there, in part, and root's (A9)."""


def _named_at_once(name: str) -> Operation:
    one = FACTORIES[name.removesuffix(_NAMED)](name)
    world = one.start.world()
    volumes = tuple(volume._replace(makes_unnamed=False) for volume in world.volumes)
    expected = replace(one.expected, is_named_at_once=True)
    return one._replace(name=name, start=ModelHost(world._replace(volumes=volumes)), expected=expected)


FACTORIES |= {
    f"{name}{_NAMED}": _named_at_once
    for name in ("stage 1", "stage 2", "restore", "hold", "make a file", "stage; restore")
}


@functools.cache
def operation(name: str) -> Operation:
    """Return the operation of this name."""
    return FACTORIES[name](name)


def operations() -> tuple[Operation, ...]:
    """Return all of them."""
    return tuple(map(operation, FACTORIES))
