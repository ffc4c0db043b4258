"""The calls of ``calls`` for real: the one module that changes anything under a log dir or work root.

Everything is relative to an open descriptor and names one path component; links are refused, not followed; a directory
is entered only on the device and mount of the one it lies in. ``renameat2`` always carries ``RENAME_NOREPLACE``; one
call replaces a small file. A file gets its name last: whole, and given to whom it belongs.

Not here: what to call and in which order (the operations beside this module), locks (``locks``).

Spec: design §2 laws 9 and 10, §3.3; reliability §4.2, §5 and appendix; renameat2(2), statx(2), syncfs(2).
"""

from __future__ import annotations

import errno
import os
import stat as st
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NamedTuple, Self

from logdir.disk.kernel import libc
from logdir.disk.kernel.calls import Directory, Identity, Owner, Space, Stat
from logdir.disk.kernel.kernel_stat import PERMISSIONS, stat_of
from logdir.disk.kernel.whole_path import NO_REGULAR_FILE, whole_path
from logdir.observe.classify import Type
from logdir.observe.walk import list_types

_NO_UNNAMED = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EISDIR})
"""What a file system says that makes no file without a name; ``EISDIR`` a kernel that does not know the flag."""
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Call(NamedTuple):
    """One call that changes a disk or makes it durable, as told to an observer before it is made."""

    name: str
    path: str
    to: str = ""


Observer = Callable[[Call], None]


def _nobody(call: Call) -> None:
    """Tell nobody."""


def _component(name: str) -> str:
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise ValueError(f"not a single path component: {name!r}")
    return name


