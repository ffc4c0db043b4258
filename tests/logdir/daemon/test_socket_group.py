"""The group of the control socket: ``logdird`` where the process is in it, else as it was."""

from __future__ import annotations

import grp
import os
from pathlib import Path

import pytest

from logdir.daemon.socket.socket_group import GROUP, give_to_group


class Known:
    """The groups of a host, and who is asked to own what."""

    def __init__(self, patch: pytest.MonkeyPatch, gid: int | None, *, member: bool) -> None:
        self.given: list[tuple[str, int, int]] = []

        def group_of(name: str) -> grp.struct_group:
            assert name == GROUP == "logdird"
            if gid is None:
                raise KeyError(name)
            return grp.struct_group((name, "x", gid, []))

        patch.setattr(grp, "getgrnam", group_of)
        patch.setattr(os, "getgroups", lambda: [7, gid] if member else [7])
        patch.setattr(os, "chown", lambda path, uid, group: self.given.append((path, uid, group)))


@pytest.mark.parametrize(("gid", "member", "given"), [(None, False, 0), (4711, False, 0), (4711, True, 1)])
def test_it_is_given_only_to_a_group_that_exists_and_that_the_process_is_in(
    monkeypatch: pytest.MonkeyPatch, gid: int | None, member: bool, given: int
) -> None:
    known = Known(monkeypatch, gid, member=member)
    give_to_group("/run/logdird/b1.sock")
    # The user stays: a socket of root's would be refused by those who look whose it is.
    assert known.given == [("/run/logdird/b1.sock", -1, 4711)] * given


def test_the_own_group_counts_and_a_socket_that_cannot_be_given_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(grp, "getgrnam", lambda name: grp.struct_group((name, "x", os.getegid(), [])))
    path = tmp_path / "s.sock"
    path.touch()
    give_to_group(str(path))
    assert path.stat().st_gid == os.getegid()
    path.unlink()
    give_to_group(str(path))
    assert "control.group-not-set" in caplog.text
