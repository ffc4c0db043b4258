"""Restore decisions: the kind of restore of each staged replica, then an action or a refusal.

Rename: the id is known to be still assigned here; the directory is renamed back. Adopt: the id is removed; a re-created
topic can adopt the files. Export: the files are copied to a place outside. Only a rename is an action of this module. A
replica whose assignment is not known is renamed only with an override, one whose id is known to be removed never.

Every configured log dir is scanned: a broker stops at a replica that exists twice, and would promote a ``-future``
directory over the restored one.

Not here: carrying it out (``disk.replica.staging``), adopting and exporting.

Spec: design §3.3 "Restore"; kafka-behaviour §2.5, §10.4, §10.5, §10.6; attacks A13, A15, A16, A25, A36, A43, A47.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from logdir.decide.image.still_assigned import Assigned, ClusterState, StillAssigned, assignment_of, remedy
from logdir.decide.log_start import within
from logdir.decide.refusal import (
    CHOOSE,
    FINISH_COPY,
    FINISH_MOVE,
    Refusal,
    at,
    refuse,
    refuse_marker,
    refuse_quarantined,
)
from logdir.decide.staged.own_marker import refuse_foreign
from logdir.errors import InvalidNameError
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import BY_HAND, Checkpoints, Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.names import (
    DirForm,
    is_prefix,
    name_for,
    parse_id_dir,
    parse_partition_dir,
)
from logdir.observe.facts import LogDirFacts, ReplicaIndex, StagedReplica
from logdir.paths import DELETING
from logdir.refusal_slug import Why
from logdir.replica_ref import ReplicaRef


class RestoreKind(Enum):
    """The ways to restore a staged replica."""

    RENAME = "rename"
    ADOPT = "adopt"
    EXPORT = "export"


_SAYS = {
    RestoreKind.RENAME: "rename",
    RestoreKind.ADOPT: (
        "adopt: create the topic again with as many partitions, stop every broker of its replicas, then run "
        "logdirctl staged adopt on each: a follower restored alone truncates to an empty leader at once"
    ),
    RestoreKind.EXPORT: "export: logdirctl staged export copies the files to a place outside the log dirs",
}
A_BROKER_DOES = (
    "a broker of 3.7 or later renames it -stray at its start, one of 3.6 or earlier erases it within about a minute"
)
"""What a broker does to a renamed directory whose topic id is removed (kafka-behaviour §10.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRequest:
    """A request to restore staged replicas."""

    selected: tuple[tuple[str, str], ...]
    """Log dir as configured, and name under ``deleting/``."""
    cluster: ClusterState
    """The cluster state about them."""
    is_choice: bool = False
    """Whether the operator chose these among several copies."""
    is_even_if_unknown: bool = False
    """Whether to rename a replica whose assignment is not known; never one whose id is known to be removed."""
    log_ends: Mapping[tuple[str, str], int | None] = field(default_factory=dict)
    """The offset after the last record of those whose log start is known; ``None``: it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """An action: restore one replica; the input of ``disk.replica.staging``."""

    log_dir: str
    name: str
    """Its name under ``deleting/``."""
    marker: ReplicaMarker
    path: str
    """Its future live path, relative to the log dir."""
    drop_last_indexes: bool
    kind: RestoreKind
    detail: str
    """Its restore kind and the evidence, shown before any change."""

    checkpoints: Checkpoints
    """The entries of the checkpoint files that it gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """The plan; each selected item is in exactly one of actions and refusals."""

    actions: tuple[Restore, ...]
    """In the order of the log dirs, then of names."""
    refusals: tuple[Refusal, ...]


def restore_kind_of(assigned: Assigned) -> RestoreKind:
    """Return the best restore kind of a staged replica; if its assignment is not known, a rename may be refused."""
    match assigned:
        case Assigned.HERE | Assigned.UNKNOWN:
            return RestoreKind.RENAME
        case Assigned.GONE:
            return RestoreKind.ADOPT
        case Assigned.NOT_HERE:
            return RestoreKind.EXPORT


def plan_restore(request: RestoreRequest, facts: Sequence[LogDirFacts]) -> RestorePlan:
    """Decide which replicas to restore.

    Args:
        request: The request.
        facts: Facts of every configured log dir, in the configured order, scanned under all locks.
    """
    known = ReplicaIndex(facts)
    actions: list[Restore] = []
    refusals: list[Refusal] = []
    by_place = {
        (one.log_dir, item.name): (one, item) for one in facts for item in one.staged if item.kind is not Kind.INCOMING
    }
    order = {one.log_dir: number for number, one in enumerate(facts)}
    selected = sorted(set(request.selected), key=lambda place: (order.get(place[0], len(order)), place))
    for log_dir, name in selected:
        found = by_place.get((log_dir, name))
        if found is None:
            missing = "no such directory"
            where = _where(log_dir, name)
            decided: Restore | Refusal | None = _against_disks(facts, *where) or refuse(
                *where, Why.NOT_FOUND, "a staged replica", missing, "logdirctl staged ls lists those of every log dir"
            )
        else:
            decided = _decide(request, facts, known, *found)
        if isinstance(decided, Refusal):
            refusals.append(decided)
        elif decided is not None:
            actions.append(decided)
    plan = _without_rivals(actions, refusals)
    places = {where: item.place for where, (_, item) in by_place.items()}
    return replace(plan, refusals=tuple(_at_place(places, one) for one in plan.refusals))


def _where(log_dir: str, name: str) -> tuple[str, str]:
    """Return log dir, and path relative to its work root, of a staged replica."""
    return log_dir, f"{DELETING}/{name}"


def _at_place(places: Mapping[tuple[str, str], str], refusal: Refusal) -> Refusal:
    place = places.get((refusal.log_dir, refusal.path.rpartition("/")[2]))
    return refusal if place is None else at(place, refusal)


def _without_rivals(actions: Sequence[Restore], refusals: Sequence[Refusal]) -> RestorePlan:
    """Refuse all actions that would restore two replicas of one name, or of one id and partition."""
    claims: dict[tuple[str | TopicId, int], list[Restore]] = {}
    for action in actions:
        for key in _claimed(action.marker):
            claims.setdefault(key, []).append(action)
    kept = []
    more = []
    for action in actions:
        rivals = {
            f"{one.log_dir}: {one.name}" for key in _claimed(action.marker) for one in claims[key] if one is not action
        }
        if not rivals:
            kept.append(action)
            continue
        found = f"also {' and '.join(sorted(rivals))}"
        more.append(refuse(*_where(action.log_dir, action.name), Why.AMBIGUOUS, "one copy of it", found, CHOOSE))
    return RestorePlan(actions=tuple(kept), refusals=(*refusals, *more))


def _claimed(marker: ReplicaMarker) -> tuple[tuple[str | TopicId, int], ...]:
    known = (marker.topic,) if marker.topic_id is None else (marker.topic, marker.topic_id)
    return tuple((one, marker.partition) for one in known)


def _decide(
    request: RestoreRequest, facts: Sequence[LogDirFacts], known: ReplicaIndex, one: LogDirFacts, item: StagedReplica
) -> Restore | Refusal:
    where = _where(item.log_dir, item.name)
    if (quarantined := refuse_quarantined(*where, one.quarantined)) is not None:
        return quarantined
    if item.kind is Kind.PURGING:
        return refuse(
            *where,
            Why.PURGING,
            "a staged replica",
            "its removal has begun: parts of it are gone",
            "logdirctl staged purge finishes it",
        )
    marker = item.marker
    if marker is None or item.problem is not None:
        return refuse_marker(*where, item.problem)
    refusal = (
        _against_disks(facts, *where)
        or _against_marker(facts, one, item, marker)
        or _against_twins(known, item, marker)
        or _against_copies(request, known, item)
    )
    if refusal is not None:
        return refusal
    assignment = assignment_of(request.cluster, item)
    return _against_assignment(request, item, assignment) or _restore(request, one, item, marker, assignment)


def _against_disks(facts: Sequence[LogDirFacts], log_dir: str, path: str) -> Refusal | None:
    for other in facts:
        if other.problem is not None:
            return refuse(
                log_dir,
                path,
                Why.LOG_DIR_UNREADABLE,
                "every configured log dir readable: one of them may hold it live",
                f"{other.problem.path}: {other.problem.found}",
                f"mount or repair {other.log_dir} first",
            )
    return None


def _against_marker(
    facts: Sequence[LogDirFacts], one: LogDirFacts, item: StagedReplica, marker: ReplicaMarker
) -> Refusal | None:
    where = _where(item.log_dir, item.name)
    if (foreign := refuse_foreign(one, item, marker)) is not None:
        return foreign
    if _may_be_cut(marker):
        found = f"{marker.topic}, which Kafka may have cut in the name {marker.path}"
        fix = "logdirctl staged adopt gives it to a re-created topic, or logdirctl staged export copies it"
        return refuse(*where, Why.TOPIC_NAME_UNKNOWN, "the whole name of its topic", found, fix)
    path = live_path(marker)
    if path is None:
        expected = "a path of its own topic and partition"
        return refuse(*where, Why.FOREIGN_MARKER, expected, marker.path, BY_HAND)
    # A log dir without replicas has the layout of the others: no stock broker starts beside topic-id directories.
    layouts = sorted({each.layout for each in ((one,) if one.layout != "empty" else facts)} - {"empty"})
    if layouts and ("topic-id" if "/" in path else "topic-name") not in layouts:
        found = f"a path of the other layout, {path}"
        fix = "logdirctl layout rollback takes the live replicas to topic names: restore it after that"
        if "/" in path:
            fix = "logdirctl staged export copies it; it lay under its topic id, and is restored into that layout only"
        expected = f"the {one.layout} layout, that of the log dir"
        if one.layout == "empty":
            expected = f"the {' and '.join(layouts)} layout, that of the other log dirs"
        return refuse(*where, Why.LAYOUT_DIFFERS, expected, found, fix)
    return None


def live_path(marker: ReplicaMarker) -> str | None:
    """Return the future live path of a staged replica, relative to its log dir.

    Returns:
        ``None`` if the path in its marker does not fit its topic, id and partition, or its whole topic name is not
        known: a name that Kafka may have cut is not the topic.
    """
    prefix, slash, name = marker.path.rpartition("/")
    if slash:
        parsed = parse_id_dir(name)
        is_own = parsed is not None and (parsed.topic_id, parsed.partition) == (marker.topic_id, marker.partition)
        return marker.path if is_own and is_prefix(prefix) and name.startswith(prefix) else None
    parts = parse_partition_dir(name)
    if parts is None or parts.partition != marker.partition or parts.form is DirForm.FUTURE:
        return None
    if _may_be_cut(marker):
        return None
    try:
        # If Kafka cut the name, the marker has the whole topic, from which Kafka derives this name.
        if name_for(marker.topic, parts.partition, parts.form, parts.unique) != name:
            return None
        return name_for(marker.topic, marker.partition, DirForm.CURRENT)
    except InvalidNameError:
        return None


def _may_be_cut(marker: ReplicaMarker) -> bool:
    """Whether the topic in a marker may be only a part, because Kafka cut the name of the directory."""
    parts = parse_partition_dir(marker.path)
    return parts is not None and parts.is_truncated and marker.topic == parts.topic


def _identity(item: StagedReplica, marker: ReplicaMarker) -> ReplicaRef:
    return ReplicaRef(topic=marker.topic, topic_id=marker.topic_id or item.ref.topic_id, partition=marker.partition)


def _id_words(topic_id: TopicId | None) -> str:
    return "without a topic id" if topic_id is None else f"id {topic_id}"


def _against_twins(known: ReplicaIndex, item: StagedReplica, marker: ReplicaMarker) -> Refusal | None:
    where = _where(item.log_dir, item.name)
    identity = _identity(item, marker)
    live = known.replicas(identity, Kind.LIVE)
    if live:
        found = " and ".join(f"{one.log_dir}/{one.path} ({_id_words(one.ref.topic_id)})" for one in live)
        by_id = "" if marker.topic_id is None else f" or {marker.topic_id}_{marker.partition}"
        expected = f"no live {marker.topic}-{marker.partition}{by_id} on any disk"
        return refuse(
            *where,
            Why.LIVE_REPLICA_EXISTS,
            expected,
            found,
            "a broker does not start with two replicas of a partition; stage the live one first",
        )
    futures = known.replicas(identity, Kind.FUTURE)
    if futures:
        found = " and ".join(f"{one.log_dir}/{one.path}" for one in futures)
        return refuse(*where, Why.FUTURE_REPLICA_EXISTS, "no -future of it on any disk", found, FINISH_MOVE)
    coming = known.staged(identity, Kind.INCOMING)
    if coming:
        found = " and ".join(one.place for one in coming)
        return refuse(*where, Why.INCOMING, "no incoming copy of it", found, FINISH_COPY)
    return None


def _against_copies(request: RestoreRequest, known: ReplicaIndex, item: StagedReplica) -> Refusal | None:
    copies = [one for one in known.staged(item.ref, Kind.STAGED) if one is not item]
    # A replica of the same name with another id belongs to another topic; it is no copy.
    copies = [one for one in copies if one.ref.topic_id == item.ref.topic_id]
    if not copies or request.is_choice:
        return None
    found = " and ".join(one.place for one in copies)
    expected = "one staged copy of it, or the operator's choice"
    return refuse(*_where(item.log_dir, item.name), Why.AMBIGUOUS, expected, f"also {found}", CHOOSE)


def _against_assignment(request: RestoreRequest, item: StagedReplica, found: StillAssigned) -> Refusal | None:
    where = _where(item.log_dir, item.name)
    expected = "a replica that is known to be still assigned here"
    either = f"{_SAYS[RestoreKind.ADOPT]}; or {_SAYS[RestoreKind.EXPORT]}"
    match found.state:
        case Assigned.HERE:
            return None
        case Assigned.GONE:
            fix = f"{A_BROKER_DOES}; {either}"
            return refuse(*where, Why.TOPIC_GONE, expected, f"its topic id is gone: {found.why}", fix)
        case Assigned.NOT_HERE:
            fix = f"{A_BROKER_DOES}; {_SAYS[RestoreKind.EXPORT]}"
            return refuse(*where, Why.NOT_ASSIGNED_HERE, expected, found.why, fix)
        case Assigned.UNKNOWN:
            if request.is_even_if_unknown:
                return None
            source = remedy(request.cluster, "name a newer source with --from or --high-watermark")
            fix = (
                f"if its topic id is gone, {A_BROKER_DOES}; {source}, "
                f"or rename it back all the same with --even-if-unknown"
            )
            return refuse(*where, Why.ASSIGNMENT_UNKNOWN, expected, found.why, fix)


def _restore(
    request: RestoreRequest, one: LogDirFacts, item: StagedReplica, marker: ReplicaMarker, assignment: StillAssigned
) -> Restore:
    path = live_path(marker)
    if path is None:
        raise ValueError(f"refused before: {marker.path}")
    detail = f"{_SAYS[RestoreKind.RENAME]}: {assignment.why}"
    if assignment.state is not Assigned.HERE:
        detail += f"; if its topic id is gone, {A_BROKER_DOES}"
    if marker.tiered:
        detail += "; the local part only: the rest lay in remote storage"
    points = marker.checkpoints
    end = request.log_ends.get((item.log_dir, item.name))
    # A capture may know the log start of an earlier topic of that name; what was staged had its own when it was live.
    if end is not None or marker.intent is Intent.CAPTURED:
        points, left_out = within(points, end)
        detail += left_out
    return Restore(
        log_dir=item.log_dir,
        name=item.name,
        marker=marker,
        path=path,
        # Without Kafka's clean marker a broker rebuilds the indexes itself; with it, it would trust zeros.
        drop_last_indexes=not marker.clean and one.has_clean_marker,
        kind=RestoreKind.RENAME,
        checkpoints=points,
        detail=detail,
    )
