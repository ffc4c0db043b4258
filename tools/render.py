"""Tables and figures for people: rich on a terminal, plain columns elsewhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TextIO

_STEPS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(value: int | None) -> str:
    """Return bytes for people.

    >>> size(1536), size(None), size(7)
    ('1.5 KiB', '-', '7 B')
    """
    if value is None:
        return "-"
    amount, step = float(value), 0
    while amount >= 1024 and step < len(_STEPS) - 1:
        amount, step = amount / 1024, step + 1
    return f"{value} B" if step == 0 else f"{amount:.1f} {_STEPS[step]}"


def utf8(text: str) -> str:
    r"""Return text that UTF-8 can hold: the bytes of a path that no text holds become U+FFFD.

    >>> utf8("/d\udcff")
    '/d\ufffd'
    """
    if text.isascii():
        return text
    try:
        return os.fsencode(text).decode("utf-8", "replace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def quoted(text: str) -> str:
    r"""Return one word for a shell, on one line: what a terminal would act on, and bytes that no text holds, escaped.

    >>> print(quoted("/d 1"), quoted("/d\n1\udcff"))
    '/d 1' $'/d\0121\377'
    """
    import shlex

    if text.isprintable():
        return shlex.quote(text)
    # Three octal digits each: a shell that takes more of hexadecimal ones would read the next letter too. No quote
    # within the quotes: what reads words as POSIX has them would take it for the last one.
    shown = (char if char.isprintable() and char not in "\\'" else _octal(os.fsencode(char)) for char in text)
    return f"$'{''.join(shown)}'"


def _octal(data: bytes) -> str:
    return "".join(f"\\{byte:03o}" for byte in data)


def printable(text: str) -> str:
    """Return text that cannot steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def wrapped(out: TextIO, line: str) -> None:
    """Write one line of prose; on a terminal it is broken between words."""
    if out.isatty():
        import shutil
        import textwrap

        line = textwrap.fill(line, max(20, shutil.get_terminal_size().columns), subsequent_indent="  ") + "\n"
    out.write(line)


def table(out: TextIO, headers: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int]) -> None:
    """Write a table.

    Args:
        out: Where to; a terminal gets colours and its width respected.
        headers: One per column.
        rows: Texts, made printable here.
        right: Columns aligned to the right.
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
    """Write a table too wide for its terminal: one line per cell that says something, a blank line behind each row."""
    width = max(map(len, headers))
    for row in rows:
        for header, cell in zip(headers, row, strict=True):
            if cell not in ("", "-"):
                out.write(f"{header.ljust(width)}  {cell}\n")
        out.write("\n")
