"""Place and owner of a log dir's work root, and its directories opened for work.

A work root counts only if it has a ``work-root.json``, which is written last. This module never creates one: a missing
mount must not be replaced by a new directory (``root.init`` serves ``logdirctl init`` and ``format``).

Spec: design §2 laws 7, 10, §3.2; attacks A5, A6, A25, A26.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Self

from logdir.disk.kernel.calls import Directory, Disk
from logdir.disk.kernel.failure import calling, is_denied, no_permission
from logdir.disk.kernel.small_file import read_file
from logdir.disk.record.start_block import true_properties
from logdir.disk.root import probe
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import (
    ANOTHERS_DISK,
    ForeignLogDirError,
    LogDirOfflineError,
    LogDirReplacedError,
    MalformedFileError,
    NotFormattedError,
    NoWorkRootError,
    RefusedError,
    WorkRootConflictError,
)
from logdir.formats.kafka import meta_properties
from logdir.formats.own import work_root_file
from logdir.formats.own.work_root_file import Belonging, WorkRootFile, WorkRootKind
from logdir.observe.classify import KNOWN_FILES
from logdir.paths import (
    BESIDE,
    DELETING,
    HIDDEN_WORK_ROOT,
    INCOMING,
    META_PROPERTIES,
    OWNER_LOCK,
    PROBE,
    RESERVE,
    SPARE,
    TEMPORARY,
    WORK_ROOT_FILE,
)
from logdir.refusal_slug import Why

DIRECTORIES = (DELETING, INCOMING, PROBE, SPARE)
"""The directories in a work root, in the order of their creation."""
OWNER_LOCK_TEXT = b" " * 20 + b"\n"
"""Content of an ``owner.lock`` that no process has held. A pid is written over it, so a full disk has space for it."""
_STARTED = frozenset(
    (*DIRECTORIES, OWNER_LOCK, RESERVE, *(name + TEMPORARY for name in (OWNER_LOCK, RESERVE, WORK_ROOT_FILE)))
)
"""Entries that an interrupted creation or removal may leave in a log dir."""
_SOMETHING_ELSE = {
    errno.ELOOP: "a link",
    errno.ENOTDIR: "a link or a file",
    errno.EXDEV: "another file system mounted there",
}


class Located(NamedTuple):
    """Which work roots a log dir has, whole and unfinished ones."""

    found: WorkRootKind | None
    """The kind of the whole work root; ``None``: there is no whole one."""
    file: WorkRootFile | None
    """Its ``work-root.json``; set if ``found`` is."""
    unfinished: tuple[WorkRootKind, ...]
    """Kinds whose creation or removal was interrupted."""


def normal(log_dir: str) -> str:
    """Return the path of a log dir without trailing slashes, which would follow a link."""
    return log_dir.rstrip("/") or "/"


def path_of(kind: WorkRootKind, log_dir: str) -> str:
    """Return the absolute path of a work root of this kind."""
    match kind:
        case WorkRootKind.INSIDE:
            return log_dir
        case WorkRootKind.BESIDE:
            return f"{log_dir.rstrip('/')}{BESIDE}"
        case WorkRootKind.IN_PLACE:
            return f"{log_dir.rstrip('/')}/{HIDDEN_WORK_ROOT}"


def failed_at(base: str, error: OSError) -> str:
    """Return the path that an ``OSError`` is about; a bare name is relative to ``base``."""
    return os.path.join(base, os.fsdecode(error.filename)) if error.filename else base


def open_log_dir(disk: Disk, log_dir: str) -> Directory:
    """Open a log dir.

    Raises:
        LogDirOfflineError: it does not exist, is no directory, does not answer, or a permission is missing.
        RefusedError: its path is a link.
    """
    try:
        return disk.open_top(log_dir)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise RefusedError(
                log_dir,
                why=Why.WRONG_FILE_TYPE,
                expected="a directory",
                found="a link, or no directory",
                fix="name the directory itself in log.dirs",
            ) from error
        if is_denied(error):
            raise no_permission(log_dir, error) from error
        raise LogDirOfflineError(
            log_dir,
            expected="a log dir that answers",
            found=error.strerror or error,
            fix="check that the disk is mounted",
        ) from error


def open_work_root(disk: Disk, kind: WorkRootKind, log_dir: str, top: Directory) -> Directory:
    """Open the directory of a work root. Raises ``OSError``."""
    match kind:
        case WorkRootKind.IN_PLACE:
            return top.open(HIDDEN_WORK_ROOT)
        case WorkRootKind.INSIDE | WorkRootKind.BESIDE:
            return disk.open_top(path_of(kind, log_dir))


def read_belonging(top: Directory) -> Belonging:
    """Return the cluster and node that a log dir belongs to.

    Raises:
        NotFormattedError: it has no ``meta.properties``, or one without cluster id and node id.
        FormatError: its ``meta.properties`` is malformed.
        OSError: it cannot be read.
    """
    path = f"{top.path}/{META_PROPERTIES}"
    # A blocked log dir still belongs to the same node (attacks A37).
    data = true_properties(top)
    belongs = None if data is None else work_root_file.belonging(meta_properties.parse(data, path))
    if belongs is None or (belongs.cluster_id is None and belongs.node_id is None):
        raise NotFormattedError(
            path,
            expected="a cluster id and a node id",
            found="no such file" if data is None else "a file without them",
            fix="check that the right disk is mounted; kafka-storage format makes a new log dir",
        )
    return belongs


def locate(disk: Disk, log_dir: str, top: Directory) -> Located:
    """Find the work roots of a log dir. Only reads.

    Raises:
        WorkRootConflictError: two work roots are whole, one has a file of another kind, or another entry has its name.
        FormatError: a ``work-root.json`` is malformed, or of a newer version.
        OSError: a place cannot be read.
    """
    whole: dict[WorkRootKind, WorkRootFile] = {}
    unfinished = []
    for kind in WorkRootKind:
        try:
            root = open_work_root(disk, kind, log_dir, top)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENAMETOOLONG):
                continue
            if error.errno not in _SOMETHING_ELSE:
                raise
            raise WorkRootConflictError(
                path_of(kind, log_dir),
                expected="a work root or nothing",
                found=_SOMETHING_ELSE[error.errno],
                fix="move it away",
            ) from error
        with root:
            file = _read_file(root, kind)
            if file is not None:
                whole[kind] = file
            elif _is_started(root, kind):
                unfinished.append(kind)
    if len(whole) > 1:
        raise WorkRootConflictError(
            log_dir,
            expected="one work root",
            found=" and ".join(f"one {kind.words}" for kind in whole),
            fix="a disk or a copy of one was mixed in; move the work root that does not belong here away",
        )
    found = next(iter(whole), None)
    return Located(found, None if found is None else whole[found], tuple(unfinished))


def _read_file(root: Directory, kind: WorkRootKind) -> WorkRootFile | None:
    data = read_file(root, WORK_ROOT_FILE)
    if data is None:
        return None
    path = f"{root.path}/{WORK_ROOT_FILE}"
    try:
        file = work_root_file.parse(data, path)
    except MalformedFileError as error:
        # Staged replicas stay in the directories: a root without the file counts as unfinished.
        fix = "move the file out of that directory, then logdirctl init writes a new one; what is staged there stays"
        raise MalformedFileError(error.path, expected=error.expected, found=error.found, fix=fix) from error
    if file.kind is not kind:
        raise WorkRootConflictError(
            path, expected=f"one {kind.words}", found=f"one {file.kind.words}", fix="it was moved here; move it away"
        )
    return file


def _is_started(root: Directory, kind: WorkRootKind) -> bool:
    names = set(root.names())
    if kind is WorkRootKind.INSIDE:
        return not names.isdisjoint(_STARTED)
    unexpected_entries = sorted(names - KNOWN_FILES - _STARTED)
    if unexpected_entries:
        raise WorkRootConflictError(
            root.path,
            expected="a work root or nothing",
            found=f"a directory that holds {unexpected_entries[0]}",
            fix="move it away",
        )
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRoot:
    """A work root opened for work. Closing it closes all its directories."""

    kind: WorkRootKind
    open_dir: OpenLogDir
    belongs: Belonging
    """Cluster and node in the current ``meta.properties``."""
    opened: ExitStack
    unsupported_fs: bool = False
    """Whether the operator allows any file system."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all directories; a second call does nothing."""
        self.opened.close()

    def prove(self) -> None:
        """Rename the probe to every place a replica is renamed to, and back; called at each start.

        Raises:
            RefusedError: a rename is not possible, or a directory folds case; nothing was changed.
            ReadOnlyDiskError: the disk is read-only.
            NoWorkRootError: there is no probe.
        """
        probe.prove(self.kind, self.open_dir, unsupported_fs=self.unsupported_fs)

    def require_same(self, disk: Disk) -> None:
        """Check that all paths still lead to the open directories; called before each batch.

        Raises:
            LogDirReplacedError: a directory was mounted, unmounted or renamed: the worker must end.
            ReadOnlyDiskError: the disk is sick.
        """
        open_dir = self.open_dir
        with ExitStack() as stack:
            try:
                with calling(open_dir.top):
                    top = stack.enter_context(disk.open_top(open_dir.log_dir))
                    work = stack.enter_context(open_work_root(disk, self.kind, open_dir.log_dir, top))
                    pairs = [(open_dir.top, top), (open_dir.work, work)]
                    pairs += [(d, stack.enter_context(work.open(n))) for d, n in self._below()]
            except OSError as error:
                raise _replaced(failed_at(open_dir.work.path, error), error.strerror or str(error)) from error
            for held, now in pairs:
                if held.identity() != now.identity():
                    raise _replaced(now.path, f"{now.identity()}, not {held.identity()}")

    def _below(self) -> tuple[tuple[Directory, str], ...]:
        return ((self.open_dir.deleting, DELETING), (self.open_dir.incoming, INCOMING))


