"""List staged replicas: until when each can be undone, and what keeps it from being purged. Only reads.

Spec: design §3.3, §6.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeVar

from logdir import evidence
from logdir.clock import Instant
from logdir.decide.image.position import highest
from logdir.decide.image.still_assigned import Assigned, StillAssigned, assignment_of
from logdir.decide.refusal import refuse_marker
from logdir.decide.selector import Selector, parse
from logdir.decide.staged import age
from logdir.decide.staged.age import Age
from logdir.decide.staged.deadline import Due, Held, NotYet, due
from logdir.decide.staged.listing import early_words, selector_to_restore, why_listed, with_words
from logdir.decide.staged.purge_recheck import against_purge
from logdir.decide.staged.removal_reason import RemovalReason, removal_reason
from logdir.decide.staged.restore import RestoreKind, restore_kind_of
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.record import controller, heartbeat
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import ForeignLogDirError, LogDirError, NoWorkRootError, Problem
from logdir.evidence import Evidence
from logdir.formats.own.controller_file import ControllerFile
from logdir.formats.own.heartbeat_file import Heartbeat
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Intent
from logdir.observe.facts import LogDirFacts, ReplicaIndex, StagedReplica
from logdir.paths import DELETING, WORK_ROOT_FILE
from logdir.reasons import Reason
from logdir.replica_ref import ReplicaRef
from logdir.service.batch.purge_recheck import Looked, recheck
from logdir.service.cluster.cluster_state import require_source
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.host import unformatted
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.log_dirs.ports import BrokerPorts, connected
from logdir.service.log_dirs.quarantine import quarantine_of
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.json_form import HIDDEN
from logdir.service.report.selection import nothing_selected
from logdir.service.report.staged import staged_replicas
from logdir.service.report.table import Column
from logdir.text import size, utc
from logdir.worker.look import NOTHING

COUNTING, DUE, HELD, PURGING, INCOMING, BROKEN = "counting", "due", "held", "purging", "incoming", "broken"
"""The states of a staged replica in the listing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedItem:
    """One staged replica, as a line of the listing."""

    log_dir: str
    path: str
    """Its path, relative to its work root."""
    name: str = field(metadata=HIDDEN)
    state: str
    ref: ReplicaRef
    log_bytes: int | None
    reason: Reason | None
    """``None`` if there is no marker, as for every field from the marker."""
    evidence: Evidence | None
    removal: RemovalReason | None
    """Why its broker had deleted a captured replica, by the cluster metadata; ``None``: it was not captured."""
    staged_at_ms: int | None
    age: Age | None = field(default=None, metadata=HIDDEN)
    """For people; ``None``: it is not known."""
    delay_ms: int | None
    tiered: bool | None
    undo_until_ms: int | None
    """Wall clock; ``None``: without a deadline, or it cannot be undone any more."""
    restore: RestoreKind | None
    """The best possible kind of restore; ``None``: it cannot be restored."""
    assigned: Assigned | None
    """Whether it is still assigned here; ``None`` if that was not checked."""
    log_end: int | None
    """The offset after its last record; ``None`` if it was not requested or cannot be read."""
    detail: str
    """The evidence for ``assigned``, why the replica is held, and what would change that."""
    problem: Problem | None
    """Why its marker cannot be used."""

    @classmethod
    def of(
        cls,
        item: StagedReplica,
        state: str,
        detail: str,
        undo_until_ms: int | None = None,
        restore: RestoreKind | None = None,
        assigned: Assigned | None = None,
        removal: RemovalReason | None = None,
    ) -> StagedItem:
        """Return the line of a staged replica."""
        marker = item.marker
        return cls(
            log_dir=item.log_dir,
            path=item.path,
            name=item.name,
            state=state,
            ref=item.ref,
            log_bytes=item.log_bytes,
            log_end=None,
            reason=None if marker is None else marker.reason,
            evidence=None if marker is None else marker.evidence,
            removal=removal,
            staged_at_ms=None if marker is None else marker.staged_at_ms,
            delay_ms=None if marker is None else marker.delay_ms,
            tiered=None if marker is None else marker.tiered,
            undo_until_ms=undo_until_ms,
            restore=restore,
            assigned=assigned,
            detail=detail,
            problem=item.problem,
        )