class HostDirectory:
    """An open directory of this host."""

    __slots__ = ("_disk", "_fd", "_identity", "_path")

    def __init__(self, descriptor: int, path: str, disk: HostDisk) -> None:
        self._fd = descriptor
        self._path = path
        self._disk = disk
        self._identity: Identity | None = None

    @property
    def path(self) -> str:
        """Where it was opened."""
        return self._path

    @property
    def descriptor(self) -> int:
        """The open descriptor, for locks."""
        return self._fd

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; closing twice does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _at(self, name: str) -> str:
        return f"{self._path}/{_component(name)}"

    def _tell(self, call: str, name: str, to: str = "") -> None:
        _component(name)
        # Nearly always nobody listens, and a purge makes a million calls.
        if self._disk.observer is not _nobody:
            self._disk.observer(Call(call, self._at(name), to))

    # Looking.

    def _open(self) -> int:
        if self._fd < 0:  # which a listing takes for the working directory
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._path)
        return self._fd

    def names(self) -> list[str]:
        """Return the names of all entries, sorted."""
        return sorted(os.listdir(self._open()))

    def types(self) -> dict[str, Type]:
        """Return what every entry is, by its name, sorted; a link is not followed."""
        return dict(sorted(list_types(self._open()).items()))

    @whole_path
    def stat(self, name: str) -> Stat:
        """Return what an entry is; a link is not followed."""
        return stat_of(os.stat(_component(name), dir_fd=self._fd, follow_symlinks=False))

    def own_stat(self) -> Stat:
        """Return what this directory is."""
        return stat_of(os.fstat(self._fd))

    def identity(self) -> Identity:
        """Return which directory this is."""
        if self._identity is None:
            self._identity = libc.identity(self._fd, self._path)
        return self._identity

    def space(self) -> Space:
        """Return what is left on its file system."""
        found = os.fstatvfs(self._fd)
        return Space(found.f_bavail * found.f_frsize, found.f_favail, found.f_blocks * found.f_frsize, found.f_files)

    def require_changeable(self) -> None:
        """Return if this process may make and remove entries here."""
        if os.access(".", os.W_OK | os.X_OK, dir_fd=self._open()):
            return
        is_read_only = os.fstatvfs(self._fd).f_flag & os.ST_RDONLY
        code = errno.EROFS if is_read_only else errno.EACCES
        raise OSError(code, os.strerror(code), self._path)

    @whole_path
    def _open_file(self, name: str, flags: int = _OPEN_FILE) -> int:
        descriptor = os.open(_component(name), flags, dir_fd=self._fd)
        if not st.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, NO_REGULAR_FILE, self._at(name))
        return descriptor

    def read(self, name: str, limit: int) -> bytes:
        """Return the content of a regular file, at most ``limit`` + 1 bytes of it."""
        descriptor = self._open_file(name)
        try:
            parts = []
            left = limit + 1
            while left > 0 and (part := os.read(descriptor, left)):
                parts.append(part)
                left -= len(part)
        finally:
            os.close(descriptor)
        return b"".join(parts)

    @whole_path
    def open(self, name: str) -> HostDirectory:
        """Open a directory in this one, on the same device and mount."""
        descriptor = os.open(_component(name), _OPEN_DIRECTORY, dir_fd=self._fd)
        opened = HostDirectory(descriptor, self._at(name), self._disk)
        try:
            inner, outer = opened.identity(), self.identity()
            if (inner.device, inner.mount_id) != (outer.device, outer.mount_id):
                raise OSError(errno.EXDEV, "lies on another device or mount", opened.path)
        except BaseException:
            opened.close()
            raise
        return opened

    # Changing.

    @whole_path
    def make(self, name: str, owner: Owner) -> None:
        """Make a directory that belongs to ``owner``."""
        self._tell("mkdir", name)
        os.mkdir(name, owner.mode & 0o700, dir_fd=self._fd)
        self._give(name, owner)

    def _give(self, name: str, owner: Owner) -> None:
        descriptor = os.open(name, _OPEN_DIRECTORY, dir_fd=self._fd)
        try:
            _give(descriptor, owner)
        finally:
            os.close(descriptor)

    @whole_path
    def write(self, name: str, data: bytes, owner: Owner, mtime_ns: int | None = None) -> None:
        """Make a new file with this content that belongs to ``owner``."""
        self._tell("write", name)
        descriptor, is_named = self._new_file(name, owner, os.O_WRONLY)
        try:
            _give(descriptor, owner)
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if mtime_ns is not None:
                os.utime(descriptor, ns=(mtime_ns, mtime_ns))
            if not is_named:
                libc.link_unnamed(descriptor, self._fd, name)
        finally:
            os.close(descriptor)

    def _new_file(self, name: str, owner: Owner, access: int) -> tuple[int, bool]:
        """Open a new file; return its descriptor and whether it has its name already.

        It has none, so that nobody meets it before it is given away (attacks A9), but on file systems that make no
        file without a name: none of those we change unasked.
        """
        flags = access | os.O_CLOEXEC
        try:
            return os.open(".", flags | os.O_TMPFILE, owner.mode & 0o600, dir_fd=self._fd), False
        except OSError as error:
            if error.errno not in _NO_UNNAMED:
                # ext4 calls it a matter of rights that the directory is removed.
                is_gone = error.errno == errno.EPERM and os.fstat(self._fd).st_nlink == 0
                number = errno.ENOENT if is_gone else error.errno or errno.EIO
                raise OSError(number, os.strerror(number), name) from None
        flags |= os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        return os.open(name, flags, owner.mode & 0o600, dir_fd=self._fd), True

    @whole_path
    def rename(self, name: str, to: Directory, new_name: str) -> None:
        """Rename an entry, never over another."""
        target = _host(to)
        self._tell("rename", name, target._at(new_name))
        libc.rename_new(self._fd, _component(name), target._fd, _component(new_name), self._at(name))

    @whole_path
    def replace(self, name: str, new_name: str) -> None:
        """Rename a file within this directory over another."""
        self._tell("replace", name, self._at(new_name))
        os.rename(_component(name), _component(new_name), src_dir_fd=self._fd, dst_dir_fd=self._fd)

    @whole_path
    def link(self, name: str, to: Directory, new_name: str) -> None:
        """Give a regular file a second name."""
        target = _host(to)
        self._tell("link", name, target._at(new_name))
        os.link(name, new_name, src_dir_fd=self._fd, dst_dir_fd=target._fd, follow_symlinks=False)

    @whole_path
    def unlink(self, name: str) -> None:
        """Remove a name that is no directory's."""
        self._tell("unlink", name)
        os.unlink(name, dir_fd=self._fd)

    @whole_path
    def remove(self, name: str) -> None:
        """Remove an empty directory."""
        self._tell("rmdir", name)
        os.rmdir(name, dir_fd=self._fd)

    def truncate(self, name: str, size_bytes: int) -> None:
        """Make a regular file shorter."""
        self._tell("truncate", name)
        descriptor = self._open_file(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if size_bytes > os.fstat(descriptor).st_size:
                raise OSError(errno.EINVAL, "would make the file longer", self._at(name))
            os.ftruncate(descriptor, size_bytes)
        finally:
            os.close(descriptor)

    @whole_path
    def adopt(self, name: str, owner: Owner) -> None:
        """Give an entry, not followed, an owner and a mode."""
        self._tell("chown", name)
        descriptor = os.open(_component(name), _OPEN_FILE, dir_fd=self._fd)
        try:
            _give(descriptor, owner)
        finally:
            os.close(descriptor)

    # Locks: no part of ``Directory``, for a model of a disk has none.

    @whole_path
    def open_lock(self, name: str, owner: Owner | None = None) -> int:
        """Open a regular file for locking; make it, empty, for ``owner`` where it is missing and one is given.

        Returns:
            A new descriptor, for reading and writing, that does not survive ``exec``; the caller closes it.
        """
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        while True:
            try:
                return self._open_file(name, flags)
            except FileNotFoundError:
                if owner is None:
                    raise
            self._tell("create", name)
            try:
                descriptor, is_named = self._new_file(name, owner, os.O_RDWR)
            except FileExistsError:
                continue  # a broker came first: it is its file
            try:
                _give(descriptor, owner)
                if not is_named:
                    libc.link_unnamed(descriptor, self._fd, name)
            except FileExistsError:
                os.close(descriptor)
                continue
            except BaseException:
                os.close(descriptor)
                raise
            return descriptor

    # Making durable.

    @contextmanager
    def _syncing(self) -> Iterator[None]:
        """Keep in mind that a sync failed, whatever becomes of the error."""
        # Asked before: a file system that is gone may not even say which it was.
        device = self.identity().device
        try:
            yield
        except OSError as error:
            self._disk.failed.setdefault(device, f"{self._path}: {error.strerror or error}")
            raise

    @whole_path
    def sync_file(self, name: str) -> None:
        """Make the content of a file durable."""
        with self._syncing():
            self._tell("fsync", name)
        descriptor = self._open_file(name)
        try:
            with self._syncing():
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync(self) -> None:
        """Make the entries of this directory durable."""
        with self._syncing():
            self._disk.observer(Call("fsync-dir", self._path))
            os.fsync(self._fd)
            # An XFS that has shut down says yes to that, of entries it has lost; to this it says no.
            os.fstat(self._fd)

    def sync_disk(self) -> None:
        """Make everything on this file system durable."""
        with self._syncing():
            self._disk.observer(Call("syncfs", self._path))
            libc.sync_file_system(self._fd, self._path)


def _host(directory: Directory) -> HostDirectory:
    if not isinstance(directory, HostDirectory):
        raise TypeError(f"two directories of one call lie on one kind of disk: {directory!r}")
    return directory


def _give(descriptor: int, owner: Owner) -> None:
    found = os.fstat(descriptor)
    if (found.st_uid, found.st_gid) != (owner.uid, owner.gid):
        os.fchown(descriptor, owner.uid, owner.gid)
    if found.st_mode & PERMISSIONS != owner.mode:
        os.fchmod(descriptor, owner.mode)


def note_in_lock(descriptor: int, data: bytes) -> None:
    """Write over the first bytes of an open lock file."""
    os.pwrite(descriptor, data, 0)


class HostDisk:
    """The file systems of this host."""

    def __init__(self, observer: Observer = _nobody) -> None:
        """Make one.

        Args:
            observer: Told every call that changes something or makes it durable, before it is made.
        """
        self.observer = observer
        self.failed: dict[int, str] = {}
        """Devices on which a sync failed, and what was said of the first: nothing may be written there any more."""

    def open_top(self, path: str) -> HostDirectory:
        """Open a directory by its absolute path; its last component may not be a link."""
        if not path.startswith("/"):
            raise ValueError(f"not an absolute path: {path!r}")
        return HostDirectory(os.open(path, _OPEN_DIRECTORY), path, self)
