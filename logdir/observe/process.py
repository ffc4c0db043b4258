"""Scan one log dir in a process of its own, so that a sick disk stops nothing but its own scan.

``serve`` writes the inventory to a file and JSON lines to a pipe: ``{"entries": n}`` now and then, at the end
``{"summary": …}``, or ``{"unwritten": reason}`` if the inventory could not be written; ``main`` does so on standard
output and standard error.
Not here: who starts it (``tools.logdirctl.inventory_disks``).

Spec: design §2 law 6, §7.1.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

from logdir.formats.inventory import Disk, Entry, render
from logdir.observe.scan import scan_log_dir
from logdir.observe.share import send


class Request(NamedTuple):
    """What to scan; travels as JSON."""

    log_dir: str
    exact: bool = False
    log_dirs: tuple[str, ...] | None = None
    rack: str | None = None
    processes: int = 1
    """2: a second process looks at half of a big log dir."""
    is_written: bool = True
    """Whether the inventory itself is wanted, or its summary alone."""


class Summary(NamedTuple):
    """What a table shows of one log dir; sizes in bytes."""

    disk: Disk
    rows: int
    sha256: str | None
    """``None`` where no inventory was written."""
    kinds: dict[str, tuple[int, int, int]]
    """Kind to (entries, log_bytes, bytes)."""
    problems: dict[str, int]
    """Problem of entries to their number."""


def summarise(disk: Disk, entries: tuple[Entry, ...], sha256: str | None) -> Summary:
    """Count entries by kind and problem."""
    kinds: dict[str, tuple[int, int, int]] = {}
    problems: dict[str, int] = {}
    for entry in entries:
        count, log_bytes, total = kinds.get(entry.kind, (0, 0, 0))
        kinds[entry.kind] = (count + 1, log_bytes + (entry.log_bytes or 0), total + (entry.bytes or 0))
        for problem in entry.problems:
            problems[problem] = problems.get(problem, 0) + 1
    return Summary(disk, len(entries), sha256, dict(sorted(kinds.items())), dict(sorted(problems.items())))


def parse_summary(value: dict[str, Any]) -> Summary:
    """Read what ``render_summary`` wrote, parsed as JSON already."""
    lists = ("problems", "log_dirs")
    disk: dict[str, Any] = {k: tuple(v) if k in lists and v is not None else v for k, v in value["disk"].items()}
    kinds = {k: (v[0], v[1], v[2]) for k, v in value["kinds"].items()}
    return Summary(Disk(**disk), value["rows"], value["sha256"], kinds, value["problems"])


def render_summary(summary: Summary) -> str:
    """Return the summary as one JSON text."""
    return json.dumps({**summary._asdict(), "disk": summary.disk._asdict()})


def run(request: Request, out: BinaryIO, progress: Callable[[int], None]) -> Summary:
    """Scan and write the inventory to ``out``; ``progress`` hears the number of entries.

    Raises:
        OSError: the inventory could not be written. What the disk does is in the inventory, never an error.
    """
    scanned = scan_log_dir(
        request.log_dir,
        exact=request.exact,
        log_dirs=request.log_dirs,
        rack=request.rack,
        processes=request.processes,
        progress=progress,
    )
    if not request.is_written:
        return summarise(scanned.disk, scanned.entries, None)
    last = b""
    for piece in render(scanned.disk, scanned.entries):
        out.write(piece)
        last = piece
    out.flush()
    return summarise(scanned.disk, scanned.entries, json.loads(last)["sha256"])


def serve(request: Request, out: BinaryIO, said: int) -> int:
    """Scan for another process; return the exit status.

    Args:
        request: What to scan.
        out: Where the inventory goes.
        said: Descriptor of the pipe to who asked.
    """
    try:
        summary = run(request, out, lambda count: _tell(said, f'{{"entries":{count}}}'))
    except OSError as error:
        _tell(said, json.dumps({"unwritten": error.strerror}))
        return 1
    except Exception as error:  # noqa: BLE001 - whatever it is, who asked is told
        _tell(said, f"{type(error).__name__}: {error}")
        return 1
    _tell(said, f'{{"summary":{render_summary(summary)}}}')
    return 0


def _tell(said: int, line: str) -> None:
    send(said, line.encode(errors="backslashreplace") + b"\n")


def main() -> None:
    """Do what the one argument asks; does not return."""
    value = json.loads(sys.argv[1])
    dirs = value["log_dirs"]
    request = Request(**{**value, "log_dirs": None if dirs is None else tuple(dirs)})
    # At once: what is buffered for a full disk must not fail once more on the way out.
    os._exit(serve(request, sys.stdout.buffer, sys.stderr.fileno()))


if __name__ == "__main__":
    main()
