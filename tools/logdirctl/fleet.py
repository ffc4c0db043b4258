"""``logdirctl fleet``: scan, plan and report over many brokers, on Spark.

The package ``migrate`` needs the extra ``logdird[fleet]``: it is imported only here, when a fleet command runs.

Spec: design §6, §7.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from logdir.service.report.json_text import envelope
from logdir.service.report.table import Column, Table
from logdir.text import quoted
from tools.cli.arguments import Exit, Streams, answer, say
from tools.cli.broker import JSON
from tools.cli.command import Command, Group
from tools.cli.option import Flag, Option
from tools.cli.progress import Stages

if TYPE_CHECKING:
    from migrate.use_case import SessionRequest


def act_scan(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``fleet scan``; return the exit status."""
    from migrate import use_case

    with Stages(streams) as stages:
        found = use_case.scan(_command(arguments), _request(arguments), stages.begin)
    following = f"logdirctl fleet plan {quoted(found.output)} -o {quoted(f'{found.output}-plan')}"
    shown = f"wrote {found.output}: {found.summary}", f"next: {following}"
    return answer(arguments, streams, found, (), shown)


def act_plan(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``fleet plan``; return the exit status."""
    from migrate import use_case

    with Stages(streams) as stages:
        found = use_case.plan(_command(arguments), _request(arguments), stages.begin)
    for problem in found.warnings:
        say(streams, f"{_command(arguments)}: warning: {problem.line()}")
    if arguments.json:
        streams.out.write(envelope(arguments.title, Exit.DONE, found.warnings, found))
        return Exit.DONE
    conflicts = ("", Table(_CONFLICTS, found.conflicts)) if found.conflicts else ()
    page = quoted(str(Path(found.output) / "report.html"))
    shown = (*found.counts, *conflicts, *found.notes, "", f"wrote {found.output}", f"next: open {page} in a browser")
    return answer(arguments, streams, found, (), shown)


def act_report(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``fleet report``; return the exit status."""
    from migrate import use_case

    output = None if arguments.output is None else Path(arguments.output)
    found = use_case.report(_command(arguments), Path(arguments.plan), output)
    return answer(arguments, streams, found, (), (f"wrote {found.output}", "next: open it in a browser"))


def _command(arguments: argparse.Namespace) -> str:
    return f"logdirctl {arguments.title}"


def _request(arguments: argparse.Namespace) -> SessionRequest:
    from migrate.use_case import SessionRequest

    former = getattr(arguments, "ids", None)
    return SessionRequest(
        source=arguments.fleet,
        output=Path(arguments.output),
        master=arguments.master,
        is_path_shared=arguments.shared_paths,
        former=None if former is None else Path(former),
    )


_CONFLICTS: tuple[Column[tuple[str, int]], ...] = (
    Column("conflict", lambda one: one[0]),
    Column("units", lambda one: one[1], is_number=True),
)
_NEW = "a directory that does not exist"
_SPARK = (
    JSON,
    Option("--master", "Spark master (else local, all cores)", "URL"),
    Flag("--shared-paths", "every machine of the cluster sees the same paths"),
)
_SCAN = (
    Option("fleet", "the fleet file (YAML)", "FLEET"),
    Option("-o --output", _NEW, "SNAPSHOT", required=True),
    *_SPARK,
)
_PLAN = (
    Option("fleet", "the fleet file, or a snapshot of fleet scan", "FLEET|SNAPSHOT"),
    Option("-o --output", _NEW, "DIR", required=True),
    Option("--ids", "the directory of a former plan, whose minted ids are kept", "FORMER"),
    *_SPARK,
)
_REPORT = (
    Option("plan", "a plan directory", "DIR"),
    Option("-o --output", "the page's file (else report.html in the plan)", "FILE"),
    JSON,
)
_SCANS = "read every disk and inventory of a fleet into one snapshot"
_PLANS = "find every conflict and plan the migration to topic-id directories"
COMMAND = Group(
    title="fleet",
    description="Work over many brokers, on Spark.",
    metavar="VERB",
    commands=(
        Command(title="fleet scan", run=act_scan, help=_SCANS, options=_SCAN),
        Command(title="fleet plan", run=act_plan, help=_PLANS, options=_PLAN),
        Command(title="fleet report", run=act_report, help="draw the page of a plan again", options=_REPORT),
    ),
)
