"""Real system calls for the protocols of ``calls``: the one module that changes anything under a log dir or work root.

Every call is relative to an open descriptor and names one path component. Links are refused, not followed. A directory
is opened only if it is on the device and mount of its parent. ``renameat2`` always carries ``RENAME_NOREPLACE``; only
``replace`` replaces a file. A file has its content and owner before it gets its name.

Not here: which calls an operation makes, and their order (the operations beside this module), locks (``locks``).

Spec: design §2 laws 9 and 10, §3.3; reliability §4.2, §5 and appendix; renameat2(2), statx(2), syncfs(2).
"""

from __future__ import annotations

import errno
import os
import stat as st
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import NamedTuple, Self

from logdir.disk.kernel import libc
from logdir.disk.kernel.calls import Directory, Identity, Owner, Space, Stat
from logdir.disk.kernel.kernel_stat import PERMISSIONS, stat_of
from logdir.disk.kernel.whole_path import NO_REGULAR_FILE, whole_path
from logdir.observe.classify import Type
from logdir.observe.walk import list_types, opened

_NO_UNNAMED = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EISDIR})
"""Errors of a file system without ``O_TMPFILE``; ``EISDIR`` comes from a kernel that does not know the flag."""
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_SYNCED_AT_ONCE = 16
"""How many files of one call are open at a time."""


class Call(NamedTuple):
    """A call that changes a disk or makes it durable, as an observer gets it before; ``to``: the new path, if any."""

    name: str
    path: str
    to: str = ""


Observer = Callable[[Call], None]


def _unobserved(call: Call) -> None:
    """Observer that does nothing."""


def _component(name: str) -> str:
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise ValueError(f"not a single path component: {name!r}")
    return name


