"""Scan every log dir of one broker in parallel into one inventory each. Only reads the log dirs; needs no work root.

A log dir that does not answer gets an inventory, too: unreadable, and without entries.

Not here: the scan (``worker.inventory``), the output files (``inventory_files``).

Spec: design §2 law 6, §6, §7.1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from logdir.errors import ConfigError, LogDirSuspectError, Problem
from logdir.formats.own.inventory import Disk
from logdir.observe.outside import require_outside_of
from logdir.service.inventory_files import InventoryFiles, opened_files
from logdir.service.log_dirs.ports import BrokerPorts, connected, kept_free_places
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.json_form import HIDDEN, KEY
from logdir.service.report.reporter import Reporter
from logdir.service.report.table import Column
from logdir.text import size, utf8
from logdir.worker.calls import Descriptor
from logdir.worker.inventory import KindFigures, Scan, Summary, write_inventory, write_unanswered
from logdir.worker.remote import followed
from logdir.worker.start import run_apart

_FIXES: Final = {
    "absent": "mount it or take it out of log.dirs",
    "no-permission": "run as the broker's user",
    "io-error": "check the kernel log; do not restart the broker before the cause is known",
    "meta-properties-missing": "no broker starts on it: mount the right disk, or format a new one with kafka-storage",
    "meta-properties-malformed": "a broker treats it as offline, or will not start on it; see "
    "logdirctl explain meta-properties-malformed",
}
_ORDINARY: Final = ("plain-file", "partition-metadata-missing", "name-truncated")
"""Problems of entries for which the result gets no ``Problem``, only a count."""
_KINDS: Final = ("live", "future", "delete", "stray", "staged", "purging", "incoming", "unknown")
_NO_RACK: Final = "the inventories hold no broker.rack: name the rack of this broker in the fleet file"


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryRequest:
    """A request to take inventories."""

    broker: BrokerRequest
    is_exact: bool = False
    """Whether to read the size of every file, not only of segments."""
    output: str | None = None
    """The output directory; ``None``: the inventories stay in memory."""
    is_written: bool = True
    """Whether the inventories are needed, or only their counts."""

    def require_valid(self) -> None:
        """Check that an output directory, if given, has a name. Raises ``ConfigError``."""
        if self.output is not None and (not self.output or "\0" in self.output):
            raise ConfigError((Problem("config-error", "--output", "a directory to write to", "no path"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryDisk:
    """The inventory of one log dir."""

    disk: Disk
    """Line 1 of its inventory."""
    file: str | None
    """The output file; ``None`` if there is none."""
    kinds: Mapping[str, KindFigures]
    """Number of entries and bytes, by kind of entry."""
    problems: Mapping[str, int] = field(metadata={KEY: "problem_counts"})
    """Number of entries with each problem."""
    rows: int
    sha256: str | None
    """``None`` if no inventory was written."""
    content: bytes | None = field(default=None, metadata=HIDDEN)
    """The inventory, if it was requested in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryResult:
    """The inventories of a broker."""

    disks: tuple[InventoryDisk, ...] = field(metadata={KEY: "items"})
    """In the order of the broker's configuration."""
    problems: tuple[Problem, ...] = field(metadata=HIDDEN)

    @property
    def is_sound(self) -> bool:
        """Whether every log dir was read and is formatted."""
        return all(one.disk.status == "ok" and not one.disk.problems for one in self.disks)

    def columns(self, *, is_exact: bool) -> Iterator[Column[InventoryDisk]]:
        """Yield the columns of the table, for people; ``is_exact``: the size of every file was read."""
        yield Column("log dir", "disk.log_dir")
        yield Column("status", "disk.status")
        yield Column("layout", lambda one: one.disk.layout or None)
        for kind in _KINDS:
            if kind == "live" or any(kind in one.kinds for one in self.disks):
                yield _number(kind, _entries(kind))
        yield _number("log bytes", lambda one: size(sum(kind.log_bytes for kind in one.kinds.values())))
        if is_exact:
            yield _number("all bytes", lambda one: size(sum(kind.bytes for kind in one.kinds.values())))
        yield _number("no id", lambda one: one.problems.get("partition-metadata-missing", 0))
        yield _number("free", lambda one: size(one.disk.free_bytes))


def _number(heading: str, count: Callable[[InventoryDisk], object]) -> Column[InventoryDisk]:
    return Column(heading, lambda one: count(one) if one.disk.status == "ok" else None, is_number=True)


