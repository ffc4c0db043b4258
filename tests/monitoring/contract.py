"""The metrics that docs/metrics.md lists, by the names of their series; and the series of others that rules may use.

In a text file each series has the label ``daemon``, and those of the process are called ``logdird_process_…``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.promql.syntax import Aggregation, Binary, Expr, MatchOp, selectors, walk
from tests.promql.values import NAME

TARGET = frozenset({"job", "instance"})
"""Labels that Prometheus gives every series that it scrapes."""
PROCESS = (
    "process_virtual_memory_bytes", "process_resident_memory_bytes", "process_start_time_seconds",
    "process_cpu_seconds_total", "process_open_fds", "process_max_fds",
)  # fmt: skip
"""What Prometheus's client libraries show of a process on Linux."""
OF_OTHERS = {"up": frozenset[str](), "node_textfile_mtime_seconds": frozenset({"file"})}
"""Made by Prometheus itself for each target; and by node_exporter for each text file that it reads."""
_NAMES = re.compile(r"\b(?:logdird|process)_[a-z0-9_]+")


class Metric(NamedTuple):
    """One row of the table."""

    name: str
    type: str
    labels: frozenset[str]

    @property
    def series(self) -> Iterator[tuple[str, frozenset[str]]]:
        """The names of its series, each with its labels."""
        if self.type != "histogram":
            yield self.name, self.labels
            return
        yield f"{self.name}_bucket", self.labels | {"le"}
        yield f"{self.name}_sum", self.labels
        yield f"{self.name}_count", self.labels


def read_table(page: str) -> dict[str, Metric]:
    """Return the metrics of the table whose first columns are name, type and labels."""
    found = {}
    columns: list[str] = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            columns = []
        elif cells[0].lower() in ("name", "metric") and [cell.lower() for cell in cells[1:3]] == ["type", "labels"]:
            columns = cells
        elif columns:
            labels = frozenset(re.findall(r"[a-z_]+", re.sub(r"\(.*?\)", "", cells[2])))
            for name in _NAMES.findall(cells[0]):
                found[name] = Metric(name, cells[1].strip("`"), labels)
    return found


def series_of(metrics: dict[str, Metric]) -> dict[str, frozenset[str]]:
    """Return the labels of every series by its name: those of the table, of a process and of others."""
    ours = {name: labels for one in metrics.values() for name, labels in one.series}
    of_process = dict.fromkeys((*PROCESS, *(f"logdird_{name}" for name in PROCESS)), frozenset[str]())
    found = {**of_process, **OF_OTHERS, **ours}
    return {name: labels | {"daemon"} if name.startswith("logdird_") else labels for name, labels in found.items()}


def unknown(expr: Expr, known: dict[str, frozenset[str]]) -> list[str]:
    """Return what an expression names that no series has: metrics, and labels of a selector, group or match."""
    found = []
    for one in selectors(expr):
        if one.name is None or one.name not in known:
            found.append(f"metric {one.name}")
            continue
        for matcher in one.matchers:
            if matcher.label not in known[one.name] | TARGET | {NAME}:
                found.append(f"label {matcher.label} of {one.name}")
    for inner in walk(expr):
        if isinstance(inner, Aggregation):
            named, sides = set(inner.grouping), [inner.operand]
        elif isinstance(inner, Binary):
            named, sides = {*inner.matching.labels, *inner.matching.include}, [inner.left, inner.right]
        else:
            continue
        had = set(TARGET).union(*(known.get(one.name or "", ()) for side in sides for one in selectors(side)))
        found += [f"label {name} of a group or match" for name in sorted(named - had)]
    return found


def values_matched(expr: Expr) -> Iterator[tuple[str, str, str]]:
    """Yield metric, label and value of every value that a selector names, each alternative of a pattern by itself."""
    for one in selectors(expr):
        for matcher in one.matchers:
            if matcher.label == NAME or not matcher.value:
                continue
            is_plain = matcher.op in (MatchOp.EQUAL, MatchOp.NOT_EQUAL)
            for value in [matcher.value] if is_plain else matcher.value.split("|"):
                yield one.name or "", matcher.label, value
