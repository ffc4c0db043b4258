"""What a listing says of a staged replica: whether it is assigned here, why it is kept, and which one can be restored.

Not here: when it is due (``deadline``), what keeps it from being purged (``purge_recheck``), printing.

Spec: design §2 law 8, §3.3, §6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from logdir.decide.image.still_assigned import Assigned, ClusterState, StillAssigned, assignment_of
from logdir.decide.refusal import Refusal
from logdir.decide.selector import parse, select
from logdir.decide.staged.purge import may_go_early, overrides_for
from logdir.decide.staged.purge_recheck import PurgeRecheck
from logdir.decide.staged.restore import RestoreRequest, plan_restore
from logdir.errors import ConfigError
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import ReplicaMarker
from logdir.observe.facts import LogDirFacts, ReplicaIndex, StagedReplica
from logdir.refusal_slug import Why


def selector_of(item: StagedReplica) -> str:
    """Return a selector that finds a staged replica and its copies; it never looks like a flag."""
    kind = "part" if item.ref.topic_id is None else "id"
    name = item.ref.id_text
    return f"{kind}:{name}" if name.startswith("-") else name


def why_listed(item: StagedReplica, assignment: StillAssigned, refusal: Refusal | None, cluster: ClusterState) -> str:
    """Return whether a staged replica is still assigned here, and why it is not purged, in words and nothing twice.

    Args:
        item: The replica.
        assignment: Of ``assignment_of``.
        refusal: Why it may not be purged (``second_look.against_purge``).
        cluster: What ``assignment`` rests on.
    """
    is_here = assignment.state is Assigned.HERE
    if refusal is None:
        return "still assigned here" if is_here else assignment.why
    against = reason_of(item, refusal)
    if is_here:
        return against if refusal.why is Why.STILL_ASSIGNED else f"still assigned here; {against}"
    if cluster.blind is not None and refusal.problem.path == cluster.blind.path:
        assignment = assignment_of(replace(cluster, blind=None), item)
    return f"{assignment.why}; {against}"


def with_words(
    refusal: Refusal | None, look: PurgeRecheck, item: StagedReplica, marker: ReplicaMarker, known: ReplicaIndex
) -> tuple[Refusal | None, str]:
    """Return what keeps one from being purged that time alone does not make due, with all that lifts it together.

    Args:
        refusal: Of ``second_look.against_purge``: what that alone says; ``None`` where it says nothing.
        look: What is known now.
        item: The replica.
        marker: Of it, just read.
        known: What lies on every log dir.

    Returns:
        The refusal, and what lifts the deadline where there is no refusal, empty where no override does.
    """
    if marker.delay_ms is None:
        flags = "--even-if-early --include-held"
    elif may_go_early(marker):
        flags = "--even-if-early"
    else:
        return refusal, ""
    words = overrides_for(look, item, known, flags)
    if words is None:
        return refusal, ""
    if refusal is None:
        return None, f"{words}, if it is to go for good"
    # Of the others the words are whole: of one that is still assigned they are those of its assignment alone.
    if refusal.why is Why.STILL_ASSIGNED:
        return replace(refusal, problem=refusal.problem._replace(fix=f"{words}, if it is to go for good")), ""
    return refusal, ""


def early_words(
    refusal: Refusal | None, look: PurgeRecheck, item: StagedReplica, marker: ReplicaMarker, known: ReplicaIndex
) -> str:
    """Return what more must be said before a deadline of what is refused for its assignment, too; else nothing.

    Args: as ``with_words``.
    """
    if refusal is None or refusal.why is not Why.STILL_ASSIGNED or not may_go_early(marker):
        return ""
    words = overrides_for(look, item, known, "--even-if-early")
    return "" if words is None else f"before its deadline say {words}"


def reason_of(item: StagedReplica, refusal: Refusal) -> str:
    """Return why a staged replica is not purged, in words; a file that is not its own is named."""
    problem = refusal.problem
    is_own = problem.path in (item.place, f"{refusal.log_dir}/{refusal.path}")
    return problem.reason() if is_own else f"{problem.path}: {problem.reason()}"


def first_restorable(
    items: Iterable[StagedReplica], cluster: ClusterState, facts: Sequence[LogDirFacts]
) -> StagedReplica | None:
    """Return the first staged replica that a restore by ``selector_of`` takes back without an override.

    Args:
        items: What is listed.
        cluster: What the cluster says.
        facts: Of every log dir, with those that may not be changed.
    """
    staged = [item for one in facts for item in one.staged if item.kind in (Kind.STAGED, Kind.PURGING)]
    for item in items:
        if item.kind is not Kind.STAGED or assignment_of(cluster, item).state is not Assigned.HERE:
            continue
        try:
            found = select(parse(selector_of(item)), staged)
        except ConfigError:
            continue  # its name means two things
        selected = tuple((one.log_dir, one.name) for one in found)
        plan = plan_restore(RestoreRequest(selected=selected, cluster=cluster), facts)
        if plan.actions and not plan.refusals:
            return item
    return None
