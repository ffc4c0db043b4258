"""The broker's own metadata log, followed a minute after the broker's stop if the configuration allows it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from logdir.daemon import own_log
from logdir.daemon.config import parse
from logdir.daemon.report.history import History
from logdir.daemon.session import Kept, Session
from logdir.daemon.supervisor import Supervisor
from logdir.daemon.work import Work
from logdir.service.log_dirs.open_broker import OpenBroker
from tests.free_space import on_any_disk
from tests.logdir.cluster.log_dir import noop, register, remove
from tests.tools.ctl import held, tree
from tests.tools.reconcile_rig import GONE, PAY, Rig, gone_records, raw

STAGED = [f"{GONE}_0", f"{GONE}_1"]


class Scene:
    """A stopped broker whose own log shows the removal of ``gone``, and a daemon that an operator lets work on it."""

    def __init__(self, folder: Path, *, more: str = "") -> None:
        self.rig = Rig(folder)
        self.folder = folder
        (folder / "server.properties").write_text(
            f"broker.id=1\nlog.dirs={','.join(map(str, self.rig.disks))}\n", encoding="utf-8"
        )
        self.config = folder / "b1.yaml"
        self.config.write_text(
            f"server.properties: server.properties\nstate.dir: state\nsocket: s.sock\n{on_any_disk(more)}",
            encoding="utf-8",
        )
        self.now_ms = 1_000_000

    def work(self) -> Work:
        config = parse(self.config.read_bytes(), str(self.config))
        os.makedirs(config.state_dir, exist_ok=True)
        session = Session.open(config, Kept())
        work = Work(session, Supervisor(config, version="0", history=History(config.state_dir)))
        work.begin()
        return work

    def after(self, work: Work, seconds: int) -> bool:
        """Sweep so much later; return whether the log was followed then."""
        self.now_ms += seconds * 1000
        work.sweep()
        return work.own_log.follow()


Make = Callable[..., tuple[Scene, Work]]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    opened: list[Work] = []

    def made(*, more: str = "auto.while.stopped: true\n", is_removed: bool = True) -> tuple[Scene, Work]:
        scene = Scene(tmp_path, more=more)
        if is_removed:
            scene.rig.with_removal()
        monkeypatch.setattr(own_log, "clock", SimpleNamespace(monotonic_ms=lambda: scene.now_ms))
        work = scene.work()
        opened.append(work)
        return scene, work

    yield made
    for work in opened:
        work.session.close()


def test_a_removal_that_the_log_shows_is_staged_a_minute_after_the_stop_and_once(make: Make) -> None:
    scene, work = make()
    assert not scene.after(work, 0)
    assert not scene.after(work, 59)
    assert scene.rig.deleting() == []
    assert scene.after(work, 1)
    assert scene.rig.deleting() == STAGED
    assert scene.rig.marker(STAGED[0])["reason"] == "topic-removed"
    assert scene.rig.marker(STAGED[0])["delay_ms"] == 14_400_000
    assert not scene.after(work, 3600)
    assert work.own_log.problem == ()


def test_a22_without_leave_nothing_is_done(make: Make) -> None:
    scene, work = make(more="")
    before = tree(scene.folder / "d1"), tree(scene.folder / "d2")
    assert not scene.after(work, 0)
    assert not scene.after(work, 3600)
    assert (tree(scene.folder / "d1"), tree(scene.folder / "d2")) == before


def test_a22_beside_a_running_broker_nothing_is_done_and_after_its_next_stop_the_minute_begins_anew(make: Make) -> None:
    scene, work = make()
    (scene.rig.disks[0] / ".lock").touch()
    with held(scene.rig.disks[0] / ".lock"):
        assert not scene.after(work, 0)
        assert not scene.after(work, 3600)
        assert scene.rig.deleting() == []
    assert not scene.after(work, 0)
    with held(scene.rig.disks[0] / ".lock"):  # A restart.
        assert not scene.after(work, 50)
    assert not scene.after(work, 10)
    assert scene.rig.deleting() == []
    assert scene.after(work, 60)
    assert scene.rig.deleting() == STAGED


def test_a_log_without_anything_to_do_takes_no_lock(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, work = make(is_removed=False)
    scene.rig.snapshot(scene.rig.log(), *gone_records())
    scene.after(work, 0)
    monkeypatch.setattr(OpenBroker, "recover", lambda broker: pytest.fail("every change begins with it"))
    before = tree(scene.folder / "d1"), tree(scene.folder / "d2")
    assert scene.after(work, 60)
    assert (tree(scene.folder / "d1"), tree(scene.folder / "d2")) == before
    assert not scene.after(work, 3600)


def test_a_broker_without_a_log_is_asked_once(make: Make) -> None:
    scene, work = make(is_removed=False)
    scene.after(work, 0)
    assert scene.after(work, 60)
    assert not scene.after(work, 3600)
    assert (scene.rig.deleting(), work.own_log.problem) == ([], ())


def test_a38_what_the_staging_limit_holds_back_waits_for_an_operator(make: Make) -> None:
    scene, work = make(is_removed=False)
    log = scene.rig.log()
    log.append(remove(raw(GONE)), remove(raw(PAY)))
    log.append(noop())
    log.snapshot(register(1), register(2))
    scene.after(work, 0)
    assert scene.after(work, 60)
    assert scene.rig.deleting() == []
    (problem,) = [one for one in work.status().waiting if one.slug == "over-staging-limit"]
    command = f"logdirctl reconcile --from metadata: --config {scene.config}"
    assert problem.fix == f"check {command}, then add --even-over-limit --apply"
    assert not scene.after(work, 599)
    assert scene.after(work, 1)
