"""``logdirctl staged adopt``: make staged files the log of a topic that was created again.

Not here: what it does (``logdir.service.adopt``).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from logdir.decide.staged.deadline import DelayPolicy
from logdir.service import adopt as adopting
from logdir.service.adopt import AdoptPlanned, AdoptRequest
from logdir.service.log_dirs.opening import opened
from logdir.service.report.result import AdoptingTopic, AdoptResult
from logdir.text import quoted
from tools.cli.arguments import Exit, Streams
from tools.cli.broker import said_of_override
from tools.cli.delay import delay_of, delay_words
from tools.cli.progress import TerminalReporter
from tools.cli.report import finish, is_planned
from tools.cli.source import source_of
from tools.cli.target import request_of
from tools.logdirctl.staged_change import next_line, selection_of


def argv_of(arguments: argparse.Namespace) -> str:
    """Return the own arguments of the command for the next command to type, but the source."""
    words = f" --as {quoted(arguments.as_topic)}"
    words += "".join(f" --with {quoted(path)}" for path in arguments.listings)
    return words + (" --keep" if arguments.keep else "") + delay_words(arguments)


def adopt(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged adopt``; return the exit status."""
    request = AdoptRequest(
        source=source_of(arguments),
        selection=selection_of(arguments),
        as_topic=arguments.as_topic,
        listings=tuple(arguments.listings),
        delays=DelayPolicy(default_ms=delay_of(arguments)),
        is_kept=arguments.keep,
        is_even_if_unknown=arguments.even_if_unknown,
    )
    request.require_valid()
    with opened(request_of(arguments), changes=arguments.apply, is_skip_of_use=False) as broker:
        if arguments.apply:
            broker.recover()
        shown = adopting.plan(broker, request)
        rows, problems = list(shown.items), list(shown.problems)
        status = Exit.PROBLEMS if shown.plan is None else None
        if arguments.apply:
            rows, problems = adopting.apply(broker, shown, TerminalReporter(streams, arguments.title))
        lines = () if arguments.apply else shown.warnings
        return finish(
            arguments,
            streams,
            rows,
            [*broker.notes, *problems],
            next_line(arguments, rows, argv_of(arguments)),
            status=status,
            result=_result(shown),
            lines=(*lines, *said_of_override(arguments, is_planned=is_planned(rows))),
        )


def _result(shown: AdoptPlanned) -> Callable[..., AdoptResult]:
    topic, whole = (None, None) if shown.plan is None else (shown.plan.topic, shown.plan.whole)
    return partial(
        AdoptResult,
        topic=None if topic is None else AdoptingTopic(name=topic.topic, topic_id=topic.topic_id),
        stop=() if whole is None else whole.stop,
        start=() if whole is None else whole.start,
        replicas=() if whole is None else whole.actions,
        warnings=shown.warnings,
    )
