"""The verbs of a layout change as one call, for ``logdirctl`` and the daemon alike.

Not here: planning and doing it (``service.layout``).

Spec: design §5 "A use case", §8.
"""

from __future__ import annotations

from logdir.service import layout
from logdir.service.layout import LayoutRequest
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.report.exit_status import Exit
from logdir.service.report.layout_result import LayoutVerb
from logdir.service.report.reporter import Reporter
from logdir.service.report.use_case import Ran

__all__ = ["LayoutRequest", "run"]


def run(broker: OpenBroker, asked: LayoutRequest, *, is_applied: bool, reporter: Reporter) -> Ran:
    """Decide what a verb would do, and, if it is to be applied, do it.

    Args:
        broker: The broker, opened with a start block allowed.
        asked: The request.
        is_applied: Whether to do it, which needs Kafka's locks; a check changes nothing.
        reporter: Receives progress, and before the first change what is kept on this host.

    Raises:
        LogDirError: as ``layout.plan``, ``layout.prepare`` and ``layout.apply``.
    """
    shown = layout.plan(broker, asked)
    result = shown.result
    if is_applied and asked.verb is not LayoutVerb.CHECK:
        layout.prepare(broker)
        if shown.is_beginning:
            reporter.warn(layout.KEPT)  # Not before: where a broker runs nothing is kept.
        result = layout.apply(broker, shown, reporter)
    return Ran(
        exit=Exit.DONE if result.is_well else Exit.PROBLEMS,
        problems=result.problems,
        result=result,
        lines=(result.summary,),
        is_waiting=result.is_waiting,
        next=result.next.value,
    )
