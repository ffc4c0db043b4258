"""Tables on a terminal that is too narrow for them."""

from __future__ import annotations

import io

import pytest

from tools.cli.render import table

HEADERS = ["topic", "id", "disk"]
ROW = ["orders", "_4o04OUZQSu-JtEDeu-Dtg", "/data/kafka/a-rather-long-path/broker-1/d1"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [80, 60])
def test_no_cell_is_broken_into_pieces(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = Terminal()
    table(out, [*HEADERS, "says"], [[*ROW, "-"], [*ROW, "leader"]], frozenset())
    assert all(out.getvalue().count(cell) == 2 for cell in ROW)
    assert max(map(len, out.getvalue().splitlines())) <= columns
