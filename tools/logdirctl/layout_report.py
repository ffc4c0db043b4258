"""What ``logdirctl layout`` prints: steps, what became of each replica, the layout of each log dir; the exit status.

Spec: design §6; docs/json.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from logdir.decide.layout.precondition import RELEASES
from logdir.errors import Problem
from logdir.service.layout_status import LayoutStatus, LogDirLayout
from logdir.service.report.layout_items import LayoutForm, LayoutStatusForm
from logdir.service.report.layout_result import LayoutResult
from logdir.text import printable
from tools.cli import render
from tools.cli.arguments import Exit, Streams, envelope, say

NOT_READ_BY_KAFKA = f"No released Kafka ({RELEASES}) reads topic-id directories."
"""Printed by every verb (design §8)."""


def print_result(arguments: argparse.Namespace, streams: Streams, result: LayoutResult, next_line: str) -> Exit:
    """Print what a verb would do, or did, and what to type next; return the exit status."""
    status = Exit.DONE if result.is_well else Exit.PROBLEMS
    _print_problems(arguments, streams, result.problems)
    if arguments.json:
        streams.out.write(envelope(arguments.title, status, result.problems, LayoutForm.of(result)))
        return status
    if result.steps:
        rows = [[one.what, one.log_dir or "all", _or(one.replicas, "-"), _or(one.done, "-")] for one in result.steps]
        render.table(streams.out, ["step", "log dir", "replicas", "done"], rows, frozenset((2, 3)))
    streams.out.write(f"{arguments.title}: {_summary(result)}\n{printable(f'next: {next_line}')}\n")
    return status


def print_status(arguments: argparse.Namespace, streams: Streams, found: LayoutStatus, next_line: str) -> Exit:
    """Print the layout of each log dir, and what to type next; return the exit status."""
    status = Exit.PROBLEMS if found.problems else Exit.DONE
    _print_problems(arguments, streams, found.problems)
    if arguments.json:
        streams.out.write(envelope(arguments.title, status, found.problems, LayoutStatusForm.of(found)))
        return status
    headers = ["log dir", "layout", "change", "start block", "by name", "by id", "held"]
    rows = [_log_dir_row(one) for one in found.log_dirs]
    render.table(streams.out, headers, rows, frozenset((4, 5, 6)))
    if found.goes_on_with is not None:
        streams.out.write(f"with its plan it goes on: logdirctl layout {found.goes_on_with} PLAN\n")
    streams.out.write(printable(f"next: {next_line}") + "\n")
    return status


def _print_problems(arguments: argparse.Namespace, streams: Streams, problems: Sequence[Problem]) -> None:
    for line in (NOT_READ_BY_KAFKA, *(problem.line() for problem in problems)):
        say(streams, f"logdirctl {arguments.title}: {line}")


def _summary(result: LayoutResult) -> str:
    words = ["nothing to do"]
    if result.has_work:
        words = ["finished" if result.is_applied else "planned; nothing was changed"]
    if result.is_applied and not result.is_finished:
        words = ["not finished"]
    if result.done_before:
        words.append(f"{result.done_before} done before")
    if result.refused:
        words.append(f"{result.refused} refused by name")
    if count := len(result.left_out):
        words.append(f"{count} log dir{'s' if count > 1 else ''} left out")
    return ", ".join(words)


def _log_dir_row(one: LogDirLayout) -> list[str]:
    change = "?" if one.seen is None else "none" if one.state is None else one.state.value
    if one.for_broker is not None:
        change += f" for {one.for_broker}"
    start_block = None if one.start_block is None else one.start_block.value
    return [
        one.log_dir,
        _or(one.layout, "?"),
        change,
        _or(start_block, "?"),
        *(_or(count, "?") for count in one.counts),
    ]


def _or(value: object, unknown: str) -> str:
    return unknown if value is None else str(value)
