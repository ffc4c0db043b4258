"""The table of ``docs/config.md``: a row for each key of the configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from logdir.daemon.config import KEYS
from tests.generated.marked import replaced, write_all

PAGE: Final = Path(__file__).parents[2] / "docs" / "config.md"
NAME: Final = "keys"


def rows() -> Iterator[str]:
    """Yield the table line by line."""
    yield "| key | type | unit | default | read again | meaning |"
    yield "|---|---|---|---|---|---|"
    for key in KEYS:
        cells = (f"`{key.name}`", key.type, key.unit, key.default_text, key.when.value, key.text)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def render() -> str:
    """Return the page with the table of now."""
    return replaced(PAGE.read_text("utf-8"), NAME, "\n".join(rows()))


FILES: Final[dict[Path, Callable[[], str]]] = {PAGE: render}


def write() -> str:
    """Write all of it again; return the names of the files."""
    return write_all(FILES)
