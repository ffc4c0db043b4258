"""Pressure beside a disk whose free space cannot be read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from logdir.service.batch.pressure import relieve
from logdir.service.batch.purge_batches import Rates
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.report.reporter import SILENT


def test_a_disk_that_does_not_tell_its_free_space_is_left_alone() -> None:
    broker = cast(OpenBroker, SimpleNamespace(changeable=(SimpleNamespace(log_dir="/d1"),)))
    found = relieve(broker, {}, Rates(0, 0), SILENT)
    assert (found.items, found.problems) == ([], [])
