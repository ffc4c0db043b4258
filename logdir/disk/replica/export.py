"""Export: a verified copy of a staged replica outside the log dirs, for a topic that cannot be re-created.

Each file is copied, synced, hashed, read back past the page cache and compared; the source must be unchanged at the
end. The indexes of the last segment are not copied: Kafka preallocates them with zeros, and a broker that trusts them
removes the whole log. ``COPY-BY-HAND.txt`` names the old topic id and what a copy by hand must change. ``SHA256SUMS``
(for ``sha256sum -c``) is written last, then one rename gives the directory its name. An interrupted export leaves a
name ending in ``.partial``, which no command reads.

The source is only read. Not here: later operations on the source, and the bytes of Kafka's log.

Spec: design §3.3 "Restore" class (c); kafka-behaviour §10.5, §10.6; attacks A36; reliability §3.2, §4.2.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from logdir.disk.kernel.atomic_directory import NewDirectory, new_directory
from logdir.disk.kernel.failure import is_full
from logdir.disk.kernel.host import HostDirectory
from logdir.disk.replica.captured_files import Files, look
from logdir.disk.replica.replica_dir import last_indexes, require_marker, require_plain
from logdir.disk.replica.staging import LOOK_AGAIN
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.work_root import failed_at
from logdir.errors import DiskError, DiskFullError, RefusedError
from logdir.formats.own.replica_marker import Intent, ReplicaMarker
from logdir.names import parse_work_dir
from logdir.observe.outside import KeptFree, kept_free
from logdir.paths import DELETING, INCOMING
from logdir.refusal_slug import Why

MANIFEST = "SHA256SUMS"
NOTE = "COPY-BY-HAND.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The result of an export: where the copy lies, and what it holds."""

    destination: str
    marker: ReplicaMarker
    files: int
    """Number of files of the replica in the copy."""
    size_bytes: int
    """Total size of those files."""
    is_whole: bool
    """False for a capture that stayed *partial*."""


def export(open_dir: OpenLogDir, place: str, destination: str, places: tuple[KeptFree, ...] = ()) -> Exported:
    """Copy a staged replica to a new directory; the owner lock is held.

    Args:
        open_dir: Its log dir, on this host.
        place: ``deleting/{name}``, or ``incoming/{name}`` of a partial capture.
        destination: Absolute path; must not exist, its parent must.
        places: The other log dirs and work roots of the broker: the destination must not lie in any; they are not
            accessed.

    Returns:
        Where the copy lies, and what it holds.

    Raises:
        RefusedError: the place or the destination cannot be used; nothing was created.
        DiskError: a file changed meanwhile or did not read back, or a call failed; at most a directory ending in
            ``.partial`` is left.
    """
    folder, _, name = place.partition("/")
    parts = parse_work_dir(name)
    if folder not in (DELETING, INCOMING) or parts is None or parts.mark:
        raise RefusedError(
            open_dir.path_of(place),
            why=Why.NOT_STAGED,
            expected="a replica that was staged",
            found="a name of another kind",
            fix=LOOK_AGAIN,
        )
    parent = open_dir.deleting if folder == DELETING else open_dir.incoming
    try:
        with parent.open(name) as source:
            marker = require_marker(open_dir, source)
            if marker.intent is Intent.INCOMING or (folder == INCOMING and marker.intent is not Intent.CAPTURED):
                raise RefusedError(
                    source.path,
                    why=Why.NOT_STAGED,
                    expected="a replica that was staged",
                    found="an incoming replica" if marker.intent is Intent.INCOMING else "a replica under incoming/",
                    fix=LOOK_AGAIN,
                )
            if not isinstance(source, HostDirectory):
                raise TypeError(f"only what is on this host can be copied elsewhere: {source!r}")
            own = (*kept_free(open_dir.log_dir), *places)
            return _export(source, marker, destination, own, is_whole=folder == DELETING)
    except OSError as error:
        path = failed_at(open_dir.path_of(place), error)
        if is_full(error):  # Only the copy is written.
            fix = "no copy was made, and what is staged is as it was; free space on that disk, or name another place"
            found = error.strerror or str(error)
            raise DiskFullError(path, expected="room for the copy", found=found, fix=fix) from error
        raise DiskError(
            path,
            expected="a call that succeeds",
            found=error.strerror or error,
            fix="the unfinished copy was removed, the staged replica is as it was; remove the cause, then export again",
        ) from error


def _export(
    source: HostDirectory, marker: ReplicaMarker, destination: str, places: tuple[KeptFree, ...], *, is_whole: bool
) -> Exported:
    names = require_plain(source)
    before = _state(source, names)
    left_out = last_indexes(names)
    taken = [name for name in names if name not in left_out]
    size = 0
    lines = []
    with new_directory(destination, places) as target:
        for name in taken:
            copied, digest = _copy(source, name, target)
            size += copied
            lines.append(_line(name, digest))
        if require_plain(source) != names or _state(source, names) != before:
            raise DiskError(
                source.path,
                expected="files that do not change",
                found="files that changed while they were copied",
                fix="run logdirctl staged export again",
            )
        note = note_of(marker, left_out).encode()
        target.write(NOTE, note)
        lines.append(_line(NOTE, hashlib.sha256(note).hexdigest()))
        target.write(MANIFEST, "".join(lines).encode("utf-8", "surrogateescape"))
    return Exported(destination=target.destination, marker=marker, files=len(taken), size_bytes=size, is_whole=is_whole)


def note_of(marker: ReplicaMarker, left_out: Sequence[str]) -> str:
    """Return the text of ``COPY-BY-HAND.txt``: the replica's identity, and what a copy by hand must change.

    Args:
        marker: The marker of the replica.
        left_out: Index files that were not copied.
    """
    start = marker.checkpoints.log_start
    entry = f"{marker.topic} {marker.partition} {start}"
    return f"""\
Topic {marker.topic}, partition {marker.partition}.
Topic id: {marker.topic_id or "not known"}
Log start: {"no entry: it is the base offset of the first segment" if start is None else start}
Not copied: {", ".join(left_out) or "nothing"}

To copy it by hand into a topic that was created again, or that a start served empty:
1. Stop every broker that has a replica of the partition.
2. Keep the partition.metadata of the live directory: it has the topic id of today. With another id in it a broker
   of 3.7 or later renames the directory to -stray, and one of 3.6 or earlier erases it.
3. Move every other file of the live directory away, then copy *.log, *.snapshot and leader-epoch-checkpoint into it.
   Copy no index: a broker makes them from the log. Give the files the owner of the others.
4. {
        "Leave log-start-offset-checkpoint as it is, without an entry of the partition."
        if start is None
        else f'Write the entry "{entry}" into log-start-offset-checkpoint of the log dir, and its count.'
    }
5. Start the brokers. Replicas on other brokers need the same, before any of them is started.
The commands are in docs/undo.md, "Back by a copy".
"""


def _state(source: HostDirectory, names: Sequence[str]) -> tuple[Files, tuple[int, ...]]:
    return look(source), tuple(source.stat(name).mtime_ns for name in names)


def _copy(source: HostDirectory, name: str, target: NewDirectory) -> tuple[int, str]:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=source.descriptor)
    try:
        size, digest = target.copy(descriptor, name)
        # A running broker needs the page cache for its own data.
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    return size, digest


def _line(name: str, digest: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{'' if escaped == name else chr(92)}{digest}  {escaped}\n"
