"""The frame of the commands that change replicas one by one: open, recover, plan, apply, report.

Not here: the use cases (``logdir.service``), the printed result (``report``).

Spec: design §5 "A use case".
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.opening import opened
from logdir.service.report.result import ItemResult, ItemsResult
from logdir.service.report.use_case import Asked, Planned, UseCase
from tools.cli.arguments import Exit, Streams
from tools.cli.broker import request_of, said_of_override
from tools.cli.progress import TerminalReporter
from tools.cli.report import finish, is_planned

_R = TypeVar("_R", bound=Asked)
_P = TypeVar("_P", bound=Planned)


def change(
    arguments: argparse.Namespace,
    streams: Streams,
    case: UseCase[_R, _P],
    request: _R,
    next_line: Callable[[Sequence[ItemResult]], str],
    *,
    opening: Callable[..., AbstractContextManager[OpenBroker]] = opened,
    prepare: Callable[[OpenBroker], None] = OpenBroker.recover,
    result: Callable[[_P], Callable[..., ItemsResult]] = lambda shown: ItemsResult,
    lines: Callable[[_P], Sequence[str]] = lambda shown: (),
    are_said: bool = False,
    are_overrides_said: bool = True,
) -> Exit:
    """Show what a use case would do, or with ``--apply`` do it; return the exit status.

    Args:
        arguments: The command's parsed arguments.
        streams: Where to print.
        case: The use case.
        request: The request to the use case.
        next_line: Returns the next command to type, from what became of each replica.
        opening: Opens the broker.
        prepare: Called with the open broker before the plan, only with ``--apply``.
        result: Returns, from the plan, the argument ``result`` of ``finish``.
        lines: Returns, from the plan, the lines for people after the table.
        are_said: As for ``finish``.
        are_overrides_said: Whether to print how to do a plan that an override allows.
    """
    request.require_valid()
    with opening(request_of(arguments), changes=arguments.apply) as broker:
        if arguments.apply:
            prepare(broker)
        shown = case.plan(broker, request)
        rows, problems = list(shown.items), list(shown.problems)
        if arguments.apply and not shown.is_empty:
            rows, problems = case.apply(broker, shown, TerminalReporter(streams, arguments.title))
        said = said_of_override(arguments, is_planned=is_planned(rows)) if are_overrides_said else ()
        return finish(
            arguments,
            streams,
            rows,
            [*broker.notes, *problems],
            next_line(rows),
            status=Exit.PROBLEMS if shown.is_empty else None,
            result=result(shown),
            lines=(*lines(shown), *said),
            are_said=are_said,
        )
