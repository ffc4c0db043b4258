"""What follows from the request document of a source, as ``reconcile`` does it and ``strays`` judges by it.

Not here: the decision (``decide.image.document``), reading the document (``image_source``).

Spec: design §4 "A request document".
"""

from __future__ import annotations

from collections.abc import Sequence

from logdir.decide.image.document import DocumentPlan, plan_document
from logdir.decide.reconcile import ReconcileRequest
from logdir.observe.facts import LogDirFacts
from logdir.service.cluster.image_source import Desired


def plan_followed(desired: Desired, request: ReconcileRequest, facts: Sequence[LogDirFacts]) -> DocumentPlan | None:
    """Decide as ``plan_document``; ``None``: the source is no request document."""
    if desired.document is None:
        return None
    return plan_document(
        desired.document,
        None,
        request,
        facts,
        node_id=desired.node_id,
        cluster_id=desired.cluster_id,
        written_ms=desired.written_ms,
    )
