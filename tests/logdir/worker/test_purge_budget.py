"""A purge that keeps a log dir busy for no longer than its time: the rest stays claimed, and goes on later."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from logdir import clock
from logdir.disk.kernel.host import HostDisk
from logdir.disk.replica.outcome import Result
from logdir.disk.replica.replica_dir import read_marker
from logdir.disk.root.work_root import open_root
from logdir.worker.operations import PurgeBatch, purge
from tests.builders import log_dir, partition
from tests.tools.ctl import ctl

MIB = 1 << 20


def test_a_big_replica_is_removed_in_several_calls(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    partition(top / "pay-0", segments={0: 64 * MIB, 7: 64 * MIB})
    assert ctl("init", "--log-dirs", top, "--apply").status == 0
    said = ctl("stage", "pay", "--log-dirs", top, "--apply", "--even-over-limit", "--even-if-unknown")
    assert said.status == 0, said
    with open_root(HostDisk(), str(top)) as root:
        (name,) = root.open_dir.deleting.names()
        with root.open_dir.deleting.open(name) as directory:
            marker = read_marker(directory)
        assert marker is not None
        found = purge(root.open_dir, PurgeBatch((), {name: marker}, 256 * MIB, 500, 1))
        outcome = found.outcomes[name]
        assert (outcome.result, outcome.place) == (Result.UNDONE, f"deleting/{name}.purging")
        assert outcome.error is not None
        assert outcome.error.slug == "purge-paused"
        calls = 1
        while outcome.result is Result.UNDONE:
            found = purge(root.open_dir, PurgeBatch((f"{name}.purging",), {}, 256 * MIB, 500, 1))
            outcome = found.outcomes[f"{name}.purging"]
            calls += 1
        assert calls > 3
        assert root.open_dir.deleting.names() == []


def test_each_call_makes_a_step_however_late_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is synced before may take longer than the whole time of a call: the purge comes to its end all the same."""
    top = log_dir(tmp_path / "d1")
    for number in range(3):
        partition(top / f"pay-{number}", segments={0: 100})
    assert ctl("init", "--log-dirs", top, "--apply").status == 0
    said = ctl("stage", "pay", "--log-dirs", top, "--apply", "--even-over-limit", "--even-if-unknown")
    assert said.status == 0, said
    readings = count(0, 10_000)
    monkeypatch.setattr(clock, "monotonic_ms", lambda: next(readings))
    with open_root(HostDisk(), str(top)) as root:
        markers = {}
        for name in root.open_dir.deleting.names():
            with root.open_dir.deleting.open(name) as directory:
                markers[name] = read_marker(directory)
        claimed = {name: marker for name, marker in markers.items() if marker is not None}
        purge(root.open_dir, PurgeBatch((), claimed, 0, 0, 500))
        for _ in range(3):
            purge(root.open_dir, PurgeBatch(tuple(root.open_dir.deleting.names()), {}, 0, 0, 500))
        assert root.open_dir.deleting.names() == []
