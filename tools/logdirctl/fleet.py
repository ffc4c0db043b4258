"""``logdirctl fleet``: scan, plan and report over many brokers, on Spark.

The planning side is an extra and is imported only here, when asked for.

Spec: design §6, §7.
"""

from __future__ import annotations

import argparse
import importlib.util
from typing import Any

from tools.cli import Exit, Streams

_NEEDED = ("pyspark", "pyarrow", "pandas")


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    fleet = commands.add_parser(
        "fleet",
        help="scan, plan and report over many brokers",
        description="Work over many brokers, on Spark.",
    )
    verbs = fleet.add_subparsers(dest="verb", metavar="VERB", required=True)
    scan = verbs.add_parser("scan", help="read every disk and inventory of a fleet into one snapshot")
    scan.add_argument("fleet", metavar="FLEET", help="the fleet file (YAML)")
    scan.add_argument(
        "-o", "--output", metavar="SNAPSHOT", required=True, help="a directory that does not exist"
    )
    plan = verbs.add_parser("plan", help="find every conflict and plan the migration to topic-id directories")
    plan.add_argument("fleet", metavar="FLEET|SNAPSHOT", help="the fleet file, or a snapshot of fleet scan")
    plan.add_argument("-o", "--output", metavar="DIR", required=True, help="a directory that does not exist")
    plan.add_argument("--ids", metavar="FORMER", help="a former plan, whose minted ids are kept")
    report = verbs.add_parser("report", help="draw the page of a plan again")
    report.add_argument("plan", metavar="DIR", help="a plan directory")
    report.add_argument("-o", "--output", metavar="FILE", help="where to (else report.html in the plan)")
    for verb, parser in (("scan", scan), ("plan", plan), ("report", report)):
        parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
        parser.set_defaults(run=act, title=f"fleet {verb}")
    for parser in (scan, plan):
        parser.add_argument("--master", metavar="URL", help="Spark master (else local, all cores)")
        parser.add_argument(
            "--shared-paths", action="store_true", help="every machine of the cluster sees the same paths"
        )


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        from migrate.errors import NoSparkError

        raise NoSparkError(
            f"logdirctl {arguments.title}",
            expected="the extra logdird[fleet]",
            found=f"no {', '.join(missing)}",
            fix="pip install 'logdird[fleet]'",
        )
    return Exit.INTERNAL
