"""The state of one worker: its log dir opened, the two locks it holds there, and directories opened for its starter.

Spec: design §2 laws 4, 6, §5 "A port per log dir"; attacks A31.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import NamedTuple

from logdir.disk.calls import Owner
from logdir.disk.io import HostDirectory, HostDisk
from logdir.disk.locks import KafkaLock, OwnerLock, take_kafka_lock_of
from logdir.disk.site import Site
from logdir.disk.true_root import open_true_root
from logdir.disk.work_root import WorkRoot
from logdir.formats.work_root_file import Belonging, WorkRootKind
from logdir.observe.relook import Memory


class Handle(NamedTuple):
    """A directory that a worker has open for its starter."""

    number: int
    path: str


class OpenedLogDir:
    """What a worker has open; all of it is closed with ``close``."""

    def __init__(self) -> None:
        self.disk = HostDisk()
        self.root: WorkRoot | None = None
        self.progress = 0
        """How far the present call is, in whatever it counts."""
        self.received: list[int] = []
        """Descriptors that came with a call, in its order."""
        self.looks = Memory()
        self._handles: dict[int, HostDirectory] = {}
        self._numbers = count(1)
        self._owner: OwnerLock | None = None
        self._kafka: KafkaLock | None = None

    def bound(self, own: type | None) -> tuple[object, ...]:
        """Return the first argument of a call, by what that is (``calls.Signature``)."""
        if own is None:
            return ()
        return (self,) if own is OpenedLogDir else (self.site,)

    @property
    def site(self) -> Site:
        """Return the open log dir with its work root.

        Raises:
            ValueError: it is not open.
        """
        if self.root is None:
            raise ValueError("no work root is open")
        return self.root.site

    def handle(self, directory: HostDirectory) -> Handle:
        """Keep a directory open for the starter."""
        number = next(self._numbers)
        self._handles[number] = directory
        return Handle(number, directory.path)

    def directory(self, number: int) -> HostDirectory:
        """Return a directory by its handle. Raises ``KeyError``: it is closed."""
        return self._handles[number]

    def close_handle(self, number: int) -> None:
        """Close a directory; one that the work root has stays open with it."""
        directory = self._handles.pop(number, None)
        if directory is not None and directory not in self._own_directories():
            directory.close()

    def _own_directories(self) -> tuple[object, ...]:
        if self.root is None:
            return ()
        site = self.root.site
        return (site.top, site.work, site.deleting, site.incoming)

    def keep_root(self, root: WorkRoot) -> None:
        """Take the open work root."""
        self.close_root()
        self.root = root

    def close_root(self) -> None:
        """Close the work root and let its owner lock go; twice does nothing."""
        if self._owner is not None:
            self._owner.release()
            self._owner = None
        if self.root is not None:
            self.root.close()
            self.root = None

    def own(self) -> OwnerLock:
        """Take the owner lock, or return it.

        Raises:
            LogDirError: as ``OwnerLock.take``.
            OSError: the work root does not answer.
        """
        if self._owner is None:
            work = self.site.work
            if not isinstance(work, HostDirectory):
                raise TypeError(f"no directory of this host: {work!r}")
            self._owner = OwnerLock.take(work)
        return self._owner

    def lock(self, log_dir: str) -> KafkaLock:
        """Take Kafka's lock. Raises as ``locks.take_kafka_lock_of``."""
        if self._kafka is None:
            self._kafka = take_kafka_lock_of(self.disk, log_dir, None if self.root is None else self.root.site.work)
        return self._kafka

    def unlock(self) -> None:
        """Let Kafka's lock go; twice does nothing."""
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
        """Close everything; twice does nothing."""
        self.unlock()
        self.close_root()
        for directory in self._handles.values():
            directory.close()
        self._handles.clear()


class RootView(NamedTuple):
    """A work root that a worker has open."""

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


def open_root(opened: OpenedLogDir, log_dir: str, *, is_start_block_allowed: bool) -> RootView:
    """Open the work root of a log dir; reads only.

    Raises:
        LogDirError: as ``open_true_root``.
        OSError: a part of it cannot be opened.
    """
    root = open_true_root(opened.disk, log_dir, is_bar_allowed=is_start_block_allowed)
    opened.keep_root(root)
    site = root.site
    handles = []
    for directory in (site.top, site.work, site.deleting, site.incoming):
        if not isinstance(directory, HostDirectory):
            raise TypeError(f"no directory of this host: {directory!r}")
        handles.append(opened.handle(directory))
    top, work, deleting, incoming = handles
    return RootView(
        root.kind,
        root.belongs,
        root.unsupported_fs,
        site.cluster_id,
        site.node_id,
        site.directory_id,
        site.owner,
        top,
        work,
        deleting,
        incoming,
    )


def take_owner_lock(opened: OpenedLogDir) -> str:
    """Take the owner lock; return the path of its file. Raises as ``OwnerLock.take``."""
    return opened.own().path


def require_owner_lock(opened: OpenedLogDir) -> None:
    """Return if the owner lock is still that of its name. Raises ``LogDirReplacedError``."""
    opened.own().require_held()


def take_kafka_lock(opened: OpenedLogDir, log_dir: str) -> tuple[int, int]:
    """Take Kafka's lock; return device and inode of the log dir.

    Raises:
        LogDirError: as ``locks.take_kafka_lock_of``.
    """
    lock = opened.lock(log_dir)
    device, inode, _ = lock.directory.identity()
    return device, inode


def require_kafka_lock(opened: OpenedLogDir) -> None:
    """Return if Kafka's lock is still that of its name. Raises ``LogDirReplacedError``."""
    opened.held().require_held()


def release_kafka_lock(opened: OpenedLogDir) -> None:
    """Let Kafka's lock go; twice does nothing."""
    opened.unlock()


def failed_syncs(opened: OpenedLogDir) -> Mapping[int, str]:
    """Return on which devices a sync failed in this worker, and what was said of the first."""
    return opened.disk.failed