_ASSIGNED: Final = {
    Assigned.HERE: "still assigned",
    Assigned.NOT_HERE: "not here",
    Assigned.GONE: "gone",
    Assigned.UNKNOWN: "not known",
}
COLUMNS: Final[tuple[Column[StagedItem], ...]] = (
    Column("topic", lambda one: one.ref.topic or "?"),
    Column("p", "ref.partition", is_number=True),
    Column("id", "ref.topic_id"),
    Column("bytes", lambda one: size(one.log_bytes), is_number=True),
    Column("age", lambda one: age.words(one.age), is_number=True),
    Column("reason", lambda one: one.removal or one.reason or "?"),
    Column("evidence", lambda one: "?" if one.evidence is None else evidence.words(one.evidence)),
    Column("assigned", lambda one: None if one.assigned is None else _ASSIGNED[one.assigned]),
    Column("restore", "restore"),
    Column("undo until (UTC)", lambda one: utc(one.undo_until_ms) if one.state == COUNTING else one.state),
    Column("disk", "log_dir"),
    Column("name", "name"),
    Column("detail", "detail"),
)
"""The table of the listing, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedListingRequest:
    """A request to list staged replicas."""

    broker: BrokerRequest
    source: SourceRequest
    selector: str | None = None
    """The replicas; ``None``: all."""
    are_ends_wanted: bool = False
    """Whether to read the log end offset of each replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedListing:
    """The staged replicas of one broker, and what is known of its log dirs."""

    items: tuple[StagedItem, ...]
    problems: tuple[Problem, ...] = field(metadata=HIDDEN)
    is_whole: bool = field(metadata=HIDDEN)
    """Whether every log dir and every work root was read."""
    is_root_missing: bool = field(metadata=HIDDEN)
    """Whether a log dir has no whole work root."""
    to_restore: str | None = field(metadata=HIDDEN)
    """The selector of the ``staged restore`` to type next; ``None``: it could restore nothing, and lead to nothing."""
    cluster_id: str | None
    """Cluster id of the log dirs; ``None`` if they do not all name the same one."""
    node_id: int | None
    """Node id of the log dirs; ``None`` if they do not all name the same one."""
    broker_runs: bool | None
    """Whether a broker runs on the log dirs; ``None``: no ``.lock`` file of Kafka's can be read."""


_KINDS = Kind.STAGED, Kind.PURGING, Kind.INCOMING


def list_staged(asked: StagedListingRequest) -> StagedListing:
    """List the staged replicas of every log dir of a broker; only reads.

    Raises:
        ConfigError: the broker, the source or the selector is invalid.
        LogDirError: a source that the operator named cannot be read.
    """
    selector = None if asked.selector is None else parse(asked.selector)
    require_source(asked.source)
    with connected(asked.broker) as ports:
        return _list(asked, selector, ports)


def _list(asked: StagedListingRequest, selector: Selector | None, ports: BrokerPorts) -> StagedListing:
    facts = ports.look(NOTHING)
    items = staged_replicas(facts, selector, *_KINDS)
    unread = [one.log_dir for one in facts if one.problem is not None]
    roots, now = read_roots(ports, unread), read_instant()
    # Without staged replicas the cluster metadata is not needed.
    source = _committed(asked, facts) if items else asked.source
    looked = recheck(source, ports, facts, roots.last_applied, is_past_needed=True) if items else None
    facts = tuple(replace(one, quarantined=roots.quarantined.get(one.log_dir)) for one in facts)
    known = ReplicaIndex(facts)
    lines = [] if looked is None else [listed(one, roots.beats.get(one.log_dir), now, looked, known) for one in items]
    if asked.are_ends_wanted:
        lines = [replace(line, log_end=log_end_of(ports, item)) for line, item in zip(lines, items, strict=False)]
    blank = unformatted(facts)
    # A log dir that is not formatted has no work root, either: report that only once.
    of_roots = [one for one in roots.problems if (one.slug, one.path) not in {(it.slug, it.path) for it in blank}]
    problems = [*of_roots, *(one.problem for one in facts if one.problem is not None), *blank]
    # After an interrupted purge the marker may already be missing.
    problems += [item.problem for item in items if item.problem is not None and item.kind is not Kind.PURGING]
    if selector is not None and not items:
        problems.append(nothing_selected(selector.text, "staged ls", staged_replicas(facts, None, *_KINDS)))
    runs = _is_running(ports)
    return StagedListing(
        items=tuple(lines),
        # A log dir may have stopped answering after its replicas were read, at its lock or at a log.
        problems=tuple(ports.with_notes(problems)),
        is_whole=roots.is_whole and not unread,
        is_root_missing=any(
            one.slug == NoWorkRootError.code
            or (one.path.endswith(f"/{WORK_ROOT_FILE}") and one.slug != ForeignLogDirError.code)  # as init does
            for one in problems
        ),
        to_restore=None if looked is None else selector_to_restore(items, looked.cluster, facts),
        cluster_id=_only({one.cluster_id for one in facts}),
        node_id=_only({one.node_id for one in facts}),
        broker_runs=runs,
    )


def _committed(asked: StagedListingRequest, facts: Sequence[LogDirFacts]) -> SourceRequest:
    """Return the source, up to the high watermark of the quorum where the configuration has a client for it."""
    path = asked.broker.client_properties
    if path is None:
        return asked.source
    from logdir.service.cluster.live_source import committed_source

    return committed_source(asked.source, path, _only({one.cluster_id for one in facts}))


_T = TypeVar("_T")


def _only(found: set[_T]) -> _T | None:
    return found.pop() if len(found) == 1 else None


