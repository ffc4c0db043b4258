"""The state of one worker: its open log dir, logdird's ``owner.lock`` and Kafka's ``.lock`` there, open directories.

The process that started the worker names each of these directories by a number (``Handle``).

Spec: design §2 laws 4, 6, §5 "A port per log dir"; attacks A31.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from logdir.disk.kernel.calls import Directory, Owner
from logdir.disk.kernel.host import HostDirectory, HostDisk
from logdir.disk.locks import KafkaLock, OwnerLock, take_kafka_lock_of
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.true_root import open_true_root
from logdir.disk.root.work_root import WorkRoot
from logdir.errors import LogDirSuspectError
from logdir.formats.own.work_root_file import Belonging, WorkRootKind
from logdir.observe.relook import Memory
from logdir.worker_call import worker_call

if TYPE_CHECKING:  # Every command starts workers; few capture.
    from logdir.disk.replica.capture import Linked


class Handle(NamedTuple):
    """The number by which a directory that a worker has open is named in calls, and its path."""

    number: int
    path: str


class WorkerState:
    """Everything that a worker has open; ``close`` closes all of it."""

    def __init__(self, disk: HostDisk | None = None) -> None:
        self.disk = disk or HostDisk()
        self.root: WorkRoot | None = None
        self.progress = 0
        """How far the current call is; each call chooses what it counts."""
        self.kept: object = None
        """What one call stores for later calls, for example a metadata log that was read."""
        self.received: list[int] = []
        """File descriptors that were received with a call, in the order of its arguments."""
        self.looks = Memory()
        self.linked: dict[str, Linked] = {}
        """Captures whose files are linked, to be completed by a later call, by name of the directory."""
        self._handles: dict[int, HostDirectory] = {}
        self._numbers = count(1)
        self._owner: OwnerLock | None = None
        self._kafka: KafkaLock | None = None

    def bound(self, own: type | None) -> tuple[object, ...]:
        """Return the first argument that the worker itself adds to a call, as a tuple; empty if it adds none.

        Args:
            own: The type of that argument, from ``calls.Signature``; ``None``: there is none.
        """
        if own is None:
            return ()
        return (self,) if own is WorkerState else (self.open_dir,)

    @property
    def open_dir(self) -> OpenLogDir:
        """Return the open log dir with its work root.

        Raises:
            ValueError: no work root is open.
        """
        if self.root is None:
            raise ValueError("no work root is open")
        return self.root.open_dir

    def handle(self, directory: HostDirectory) -> Handle:
        """Keep a directory open for later calls, until ``close_handle``; return its new handle."""
        number = next(self._numbers)
        self._handles[number] = directory
        return Handle(number, directory.path)

    def directory(self, number: int) -> HostDirectory:
        """Return the open directory with the number of a handle. Raises ``KeyError``: it is closed."""
        return self._handles[number]

    def close_handle(self, number: int) -> None:
        """Forget a handle and close its directory, unless that belongs to the open work root."""
        directory = self._handles.pop(number, None)
        if directory is not None and directory not in self._own_directories():
            directory.close()

    def _own_directories(self) -> tuple[object, ...]:
        if self.root is None:
            return ()
        open_dir = self.root.open_dir
        return (open_dir.top, open_dir.work, open_dir.deleting, open_dir.incoming)

    def keep_root(self, root: WorkRoot) -> None:
        """Store the open work root; close the one that was stored before."""
        self.close_root()
        self.root = root

    def close_root(self) -> None:
        """Close the work root and release its owner lock; a second call does nothing."""
        self.linked.clear()
        if self._owner is not None:
            self._owner.release()
            self._owner = None
        if self.root is not None:
            self.root.close()
            self.root = None

    def own(self) -> OwnerLock:
        """Take ``owner.lock`` of the open work root, unless this worker has it already; return the lock.

        Raises:
            LogDirError: as ``OwnerLock.take``.
            OSError: the work root does not answer.
        """
        if self._owner is None:
            work = self.open_dir.work
            if not isinstance(work, HostDirectory):
                raise TypeError(f"no directory of this host: {work!r}")
            try:
                self._owner = OwnerLock.take(work)
            except LogDirSuspectError as error:
                log_dir = self.open_dir.log_dir
                raise LogDirSuspectError(log_dir, expected=error.expected, found=error.found, fix=error.fix) from error
        return self._owner

    def lock(self, log_dir: str, work: Directory | None = None) -> KafkaLock:
        """Take Kafka's ``.lock`` of a log dir, unless this worker has it already; return the lock.

        Args:
            log_dir: Absolute path as configured.
            work: The work root of the log dir, if it is unfinished and therefore not open here.

        Raises:
            LogDirError: as ``locks.take_kafka_lock_of``.
        """
        if self._kafka is None:
            root = work if self.root is None else self.root.open_dir.work
            self._kafka = take_kafka_lock_of(self.disk, log_dir, root)
        return self._kafka

    def unlock(self) -> None:
        """Release Kafka's lock; a second call does nothing."""
        if self._kafka is not None:
            lock, self._kafka = self._kafka, None
            lock.release()
            lock.directory.close()

    def held(self) -> KafkaLock:
        """Return Kafka's lock. Raises ``ValueError``: it is not held."""
        if self._kafka is None:
            raise ValueError("Kafka's lock is not held")
        return self._kafka

    def close(self) -> None:
        """Close everything; a second call does nothing."""
        self.unlock()
        self.close_root()
        for directory in self._handles.values():
            directory.close()
        self._handles.clear()


