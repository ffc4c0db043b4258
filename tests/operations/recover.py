"""Recovery of one log dir as an operation of its own.

Spec: design §2 laws 2, 3, §3.3; attacks A8, A11, A17.
"""

from __future__ import annotations

from dataclasses import replace

from logdir.disk.recover_log_dir import recover
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.formats.own import replica_marker
from logdir.formats.own.replica_marker import Intent
from logdir.ids import TopicId
from tests.crash.starts import FILE, OTHER_ID, A, B, C, Part, Sites, marker_for, settled, staged
from tests.crash.steps import Course, cases, course_of, replica_of
from tests.operations import functions
from tests.operations.operation import Operation, Syncs, Trait
from tests.operations.seeded import Change, Seeded, call, drop


def _recover(name: str) -> Course:
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
    return course_of(
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


OPERATIONS = (
    Operation(
        name="recover",
        cases=cases({"recover": _recover}),
        traits={Trait.AT_WORK: ("recover",), Trait.NEEDS_NO_ROOM: ("recover",), Trait.GOES_ON: ("recover",)},
        syncs=(Syncs(of=functions.RECOVER_MODULE, cases=("recover",), depth=2),),
        seeded=(
            Seeded(
                name="recovery rests on what is not durable",
                changes=(Change(functions.RECOVER, drop(call("sync_disk"))),),
                tried=("purge after a killed claim", "--models", "JBP"),
                caught_by=frozenset({"P"}),
            ),
            Seeded(
                name="recovery leaves the marker of what is live",
                changes=(Change(functions.RECOVER_UNMARK, drop(call("clear_marker"))),),
                killed=("stuck: ",),
            ),
        ),
    ),
)
"""The descriptor."""
