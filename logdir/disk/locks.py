"""The two locks of a log dir: Kafka's ``.lock``, taken for each batch, and our ``owner.lock``, kept until the process
ends its work there.

Both are open-file-description locks: they conflict with a JVM's locks in both directions and survive when another part
of this process opens and closes the file. ``flock`` is never used: Kafka does not see it. Kafka 3.8 and newer removes
``.lock`` when it stops, so a lock may be on a file that has lost its name. Therefore the inodes of name and descriptor
are compared after locking, and again before each batch.

Not here: whether anything may be changed while a broker runs (``decide``); taking Kafka's locks of all log dirs of a
broker together, and releasing them after two seconds. service/log_dirs/kafka_locks.py keeps that limit; only its value,
``BATCH_MS``, is defined here.

Spec: design §2 law 4; kafka-behaviour §2.4, §10.2; reliability §5 "Locks"; attacks A19, A22, A23, A31, A32.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from types import TracebackType
from typing import ClassVar, Self

from logdir import clock
from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import is_denied, is_full, is_read_only, mounted_read_only, no_permission, with_reserve
from logdir.disk.kernel.host import HostDirectory, HostDisk, note_in_lock
from logdir.disk.lock_holder import (
    ENDING_MS,
    OUTSIDE,
    PAUSE_S,
    hanging_holder,
    holder,
    is_ending,
    named,
    suspect_held,
    whole_file,
)
from logdir.disk.root.work_root import OWNER_LOCK_TEXT
from logdir.errors import (
    LockHeldError,
    LogDirOfflineError,
    LogDirReplacedError,
    NoWorkRootError,
    ReadOnlyDiskError,
    RefusedError,
    WorkRootOwnedError,
)
from logdir.paths import KAFKA_LOCK, OWNER_LOCK
from logdir.refusal_slug import Why

BATCH_MS = 2 * 1000
"""How long Kafka's locks are held at most, in milliseconds: a broker that starts meanwhile fails (attacks A22).
``service.log_dirs.kafka_locks`` ends a batch after that.
"""

_NO_SUCH_LOCKS = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK})
_TRIES = 16
"""How often a lock file that lost its name before it was locked is opened again; a stopping broker removes its own only
once.
"""


class HeldLock:
    """A file lock that this process holds until ``release``, which leaves the lock file in place."""

    name: ClassVar[str]

    def __init__(self, directory: HostDirectory, descriptor: int) -> None:
        self._directory = directory
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.release()

    @property
    def directory(self) -> HostDirectory:
        """The directory that holds the lock file."""
        return self._directory

    @property
    def path(self) -> str:
        """The path of the lock file, for messages."""
        return f"{self._directory.path}/{self.name}"

    def still_held(self) -> bool:
        """Whether the name of the lock file still leads to the file that is locked; to be called before each batch."""
        return self._descriptor >= 0 and _has_name(self._directory, self.name, self._descriptor)

    def require_held(self) -> None:
        """Check that the name of the lock file still leads to the file that is locked.

        Raises:
            LogDirReplacedError: the name leads to another file: nothing may be changed under this lock any more.
        """
        if not self.still_held():
            raise LogDirReplacedError(
                self.path, expected="the file we locked", found="another file, or no file", fix="run the command again"
            )

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _has_name(directory: HostDirectory, name: str, descriptor: int) -> bool:
    held = os.fstat(descriptor)
    try:
        found = directory.stat(name)
    except FileNotFoundError:
        return False
    return (found.device, found.inode) == (held.st_dev, held.st_ino)


def _try_lock(descriptor: int, path: str) -> bool:
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole_file(fcntl.F_WRLCK))
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        if error.errno in _NO_SUCH_LOCKS:
            raise RefusedError(
                path,
                why=Why.UNSUPPORTED_FILE_SYSTEM,
                expected="a file system with locks of open file descriptions (F_OFD_SETLK)",
                found=error.strerror,
                fix="use ext4, XFS or btrfs",
            ) from error
        raise
    return True


def _take(directory: HostDirectory, name: str, *, make: bool) -> tuple[int, bool]:
    """Open and lock a file; return the descriptor and whether it is locked. Raises ``OSError``, ``RefusedError``."""
    owner = directory.own_stat().owner.for_file() if make else None
    began_ms = killed_ms = clock.monotonic_ms()
    for _ in range(_TRIES):
        descriptor = directory.open_lock(name, owner)
        try:
            is_locked = _try_lock(descriptor, f"{directory.path}/{name}")
            while not is_locked and (now_ms := clock.monotonic_ms()) - began_ms < ENDING_MS:
                if hanging_holder(descriptor) is not None:
                    killed_ms = now_ms  # The killed process is most likely in a sync; it closes its files after that.
                if not is_ending(descriptor, now_ms - killed_ms):
                    break
                time.sleep(PAUSE_S)
                is_locked = _try_lock(descriptor, f"{directory.path}/{name}")
            if not is_locked or _has_name(directory, name, descriptor):
                return descriptor, is_locked
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise RefusedError(
        f"{directory.path}/{name}",
        why=Why.LOCK_FILE_REPLACED,
        expected="a lock file that keeps its name",
        found="a file that was replaced at every attempt to lock it",
        fix="find the process that replaces it, then run the command again",
    )


class KafkaLock(HeldLock):
    """Kafka's own lock of one log dir: no broker starts there while it is held."""

    name = KAFKA_LOCK

    @classmethod
    def take(cls, log_dir: HostDirectory) -> KafkaLock:
        """Take the lock without waiting. If the file is missing, create it as a broker does.

        Raises:
            LockHeldError: another process holds the lock.
            LogDirSuspectError: a killed process that hangs holds the lock.
            RefusedError: the lock file is replaced again and again.
            OSError: the log dir does not answer, or the file cannot be created.
        """
        descriptor, is_locked = _take(log_dir, cls.name, make=True)
        if is_locked:
            return cls(log_dir, descriptor)
        try:
            if (hanging := hanging_holder(descriptor)) is not None:
                raise suspect_held(log_dir.path, hanging)
            who = holder(descriptor) or "a process that has just released it"
        finally:
            os.close(descriptor)
        raise LockHeldError(
            f"{log_dir.path}/{cls.name}",
            expected="no process that holds it",
            found=who,
            fix="stop the broker, or wait until it has stopped",
        )


