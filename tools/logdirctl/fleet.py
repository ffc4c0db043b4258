"""``logdirctl fleet``: scan, plan and report over many brokers, on Spark.

The package ``migrate`` needs the extra ``logdird[fleet]``: it is imported only here, when a fleet command runs.

Spec: design §6, §7.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from logdir.service.report.json_text import envelope
from logdir.text import quoted
from tools.cli.arguments import Exit, Streams, answered, put, say
from tools.cli.columns import Column, table
from tools.cli.progress import Stages

if TYPE_CHECKING:
    from migrate.use_case import SessionRequest


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    fleet = commands.add_parser(
        "fleet",
        description="Work over many brokers, on Spark.",
    )
    verbs = fleet.add_subparsers(dest="verb", metavar="VERB", required=True)
    scan = verbs.add_parser("scan", help="read every disk and inventory of a fleet into one snapshot")
    scan.add_argument("fleet", metavar="FLEET", help="the fleet file (YAML)")
    scan.add_argument("-o", "--output", metavar="SNAPSHOT", required=True, help="a directory that does not exist")
    plan = verbs.add_parser("plan", help="find every conflict and plan the migration to topic-id directories")
    plan.add_argument("fleet", metavar="FLEET|SNAPSHOT", help="the fleet file, or a snapshot of fleet scan")
    plan.add_argument("-o", "--output", metavar="DIR", required=True, help="a directory that does not exist")
    plan.add_argument("--ids", metavar="FORMER", help="the directory of a former plan, whose minted ids are kept")
    report = verbs.add_parser("report", help="draw the page of a plan again")
    report.add_argument("plan", metavar="DIR", help="a plan directory")
    report.add_argument("-o", "--output", metavar="FILE", help="the page's file (else report.html in the plan)")
    for verb, parser, act in (("scan", scan, act_scan), ("plan", plan, act_plan), ("report", report, act_report)):
        parser.add_flag("--json", "one JSON object on standard output")
        parser.set_defaults(run=act, title=f"fleet {verb}")
    for parser in (scan, plan):
        parser.add_argument("--master", metavar="URL", help="Spark master (else local, all cores)")
        parser.add_flag("--shared-paths", "every machine of the cluster sees the same paths")


def act_scan(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``fleet scan``; return the exit status."""
    from migrate import use_case

    with Stages(streams) as stages:
        found = use_case.scan(_command(arguments), _request(arguments), stages.begin)
    if not answered(arguments, streams, Exit.DONE, (), found):
        output = found.output
        put(streams, f"wrote {output}: {found.summary}")
        put(streams, f"next: logdirctl fleet plan {quoted(output)} -o {quoted(f'{output}-plan')}")
    return Exit.DONE


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
    put(streams, *found.counts)
    if found.conflicts:
        put(streams, "")
        table(streams.out, _CONFLICTS, found.conflicts)
    page = quoted(str(Path(found.output) / "report.html"))
    put(streams, *found.notes, "", f"wrote {found.output}", f"next: open {page} in a browser")
    return Exit.DONE


def act_report(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``fleet report``; return the exit status."""
    from migrate import use_case

    output = None if arguments.output is None else Path(arguments.output)
    found = use_case.report(_command(arguments), Path(arguments.plan), output)
    if not answered(arguments, streams, Exit.DONE, (), found):
        put(streams, f"wrote {found.output}", "next: open it in a browser")
    return Exit.DONE


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
