"""What the command line asks of a fleet, sessions included: scan, plan, report.

What cannot come to anything is refused before a JVM starts. Not here: the work in a session (``job``).

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
"""Field metadata of a field that is not in the JSON form of a result."""
_NEEDED = ("pyspark", "pyarrow", "pandas")
_ABOVE_BOUND = "more waves than the bound: the bound looks at one partition at a time; the report says more"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """What needs a session."""

    source: str
    """The fleet file; of a plan also the directory of a snapshot."""
    output: Path
    """A directory that does not exist."""
    master: str | None = None
    """URL of a Spark master; ``None``: local, all cores."""
    is_path_shared: bool = False
    """Every machine of the cluster sees the same paths."""
    former: Path | None = None
    """Of a plan: a former one, whose minted ids are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """A snapshot."""

    output: str
    """Its directory."""
    sources: int
    """Number of log dirs and inventory files."""
    unread: int
    """Number of sources that are missing, incomplete, or of an unreadable disk."""
    rows: int
    """Number of disks and entries."""
    bytes: int
    """Size of its files."""

    @property
    def summary(self) -> str:
        """What it holds, for people."""
        return f"{self.sources} disks, {self.unread} of them unread, {self.rows} rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """A plan."""

    output: str
    """Its directory."""
    summary: Summary
    warnings: tuple[Problem, ...] = field(metadata=_HIDDEN)
    """What is odd and stops nothing."""

    @property
    def counts(self) -> tuple[str, ...]:
        """Its figures, for people: a line each."""
        found = self.summary
        brokers = ", ".join(f"{count} {readiness}" for readiness, count in found.brokers.items())
        waves = f"{found.waves} (at least {found.lower_bound}); {found.offline_during} partitions offline meanwhile"
        return (
            f"{found.clusters} clusters, {found.log_dirs} log dirs, {found.replicas} replicas, {size(found.bytes)}",
            f"brokers: {brokers}",
            f"waves: {waves}; {len(found.minted)} topic ids minted",
        )

    @property
    def conflicts(self) -> tuple[tuple[str, int], ...]:
        """Every conflict that was found, by slug, with the number of its units."""
        return tuple((slug, units) for slug, units in sorted(self.summary.conflicts.items()) if units)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known of its waves, for people; a line each, an empty one before what no broker reads."""
        from migrate.report.next_steps import NO_BROKER

        if not self.summary.waves:
            return ()
        is_above = self.summary.waves > self.summary.lower_bound
        return (*((_ABOVE_BOUND,) if is_above else ()), "", NO_BROKER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportResult:
    """The page of a plan."""

    output: str
    """Its file."""


def scan(command: str, request: SessionRequest, progress: Callable[[str], None]) -> ScanResult:
    """Read every disk and inventory of a fleet into a snapshot.

    Args:
        command: As it was typed, for an error.
        request: What is asked.
        progress: Told the name of each stage as it begins.

    Raises:
        LogDirError: as ``require_spark``, ``spark_session`` and ``job.scan``; the output is there, or in a log dir.
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
    """Plan a fleet; arguments and errors as of ``scan``, with ``job.plan``."""
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
    """Return if the extra is installed.

    Raises:
        NoSparkError: a package of it is missing.
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