def _replaced(path: str, found: str) -> LogDirReplacedError:
    return LogDirReplacedError(
        path, expected="the directory that was opened", found=found, fix="mount the right disk, then repeat the command"
    )


def open_root(disk: Disk, log_dir: str, *, cluster_id: str | None = None, node_id: int | None = None) -> WorkRoot:
    """Open the work root of a log dir. Changes and creates nothing.

    Args:
        disk: The file systems.
        log_dir: Absolute path as configured.
        cluster_id: The cluster id of this host's broker, if known.
        node_id: The node id of this host's broker, if known.

    Returns:
        The open root; the caller closes it.

    Raises:
        LogDirOfflineError: the log dir does not answer.
        NoWorkRootError: there is no work root, or only an unfinished one.
        ForeignLogDirError: work root, log dir and host differ in cluster, node or directory id.
        NotFormattedError: the log dir has no ``meta.properties``.
        WorkRootConflictError: as ``locate``.
        FormatError: ``meta.properties`` or ``work-root.json`` is malformed.
        RefusedError: the log dir's path is a link.
        OSError: a part of it cannot be opened.
    """
    log_dir = normal(log_dir)
    with ExitStack() as stack:
        top = stack.enter_context(open_log_dir(disk, log_dir))
        belongs = read_belonging(top)
        _require_host(top, belongs, cluster_id, node_id)
        located = locate(disk, log_dir, top)
        if located.found is None or located.file is None:
            found = "a work root whose creation was cut off" if located.unfinished else "no work root"
            raise NoWorkRootError(
                log_dir,
                expected="a work root",
                found=found,
                fix="check that the right disk is mounted, then logdirctl init",
            )
        require_accepted(located.file, belongs, path_of(located.found, log_dir))
        open_dir = open_site(stack, disk, located.found, log_dir, top, belongs)
        word = located.file.unsupported_fs
        return WorkRoot(
            kind=located.found, open_dir=open_dir, belongs=belongs, opened=stack.pop_all(), unsupported_fs=word
        )


