"""Taking a work root away again: an empty one only, and the file that says it is whole first.

When that is cut off, what is left is an unfinished root, and doing it again finishes it.

Not here: everything else ``uninstall`` takes back, and emptying a root first.

Spec: design §2 laws 1, 3, 7, §6 (``uninstall``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from logdir.disk.calls import Directory, Disk
from logdir.disk.failure import calling, spares, syncing
from logdir.disk.small_file import TEMPORARY
from logdir.disk.work_root import DIRECTORIES, failed_at, locate, normal, open_log_dir, open_work_root
from logdir.disk.work_root_plan import opened_parent
from logdir.errors import RefusedError, WorkRootConflictError
from logdir.formats.work_root_file import WorkRootKind
from logdir.names import HIDDEN_WORK_ROOT
from logdir.observe.classify import (
    DELETING,
    INCOMING,
    OWNER_LOCK,
    PROBE,
    PROBE_IN_LOG_DIR,
    RESERVE,
    SPARE,
    WORK_ROOT_FILE,
)

_WITHOUT_WORTH = ("heartbeat.json", "brake.json", "controller.json", "suspect.json", RESERVE, OWNER_LOCK)
"""Files that mean nothing without the root. Any other says something is going on, or is somebody else's."""
_FILES = tuple(name + tail for name in (WORK_ROOT_FILE, *_WITHOUT_WORTH) for tail in ("", TEMPORARY))


def remove_root(disk: Disk, log_dir: str) -> tuple[WorkRootKind, ...]:
    """Take away the work roots of a log dir: the one in use and unfinished ones. Its owner's lock is held.

    Args:
        disk: The file systems.
        log_dir: Absolute path as configured.

    Returns:
        Which were there.

    Raises:
        WorkRootConflictError: one holds a replica or a file that is not worthless; nothing was changed.
        LogDirOfflineError: the log dir does not answer.
        RefusedError: no rights.
        ReadOnlyDiskError: the disk takes no changes, or a sync failed.
        FormatError: as ``locate``.
    """
    log_dir = normal(log_dir)
    with open_log_dir(disk, log_dir) as top, _told(top):
        located = locate(disk, log_dir, top)
        kinds = (*(() if located.found is None else (located.found,)), *located.unfinished)
        for kind in kinds:
            with open_work_root(disk, kind, log_dir, top) as work:
                _require_empty(work, kind)
        for kind in kinds:
            _remove(disk, kind, log_dir, top)
        return kinds


@contextmanager
def _told(top: Directory) -> Iterator[None]:
    try:
        with calling(top):
            yield
    except OSError as error:
        raise RefusedError(
            failed_at(top.path, error),
            expected="a work root to be taken away",
            found=error.strerror or error,
            fix="do it again as its owner",
        ) from error


def _require_empty(work: Directory, kind: WorkRootKind) -> None:
    names = set(work.names())
    worth = [] if kind is WorkRootKind.INSIDE else sorted(names - {*DIRECTORIES, *_FILES})
    for name in sorted(names & {DELETING, INCOMING}):
        with work.open(name) as directory:
            worth += [f"{name}/{inner}" for inner in directory.names() if inner != PROBE]
    if SPARE in names:
        with work.open(SPARE) as directory:
            worth += [f"{SPARE}/{inner}" for inner in sorted(set(directory.names()) - set(spares(directory)))]
    if worth:
        raise WorkRootConflictError(
            work.path,
            expected="an empty work root",
            found=f"{len(worth)} entries, {worth[0]} among them",
            fix="restore or purge what is staged first",
        )


def _remove(disk: Disk, kind: WorkRootKind, log_dir: str, top: Directory) -> None:
    with open_work_root(disk, kind, log_dir, top) as work:
        names = set(work.names())
        if WORK_ROOT_FILE in names:
            work.unlink(WORK_ROOT_FILE)
            with syncing(work):
                work.sync()
        for name in _FILES:
            if name in names and name != WORK_ROOT_FILE:
                work.unlink(name)
        for name in (DELETING, INCOMING):
            if name in names:
                with work.open(name) as directory:
                    _remove_probe(directory, PROBE)
        _remove_probe(top, PROBE_IN_LOG_DIR)
        if SPARE in names:
            with work.open(SPARE) as directory:
                for name in spares(directory):
                    directory.unlink(name)
        for name in DIRECTORIES:
            if name in names:
                work.remove(name)
        with syncing(work):
            work.sync()
    match kind:
        case WorkRootKind.INSIDE:
            return
        case WorkRootKind.IN_PLACE:
            _remove_synced(top, HIDDEN_WORK_ROOT)
        case WorkRootKind.BESIDE:
            with opened_parent(disk, log_dir) as (parent, name):
                _remove_synced(parent, name)


def _remove_probe(directory: Directory, name: str) -> None:
    try:
        directory.stat(name)
    except FileNotFoundError:
        return
    directory.remove(name)


def _remove_synced(parent: Directory, name: str) -> None:
    parent.remove(name)
    with syncing(parent):
        parent.sync()
