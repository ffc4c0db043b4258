"""The small records of a work root: whole or as before, durable before the staging.

Spec: design §2 laws 1, 2, §3.3, §4; attacks A24, A38, A43.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from logdir.clock import Instant
from logdir.disk.kernel.small_file import read_file, replace_file
from logdir.disk.record import controller, handover, heartbeat, staging_limit
from logdir.disk.replica.staging import StageItem, stage
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.formats.own import controller_file, handover_file, heartbeat_file, staging_limit_file
from logdir.formats.own.controller_file import ControllerFile, MetadataMark
from logdir.formats.own.staging_limit_file import Count
from tests.builders import CLUSTER
from tests.crash.enumerate import State
from tests.crash.model import ModelHost
from tests.crash.recording import Acks
from tests.crash.starts import FILE, LOG_STARTS, ONE, A, C, Sites, marker_for, start
from tests.crash.steps import recover_all
from tests.crash.tree import World
from tests.operations import functions, wrong
from tests.operations.case import DONE, Case, after, readable, seen
from tests.operations.operation import Make, Operation, Written
from tests.operations.seeded import Change, Seeded, wrapped

_DISKS = ("/d0/kafka", "/d1/kafka")
_COUNTS = (Count(instant_ms=5, partitions=9, topics=2),)
_MORE = (*_COUNTS, Count(instant_ms=6, partitions=1, topics=1))


def instant(boottime_ms: int) -> Instant:
    """Return a moment of one boot."""
    return Instant(boot_id="one", boottime_ms=boottime_ms, wall_ms=1_800_000_000_000, is_synchronised=True)


def _each(host: ModelHost, do: Callable[[OpenLogDir], object]) -> None:
    with Sites(host) as open_dirs:
        for log_dir in _DISKS:
            do(open_dirs.at(log_dir))


Bytes = Mapping[str, bytes | None]
"""The content of a file, by log dir."""


def _same(data: bytes | None) -> Bytes:
    return dict.fromkeys(_DISKS, data)


def _judged(name: str, before: Bytes, data: Bytes, found: World, acks: Acks, there: Collection[str]) -> list[str]:
    """Return what is wrong with a file of every work root whose disk is there: each has to hold it by itself."""
    files = found.files()
    wrong = []
    for log_dir in (log_dir for log_dir in _DISKS if log_dir.rpartition("/")[0] in there):
        said = files.get(f"{log_dir}.logdird/{name}")
        if said not in ((data[log_dir],) if DONE in acks else (before[log_dir], data[log_dir])):
            wrong.append(f"lost: {name} of {log_dir} is neither as it was nor as it was to be")
    return wrong


def _case(
    name: str, begun: ModelHost, file: str, old: bytes | None, new: bytes, write: Callable[[ModelHost], None]
) -> Case:
    """Write a file of the same content into every root, then stage."""
    return _case_of(name, begun, file, _same(old), _same(new), write)


def _case_of(
    name: str, begun: ModelHost, file: str, before: Bytes, data: Bytes, write: Callable[[ModelHost], None]
) -> Case:
    """Write a file into every root, then stage: nothing is staged in a world in which that did not stay."""

    def run(host: ModelHost, acks: Acks) -> None:
        write(host)
        acks.ack(DONE)
        with Sites(host) as open_dirs:
            open_dir = open_dirs.of(A)
            (outcome,) = stage(open_dir, [StageItem(path=A.path, marker=marker_for(open_dir, A))])
            assert outcome.error is None

    def judge(start: World, state: State, acks: Acks) -> list[str]:
        there = readable(state)
        wrong = [
            line
            for world in (state.crashed, state.recovered)
            for line in _judged(file, before, data, world, acks, there)
        ]
        if any("/deleting/" in path for path in seen(state.crashed)):
            wrong += [f"uncounted: {line}" for line in _judged(file, data, data, state.crashed, acks, there)]
        return wrong

    return Case(name, begun, run, recover_all, judge)


def _staging_limit(name: str, *, is_new: bool) -> Case:
    first = start(A, C, files=ONE)
    if is_new:
        write = partial(_each, do=staging_limit.begin)
        return _case(name, first, staging_limit_file.FILE_NAME, None, staging_limit_file.render(()), write)

    def record(host: ModelHost, counts: tuple[Count, ...]) -> None:
        with Sites(host) as open_dirs:
            staging_limit.write_record([open_dirs.at(log_dir) for log_dir in _DISKS], counts)

    begun = after(first, partial(record, counts=_COUNTS))
    before, data = staging_limit_file.render(_COUNTS), staging_limit_file.render(_MORE)
    return _case(name, begun, staging_limit_file.FILE_NAME, before, data, partial(record, counts=_MORE))


def _controller(name: str, *, is_new: bool) -> Case:
    first = start(A, C, files=ONE)
    begin = partial(_each, do=controller.begin)
    known = controller_file.begin(CLUSTER, 1)
    before = controller_file.render(known)
    if is_new:
        return _case(name, first, controller_file.FILE_NAME, None, before, begin)

    def record(host: ModelHost, mark: ControllerFile) -> None:
        with Sites(host) as open_dirs:
            controller.write_record([open_dirs.at(log_dir) for log_dir in _DISKS], mark)

    used = replace(known, metadata=MetadataMark(epoch=3, offset=70))
    data = controller_file.render(used)
    return _case(name, after(first, begin), controller_file.FILE_NAME, before, data, partial(record, mark=used))


def _heartbeat(name: str, *, is_new: bool) -> Case:
    first = start(A, C, files=ONE)
    begin = partial(_each, do=lambda open_dir: heartbeat.begin(open_dir, instant(1000)))
    begun = after(first, begin)
    before = _read(begun, heartbeat_file.FILE_NAME)
    if is_new:
        return _case(name, first, heartbeat_file.FILE_NAME, None, before, begin)
    beat = partial(_each, do=lambda open_dir: heartbeat.beat(open_dir, instant(61_000)))
    data = _read(after(begun, beat), heartbeat_file.FILE_NAME)
    assert data != before
    return _case(name, begun, heartbeat_file.FILE_NAME, before, data, beat)


def _handover(name: str, *, is_new: bool) -> Case:
    first = start(A, C, files=ONE)
    hand_over = partial(_each, do=lambda open_dir: handover.keep(open_dir, instant(1000)))
    begun = after(first, hand_over)
    before = _read(begun, handover_file.FILE_NAME)
    if is_new:
        return _case(name, first, handover_file.FILE_NAME, None, before, hand_over)
    again = partial(_each, do=lambda open_dir: handover.keep(open_dir, instant(61_000)))
    data = _read(after(begun, again), handover_file.FILE_NAME)
    assert data != before
    return _case(name, begun, handover_file.FILE_NAME, before, data, again)


def _after_a_failed_start(name: str) -> Case:
    """Two files of the broker are empty: the copy that is made then does not replace the one that was made before."""
    first = start(A, C, files=ONE)

    def start_with(data: bytes, host: ModelHost) -> None:
        with Sites(host) as open_dirs:
            top = open_dirs.of(A).top
            replace_file(top, LOG_STARTS, data, before=read_file(top, LOG_STARTS), owner=FILE, work=top, keep=False)

    def hand_over(boottime_ms: int, host: ModelHost) -> None:
        _each(host, lambda open_dir: handover.keep(open_dir, instant(boottime_ms)))

    begun = after(first, partial(start_with, b"0\n1\na 0 9\n"))
    handed = after(begun, partial(hand_over, 1000))
    emptied = after(handed, partial(start_with, b"0\n0\n"))
    again = partial(hand_over, 61_000)
    before, data = (_all(host, handover_file.FILE_NAME) for host in (emptied, after(emptied, again)))
    (lost,) = (one for one in _DISKS if len(handover_file.parse(data[one] or b"").copies) == 2)
    kept = handover_file.parse(data[lost] or b"").copies
    assert [copy.checkpoints[LOG_STARTS] for copy in kept] == [b"0\n0\n", b"0\n1\na 0 9\n"]
    return _case_of(name, emptied, handover_file.FILE_NAME, before, data, again)


def _all(host: ModelHost, name: str) -> Bytes:
    with Sites(host) as open_dirs:
        return {log_dir: read_file(open_dirs.at(log_dir).work, name) for log_dir in _DISKS}


def _read(host: ModelHost, name: str) -> bytes:
    with Sites(host) as open_dirs:
        data = read_file(open_dirs.at(_DISKS[0]).work, name)
    assert data is not None
    return data


_RECORDS: dict[str, dict[str, Make]] = {
    "staging limit": {
        "staging limit begun": partial(_staging_limit, is_new=True),
        "staging limit, then stage": partial(_staging_limit, is_new=False),
    },
    "last applied": {
        "controller begun": partial(_controller, is_new=True),
        "controller, then stage": partial(_controller, is_new=False),
    },
    "heartbeat": {
        "heartbeat begun": partial(_heartbeat, is_new=True),
        "heartbeat, then stage": partial(_heartbeat, is_new=False),
    },
    "handover": {
        "first handover, then stage": partial(_handover, is_new=True),
        "handover, then stage": partial(_handover, is_new=False),
        "handover after a failed start, then stage": _after_a_failed_start,
    },
}
_SEEDED = {
    "staging limit": (
        Seeded(
            name="a staging limit counted on one disk only",
            changes=(Change(functions.LIMIT_WRITE, wrapped(wrong.on_first_only)),),
            tried=("staging limit, then stage", "--models", "KJBP"),
            caught_by=frozenset({"K", "J", "B", "P"}),
        ),
    )
}
OPERATIONS = tuple(
    Operation(
        name=name,
        family="records",
        cases=made,
        on_kernels=(),
        files={name: Written(cases=tuple(reversed(made)))},
        seeded=_SEEDED.get(name, ()),
    )
    for name, made in _RECORDS.items()
)
"""The descriptors, one of each record."""
