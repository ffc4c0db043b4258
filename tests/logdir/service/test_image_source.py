"""The own metadata log of the only voter, to which its running broker appends while it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from logdir.service.cluster import image_source, own_log
from logdir.service.cluster.image_source import Desired, read_desired
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.host import look_at_host
from logdir.service.log_dirs.ports import connected
from logdir.service.log_dirs.request import BrokerRequest
from tests.logdir.cluster.log_dir import LogDir, noop, topic
from tests.tools.assignment_rig import ALONE, THREE
from tests.tools.reconcile_rig import Rig

NEW = bytes(15) + b"\x11"


class Scene:
    """A broker that votes alone, and what it does before each look at the end of its log."""

    def __init__(self, folder: Path) -> None:
        self.rig = Rig(folder)
        self.log: LogDir = self.rig.log()
        self.state = self.log.directory / "quorum-state"
        self.state.write_text(ALONE)
        self.properties = folder / "server.properties"
        self.properties.write_text(
            f"process.roles=broker,controller\nnode.id=1\nlog.dirs={','.join(map(str, self.rig.disks))}\n"
            f"metadata.log.dir={self.rig.disks[0]}\n"
        )
        self.looks = 0

    def read(self, done: Callable[[int], object], *, is_broker_running: bool = True) -> Desired:
        """Read the log; ``done`` gets the number of the look at its end, from 1 on."""
        real = own_log.ends_now

        def ends_now(*arguments: object) -> bool:
            self.looks += 1
            done(self.looks)
            return real(*arguments)  # type: ignore[arg-type]  # as they came

        with connected(BrokerRequest(server_properties=str(self.properties))) as ports:
            host = look_at_host(ports)
            with mock.patch.object(image_source, "ends_now", ends_now):
                return read_desired(
                    SourceRequest(),
                    ports.named,
                    host.facts,
                    host.last_applied,
                    now_ms=2_000_000_000_000,
                    is_broker_running=is_broker_running,
                    is_end_needed=True,
                )


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_what_a_running_broker_appends_while_its_log_is_read_is_read_too(scene: Scene) -> None:
    def append(look: int) -> None:
        if look == 1:
            scene.log.append(topic("new", NEW))

    desired = scene.read(append)
    assert desired.is_current
    assert desired.latest is not None
    assert desired.latest.offset == desired.image.offset
    assert NEW in desired.image.topics


def test_a_log_that_never_stays_is_read_on_three_times_and_then_not_current(scene: Scene) -> None:
    desired = scene.read(lambda _: scene.log.append(noop()))
    assert not desired.is_current
    assert scene.looks == 4


def test_a_voter_that_was_added_meanwhile_leaves_what_was_read_before(scene: Scene) -> None:
    def vote(look: int) -> None:
        if look == 1:
            scene.log.append(topic("new", NEW))
            scene.state.write_text(THREE)

    desired = scene.read(vote)
    assert not desired.is_current
    assert NEW not in desired.image.topics


def test_the_log_of_a_stopped_broker_is_not_read_on(scene: Scene) -> None:
    desired = scene.read(lambda _: scene.log.append(noop()), is_broker_running=False)
    assert not desired.is_current
    assert scene.looks == 1
