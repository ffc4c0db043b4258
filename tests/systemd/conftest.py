"""A machine that systemd has started, for each test; what a host lacks for that is the reason of a skip."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.systemd.machine import Machine, booted, lacking


@pytest.fixture(scope="session")
def able() -> None:
    """Skip where no machine can be started."""
    if reason := lacking():
        pytest.skip(reason)


@pytest.fixture
def machine(able: None, tmp_path: Path) -> Iterator[Machine]:
    """Start a machine with log dirs, work roots and drop-ins; neither logdird nor its broker runs."""
    with booted(tmp_path) as one:
        one.set_up()
        yield one
