"""Files a broker cannot read (A9): one of ours has a name only when it is whole and belongs to whom it is to."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.failure import as_disk_error, disk_error
from logdir.disk.kernel.host import HostDisk
from logdir.errors import ReadOnlyDiskError
from tests.logdir.disk.staged_rig import GID, UID, owner

HOME = Path(__file__).parents[3]
NEW = Owner(UID, GID, 0o644)
IS_ROOT = os.geteuid() == 0


def _killed(top: Path, call: str, what: str) -> int:
    argv = (sys.executable, "-m", "tests.logdir.disk.dying", str(top), call, what, str(UID), str(GID), f"{NEW.mode:o}")
    done = subprocess.run(argv, cwd=HOME, env={**os.environ, "PYTHONPATH": str(HOME)}, check=False)
    return done.returncode


@pytest.mark.parametrize(
    ("what", "call"),
    [
        ("write", "fchown"),
        ("write", "fchmod"),
        ("write", "write"),
        ("write", "utime"),
        ("write", "linkat"),
        ("lock", "fchown"),
        ("lock", "fchmod"),
        ("lock", "linkat"),
    ],
)
def test_a09_a_process_gone_at_any_call_before_the_name_leaves_nothing(tmp_path: Path, what: str, call: str) -> None:
    if call == "fchown" and not IS_ROOT:
        pytest.skip("needs root: nobody else gives files away")
    assert _killed(tmp_path, call, what) == 9, "it never made that call"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("what", "name", "data"), [("write", "made", b"content"), ("lock", ".lock", b"")])
def test_a09_one_gone_right_after_the_name_leaves_a_whole_file_of_the_right_owner(
    tmp_path: Path, what: str, name: str, data: bytes
) -> None:
    assert _killed(tmp_path, "close", what) in (0, 9)
    assert (tmp_path / name).read_bytes() == data
    assert owner(tmp_path / name) == NEW
    assert (tmp_path / name).stat().st_nlink == 1


def test_a_file_never_gets_the_name_of_another(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"mine")
    with HostDisk().open_top(str(tmp_path)) as top:
        with pytest.raises(FileExistsError) as raised:
            top.write("there", b"other", NEW)
        assert raised.value.filename == str(tmp_path / "there")
        with pytest.raises(ValueError, match="single path component"):
            top.write("../out", b"other", NEW)
    assert (tmp_path / "there").read_bytes() == b"mine"
    assert os.listdir(tmp_path) == ["there"]


def test_a_lock_another_process_makes_meanwhile_is_its_own(tmp_path: Path) -> None:
    """A broker makes its ``.lock`` between our look and our name for it."""

    def broker(call: Any) -> None:
        (tmp_path / ".lock").write_bytes(b"the broker's")

    with HostDisk(broker).open_top(str(tmp_path)) as top:
        descriptor = top.open_lock(".lock", NEW)
    assert os.pread(descriptor, 20, 0) == b"the broker's"
    os.close(descriptor)


def test_a09_a_file_system_that_makes_no_file_without_a_name_gets_one_given_away_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refuse(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), path)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    with HostDisk().open_top(str(tmp_path)) as top:
        top.write("made", b"content", NEW, 5)
        os.close(top.open_lock(".lock", NEW))
        with pytest.raises(FileExistsError):
            top.write("made", b"other", NEW)
    assert (tmp_path / "made").read_bytes() == b"content"
    assert {owner(tmp_path / name) for name in ("made", ".lock")} == {NEW}


def test_without_proc_the_descriptor_itself_is_named(tmp_path: Path) -> None:
    """As root; before Linux 6.10 nobody else may."""
    code = (
        "import errno, ctypes, sys\n"
        "from logdir.disk.kernel import host, libc\n"
        "from logdir.disk.kernel.calls import Owner\n"
        "real = libc._LIBC\n"
        "class NoProc:\n"
        "    def __getattr__(self, name): return getattr(real, name)\n"
        "    def linkat(self, at, path, *rest):\n"
        "        if path.startswith(b'/proc'):\n"
        "            ctypes.set_errno(errno.ENOENT)\n"
        "            return -1\n"
        "        return real.linkat(at, path, *rest)\n"
        "libc._LIBC = NoProc()\n"
        "host.HostDisk().open_top(sys.argv[1]).write('made', b'content', Owner(*map(int, sys.argv[2:5])))\n"
    )
    argv = (sys.executable, "-c", code, str(tmp_path), *map(str, NEW))
    done = subprocess.run(argv, cwd=HOME, capture_output=True, text=True, check=False)
    if not IS_ROOT and done.returncode:
        pytest.skip("needs root, or Linux 6.10")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made").read_bytes() == b"content"


def test_only_a_sick_disk_is_called_read_only_and_no_error_is_shown_with_its_number(tmp_path: Path) -> None:
    for number in (errno.EIO, errno.EACCES, errno.ENAMETOOLONG):
        error = OSError(number, os.strerror(number), str(tmp_path / "f"))
        found = disk_error(str(tmp_path), error)
        assert isinstance(found, ReadOnlyDiskError) is (number == errno.EIO)
        for said in (found, as_disk_error(str(tmp_path), error)):
            assert os.strerror(number) in str(said)
            assert "Errno" not in str(said)
