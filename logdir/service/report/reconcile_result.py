"""The result of a reconcile: on what it rests, what follows or was done, and what is answered.

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
    """What is answered for one partition of a request document."""

    ref: ReplicaRef
    """As the document names it."""
    code: Code


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileResult:
    """What follows, or what was done."""

    applied: bool
    source: SourceItem
    holds_purges: bool
    """Nothing may be purged until an operator has looked."""
    code: Code | None
    """Of a request document: for the whole of it."""
    answers: tuple[AnswerItem, ...]
    """Of a request document: one per partition, in its order."""
    items: tuple[ReconcileItem, ...]
    problems: tuple[Problem, ...] = field(metadata=HIDDEN)
    """Those of the items, too."""
    is_refused: bool = field(metadata=HIDDEN)
    """Nothing at all follows, or the staging limit holds it back."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is wrong, and nothing is left."""
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
    """Return the result of a plan, or of what was done.

    Args:
        desired: What the cluster says.
        decided: What follows.
        rows: As they were done; ``None``: as they are planned.
        problems: Beside those of the plan and of the items.
        is_applied: It was to be done.
    """
    plan, document, refused = decided.plan, decided.document, decided.refused
    braked = None if plan is None else plan.braked
    items = tuple(rows) if rows is not None else () if plan is None else planned_rows(plan)
    held_back = None if braked is None else braked._replace(fix="look at the plan, then say --even-over-limit")
    found = [*problems, *(() if plan is None else plan.unseen), refused, held_back, desired.image.ended]
    found += [item.problem for item in items]
    return ReconcileResult(
        applied=is_applied,
        source=SourceItem.of(str(desired.uri), desired.image),
        holds_purges=plan is not None and plan.holds_purges,
        code=None if document is None else document.code,
        answers=() if document is None else tuple(map(_answer, document.answers)),
        items=items,
        problems=tuple(problem for problem in found if problem is not None),
        is_refused=refused is not None or braked is not None,
    )


def _answer(one: Answer) -> AnswerItem:
    return AnswerItem(ref=one.item.ref, code=one.code)


def rests_on(desired: Desired, decided: Decided) -> str:
    """Return what the disks are compared with, for people."""
    image, document = desired.image, desired.document
    if document is not None:
        code = "" if decided.document is None else f", answered {decided.document.code.name}"
        what = f"{document.api.value} v{document.version} of type {document.type.name}"
        return f"{desired.uri}: {what}, epoch {document.controller_epoch}, sequence {document.sequence}{code}"
    where = f"{image.source.value} {image.origin}: cluster {image.cluster_id}"
    if image.epoch >= 0:
        where += f", epoch {image.epoch}, offset {image.offset} ({image.certainty.value})"
    return f"{where}, as of {utc(image.as_of_ms)}"
