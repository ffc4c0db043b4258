"""Adoption over all brokers: which staged replicas become which replicas of a re-created topic, or why not.

All replicas of a partition are adopted, or none: a follower restored alone truncates to an empty leader, and a leader
restored beside an empty follower was never measured. So at a replication factor above 1 every broker of the partition
must hold staged files that end at the same offset. Otherwise the operator re-creates the topic with one replica, on the
broker whose files reach furthest, and adds replicas afterwards.

Not here: obstacles on the disks of one broker (``adopt_here``), carrying it out (``disk.replica.adopt``), creating the
topic, the records of the re-created topic (they are replaced).

Spec: design §3.3 "Restore"; kafka-behaviour §10.5; attacks A16, A33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from logdir.decide.new_topic import NewTopic
from logdir.decide.refusal import READ_ONLY, Refusal, refuse
from logdir.paths import DELETING, METADATA_TOPIC
from logdir.refusal_slug import Why
from logdir.replica_ref import ReplicaRef


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFiles:
    """The facts about one staged replica of any broker that this decision needs."""

    node_id: int
    """Node id of the broker that holds it."""
    log_dir: str
    name: str
    """Its name under ``deleting/``; a partial capture's under ``incoming/``."""
    ref: ReplicaRef
    log_end: int | None
    """The offset after its last record; ``None``: not known."""
    is_partial: bool = False
    """Whether it is incoming, or a partial capture."""
    is_tiered: bool = False
    until_ms: int | None = None
    """When a purge may remove it (wall clock); ``None``: no purge before the adoption is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptRequest:
    """A request to adopt staged replicas of one or more brokers for a re-created topic."""

    topic: NewTopic
    staged: tuple[StagedFiles, ...]
    """The replicas that the operator selected on this host's broker, and those in the listings of other brokers."""
    brokers: Mapping[int, bool]
    """Node ids of the brokers whose staged replicas are known, and whether each is stopped."""
    now_ms: int
    """The current instant (wall clock)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """An action: make one staged directory the log of one replica."""

    node_id: int
    log_dir: str
    path: str
    """Its path, relative to its work root."""
    partition: int
    log_end: int | None

    @property
    def place(self) -> tuple[str, str]:
        """Return its log dir, and its path relative to the work root."""
        return self.log_dir, self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptPlan:
    """The plan; each staged replica is in exactly one of actions and refusals."""

    actions: tuple[Adopt, ...]
    """By partition, then node id; all actions of a partition come before any start of its brokers."""
    refusals: tuple[Refusal, ...]
    """In the order of the request, then by partition."""
    stop: tuple[int, ...]
    """Node ids of the brokers to be stopped cleanly before the first action, in this order."""
    start: tuple[int, ...]
    """The same node ids in the order to start them: the broker that stopped last is the leader, so it starts first."""
    notes: tuple[str, ...]
    """Texts to show before any change."""


def plan_adopt(request: AdoptRequest) -> AdoptPlan:
    """Decide which staged replicas of all brokers to adopt, in which order to stop and start their brokers."""
    refusals: list[Refusal] = []
    unfit: dict[int, list[str]] = {}
    fit: dict[int, list[StagedFiles]] = {}
    for one in request.staged:
        refusal = _against(request, one)
        if refusal is None:
            fit.setdefault(one.ref.partition, []).append(one)
        else:
            refusals.append(refusal)
            unfit.setdefault(one.ref.partition, []).append(f"{refusal.problem.found} on broker {one.node_id}")
    actions: list[Adopt] = []
    for partition, group in sorted(fit.items()):
        found = _against_group(request, partition, group, unfit.get(partition, ()))
        refusals += found
        if not found:
            actions += [_action(one) for one in sorted(group, key=lambda one: one.node_id)]
    start = tuple(sorted({action.node_id for action in actions}))
    return AdoptPlan(
        actions=tuple(actions),
        refusals=tuple(refusals),
        stop=start[::-1],
        start=start,
        notes=tuple(_notes(request, actions, start)),
    )


def _action(one: StagedFiles) -> Adopt:
    return Adopt(
        node_id=one.node_id,
        log_dir=one.log_dir,
        path=f"{DELETING}/{one.name}",
        partition=one.ref.partition,
        log_end=one.log_end,
    )


def _against(request: AdoptRequest, one: StagedFiles) -> Refusal | None:
    """Return the refusal of one staged replica by itself."""
    where, topic = (one.log_dir, f"{DELETING}/{one.name}"), request.topic
    export = "logdirctl staged export copies the files to a place outside the log dirs"
    if METADATA_TOPIC in (topic.topic, one.ref.topic):
        return refuse(*where, Why.METADATA_LOG, "a topic's replica", "the metadata log of the quorum", READ_ONLY)
    if one.is_partial:
        return refuse(*where, Why.PARTIAL_CAPTURE, "a complete replica", "a partial capture", export)
    if one.is_tiered:
        found = "the local part only: the rest lay in remote storage, and its broker deleted that"
        return refuse(*where, Why.RESTORE_KIND_DIFFERS, "a log that is all local", found, export)
    if topic.is_tiered:
        found = f"{topic.topic} has remote storage"
        fix = "create the topic again without remote.storage.enable"
        return refuse(*where, Why.RESTORE_KIND_DIFFERS, "a topic whose log is all local", found, fix)
    if one.ref.topic_id == topic.topic_id:
        fix = "logdirctl staged restore renames it back"
        return refuse(
            *where, Why.RESTORE_KIND_DIFFERS, f"a topic with another id than {one.ref.topic_id}", "the same id", fix
        )
    ids = sorted({str(other.ref.topic_id) for other in request.staged if other.ref.topic_id != topic.topic_id})
    if len(ids) > 1:
        fix = "adopt one topic at a time: name it by its id, as logdirctl staged ls shows it"
        return refuse(*where, Why.AMBIGUOUS, "files of one topic id", " and ".join(ids), fix)
    return _against_place(topic, one)


def _against_place(topic: NewTopic, one: StagedFiles) -> Refusal | None:
    """Return the refusal of a staged replica that does not fit the replicas of the new topic."""
    where = one.log_dir, f"{DELETING}/{one.name}"
    replicas = topic.replicas.get(one.ref.partition)
    if replicas is None:
        found = f"partition {one.ref.partition} of a topic with {len(topic.replicas)} partitions"
        fix = "create the topic again with as many partitions as it had"
        return refuse(*where, Why.NOT_IN_TOPIC, f"a partition of {topic.topic}", found, fix)
    if one.ref.partition in topic.reassigned:
        found = "its replicas are being reassigned"
        fix = "let kafka-reassign-partitions finish, or cancel it, then try again"
        return refuse(
            *where, Why.REASSIGNMENT_UNDER_WAY, f"{topic.topic}-{one.ref.partition} with settled replicas", found, fix
        )
    if one.node_id not in replicas:
        found = f"replicas on {_named(replicas)}"
        fix = f"create the topic again with partition {one.ref.partition} on broker {one.node_id}"
        return refuse(*where, Why.NOT_IN_TOPIC, f"a replica on broker {one.node_id}", found, fix)
    return None


def _against_group(
    request: AdoptRequest, partition: int, group: Sequence[StagedFiles], unfit: Sequence[str]
) -> list[Refusal]:
    """Return the refusals of a partition's staged replicas as a group: one for each, or none."""
    found = (
        _against_twice(group)
        or _against_missing(request, partition, group, unfit)
        or _against_running(request, group)
        or _against_ends(partition, group)
        or _against_deadline(request, group)
    )
    return [] if found is None else [refuse(one.log_dir, f"{DELETING}/{one.name}", *found) for one in group]


