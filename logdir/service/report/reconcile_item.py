"""Items of a reconcile result: one per action and one per refusal.

Spec: docs/json.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from logdir.decide.reconcile import ReconcilePlan
from logdir.decide.reconcile_action import Action, GiveId, HoldStaged, StageReplica
from logdir.errors import Problem
from logdir.evidence import Evidence, Removed, Unknown
from logdir.paths import DELETING
from logdir.replica_ref import ReplicaRef
from logdir.service.report.result import ItemResult, ItemState
from logdir.service.report.table import Column
from logdir.text import utc


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileItem(ItemResult):
    """One action of a reconcile, or one refusal."""

    action: str | None = None
    """``stage``, ``give-id`` or ``hold``; ``None`` for a refusal."""
    reason: str | None = None
    evidence: Evidence | None = None
    rule: str | None = None
    """The section of KIP-516, KIP-631 or the design that it rests on."""
    impact: str | None = None
    """What the broker loses by the action."""

    @classmethod
    def of(
        cls, action: Action, state: ItemState, *, new_path: str | None = None, problem: Problem | None = None
    ) -> ReconcileItem:
        """Return the item of an action."""
        kind, ref, reason, detail = _about(action)
        return cls(
            action=kind,
            log_dir=action.log_dir,
            path=place_of(action),
            state=state,
            ref=ref,
            new_path=new_path,
            reason=reason,
            evidence=action.evidence,
            rule=action.rule.value,
            impact=action.loses or None,
            undo_until_ms=action.undo_until_ms,
            detail=detail,
            problem=problem,
        )


def _about(action: Action) -> tuple[str, ReplicaRef, str | None, str]:
    match action:
        case StageReplica():
            marker = action.stage.marker
            detail = "without a deadline" if marker.delay_ms is None else ""
            return "stage", marker.ref, action.reason.value, detail
        case GiveId():
            return "give-id", action.ref, None, f"topic id {action.ref.topic_id}"
        case HoldStaged():
            marker = action.marker
            return "hold", marker.ref, marker.reason.value, action.proposes


def place_of(action: Action) -> str:
    """Return the path of an action's replica, relative to its log dir or work root."""
    return f"{DELETING}/{action.name}" if isinstance(action, HoldStaged) else action.path


def planned_rows(plan: ReconcilePlan) -> tuple[ReconcileItem, ...]:
    """Return a plan as items: actions to do, waiting ones, and refusals."""
    actions = tuple(ReconcileItem.of(action, ItemState.PLANNED) for action in plan.actions)
    return (*actions, *(ReconcileItem.of(action, ItemState.WAITING) for action in plan.waiting), *refused_rows(plan))


def refused_rows(plan: ReconcilePlan) -> tuple[ReconcileItem, ...]:
    """Return the refusals of a plan as items."""
    return tuple(
        ReconcileItem(
            log_dir=one.log_dir,
            path=one.path,
            state=ItemState.REFUSED,
            problem=one.problem,
        )
        for one in plan.refusals
    )


def _evidence_words(evidence: Evidence | None) -> str:
    if evidence is None or isinstance(evidence, Unknown):
        return ""
    proof = evidence.proof.value if isinstance(evidence, Removed) else type(evidence).__name__.lower()
    return f"{proof}, {utc(evidence.as_of_ms)}"


COLUMNS: Final[tuple[Column[ReconcileItem], ...]] = (
    Column("log dir", "log_dir"),
    Column("path", "path"),
    Column("action", lambda one: one.action or ""),
    Column("state", "state"),
    Column("reason", lambda one: one.reason or ""),
    Column("evidence", lambda one: _evidence_words(one.evidence)),
    Column("undo until (UTC)", lambda one: utc(one.undo_until_ms)),
    Column("impact", lambda one: one.impact or ""),
    Column("detail", "remark"),
    Column("rule", lambda one: one.rule or ""),
)
"""The table of the actions and refusals, for people."""