def _entries(kind: str) -> Callable[[InventoryDisk], object]:
    return lambda one: one.kinds[kind].entries if kind in one.kinds else 0


def take(request: InventoryRequest, reporter: Reporter) -> InventoryResult:
    """Scan every log dir of a broker, and write the requested inventories.

    Returns:
        The counts of every log dir. All files are whole and synced.

    Raises:
        ConfigError: the broker is invalid, or no file can be created in the output directory.
        RefusedError: the output directory lies in a log dir or a work root; nothing was created.
        OutputError: an inventory could not be written; no file was left.
        LogDirSuspectError: the disk of the output directory does not answer.
    """
    request.require_valid()
    with connected(request.broker) as ports:
        if request.output is not None and request.is_written:
            require_place(ports, request.output)
        scans = _scans(ports, request)
        with opened_files(request.output, len(scans), is_written=request.is_written) as files:
            summaries = _scanned(ports, scans, files, reporter)
            paths = files.publish(summaries)
            disks = tuple(
                InventoryDisk(
                    disk=one.disk,
                    file=paths[at],
                    kinds=one.kinds,
                    problems=one.problems,
                    rows=one.rows,
                    sha256=one.sha256,
                    content=files.content(at),
                )
                for at, one in enumerate(summaries)
            )
        return InventoryResult(disks=disks, problems=(*ports.notes, *_problems(ports, request, disks)))


def _scans(ports: BrokerPorts, request: InventoryRequest) -> list[Scan]:
    named = ports.named
    # The configured paths, which every inventory of this broker contains.
    configured = tuple(map(utf8, named.log_dirs))
    processes = 2 if len(named.log_dirs) == 1 and len(os.sched_getaffinity(0)) > 1 else 1
    return [
        Scan(log_dir, request.is_exact, configured, named.rack, processes, request.is_written)
        for log_dir in named.log_dirs
    ]


def require_place(ports: BrokerPorts, output: str) -> None:
    """Check that the output directory lies in no log dir and in no work root. Each disk is checked by its worker.

    Raises:
        RefusedError: it lies in one.
        LogDirSuspectError: the disk of the directory does not answer.
    """
    run_apart(output, ports.patience_ms, ports.unreaped, require_outside_of, output, kept_free_places(ports))


def _scanned(ports: BrokerPorts, scans: Sequence[Scan], files: InventoryFiles, reporter: Reporter) -> Sequence[Summary]:
    numbers = {scan.log_dir: number for number, scan in enumerate(scans)}
    reported = 0

    def report(count: int) -> None:
        nonlocal reported
        if count > reported:
            reporter.advance(count - reported)
            reported = count

    reporter.begin(f"entries of {len(scans)} log dirs", 0)
    try:
        with followed(ports.ports, lambda counts: report(sum(counts))):
            found = ports.each(
                lambda port: port.begin_opened(
                    write_inventory,
                    scans[numbers[port.log_dir]],
                    Descriptor(files.descriptor(numbers[port.log_dir])),
                )
            )
        summaries = [
            write_unanswered(scans[number], files.replace(number)) if isinstance(one, LogDirSuspectError) else one
            for number, one in enumerate(found)
        ]
        report(sum(one.rows for one in summaries))
        return summaries
    finally:
        reporter.end()


def _problems(ports: BrokerPorts, request: InventoryRequest, disks: Sequence[InventoryDisk]) -> Iterator[Problem]:
    for log_dir, one in zip(ports.named.log_dirs, disks, strict=True):
        if log_dir not in ports.suspect:
            yield from _disk_problems(one.disk)
        for slug, count in one.problems.items():
            if slug not in _ORDINARY:
                fix = f"see logdirctl explain {slug}"
                yield Problem(slug, one.disk.log_dir, "no entry with this problem", f"{count} of them", fix)
    if "broker.rack" in ports.named.unknown:
        where = str(request.broker.server_properties)
        yield Problem("config-error", where, "a literal broker.rack", "a variable of config.providers", _NO_RACK)


def _disk_problems(disk: Disk) -> Iterator[Problem]:
    expected = "a log dir that can be read" if disk.status != "ok" else "a whole meta.properties"
    for slug in disk.problems:
        yield Problem(slug, disk.log_dir, expected, slug.replace("-", " "), _FIXES.get(slug, ""))
