"""Adoption on one stopped broker: which of its staged replicas replace which re-created replicas, or why they do not.

The cluster metadata must answer three questions: the id and the replicas of the adopting topic; whether that id is
*known* to be still assigned here; whether the old id is known to be removed. If one of the last two answers is not
known, the operator must override (``--even-if-unknown``), and the staged directory is kept: a broker of 3.6 or earlier
erases a log whose id is removed. A re-created topic already has a replica here, with the new id: that replica is
replaced, and staged itself.

Not here: the replicas of other brokers (``adopt``), carrying it out (``disk.replica.adopt``).

Spec: design §3.3 "Restore"; kafka-behaviour §10.4, §10.5; attacks A13, A16, A25, A33, A43, A47.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from logdir.clock import Instant
from logdir.cluster.image import Image
from logdir.decide.adopt import Adopt, AdoptPlan, AdoptRequest, StagedFiles, plan_adopt
from logdir.decide.image.still_assigned import Assigned, ClusterState, assignment_of, remedy
from logdir.decide.log_start import within
from logdir.decide.new_topic import NewTopic, image_naming, no_topic, topic_of
from logdir.decide.refusal import (
    FINISH_MOVE,
    Refusal,
    at,
    refuse,
    refuse_marker,
    refuse_quarantined,
)
from logdir.decide.stage import Stage, StageRequest, stage_one
from logdir.decide.staged.deadline import DelayPolicy
from logdir.decide.staged.own_marker import refuse_foreign
from logdir.errors import Problem
from logdir.evidence import Proof, Removed
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Checkpoints, ReplicaMarker
from logdir.ids import TopicId
from logdir.names import DirForm, name_for
from logdir.observe.facts import LogDirFacts, Replica, ReplicaIndex, StagedReplica
from logdir.paths import DELETING
from logdir.reasons import Reason
from logdir.refusal_slug import Why
from logdir.replica_ref import ReplicaRef

_LAYOUTS = frozenset(("topic-name", "empty"))
Place = tuple[str, str]
"""Log dir, and path relative to its work root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptHereRequest:
    """A request to adopt staged replicas of one stopped broker for a re-created topic."""

    selected: tuple[Place, ...]
    as_topic: str
    """The adopting topic, by its current name."""
    cluster: ClusterState
    node_id: int
    now: Instant
    log_ends: Mapping[Place, int | None]
    """Log end offsets of the selected replicas."""
    others: tuple[StagedFiles, ...] = ()
    """The staged replicas in the listings of other brokers."""
    brokers: Mapping[int, bool] = field(default_factory=dict)
    """Node ids of the brokers of ``others``, and whether each was stopped when it was listed."""
    delays: DelayPolicy = field(default_factory=DelayPolicy)
    is_even_if_unknown: bool = False
    """Whether to adopt although it is not known that the new id is still assigned here, or that the old one
    is removed.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptHere:
    """An action: make one staged replica of this broker live; the input of ``disk.replica.adopt``."""

    log_dir: str
    name: str
    """Its name under ``deleting/``."""
    marker: ReplicaMarker
    topic: str
    topic_id: TopicId
    present: Stage
    """The replica that the broker created for the new topic, and the marker for staging it."""
    is_kept: bool
    """Whether the staged directory stays, because it is not known that a broker keeps the live copy."""
    checkpoints: Checkpoints
    """The checkpoint entries that it gets: a broker deletes every record of a log that ends before its log start."""
    detail: str
    """What the action replaces by what, in words for the operator."""

    @property
    def place(self) -> Place:
        """Return the log dir of the staged replica, and its path relative to the work root."""
        return self.log_dir, f"{DELETING}/{self.name}"

    @property
    def path(self) -> str:
        """Return the name that the replica gets in the log dir."""
        return name_for(self.topic, self.marker.partition, DirForm.CURRENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptHerePlan:
    """The plan of this broker; each selected replica is in exactly one of actions and refusals."""

    actions: tuple[AdoptHere, ...]
    """By partition."""
    refusals: tuple[Refusal, ...]
    whole: AdoptPlan | None
    """The plan over all brokers; ``None`` if a disk cannot be read or changed, or the new topic is not known."""
    topic: NewTopic | None


def plan_adopt_here(request: AdoptHereRequest, facts: Sequence[LogDirFacts]) -> AdoptHerePlan:
    """Decide which replicas this broker adopts.

    Args:
        request: The request.
        facts: Facts of every configured log dir, scanned under all locks, with the topic's live replicas opened.
    """
    staged = {(item.log_dir, item.path): (one, item) for one in facts for item in one.staged}
    found = [(place, *staged[place]) for place in request.selected if place in staged]
    refusals = [_gone(place) for place in request.selected if place not in staged]
    problem = _against_disks(facts)
    image = image_naming(request.cluster, request.as_topic)
    if problem is not None or image is None:
        problem = problem or no_topic(request.cluster, request.as_topic)
        more = [Refusal(log_dir=item.log_dir, path=item.path, why=None, problem=problem) for *_, item in found]
        return AdoptHerePlan(actions=(), refusals=(*refusals, *more), whole=None, topic=None)
    topic = topic_of(image, request.as_topic)
    known = ReplicaIndex(facts)
    ready: dict[Place, tuple[StagedReplica, ReplicaMarker, Stage | None]] = {}
    fit: list[StagedFiles] = []
    for place, one, item in found:
        decided = _decide(request, topic, known, facts, one, item)
        if isinstance(decided, Refusal):
            refusals.append(at(item.place, decided))
            continue
        marker, present = decided
        ready[place] = item, marker, present
        fit.append(_files(request, image, place, item, marker))
    partitions = {one.ref.partition for one in fit}
    ids = {one.ref.topic_id for one in fit}
    others = [one for one in request.others if one.ref.partition in partitions and one.ref.topic_id in ids]
    whole = plan_adopt(
        AdoptRequest(
            topic=topic,
            staged=(*fit, *others),
            brokers={**request.brokers, request.node_id: True},
            now_ms=request.now.wall_ms,
        )
    )
    refusals += [
        at(ready[place][0].place, one) for one in whole.refusals if (place := (one.log_dir, one.path)) in ready
    ]
    own = [one for one in whole.actions if one.node_id == request.node_id]
    actions = tuple(_action(request, topic, one, *ready[one.place]) for one in own)
    return AdoptHerePlan(actions=actions, refusals=tuple(refusals), whole=whole, topic=topic)


def _gone(place: Place) -> Refusal:
    fix = "logdirctl staged ls lists the staged replicas"
    return refuse(*place, Why.NOT_FOUND, "a staged replica", "no such directory", fix)


def _against_disks(facts: Sequence[LogDirFacts]) -> Problem | None:
    """Return the problem of any disk of the broker: an adoption and its recovery need all of them."""
    for one in facts:
        if one.problem is not None:
            found = f"{one.problem.path}: {one.problem.found}"
            expected = "every configured log dir readable: one of them may hold a replica of the topic"
            return Problem(Why.LOG_DIR_UNREADABLE.value, one.log_dir, expected, found, "mount or repair it first")
        if one.quarantined is not None:
            return one.quarantined
    return None


def _files(
    request: AdoptHereRequest, image: Image, place: Place, item: StagedReplica, marker: ReplicaMarker
) -> StagedFiles:
    return StagedFiles(
        node_id=request.node_id,
        log_dir=item.log_dir,
        name=item.name,
        ref=marker.ref,
        log_end=request.log_ends.get(place),
        is_tiered=marker.tiered or marker.topic in image.tiered,
    )


def _decide(
    request: AdoptHereRequest,
    topic: NewTopic,
    known: ReplicaIndex,
    facts: Sequence[LogDirFacts],
    one: LogDirFacts,
    item: StagedReplica,
) -> tuple[ReplicaMarker, Stage | None] | Refusal:
    """Return the marker of one staged replica, and how to stage the re-created replica that it replaces.

    The latter is ``None`` if the new topic has no such replica here: the plan over all brokers gives the reason.
    """
    refusal = unfit(one, item)
    marker = item.marker
    if refusal is not None or marker is None:
        return refusal or refuse_marker(item.log_dir, f"{DELETING}/{item.name}", item.problem)
    refusal = _against_twins(known, item, marker, topic) or _against_old_id(request, item)
    if refusal is not None:
        return refusal
    present = _present(request, topic, known, facts, item)
    return present if isinstance(present, Refusal) else (marker, present)


def unfit(one: LogDirFacts, item: StagedReplica) -> Refusal | None:
    """Return the refusal of a staged replica that no topic can adopt; ``None``: nothing about its files forbids it.

    Args:
        one: Facts of its log dir.
        item: The replica.
    """
    where = item.log_dir, f"{DELETING}/{item.name}"
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
    if item.is_partial:
        fix = "logdirctl staged export copies it"
        return refuse(item.log_dir, item.path, Why.PARTIAL_CAPTURE, "a complete replica", "a partial capture", fix)
    if item.marker is None or item.problem is not None:
        return refuse_marker(*where, item.problem)
    return refuse_foreign(one, item, item.marker) or _against_layout(one, item)


def _against_layout(one: LogDirFacts, item: StagedReplica) -> Refusal | None:
    if one.layout in _LAYOUTS:
        return None
    fix = "logdirctl layout rollback takes its replicas to topic names first"
    where = item.log_dir, f"{DELETING}/{item.name}"
    return refuse(*where, Why.LAYOUT_DIFFERS, "a log dir in the topic-name layout", f"the {one.layout} layout", fix)


def _against_twins(known: ReplicaIndex, item: StagedReplica, marker: ReplicaMarker, topic: NewTopic) -> Refusal | None:
    """Return the refusal if the old id has, or will have, a live replica here, or the new topic has a ``-future``."""
    where = item.log_dir, f"{DELETING}/{item.name}"
    old = ReplicaRef(topic=None, topic_id=marker.topic_id, partition=marker.partition)
    new = ReplicaRef(topic=topic.topic, topic_id=topic.topic_id, partition=marker.partition)
    if marker.topic_id != topic.topic_id and (live := known.replicas(old, Kind.LIVE)):
        fix = "compare both directories; stage the live one first if the staged one is to be adopted"
        return refuse(*where, Why.LIVE_REPLICA_EXISTS, f"no live replica of id {marker.topic_id}", _paths(live), fix)
    if futures := (*known.replicas(old, Kind.FUTURE), *known.replicas(new, Kind.FUTURE)):
        return refuse(*where, Why.FUTURE_REPLICA_EXISTS, "no -future of it on any disk", _paths(futures), FINISH_MOVE)
    return None


def _paths(replicas: Iterable[Replica]) -> str:
    return " and ".join(dict.fromkeys(f"{one.log_dir}/{one.path}" for one in replicas))


def _against_old_id(request: AdoptHereRequest, item: StagedReplica) -> Refusal | None:
    """Return the refusal if the old id may still exist: then its records are not lost."""
    where = item.log_dir, f"{DELETING}/{item.name}"
    expected = "a staged replica whose topic id is known to be gone"
    found = assignment_of(request.cluster, item)
    match found.state:
        case Assigned.GONE:
            return None
        case Assigned.HERE:
            fix = "logdirctl staged restore renames it back"
            return refuse(*where, Why.STILL_ASSIGNED, expected, found.why, fix)
        case Assigned.NOT_HERE:
            fix = "logdirctl staged export copies the files to a place outside the log dirs"
            return refuse(*where, Why.NOT_ASSIGNED_HERE, expected, found.why, fix)
        case Assigned.UNKNOWN:
            return _unless_unknown(request, where, expected, found.why)


def _unless_unknown(request: AdoptHereRequest, where: tuple[str, str], expected: str, found: str) -> Refusal | None:
    if request.is_even_if_unknown:
        return None
    source = remedy(request.cluster, "name a newer source with --from or --high-watermark")
    fix = f"{source}, or adopt it all the same with --even-if-unknown, which keeps the staged directory"
    return refuse(*where, Why.ASSIGNMENT_UNKNOWN, expected, found, fix)


def _present(
    request: AdoptHereRequest, topic: NewTopic, known: ReplicaIndex, facts: Sequence[LogDirFacts], item: StagedReplica
) -> Stage | Refusal | None:
    """Return how to stage the replica that the broker created for the new topic, or the refusal if it may not be
    replaced.
    """
    where = item.log_dir, f"{DELETING}/{item.name}"
    name = name_for(topic.topic, item.ref.partition, DirForm.CURRENT)
    if request.node_id not in topic.replicas.get(item.ref.partition, ()):
        return None
    identity = ReplicaRef(topic=topic.topic, topic_id=None, partition=item.ref.partition)
    live = known.replicas(identity, Kind.LIVE)
    right = [one for one in live if one.ref.topic_id == topic.topic_id]
    if len(live) != 1 or not right:
        found = (
            " and ".join(f"{one.log_dir}/{one.path} (id {one.ref.topic_id})" for one in live)
            or "no live directory of that name"
        )
        fix = "start the broker until it has made its replica of the topic, stop it, then try again"
        return refuse(*where, Why.LIVE_REPLICA_MISSING, f"one live {name} with id {topic.topic_id}", found, fix)
    (replica,) = right
    if (refusal := _against_assignment(request, where, replica)) is not None:
        return refusal
    asked = StageRequest(
        selected=(),
        reason=Reason.DUPLICATE,
        evidence=Removed(proof=Proof.OPERATOR, as_of_ms=max(0, request.now.wall_ms)),
        now=request.now,
        delays=request.delays,
    )
    one = next(one for one in facts if one.log_dir == replica.log_dir)
    decided = stage_one(asked, known, one, replica)
    if isinstance(decided, Refusal):
        # The row is that of the staged replica; the problem names the obstacle.
        return replace(decided, log_dir=where[0], path=where[1])
    return decided


def _against_assignment(request: AdoptHereRequest, where: tuple[str, str], replica: Replica) -> Refusal | None:
    """Return the refusal if the new id may be removed, too: a broker would then erase the log, or rename it to
    -stray.
    """
    expected = f"topic id {replica.ref.topic_id}, known to be still assigned here"
    asked = StagedReplica(
        log_dir=replica.log_dir,
        name=replica.path,
        kind=Kind.STAGED,
        ref=replica.ref,
        inode=replica.inode,
        marker=None,
        problem=None,
    )
    found = assignment_of(request.cluster, asked)
    match found.state:
        case Assigned.HERE:
            return None
        case Assigned.UNKNOWN:
            return _unless_unknown(request, where, expected, found.why)
        case Assigned.GONE:
            fix = "create the topic again, and let the broker run until it has made its replica"
            return refuse(*where, Why.TOPIC_GONE, expected, found.why, fix)
        case Assigned.NOT_HERE:
            fix = f"create the topic again with partition {replica.ref.partition} on this broker"
            return refuse(*where, Why.NOT_ASSIGNED_HERE, expected, found.why, fix)


def _action(
    request: AdoptHereRequest,
    topic: NewTopic,
    one: Adopt,
    item: StagedReplica,
    marker: ReplicaMarker,
    present: Stage | None,
) -> AdoptHere:
    if present is None:
        raise ValueError(f"refused before: {item.place}")
    end = "an unknown offset" if one.log_end is None else f"offset {one.log_end}"
    detail = f"adopt: its log, up to {end}, replaces that of {present.loses}"
    points, left_out = within(marker.checkpoints, one.log_end)
    detail += left_out
    if request.is_even_if_unknown:
        detail += "; the staged directory is kept: it is not known whether the topic still has this id"
    return AdoptHere(
        log_dir=item.log_dir,
        name=item.name,
        marker=marker,
        topic=topic.topic,
        topic_id=topic.topic_id,
        present=present,
        is_kept=request.is_even_if_unknown,
        checkpoints=points,
        detail=detail,
    )
