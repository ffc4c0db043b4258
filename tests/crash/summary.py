"""What a whole run says at its end: states by family and model, and what makes the run worthless.

An enumeration shows nothing of an operation that has hardly any states, that changes nothing, or that never gets where
it is to get: such an operation fails the run, so that nobody rests on it.

Not here: exploring (``enumerate``), the command (``__main__``).

Spec: reliability §4.4 ("a crash test must assert that it reached the state it claims"), §1.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.crash.result import Result
from tests.operations.case import Case

FEWEST_STATES = 20
"""An operation with fewer is too small to show anything."""
_WIDTH = 9


def letters(result: Result) -> Counter[str]:
    """Return how many states each model has: ``F`` also those killed after it, ``D`` whatever it lies over."""
    counted: Counter[str] = Counter()
    for (_, _, model), cell in result.cells.items():
        counted[model[0]] += cell.states
    return counted


def worthless(one: Case, result: Result) -> list[str]:
    """Return why an exploration under every model shows nothing, one line each.

    Args:
        one: What was explored.
        result: What came of it.
    """
    wrong = []
    if result.states < FEWEST_STATES:
        wrong.append(f"worthless: {one.name} has {result.states} states, fewer than {FEWEST_STATES}")
    if not result.changed:
        wrong.append(f"worthless: no state of {one.name} differs from its start")
    missing = sorted(one.reaches - set(result.said))
    if missing:
        wrong.append(f"worthless: {one.name} never says '{missing[0]}', also when nothing is cut off")
    return wrong


class Summary:
    """Counts what is printed at the end."""

    def __init__(self, models: Iterable[str]) -> None:
        self._models = tuple(dict.fromkeys(model[0] for model in models))
        self._counts: dict[str, Counter[str]] = {}
        self.operations = 0
        self.states = 0

    def add(self, family: str, result: Result) -> None:
        """Count one operation."""
        self._counts.setdefault(family, Counter()).update(letters(result))
        self.operations += 1
        self.states += result.states

    def lines(self) -> list[str]:
        """Return the table: a row for each family, a column for each model; 80 columns wide at most."""
        rows = [["states", *self._models, "all"]]
        total: Counter[str] = Counter()
        for family, counts in self._counts.items():
            total += counts
            rows.append(_row(family, self._models, counts))
        rows.append(_row("all", self._models, total))
        return [f"{row[0]:14.14}" + "".join(f"{text:>{_WIDTH}}" for text in row[1:]) for row in rows]


def _row(name: str, models: Iterable[str], counts: Counter[str]) -> list[str]:
    return [name, *(f"{counts[model]:,}" for model in models), f"{counts.total():,}"]


def heading(models: Iterable[str]) -> str:
    """Return the line above those of the operations."""
    return f"{'operation':26}" + "".join(f"{model[0]:>8}" for model in models)


def line(result: Result, models: Iterable[str]) -> str:
    """Return one line about an operation: its states under each model; a long name has a line of its own."""
    counts = letters(result)
    name = result.operation if len(result.operation) < 26 else f"{result.operation}\n"
    return name + " " * (26 if name.endswith("\n") else 26 - len(name)) + "".join(f"{counts[m[0]]:>8}" for m in models)
