"""Refusals that no other test meets: a probe that fails for no known reason, and thousands of names taken."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from logdir.disk.kernel.unique_name import free_name
from logdir.disk.root import probe
from logdir.errors import DiskError, RefusedError
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.ids import TopicId
from logdir.names import WorkDir
from logdir.refusal_slug import Why
from tests.builders import TOPIC_ID
from tests.logdir.disk.staged_rig import make_log_dir, opened
from tests.whole_refusal import require_whole


def test_a_probe_that_fails_for_no_known_reason_says_what_the_kernel_does(tmp_path: Path) -> None:
    with opened(make_log_dir(tmp_path / "d1")) as open_dir:
        error = probe.refusal(open_dir, OSError(errno.EMLINK, "Too many links"))
        require_whole(
            error,
            Why.RENAME_FAILED,
            path=open_dir.work.path,
            expected="a rename there and back",
            found="Too many links",
            fix="check the kernel log for that disk; no replica was moved",
        )


def test_a_probe_that_may_not_be_renamed_says_as_whom_to_run(tmp_path: Path) -> None:
    with opened(make_log_dir(tmp_path / "d1")) as open_dir:
        require_whole(
            probe.refusal(open_dir, OSError(errno.EACCES, "Permission denied")),
            Why.NO_PERMISSION,
            path=open_dir.work.path,
            expected="permission to rename",
            found="Permission denied",
            fix="run as the owner of the log dirs",
        )


@pytest.mark.parametrize(("number", "is_refused"), [(errno.ENOSPC, False), (errno.EXDEV, True)])
def test_a_probe_on_a_full_disk_proves_nothing_and_forbids_nothing(
    number: int, is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what is staged on a full disk could never be purged: its directories may have no room for one more name."""

    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    refusal = pytest.raises(RefusedError, match="mounts-differ") if is_refused else nullcontext()
    with opened(make_log_dir(tmp_path / "d1")) as open_dir:
        monkeypatch.setattr(probe, "round_trip", fails)
        with refusal:
            probe.prove(WorkRootKind.BESIDE, open_dir)


def let_links_fail(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", fails)


def let_leases_fail(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fails(descriptor: int, command: int, argument: int) -> None:
        if (command, argument) == (fcntl.F_SETLEASE, fcntl.F_RDLCK):  # as the kernel: one that was not taken is let go
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "fcntl", fails)


@pytest.mark.parametrize(
    ("number", "slug"),
    [
        (errno.EPERM, "link-not-permitted"),
        (errno.EMLINK, "link-not-permitted"),
        (errno.EXDEV, "mounts-differ"),
        (errno.EIO, "disk-read-only"),
        (errno.ENOSPC, None),
    ],
)
def test_a_file_of_the_broker_that_cannot_be_linked_is_refused_by_name(
    number: int, slug: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel links no file of another user (fs.protected_hardlinks); a full disk proves nothing."""
    top = make_log_dir(tmp_path / "d1")
    with opened(top) as open_dir:
        let_links_fail(monkeypatch, number)
        if slug is None:
            probe.prove_use(WorkRootKind.BESIDE, open_dir)
            return
        with pytest.raises(DiskError) as caught:
            probe.prove_use(WorkRootKind.BESIDE, open_dir)
        probe.prove_use(WorkRootKind.BESIDE, open_dir, unsupported_fs=True)
    assert caught.value.slug == slug


def refused_use(top: Path) -> RefusedError:
    """Return the refusal of a proof that the daemon can work on a log dir."""
    with opened(top) as open_dir, pytest.raises(RefusedError) as caught:
        probe.prove_use(WorkRootKind.BESIDE, open_dir)
    return caught.value


def test_a_file_that_may_not_be_linked_is_refused_with_whom_to_run_as(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = make_log_dir(tmp_path / "d1")
    let_links_fail(monkeypatch, errno.EPERM)
    require_whole(
        refused_use(top),
        Why.LINK_NOT_PERMITTED,
        path=f"{top}/meta.properties",
        expected="a hard link into the work root, as a capture makes it",
        found="Operation not permitted",
        fix="run as the owner of the log dirs and of the files there (fs.protected_hardlinks), on ext4, XFS or btrfs",
    )


@pytest.mark.parametrize(
    ("number", "slug"),
    [
        (errno.EACCES, "lease-not-permitted"),
        (errno.EINVAL, "lease-not-permitted"),
        (errno.EIO, "disk-read-only"),
        (errno.EAGAIN, None),
    ],
)
def test_a_file_of_the_broker_that_cannot_be_leased_is_refused_by_name(
    number: int, slug: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel lets the owner of a file alone take a lease; that another process writes it now forbids nothing."""
    top = make_log_dir(tmp_path / "d1")
    with opened(top) as open_dir:
        let_leases_fail(monkeypatch, number)
        if slug is None:
            probe.prove_use(WorkRootKind.BESIDE, open_dir)
            return
        with pytest.raises(DiskError) as caught:
            probe.prove_use(WorkRootKind.BESIDE, open_dir)
    assert caught.value.slug == slug


def test_a_file_that_may_not_be_leased_is_refused_with_whom_to_run_as(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = make_log_dir(tmp_path / "d1")
    let_leases_fail(monkeypatch, errno.EACCES)
    require_whole(
        refused_use(top),
        Why.LEASE_NOT_PERMITTED,
        path=f"{top}/meta.properties",
        expected="a lease (F_SETLEASE), by which a purge sees whether a file is open",
        found="Permission denied",
        fix="run as the owner of the log dirs and of the files there, on ext4, XFS or btrfs",
    )


def test_a_proof_leaves_nothing_and_takes_away_what_a_killed_one_left(tmp_path: Path) -> None:
    top = make_log_dir(tmp_path / "d1")
    file, left = top / "meta.properties", Path(f"{top}.logdird/probe/probe-link")
    before = file.read_bytes(), file.stat().st_ino, file.stat().st_mtime_ns
    os.link(file, left)
    with opened(top) as open_dir:
        probe.prove_use(WorkRootKind.BESIDE, open_dir)
    assert not left.exists()
    assert (file.read_bytes(), file.stat().st_ino, file.stat().st_mtime_ns) == before
    assert file.stat().st_nlink == 1


def test_a_name_is_refused_once_thousands_are_taken(tmp_path: Path) -> None:
    def taken(name: str) -> None:
        raise FileExistsError

    with (
        opened(make_log_dir(tmp_path / "d1")) as open_dir,
        pytest.raises(RefusedError) as raised,
    ):
        free_name(open_dir.deleting, WorkDir(TopicId.parse(TOPIC_ID), None, 0, 1, ""), taken)
    require_whole(
        raised.value,
        Why.NO_FREE_NAME,
        path=f"{tmp_path}/d1.logdird/deleting",
        expected="a free name",
        found="10000 names of one replica, all taken",
        fix="purge what is staged of that replica: logdirctl staged purge",
    )
