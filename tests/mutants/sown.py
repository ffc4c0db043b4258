"""Every change that may be made, under a name that lasts: operator, module, function, number within the function.

Which of them are tried is drawn by that name alone, so that a change of one function draws no others anew.

Not here: how a change is made (``operators``), what catches it (``runner``).
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from cosmic_ray.ast import get_ast
from cosmic_ray.mutating import mutate_code

from tests.mutants.operators import GUARDS, OPERATORS

ROOT: Final = Path(__file__).parents[2]
_CARRIED_OUT: Final = (
    "logdir/service/purge", "logdir/service/reconcile", "logdir/service/restore", "logdir/service/stage*",
    "logdir/service/hold", "logdir/service/export", "logdir/service/layout", "logdir/service/adopt",
    "logdir/service/batch/*", "logdir/service/report/reconcile*", "logdir/service/report/re[ps]*",
    "logdir/service/report/staged", "logdir/service/log_dirs/refill", "logdir/service/cluster/other_brokers",
)  # fmt: skip
"""What carries out decisions."""
_SHOWN: Final = frozenset({"add_parser", "_add", "_table", "_json", "_row", "_next", "next_line", "_print", "_says"})
"""Functions that only print or read arguments."""
_DRAWN: Final = {True: 0.55, False: 0.20}
"""What part is tried: of what takes a guard of data away, and of the others."""


class Mutant(NamedTuple):
    """One change."""

    operator: str
    file: str
    function: str
    number: int
    """From 1, in its function."""
    occurrence: int
    """In its file, as cosmic-ray counts."""
    lines: tuple[int, int]
    was: str
    """Its line before, without the blanks around it: a record of another line speaks of another change."""

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Its name."""
        return self.operator, self.file, self.function, self.number

    @property
    def is_guard(self) -> bool:
        """Whether it takes away what guards data."""
        return self.operator in GUARDS

    def text(self) -> str:
        """Return the whole file, changed.

        Raises:
            ValueError: there is no such place any more.
        """
        operator = next(one for one in OPERATORS if one.name == self.operator)
        text = mutate_code((ROOT / self.file).read_text("utf-8"), operator(), self.occurrence)
        if text is None:
            raise ValueError(f"nothing to change: {self}")
        return str(text)


def files() -> list[str]:
    """Return the files that are changed."""
    found = [path for ring in ("decide", "disk") for path in sorted((ROOT / "logdir" / ring).rglob("*.py"))]
    found += [path for name in _CARRIED_OUT for path in sorted(ROOT.glob(f"{name}.py"))]
    return list(dict.fromkeys(str(path.relative_to(ROOT)) for path in found if path.name != "__init__.py"))


def _walk(node: Any, function: str) -> Iterator[tuple[Any, str]]:
    """Yield nodes in cosmic-ray's order, each with the name of what it stands in."""
    yield node, function
    if node.type in {"funcdef", "classdef"}:
        function = f"{function}.{node.name.value}".lstrip(".")
    for child in getattr(node, "children", ()):
        yield from _walk(child, function)


def mutants_of(file: str) -> list[Mutant]:
    """Return every change of a file."""
    source = (ROOT / file).read_text("utf-8")
    lines = source.splitlines()
    nodes = list(_walk(get_ast(source), ""))
    found = []
    for operator in OPERATORS:
        one = operator()
        numbers: Counter[str] = Counter()
        occurrence = 0
        for node, function in nodes:
            for start, end in one.mutation_positions(node):
                numbers[function] += 1
                was = lines[start[0] - 1].strip()
                where = (start[0], end[0])
                found.append(Mutant(one.name, file, function, numbers[function], occurrence, where, was))
                occurrence += 1
    return [one for one in found if not _SHOWN & set(one.function.split("."))]


@functools.cache
def every() -> tuple[Mutant, ...]:
    """Return every change there is; the source is read once."""
    return tuple(one for file in files() for one in mutants_of(file))


def rank(mutant: Mutant) -> float:
    """Return a number of 0 to 1, always the same for one name."""
    digest = hashlib.sha256("\0".join(map(str, mutant.key)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def drawn() -> list[Mutant]:
    """Return those that are tried."""
    return [one for one in every() if rank(one) < _DRAWN[one.is_guard]]
