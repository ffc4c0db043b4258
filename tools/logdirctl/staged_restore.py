"""The restores of ``logdirctl staged restore`` and ``uninstall --restore``, in batches under every lock.

Not here: what may be restored (``logdir.decide.restore``), what is printed (``staged_change``).

Spec: design §2 law 4, §3.3; attacks A15, A22.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from logdir.decide.restore import Restore, RestorePlan, RestoreRequest, plan_restore
from logdir.disk import batch_loop, staging
from logdir.disk.batch_loop import Turn, nothing_decided
from logdir.disk.kernel_clock import read_instant
from logdir.errors import Problem, RefusedError
from tools.cli import Streams, say
from tools.logdirctl.broker import OpenBroker, sick_disks
from tools.logdirctl.cluster_state import Stamp, stamp_of
from tools.logdirctl.desired_source import own_log
from tools.logdirctl.report import PLANNED, UNDONE, Progress, Row, after, refused
from tools.logdirctl.staged import none_closely

_Place = tuple[str, str]
"""Log dir, and name under ``deleting/``."""


def planned_restore(plan: RestorePlan) -> list[Row]:
    """Return what a plan takes back as rows."""
    return [_restored(action, PLANNED) for action in plan.actions]


def say_kinds(arguments: argparse.Namespace, plan: RestorePlan, streams: Streams) -> None:
    """Say of each replica, before anything is done, what kind of restore it is and on what that rests."""
    for action in plan.actions:
        marker = action.marker
        say(streams, f"logdirctl {arguments.title}: {marker.topic}-{marker.partition}: {action.says}")


def _restored(action: Restore, state: str) -> Row:
    marker = action.marker
    return Row(
        log_dir=action.log_dir,
        path=f"deleting/{action.name}",
        state=state,
        topic=marker.topic,
        topic_id=marker.topic_id,
        partition=marker.partition,
        place=action.path if state == PLANNED else None,
        says=action.says,
    )


def restore_all(
    broker: OpenBroker, request: RestoreRequest, shown: RestorePlan, streams: Streams, stamp: Stamp | None
) -> tuple[list[Row], list[Problem]]:
    """Restore what a plan shows, in batches; each looks and decides again, under every lock.

    Args:
        broker: Opened for changes.
        request: What was selected.
        shown: What was decided about it first; nothing else is done.
        streams: For progress.
        stamp: Of the broker's own metadata log, before it was read (``stamp_of``).

    Returns:
        One row per replica, and what is wrong with disks.

    Raises:
        LogDirError: as ``OpenBroker.batch``; what was done by then is done.
        RefusedError: the broker wrote its metadata log meanwhile; what was done by then is done.
    """
    left = {(action.log_dir, action.name): action for action in shown.actions}
    progress = Progress(streams, "restoring", len(left))
    work = _Restoring(broker=broker, request=request, progress=progress, rows=refused(shown.refusals), stamp=stamp)
    if left:
        broker.beat(read_instant())

    def undecided(place: _Place) -> Row:
        path = broker.path_of(place[0], f"deleting/{place[1]}")
        return replace(_restored(left[place], UNDONE), problem=nothing_decided(path))

    batch_loop.run(left, hold=broker.batch, decide=work.decide, undecided=undecided, report=work.report)
    progress.done()
    return work.rows, work.problems


@dataclass(slots=True, kw_only=True)
class _Restoring:
    """Where one command stands."""

    broker: OpenBroker
    request: RestoreRequest
    progress: Progress
    rows: list[Row]
    stamp: Stamp | None
    problems: list[Problem] = field(default_factory=list)
    sick: set[str] = field(default_factory=set)

    def decide(self, left: Collection[_Place]) -> Turn[_Place, Row]:
        """Look and decide again about what is left."""
        facts = self.broker.look(none_closely)
        if stamp_of(self.broker, facts) != self.stamp:
            expected = "the metadata log as it was read"
            raise RefusedError(own_log(self.broker.named, facts) or "", expected=expected, found="it was written since")
        plan = plan_restore(replace(self.request, selected=tuple(left)), facts)
        settled = {(row.log_dir, row.path): row for row in refused(plan.refusals)}
        return Turn(settled=settled, steps=lambda: (partial(self._restore, action) for action in plan.actions))

    def _restore(self, action: Restore) -> Mapping[_Place, Row]:
        row = _restored(action, UNDONE)
        if action.log_dir not in self.sick:
            site = self.broker.site_of(action.log_dir)
            with sick_disks(self.problems, self.sick, site):
                row = after(row, staging.restore(site, _item(action)))
        return {(action.log_dir, action.name): row}

    def report(self, rows: Sequence[Row]) -> None:
        """Note what became of some."""
        self.rows += rows
        self.progress.add(len(rows))


def _item(action: Restore) -> staging.RestoreItem:
    return staging.RestoreItem(
        name=action.name, marker=action.marker, path=action.path, drop_last_indexes=action.drop_last_indexes
    )
