"""Wall time of whole processes, in turn, and ratios of medians.

Spec: design §10.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROUNDS = 7


class Row(NamedTuple):
    """One ratio and what it may be."""

    what: str
    milliseconds: float
    ratio: float
    baseline: str
    budget: float | None
    """The highest ratio that is met; ``None`` where none was set."""

    @property
    def verdict(self) -> str:
        """``met``, ``MISSED`` or ``-``."""
        if self.budget is None:
            return "-"
        return "met" if self.ratio <= self.budget else "MISSED"


def wall(command: Sequence[str]) -> float:
    """Run a command to its end, output to nowhere; return seconds."""
    began = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", check=False)
    took = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{command[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return took


def in_turn(
    commands: Mapping[str, Sequence[str]], rounds: int = ROUNDS, before: Callable[[], None] | None = None
) -> dict[str, float]:
    """Run every command once a round, and one round more to begin with; return median seconds of each."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            if before is not None:
                before()
            took = wall(command)
            if number:
                times[name].append(took)
    return {name: statistics.median(taken) for name, taken in times.items()}


def rows_of(
    medians: Mapping[str, float], baselines: Mapping[str, str], budgets: Mapping[str, float | None], note: str = ""
) -> list[Row]:
    """Return one row for each name that has a baseline."""
    return [
        Row(name + note, 1000 * medians[name], medians[name] / medians[base], base, budgets.get(name))
        for name, base in baselines.items()
    ]


def show(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| what | ms, median | ratio | to | budget | |", "| --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        budget = "-" if row.budget is None else f"≤ {row.budget:g}"
        lines.append(
            f"| {row.what} | {row.milliseconds:,.1f} | {row.ratio:.2f} | {row.baseline} | {budget} | {row.verdict} |"
        )
    return "\n".join(lines)


@contextmanager
def installed() -> Iterator[str]:
    """Install the project, not editable and without its dependencies, into a new environment; yield its ``bin``."""
    with tempfile.TemporaryDirectory(prefix="logdird-bench-") as work:
        venv, source = os.path.join(work, "venv"), os.path.join(work, "source")
        base = getattr(sys, "_base_executable", sys.executable)
        subprocess.run([base, "-m", "venv", venv], check=True)
        # A copy: building leaves folders beside the sources.
        os.mkdir(source)
        for name in ("pyproject.toml", "README.md", "LICENSE", "logdir", "migrate", "scheduler", "tools"):
            subprocess.run(["cp", "-r", os.path.join(HOME, name), source], check=True)
        pip = [os.path.join(venv, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", source], check=True)
        yield os.path.join(venv, "bin")


def drop_caches() -> None:
    """Write back and forget every cached page, name and inode. Needs root."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3\n")


def can_drop_caches() -> bool:
    """Whether cold runs can be had."""
    try:
        drop_caches()
    except OSError:
        return False
    return True


def own_peak_bytes() -> int:
    """Return the highest resident size this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
