"""Crash recovery of one log dir, from directory names and markers.

A live directory with a marker was never staged: recovery removes the marker, also if a broker has since renamed the
directory (``-delete``, ``-stray``). A directory under ``incoming/`` without ``.ready`` is an unfinished copy whose
source is unchanged: recovery removes it. The exception is a capture with anything linked, whose source may be gone: it
stays, as *partial*, until an operator decides. Staged replicas stay staged; claimed ones (``.purging``) are left to the
next purge. Temporary files of ours are removed: their names show that they are ours, and every writer starts again from
the beginning. A ``.tmp`` beside a file of Kafka may be Kafka's, and stays.

Recovery is repeatable; a second run changes nothing. Removals need not be durable: the next run repeats them.

Not here: the entry point, which handles adoptions first (``recover_broker``); interrupted layout changes (``relayout``)
and partial start blocks (``start_block``), which have their own recovery.

Spec: design §2 laws 2, 3, §3.3; attacks A8, A11, A17.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import calling, trouble
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.unique_name import is_there
from logdir.disk.replica.relayout_metadata import NEW_METADATA
from logdir.disk.replica.replica_dir import NEW_MARKER, clear_marker, readable_marker, require_plain
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, Problem
from logdir.formats.own import (
    controller_file,
    handover_file,
    heartbeat_file,
    layout_file,
    quarantine_file,
    staging_limit_file,
    start_block_file,
)
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import FILE_NAME, Intent
from logdir.names import parse_work_dir
from logdir.observe.classify import Inside, Named, Place, Type, classify
from logdir.paths import DELETING, INCOMING, TEMPORARY
from logdir.worker_call import worker_call

_BEGUN = tuple(
    file.FILE_NAME + TEMPORARY
    for file in (
        start_block_file, staging_limit_file, controller_file, heartbeat_file, layout_file, quarantine_file,
        handover_file,
    )
)  # fmt: skip
"""Temporary names that ``small_file`` and ``start_block`` use for files that are ours alone."""
_NEVER_STAGED = frozenset((Kind.LIVE, Kind.DELETE, Kind.STRAY))
"""Kinds of directories in a log dir in which a marker is left from a staging that was interrupted before its rename."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """The result of recovering one log dir; paths are relative to the log dir or work root."""

    unmarked: tuple[str, ...]
    """Replicas that lost the marker of a staging that never happened: live, or since renamed by a broker."""
    dropped: tuple[str, ...]
    """Unfinished copies under ``incoming/`` that were removed."""
    troubled: tuple[Problem, ...]
    """Entries that could not be read or held something unexpected, by absolute path; they are unchanged."""


@worker_call
def recover(open_dir: OpenLogDir) -> Recovered:
    """Finish or undo interrupted operations in one log dir; the owner lock and every lock of the broker are held.

    Returns:
        What was removed, and what was left unchanged.

    Raises:
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        OSError: the log dir or its work root cannot be listed.
    """
    unmarked: list[str] = []
    dropped: list[str] = []
    troubled: list[Problem] = []
    with calling(open_dir.top):
        # The renames of a killed process are visible, but may not be durable. They must be, before a decision that
        # rests on them becomes durable.
        with syncing(open_dir.top):
            open_dir.top.sync_disk()
        for directory in (open_dir.top, open_dir.work):
            _clear_begun(directory, _BEGUN)
        for path, parent, name in _never_staged(open_dir, lambda path, error: _note(open_dir, troubled, path, error)):
            try:
                if _unmark(parent, name):
                    unmarked.append(path)
            except (LogDirError, OSError) as error:
                _note(open_dir, troubled, path, error)
        for name in open_dir.incoming.names():
            try:
                if _drop_unfinished(open_dir, name):
                    dropped.append(f"{INCOMING}/{name}")
            except (LogDirError, OSError) as error:
                _note(open_dir, troubled, f"{INCOMING}/{name}", error)
        for name in open_dir.deleting.names():
            try:
                _forget_new_marker(open_dir.deleting, name)
            except (LogDirError, OSError) as error:
                _note(open_dir, troubled, f"{DELETING}/{name}", error)
    return Recovered(unmarked=tuple(unmarked), dropped=tuple(dropped), troubled=tuple(troubled))


def _never_staged(open_dir: OpenLogDir, note: Callable[[str, OSError], None]) -> Iterator[tuple[str, Directory, str]]:
    """Yield (path, parent directory, name) of every directory that may hold a leftover marker, in both layouts.

    Args:
        open_dir: The log dir.
        note: Called with an entry that cannot be read; the other entries are still yielded.

    Raises:
        OSError: the log dir cannot be listed.
    """
    for name in open_dir.top.names():
        try:
            yield from _never_staged_at(open_dir, name)
        except OSError as error:
            note(name, error)


def _never_staged_at(open_dir: OpenLogDir, name: str) -> Iterator[tuple[str, Directory, str]]:
    found = classify(name, Type.DIRECTORY, Place.TOP)
    if isinstance(found, Named):
        if found.kind in _NEVER_STAGED and open_dir.top.stat(name).type is Type.DIRECTORY:
            yield name, open_dir.top, name
    elif found is Inside.PREFIX and open_dir.top.stat(name).type is Type.DIRECTORY:
        with open_dir.top.open(name) as prefix:
            for inner in prefix.names():
                within = classify(inner, Type.DIRECTORY, Place.PREFIX, name)
                is_meant = isinstance(within, Named) and within.kind in _NEVER_STAGED
                if is_meant and prefix.stat(inner).type is Type.DIRECTORY:
                    yield f"{name}/{inner}", prefix, inner


def _note(open_dir: OpenLogDir, troubled: list[Problem], path: str, error: LogDirError | OSError) -> None:
    troubled.append(trouble(open_dir.path_of(path), error))


def _clear_begun(directory: Directory, names: Iterable[str]) -> None:
    """Remove temporary files of ours; any other entry of such a name is unknown (law 7)."""
    for name in names:
        try:
            found = directory.stat(name)
        except FileNotFoundError:
            continue
        if found.type is Type.FILE:
            directory.unlink(name)


def _unmark(parent: Directory, name: str) -> bool:
    with parent.open(name) as directory:
        _clear_begun(directory, (NEW_METADATA,))
        if not is_there(directory, FILE_NAME) and not is_there(directory, NEW_MARKER):
            return False
        clear_marker(directory)
    return True


def _forget_new_marker(deleting: Directory, name: str) -> None:
    if parse_work_dir(name) is None or deleting.stat(name).type is not Type.DIRECTORY:
        return
    with deleting.open(name) as directory:
        if is_there(directory, NEW_MARKER):
            directory.unlink(NEW_MARKER)


def _drop_unfinished(open_dir: OpenLogDir, name: str) -> bool:
    parts = parse_work_dir(name)
    if parts is None or parts.mark == "ready" or open_dir.incoming.stat(name).type is not Type.DIRECTORY:
        return False
    with open_dir.incoming.open(name) as directory:
        marker = readable_marker(directory)
        names = require_plain(directory)
        is_empty = not set(names) - {FILE_NAME, NEW_MARKER}
        # A directory without a marker is still empty: the marker is always written first.
        if marker is None and not is_empty:
            return False
        if marker is not None and (
            not (marker.intent is Intent.INCOMING or (marker.intent is Intent.CAPTURED and is_empty))
            or marker.birth_inode != directory.own_stat().inode
        ):
            return False
        for inner in names:
            if inner != FILE_NAME:
                directory.unlink(inner)
        # Otherwise the marker could be removed and a file stay behind that no marker explains.
        if set(names) - {FILE_NAME}:
            with syncing(directory):
                directory.sync()
        if FILE_NAME in names:
            directory.unlink(FILE_NAME)
    open_dir.incoming.remove(name)
    return True
