"""SECURITY.md: what holds each threat is there, as a module or as a test of that name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SECURITY.md").read_text("utf-8")
_PLACE = re.compile(r"`((?:logdir|migrate|scheduler|tools|tests)/[\w./-]+\.py)(?:::(\w+))?`")


def rows() -> list[list[str]]:
    """Return the cells of every threat."""
    part = PAGE.partition("## Threats, and what holds each\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_threat_says_what_holds_it_and_where() -> None:
    assert len(rows()) >= 15
    for row in rows():
        assert len(row) == 3, row
        assert all(row), row
        assert _PLACE.findall(row[2]), row[0]


@pytest.mark.parametrize(("path", "name"), _PLACE.findall(PAGE))
def test_no_module_and_no_test_that_is_named_is_missing(path: str, name: str) -> None:
    text = (ROOT / path).read_text("utf-8")
    assert not name or f"def {name}(" in text


def test_the_places_of_a_threat_are_all_read() -> None:
    for row in rows():
        assert len(_PLACE.findall(row[2])) == row[2].count("`") // 2, row[2]
