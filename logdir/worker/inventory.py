"""Scanning one log dir, in its worker, into an inventory file that the command opened; counting the entries.

Not here: looking at a disk (``observe.scan``), the files and their names (``service.inventory_files``).

Spec: design §2 law 6, §5 "A port per log dir", §7.1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from logdir.errors import OutputError
from logdir.formats.own.inventory import Disk, render
from logdir.observe.inventory_row import kind_in_row, row_of
from logdir.observe.replica import Contents
from logdir.observe.scan import Scanned, configured, scan_log_dir, unread
from logdir.observe.share import send
from logdir.worker.calls import Descriptor
from logdir.worker.state import WorkerState
from logdir.worker_call import worker_call

_EMPTY = Contents(0, 0, 0, 0, None, None, None, None, False, False, False)


class Scan(NamedTuple):
    """The parameters of a scan."""

    log_dir: str
    is_exact: bool = False
    """Whether to read the size of every file, not only of segments."""
    log_dirs: tuple[str, ...] | None = None
    """All log dirs configured for the broker, as printed in an inventory."""
    rack: str | None = None
    processes: int = 1
    """1, or 2: a second process scans half of a big log dir."""
    is_written: bool = True
    """Whether the inventory itself is needed, or only its counts."""


class KindFigures(NamedTuple):
    """The number of entries of one kind, the bytes of their segments (``log_bytes``) and of all files (``bytes``)."""

    entries: int
    log_bytes: int
    bytes: int


class Summary(NamedTuple):
    """Counts of one inventory."""

    disk: Disk
    rows: int
    sha256: str | None
    """``None`` if no inventory was written."""
    kinds: Mapping[str, KindFigures]
    """By kind, sorted."""
    problems: Mapping[str, int]
    """Number of entries with each problem, sorted."""


@worker_call
def write_inventory(opened: WorkerState, scan: Scan, file: Descriptor) -> Summary:
    """Scan a log dir and write its inventory.

    Args:
        opened: State of the worker; its progress counts entries.
        scan: Parameters of the scan.
        file: The empty output file.

    Raises:
        OutputError: the inventory could not be written. Errors of the scanned disk are part of the inventory.
    """
    opened.progress = 0

    def progress(count: int) -> None:
        opened.progress = count

    scanned = scan_log_dir(
        scan.log_dir,
        exact=scan.is_exact,
        log_dirs=scan.log_dirs,
        rack=scan.rack,
        processes=scan.processes,
        progress=progress,
    )
    return _written(scan, scanned, file)


def write_unanswered(scan: Scan, file: int) -> Summary:
    """Write the inventory of a log dir that does not answer to an open file: unreadable, no entries; reads nothing.

    Raises:
        OutputError: the inventory could not be written.
    """
    disk = configured(scan.log_dir, exact=scan.is_exact, log_dirs=scan.log_dirs, rack=scan.rack)
    return _written(scan, unread(disk, "io-error"), file)


def unwritten(path: str, reason: str | None) -> OutputError:
    """Return the error of an inventory that could not be written."""
    return OutputError(
        path,
        expected="room and rights to write its inventory",
        found=reason or "an error",
        fix="no file was left; free space or name another directory with -o",
    )


def _written(scan: Scan, scanned: Scanned, file: int) -> Summary:
    if not scan.is_written:
        return _summary(scanned, None)
    last = b""
    try:
        for piece in render(scanned.disk, map(row_of, scanned.entries)):
            send(file, piece)
            last = piece
    except OSError as error:
        raise unwritten(scan.log_dir, error.strerror) from error
    return _summary(scanned, json.loads(last)["sha256"])


def _summary(scanned: Scanned, sha256: str | None) -> Summary:
    kinds: dict[str, tuple[int, int, int]] = {}
    problems: dict[str, int] = {}
    for entry in scanned.entries:
        kind, contents = kind_in_row(entry).value, entry.contents or _EMPTY
        count, log_bytes, total = kinds.get(kind, (0, 0, 0))
        kinds[kind] = (count + 1, log_bytes + contents.log_bytes, total + contents.bytes)
        for problem in entry.problems:
            problems[problem] = problems.get(problem, 0) + 1
    figures = {kind: KindFigures(*found) for kind, found in sorted(kinds.items())}
    return Summary(scanned.disk, len(scanned.entries), sha256, figures, dict(sorted(problems.items())))
