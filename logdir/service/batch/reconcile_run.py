"""A reconcile from its request to its result: plan it, and carry it out if that is asked for.

Not here: deciding (``logdir.service.reconcile``), carrying out the actions (``reconcile_apply``).

Spec: design §5 "A use case".
"""

from __future__ import annotations

from dataclasses import dataclass

from logdir.service import reconcile
from logdir.service.batch import reconcile_apply
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.reconcile import Policy
from logdir.service.report.reconcile_result import ReconcileResult, rests_on, result_of
from logdir.service.report.reporter import Reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileRan:
    """What came of a reconcile, planned or done."""

    result: ReconcileResult
    rests_on: str
    """The source that the disks are compared with, as a line for people."""
    has_actions: bool
    """Whether the last decision has actions."""
    has_more: bool
    """Whether the same reconcile, carried out, does more than was done; what the staging limit holds back does not
    count: it would be refused again.
    """


def run(
    broker: OpenBroker, source: SourceRequest, policy: Policy, *, is_applied: bool, reporter: Reporter
) -> ReconcileRan:
    """Plan a reconcile, or plan it and carry it out.

    Args:
        broker: Opened, for a change with its locks.
        source: The source of the cluster metadata.
        policy: The operator's options, valid.
        is_applied: Whether to carry it out; no broker runs then.
        reporter: Receives progress, and each scheduled loss of data.

    Raises:
        LogDirError: as ``reconcile.plan`` and ``reconcile_apply.apply``.
    """
    if is_applied:
        broker.recover()
    shown = reconcile.plan(broker, source, policy, is_stopped=is_applied)
    decided = shown.decided
    rows, problems, has_changed = None, broker.notes, False
    if is_applied and decided.is_followed:
        done = reconcile_apply.apply(broker, shown.desired, policy, decided, reporter)
        decided, rows, has_changed = done.decided, done.rows, done.has_changed
        problems = [*broker.notes, *done.problems]
    plan = decided.plan
    is_farther = shown.is_farther and not is_applied
    return ReconcileRan(
        result=result_of(shown.desired, decided, rows, problems, is_applied=is_applied),
        rests_on=rests_on(shown.desired, decided),
        has_actions=decided.has_actions,
        has_more=not has_changed and plan is not None and plan.braked is None and (bool(plan.actions) or is_farther),
    )
