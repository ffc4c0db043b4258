"""Texts for the listing of a staged replica: whether it is still assigned here, why it is kept, and whether it can be
restored.

Not here: the deadline (``deadline``), the reasons against a purge (``purge_recheck``), printing.

Spec: design §2 law 8, §3.3, §6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from logdir.decide.image.still_assigned import Assigned, ClusterState, StillAssigned, assignment_of
from logdir.decide.refusal import Refusal
from logdir.decide.selector import parse, select
from logdir.decide.staged.adoption import is_adoptable, topic_selector_of
from logdir.decide.staged.purge import may_go_early, overrides_for
from logdir.decide.staged.purge_recheck import PurgeRecheck
from logdir.decide.staged.restore import RestoreRequest, plan_restore
from logdir.errors import ConfigError
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import ReplicaMarker
from logdir.observe.facts import LogDirFacts, ReplicaIndex, StagedReplica
from logdir.refusal_slug import Why


def selector_of(item: StagedReplica) -> str:
    """Return a selector that matches a staged replica and its copies; it never begins with a dash."""
    kind = "part" if item.ref.topic_id is None else "id"
    name = item.ref.id_text
    return f"{kind}:{name}" if name.startswith("-") else name


def why_listed(item: StagedReplica, assignment: StillAssigned, refusal: Refusal | None, cluster: ClusterState) -> str:
    """Return whether a staged replica is still assigned here, and why it is not purged, without repetition.

    Args:
        item: The replica.
        assignment: From ``assignment_of``.
        refusal: Why it may not be purged (``purge_recheck.against_purge``).
        cluster: The cluster state behind ``assignment``.
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
    """Return the refusal of a purge that is not about time, with all overrides that lift it together.

    Args:
        refusal: From ``purge_recheck.against_purge``; ``None``: there is none.
        look: What is known about the cluster now.
        item: The replica.
        marker: Its marker, just read.
        known: Index of the replicas of every log dir.

    Returns:
        The refusal; and, if there is none, the overrides that lift the deadline (empty if no override does).
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
        return None, f"add {words} to purge it for good"
    # Other refusals already name all overrides; that of an assigned replica names those of its assignment only.
    if refusal.why is Why.STILL_ASSIGNED:
        return replace(refusal, problem=refusal.problem._replace(fix=f"add {words} to purge it for good")), ""
    return refusal, ""


def early_words(
    refusal: Refusal | None, look: PurgeRecheck, item: StagedReplica, marker: ReplicaMarker, known: ReplicaIndex
) -> str:
    """Return the additional overrides for a purge before the deadline; empty if there are none.

    Args: as ``with_words``.
    """
    if refusal is None or refusal.why is not Why.STILL_ASSIGNED or not may_go_early(marker):
        return ""
    words = overrides_for(look, item, known, "--even-if-early")
    return "" if words is None else f"before its deadline add {words}"


def reason_of(item: StagedReplica, refusal: Refusal) -> str:
    """Return why a staged replica is not purged, with the path of the cause if that is another file."""
    problem = refusal.problem
    is_own = problem.path in (item.place, f"{refusal.log_dir}/{refusal.path}")
    return problem.reason() if is_own else f"{problem.path}: {problem.reason()}"


def first_restorable(
    items: Iterable[StagedReplica], cluster: ClusterState, facts: Sequence[LogDirFacts]
) -> StagedReplica | None:
    """Return the first staged replica that a restore by ``selector_of`` can restore without an override.

    Args:
        items: The listed replicas.
        cluster: The cluster state.
        facts: Facts of every log dir, including those that may not be changed.
    """
    staged = [item for one in facts for item in one.staged if item.kind in (Kind.STAGED, Kind.PURGING)]
    for item in items:
        if item.kind is not Kind.STAGED or assignment_of(cluster, item).state is not Assigned.HERE:
            continue
        try:
            found = select(parse(selector_of(item)), staged)
        except ConfigError:
            continue  # Its selector is ambiguous.
        selected = tuple((one.log_dir, one.name) for one in found)
        plan = plan_restore(RestoreRequest(selected=selected, cluster=cluster), facts)
        if plan.actions and not plan.refusals:
            return item
    return None


def selector_to_restore(
    items: Sequence[StagedReplica], cluster: ClusterState, facts: Sequence[LogDirFacts]
) -> str | None:
    """Return the selector of the ``staged restore`` to type next: one that restores, or else one that prints the guide
    through an adoption; ``None`` if there is neither.

    Args: as ``first_restorable``.
    """
    if (item := first_restorable(items, cluster, facts)) is not None:
        return selector_of(item)
    return next((topic_selector_of(item) for item in items if is_adoptable(item, cluster, facts)), None)
