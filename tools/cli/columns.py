"""Columns of a listing: a heading, and the field of an item that stands below it, or what is made of the item.

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
    """One column."""

    heading: str
    cell: str | Callable[[_T], object]
    """The name of a field, or of a field of a field (``ref.partition``), or what returns the cell."""
    is_number: bool = False
    """Aligned to the right."""

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
    """Write a table.

    Args:
        out: Where to.
        columns: In order.
        items: A row each.
        is_sparse: Columns behind the first that are empty in every row are left out.
    """
    rows = [[column.text(item) for column in columns] for item in items]
    kept = [at for at in range(len(columns)) if not (is_sparse and at) or any(row[at] not in ("", "-") for row in rows)]
    render.table(
        out,
        [columns[at].heading for at in kept],
        [[row[at] for at in kept] for row in rows],
        frozenset(number for number, at in enumerate(kept) if columns[at].is_number),
    )
