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
from tests.builders import TOPIC_ID
from tests.logdir.disk.staged_rig import make_log_dir, opened


def test_a_probe_that_fails_for_no_known_reason_says_what_the_kernel_does(tmp_path: Path) -> None:
    with opened(make_log_dir(tmp_path / "d1")) as open_dir:
        error = probe.refusal(open_dir, OSError(errno.EMLINK, "Too many links"))
    assert isinstance(error, RefusedError)
    assert (error.slug, error.found) == ("rename-failed", "Too many links")


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

    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    top = make_log_dir(tmp_path / "d1")
    with opened(top) as open_dir:
        monkeypatch.setattr(os, "link", fails)
        if slug is None:
            probe.prove_use(WorkRootKind.BESIDE, open_dir)
            return
        with pytest.raises(DiskError) as caught:
            probe.prove_use(WorkRootKind.BESIDE, open_dir)
        probe.prove_use(WorkRootKind.BESIDE, open_dir, unsupported_fs=True)
    assert caught.value.slug == slug
    if number == errno.EPERM:
        assert caught.value.problem().line() == (
            f"link-not-permitted: {top}/meta.properties: expected a hard link into the work root, as a capture makes "
            "it, found Operation not permitted; run as the owner of the log dirs and of the files there "
            "(fs.protected_hardlinks), on ext4, XFS or btrfs"
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

    def fails(descriptor: int, command: int, argument: int) -> None:
        if (command, argument) == (fcntl.F_SETLEASE, fcntl.F_RDLCK):  # as the kernel: one that was not taken is let go
            raise OSError(number, os.strerror(number))

    top = make_log_dir(tmp_path / "d1")
    with opened(top) as open_dir:
        monkeypatch.setattr(fcntl, "fcntl", fails)
        if slug is None:
            probe.prove_use(WorkRootKind.BESIDE, open_dir)
            return
        with pytest.raises(DiskError) as caught:
            probe.prove_use(WorkRootKind.BESIDE, open_dir)
    assert caught.value.slug == slug
    if number == errno.EACCES:
        assert caught.value.problem().line() == (
            f"lease-not-permitted: {top}/meta.properties: expected a lease (F_SETLEASE), which tells a purge whether "
            "a file is open, found Permission denied; run as the owner of the log dirs and of the files there, on "
            "ext4, XFS or btrfs"
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
        pytest.raises(RefusedError, match=r"^no-free-name: .*purge what is staged"),
    ):
        free_name(open_dir.deleting, WorkDir(TopicId.parse(TOPIC_ID), None, 0, 1, ""), taken)
