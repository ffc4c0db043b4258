"""Columns of a listing: a heading, and the field of an item that its cells show, or a function of the item.

The JSON of an item is all of its fields (``logdir.service.report.json_form``); a table shows what people need of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from operator import attrgetter
from typing import Generic, NamedTuple, TextIO, TypeVar

from tools.cli import render

_T = TypeVar("_T")


class Column(NamedTuple, Generic[_T]):
    """One column of a table on the terminal: its heading and how its cells are read from an item."""

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


def table(out: TextIO, columns: Sequence[Column[_T]], items: Sequence[_T], *, is_sparse: bool = False) -> None:
    """Write a table with one row per item.

    Args:
        out: Where to write.
        columns: The columns, in order.
        items: The items, in order.
        is_sparse: Whether to leave out columns that are empty in every row; the first column always stays.
    """
    rows = [[column.text(item) for column in columns] for item in items]
    kept = [at for at in range(len(columns)) if not (is_sparse and at) or any(row[at] not in ("", "-") for row in rows)]
    render.table(
        out,
        [columns[at].heading for at in kept],
        [[row[at] for at in kept] for row in rows],
        frozenset(number for number, at in enumerate(kept) if columns[at].is_number),
    )
