"""docs/safety.md says of every attack whether it is answered, and what it says is so by the names of the tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
ATTACKS = range(1, 52)
STATES = ("tested", "in part", "open")
_NAMED = re.compile(r"^ *(?:async )?def (test_(?:a\d\d_)+\w+)\(", re.MULTILINE)
_FILE = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.py)`")


class Row(NamedTuple):
    """One line of the table."""

    number: int
    attack: str
    state: str
    where: str

    @property
    def open_part(self) -> str:
        """What is said to be open, and why; empty if nothing is."""
        return self.where if self.state == "open" else self.where.partition("open: ")[2]


def _rows(text: str) -> list[Row]:
    """Read the table."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| A") and len(cells) == 4:
            assert re.fullmatch(r"A[1-9]\d?", cells[0]), line
            found.append(Row(int(cells[0][1:]), *cells[1:]))
    return found


def _tests_by_attack() -> dict[int, set[str]]:
    """Return the names of all tests that bear an attack's number."""
    found: dict[int, set[str]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in _NAMED.findall(path.read_text("utf-8")):
            for number in re.findall(r"(?<=_)a(\d\d)(?=_)", re.match(r"test_(?:a\d\d_)+", name)[0]):  # type: ignore[index]
                found.setdefault(int(number), set()).add(f"{path.relative_to(ROOT)}::{name}")
    return found


ROWS = _rows((ROOT / "docs" / "safety.md").read_text("utf-8"))
TESTS = _tests_by_attack()


def test_every_attack_is_listed_once_in_order() -> None:
    assert [row.number for row in ROWS] == list(ATTACKS)
    assert all(row.attack and row.where for row in ROWS)
    assert len({row.attack for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"A{row.number}")
def test_what_is_said_of_an_attack_is_so(row: Row) -> None:
    assert row.state in STATES
    if row.state == "open":
        assert len(row.open_part.split()) >= 2, "open without a reason"
        return
    assert TESTS.get(row.number), f"no test is named test_a{row.number:02}_…"
    assert bool(row.open_part) == (row.state == "in part"), "in part says what is open; tested has nothing open"
    for file in _FILE.findall(row.where):
        assert (ROOT / file).exists() or (ROOT / "logdir" / file).exists(), file


def test_no_test_bears_a_number_that_is_no_attack() -> None:
    assert set(TESTS) <= set(ATTACKS)
    for path in (ROOT / "tests").rglob("test_*.py"):
        assert not re.search(r"^ *def test_a\d_", path.read_text("utf-8"), re.MULTILINE), f"{path}: two digits"
