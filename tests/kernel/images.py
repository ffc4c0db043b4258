"""File systems in image files: made once, copied sparse, mounted through loop devices, cut off from power.

The images lie in memory; what a file system has sent to its device when the power goes is what the image holds. There
are two ways to cut: ``FS_IOC_SHUTDOWN``, after which the file system sends nothing more (ext4 and XFS), and a copy of
the image taken while it is mounted (all three). All mounts are made in a mount namespace of this process, so that not
even a kill of it leaves one; they are taken away in order all the same, and loop devices free themselves.

Not here: what runs on them (``host``), what must hold.

Spec: reliability §4.1, §4.4 (L2), appendix; loop(4), mount(2), ioctl_fs_ioc_shutdown, btrfs device forget.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

FILE_SYSTEMS = ("ext4", "xfs", "btrfs")
PACKAGES: Mapping[str, str] = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}
_MKFS: Mapping[str, tuple[str, ...]] = {
    # Blocks and inodes as on a real disk; all of it made now, so that no thread of the kernel makes it later.
    "ext4": (
        *("-F", "-b", "4096", "-I", "256", "-N", "1024", "-J", "size=4", "-O", "^resize_inode"),
        *("-E", "lazy_itable_init=0,lazy_journal_init=0"),
    ),
    "xfs": ("-f",),
    "btrfs": ("-f", "-m", "single", "-d", "single"),
}
_OPTIONS: Mapping[str, str] = {"ext4": "commit=300", "xfs": "", "btrfs": "commit=300"}
"""Nothing is made durable merely because this machine is slow."""
_MEGABYTES: Mapping[str, int] = {"ext4": 16, "xfs": 64, "btrfs": 128}
_TINY_XFS = {"TEST_DIR": "1", "TEST_DEV": "1", "QA_CHECK_FS": "1"}
"""With which ``mkfs.xfs`` makes less than 300 MiB, as it does for the file system's own tests."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNS = 0x20000
_MS_RDONLY, _MS_REMOUNT, _MS_NOATIME = 1, 32, 1024
_MS_REC_PRIVATE = 0x4000 | 0x40000
_MNT_DETACH = 2
_LOOP_CTL_GET_FREE = 0x4C82
_LOOP_CONFIGURE = 0x4C0A
_LOOP_SET_CAPACITY = 0x4C07
_LO_AUTOCLEAR = 4
_SHUTDOWN = 0x8004587D
_LOG_FLUSH, _NO_LOG_FLUSH = 1, 2
_FREEZE, _THAW = 0xC0045877, 0xC0045878
_FORGET_DEVICE = 0x50009405
_CHUNK = 1 << 20
_PATIENCE_S = 10
_BLOCK = 4096


def missing(*file_systems: str) -> str:
    """Say what this machine lacks for tests on these file systems; empty if nothing."""
    if os.geteuid() != 0:
        return "needs root: makes and mounts file systems"
    if not os.access("/dev/loop-control", os.W_OK):
        return "needs loop devices: modprobe loop"
    known = Path("/proc/filesystems").read_text("ascii").split()
    for name in file_systems:
        if shutil.which(f"mkfs.{name}") is None:
            return f"needs mkfs.{name}: apt install {PACKAGES[name]}"
        if name not in known and subprocess.run(["modprobe", name], capture_output=True, check=False).returncode:
            return f"needs a kernel with {name}: modprobe {name}"
    return ""


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def leave_mounts() -> None:
    """Put this process into a mount namespace of its own: what it mounts from now on ends with it."""
    _check(_LIBC.unshare(_CLONE_NEWNS), "unshare")
    _check(_LIBC.mount(b"none", b"/", None, _MS_REC_PRIVATE, None), "/")


def _mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    said = (os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode() or None)
    _check(_LIBC.mount(*said), f"{source} on {target}")


