"""A small file of Kafka or of ours: replaced, made and removed, whole or not at all; and what the soak writes to.

Spec: design §2 law 9; reliability §4.2 "new file"; attacks A9, A10.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from logdir.disk.kernel.small_file import remove_file, replace_file
from logdir.disk.record import heartbeat, staging_limit
from logdir.disk.record.checkpoints import put_back_log_starts, set_entries
from logdir.formats.kafka.offset_checkpoint import TopicPartition
from logdir.formats.own.replica_marker import Checkpoints
from logdir.formats.own.staging_limit_file import Count
from tests.crash.soak.hands import Hands
from tests.crash.soak.seen import Seen
from tests.crash.starts import CLEANER, LOG_STARTS, POINTS, A, start
from tests.crash.steps import Course, MakeCourse, Steps, cases, course_of, named_at_once, replica_of
from tests.operations import functions, wrong
from tests.operations.operation import Draw, Operation, Syncs, Trait
from tests.operations.seeded import Change, Seeded, wrapped

_ENTRIES_OF = TopicPartition("other", 7)
_NEW = b"0\n1\nother 0 6\n"


def _replace(name: str, file: str, before: bytes | None, after: bytes | None) -> Course:
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
    return course_of(name, start(A), do, replica_of(A, "live"), files=files)


def _put_back(name: str) -> Course:
    """Log starts that a failed start lost are written back, beside the entries that are there."""
    wanted = {TopicPartition("a", 0): 9, _ENTRIES_OF: 4}

    def do(steps: Steps) -> None:
        with suppress(OSError):
            put_back_log_starts(steps.open_dirs.at("/d0/kafka"), wanted)
            steps.acks.ack("file reached 1")

    end = b"0\n3\nother 0 5\na 0 9\nother 7 4\n"
    path = f"/d0/kafka/{LOG_STARTS}"
    return course_of(name, start(A), do, replica_of(A, "live"), files={path: (POINTS, end, "file reached 1")})


def _draw(hands: Hands, seen: Seen) -> bool:
    """Write one of Kafka's checkpoints, the heartbeat, or the record of the staging limit."""
    number = hands.draw.randrange(len(hands.open_dirs))
    open_dir = hands.open_dirs[number]
    match hands.draw.randrange(3):
        case 0:
            fields = ("recovery_point", "log_start", "high_watermark", "cleaner")
            offsets = {name: hands.draw.randrange(1, 10**6) for name in fields}
            hands.begin("file", what="entries", disk=number, offsets=offsets)
            with hands.locked():
                set_entries(open_dir, _ENTRIES_OF, Checkpoints(**offsets))
        case 1:
            hands.begin("file", what="heartbeat", disk=number, seen_ms=hands.now.boottime_ms)
            assert heartbeat.beat(open_dir, hands.now) is not None
        case _:
            count = Count(instant_ms=hands.now.wall_ms, partitions=hands.draw.randrange(1, 10**6), topics=1)
            hands.begin("file", what="staging-limit", partitions=count.partitions)
            staging_limit.write_record(hands.open_dirs, (count,))
    hands.end("file")
    return True


_COURSES: dict[str, MakeCourse] = {
    "replace a file": partial(_replace, file=LOG_STARTS, before=POINTS, after=_NEW),
    "make a file": partial(_replace, file=CLEANER, before=None, after=_NEW),
    "remove a file": partial(_replace, file=LOG_STARTS, before=POINTS, after=None),
    "put log starts back": _put_back,
}
_NAMED = named_at_once(_COURSES, "make a file")
OPERATIONS = (
    Operation(
        name="small file",
        cases=cases({**_COURSES, **_NAMED}),
        traits={Trait.NEEDS_NO_ROOM: ("remove a file",), Trait.ALIKE: tuple(_NAMED)},
        on_kernels=tuple(_COURSES),
        syncs=(Syncs(of=functions.SMALL_FILE_MODULE, cases=tuple(_COURSES), depth=2),),
        draws=(Draw(kind="file", do=_draw),),
        seeded=(
            Seeded(
                name="the owner is set after the final name",
                changes=(
                    Change(functions.WRITE_FILE, wrapped(wrong.of_nobody)),
                    Change(functions.REPLACE_FILE, wrapped(wrong.given_late)),
                ),
                tried=("make a file", "--models", "KJBPD"),
                caught_by=frozenset({"K", "J", "B", "P", "DJ"}),
            ),
        ),
    ),
)
"""The descriptor."""
