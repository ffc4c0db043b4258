"""A daemon one of whose disks comes back as it was hours ago, or two of whose disks change places.

What lies on a disk as it was hours ago may have been restored, purged or moved since: nothing is restored, held or
purged there before an operator accepts it, and only what its broker deletes is captured. A disk is known by its
directory id, not by its place: two disks of one broker in each other's place are worked on as before.

Spec: design §2 laws 2, 6, §3.3; attacks A25, A26.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logdir.daemon.state import LogDirState
from logdir.formats.own import heartbeat_file
from logdir.formats.own.heartbeat_file import Boot, Heartbeat
from tests.builders import TOPIC_ID
from tests.hung.rig import KEEP, Broker
from tests.hung.test_daemon import asked, captured_on, daemon_of, delete, is_purged_on, problem_of, state_of
from tests.hung.test_daemon_disks import One
from tests.kernel.images import Images, Mounted, copy_sparse
from tests.logdir.daemon.rig import until
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]

_HOUR_MS = 60 * 60 * 1000


def hours_ago(path: Path) -> None:
    """Let the last heartbeat of a log dir be three hours old, of the boot before this one."""
    boot = Boot(boot_id="before", seen_ms=_HOUR_MS, credited_ms=0)
    wall_ms = int(time.time() * 1000) - 3 * _HOUR_MS
    value = Heartbeat(boots=(boot,), wall_ms=wall_ms, steady=None, gap_from_ms=None)
    Path(f"{path}.logdird/heartbeat.json").write_bytes(heartbeat_file.render(value))


@contextmanager
def with_an_old_copy(images: Images, folder: Path) -> Iterator[tuple[One, Path]]:
    """Run a daemon that was stopped for hours; yield it, and the image of its second disk from before.

    The copy has what was due on the disk, and a deletion that was not captured yet; on the disk both are done.
    """
    disk = images.mount(images.make("ext4", 64), "ext4")
    broker = Broker(folder, disk.path)
    for path in broker.disks:
        hours_ago(path)
    delete(broker, 1)
    disk.unmount()
    copy = images.new("copy.img")
    copy_sparse(disk.image, copy)
    disk = Mounted(disk.image, disk.path, "ext4")
    daemon = daemon_of(broker)
    with daemon.running():
        assert [state_of(daemon, path) for path in broker.disks] == [LogDirState.ONLINE] * 3
        until("what was due is purged", lambda: all(map(is_purged_on, broker.disks)))
        until("it captures there", lambda: captured_on(daemon, broker.sick))
        yield One(broker, daemon, disk), copy
        assert daemon.stop() == 0


def on_disk(one: One) -> dict[str, tuple[object, ...]]:
    """Return what lies on the disk but for the replica that is deleted there."""
    found = one.tree()
    names = (f"{one.sick}/pay-1", f"{one.sick}.logdird/deleting/{TOPIC_ID}_1")
    return {path: what for path, what in found.items() if not path.startswith(names)}


def test_a25_an_old_copy_of_a_disk_in_its_place_is_left_as_it_is_until_it_is_accepted(
    images: Images, tmp_path: Path
) -> None:
    with with_an_old_copy(images, tmp_path) as (one, copy):
        two = one.sick
        one.disk.unmount(lazily=True)
        old = Mounted(copy, one.disk.path, "ext4")
        try:
            before = on_disk(one)
            until("it is known for an old one", lambda: one.slug() == "stale-disk")
            assert state_of(one.daemon, two) is LogDirState.QUARANTINED
            (hours,) = re.findall(r"found a heartbeat (\d+) hours behind the other disks'", problem_of(one.daemon, two))
            assert int(hours) >= 3
            for verb in ("hold", "restore", "purge"):
                said = asked(one.daemon, verb, "old-1")
                assert said.status == Exit.REFUSED, said
                assert f"stale-disk: {two}" in said.err
            until("what its broker deletes there is captured", lambda: captured_on(one.daemon, two))
            one.the_others_capture()
            assert (one.slug(), is_purged_on(two)) == ("stale-disk", False)
            assert on_disk(one) == before
            one.daemon.stop()
            refused = ctl("staged", "purge", "old", "--apply", *one.broker.named)
            assert (refused.status, is_purged_on(two)) == (Exit.REFUSED, False), refused
            accepted = ctl("staged", "hold", "pay", "--even-if-stale-disk", two, "--apply", *one.broker.named)
            assert accepted.status == Exit.DONE, accepted
            one.daemon.start()
            assert state_of(one.daemon, two) is LogDirState.ONLINE
            until("what is due there is purged", lambda: is_purged_on(two))
        finally:
            one.daemon.stop(signal.SIGTERM)
            old.unmount()


def test_a25_the_disk_itself_is_taken_back_after_an_old_copy_of_it(images: Images, tmp_path: Path) -> None:
    with with_an_old_copy(images, tmp_path) as (one, copy):
        two = one.sick
        one.released()
        one.disk.unmount()
        old = Mounted(copy, one.disk.path, "ext4")
        again: Mounted | None = None
        try:
            one.reload()
            until("it is known for an old one", lambda: one.slug() == "stale-disk")
            until("what its broker deletes there is captured", lambda: captured_on(one.daemon, two))
            one.released()
            old.unmount()
            again = one.again()
            one.reload()
            until("the disk is taken back", lambda: state_of(one.daemon, two) is LogDirState.ONLINE)
            assert (captured_on(one.daemon, two), is_purged_on(two)) == (True, True)
            delete(one.broker, 1, "keep")
            until("it captures there, too", lambda: not is_purged_on(two, KEEP))
        finally:
            one.daemon.stop(signal.SIGTERM)
            old.unmount()
            if again is not None:
                again.unmount()


def test_a25_two_disks_of_one_broker_in_each_others_place_are_worked_on_as_before(
    images: Images, tmp_path: Path
) -> None:
    second, third = (images.mount(images.make("ext4", 64), "ext4") for _ in range(2))
    broker = Broker(tmp_path, second.path, third=third.path)
    first, two, three = broker.disks
    daemon = daemon_of(broker)
    swapped: list[Mounted] = []
    with daemon.running():
        one = One(broker, daemon, second)
        assert [state_of(daemon, path) for path in broker.disks] == [LogDirState.ONLINE] * 3
        delete(broker, 1)
        until("it captures there", lambda: captured_on(daemon, two))
        one.stage_keep()
        for disk in (second, third):
            disk.unmount(lazily=True)
        until(
            "both are offline", lambda: [state_of(daemon, path) for path in (two, three)] == [LogDirState.OFFLINE] * 2
        )
        try:
            swapped.append(one._replace(disk=second).again(third.path))
            swapped.append(one._replace(disk=third).again(second.path))
            broker.disks = (first, three, two)
            assert not any(is_purged_on(path, KEEP) for path in (two, three)), "too late: the test shows nothing"
            one.reload()
            until(
                "both are taken back",
                lambda: [state_of(daemon, path) for path in broker.disks] == [LogDirState.ONLINE] * 3,
            )
            until("what is due on them is purged", lambda: is_purged_on(two, KEEP) and is_purged_on(three, KEEP))
            assert (captured_on(daemon, three), captured_on(daemon, two)) == (True, False)
            held = asked(daemon, "hold", "pay-1")
            assert held.status == Exit.DONE, held
            delete(broker, 2)
            until("it captures there", lambda: captured_on(daemon, two))
            assert daemon.stop() == 0
        finally:
            daemon.stop(signal.SIGTERM)
            for disk in swapped:
                disk.unmount()
