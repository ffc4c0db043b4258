"""``logdirctl staged restore | hold | purge | export``: change or copy staged replicas.

Not here: what each does (``logdir.service.restore``, ``hold``, ``purge``, ``export``).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from logdir.disk.kernel.kernel_clock import read_instant
from logdir.errors import Problem
from logdir.service import export as exporting
from logdir.service import hold as holding
from logdir.service import purge as purging
from logdir.service import restore as restoring
from logdir.service.batch.purge_recheck import PurgeOverrides
from logdir.service.batch.unlocked import recover_if_stopped
from logdir.service.export import ExportRequest
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.opening import opened
from logdir.service.purge import PurgeRequest
from logdir.service.report.result import ItemResult, PurgeResult
from logdir.service.report.staged import Selection
from logdir.service.restore import RestoreRequest
from logdir.text import quoted, utc
from tools.cli.arguments import Exit, Streams
from tools.cli.broker import has_override, next_argv, said_of_override
from tools.cli.progress import TerminalReporter
from tools.cli.report import WHERE_READ, finish, is_planned
from tools.cli.source import named_words, source_of
from tools.cli.target import argv_of, request_of


def next_line(arguments: argparse.Namespace, rows: Sequence[ItemResult], more: str = "") -> str:
    """Return the next command to type.

    Args:
        arguments: Of this command.
        rows: What became of each replica.
        more: Options of its own, each behind a blank.
    """
    where = next_argv(arguments)
    if arguments.apply or not is_planned(rows) or has_override(arguments):
        return f"logdirctl staged ls {argv_of(arguments)}"
    flags = named_words(arguments)
    if getattr(arguments, "disk", None) is not None:
        flags += f" --disk {quoted(arguments.disk)}"
    if getattr(arguments, "output", None) is not None:
        flags += f" -o {quoted(arguments.output)}"
    flags += "".join(f" --name {quoted(name)}" for name in getattr(arguments, "name", ()))
    selector = "" if arguments.selector is None else f" {quoted(arguments.selector)}"
    return f"logdirctl {arguments.title}{selector} {where}{flags}{more} --apply"


def selection_of(arguments: argparse.Namespace) -> Selection:
    """Return which staged replicas are meant."""
    return Selection(arguments.selector, arguments.disk, tuple(arguments.name))


def _found_nothing(
    arguments: argparse.Namespace, streams: Streams, broker: OpenBroker, problems: Sequence[Problem]
) -> Exit:
    """Say that there is nothing of that kind; return the exit status."""
    line = next_line(arguments, [])
    return finish(arguments, streams, [], [*broker.notes, *problems], line, status=Exit.PROBLEMS)


def restore(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged restore``; return the exit status."""
    request = RestoreRequest(
        source=source_of(arguments), selection=selection_of(arguments), is_even_if_unknown=arguments.even_if_unknown
    )
    request.require_valid()
    with opened(request_of(arguments), changes=arguments.apply, is_skip_of_use=False) as broker:
        if arguments.apply:
            broker.recover()
        shown = restoring.plan(broker, request)
        if shown.plan is None:
            return _found_nothing(arguments, streams, broker, shown.problems)
        rows, problems = list(shown.items), list(shown.problems)
        if arguments.apply:
            rows, problems = restoring.apply(broker, shown, TerminalReporter(streams, arguments.title))
        line = next_line(arguments, rows)
        lines = said_of_override(arguments, is_planned=is_planned(rows))
        return finish(arguments, streams, rows, [*broker.notes, *problems], line, lines=lines, are_said=arguments.apply)


def hold(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged hold``; return the exit status."""
    selection = selection_of(arguments)
    selection.require_valid()
    with opened(request_of(arguments), changes=arguments.apply, needs_all=False) as broker:
        if arguments.apply:
            recover_if_stopped(broker)
        shown = holding.plan(broker, selection)
        if shown.is_empty:
            return _found_nothing(arguments, streams, broker, shown.problems)
        rows, problems = list(shown.items), list(shown.problems)
        if arguments.apply:
            rows, problems = holding.apply(broker, shown, TerminalReporter(streams, arguments.title))
        return finish(arguments, streams, rows, [*broker.notes, *problems], next_line(arguments, rows))


def export(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged export``; return the exit status."""
    request = ExportRequest(selection=selection_of(arguments), output=arguments.output)
    request.require_valid()
    with opened(request_of(arguments), changes=arguments.apply, is_copy=True, needs_all=False) as broker:
        shown = exporting.plan(broker, request)
        if shown.is_empty:
            return _found_nothing(arguments, streams, broker, shown.problems)
        rows, problems = list(shown.items), list(shown.problems)
        if arguments.apply:
            rows, problems = exporting.apply(broker, shown, TerminalReporter(streams, arguments.title))
        return finish(arguments, streams, rows, [*broker.notes, *problems], next_line(arguments, rows))


def purge(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged purge``; return the exit status."""
    request = PurgeRequest(
        source=source_of(arguments),
        selection=selection_of(arguments),
        overrides=PurgeOverrides(
            is_even_if_assigned=arguments.even_if_assigned,
            is_even_if_last=arguments.even_if_last,
            is_even_if_early=arguments.even_if_early,
        ),
        includes_held=arguments.include_held,
        bytes_per_second=arguments.bytes_per_second,
    )
    request.require_valid()
    with opened(request_of(arguments), changes=arguments.apply, needs_all=False) as broker:
        now = read_instant()
        if arguments.apply:
            recover_if_stopped(broker)
            broker.beat(now)
        shown = purging.plan(broker, request, now)
        if shown.plan is None:
            return _found_nothing(arguments, streams, broker, shown.problems)
        rows, problems = list(shown.items), list(shown.problems)
        if arguments.apply:
            rows, more = purging.apply(broker, shown, TerminalReporter(streams, arguments.title))
            problems += more
        rows += shown.left
        due = shown.plan.next_due_ms
        line = "no other has a deadline to come" if due is None else f"the next one is due {utc(due)}"
        if not shown.has_staged:
            line = f"nothing is staged{'' if shown.is_whole else WHERE_READ}"
        return finish(
            arguments,
            streams,
            rows,
            [*broker.notes, *problems],
            next_line(arguments, rows),
            result=partial(PurgeResult, next_due_ms=due),
            lines=(line, *said_of_override(arguments, is_planned=is_planned(rows))),
            are_said=arguments.apply,
        )
