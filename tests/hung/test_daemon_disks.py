"""A daemon one of whose disks fills up, turns read-only, is unmounted under it, or is another disk than before.

The other disks go on, the disk at fault is named, nothing is written in its place, and it is taken back when well.

Spec: design §2 laws 5, 6, §3.3; attacks A5, A10, A25, A26.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from logdir.daemon.state import LogDirState
from tests.builders import log_dir, partition
from tests.hung.rig import KEEP, Broker
from tests.hung.test_daemon import (
    asked,
    captured_on,
    daemon_of,
    delete,
    is_purged_on,
    problem_of,
    stage_keep,
    state_of,
)
from tests.kernel.images import Images, Mounted, leftovers
from tests.logdir.daemon.rig import Process, until
from tests.tools.ctl import ctl, tree
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]


class One(NamedTuple):
    """A daemon on three log dirs, the second on a file system of its own."""

    broker: Broker
    daemon: Process
    disk: Mounted

    @property
    def sick(self) -> Path:
        return self.broker.disks[1]

    def tree(self) -> dict[str, tuple[object, ...]]:
        """Return what lies on the disk."""
        return tree(self.sick, Path(f"{self.sick}.logdird"))

    def stage_keep(self) -> None:
        """Stage a replica on every disk, which is due a few seconds later."""
        until("what was due is purged", lambda: all(map(is_purged_on, self.broker.disks)))
        stage_keep(self.broker, self.daemon)

    def the_others_work(self) -> None:
        """Capture what is deleted on the others, and purge what comes due there."""
        self.the_others_capture()
        one, _, three = self.broker.disks
        until("the others purge", lambda: is_purged_on(one, KEEP) and is_purged_on(three, KEEP))

    def released(self) -> None:
        said = ctl("disk", "release", self.sick, "--config", self.daemon.config, "--apply")
        assert said.status == Exit.DONE, said

    def the_others_capture(self) -> None:
        one, two, three = self.broker.disks
        before = captured_on(self.daemon, two)
        for number in (0, 2):
            delete(self.broker, number)
        until("the others are captured", lambda: captured_on(self.daemon, one) and captured_on(self.daemon, three))
        assert captured_on(self.daemon, two) is before

    def reload(self) -> None:
        assert self.daemon.process is not None
        self.daemon.process.send_signal(signal.SIGHUP)

    def slug(self) -> str:
        """Return the slug of what is wrong with the disk; empty if nothing."""
        found = {disk.log_dir: disk.problem for disk in self.daemon.status().log_dirs}[str(self.sick)]
        return "" if found is None else found.slug

    def again(self, path: Path | None = None) -> Mounted:
        """Mount the disk again, there or elsewhere, once nobody has anything of it open any more."""
        until("nobody uses the disk", lambda: not leftovers(self.disk.image))
        return Mounted(self.disk.image, path or self.disk.path, "ext4")

    def is_back(self) -> None:
        self.reload()
        until("the disk is taken back", lambda: state_of(self.daemon, self.sick) is LogDirState.ONLINE, 90)
        delete(self.broker, 1)
        until("it captures there, too", lambda: captured_on(self.daemon, self.sick))


@contextmanager
def running(images: Images, folder: Path) -> Iterator[One]:
    disk = images.mount(images.make("ext4", 64), "ext4")
    broker = Broker(folder, disk.path)
    daemon = daemon_of(broker)
    with daemon.running():
        assert [state_of(daemon, path) for path in broker.disks] == [LogDirState.ONLINE] * 3
        yield One(broker, daemon, disk)
        assert daemon.stop() == 0


def test_a10_a_disk_that_fills_up_keeps_nothing_and_the_others_do(images: Images, tmp_path: Path) -> None:
    with running(images, tmp_path) as one:
        filler = one.disk.path / "other"
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    continue
        assert shutil.disk_usage(one.disk.path).free < 1 << 12
        delete(one.broker, 1)
        one.the_others_capture()

        def is_undo_off() -> bool:
            found = {disk.log_dir: disk for disk in one.daemon.status().log_dirs}[str(one.sick)]
            assert found.state is LogDirState.ONLINE
            return found.is_undo_off

        until("its undo is off", is_undo_off)
        filler.unlink()
        until("it is captured", lambda: captured_on(one.daemon, one.sick))


def test_a_disk_that_turns_read_only_is_named_and_the_others_go_on(images: Images, tmp_path: Path) -> None:
    with running(images, tmp_path) as one:
        delete(one.broker, 1)
        until("it captures there", lambda: captured_on(one.daemon, one.sick))
        one.stage_keep()
        one.disk.abort()
        before = one.tree()
        said = asked(one.daemon, "hold", "pay")
        assert said.status == Exit.PROBLEMS, said
        assert str(one.sick) in said.err
        one.the_others_work()
        # The heartbeat before a purge cannot be written.
        until("it is named", lambda: one.slug() == "disk-read-only")
        assert state_of(one.daemon, one.sick) is LogDirState.READ_ONLY
        # Until the file system is checked, a remount does not let it be written.
        one.disk.remount(read_only=False)
        assert (one.tree(), is_purged_on(one.sick, KEEP)) == (before, False)
        assert one.daemon.stop() == 0
        one.disk.unmount()
        assert subprocess.run(["e2fsck", "-fy", one.disk.image], capture_output=True, check=False).returncode in (0, 1)
        again = one.again()
        try:
            assert one.tree() == before
            one.daemon.start()
            assert state_of(one.daemon, one.sick) is LogDirState.ONLINE
            until("what is due there is purged", lambda: is_purged_on(one.sick, KEEP))
        finally:
            one.daemon.stop(signal.SIGTERM)
            again.unmount()


def test_a_disk_that_is_remounted_read_only_is_taken_back_when_it_can_be_written(
    images: Images, tmp_path: Path
) -> None:
    with running(images, tmp_path) as one:
        with pytest.raises(OSError, match="busy"):
            one.disk.remount(read_only=True)  # The daemon has files open there to be written.
        one.stage_keep()
        one.released()
        one.disk.remount(read_only=True)
        one.reload()
        until("it is named", lambda: one.slug() == "disk-read-only")
        assert state_of(one.daemon, one.sick) is LogDirState.READ_ONLY
        assert problem_of(one.daemon, one.sick).endswith("remount it read-write; then reload logdird (SIGHUP)")
        said = asked(one.daemon, "hold", "keep-1")
        assert said.status == Exit.REFUSED, said
        assert f"disk-read-only: {one.sick}" in said.err
        one.disk.remount(read_only=False)
        delete(one.broker, 1)
        before = one.tree()
        one.the_others_work()
        # Nothing is written there, although it can be, before an operator has it opened again.
        assert (one.tree(), is_purged_on(one.sick, KEEP)) == (before, False)
        one.reload()
        until("the disk is taken back", lambda: state_of(one.daemon, one.sick) is LogDirState.ONLINE)
        until("it captures there, too", lambda: captured_on(one.daemon, one.sick))
        until("what is due there is purged", lambda: is_purged_on(one.sick, KEEP))


def test_a26_a_disk_that_is_unmounted_under_the_daemon_gets_nothing_in_its_place(
    images: Images, tmp_path: Path
) -> None:
    with running(images, tmp_path) as one:
        one.disk.unmount(lazily=True)
        assert os.listdir(one.disk.path) == []
        one.the_others_capture()
        until("it is offline", lambda: state_of(one.daemon, one.sick) is LogDirState.OFFLINE)
        assert problem_of(one.daemon, one.sick)
        assert os.listdir(one.disk.path) == []
        again = one.again()
        try:
            one.is_back()
        finally:
            one.daemon.stop(signal.SIGTERM)
            again.unmount()


def test_a25_another_disk_in_its_place_is_not_taken_for_it(images: Images, tmp_path: Path) -> None:
    with running(images, tmp_path) as one:
        one.disk.unmount(lazily=True)
        other = Mounted(images.make("ext4", 64), one.disk.path, "ext4")
        again: Mounted | None = None
        try:
            log_dir(one.sick, node=7, directory="AAAAAAAAAAAAAAAAAAAABQ")
            partition(one.sick / "pay-1", segments={0: 100})
            assert ctl("init", "--log-dirs", one.sick, "--apply").status == Exit.DONE
            one.reload()  # It may have been looked at when it was not made to its end.
            until("it is another broker's", lambda: one.slug() == "foreign")
            assert state_of(one.daemon, one.sick) is LogDirState.OFFLINE
            before = tree(other.path)
            delete(one.broker, 1)
            one.the_others_capture()
            assert one.slug() == "foreign"
            assert len(tree(other.path)) == len(before)
            assert list(Path(f"{one.sick}.logdird/deleting").iterdir()) == []
            other.unmount()  # It is not busy, although the daemon runs.
            again = one.again()
            one.is_back()
        finally:
            one.daemon.stop(signal.SIGTERM)
            other.unmount()
            if again is not None:
                again.unmount()
