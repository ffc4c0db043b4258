"""Which directory an open one is: device, inode and mount, by one call of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdir.disk.kernel import libc
from logdir.disk.kernel.host import HostDisk


@pytest.mark.parametrize("is_old_kernel", [False, True])
@pytest.mark.parametrize("path", ["/", "/proc", "/dev", "/dev/shm", "/sys", "here"])
def test_an_identity_is_what_stat_and_proc_say(
    tmp_path: Path, path: str, is_old_kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_old_kernel:
        monkeypatch.setattr(libc, "_STATX_MNT_ID", 1 << 30)  # a bit no kernel knows
    path = str(tmp_path) if path == "here" else path
    with HostDisk().open_top(path) as directory:
        found = Path(path).stat()
        said = Path(f"/proc/self/fdinfo/{directory.descriptor}").read_text()
        (mount_id,) = (int(line.split()[1]) for line in said.splitlines() if line.startswith("mnt_id:"))
        assert directory.identity() == (found.st_dev, found.st_ino, mount_id)


def test_another_file_system_is_not_entered() -> None:
    with HostDisk().open_top("/") as root, pytest.raises(OSError, match="another device or mount"):
        root.open("proc")
