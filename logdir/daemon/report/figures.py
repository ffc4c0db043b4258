"""What the status shows beyond its table: what lies on each disk by kind, and until when deletions can be undone.

Not here: where the figures are read (``daemon.figures``), how they are drawn (``daemon.page``).

Spec: issue "The daemon at home on a host", metrics and status page; docs/json.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from logdir.formats.own.inventory import Kind
from logdir.ids import TopicId
from logdir.reasons import Reason
from logdir.service.report.json_form import KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFigures:
    """The directories of one kind in a log dir and its work root."""

    kind: Kind
    entries: int
    log_bytes: int
    """Bytes of their segments; a captured replica shares them with its broker until that removes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoWindow:
    """The staged replicas of one topic that go at the same time, or are held for the same reason."""

    topic: str | None
    """``None``: it is not known."""
    topic_id: TopicId | None
    reason: Reason | None
    """Why they were staged; ``None``: a replica without a marker."""
    replicas: int
    log_bytes: int
    log_dirs: tuple[str, ...] = field(metadata={KEY: "in_log_dirs"})
    """In the order of the configuration."""
    staged_at_ms: int | None
    """Wall clock: when the first of them was staged."""
    due_ms: int | None
    """Wall clock: when the first of them may be purged; ``None``: they are held."""


MOST_WINDOWS = 500
"""How many of them a status has at most: those that go first, then held ones."""