def _extents(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield where a file holds data: from, to."""
    at = 0
    while at < size:
        try:
            at = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return
        end = os.lseek(descriptor, at, os.SEEK_HOLE)
        yield at, end
        at = end


def copy_sparse(source: Path, target: Path, *, dig: bool = False) -> None:
    """Copy an image without its holes.

    Args:
        source: The image; it may be mounted.
        target: The copy.
        dig: Whether blocks of zeros become holes, too.
    """
    zeros = bytes(_BLOCK)
    reader = os.open(source, os.O_RDONLY)
    writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        size = os.fstat(reader).st_size
        os.ftruncate(writer, size)
        for at, end in _extents(reader, size):
            while at < end:
                part = os.pread(reader, min(_BLOCK if dig else _CHUNK, end - at), at)
                if not dig or part != zeros[: len(part)]:
                    os.pwrite(writer, part, at)
                at += len(part)
    finally:
        os.close(reader)
        os.close(writer)


class Mounted:
    """An image that is mounted."""

    def __init__(self, image: Path, path: Path, kind: str) -> None:
        """Mount an image at a directory, which is made."""
        self.image = image
        self.path = path
        self.kind = kind
        self._device = ""
        self._loop = -1
        path.mkdir(exist_ok=True)
        self._attach()
        try:
            _mount(self._device, str(path), kind, _MS_NOATIME, _OPTIONS[kind])
        except OSError:
            os.close(self._loop)
            raise
        self.is_mounted = True
        self.is_cut = False

    def _attach(self) -> None:
        """Bind a free loop device to the image; it frees itself with its last user."""
        file = os.open(self.image, os.O_RDWR)
        name = os.fsencode(self.image)[-63:]
        info = struct.pack("=5Q4I64s64s32s2Q", 0, 0, 0, 0, 0, 0, 0, 0, _LO_AUTOCLEAR, name, b"", b"", 0, 0)
        config = struct.pack("=II", file, 0) + info + bytes(64)
        try:
            with open("/dev/loop-control", "rb", buffering=0) as control:
                while True:
                    number = fcntl.ioctl(control, _LOOP_CTL_GET_FREE)
                    self._device = f"/dev/loop{number}"
                    self._loop = os.open(self._device, os.O_RDWR | os.O_CLOEXEC)
                    try:
                        fcntl.ioctl(self._loop, _LOOP_CONFIGURE, config)
                    except OSError as error:
                        os.close(self._loop)
                        if error.errno != errno.EBUSY:
                            raise
                    else:
                        return
        finally:
            os.close(file)

    def _ioctl(self, request: int, argument: int) -> None:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(descriptor, request, struct.pack("I", argument))
        finally:
            os.close(descriptor)

    def cut(self, *, log_flush: bool = False) -> None:
        """Send nothing more to the device; with ``log_flush``, the log of metadata before, but no data (ext4, XFS)."""
        if not self.is_cut:
            self._ioctl(_SHUTDOWN, _LOG_FLUSH if log_flush else _NO_LOG_FLUSH)
        self.is_cut = True

    def freeze(self) -> None:
        """Let every change hang, in a sleep that no signal ends."""
        self._ioctl(_FREEZE, 0)

    def thaw(self) -> None:
        """Let what hangs go on."""
        self._ioctl(_THAW, 0)

    def remount(self, *, read_only: bool) -> None:
        """Mount it again as it is, to be read only or to be written."""
        flags = _MS_REMOUNT | _MS_NOATIME | (_MS_RDONLY if read_only else 0)
        _mount("none", str(self.path), self.kind, flags)

    def abort(self) -> None:
        """Turn it read-only while it is in use, as an error of the device does (ext4)."""
        _mount("none", str(self.path), self.kind, _MS_REMOUNT | _MS_NOATIME, "abort")

    def sync(self) -> None:
        """Make all of it durable."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _check(_LIBC.syncfs(descriptor), str(self.path))
        finally:
            os.close(descriptor)

    def break_off(self, size: int) -> None:
        """Let the device end here: what lies beyond cannot be read (``EIO``), nor, but for ext4, written."""
        os.truncate(self.image, size)
        if self.kind != "ext4":
            # ext4 takes the end of a device that it knows to be larger for a lack of memory.
            fcntl.ioctl(self._loop, _LOOP_SET_CAPACITY)

    def unmount(self, *, lazily: bool = False) -> None:
        """Unmount it and free its loop device; twice does nothing.

        Args:
            lazily: Whether it is only taken out of its place, as ``umount -l`` does; it ends with its last user.
        """
        if not self.is_mounted:
            return
        try:
            _check(_LIBC.umount2(os.fsencode(self.path), _MNT_DETACH if lazily else 0), str(self.path))
        except OSError:
            _LIBC.umount2(os.fsencode(self.path), _MNT_DETACH)
            raise
        finally:
            self.is_mounted = False
            if self.kind == "btrfs" and not lazily:
                self._forget()
            os.close(self._loop)

    def _forget(self) -> None:
        """Else an older copy of the same file system could not be mounted."""
        with open("/dev/btrfs-control", "rb", buffering=0) as control:
            try:
                fcntl.ioctl(control, _FORGET_DEVICE, bytearray(struct.pack("q4088s", 0, self._device.encode())))
            except OSError as error:
                # Kernels that forget by themselves have nothing left to forget.
                if error.errno != errno.ENOENT:
                    raise


class Images:
    """Images under one directory, in memory, and what of them is mounted."""

    def __init__(self, folder: Path) -> None:
        """Mount a file system in memory over ``folder``, for a process that has left the others' mounts."""
        self._folder = folder
        self._mounted: list[Mounted] = []
        self._serial = 0
        folder.mkdir(parents=True, exist_ok=True)
        _mount("none", str(folder), "tmpfs", 0, "size=75%,mode=700")

    def new(self, name: str) -> Path:
        """Return a path for an image or a directory."""
        self._serial += 1
        return self._folder / f"{self._serial}-{name}"

    def make(self, kind: str, megabytes: int = 0, options: tuple[str, ...] = ()) -> Path:
        """Make a file system of this kind.

        Args:
            kind: One of ``FILE_SYSTEMS``.
            megabytes: Its size; as small as sensible by default.
            options: More of ``mkfs``.
        """
        image = self.new(f"{kind}.img")
        with image.open("wb") as file:
            file.truncate((megabytes or _MEGABYTES[kind]) << 20)
        command = [f"mkfs.{kind}", "-q", *_MKFS[kind], *options, str(image)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **_TINY_XFS})
        if done.returncode:
            raise AssertionError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        dug = self.new(f"{kind}.img")
        copy_sparse(image, dug, dig=True)
        image.unlink()
        return dug

    def mount(self, image: Path, kind: str) -> Mounted:
        """Mount an image at a new directory."""
        mounted = Mounted(image, self.new("at"), kind)
        self._mounted.append(mounted)
        return mounted

    def forget(self, *mounts: Mounted) -> None:
        """Unmount these and remove their images."""
        for mounted in mounts:
            mounted.unmount()
            mounted.image.unlink(missing_ok=True)
            mounted.path.rmdir()
            self._mounted.remove(mounted)

    def unmount_all(self) -> None:
        """Unmount whatever a test that failed has left mounted."""
        for mounted in reversed(self._mounted):
            if mounted.is_mounted:
                try:
                    mounted.unmount()
                except OSError as error:
                    print(f"{mounted.path} was busy: {error}")
        self._mounted.clear()

    def close(self) -> None:
        """Unmount all and forget the images."""
        self.unmount_all()
        _check(_LIBC.umount2(os.fsencode(self._folder), _MNT_DETACH), str(self._folder))

    def left(self) -> list[str]:
        """Return the mounts and loop devices that lead here: none, once it is closed."""
        return leftovers(self._folder)


@contextmanager
def images_below(folder: Path, left: Callable[[], list[str]]) -> Iterator[Images]:
    """Make images where nobody else sees what is mounted; fail if a mount or a loop device is left at the end.

    Args:
        folder: Made for them.
        left: Returns what is left once they are closed.
    """
    leave_mounts()
    made = Images(folder)
    yield made
    made.close()
    end = time.monotonic() + _PATIENCE_S
    while left() and time.monotonic() < end:
        time.sleep(0.1)  # A loop device frees itself in its own time.
    assert left() == []


def leftovers(folder: Path) -> list[str]:
    """Return the mounts and loop devices below a directory."""
    lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    found = [line for line in lines if f" {folder}" in line]
    for said in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            backing = said.read_text("utf-8").strip()
        except OSError:
            continue
        if backing.startswith(str(folder)):
            found.append(f"{said.parts[3]} on {backing}")
    return found
