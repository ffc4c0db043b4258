"""Tables and prose for people: rich on a terminal, plain columns elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from logdir.text import printable


def wrapped(out: TextIO, line: str) -> None:
    """Write one line of prose; on a terminal it is broken between words."""
    if out.isatty():
        import shutil
        import textwrap

        line = textwrap.fill(line, max(20, shutil.get_terminal_size().columns), subsequent_indent="  ") + "\n"
    out.write(line)


def table(out: TextIO, headers: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int]) -> None:
    """Write a table, or on a terminal that is too narrow for it one line per cell.

    Args:
        out: Where to write; on a terminal the headers are bold.
        headers: One per column.
        rows: The cells of each row; control characters are escaped here.
        right: Indices of the columns aligned to the right.
    """
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(header), *(len(row[i]) for row in shown), 0) for i, header in enumerate(headers)]
    if out.isatty():
        import shutil

        if shown and sum(widths) + 2 * (len(widths) - 1) > shutil.get_terminal_size().columns:
            _stacked(out, headers, shown)
            return
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        made = Table(box=None, pad_edge=False, header_style="bold")
        for index, header in enumerate(headers):
            made.add_column(header, justify="right" if index in right else "left", overflow="fold")
        for row in shown:
            made.add_row(*map(Text, row))
        Console(file=out).print(made)
        return
    for row in [list(headers), *shown]:
        cells = (
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        out.write("  ".join(cells).rstrip() + "\n")


def _stacked(out: TextIO, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table too wide for its terminal: one line per cell that is not empty, a blank line after each row."""
    width = max(map(len, headers))
    for row in rows:
        for header, cell in zip(headers, row, strict=True):
            if cell not in ("", "-"):
                out.write(f"{header.ljust(width)}  {cell}\n")
        out.write("\n")
