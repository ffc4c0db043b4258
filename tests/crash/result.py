"""What an exploration found: a matrix of states, a row for each call and a column for each model, and violations.

Not here: exploring (``enumerate``), what a whole run says (``summary``).
"""

from __future__ import annotations

from typing import NamedTuple

_COLUMNS = 80
_CALL = 30
"""How many columns of the matrix the call has."""


class Violation(NamedTuple):
    """One way in which it goes wrong, by the shortest schedule found."""

    message: str
    schedule: str
    """For ``replay``."""
    lines: tuple[str, ...]
    """The same to read."""

    def __str__(self) -> str:
        return "\n".join([self.message, *self.lines, f"    replay: {self.schedule}"])


class Cell(NamedTuple):
    """One field of the matrix."""

    states: int
    violations: int


class Result(NamedTuple):
    """What an exploration found."""

    operation: str
    cells: dict[tuple[int, str, str], Cell]
    """By number of calls made, the last of them, and model."""
    violations: tuple[Violation, ...]
    """One for each message and model, the shortest schedule of each."""
    distinct: int
    """How many states were recovered, those of depth 2 included."""
    inner: int
    """How many states of depth 2 there were."""
    is_sampled: bool
    """Whether anywhere a sample was taken instead of all."""
    changed: int = 0
    """In how many states a disk was not as at the start when it was crashed."""
    said: tuple[str, ...] = ()
    """What the operation acknowledges when nothing is cut off."""

    @property
    def states(self) -> int:
        """How many states were judged."""
        return sum(cell.states for cell in self.cells.values()) + self.inner

    @property
    def violating(self) -> int:
        """How many states were violations."""
        return sum(cell.violations for cell in self.cells.values())

    def totals(self) -> str:
        """Return one line."""
        sampled = ", sampled" if self.is_sampled else ""
        return f"{self.states:,} states, {self.violating:,} violations ({self.distinct:,} distinct{sampled})"

    def table(self) -> str:
        """Return the matrix as text: a row for each call, a column for each model."""
        models = list(dict.fromkeys(model for _, _, model in self.cells))
        wide = max(7, (_COLUMNS - _CALL) // max(1, len(models)))
        lines = [
            f"{self.operation}: {self.totals()}",
            "after".ljust(_CALL) + "".join(f"{model:>{wide}}" for model in models),
        ]
        for after, call in dict.fromkeys((after, call) for after, call, _ in self.cells):
            row = [self.cells.get((after, call, model)) for model in models]
            # What is wrong stands below its number, so that both have room.
            for number, texts in enumerate(zip(*map(_texts, row), strict=True)):
                if number == 0 or any(texts):
                    left = _shortened(f"{after:3} {call}") if number == 0 else "    violations"
                    lines.append(left.ljust(_CALL) + "".join(f"{text:>{wide}}" for text in texts))
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n\n".join([self.table(), *map(str, self.violations)])


def _texts(cell: Cell | None) -> tuple[str, str]:
    if cell is None:
        return "", ""
    return str(cell.states), str(cell.violations) if cell.violations else ""


def _shortened(text: str) -> str:
    """Return a call that fits its column: the end of its path tells most."""
    if len(text) < _CALL:
        return text
    number, call, path = text[:4], *text[4:].split(" ", 1)
    return f"{number}{call} …{path[len(number) + len(call) + 3 - _CALL :]}"