_Words = tuple[Why, str, str, str]
"""Parts of a refusal: slug, expected, found, fix."""


def _against_twice(group: Sequence[StagedFiles]) -> _Words | None:
    brokers = [one.node_id for one in group]
    twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
    if not twice:
        return None
    fix = (
        "logdirctl staged ls lists them: on this broker choose one with --name and --disk; on another broker copy the "
        "unwanted one with logdirctl staged export, then remove it with logdirctl staged purge --name NAME"
    )
    return Why.AMBIGUOUS, "one staged directory for each replica", f"several on broker {_named(twice)}", fix


def _against_missing(
    request: AdoptRequest, partition: int, group: Sequence[StagedFiles], unfit: Sequence[str]
) -> _Words | None:
    replicas = request.topic.replicas[partition]
    missing = sorted(set(replicas) - {one.node_id for one in group})
    if not missing:
        return None
    expected = f"staged files on every broker of its replicas, {_named(replicas)}: a lone follower truncates to nothing"
    unknown = [broker for broker in missing if broker not in request.brokers]
    if unknown:
        found = f"no listing of broker {_named(unknown)}"
        return Why.LISTING_MISSING, expected, found, _listing_fix(group[0], unknown)
    found = "; ".join((f"no staged files on {_named(missing)}", *unfit))
    return Why.STAGED_REPLICA_MISSING, expected, found, _alone(partition, group)


