"""``logdirctl fleet``: scan, plan and report over many brokers, on Spark.

The planning side is an extra and is imported only here, when asked for.

Spec: design §6, §7.
"""

from __future__ import annotations

import argparse
import importlib.util
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from logdir.errors import Problem
from logdir.observe.outside import require_outside
from logdir.text import printable, quoted
from tools.cli import render
from tools.cli.arguments import Exit, Streams, envelope, say

if TYPE_CHECKING:
    from migrate.plan.build import Summary

_NEEDED = ("pyspark", "pyarrow", "pandas")


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
    if arguments.verb == "report":
        return _report(arguments, streams)
    return _on_spark(arguments, streams)


def _report(arguments: argparse.Namespace, streams: Streams) -> int:
    from migrate import job

    page = job.report(Path(arguments.plan), None if arguments.output is None else Path(arguments.output))
    if arguments.json:
        streams.out.write(envelope(arguments.title, Exit.DONE, (), {"output": str(page)}))
    else:
        streams.out.write(f"wrote {printable(str(page))}\nnext: open it in a browser\n")
    return Exit.DONE


def _on_spark(arguments: argparse.Namespace, streams: Streams) -> int:
    from migrate import job
    from migrate.plan.publish import require_absent
    from migrate.session import spark_session

    output = Path(arguments.output)
    require_absent(output)  # before a JVM is started for it
    if Path(arguments.fleet).is_file():
        from migrate.source.fleet import read_fleet

        walked = [path for _, _, broker in read_fleet(arguments.fleet).brokers() for path in broker.log_dirs]
        require_outside(str(output), walked)  # inventories name log dirs of other hosts
    stages = Stages(streams)
    result: dict[str, object] = {"output": str(output)}
    warnings: list[Problem] = []
    with stages:
        stages.begin("starting Spark")
        with spark_session(arguments.master) as spark:
            if arguments.verb == "scan":
                found = job.scan(
                    spark, arguments.fleet, output, shared_paths=arguments.shared_paths, progress=stages.begin
                )
                result |= {"disks": found.sources, "unread": found.unread, "rows": found.rows, "bytes": found.bytes}
            else:
                former = None if arguments.ids is None else Path(arguments.ids)
                summary = job.plan(
                    spark,
                    arguments.fleet,
                    output,
                    former=former,
                    shared_paths=arguments.shared_paths,
                    progress=stages.begin,
                    warn=warnings.append,
                )
                result["summary"] = summary.as_json()
            stages.begin("stopping Spark")
    for problem in warnings:
        say(streams, f"logdirctl {arguments.title}: warning: {problem.line()}")
    if arguments.json:
        streams.out.write(envelope(arguments.title, Exit.DONE, warnings, result))
    elif arguments.verb == "scan":
        counts = f"{result['disks']} disks, {result['unread']} of them unread, {result['rows']} rows"
        line = f"next: logdirctl fleet plan {quoted(str(output))} -o {quoted(f'{output}-plan')}"
        streams.out.write(f"wrote {printable(str(output))}: {counts}\n{line}\n")
    else:
        _tell_plan(summary, output, streams)
    return Exit.DONE


def _tell_plan(summary: Summary, output: Path, streams: Streams) -> None:
    from migrate.report.next_steps import NO_BROKER

    out = streams.out
    counts = ", ".join(f"{count} {readiness}" for readiness, count in summary.brokers.items())
    out.write(
        f"{summary.clusters} clusters, {summary.log_dirs} log dirs, {summary.replicas} replicas, "
        f"{render.size(summary.bytes)}\nbrokers: {counts}\n"
        f"waves: {summary.waves} (at least {summary.lower_bound}); {summary.offline_during} partitions offline "
        f"meanwhile; {len(summary.minted)} topic ids minted\n"
    )
    found = [[slug, str(units)] for slug, units in sorted(summary.conflicts.items()) if units]
    if found:
        out.write("\n")
        render.table(out, ("conflict", "units"), found, frozenset({1}))
    if summary.waves:
        if summary.waves > summary.lower_bound:
            out.write("more waves than the bound: the bound looks at one partition at a time; the report says more\n")
        out.write(f"\n{NO_BROKER}\n")
    page = quoted(str(output / "report.html"))
    out.write(f"\nwrote {printable(str(output))}\nnext: open {page} in a browser\n")


class Stages:
    """Says on a terminal which stage is under way, and for how long."""

    def __init__(self, streams: Streams) -> None:
        self._err = streams.err
        self._shown = streams.err.isatty()
        self._stage = ""
        self._started = 0.0
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        if self._shown:
            self._ticker.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        if self._shown:
            self._ticker.join()
            self._err.write("\r\x1b[K")
            self._err.flush()

    def begin(self, stage: str) -> None:
        """Say that a stage begins."""
        self._stage, self._started = stage, time.monotonic()

    def _tick(self) -> None:
        while not self._over.wait(0.5):
            self._err.write(f"\r\x1b[K{self._stage} … {time.monotonic() - self._started:.0f} s")
            self._err.flush()
