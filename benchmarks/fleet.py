"""``logdirctl fleet plan`` over a synthetic fleet: wall time, memory of all processes, and DuckDB beside it.

``python -m benchmarks.fleet [N …]`` (default one million partition directories; the budget's other size is ten).

Spec: design §10 "fleet plan".
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from benchmarks.measure import HOME
from benchmarks.synthetic_fleet import write_fleet

_SAMPLE_SECONDS = 0.2
_MAX_SECONDS = {1_000_000: 60.0, 10_000_000: 480.0}
_MAX_BYTES = 8 << 30
_MAX_DRIVER_BYTES = 300 << 20
_MAX_RATIO = 6.0
_RATIO_ROUNDS = 3
_RATIO_FROM = 10_000_000
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Run(NamedTuple):
    """One run of a command and its children."""

    seconds: float
    peak_bytes: int
    """The highest sum of resident sizes; pages that several share count for each."""
    driver_peak_bytes: int
    """Of the first process alone."""


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _tree(top: int) -> set[int]:
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found = {top}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def watched(command: list[str]) -> Run:
    """Run a command to its end and watch its memory."""
    peak = driver = 0
    began = time.perf_counter()
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, stdout=said, stderr=said, cwd="/", env={**os.environ, "PYTHONPATH": HOME}) as child,
    ):
        while child.poll() is None:
            time.sleep(_SAMPLE_SECONDS)
            peak = max(peak, sum(map(_resident, _tree(child.pid))))
            driver = max(driver, _resident(child.pid))
        took = time.perf_counter() - began
        if child.returncode:
            said.seek(0)
            raise SystemExit(f"{command[2:5]} ended with {child.returncode}: {said.read()[-2000:].decode()}")
    return Run(took, peak, driver)


def _command(*argv: str) -> list[str]:
    return [sys.executable, "-c", "import sys; from tools.entry import logdirctl; sys.exit(logdirctl())", *argv]


def _line(what: str, found: str, budget: str, met: bool | None) -> str:
    return f"| {what} | {found} | {budget} | {'-' if met is None else 'met' if met else 'MISSED'} |"


def measure(size: int, work: str) -> list[str]:
    """Measure one size; return lines of a table."""
    fleet = os.path.join(work, f"fleet-{size}")
    written = write_fleet(fleet, size)
    source = os.path.join(fleet, "fleet.yaml")
    out = os.path.join(work, "plan")
    run = watched(_command("fleet", "plan", source, "-o", out))
    shutil.rmtree(out)
    limit = _MAX_SECONDS.get(size)
    shown = f"{written:,} directories"
    lines = [
        _line(
            f"fleet plan, {shown}",
            f"{run.seconds:.1f} s",
            f"≤ {limit} s",
            None if limit is None else run.seconds <= limit,
        ),
        _line("its processes together", f"{run.peak_bytes >> 20} MiB", "≤ 8192 MiB", run.peak_bytes <= _MAX_BYTES),
        _line(
            "driver's Python",
            f"{run.driver_peak_bytes >> 20} MiB",
            "≤ 300 MiB",
            run.driver_peak_bytes <= _MAX_DRIVER_BYTES,
        ),
    ]
    snapshot = os.path.join(work, "snapshot")
    scanned = watched(_command("fleet", "scan", source, "-o", snapshot))
    lines.append(_line(f"fleet scan, {shown}", f"{scanned.seconds:.1f} s", "-", None))
    ours, theirs = [], []
    for _ in range(_RATIO_ROUNDS):
        theirs.append(watched([sys.executable, "-m", "benchmarks.duckdb_plan", snapshot, out]).seconds)
        shutil.rmtree(out)
        ours.append(watched(_command("fleet", "plan", snapshot, "-o", out)).seconds)
        shutil.rmtree(out)
    ratio = statistics.median(ours) / statistics.median(theirs)
    both = f"{ratio:.1f} ({statistics.median(ours):.1f} s : {statistics.median(theirs):.1f} s)"
    asked = size >= _RATIO_FROM
    lines.append(
        _line(
            "fleet plan of the snapshot : DuckDB", both, "≤ 6" if asked else "-", ratio <= _MAX_RATIO if asked else None
        )
    )
    shutil.rmtree(snapshot)
    shutil.rmtree(fleet)
    return lines


def table(sizes: list[int]) -> str:
    """Measure every size and return a Markdown table."""
    lines = ["| what | found | budget | |", "| --- | --- | --- | --- |"]
    with tempfile.TemporaryDirectory(prefix="logdird-fleet-") as work:
        for size in sizes:
            lines += measure(size, work)
    return "\n".join(lines)


if __name__ == "__main__":
    print(table([int(text) for text in sys.argv[1:]] or [1_000_000]))