def _listing_fix(one: StagedFiles, brokers: Sequence[int]) -> str:
    return (
        f"stop broker {_named(brokers)}, run there: logdirctl staged ls {one.ref.topic_id} --json > FILE, "
        "and give each FILE here behind --with"
    )


def _against_running(request: AdoptRequest, group: Sequence[StagedFiles]) -> _Words | None:
    running = sorted(one.node_id for one in group if not request.brokers.get(one.node_id, False))
    if not running:
        return None
    found = f"broker {_named(running)} ran when its listing was made"
    return Why.REPLICA_BROKER_RUNNING, "every broker of its replicas stopped", found, _listing_fix(group[0], running)


def _against_ends(partition: int, group: Sequence[StagedFiles]) -> _Words | None:
    ends = {one.log_end for one in group}
    if len(group) == 1 or (len(ends) == 1 and None not in ends):
        return None
    found = ", ".join(f"{'unknown' if one.log_end is None else one.log_end} on {one.node_id}" for one in group)
    expected = "files that end at one offset: a replica truncates to its leader"
    return Why.LOG_ENDS_DIFFER, expected, found, _alone(partition, group)


def _against_deadline(request: AdoptRequest, group: Sequence[StagedFiles]) -> _Words | None:
    late = [one for one in group if one.until_ms is not None and one.until_ms <= request.now_ms]
    if not late:
        return None
    expected = "staged files that no purge removes before they are adopted"
    found = f"those on broker {_named(sorted(one.node_id for one in late))} may be purged by now"
    fix = (
        f"run there: logdirctl staged hold {late[0].ref.id_text} --apply, then list them again with "
        "logdirctl staged ls --json"
    )
    return Why.PURGE_DUE, expected, found, fix


def _alone(partition: int, group: Sequence[StagedFiles]) -> str:
    furthest = max(group, key=lambda one: -1 if one.log_end is None else one.log_end)
    return (
        f"create the topic again with its only replica of partition {partition} on broker {furthest.node_id}, adopt "
        "there, then add replicas"
    )


def _named(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))


def _notes(request: AdoptRequest, actions: Sequence[Adopt], start: Sequence[int]) -> list[str]:
    if not actions:
        return []
    topic = request.topic
    partitions = sorted({action.partition for action in actions})
    old = next(one for one in request.staged if one.ref.topic_id != topic.topic_id)  # all others are of this topic, too
    becomes = f"files of {old.ref.topic} (id {old.ref.topic_id}) become {topic.topic} (id {topic.topic_id})"
    replaced = f"records written to {topic.topic} since it was created again are replaced"
    notes = [
        f"adopt: {becomes}, partitions {_named(partitions)}",
        f"{replaced}: they are staged with reason duplicate",
    ]
    if len(start) > 1:
        notes.append(
            f"stop brokers {_named(start[::-1])} in this order, adopt on all of them, then start them as "
            f"{_named(start)}: the broker that stopped last starts first"
        )
    rest = sorted(set(topic.replicas) - set(partitions))
    if rest:
        notes.append(f"partitions {_named(rest)} are not adopted by this command: they stay as they are")
    return notes
