"""A directory under ``incoming/`` that is filled with hard links, and taken away again if nothing comes of it.

Its marker is durable before the first link is made, so that what an interruption leaves says what it is; and it is the
last to go. A file is only unlinked here while another name leads to it, or if it was made here: whatever happens to
the directory the links came from, no last name of any data is removed.

Not here: what the links are for (``capture``, ``adopt``), removing data (``purge``).

Spec: design §2 laws 1, 2, §3.3; reliability §4.1 (hard links), §4.2; attacks A17.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import syncing, with_reserve
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
"""What we make in such a directory ourselves, always."""


def make_marked(open_dir: OpenLogDir, parts: WorkDir, marker_of: Callable[[int], ReplicaMarker]) -> str:
    """Make a directory under ``incoming/`` with its marker in it, both durable.

    Args:
        open_dir: Its log dir.
        parts: Of its name, as far as it is free.
        marker_of: Returns the marker for the inode of the new directory.

    Returns:
        Its name under ``incoming/``.

    Raises:
        RefusedError: no name is free.
        ReadOnlyDiskError: a sync failed.
        OSError: another error; there is no such directory.
    """
    made = open_dir.incoming

    def make(name: str) -> None:
        with_reserve(open_dir.work, lambda: _make(open_dir, name))

    name = free_name(made, parts, make)
    try:
        with made.open(name) as directory:
            data = replica_marker.render(marker_of(directory.own_stat().inode))
            write_new(open_dir, directory, FILE_NAME, data)
            with syncing(directory):
                directory.sync_file(FILE_NAME)
                directory.sync()
    except OSError:
        drop(open_dir, name)
        raise
    with syncing(made):
        made.sync()
    return name


def _make(open_dir: OpenLogDir, name: str) -> None:
    try:
        open_dir.incoming.make(name, open_dir.owner)
    except FileExistsError:
        raise
    except OSError:
        # A failure may leave it empty.
        if is_there(open_dir.incoming, name):
            open_dir.incoming.remove(name)
        raise


def write_new(open_dir: OpenLogDir, directory: Directory, name: str, data: bytes) -> None:
    """Make a file, on a full disk out of the reserve. Not durable yet.

    Raises:
        OSError: there is no such file.
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
    """Give one file a name in another directory, on a full disk out of the reserve. Not durable yet.

    Raises:
        OSError: it has none there.
    """
    with_reserve(open_dir.work, lambda: source.link(name, target, name))


def only_names(directory: Directory, own: Iterable[str] = ()) -> tuple[str, ...]:
    """Return which files here have no other name: what would be lost if the directory went.

    Args:
        directory: Filled with links.
        own: Which files were made here and are not links.
    """
    left_out = _OWN.union(own)
    return tuple(name for name in directory.names() if name not in left_out and directory.stat(name).links < 2)


def drop(open_dir: OpenLogDir, name: str, own: Iterable[str] = ()) -> bool:
    """Remove a directory of links under ``incoming/``, unless a file in it has no other name any more.

    Args:
        open_dir: Its log dir.
        name: Under ``incoming/``; without a mark, so that a part of it is known for what it is.
        own: Which files were made here and are not links.

    Returns:
        Whether it is gone.

    Raises:
        RefusedError: it holds what is no regular file.
        ReadOnlyDiskError: a sync failed.
        OSError: another error; a part of it is left, with its marker.
    """
    with open_dir.incoming.open(name) as directory:
        if only_names(directory, own):
            return False
        names = directory.names()
        for inner in names:
            if inner != FILE_NAME:
                _unlink(open_dir, directory, inner)
        if set(names) - {FILE_NAME}:
            with syncing(directory):
                directory.sync()
        if FILE_NAME in names:
            _unlink(open_dir, directory, FILE_NAME)
    with_reserve(open_dir.work, lambda: open_dir.incoming.remove(name))
    with syncing(open_dir.incoming):
        open_dir.incoming.sync()
    return True


def _unlink(open_dir: OpenLogDir, directory: Directory, name: str) -> None:
    found = directory.stat(name)
    if found.type is not Type.FILE:
        raise RefusedError(
            f"{directory.path}/{name}", why=Why.WRONG_FILE_TYPE, expected="a regular file", found=found.type.value
        )
    # On btrfs this takes room, too.
    with_reserve(open_dir.work, lambda: directory.unlink(name))
