"""A glance at a log dir: all that a sweep asks, from a real disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logdir.disk.record.start_block import set_block
from logdir.errors import LogDirReplacedError
from logdir.worker.glance import Glance, Since, glance
from logdir.worker.state import WorkerState, open_root, take_owner_lock
from tests.builders import log_dir, partition
from tests.logdir.disk.test_locks import held_by_child
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

GONE = "pay-0.0123456789abcdef0123456789abcdef-delete"


class Rig:
    """A worker's log dir with a work root."""

    def __init__(self, folder: Path) -> None:
        self.top = log_dir(folder / "d1")
        properties = folder / "server.properties"
        properties.write_text(f"broker.id=1\nlog.dirs={self.top}\n")
        assert ctl("init", "--server-properties", properties, "--apply").status == Exit.DONE
        self.opened = WorkerState()
        open_root(self.opened, str(self.top), is_start_block_allowed=True)
        take_owner_lock(self.opened)

    def glance(self, since: Since | None = None, *, is_required: bool = True) -> Glance:
        return glance(
            self.opened,
            str(self.top),
            since or Since(),
            is_owner_required=is_required,
            is_place_required=is_required,
        )


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.opened.close()


def test_it_holds_what_is_leaving_log_starts_and_free_space(rig: Rig) -> None:
    partition(rig.top / GONE)
    (rig.top / "log-start-offset-checkpoint").write_text("0\n1\npay 0 5\n")
    os.utime(rig.top, (1, 1))
    found = rig.glance()
    assert (found.leaving.names, found.starts.offsets) == ((GONE,), {"pay-0": 5})
    assert found.space is not None
    assert found.space.total_bytes == os.statvfs(rig.top).f_blocks * os.statvfs(rig.top).f_frsize
    again = rig.glance(Since(found.leaving.mtime_ns, found.starts.stamp))
    assert (again.leaving.names, again.starts.offsets) == (None, None)


def test_it_tells_whether_a_broker_runs(rig: Rig) -> None:
    assert rig.glance().is_locked is None
    (rig.top / ".lock").touch()
    assert rig.glance().is_locked is False
    with held_by_child("posix", rig.top / ".lock"):
        assert rig.glance().is_locked is True


def test_it_tells_of_a_start_block_unless_it_cannot_be_read(rig: Rig) -> None:
    assert rig.glance().is_blocked is False
    set_block([rig.opened.open_dir])
    assert rig.glance().is_blocked is True
    (rig.top / "start-block.json").write_bytes(b"\xff")
    assert rig.glance().is_blocked is False


def test_a_log_dir_whose_place_or_lock_was_taken_is_an_error_where_that_is_asked(rig: Rig) -> None:
    lock = Path(f"{rig.top}.logdird/owner.lock")
    lock.unlink()
    lock.touch()
    with pytest.raises(LogDirReplacedError):
        rig.glance()
    rig.top.rename(rig.top.with_name("away"))
    for owner, place in ((False, True), (True, False)):
        with pytest.raises(LogDirReplacedError):
            glance(rig.opened, str(rig.top), Since(), is_owner_required=owner, is_place_required=place)
    assert not rig.glance(is_required=False).leaving.is_read


def test_without_a_work_root_no_space_is_known(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    found = glance(WorkerState(), str(top), Since(), is_owner_required=False, is_place_required=True)
    assert (found.space, found.is_blocked, found.leaving.names) == (None, False, ())
