"""A disk beside the log dirs, of a metadata log, hangs while a daemon asks it again and again: one process waits there.

Spec: design §2 law 6; attack A40.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from logdir.errors import LogDirSuspectError
from logdir.observe.answering import touch
from logdir.paths import METADATA_DIR
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.ports import BrokerPorts
from logdir.worker.reaping import has_ended
from tests.hung.rig import Answering, lacking
from tests.logdir.daemon.rig import until

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]


def children() -> set[int]:
    tasks = Path("/proc/self/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


@pytest.mark.usefixtures("workers")
def test_a40_one_process_at_most_waits_for_a_metadata_log_that_hangs(tmp_path: Path) -> None:
    if reason := lacking():
        pytest.skip(reason)
    log = tmp_path / "backing" / METADATA_DIR
    log.mkdir(parents=True)
    (log / "quorum-state").write_text("{}")
    path = str(tmp_path / "meta" / METADATA_DIR)
    disk = Answering(tmp_path / "backing", tmp_path / "meta", tmp_path / "control")
    ports = BrokerPorts(named=BrokerConfig((), None), ports=(), patience_ms=1_000)
    before = children()
    try:
        ports.apart(path, touch, path)
        assert children() == before
        disk.hang("ALL")
        for _ in range(3):
            with pytest.raises(LogDirSuspectError):
                ports.apart(path, touch, path)
        (hanging,) = children() - before
        assert not has_ended(hanging, 100)  # It was killed, and cannot end.
        disk.go_on()
        until("it has ended and is no zombie", lambda: ports.unreaped.pids() == {} and children() == before)
        ports.apart(path, touch, path)
    finally:
        disk.close()