def open_site(
    stack: ExitStack, disk: Disk, kind: WorkRootKind, log_dir: str, top: Directory, belongs: Belonging
) -> OpenLogDir:
    """Open the directories of a work root; ``stack`` closes them.

    Raises:
        NoWorkRootError: one of them is missing.
        OSError: a directory cannot be opened.
    """
    try:
        work = stack.enter_context(open_work_root(disk, kind, log_dir, top))
        deleting = stack.enter_context(work.open(DELETING))
        incoming = stack.enter_context(work.open(INCOMING))
    except FileNotFoundError as error:
        raise NoWorkRootError(
            path_of(kind, log_dir),
            expected=f"a work root with {DELETING}/ and {INCOMING}/",
            found="one of them missing",
            fix="logdirctl init puts it back",
        ) from error
    return OpenLogDir(
        log_dir=log_dir,
        top=top,
        work=work,
        deleting=deleting,
        incoming=incoming,
        cluster_id=belongs.cluster_id,
        node_id=belongs.node_id,
        directory_id=None if belongs.directory_id is None else str(belongs.directory_id),
        owner=top.own_stat().owner,
    )


def _require_host(top: Directory, belongs: Belonging, cluster_id: str | None, node_id: int | None) -> None:
    for name, wanted, found in (
        ("cluster.id", cluster_id, belongs.cluster_id),
        ("node.id", node_id, belongs.node_id),
    ):
        if wanted is not None and found is not None and wanted != found:
            raise ForeignLogDirError(
                f"{top.path}/{META_PROPERTIES}", expected=f"{name} {wanted}", found=found, fix=ANOTHERS_DISK
            )


def require_accepted(file: WorkRootFile, belongs: Belonging, path: str) -> None:
    """Check that a work root belongs to the log dir where it lies.

    Raises:
        ForeignLogDirError: it belongs to another log dir, node or cluster.
    """
    if not file.belongs.accepts(belongs):
        raise ForeignLogDirError(
            f"{path}/{WORK_ROOT_FILE}",
            expected=str(belongs),
            found=str(file.belongs),
            fix="put the right disk back; nothing staged here is used",
        )
