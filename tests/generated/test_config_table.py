"""docs/config.md has the table of the keys that there are, and nothing in it is written by hand."""

from __future__ import annotations

import pytest

from logdir.daemon.config import KEYS
from tests.generated.config_table import PAGE, render, rows
from tests.generated.marked import replaced


def test_the_page_is_as_it_is_generated() -> None:
    assert PAGE.read_text("utf-8") == render(), "python -m tests.generated writes it again"


def test_every_key_has_a_row_with_all_that_is_known_of_it() -> None:
    lines = list(rows())
    assert len(lines) == len(KEYS) + 2
    assert lines[2] == (
        "| `server.properties` | path | - | required | at once | "
        "the broker's configuration, from which log.dirs is read |"
    )
    assert {line.count(" | ") for line in lines[2:]} == {5}
    assert (
        "| `sweep.interval.ms` | whole number | ms | 10000 | at once | time between two looks for deletions |" in lines
    )
    assert any(line.startswith("| `socket` | path | - | /run/logdird/NAME.sock | restart |") for line in lines)


@pytest.mark.parametrize(
    "page", ["", "<!-- generated: b -->\n<!-- end of b -->\n", 2 * "<!-- generated: a -->\n<!-- end of a -->\n"]
)
def test_a_page_without_the_part_is_never_written(page: str) -> None:
    with pytest.raises(ValueError, match="expected one generated part a"):
        replaced(page, "a", "x")


def test_only_what_lies_between_the_comments_is_replaced() -> None:
    page = "before\n<!-- generated: a, by x -->\nold\nolder\n<!-- end of a -->\nafter\n"
    assert replaced(page, "a", "new\\1\n") == (
        "before\n<!-- generated: a, by x -->\nnew\\1\n<!-- end of a -->\nafter\n"
    )
