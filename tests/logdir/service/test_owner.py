"""As whom root changes the log dirs of a broker: rules, and where a hung or absent log dir is among them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from logdir.errors import LogDirSuspectError, RefusedError
from logdir.refusal_slug import Why
from logdir.service.log_dirs import owner
from logdir.service.log_dirs.owner import Identity, become_owner, identity_of
from logdir.service.log_dirs.request import BrokerRequest
from logdir.worker.port import Port
from logdir.worker.remote import RemotePort
from logdir.worker.start import start
from tests.whole_refusal import require_whole

NOBODY_KNOWN = 4242
"""A user without an entry in the password file."""


def test_a09_log_dirs_of_one_owner_are_changed_as_that_owner_with_their_groups() -> None:
    owners = {"/d1": (NOBODY_KNOWN, 7), "/d2": (NOBODY_KNOWN, 8)}
    assert identity_of(owners) == Identity(NOBODY_KNOWN, 7, (7, 8))


def test_a09_an_owner_in_the_password_file_keeps_its_groups() -> None:
    assert identity_of({"/d1": (0, 0)}) == Identity(0, 0, tuple(sorted({0, *os.getgrouplist("root", 0)})))


def test_without_a_log_dir_there_is_nobody_to_become() -> None:
    assert identity_of({}) is None


def test_a09_log_dirs_of_different_owners_are_refused_by_name() -> None:
    with pytest.raises(RefusedError) as caught:
        identity_of({"/d1": (NOBODY_KNOWN, 7), "/d2": (NOBODY_KNOWN, 7), "/d3": (0, 0)})
    require_whole(
        caught.value,
        Why.OWNERS_DIFFER,
        path="/d3",
        expected="a log dir of user 4242, as /d1",
        found="one of user 0",
        fix="is its disk mounted? Give every log dir to the user of the broker, or use --skip-log-dir",
    )


class Became:
    """Hears as whom the process would go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[object, ...]] = []
        for name in ("setgroups", "setresgid", "setresuid"):
            monkeypatch.setattr(os, name, self._hearing(name))

    def _hearing(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self.calls.append((name, *arguments))


def request(*log_dirs: Path, skipped: tuple[str, ...] = ()) -> BrokerRequest:
    return BrokerRequest(log_dirs=",".join(map(str, log_dirs)), skipped=skipped, disk_timeout_ms=3000)


@pytest.mark.root
def test_a09_root_gives_up_groups_before_user(workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other way round it could not give up the groups any more."""
    became = Became(monkeypatch)
    for name in ("d1", "d2"):
        (tmp_path / name).mkdir()
        os.chown(tmp_path / name, NOBODY_KNOWN, 7)
    become_owner(request(tmp_path / "d1", tmp_path / "d2", tmp_path / "d3"))
    assert became.calls == [
        ("setgroups", (7,)),
        ("setresgid", 7, 7, 7),
        ("setresuid", 4242, 4242, 4242),
    ]


@pytest.mark.root
def test_a09_log_dirs_of_root_are_changed_as_root(
    workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    became = Became(monkeypatch)
    (tmp_path / "d1").mkdir()
    become_owner(request(tmp_path / "d1"))
    assert became.calls == []


@pytest.mark.root
def test_a_log_dir_that_is_skipped_is_not_asked(workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    became = Became(monkeypatch)
    for name in ("d1", "d2"):
        (tmp_path / name).mkdir()
    os.chown(tmp_path / "d1", NOBODY_KNOWN, 7)
    become_owner(request(tmp_path / "d1", tmp_path / "d2", skipped=(str(tmp_path / "d2"),)))
    assert became.calls[-1] == ("setresuid", 4242, 4242, 4242)


@pytest.mark.root
@pytest.mark.parametrize("hanging", [{"d2"}, {"d1", "d2"}], ids=["one", "all"])
def test_a49_a_log_dir_that_hangs_keeps_nobody_from_learning_the_owner(
    workers: None, hanging: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    became = Became(monkeypatch)
    for name in ("d1", "d2"):
        (tmp_path / name).mkdir()
        os.chown(tmp_path / name, NOBODY_KNOWN, 7)
    begin = start

    def stopping(log_dirs: list[str], patience_ms: int) -> tuple[Port, ...]:
        ports = begin(log_dirs, patience_ms)
        for port in ports:
            if isinstance(port, RemotePort) and Path(port.log_dir).name in hanging:
                os.kill(port.pid, signal.SIGSTOP)
        return ports

    monkeypatch.setattr(owner, "start", stopping)
    if len(hanging) == 2:
        with pytest.raises(LogDirSuspectError):
            become_owner(request(tmp_path / "d1", tmp_path / "d2"))
        assert became.calls == []
        return
    become_owner(request(tmp_path / "d1", tmp_path / "d2"))
    assert became.calls[-1] == ("setresuid", 4242, 4242, 4242)
