"""The log that attacks begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.logdir.cluster.log_dir import (
    LogDir,
    partition,
    register,
    topic,
)
from tests.reconcile.disk import HOUR_MS, WALL_MS
from tests.reconcile.scene import A, B, Z, raw
from tests.reconcile.universe import BOTH


@pytest.fixture
def log(tmp_path: Path) -> LogDir:
    """A log in which both topics are this node's, up to an hour before now."""
    made = LogDir(tmp_path / "__cluster_metadata-0")
    made.time_ms = WALL_MS - HOUR_MS
    made.lead(1)
    made.append(register(1), register(2), register(3), topic("z", raw(Z)))
    made.append(*(partition(raw(Z), number, (1, 2)) for number in range(20)))
    for name, topic_id in (("a", A), ("b", B)):
        made.append(topic(name, raw(topic_id)), *(partition(raw(topic_id), number, (1, 2)) for number in BOTH))
    return made
