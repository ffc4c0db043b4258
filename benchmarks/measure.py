"""Wall and CPU time of whole processes, in turn, and ratios of medians.

Spec: design §10.
"""

from __future__ import annotations

import os
import platform
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
    cpu_ratio: float | None = None
    """Ratio of the CPU seconds, children included; ``None``: not measured."""
    cpu_budget: float | None = None

    @property
    def verdict(self) -> str:
        """``met``, ``MISSED`` or ``-``."""
        judged = [(self.ratio, self.budget), (self.cpu_ratio, self.cpu_budget)]
        kept = [found <= most for found, most in judged if found is not None and most is not None]
        return "-" if not kept else "met" if all(kept) else "MISSED"


class Took(NamedTuple):
    """How long something took, in seconds."""

    wall: float
    cpu: float
    """In user and kernel mode, of all its processes."""


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command: Sequence[str]) -> Took:
    """Run a command to its end, output to nowhere; return how long it took."""
    began, cpu = time.perf_counter(), _cpu_of_children()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", check=False)
    took = Took(time.perf_counter() - began, _cpu_of_children() - cpu)
    if done.returncode:
        raise SystemExit(f"{command[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return took


def machine() -> str:
    """Return a line about this machine: processor, cores, memory, kernel, and Python."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith(("model name", "Model"))]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    name = models[0] if models else platform.machine()
    return f"{name}, {cores} cores, {memory:.0f} GiB, Linux {platform.release()}, CPython {platform.python_version()}"


def in_turn(
    commands: Mapping[str, Sequence[str]], rounds: int = ROUNDS, before: Callable[[], None] | None = None
) -> dict[str, Took]:
    """Run every command once a round, and one round more to begin with; return the medians of each."""
    times: dict[str, list[Took]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            if before is not None:
                before()
            took = run(command)
            if number:
                times[name].append(took)
    return medians_of(times)


def medians_of(times: Mapping[str, Sequence[Took]]) -> dict[str, Took]:
    """Return the medians of what was measured, by name."""
    return {
        name: Took(statistics.median(one.wall for one in taken), statistics.median(one.cpu for one in taken))
        for name, taken in times.items()
    }


def rows_of(
    medians: Mapping[str, Took],
    baselines: Mapping[str, str],
    budgets: Mapping[str, float | None],
    note: str = "",
    cpu_budgets: Mapping[str, float] | None = None,
) -> list[Row]:
    """Return one row for each name that has a baseline."""
    return [
        Row(
            name + note,
            1000 * medians[name].wall,
            medians[name].wall / medians[base].wall,
            base,
            budgets.get(name),
            medians[name].cpu / medians[base].cpu,
            (cpu_budgets or {}).get(name),
        )
        for name, base in baselines.items()
    ]


def _at_most(budget: float | None) -> str:
    return "-" if budget is None else f"≤ {budget:.3g}"


def show(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| what | ms, median | ratio | budget | CPU ratio | budget | to | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        wall = f"{row.milliseconds:,.1f} | {row.ratio:.2f} | {_at_most(row.budget)}"
        cpu = f"{'-' if row.cpu_ratio is None else f'{row.cpu_ratio:.2f}'} | {_at_most(row.cpu_budget)}"
        lines.append(f"| {row.what} | {wall} | {cpu} | {row.baseline} | {row.verdict} |")
    return "\n".join(lines)


@contextmanager
def installed(home: str = HOME) -> Iterator[str]:
    """Install the project, not editable and without its dependencies, into a new environment; yield its ``bin``.

    Args:
        home: The top directory of its sources.
    """
    with tempfile.TemporaryDirectory(prefix="logdird-bench-") as work:
        venv, source = os.path.join(work, "venv"), os.path.join(work, "source")
        base = getattr(sys, "_base_executable", sys.executable)
        subprocess.run([base, "-m", "venv", venv], check=True)
        # A copy: building leaves folders beside the sources.
        os.mkdir(source)
        for name in ("pyproject.toml", "README.md", "LICENSE", "logdir", "migrate", "scheduler", "tools"):
            subprocess.run(["cp", "-r", os.path.join(home, name), source], check=True)
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
