"""The use cases of ``logdirctl fleet``: scan, plan, report, each with a Spark session of its own where it needs one.

A request that must fail is refused before a JVM starts. Not here: the work in the Spark session (``job``).

Spec: design §6, §7.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from logdir.errors import Problem
from logdir.observe.outside import require_outside
from logdir.text import size
from migrate import job
from migrate.errors import NoSparkError
from migrate.plan.publish import require_absent
from migrate.plan.summary import Summary

_HIDDEN: Final = {"json": None}
"""Metadata of a dataclass field that is left out of the JSON form of a result."""
_NEEDED = ("pyspark", "pyarrow", "pandas")
_ABOVE_BOUND = "more waves than the lower bound, which looks at one partition at a time; the report explains why"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """The arguments of ``fleet scan`` or ``fleet plan``, which start Spark."""

    source: str
    """The fleet file; for ``fleet plan`` it may also be the directory of a snapshot."""
    output: Path
    """A directory that does not exist."""
    master: str | None = None
    """URL of a Spark master; ``None``: local, all cores."""
    is_path_shared: bool = False
    """Whether every machine of the Spark cluster sees the same paths."""
    former: Path | None = None
    """For ``fleet plan``: the directory of a former plan, whose minted ids are kept; ``None``: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """The counts of a snapshot that ``fleet scan`` wrote."""

    output: str
    """The snapshot's directory."""
    sources: int
    """Number of log dirs and inventory files."""
    unread: int
    """Number of sources that are missing, incomplete, or of an unreadable disk."""
    rows: int
    """Number of disks and entries."""
    bytes: int
    """Size of the snapshot's Parquet files."""

    @property
    def summary(self) -> str:
        """The counts on one line, for people."""
        return f"{self.sources} disks, {self.unread} of them unread, {self.rows} rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """A plan that ``fleet plan`` wrote."""

    output: str
    """The plan's directory."""
    summary: Summary
    warnings: tuple[Problem, ...] = field(metadata=_HIDDEN)
    """Problems that did not stop the plan, such as a topic glob without a match."""

    @property
    def counts(self) -> tuple[str, ...]:
        """Lines for people: what the fleet has, its brokers by readiness, its waves."""
        found = self.summary
        brokers = ", ".join(f"{count} {readiness}" for readiness, count in found.brokers.items())
        waves = (
            f"{found.waves} (at least {found.lower_bound}); "
            f"{found.offline_during} partitions with one replica offline meanwhile"
        )
        return (
            f"{found.clusters} clusters, {found.log_dirs} log dirs, {found.replicas} replicas, {size(found.bytes)}",
            f"brokers: {brokers}",
            f"waves: {waves}; {len(found.minted)} topic ids minted",
        )

    @property
    def conflicts(self) -> tuple[tuple[str, int], ...]:
        """The slug of every kind of conflict that was found, and its number of units, by slug."""
        return tuple((slug, units) for slug, units in sorted(self.summary.conflicts.items()) if units)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about the waves, a line each: more than the bound; no released Kafka reads topic-id directories."""
        from migrate.report.next_steps import NO_BROKER

        if not self.summary.waves:
            return ()
        is_above = self.summary.waves > self.summary.lower_bound
        return (*((_ABOVE_BOUND,) if is_above else ()), "", NO_BROKER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportResult:
    """The report page that ``fleet report`` drew."""

    output: str
    """The page's file."""


def scan(command: str, request: SessionRequest, progress: Callable[[str], None]) -> ScanResult:
    """Read every disk and inventory of a fleet into a snapshot.

    Args:
        command: The command's words, for errors.
        request: Fleet file, output and Spark options.
        progress: Called with the name of each stage as it begins.

    Raises:
        LogDirError: as ``require_spark``, ``spark_session`` and ``job.scan``; the output exists, or lies in a log dir.
    """
    _require_possible(command, request)
    from migrate.session import spark_session

    progress("starting Spark")
    with spark_session(request.master) as spark:
        shared = request.is_path_shared
        found = job.scan(spark, request.source, request.output, shared_paths=shared, progress=progress)
        progress("stopping Spark")
    return ScanResult(
        output=str(request.output), sources=found.sources, unread=found.unread, rows=found.rows, bytes=found.bytes
    )


def plan(command: str, request: SessionRequest, progress: Callable[[str], None]) -> PlanResult:
    """Plan the migration of a fleet; arguments and errors as for ``scan``, but with ``job.plan``."""
    _require_possible(command, request)
    from migrate.session import spark_session

    warnings: list[Problem] = []
    progress("starting Spark")
    with spark_session(request.master) as spark:
        summary = job.plan(
            spark,
            request.source,
            request.output,
            former=request.former,
            shared_paths=request.is_path_shared,
            progress=progress,
            warn=warnings.append,
        )
        progress("stopping Spark")
    return PlanResult(output=str(request.output), summary=summary, warnings=tuple(warnings))


def report(command: str, plan_dir: Path, output: Path | None) -> ReportResult:
    """Draw the page of a plan again.

    Raises:
        LogDirError: as ``require_spark`` and ``job.report``.
    """
    require_spark(command)
    return ReportResult(output=str(job.report(plan_dir, output)))


def require_spark(command: str) -> None:
    """Check that all packages of the extra ``logdird[fleet]`` are installed.

    Raises:
        NoSparkError: a package is missing.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise NoSparkError(
            command,
            expected="the extra logdird[fleet]",
            found=f"no {', '.join(missing)}",
            fix="pip install 'logdird[fleet]'",
        )


def _require_possible(command: str, request: SessionRequest) -> None:
    require_spark(command)
    require_absent(request.output)  # before a JVM is started for it
    if Path(request.source).is_file():
        from migrate.source.fleet import read_fleet

        walked = [path for _, _, broker in read_fleet(request.source).brokers() for path in broker.log_dirs]
        require_outside(str(request.output), walked)  # inventories name log dirs of other hosts