class HostDirectory:
    """An open directory of this host."""

    __slots__ = ("_disk", "_fd", "_identity", "_listing", "_path")

    def __init__(self, descriptor: int, path: str, disk: HostDisk) -> None:
        self._fd = descriptor
        self._path = path
        self._disk = disk
        self._identity: Identity | None = None
        # Two listings of one descriptor at a time share its position, and each misses what the other has read.
        self._listing = threading.Lock()

    @property
    def path(self) -> str:
        """The path it was opened with."""
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

    def _report(self, call: str, name: str, to: str = "") -> None:
        _component(name)
        # Nearly always there is no observer, and a purge makes a million calls.
        if self._disk.observer is not _unobserved:
            self._disk.observer(Call(call, self._at(name), to))

    # Looking.

    def _rewound(self) -> int:
        if self._fd < 0:  # ``listdir`` takes -1 for the working directory.
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._path)
        # btrfs (Linux 6.5 and later) lists only what was there when the descriptor was opened or last rewound.
        os.lseek(self._fd, 0, os.SEEK_SET)
        return self._fd

    def names(self) -> list[str]:
        """Return the names of all entries, sorted."""
        with self._listing:
            return sorted(os.listdir(self._rewound()))

    def types(self) -> dict[str, Type]:
        """Return the type of every entry, by name, sorted; links are not followed."""
        with self._listing:
            return dict(sorted(list_types(self._rewound()).items()))

    @whole_path
    def stat(self, name: str) -> Stat:
        """Return the status of an entry; a link is not followed."""
        return stat_of(os.stat(_component(name), dir_fd=self._fd, follow_symlinks=False))

    def own_stat(self) -> Stat:
        """Return the status of this directory."""
        return stat_of(os.fstat(self._fd))

    def identity(self) -> Identity:
        """Return the identity of this directory."""
        if self._identity is None:
            self._identity = libc.identity(self._fd, self._path)
        return self._identity

    def space(self) -> Space:
        """Return the free space of its file system."""
        size = (now := os.fstatvfs(self._fd)).f_frsize
        return Space(now.f_bavail * size, now.f_favail, now.f_blocks * size, now.f_files, now.f_fsid)

    def require_changeable(self) -> None:
        """Check that this process may make and remove entries here."""
        if os.access(".", os.W_OK | os.X_OK, dir_fd=self._fd):
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
        with opened(self._open_file(name)) as descriptor:
            parts, left = [], limit + 1
            while left > 0 and (part := os.read(descriptor, left)):
                parts.append(part)
                left -= len(part)
        return b"".join(parts)

    @whole_path
    def open(self, name: str) -> HostDirectory:
        """Open a directory in this one, on the same device and mount."""
        descriptor = os.open(_component(name), _OPEN_DIRECTORY, dir_fd=self._fd)
        opened = HostDirectory(descriptor, self._at(name), self._disk)
        try:
            inner, outer = opened.identity(), self.identity()
            if (inner.device, inner.mount_id) != (outer.device, outer.mount_id):
                raise OSError(errno.EXDEV, "is on another device or mount", opened.path)
        except BaseException:
            opened.close()
            raise
        return opened

    # Changing.

    @whole_path
    def make(self, name: str, owner: Owner) -> None:
        """Create a directory that belongs to ``owner``."""
        self._report("mkdir", name)
        os.mkdir(name, owner.mode & 0o700, dir_fd=self._fd)
        self._give(name, owner)

    def _give(self, name: str, owner: Owner) -> None:
        with opened(os.open(name, _OPEN_DIRECTORY, dir_fd=self._fd)) as descriptor:
            _give(descriptor, owner)

    @whole_path
    def write(self, name: str, data: bytes, owner: Owner, mtime_ns: int | None = None) -> None:
        """Create a file with this content that belongs to ``owner``."""
        self._report("write", name)
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
        """Open a new file; return its descriptor and whether it already has its name.

        The file has no name (``O_TMPFILE``), so no process sees it before it has its owner (attacks A9). Only file
        systems without ``O_TMPFILE`` give it a name at once; the allow list contains none of these.
        """
        flags = access | os.O_CLOEXEC
        try:
            return os.open(".", flags | os.O_TMPFILE, owner.mode & 0o600, dir_fd=self._fd), False
        except OSError as error:
            if error.errno not in _NO_UNNAMED:
                # ext4 reports a removed directory as a missing permission.
                is_gone = error.errno == errno.EPERM and os.fstat(self._fd).st_nlink == 0
                number = errno.ENOENT if is_gone else error.errno or errno.EIO
                raise OSError(number, os.strerror(number), name) from None
        flags |= os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        return os.open(name, flags, owner.mode & 0o600, dir_fd=self._fd), True

    @whole_path
    def rename(self, name: str, to: Directory, new_name: str) -> None:
        """Rename an entry; never replaces another entry."""
        target = _host(to)
        self._report("rename", name, target._at(new_name))
        libc.rename_new(self._fd, _component(name), target._fd, _component(new_name), self._at(name))

    @whole_path
    def replace(self, name: str, new_name: str) -> None:
        """Rename a file within this directory over another file."""
        self._report("replace", name, self._at(new_name))
        os.rename(_component(name), _component(new_name), src_dir_fd=self._fd, dst_dir_fd=self._fd)

    @whole_path
    def link(self, name: str, to: Directory, new_name: str) -> None:
        """Create a hard link to a regular file."""
        target = _host(to)
        self._report("link", name, target._at(new_name))
        os.link(name, new_name, src_dir_fd=self._fd, dst_dir_fd=target._fd, follow_symlinks=False)

    @whole_path
    def unlink(self, name: str) -> None:
        """Remove an entry that is no directory."""
        self._report("unlink", name)
        os.unlink(name, dir_fd=self._fd)

    @whole_path
    def remove(self, name: str) -> None:
        """Remove an empty directory."""
        self._report("rmdir", name)
        os.rmdir(name, dir_fd=self._fd)

    def truncate(self, name: str, size_bytes: int) -> None:
        """Shorten a regular file."""
        self._report("truncate", name)
        flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        with opened(self._open_file(name, flags)) as descriptor:
            if size_bytes > os.fstat(descriptor).st_size:
                raise OSError(errno.EINVAL, "would make the file longer", self._at(name))
            os.ftruncate(descriptor, size_bytes)

    @whole_path
    def adopt(self, name: str, owner: Owner) -> None:
        """Set owner and mode of an entry; a link is not followed."""
        self._report("chown", name)
        with opened(os.open(_component(name), _OPEN_FILE, dir_fd=self._fd)) as descriptor:
            _give(descriptor, owner)

    # Locks: not part of ``Directory``, because the model disk of the tests has no locks.

    @whole_path
    def open_lock(self, name: str, owner: Owner | None = None) -> int:
        """Open a regular file for locking; if it is missing and ``owner`` is given, create it empty.

        Returns:
            A new descriptor for reading and writing that is closed on ``exec``; the caller closes it.
        """
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        while True:
            try:
                return self._open_file(name, flags)
            except FileNotFoundError:
                if owner is None:
                    raise
            self._report("create", name)
            try:
                descriptor, is_named = self._new_file(name, owner, os.O_RDWR)
            except FileExistsError:
                continue  # A broker created the file first; it owns it.
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
        """Record a failed sync of the body for the whole process, and raise the error again."""
        # Read before the sync: a file system that has shut down may not answer later.
        device = self.identity().device
        try:
            yield
        except OSError as error:
            self._disk.failed.setdefault(device, f"{self._path}: {error.strerror or error}")
            raise

    def start_writeback(self, name: str) -> None:
        """Start to write the content of a file to the disk; makes nothing durable."""
        with opened(self._open_file(name)) as descriptor:
            libc.start_writeback(descriptor)

    def sync_file(self, name: str) -> None:
        """Make the content of a file durable."""
        self.sync_files((name,))

    def sync_files(self, names: Sequence[str]) -> None:
        """Make the content of files durable, in order; one commit of a journal then serves many of them."""
        for at in range(0, len(names), _SYNCED_AT_ONCE):
            with ExitStack() as stack:
                descriptors = []
                for name in names[at : at + _SYNCED_AT_ONCE]:
                    with self._syncing():
                        self._report("fsync", name)
                    descriptors.append(stack.enter_context(opened(self._open_file(name))))
                    libc.start_writeback(descriptors[-1])
                with self._syncing():
                    for descriptor in descriptors:
                        os.fsync(descriptor)

    def sync(self) -> None:
        """Make the entries of this directory durable."""
        with self._syncing():
            self._disk.observer(Call("fsync-dir", self._path))
            os.fsync(self._fd)
            # An XFS that has shut down reports success for ``fsync`` although it lost entries; this call fails there.
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
    """The real ``Disk``: opens directories of this host's file systems, and remembers on which a sync failed."""

    def __init__(self, observer: Observer = _unobserved) -> None:
        """Create a disk without recorded failures.

        Args:
            observer: Called before every call that changes something or makes it durable.
        """
        self.observer = observer
        self.failed: dict[int, str] = {}
        """Devices on which a sync failed, with the first error message: nothing may be written to them any more."""

    def open_top(self, path: str) -> HostDirectory:
        """Open a directory by its absolute path; its last component may not be a link."""
        if not path.startswith("/"):
            raise ValueError(f"not an absolute path: {path!r}")
        return HostDirectory(os.open(path, _OPEN_DIRECTORY), path, self)
