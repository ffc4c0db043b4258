"""The processes beside the log dirs: of a disk that hangs in the kernel one is left at most (attack A40)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logdir.errors import LogDirSuspectError
from logdir.observe.mounts import identity_at
from logdir.paths import METADATA_DIR
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.ports import BrokerPorts, connected
from logdir.service.log_dirs.request import BrokerRequest, LeftOut
from logdir.worker.reaping import Unreaped
from tests.logdir.daemon.rig import until
from tests.logdir.daemon.test_session import Hanging
from tests.tools.ctl import two_disks


@contextmanager
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no process that is killed end, as one that hangs in the kernel."""
    with monkeypatch.context() as hangs:
        hangs.setattr("logdir.worker.remote.has_ended", lambda pid, ms: False)
        yield


def children() -> set[str]:
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def test_a40_while_a_process_that_read_a_metadata_log_has_not_ended_no_other_is_started(
    workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / METADATA_DIR
    log.mkdir()
    before, ports = children(), BrokerPorts(named=BrokerConfig((), None), ports=(), patience_ms=10_000)
    with hanging(monkeypatch):
        assert ports.apart(str(tmp_path), identity_at, str(tmp_path)) == identity_at(str(tmp_path))
        ((path, pid),) = ports.unreaped.pids().items()
        assert (path, {str(pid)}) == (str(tmp_path), children() - before)
        for same in (tmp_path, log):
            with pytest.raises(LogDirSuspectError, match=f"{same}: .* found pid {pid}, which hangs in the kernel"):
                ports.apart(str(same), identity_at, str(same))
        ports.apart(str(tmp_path / "other"), identity_at, str(tmp_path))  # Another disk is read.
        assert len(ports.unreaped.pids()) == 2
    until("the killed processes have ended", lambda: not ports.unreaped.pids())
    assert children() == before  # None is left as a zombie.
    assert ports.apart(str(log), identity_at, str(log)) == identity_at(str(log))


def test_a40_a_disk_beside_the_log_dirs_that_hangs_keeps_one_process_however_often_they_are_opened(
    workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = two_disks(tmp_path)
    meta = tmp_path / "meta"
    (meta / METADATA_DIR).mkdir(parents=True)
    properties = tmp_path / "server.properties"
    properties.write_text(f"node.id=1\nprocess.roles=broker\nlog.dirs={disks[0]},{disks[1]}\nmetadata.log.dir={meta}\n")
    request, log, unreaped = BrokerRequest(server_properties=str(properties)), meta / METADATA_DIR, Unreaped()
    with hanging(monkeypatch):
        with connected(request, left_out=LeftOut({}, unreaped)):
            pass
        assert unreaped.pids().keys() == {*map(str, disks), str(log)}
    until("the killed processes have ended", lambda: not unreaped.pids())

    hung = Hanging(log)
    unreaped.keep([hung])
    before = children()
    with connected(request, left_out=LeftOut({}, unreaped)) as ports:
        assert len(children() - before) == 2  # The workers of the two log dirs.
        with pytest.raises(LogDirSuspectError, match="found pid 4242, which hangs in the kernel"):
            ports.apart(str(meta), identity_at, str(meta))
        hung.has_ended = True
        assert ports.apart(str(meta), identity_at, str(meta)) == identity_at(str(meta))
