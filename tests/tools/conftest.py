"""The stopped brokers of a fleet with a plan, for the tests that change a layout."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tools.layout_fleet import Planned, as_it_was, brokers_of


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Planned]:
    """Every broker of the fleet, by folder."""
    return brokers_of(tmp_path_factory.mktemp("fleet"))


@pytest.fixture
def broker(unpacked: dict[str, Planned]) -> Iterator[Planned]:
    """One of them, put back as it was after the test."""
    with as_it_was(unpacked["orders/1"]):
        yield unpacked["orders/1"]
