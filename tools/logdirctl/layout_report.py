"""What ``logdirctl layout`` prints, and its exit status: steps and counts, or the layout of each log dir.

Spec: design §6; docs/json.md.
"""

from __future__ import annotations

import argparse

from logdir.decide.layout.precondition import RELEASES
from logdir.service.layout_status import LayoutStatus, LayoutStatusItem
from logdir.service.report.layout_result import LayoutStep
from logdir.service.report.use_case import Ran
from tools.cli.arguments import Exit, Streams, answered, put, say
from tools.cli.columns import Column, table

NOT_READ_BY_KAFKA = f"No released Kafka ({RELEASES}) reads topic-id directories."
"""Printed by every ``logdirctl layout`` command and in its help (design §8)."""


def print_result(arguments: argparse.Namespace, streams: Streams, ran: Ran, next_line: str) -> Exit:
    """Print what a ``layout`` command would do, or did, and the next command; return the exit status."""
    say(streams, f"logdirctl {arguments.title}: {NOT_READ_BY_KAFKA}")
    if answered(arguments, streams, ran.exit, ran.problems, ran.result):
        return ran.exit
    if ran.result.steps:
        table(streams.out, _STEP, ran.result.steps)
    put(streams, f"{arguments.title}: {ran.lines[0]}", f"next: {next_line}")
    return ran.exit


def print_status(arguments: argparse.Namespace, streams: Streams, found: LayoutStatus, next_line: str) -> Exit:
    """Print the layout of each log dir, and the next command; return the exit status."""
    status, result = Exit.PROBLEMS if found.problems else Exit.DONE, found.result
    say(streams, f"logdirctl {arguments.title}: {NOT_READ_BY_KAFKA}")
    if answered(arguments, streams, status, found.problems, result):
        return status
    table(streams.out, _LOG_DIR, result.items)
    if found.goes_on_with is not None:
        put(streams, f"the change of layout goes on with its plan: logdirctl layout {found.goes_on_with} PLAN")
    put(streams, f"next: {next_line}")
    return status


def _change(one: LayoutStatusItem) -> str:
    state = "none" if one.state is None else one.state.value
    return state if one.for_broker is None else f"{state} for {one.for_broker}"


_STEP: tuple[Column[LayoutStep], ...] = (
    Column("step", "what"),
    Column("log dir", lambda one: one.log_dir or "all"),
    Column("replicas", "replicas", is_number=True),
    Column("done", "done", is_number=True),
)
_LOG_DIR: tuple[Column[LayoutStatusItem], ...] = (
    Column("log dir", "log_dir"),
    Column("layout", lambda one: one.layout or "?"),
    Column("change", lambda one: "?" if one.layout is None else _change(one)),
    Column("start block", lambda one: one.start_block or "?"),
    Column("by name", lambda one: "?" if one.by_name is None else one.by_name, is_number=True),
    Column("by id", lambda one: "?" if one.by_id is None else one.by_id, is_number=True),
    Column("held", lambda one: "?" if one.held is None else one.held, is_number=True),
)
