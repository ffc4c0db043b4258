"""What was decided on an older look at the disk, and is done after somebody else changed it: a hung process answers.

A worker that hangs is given up, its successor looks again and goes on; what the first had decided may still be done
when its disk answers. The guard is that everything reads again what it was decided on, under the locks, before it
changes anything. Also here: a sweep that purges what is due, by the disk's own clock, and nothing else.

Each shares the oracle of one replica and one file.

Spec: design §2 laws 1, 6, §3.3; attacks A18, A24, A40; ClickHouse's and Kafka's deadlines in reliability §2.2.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from logdir.clock import Instant
from logdir.decide.staged.deadline import Due, due
from logdir.disk.kernel.small_file import replace_file
from logdir.disk.record import heartbeat
from logdir.disk.replica.outcome import Result
from logdir.disk.replica.staging import RestoreItem, StageItem, restore, stage
from logdir.errors import RefusedError
from tests.crash.model import ModelHost
from tests.crash.starts import FILE, LOG_STARTS, ONE, OWNER, POINTS, A, B, C, Sites, marker_for, staged, start
from tests.crash.steps import Course, MakeCourse, Steps, cases, course_of, replica_of
from tests.operations import functions, wrong
from tests.operations.case import settled
from tests.operations.operation import Operation, Trait
from tests.operations.seeded import Change, Seeded, call, never, wrapped

_HOUR_MS = 60 * 60 * 1000
_NEW = b"0\n1\nother 0 6\n"
_LATE = b"0\n1\nother 0 7\n"


def _now(host: ModelHost) -> Instant:
    return Instant(boot_id=host.boot_id, boottime_ms=host.boottime_ms(), wall_ms=host.now_ms(), is_synchronised=True)


def _sweep(name: str) -> Course:
    """Of three that are staged one is due, one is not, and one has no deadline; all their files are years old."""
    delays = {A: _HOUR_MS // 2, B: 4 * _HOUR_MS, C: None}
    host = start(*delays, files=ONE)
    now = _now(host)
    with Sites(host) as open_dirs:
        for part, delay_ms in delays.items():
            open_dir = open_dirs.of(part)
            if heartbeat.read(open_dir) is None:
                heartbeat.begin(open_dir, now)
            marker = replace(
                marker_for(open_dir, part),
                delay_ms=delay_ms,
                staged_at_ms=now.wall_ms,
                boot_id=now.boot_id,
                boottime_ms=now.boottime_ms,
            )
            assert stage(open_dir, [StageItem(path=part.path, marker=marker)])[0].result is Result.DONE

    def do(steps: Steps) -> None:
        for part in delays:
            marker = steps.open_dirs.marker(part)
            if isinstance(due(marker, heartbeat.read(steps.open_dirs.of(part)), _now(steps.host)), Due):
                steps.purge(part)

    courses = {A: ("staged", "claimed", "gone"), B: ("staged",), C: ("held",)}
    replicas = (
        replace(
            replica_of(part, *course, is_staged=True),
            deadline=(now.wall_ms, delays[part], now.boot_id, now.boottime_ms),
        )
        for part, course in courses.items()
    )
    return course_of(name, settled(host), do, *replicas)


def _late_stage(name: str) -> Course:
    """It was staged by a successor, and its broker made it anew: that one is another."""

    def do(steps: Steps) -> None:
        open_dir = steps.open_dirs.of(A)
        late = StageItem(path=A.path, marker=marker_for(open_dir, A))
        steps.stage(A)
        if not steps.reached:
            return
        with suppress(OSError):
            open_dir.top.make(A.path, OWNER)
            with open_dir.top.open(A.path) as directory:
                directory.write(ONE[0], b"made anew", FILE)
            stage(open_dir, [late])

    one = course_of(name, start(A, files=ONE), do, replica_of(A, "live", "staged"))
    return one._replace(has_way_back=False)


def _late_restore(name: str) -> Course:
    """An operator held it since."""

    def do(steps: Steps) -> None:
        marker = steps.open_dirs.marker(A)
        steps.hold(A)
        if steps.reached:
            restore(
                steps.open_dirs.of(A), RestoreItem(name=A.place, marker=marker, path=A.path, drop_last_indexes=False)
            )

    return course_of(name, staged(A, files=ONE), do, replica_of(A, "staged", "held", is_staged=True))


def _late_purge(name: str) -> Course:
    """Of two that go together an operator held one since."""

    def do(steps: Steps) -> None:
        judged = {part: steps.open_dirs.marker(part) for part in (A, B)}
        steps.hold(A)
        if steps.reached:
            steps.purge_judged(judged)

    held, gone = ("staged", "held"), ("staged", "claimed", "gone")
    replicas = (replica_of(part, *course, is_staged=True) for part, course in ((A, held), (B, gone)))
    return course_of(name, staged(A, B, files=ONE), do, *replicas)


def _late_file(name: str) -> Course:
    """Somebody wrote it since."""

    def do(steps: Steps) -> None:
        open_dir = steps.open_dirs.at("/d0/kafka")

        def put(data: bytes) -> None:
            with suppress(OSError):
                replace_file(
                    open_dir.top, LOG_STARTS, data, before=POINTS, owner=open_dir.owner.for_file(), work=open_dir.work
                )
                steps.acks.ack("file reached 1")

        put(_NEW)
        if "file reached 1" in steps.acks:
            with suppress(RefusedError):
                put(_LATE)

    files: dict[str, tuple[bytes | None, bytes | None, str]] = {
        f"/d0/kafka/{LOG_STARTS}": (POINTS, _NEW, "file reached 1")
    }
    return course_of(name, start(A, files=ONE), do, replica_of(A, "live"), files=files)


_STAGE = "stage decided before it was made anew"
_RESTORE = "restore decided before it was held"
_FILE = "file decided on before another wrote it"
_ANY = frozenset({"K", "J", "B", "P", "DJ"})
_COURSES: dict[str, MakeCourse] = {
    "sweep of what is due": _sweep,
    _STAGE: _late_stage,
    _RESTORE: _late_restore,
    "purge of two decided before one was held": _late_purge,
    _FILE: _late_file,
}


def _obeyed(what: str, function: str, case: str) -> Seeded:
    """Return the bug that goes on with what was decided on an older look: what was asked again is not asked."""
    return Seeded(
        name=f"the late answer of a hung worker obeyed: it {what}",
        changes=(Change(function, never(call("RefusedError"))),),
        tried=(case, "--models", "KJBPD"),
        caught_by=_ANY,
    )


OPERATIONS = (
    Operation(
        name="decided late",
        family="late",
        cases=cases(_COURSES),
        traits={Trait.PREPARED: (_STAGE,)},
        on_kernels=(),
        seeded=(
            Seeded(
                name="a deadline taken from times of change",
                changes=(Change(functions.READ_MARKER, wrapped(wrong.timed_by_change)),),
                tried=("sweep of what is due", "--models", "KJBPD"),
                caught_by=_ANY,
            ),
            Seeded(
                name="a deadline taken from times of change within a boot",
                changes=(Change(functions.READ_MARKER, wrapped(wrong.timed_by_change_in_boot)),),
                killed=("early: ",),
            ),
            _obeyed("stages", functions.STAGE_MARK, _STAGE),
            _obeyed("restores", functions.RESTORE, _RESTORE),
            _obeyed("writes a file", functions.REPLACE_FILE, _FILE),
        ),
    ),
)
"""The descriptor."""
