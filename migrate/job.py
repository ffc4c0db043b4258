"""The work of ``logdirctl fleet`` in a Spark session: scan, plan, report.

Each is one call from paths to a new directory or file. Not here: arguments and output (``tools.logdirctl.fleet``),
starting and stopping Spark (``session``).

Spec: design §6, §7.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from logdir.errors import Problem
from logdir.observe.outside import require_outside
from migrate.errors import PlanFormatError
from migrate.plan.publish import is_partial, require_absent, write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from migrate.plan.summary import Summary
    from migrate.source.snapshot import Scan

Progress = Callable[[str], None]


def _silent(stage: str) -> None:
    """Progress function that does nothing."""


def scan(
    spark: SparkSession,
    fleet_file: str | Path,
    output: Path,
    *,
    shared_paths: bool = False,
    progress: Progress = _silent,
) -> Scan:
    """Read every disk and inventory of a fleet into a snapshot.

    Args:
        spark: The session.
        fleet_file: The fleet file.
        output: A directory that does not exist.
        shared_paths: Whether log dirs may be walked by any machine of the session.
        progress: Called with the name of each stage as it begins.

    Returns:
        The counts of the snapshot.

    Raises:
        ConfigError: the fleet file is invalid.
        MigrationError: the output exists, or log dirs are listed on a cluster.
    """
    from migrate.source.snapshot import write_snapshot

    progress("reading inventories")
    return write_snapshot(spark, str(fleet_file), output, shared_paths=shared_paths)


def plan(
    spark: SparkSession,
    source: str | Path,
    output: Path,
    *,
    former: Path | None = None,
    shared_paths: bool = False,
    progress: Progress = _silent,
    warn: Callable[[Problem], None] = lambda problem: None,
) -> Summary:
    """Plan the migration of a fleet.

    Args:
        spark: The session.
        source: A fleet file, or the directory of a snapshot.
        output: A directory that does not exist.
        former: An earlier plan, whose minted ids are kept.
        shared_paths: Whether log dirs may be walked by any machine of the session.
        progress: Called with the name of each stage as it begins.
        warn: Called with warnings, such as a topic glob without a match.

    Returns:
        The content of ``summary.json``.

    Raises:
        ConfigError: the fleet file is invalid.
        MigrationError: the snapshot, the earlier plan or the output cannot be used, or log dirs are listed on a
            cluster.
    """
    from migrate.plan.build import plan_fleet
    from migrate.plan.entries import COLUMNS
    from migrate.source.snapshot import open_frame

    require_absent(output)
    if former is not None:
        _require_final(former)
    fleet, frame = open_frame(spark, str(source), columns=COLUMNS, shared_paths=shared_paths)

    def warn_with_path(problem: Problem) -> None:
        warn(problem._replace(path=f"{source}: {problem.path}"))

    return plan_fleet(spark, frame, fleet, output, former, progress=progress, warn=warn_with_path)


def report(plan_dir: Path, output: Path | None = None) -> Path:
    """Render the report page of a plan again; return the page's path. Needs no Spark session.

    Args:
        plan_dir: A plan directory.
        output: The page's path; ``report.html`` in the plan if not given.

    Raises:
        PlanFormatError: the directory is no plan.
        OutputError: the page could not be written.
        RefusedError: the page would lie in a log dir or work root of this host.
    """
    from migrate.report.page import render_report

    _require_final(plan_dir)
    if output is not None:
        require_outside(str(output))
    page = plan_dir / "report.html" if output is None else output
    write_file(page, render_report(plan_dir).encode("utf-8"))
    return page


def _require_final(plan_dir: Path) -> None:
    # The report of an unfinished plan is rendered in its partial directory, so the reader cannot refuse that name.
    if is_partial(plan_dir):
        raise PlanFormatError(str(plan_dir), expected="a plan", found="an unfinished one", fix="name a finished plan")
