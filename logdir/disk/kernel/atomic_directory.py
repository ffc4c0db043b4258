"""Atomic creation of directories outside all log dirs: a directory appears under its final name complete and durable,
or not at all.

The directory is filled beside its final name, as ``.{name}.{random}.partial``. A failure removes that directory; a kill
leaves it. Each copied file is hashed while it is copied, synced, read back past the page cache and compared.

Not here: log dirs and work roots (only ``host`` changes those). This module refuses to write into one, however the path
spells it.

Spec: style §5.5; design §2 laws 8, 10; reliability §4.2 "new file".
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.host import HostDirectory, HostDisk
from logdir.errors import DiskError, RefusedError
from logdir.observe.outside import KeptFree, require_outside_of
from logdir.refusal_slug import Why

PARTIAL = ".partial"
_DIRECTORY_MODE = 0o700
_FILE_MODE = 0o600
_CHUNK = 1 << 20
_ZEROS = bytes(_CHUNK)


@contextmanager
def _about(path: str) -> Iterator[None]:
    """Add the path of the copy to any ``OSError`` of the body, which usually names no path or a removed one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


class NewDirectory:
    """A directory that is being filled under a temporary name."""

    def __init__(self, directory: HostDirectory, destination: str) -> None:
        self._directory = directory
        self.destination = destination
        """Its final name, without any link."""

    def write(self, name: str, data: bytes) -> None:
        """Create a file with this content in the new directory, durably.

        Raises:
            DiskError: the file did not read back as written.
            OSError: the file could not be created.
        """
        with _about(f"{self.destination}/{name}"), self._new(name) as descriptor:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        self._require_same(name, len(data), hashlib.sha256(data).hexdigest())

    def copy(self, source: int, name: str) -> tuple[int, str]:
        """Copy an open file to a new one, durably; zeros become holes.

        Args:
            source: Its descriptor, read from its start.
            name: The name of the copy.

        Returns:
            The size of the copy in bytes, and its SHA-256 in hexadecimal.

        Raises:
            DiskError: the copy did not read back as written.
            OSError: a call failed.
        """
        digest = hashlib.sha256()
        size = 0
        path = f"{self.destination}/{name}"
        with self._new(name) as descriptor:
            while part := os.pread(source, _CHUNK, size):
                digest.update(part)
                # A preallocated index of the last segment is 10 MiB of zeros.
                if part != _ZEROS[: len(part)]:
                    with _about(path):
                        _write_at(descriptor, part, size)
                size += len(part)
            with _about(path):
                os.ftruncate(descriptor, size)
                os.fsync(descriptor)
        self._require_same(name, size, digest.hexdigest())
        return size, digest.hexdigest()

    @contextmanager
    def _new(self, name: str) -> Iterator[int]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with _about(f"{self.destination}/{name}"):
            descriptor = os.open(name, flags, _FILE_MODE, dir_fd=self._directory.descriptor)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _require_same(self, name: str, size: int, wanted: str) -> None:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._directory.descriptor)
        digest = hashlib.sha256()
        found = 0
        try:
            # The pages are clean since the sync, so this drops them from memory and the read below comes from the disk.
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            while part := os.pread(descriptor, _CHUNK, found):
                digest.update(part)
                found += len(part)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
        if (found, digest.hexdigest()) != (size, wanted):
            raise DiskError(
                f"{self._directory.path}/{name}",
                expected=f"{size} bytes of SHA-256 {wanted}",
                found=f"{found} bytes of SHA-256 {digest.hexdigest()}",
                fix="do not trust the disk of the destination; name a destination on another disk",
            )


def _write_at(descriptor: int, part: bytes, at: int) -> None:
    view = memoryview(part)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def require_place(destination: str, places: tuple[KeptFree, ...]) -> None:
    """Check that ``new_directory`` would accept this destination; only reads.

    Raises:
        RefusedError: as ``new_directory``.
    """
    _place(destination, places)


@contextmanager
def new_directory(destination: str, places: tuple[KeptFree, ...]) -> Iterator[NewDirectory]:
    """Create a directory that gets its final name only when the body has ended without an error.

    Args:
        destination: Absolute path; must not exist, its parent must.
        places: Log dirs and work roots, in which the destination must not lie; this function does not access them.

    Yields:
        The directory, to be filled with files.

    Raises:
        RefusedError: the destination exists (at the start or at the end), has no parent directory, or lies in one of
            the places.
        OSError: a call failed, in the body or after it; the unfinished directory was removed.
    """
    parent_path, name = _place(destination, places)
    partial = f".{os.fsdecode(os.fsencode(name)[:200])}.{secrets.token_hex(4)}{PARTIAL}"
    with HostDisk().open_top(parent_path) as parent:
        found = parent.own_stat().owner
        group = found.gid if found.mode & 0o2000 else os.getegid()
        with _about(destination):
            parent.make(partial, Owner(os.geteuid(), group, _DIRECTORY_MODE))
        current = partial
        try:
            with parent.open(partial) as directory:
                yield NewDirectory(directory, f"{parent_path.rstrip('/')}/{name}")
                with _about(destination):
                    directory.sync()
            try:
                with _about(destination):
                    parent.rename(partial, parent, name)
            except FileExistsError as error:
                raise _taken(destination) from error
            current = name
            with _about(destination):
                parent.sync()
        except BaseException:
            _clear(parent, current)
            raise


def _place(destination: str, places: tuple[KeptFree, ...]) -> tuple[str, str]:
    path = os.path.normpath(destination)
    above, name = os.path.split(path)
    if not destination.startswith("/") or not name or name in (".", ".."):
        raise RefusedError(
            destination,
            why=Why.OUTPUT_INVALID,
            expected="an absolute path",
            found="a relative path",
            fix="name an absolute path in a directory that exists",
        )
    if os.path.lexists(path):
        raise _taken(destination)
    # Links above it are the operator's choice; the resolved path counts.
    parent = os.path.realpath(above)
    try:
        Path(parent).stat()
    except OSError as error:
        raise RefusedError(
            destination,
            why=Why.OUTPUT_INVALID,
            expected="a parent directory",
            found=error.strerror or error,
            fix="create the parent directory first",
        ) from error
    require_outside_of(destination, places)
    return parent, name


def _taken(destination: str) -> RefusedError:
    return RefusedError(
        destination,
        why=Why.OUTPUT_EXISTS,
        expected="a name that is free",
        found="an entry of that name",
        fix="nothing is ever replaced; name another destination",
    )


def _clear(parent: HostDirectory, partial: str) -> None:
    with suppress(OSError):
        with parent.open(partial) as directory:
            for name in directory.names():
                directory.unlink(name)
        parent.remove(partial)
