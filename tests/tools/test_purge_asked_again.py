"""What the cluster says is asked again right before each claim, however long a purge takes (A2, A43)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logdir.service.batch import purge_batches
from logdir.service.log_dirs.open_broker import OpenBroker
from tests.logdir.cluster.log_dir import START_MS, LogDir, remove
from tests.tools.ctl import ctl_json
from tests.tools.reconcile_rig import GONE, Rig, gone_records, raw
from tools.cli.arguments import Exit

OLD_MS = 1_650_000_000_000


class Clock:
    """The boot-time clock as the look before a purge reads it."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def read(self) -> int:
        return self.ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("logdir.service.batch.purge_recheck.boottime_ms", made.read)
    return made


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def due(rig: Rig) -> LogDir:
    """Let both replicas of ``gone`` be staged as removed, due, and the log newer than that."""
    log = rig.log()
    log.time_ms = OLD_MS
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    assert rig.reconcile("metadata:", "--delay-ms", 0, "--apply").status == Exit.DONE
    log.time_ms = START_MS
    rig.snapshot(log)
    assert len(rig.deleting()) == 2
    return log


def wanted_again(rig: Rig, log: LogDir) -> None:
    log.append(*gone_records())
    rig.snapshot(log, *gone_records())


def before_batch(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], None]) -> None:
    """Do something before a batch of the removals, when all is planned; the first is 1."""
    unchanged, purge_all = OpenBroker.require_unchanged, purge_batches.purge_all
    batches: list[int] = []

    def purges(*given: Any, **more: Any) -> Any:
        batches.append(0)
        return purge_all(*given, **more)

    def require_unchanged(self: OpenBroker) -> None:
        if batches:
            batches.append(1)
            if len(batches) == number + 1:
                act()
        unchanged(self)

    monkeypatch.setattr("logdir.service.purge.purge_all", purges)
    monkeypatch.setattr(OpenBroker, "require_unchanged", require_unchanged)


@pytest.mark.parametrize("later_ms", [10_001, 3_600_000, 30 * 24 * 3_600_000], ids=["10 s", "an hour", "a month"])
def test_a43_nothing_goes_that_is_wanted_again_since_the_plan_was_made(
    rig: Rig, clock: Clock, monkeypatch: pytest.MonkeyPatch, later_ms: int
) -> None:
    log = due(rig)

    def act() -> None:
        wanted_again(rig, log)
        clock.ms += later_ms

    before_batch(monkeypatch, 1, act)
    status, result = ctl_json("staged", "purge", GONE, *rig.named, "--apply")
    assert status != Exit.DONE
    assert [item["state"] for item in result["items"]] == ["undone", "undone"]
    assert rig.deleting() == [f"{GONE}_0", f"{GONE}_1"]


def test_a43_nothing_of_a_later_batch_goes_that_is_wanted_again_since_the_first(
    rig: Rig, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = due(rig)

    def act() -> None:
        wanted_again(rig, log)
        clock.ms += 60_000

    before_batch(monkeypatch, 2, act)
    _, result = ctl_json("staged", "purge", GONE, *rig.named, "--apply")
    assert sorted(item["state"] for item in result["items"]) == ["done", "undone"]
    assert len(rig.deleting()) == 1


def test_a43_nothing_goes_that_a_look_again_no_longer_finds(
    rig: Rig, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    due(rig)

    def act() -> None:
        for disk in rig.disks:
            for path in Path(f"{disk}.logdird/deleting").iterdir():
                path.rename(path.with_name(f"{path.name}.2"))
        clock.ms += 60_000

    before_batch(monkeypatch, 1, act)
    assert ctl_json("staged", "purge", GONE, *rig.named, "--apply")[0] != Exit.DONE
    assert rig.deleting() == [f"{GONE}_0.2", f"{GONE}_1.2"]


def test_what_is_gone_by_every_look_goes(rig: Rig, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    due(rig)

    def act() -> None:
        clock.ms += 60_000

    before_batch(monkeypatch, 1, act)
    assert ctl_json("staged", "purge", GONE, *rig.named, "--apply")[0] == Exit.DONE
    assert rig.deleting() == []
