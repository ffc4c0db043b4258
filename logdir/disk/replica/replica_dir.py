"""Operations on a partition directory as a whole, and on its marker.

Unknown regular files inside it belong to it and move with it. A sub-directory, link or device does not: a replica that
holds one is held, and no operation here changes it.

Not here: the names of places (``names``), the content of a marker (``formats.own.replica_marker``).

Spec: design §2 law 7, §3.3; kafka-behaviour §10.6.
"""

from __future__ import annotations

from collections.abc import Iterable

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import with_reserve
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import FormatError, MalformedFileError, RefusedError
from logdir.formats.own import own_json, replica_marker
from logdir.formats.own.replica_marker import BY_HAND, FILE_NAME, ReplicaMarker
from logdir.observe.classify import Type
from logdir.paths import SEGMENT_SUFFIX
from logdir.refusal_slug import Why

_SEGMENT = len("00000000000000000000.log")
_INDEXES = (".index", ".timeindex", ".txnindex")
NEW_MARKER = "replica.new.json"
"""Temporary name of a marker that replaces another."""


def require_plain(directory: Directory) -> tuple[str, ...]:
    """Return the names in a partition directory, sorted.

    Raises:
        RefusedError: an entry is no regular file.
        OSError: the directory cannot be listed.
    """
    types = directory.types()
    for name, kind in types.items():
        require_file(directory, name, kind)
    return tuple(types)


def require_file(directory: Directory, name: str, kind: Type) -> None:
    """Check that an entry of a partition directory is a regular file.

    Raises:
        RefusedError: it is another kind of entry.
    """
    if kind is not Type.FILE:
        raise RefusedError(
            f"{directory.path}/{name}",
            why=Why.UNEXPECTED_ENTRY,
            expected="only regular files in a partition directory",
            found=kind.words,
            fix="inspect it and move it away; the replica is held until then",
        )


def read_marker(directory: Directory) -> ReplicaMarker | None:
    """Return the marker of a partition directory; ``None`` if there is none.

    Raises:
        FormatError: the marker is torn, altered, or of a newer version.
        OSError: the marker cannot be read.
    """
    path = f"{directory.path}/{FILE_NAME}"
    try:
        data = directory.read(FILE_NAME, own_json.MAX_BYTES)
    except FileNotFoundError:
        return None
    if len(data) > own_json.MAX_BYTES:
        raise MalformedFileError(path, expected=f"at most {own_json.MAX_BYTES} bytes", found="a larger file")
    return replica_marker.parse(data, path)


def readable_marker(directory: Directory) -> ReplicaMarker | None:
    """Return the marker of a partition directory; ``None`` if it has none, or none that can be read.

    Raises:
        OSError: as ``read_marker``.
    """
    try:
        return read_marker(directory)
    except FormatError:
        return None


def require_marker(open_dir: OpenLogDir, directory: Directory) -> ReplicaMarker:
    """Return the marker of a directory in a work root; it must belong to this directory, log dir and host.

    Raises:
        RefusedError: the marker is missing, malformed, or belongs to another directory, log dir or host.
        OSError: the marker cannot be read.
    """
    path = f"{directory.path}/{FILE_NAME}"
    try:
        marker = read_marker(directory)
    except FormatError as error:
        raise RefusedError(
            path, why=Why.MARKER_UNUSABLE, expected=error.expected, found=error.found, fix=BY_HAND
        ) from error
    if marker is None:
        raise RefusedError(path, why=Why.MARKER_UNUSABLE, expected="a marker", found="no such file", fix=BY_HAND)
    inode = directory.own_stat().inode
    if marker.birth_inode != inode:
        raise RefusedError(
            path,
            why=Why.FOREIGN_MARKER,
            expected=f"a marker of inode {inode}",
            found=marker.birth_inode,
            fix="held: foreign, as it was copied or moved here; put the right disk back",
        )
    for what, ours, found in (
        ("cluster", open_dir.cluster_id, marker.cluster_id),
        ("node", open_dir.node_id, marker.node_id),
        ("directory", open_dir.directory_id, marker.directory_id),
    ):
        # Kafka before 3.7 gives a log dir no id; the log dir may have got one since.
        if ours != found and not (what == "directory" and found is None):
            raise RefusedError(
                path,
                why=Why.FOREIGN_MARKER,
                expected=f"a marker of {what} {ours}",
                found=found,
                fix="held: foreign, as it was copied or moved here; put the right disk back",
            )
    return marker


def rename(open_dir: OpenLogDir, parent: Directory, name: str, to: Directory, new_name: str) -> None:
    """Rename a partition directory; on a full disk the reserve makes room for its new entry. Not durable yet.

    Raises:
        OSError: the call failed; nothing was renamed.
    """
    with_reserve(open_dir.work, lambda: parent.rename(name, to, new_name))


def clear_marker(directory: Directory) -> bool:
    """Remove the marker and its temporary file; return whether there was any. Not durable yet."""
    found = False
    for name in (NEW_MARKER, FILE_NAME):
        try:
            directory.unlink(name)
        except FileNotFoundError:
            continue
        found = True
    return found


def last_indexes(names: Iterable[str]) -> tuple[str, ...]:
    """Return the index files of the last segment, from a list of file names.

    >>> last_indexes(["00000000000000000000.index", "00000000000000000000.log", "leader-epoch-checkpoint"])
    ('00000000000000000000.index',)
    """
    listed = set(names)
    bases = [
        n[:20]
        for n in listed
        if len(n) == _SEGMENT and n.endswith(SEGMENT_SUFFIX) and n[:20].isdecimal() and n.isascii()
    ]
    if not bases:
        return ()
    return tuple(sorted(f"{max(bases)}{ending}" for ending in _INDEXES if f"{max(bases)}{ending}" in listed))
