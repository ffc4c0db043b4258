"""Directories of hard links under ``incoming/``: creating one with its marker, linking files into it, removing it
again.

A caller links the first file only when the marker is durable (``make_marked``, or ``begin_marked`` and
``sync_marked``), so an interrupted directory explains itself; the marker is also removed last. A file is unlinked here
only if it had another name a moment before, or was created here.

Not here: the purpose of the links (``capture``, ``adopt``), removing data (``purge``).

Spec: design §2 laws 1, 2, §3.3; reliability §4.1 (hard links), §4.2; attacks A17.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import with_reserve
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.unique_name import free_name, is_there
from logdir.disk.replica.replica_dir import NEW_MARKER
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import RefusedError
from logdir.formats.own import replica_marker
from logdir.formats.own.replica_marker import FILE_NAME, ReplicaMarker
from logdir.names import WorkDir
from logdir.observe.classify import Type
from logdir.refusal_slug import Why

_OWN = frozenset((FILE_NAME, NEW_MARKER))
"""Files that we always create in such a directory ourselves."""


def make_marked(open_dir: OpenLogDir, parts: WorkDir, marker_of: Callable[[int], ReplicaMarker]) -> str:
    """Create a directory under ``incoming/`` with its marker, both durable.

    Arguments, result and errors are those of ``begin_marked`` and ``sync_marked``.
    """
    name = begin_marked(open_dir, parts, marker_of)
    sync_marked(open_dir, name)
    with syncing(open_dir.incoming):
        open_dir.incoming.sync()
    return name


def begin_marked(open_dir: OpenLogDir, parts: WorkDir, marker_of: Callable[[int], ReplicaMarker]) -> str:
    """Create a directory under ``incoming/`` with its marker. Not durable yet.

    Args:
        open_dir: Its log dir.
        parts: The parts of its name; a counter makes it unique.
        marker_of: Returns the marker for the inode of the new directory.

    Returns:
        Its name under ``incoming/``.

    Raises:
        RefusedError: no name is free.
        ReadOnlyDiskError: after another error the directory was removed, and the sync of that failed.
        OSError: any other error; there is no such directory, unless its removal failed, too.
    """
    made = open_dir.incoming

    def make(name: str) -> None:
        with_reserve(open_dir.work, lambda: _make(open_dir, name))

    name = free_name(made, parts, make)
    try:
        with made.open(name) as directory:
            data = replica_marker.render(marker_of(directory.own_stat().inode))
            write_new(open_dir, directory, FILE_NAME, data)
            directory.start_writeback(FILE_NAME)
    except OSError:
        drop(open_dir, name)
        raise
    return name


def sync_marked(open_dir: OpenLogDir, name: str) -> None:
    """Make the marker of a directory under ``incoming/`` durable; the name of the directory is not durable yet.

    Raises:
        ReadOnlyDiskError: a sync failed.
        OSError: any other error; the directory was removed, unless a file in it has no other name.
    """
    try:
        with open_dir.incoming.open(name) as directory, syncing(directory):
            directory.sync_file(FILE_NAME)
            directory.sync()
    except OSError:
        drop(open_dir, name)
        raise


def _make(open_dir: OpenLogDir, name: str) -> None:
    try:
        open_dir.incoming.make(name, open_dir.owner)
    except FileExistsError:
        raise
    except OSError:
        # A failure may leave the directory empty.
        if is_there(open_dir.incoming, name):
            open_dir.incoming.remove(name)
        raise


def write_new(open_dir: OpenLogDir, directory: Directory, name: str, data: bytes) -> None:
    """Create a file; on a full disk the reserve makes room. Not durable yet.

    Raises:
        OSError: the file does not exist afterwards.
    """

    def write() -> None:
        try:
            directory.write(name, data, open_dir.owner.for_file())
        except FileExistsError:
            raise
        except OSError:
            if is_there(directory, name):
                directory.unlink(name)
            raise

    with_reserve(open_dir.work, write)


def link(open_dir: OpenLogDir, source: Directory, name: str, target: Directory) -> None:
    """Hard-link one file into another directory; on a full disk the reserve makes room. Not durable yet.

    Raises:
        OSError: there is no link afterwards.
    """
    with_reserve(open_dir.work, lambda: source.link(name, target, name))


def only_names(directory: Directory, own: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the files that have no other name: their data would be lost with the directory.

    Args:
        directory: The directory of links.
        own: Files that were created here and are not links.
    """
    left_out = _OWN.union(own)
    return tuple(name for name in directory.names() if name not in left_out and directory.stat(name).links < 2)


def drop(open_dir: OpenLogDir, name: str, own: Iterable[str] = ()) -> bool:
    """Remove a directory of links under ``incoming/``, unless a file in it has no other name.

    Args:
        open_dir: Its log dir.
        name: Its name under ``incoming/``, without a suffix, so that an incomplete rest is recognised.
        own: Files that were created here and are not links.

    Returns:
        Whether the directory was removed; if not, it has its marker still, and every file without another name.

    Raises:
        RefusedError: an entry is no regular file.
        ReadOnlyDiskError: a sync failed.
        OSError: any other error; a part of the directory is left, with its marker.
    """
    with open_dir.incoming.open(name) as directory:
        if only_names(directory, own):
            return False
        names = directory.names()
        ours = _OWN.union(own)
        for inner in names:
            # Its broker may be removing the other names just now.
            if inner != FILE_NAME and not _unlink(open_dir, directory, inner, is_ours=inner in ours):
                return False
        if set(names) - {FILE_NAME}:
            with syncing(directory):
                directory.sync()
        if FILE_NAME in names:
            _unlink(open_dir, directory, FILE_NAME, is_ours=True)
    with_reserve(open_dir.work, lambda: open_dir.incoming.remove(name))
    with syncing(open_dir.incoming):
        open_dir.incoming.sync()
    return True


def _unlink(open_dir: OpenLogDir, directory: Directory, name: str, *, is_ours: bool) -> bool:
    """Remove a name; return ``False`` if it is the last one of data that is not ours, and stays."""
    found = directory.stat(name)
    if found.type is not Type.FILE:
        raise RefusedError(
            f"{directory.path}/{name}",
            why=Why.WRONG_FILE_TYPE,
            expected="a regular file",
            found=found.type.words,
            fix="inspect it, and move it away",
        )
    if not is_ours and found.links < 2:
        return False
    # On btrfs a removal needs free space, too.
    with_reserve(open_dir.work, lambda: directory.unlink(name))
    return True
