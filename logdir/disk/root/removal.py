"""Removing an empty work root; ``work-root.json``, which marks it as whole, is removed first.

An interruption leaves an unfinished work root, and a repetition finishes the removal.

Not here: the other steps of ``uninstall``, and emptying a work root.

Spec: design §2 laws 1, 3, 7, §6 (``uninstall``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from logdir.disk.kernel.calls import Directory, Disk
from logdir.disk.kernel.failure import calling, no_permission, remedy_of, spares
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.whole_path import a_directory, not_a_file
from logdir.disk.root import probe
from logdir.disk.root.plan import opened_parent
from logdir.disk.root.work_root import DIRECTORIES, failed_at, locate, normal, open_log_dir, open_work_root
from logdir.errors import RefusedError, WorkRootConflictError
from logdir.formats.own.inventory import Kind
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.observe.classify import Inside, Named, Place, Type, classify
from logdir.paths import (
    CONTROLLER,
    DELETING,
    HANDOVER,
    HEARTBEAT,
    HIDDEN_WORK_ROOT,
    INCOMING,
    OWNER_LOCK,
    PROBE,
    PROBE_IN_LOG_DIR,
    PROBE_LINK,
    QUARANTINE,
    RESERVE,
    SPARE,
    STAGING_LIMIT,
    TEMPORARY,
    WORK_ROOT_FILE,
)
from logdir.refusal_slug import Why

_WITHOUT_WORTH = (HEARTBEAT, STAGING_LIMIT, CONTROLLER, QUARANTINE, HANDOVER, RESERVE, OWNER_LOCK)
"""Files that are worthless without the work root. Any other file shows unfinished work or belongs to another program.
"""
_FILES = tuple(name + tail for name in (WORK_ROOT_FILE, *_WITHOUT_WORTH) for tail in ("", TEMPORARY))


def remove_root(disk: Disk, log_dir: str) -> tuple[WorkRootKind, ...]:
    """Remove the work roots of a log dir, whole and unfinished ones. Its owner lock is held.

    Args:
        disk: The file systems.
        log_dir: Absolute path as configured.

    Returns:
        The kinds of the removed work roots.

    Raises:
        WorkRootConflictError: a work root holds a replica or a file that is not worthless; nothing was changed.
        LogDirOfflineError: the log dir does not answer.
        RefusedError: no permission.
        ReadOnlyDiskError: the disk is read-only, or a sync failed.
        FormatError: as ``locate``.
    """
    log_dir = normal(log_dir)
    with open_log_dir(disk, log_dir) as top, _map_os_errors(top):
        kinds = _removable(disk, log_dir, top)
        for kind in kinds:
            _remove(disk, kind, log_dir, top)
        return kinds


def require_removable(disk: Disk, log_dir: str) -> tuple[WorkRootKind, ...]:
    """Return the work roots of a log dir if all can be removed; raises as ``remove_root``. Only reads."""
    log_dir = normal(log_dir)
    with open_log_dir(disk, log_dir) as top, _map_os_errors(top):
        return _removable(disk, log_dir, top)


def require_rights(disk: Disk, log_dir: str) -> None:
    """Check that this process may remove our entries in and beside a log dir. Only reads.

    Raises:
        LogDirError: as ``remove_root``, except for the content of a work root.
    """
    log_dir = normal(log_dir)
    with open_log_dir(disk, log_dir) as top, _map_os_errors(top):
        for kind in _kinds(disk, log_dir, top):
            _require_rights(disk, kind, log_dir, top)


def _kinds(disk: Disk, log_dir: str, top: Directory) -> tuple[WorkRootKind, ...]:
    located = locate(disk, log_dir, top)
    return (*(() if located.found is None else (located.found,)), *located.unfinished)


def _removable(disk: Disk, log_dir: str, top: Directory) -> tuple[WorkRootKind, ...]:
    kinds = _kinds(disk, log_dir, top)
    for kind in kinds:
        with open_work_root(disk, kind, log_dir, top) as work:
            _require_empty(work, kind)
        _require_rights(disk, kind, log_dir, top)
    return kinds


def _require_rights(disk: Disk, kind: WorkRootKind, log_dir: str, top: Directory) -> None:
    """Check that a work root can be removed completely: a partly removed one is worse than a whole one."""
    with open_work_root(disk, kind, log_dir, top) as work:
        work.require_changeable()
        for name in sorted(set(work.names()) & set(DIRECTORIES)):
            with work.open(name) as directory:
                directory.require_changeable()
    if kind is not WorkRootKind.BESIDE:
        top.require_changeable()
        return
    with opened_parent(disk, log_dir) as (parent, _):
        parent.require_changeable()


@contextmanager
def _map_os_errors(top: Directory) -> Iterator[None]:
    try:
        with calling(top):
            yield
    except OSError as error:
        if (something_else := not_a_file(error)) is not None:
            raise something_else from error
        if isinstance(error, PermissionError):
            raise no_permission(failed_at(top.path, error), error, "permission to remove the work root") from error
        raise RefusedError(
            failed_at(top.path, error),
            why=Why.WORK_ROOT_FAILED,
            expected="a work root that can be removed",
            found=error.strerror or error,
            fix=remedy_of(error),
        ) from error


def require_ours(work: Directory, kind: WorkRootKind) -> None:
    """Check that a work root holds only our own entries; staged replicas are not checked. Only reads.

    Raises:
        WorkRootConflictError: it holds another entry.
        RefusedError: a directory has the name of a file of ours.
        OSError: the work root cannot be read.
    """
    names = set(work.names())
    foreign = [] if kind is WorkRootKind.INSIDE else sorted(names - {*DIRECTORIES, *_FILES})
    if SPARE in names:
        with work.open(SPARE) as directory:
            foreign += [f"{SPARE}/{inner}" for inner in sorted(set(directory.names()) - set(spares(directory)))]
    foreign += _in_probe(work, names)
    for name, place in ((DELETING, Place.DELETING), (INCOMING, Place.INCOMING)):
        if name in names:
            with work.open(name) as directory:
                types = sorted(directory.types().items())
                foreign += _in_probe(directory, dict(types), f"{name}/")
            foreign += [f"{name}/{inner}" for inner, type_ in types if not _is_ours(classify(inner, type_, place))]
    if foreign:
        fix = "inspect it and move it away, then repeat the command"
        raise _conflict(f"{work.path}/{foreign[0]}", "nothing in a work root but what logdird put there", foreign, fix)
    for name in sorted(names & set(_FILES)):
        if work.stat(name).type is Type.DIRECTORY:
            raise a_directory(f"{work.path}/{name}")


def _in_probe(above: Directory, names: Collection[str], place: str = "") -> list[str]:
    """Return the entries of a probe directory, which must be empty but for the link of an interrupted proof."""
    if PROBE not in names or above.stat(PROBE).type is not Type.DIRECTORY:
        return []
    with above.open(PROBE) as directory:
        return [f"{place}{PROBE}/{inner}" for inner in sorted(directory.names()) if inner != PROBE_LINK]


def _is_ours(seen: Named | Inside) -> bool:
    return isinstance(seen, Named) and seen.kind is not Kind.UNKNOWN


def _conflict(path: str, expected: str, entries: Sequence[str], fix: str) -> WorkRootConflictError:
    more = f"{len(entries)} entries, {entries[0]} among them" if len(entries) > 1 else entries[0]
    return WorkRootConflictError(path, expected=expected, found=more, fix=fix)


def _require_empty(work: Directory, kind: WorkRootKind) -> None:
    require_ours(work, kind)
    staged = []
    for name in sorted(set(work.names()) & {DELETING, INCOMING}):
        with work.open(name) as directory:
            staged += [f"{name}/{inner}" for inner in directory.names() if inner != PROBE]
    if staged:
        raise _conflict(work.path, "an empty work root", staged, "restore or purge what is staged first")


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
        if PROBE in names:
            probe.empty(work, PROBE)
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
    probe.empty(directory, name)
    directory.remove(name)


def _remove_synced(parent: Directory, name: str) -> None:
    parent.remove(name)
    with syncing(parent):
        parent.sync()
