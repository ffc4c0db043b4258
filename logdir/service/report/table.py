"""Tables for people: a column has a heading, and the field of an item that its cells show, or a function of the item.

The JSON of an item is all of its fields (``json_form``); a table shows what people need of them.

Not here: drawing a table (``tools.cli.render``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

_T = TypeVar("_T")


class Column(NamedTuple, Generic[_T]):
    """One column of a table: its heading and how its cells are read from an item."""

    heading: str
    cell: str | Callable[[_T], object]
    """The name of a field, or of a field of a field (``ref.partition``), or a function that returns the value."""
    is_number: bool = False
    """Whether its cells are aligned to the right."""

    def text(self, item: _T) -> str:
        """Return the cell of an item."""
        return text_of(attrgetter(self.cell)(item) if isinstance(self.cell, str) else self.cell(item))


def text_of(value: object) -> str:
    """Return a value as a cell.

    >>> text_of(None), text_of(""), text_of((1, 2)), text_of(()), text_of(7)
    ('-', '', '1,2', '-', '7')
    """
    match value:
        case Enum():
            return str(value.value)
        case tuple():
            return ",".join(map(text_of, value)) or "-"
        case None:
            return "-"
        case _:
            return str(value)


class Cells(NamedTuple):
    """A table as text."""

    headings: list[str]
    rows: list[list[str]]
    right: frozenset[int]
    """Indices of the columns that are aligned to the right."""


class Table(NamedTuple, Generic[_T]):
    """A table with one row per item."""

    columns: Sequence[Column[_T]]
    items: Sequence[_T]
    is_sparse: bool = False
    """Whether to leave out columns that are empty in every row; the first column always stays."""

    def cells(self) -> Cells:
        """Return it as text, one row per item in their order."""
        rows = [[column.text(item) for column in self.columns] for item in self.items]
        kept = [
            at
            for at in range(len(self.columns))
            if not (self.is_sparse and at) or any(row[at] not in ("", "-") for row in rows)
        ]
        return Cells(
            [self.columns[at].heading for at in kept],
            [[row[at] for at in kept] for row in rows],
            frozenset(number for number, at in enumerate(kept) if self.columns[at].is_number),
        )