def _is_running(ports: BrokerPorts) -> bool | None:
    found = ports.running()
    return None if isinstance(found, Problem) else found


def log_end_of(ports: BrokerPorts, item: StagedReplica) -> int | None:
    """Return the offset after the last record of a staged replica; ``None`` if it cannot be read."""
    if item.kind is Kind.PURGING:
        return None
    return ports.log_end(item.log_dir, item.root or item.log_dir, item.path)


class Roots(NamedTuple):
    """The records in the work roots of a broker."""

    beats: dict[str, Heartbeat | None]
    """Heartbeats by log dir; ``None`` if there is no readable one."""
    last_applied: ControllerFile | None
    """The last applied position of the cluster metadata."""
    problems: list[Problem]
    """Which work roots are missing, and which log dirs may not be changed."""
    quarantined: dict[str, Problem]
    """By log dir: why it may not be changed."""
    is_whole: bool
    """Whether every work root was read."""


def read_roots(ports: BrokerPorts, unread: Collection[str] = ()) -> Roots:
    """Read the records in the work roots of a broker.

    Args:
        ports: Of the broker.
        unread: Log dirs that are known to be unreadable.
    """
    beats: dict[str, Heartbeat | None] = {}
    problems: list[Problem] = []
    quarantined: dict[str, Problem] = {}
    open_dirs: dict[str, OpenLogDir] = {}
    last_applied: list[ControllerFile | None] = []
    for log_dir, pending in ports.begin_roots(is_start_block_allowed=True):
        beats[log_dir] = None
        try:
            with map_os_errors(log_dir):
                open_dir = pending.result().open_dir
                beats[log_dir] = heartbeat.read(open_dir)
                last_applied += controller.read_records([open_dir])
                open_dirs[log_dir] = open_dir
        except LogDirError as error:
            if log_dir not in unread:
                problems.append(error.problem())
    try:
        with map_os_errors(ports.named.log_dirs[0]):
            quarantined = ports.on_all(open_dirs, quarantine_of)
            problems += quarantined.values()
    except LogDirError as error:
        problems.append(error.problem())
    named = ports.named
    whole = last_applied if len(last_applied) == len(named.log_dirs) else [None]
    return Roots(beats, highest(whole), problems, quarantined, len(open_dirs) == len(named.log_dirs))


def listed(
    item: StagedReplica, beat: Heartbeat | None, now: Instant, looked: Looked, known: ReplicaIndex
) -> StagedItem:
    """Return the line of one staged replica in the listing.

    Args:
        item: The replica.
        beat: The heartbeat of its log dir.
        now: The current instant.
        looked: The cluster metadata.
        known: Index of the replicas of every log dir.
    """
    line, marker = _line_of(item, beat, now, looked, known), item.marker
    # The clocks in a marker that does not fit may be those of another host.
    return line if marker is None or item.problem is not None else replace(line, age=age.age_of(marker, beat, now))


def _line_of(
    item: StagedReplica, beat: Heartbeat | None, now: Instant, looked: Looked, known: ReplicaIndex
) -> StagedItem:
    marker = item.marker
    if item.kind is Kind.PURGING:
        return StagedItem.of(item, PURGING, "its removal has begun")
    if marker is None or item.problem is not None:
        held = refuse_marker(item.log_dir, f"{DELETING}/{item.name}", item.problem)
        return StagedItem.of(item, BROKEN, f"held: {held.problem.reason()}")
    if item.kind is Kind.INCOMING:
        part = "partial capture: its broker removed files meanwhile; logdirctl staged export copies what was captured"
        return StagedItem.of(item, INCOMING, part if item.is_partial else "a copy that is being made, or was cut off")
    assignment = assignment_of(looked.cluster, item)
    removal = removal_reason(looked.look, item, known) if marker.intent is Intent.CAPTURED else None
    if removal is RemovalReason.MOVED_AWAY and assignment.state is Assigned.GONE:
        assignment = StillAssigned(Assigned.NOT_HERE, "another broker has it in sync, or another disk has it live")
    restore = restore_kind_of(assignment.state)
    gate = against_purge(looked.look, item, known)
    when = due(marker, beat, now)
    words = ""
    if isinstance(when, Held):
        gate, words = with_words(gate, looked.look, item, marker, known)
    about = why_listed(item, assignment, gate, looked.cluster)
    until: int | None = None
    match when:
        case Due() if gate is None:
            state, until, why = DUE, now.wall_ms, f"may be purged at any time; {about}"
        case Due():
            state, why = HELD, about
        case NotYet(at_earliest_wall_ms=at_ms):
            early = early_words(gate, looked.look, item, marker, known)
            state, until, why = COUNTING, at_ms, "; ".join(filter(None, (about, early)))
        case Held(why=found):
            state, why = HELD, "; ".join(filter(None, (about, found, words))) if gate is None else about
    return StagedItem.of(item, state, why, until, restore, assignment.state, removal)
