"""The result of a reconcile: its source, its actions, and the answers to a request document.

Spec: docs/json.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from logdir.decide.image.admission import Code
from logdir.decide.image.document import Answer
from logdir.errors import Problem
from logdir.replica_ref import ReplicaRef
from logdir.service.cluster.image_source import Desired
from logdir.service.reconcile import Decided
from logdir.service.report.json_form import HIDDEN
from logdir.service.report.reconcile_item import ReconcileItem, planned_rows
from logdir.service.report.result import ItemState
from logdir.service.report.source_item import SourceItem
from logdir.text import utc


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerItem:
    """The answer for one partition of a request document."""

    ref: ReplicaRef
    """The partition, as the document names it."""
    code: Code


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileResult:
    """The result of a reconcile, planned or done."""

    applied: bool
    source: SourceItem
    holds_purges: bool
    """Whether nothing may be purged until an operator has checked."""
    code: Code | None
    """Kafka's error code for the whole request document; ``None``: the source is no request document."""
    answers: tuple[AnswerItem, ...]
    """The answers of a request document: one per partition, in its order."""
    items: tuple[ReconcileItem, ...]
    problems: tuple[Problem, ...] = field(default=(), metadata=HIDDEN)
    """All problems, including those of the items."""
    is_refused: bool = field(default=False, metadata=HIDDEN)
    """Whether the whole plan is refused, or held back by the staging limit."""
    is_whole: bool = field(default=True, metadata=HIDDEN)
    """Whether nothing of the source is left to be done, so that a request document need not be given again."""

    @property
    def is_done(self) -> bool:
        """Whether there is no problem, and no action is left."""
        left = ItemState.REFUSED, ItemState.UNDONE, ItemState.WAITING
        return not (self.is_refused or self.problems or any(item.state in left for item in self.items))


def result_of(
    desired: Desired,
    decided: Decided,
    rows: Sequence[ReconcileItem] | None,
    problems: Iterable[Problem],
    *,
    is_applied: bool,
) -> ReconcileResult:
    """Return the result of a plan, or of carrying it out.

    Args:
        desired: The cluster metadata.
        decided: The decision.
        rows: The items of carrying it out; ``None``: those of the plan.
        problems: Further problems.
        is_applied: Whether the command was to carry it out.
    """
    plan, document, refused = decided.plan, decided.document, decided.refused
    over_limit = None if plan is None else plan.over_limit
    items = tuple(rows) if rows is not None else () if plan is None else planned_rows(plan)
    held_back = None if over_limit is None else over_limit._replace(fix="check the plan, then add --even-over-limit")
    unrecorded = None if plan is None else plan.unrecorded
    found = [*problems, *(() if plan is None else plan.unseen), refused, held_back, unrecorded, desired.image.ended]
    found += [item.problem for item in items]
    return ReconcileResult(
        applied=is_applied,
        source=SourceItem.of(str(desired.uri), desired.image),
        holds_purges=plan is not None and plan.holds_purges,
        code=None if document is None else document.code,
        answers=() if document is None else tuple(map(_answer, document.answers)),
        items=items,
        problems=tuple(problem for problem in found if problem is not None),
        is_refused=refused is not None or over_limit is not None,
        is_whole=(plan is None or plan.is_whole)
        and not any(item.state in (ItemState.UNDONE, ItemState.WAITING) for item in items),
    )


def _answer(one: Answer) -> AnswerItem:
    return AnswerItem(ref=one.item.ref, code=one.code)


def rests_on(desired: Desired, decided: Decided) -> str:
    """Return the source that the disks are compared with, and as of when it is, as a line for people."""
    image, document = desired.image, desired.document
    if document is not None:
        code = "" if decided.document is None else f", answered {decided.document.code.name}"
        what = f"{document.api.value} v{document.version} of type {document.type.name}"
        return f"{desired.uri}: {what}, epoch {document.controller_epoch}, sequence {document.sequence}{code}"
    where = f"{image.source.value} {image.origin}: cluster {image.cluster_id}"
    if image.epoch >= 0:
        where += f", epoch {image.epoch}, offset {image.offset} ({image.certainty.value})"
    return f"{where}, as of {utc(image.as_of_ms)}"
