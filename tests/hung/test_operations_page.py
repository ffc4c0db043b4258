"""docs/operations.md, typed as it stands: a disk that dies and is replaced, and one that hangs.

The disks are images of ext4. What only a host has is done by the test: devices are mounted, a file system is made, a
broker formats a log dir.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from logdir.daemon.state import LogDirState
from tests.builders import CLUSTER, META, partition
from tests.hung.rig import Broker, on_frozen
from tests.hung.test_daemon import asked, captured_on, daemon_of, delete, is_purged_on, stage_keep, state_of
from tests.kernel.images import Images, Mounted
from tests.logdir.daemon.rig import Process, until
from tests.operations_page import VALUES, section
from tests.typed_page import Host
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]

NEW_DIRECTORY = "AAAAAAAAAAAAAAAAAAAABQ"


def host_of(broker: Broker, daemon: Process, actions: Mapping[str, Callable[[], object]]) -> Host:
    values = {
        "CONFIG": daemon.config,
        "PROPERTIES": daemon.folder / "server.properties",
        "DISK": broker.sick,
        "MOUNT": broker.sick.parent,
        "DEVICE": "/dev/none",
        "CLUSTER": CLUSTER,
    }
    return Host(broker.folder / "host", VALUES, values, actions)


def reload(daemon: Process) -> None:
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGHUP)


def test_a_dead_disk_is_replaced_beside_the_daemon(images: Images, tmp_path: Path) -> None:
    old = images.mount(images.make("ext4", 32), "ext4")
    broker = Broker(tmp_path, old.path)
    one, two, three = broker.disks
    daemon = daemon_of(broker)
    new: list[Mounted] = []

    def mount() -> None:
        new.append(Mounted(images.make("ext4", 32), old.path, "ext4"))

    def format_log_dir() -> None:
        (two / "meta.properties").write_text(META.format(node=1, directory=NEW_DIRECTORY, cluster=CLUSTER))

    actions = {
        'umount "$MOUNT"': old.unmount,
        'mkfs.ext4 -q "$DEVICE"': lambda: None,
        'mount "$DEVICE" "$MOUNT"': mount,
        'chown kafka: "$DISK"': lambda: None,
        'runuser -u kafka -- kafka-storage.sh format -g -t "$CLUSTER" -c "$PROPERTIES"': format_log_dir,
        "systemctl reload logdird@b1": lambda: reload(daemon),
    }
    try:
        with daemon.running():
            assert [state_of(daemon, path) for path in broker.disks] == [LogDirState.ONLINE] * 3
            until("what is due has gone", lambda: all(map(is_purged_on, broker.disks)))
            # Its purge begins with a write to each disk: else a minute may pass before the daemon writes there.
            stage_keep(broker, daemon)
            old.abort()
            host_of(broker, daemon, actions).type_section(section("A disk is dead"))
            partition(two / "pay-1", segments={0: 100})
            for number in range(3):
                delete(broker, number)
            until("all are captured", lambda: all(captured_on(daemon, path) for path in (one, two, three)))
            assert daemon.stop() == 0
    finally:
        for mounted in new:
            mounted.unmount()


def test_a_disk_that_hangs_is_named_let_go_and_taken_back(images: Images, tmp_path: Path) -> None:
    with on_frozen(images, tmp_path, count=4) as sick:
        broker = sick.broker
        daemon = daemon_of(broker)

        def answer() -> None:
            sick.go_on()
            reload(daemon)

        with daemon.running():
            assert [state_of(daemon, path) for path in broker.disks] == [LogDirState.ONLINE] * 4
            sick.hang()
            assert asked(daemon, "hold", "old").status == Exit.PROBLEMS
            host = host_of(broker, daemon, {"systemctl reload logdird@b1": answer})
            host.type_section(section("A disk hangs"))
            for path in (broker.disks[0], broker.sick):
                delete(broker, broker.disks.index(path))
            until("both capture", lambda: captured_on(daemon, broker.disks[0]) and captured_on(daemon, broker.sick))
            assert daemon.stop() == 0