class RootView(NamedTuple):
    """A work root that a worker has open, in values that can be sent: its directories as handles."""

    kind: WorkRootKind
    belongs: Belonging
    is_unsupported_fs_allowed: bool
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    owner: Owner
    top: Handle
    work: Handle
    deleting: Handle
    incoming: Handle


@worker_call
def open_root(opened: WorkerState, log_dir: str, *, is_start_block_allowed: bool) -> RootView:
    """Open the work root of a log dir and keep it open in this worker; only reads.

    Raises:
        LogDirError: as ``open_true_root``.
        OSError: a part of the work root cannot be opened.
    """
    root = open_true_root(opened.disk, log_dir, is_start_block_allowed=is_start_block_allowed)
    opened.keep_root(root)
    open_dir = root.open_dir
    handles = []
    for directory in (open_dir.top, open_dir.work, open_dir.deleting, open_dir.incoming):
        if not isinstance(directory, HostDirectory):
            raise TypeError(f"no directory of this host: {directory!r}")
        handles.append(opened.handle(directory))
    top, work, deleting, incoming = handles
    return RootView(
        root.kind,
        root.belongs,
        root.unsupported_fs,
        open_dir.cluster_id,
        open_dir.node_id,
        open_dir.directory_id,
        open_dir.owner,
        top,
        work,
        deleting,
        incoming,
    )


@worker_call
def take_owner_lock(opened: WorkerState) -> str:
    """Take the owner lock; return the path of its file. Raises as ``OwnerLock.take``."""
    return opened.own().path


@worker_call
def require_owner_lock(opened: WorkerState) -> None:
    """Check that the owner lock file was not replaced. Raises ``LogDirReplacedError``."""
    opened.own().require_held()


@worker_call
def require_in_place(opened: WorkerState) -> None:
    """Check that all paths still lead to the open directories. Raises as ``WorkRoot.require_same``."""
    if opened.root is not None:
        opened.root.require_same(opened.disk)


@worker_call
def take_kafka_lock(opened: WorkerState, log_dir: str) -> tuple[int, int]:
    """Take Kafka's lock; return device and inode of the log dir.

    Raises:
        LogDirError: as ``locks.take_kafka_lock_of``.
    """
    lock = opened.lock(log_dir)
    device, inode, _ = lock.directory.identity()
    return device, inode


@worker_call
def require_kafka_lock(opened: WorkerState) -> None:
    """Check that Kafka's lock file was not replaced. Raises ``LogDirReplacedError``."""
    opened.held().require_held()


@worker_call
def release_kafka_lock(opened: WorkerState) -> None:
    """Release Kafka's lock; a second call does nothing."""
    opened.unlock()


@worker_call
def failed_syncs(opened: WorkerState) -> Mapping[int, str]:
    """Return the devices on which a sync failed in this worker, each with its first error message."""
    return opened.disk.failed
