"""Decide which directories to capture: those that a broker renamed to ``-delete`` or ``-stray``.

The broker's own files are not changed, so neither other log dirs nor the cluster metadata matter. A ``-delete``
directory is kept for the delay of its topic. A ``-stray`` directory is held, and so is a ``-delete`` directory whose
name Kafka cut, because its topic is not known. On a nearly full disk nothing is captured: a capture keeps the space
that the broker would free. On a disk quarantined only as stale it is captured like on any other: a capture changes
nothing that lay there while the disk was away.

Not here: making the links (``disk.replica.capture``).

Spec: design §3.3; kafka-behaviour §3.2, §10.5; attacks A17, A25, A33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from logdir.decide.refusal import (
    READ_ONLY,
    Refusal,
    not_formatted,
    refuse,
    refuse_quarantined,
    refuse_untouched,
)
from logdir.decide.staged.deadline import DelayPolicy
from logdir.decide.stale_disk import STALE_DISK
from logdir.formats.own.inventory import Kind
from logdir.names import parse_partition_dir
from logdir.observe.facts import LogDirFacts, Replica, replicas_at
from logdir.paths import METADATA_TOPIC
from logdir.refusal_slug import Why

CAPTURABLE = (Kind.DELETE, Kind.STRAY)
"""``-delete`` first, because a broker removes it soon."""
LEAST_FREE_PERCENT = 10
"""``staged.min.free``: minimum percentage of free bytes, and of free inodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRoom:
    """Free space of a disk."""

    free_bytes: int
    total_bytes: int
    free_inodes: int
    total_inodes: int
    """0: the file system creates inodes on demand."""
    least_free_percent: int = LEAST_FREE_PERCENT
    """``staged.min.free``."""
    fs_id: int = 0
    """The same for all log dirs on one file system; 0: not known."""

    @property
    def lacking(self) -> tuple[tuple[str, int, int], ...]:
        """What is scarce: ``bytes`` or ``inodes``, how many are free, and how many there are."""
        counted = (("bytes", self.free_bytes, self.total_bytes), ("inodes", self.free_inodes, self.total_inodes))
        return tuple(one for one in counted if one[1] * 100 < one[2] * self.least_free_percent)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """A request to capture directories."""

    selected: tuple[tuple[str, str], ...]
    """Log dir as configured, and path relative to it."""
    delays: DelayPolicy
    is_held: bool = False
    """Whether no capture gets a deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One directory to capture; the input of ``disk.replica.capture``."""

    replica: Replica
    delay_ms: int | None
    """``None``: held."""
    why: str
    """Why it is held; if it has a deadline, from when on it is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturePlan:
    """The plan; each selected directory is in exactly one of actions and refusals."""

    actions: tuple[Capture, ...]
    """``-delete`` before ``-stray``."""
    refusals: tuple[Refusal, ...]


def plan_capture(
    request: CaptureRequest, facts: Sequence[LogDirFacts], rooms: Mapping[str, CaptureRoom]
) -> CapturePlan:
    """Decide which directories to capture.

    Args:
        request: The request.
        facts: Facts of every configured log dir.
        rooms: Free space of every log dir that has a work root and answers.
    """
    known = replicas_at(facts, request.selected)
    actions: list[Capture] = []
    refusals: list[Refusal] = []
    for place in dict.fromkeys(request.selected):
        if place not in known:
            found = "no such directory: its broker has removed it, or taken it back"
            fix = "logdirctl describe lists the replicas on all disks"
            refusals.append(refuse(*place, Why.NOT_FOUND, "a -delete or -stray directory", found, fix))
            continue
        one, replica = known[place]
        refusal = _against(one, replica, rooms.get(replica.log_dir))
        if refusal is None:
            actions.append(_action(request, replica))
        else:
            refusals.append(refusal)
    actions.sort(key=lambda action: CAPTURABLE.index(action.replica.kind))
    return CapturePlan(actions=tuple(actions), refusals=tuple(refusals))


def _against(one: LogDirFacts, replica: Replica, room: CaptureRoom | None) -> Refusal | None:
    where = replica.log_dir, replica.path
    if replica.ref.topic == METADATA_TOPIC or replica.kind is Kind.METADATA:
        return refuse(*where, Why.METADATA_LOG, "a topic's replica", "the metadata log of the quorum", READ_ONLY)
    quarantined = None if one.quarantined is not None and one.quarantined.slug == STALE_DISK else one.quarantined
    if (refusal := refuse_quarantined(*where, quarantined) or refuse_untouched(replica)) is not None:
        return refusal
    if (problem := not_formatted(one)) is not None:
        return Refusal(log_dir=replica.log_dir, path=replica.path, why=Why.NOT_FORMATTED, problem=problem)
    if replica.unexpected_entries:
        expected = "nothing in it but regular files"
        return refuse(
            *where,
            Why.UNEXPECTED_ENTRY,
            expected,
            ", ".join(replica.unexpected_entries),
            "inspect what is named, and move it away",
        )
    if room is None:
        expected = "a log dir that answers, with a work root"
        return refuse(
            *where,
            Why.NO_WORK_ROOT,
            expected,
            "a log dir without a work root",
            "if its disk is not mounted, mount it; else logdirctl init makes a work root",
        )
    return _against_room(replica, room)


def _against_room(replica: Replica, room: CaptureRoom) -> Refusal | None:
    for what, free, total in room.lacking:
        return refuse(
            replica.log_dir,
            replica.path,
            Why.LOW_SPACE,
            f"at least {room.least_free_percent} % of the {what} of its disk free",
            f"{free} of {total}",
            "free space first: what is captured keeps the space that its broker would free",
        )
    return None


def _action(request: CaptureRequest, replica: Replica) -> Capture:
    parts = parse_partition_dir(replica.path)
    if replica.kind is Kind.STRAY:
        return Capture(replica=replica, delay_ms=None, why="held: no broker removes a -stray")
    if parts is None or parts.is_truncated:
        why = "held: Kafka shortened the directory's name, and its topic is not known"
        return Capture(replica=replica, delay_ms=None, why=why)
    if request.is_held:
        return Capture(replica=replica, delay_ms=None, why="held: without a deadline, as the operator requests")
    return Capture(
        replica=replica, delay_ms=request.delays.delay_ms(parts.topic), why="kept once its broker has removed it"
    )