def _note_pid(descriptor: int) -> None:
    try:
        note_in_lock(descriptor, str(os.getpid()).encode("ascii").ljust(len(OWNER_LOCK_TEXT) - 1))
    except OSError as error:
        # The pid is only for people. On btrfs even overwriting existing bytes needs free space.
        if not is_full(error):
            raise


def no_owner_lock(work_root: str) -> NoWorkRootError:
    """Return the error of a work root without its ``owner.lock``."""
    return NoWorkRootError(
        f"{work_root}/{OWNER_LOCK}",
        expected="the lock file that every whole work root has",
        found="no such file",
        fix="stop the broker, then logdirctl init puts it back",
    )


class OwnerLock(HeldLock):
    """Our lock of one work root: its holder is the only logdird process that works there."""

    name = OWNER_LOCK

    @classmethod
    def take(cls, work_root: HostDirectory) -> OwnerLock:
        """Take the lock without waiting, and write our pid into the file. Never creates the file.

        Raises:
            WorkRootOwnedError: another logdird process holds the lock.
            LogDirSuspectError: a killed logdird process that hangs holds the lock; the error names the work root.
            NoWorkRootError: the file does not exist.
            RefusedError: the lock file is replaced again and again.
            OSError: the work root does not answer.
        """
        path = f"{work_root.path}/{cls.name}"
        try:
            descriptor, is_locked = _take(work_root, cls.name, make=False)
        except FileNotFoundError as error:
            raise no_owner_lock(work_root.path) from error
        try:
            if is_locked:
                _note_pid(descriptor)
                return cls(work_root, descriptor)
            written = os.pread(descriptor, len(OWNER_LOCK_TEXT), 0).strip()
            noted_pid = int(written) if written.isdigit() else 0
            if (hanging := hanging_holder(descriptor, noted_pid)) is not None:
                raise suspect_held(work_root.path, hanging)
            who = named(noted_pid) if noted_pid else holder(descriptor) or OUTSIDE
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        fix = "wait until it has ended, or stop it"
        raise WorkRootOwnedError(path, expected="no process that holds it", found=who, fix=fix)


def _opened(disk: HostDisk, path: str) -> HostDirectory:
    try:
        return disk.open_top(path)
    except OSError as error:
        raise _offline(path, error) from error


def _offline(path: str, error: OSError) -> LogDirOfflineError | ReadOnlyDiskError:
    expected = "permission to open its .lock, to be sure that no broker runs"
    if is_denied(error):
        return no_permission(path, error, expected)
    if is_read_only(error):
        return mounted_read_only(path, error, "or name it with --skip-log-dir if it has failed")
    return LogDirOfflineError(
        path,
        expected="a log dir that answers, to be sure that no broker runs",
        found=error.strerror or str(error),
        fix="repair it, or name it with --skip-log-dir if it has failed",
    )


def take_kafka_lock_of(disk: HostDisk, log_dir: str, work: Directory | None) -> KafkaLock:
    """Take Kafka's lock of one log dir, without waiting.

    Args:
        disk: The file systems of this host.
        log_dir: Absolute path as configured.
        work: The work root of that log dir, whose reserve makes room for the lock file on a full disk; ``None``: it has
            none.

    Returns:
        The lock; the caller releases it, then closes ``lock.directory``.

    Raises:
        LockHeldError: another process holds it.
        LogDirSuspectError: a killed process that hangs holds the lock.
        LogDirOfflineError: the log dir cannot be opened, or its lock cannot be queried.
        ReadOnlyDiskError: the disk is read-only, so the lock file cannot be created.
        RefusedError: the lock file is replaced again and again.
    """
    directory = _opened(disk, log_dir)
    try:
        return _locked(directory, work)
    except BaseException:
        directory.close()
        raise


def _locked(directory: HostDirectory, work: Directory | None) -> KafkaLock:
    try:
        if work is None:
            return KafkaLock.take(directory)
        # Brokers from 3.8 on remove the file when they stop, and a new file needs an inode.
        return with_reserve(work, lambda: KafkaLock.take(directory))
    except OSError as error:
        raise _offline(directory.path, error) from error
