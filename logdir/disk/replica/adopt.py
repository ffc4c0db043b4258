"""Adoption: files staged by a real topic deletion become the log of a re-created topic's replica.

The broker is stopped and every lock of it is held. A new directory under ``incoming/`` gets hard links to the rescued
files, without the index files of the last segment, and the *new* topic id. The rescued directory itself is not changed.
The new directory is renamed to ``{new id}_{partition}.ready``, durably. Then the replica that the broker had created is
staged with reason *duplicate*, the checkpoint entries of the rescued log are written, and the new directory is renamed
to the live name.

After an interruption the names show how far it came (``recover_adoptions``, before ``recover``). No ``.ready``, or one
beside a live replica: not adopted, and the links are removed. A ``.ready`` without a live replica: the rest is done. No
``.ready``, and a live replica of the rescued files: adopted. An error is undone by the same rules.

At the end the rescued directory is consumed (claimed, then removed: its files live on under the live name), or kept. A
kept directory shares its files with the live log: it outlives their removal, but a broker that truncates a file in
place changes both.

Not here: whether and where a replica may be adopted (``decide.adopt``), tiered logs, the topic-id layout (no broker
opens it).

Spec: design §3.3 "Restore" class (b); kafka-behaviour §10.5, §10.6; attacks A8, A13, A16, A36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from logdir.decide.refusal import FINISH_MOVE
from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import UNKNOWN, calling, is_sick, read_only
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.small_file import read_file
from logdir.disk.kernel.unique_name import is_there
from logdir.disk.record.checkpoints import drop_entries, read_entries, set_entries
from logdir.disk.replica.hardlink_dir import drop, link, make_marked, only_names, write_new
from logdir.disk.replica.outcome import Outcome, Result, done, undone
from logdir.disk.replica.purge import claim, remove
from logdir.disk.replica.replica_dir import (
    NEW_MARKER,
    clear_marker,
    last_indexes,
    rename,
    require_marker,
    require_plain,
)
from logdir.disk.replica.staging import RestoreItem, StageItem, as_error, require_staged, restore, stage
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import DiskError, LogDirError, ReadOnlyDiskError, RefusedError
from logdir.formats.kafka import partition_metadata
from logdir.formats.kafka.offset_checkpoint import TopicPartition
from logdir.formats.kafka.partition_metadata import PartitionMetadata
from logdir.formats.own.replica_marker import FILE_NAME, Checkpoints, Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.names import DirForm, WorkDir, name_for, parse_partition_dir, parse_work_dir, render_work_dir
from logdir.observe.classify import Type
from logdir.paths import DELETING, METADATA_FILE, SEGMENT_SUFFIX, TEMPORARY
from logdir.reasons import Reason
from logdir.refusal_slug import Why

MADE = (METADATA_FILE,)
"""Files in an adopted directory that are not links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptItem:
    """Rescued files, and the replica they become."""

    name: str
    """Under ``deleting/`` of the log dir where they become live."""
    marker: ReplicaMarker
    """The marker on which the adoption was decided."""
    topic: str
    """The re-created topic; its name may differ from the old one."""
    topic_id: TopicId
    """Its new id."""
    present: OpenLogDir
    """The log dir in which the broker created its replica."""
    present_marker: ReplicaMarker
    """The marker for staging that replica: reason *duplicate*. ``adopt`` fills in its checkpoint entries."""
    keep: bool = False
    """Whether the rescued directory stays staged, its files shared with the live log."""
    checkpoints: Checkpoints | None = None
    """The checkpoint entries that are written; ``None``: those of ``marker``."""

    @property
    def entries(self) -> Checkpoints:
        """Return the checkpoint entries that are written."""
        return self.marker.checkpoints if self.checkpoints is None else self.checkpoints

    @property
    def path(self) -> str:
        """Return the live name."""
        return name_for(self.topic, self.marker.partition, DirForm.CURRENT)

    @property
    def key(self) -> TopicPartition:
        """Return the key of its checkpoint entries."""
        return TopicPartition(self.topic, self.marker.partition)


def adopt(open_dir: OpenLogDir, item: AdoptItem, open_dirs: Sequence[OpenLogDir]) -> Outcome:
    """Make rescued files the log of a re-created topic's replica on this broker.

    Args:
        open_dir: The log dir in which the files are staged, and where they become live.
        item: The rescued files and the replica they become.
        open_dirs: Every log dir of the broker, this one among them; its broker is stopped and every lock held.

    Returns:
        The outcome of the item. Done: ``place`` is the live name. Undone: the re-created replica and the rescued files
        are unchanged.

    Raises:
        ReadOnlyDiskError: a sync failed, a disk is sick, or undoing failed; ``recover_adoptions`` finishes it.
        LogDirSuspectError: a disk does not answer.
    """
    place = f"{DELETING}/{item.name}"
    try:
        with calling(open_dir.top):
            if not _is_adopted(open_dir, item):
                _require_possible(open_dir, item, open_dirs)
                _adopt(open_dir, item)
            if not item.keep:
                _consume(open_dir, item)
    except (LogDirError, OSError) as error:
        return undone(place, error if isinstance(error, LogDirError) else as_error(open_dir.path_of(place), error))
    return done(place, item.path)


def _is_adopted(open_dir: OpenLogDir, item: AdoptItem) -> bool:
    """Whether an earlier adoption is complete; the directory that it rescued may still have to be removed."""
    with open_dir.deleting.open(item.name) as rescued:
        wanted = {name: rescued.stat(name).inode for name in rescued.names() if name.endswith(SEGMENT_SUFFIX)}
    if not is_there(open_dir.top, item.path):
        return False
    with open_dir.top.open(item.path) as live:
        if _id_in(live) != item.topic_id or not wanted:
            return False
        return all(is_there(live, name) and live.stat(name).inode == inode for name, inode in wanted.items())


def _id_in(directory: Directory) -> TopicId | None:
    data = read_file(directory, METADATA_FILE)
    path = f"{directory.path}/{METADATA_FILE}"
    return None if data is None else partition_metadata.parse_stock(data, path).topic_id


def _require_possible(open_dir: OpenLogDir, item: AdoptItem, open_dirs: Sequence[OpenLogDir]) -> None:
    where = open_dir.path_of(f"{DELETING}/{item.name}")
    if item.marker.topic_id == item.topic_id:
        raise RefusedError(
            where,
            why=Why.RESTORE_KIND_DIFFERS,
            expected="a topic with another id than the staged files",
            found="the same id",
            fix="logdirctl staged restore renames it back",
        )
    if item.present_marker.reason is not Reason.DUPLICATE or item.present_marker.topic_id != item.topic_id:
        raise RefusedError(
            where,
            why=Why.CHANGED,
            expected="a marker of the new replica, reason duplicate",
            found="a marker with another reason or topic id",
            fix="nothing was changed; run the command again, which reads the markers again",
        )
    if item.marker.tiered:
        raise RefusedError(
            where,
            why=Why.RESTORE_KIND_DIFFERS,
            expected="a log that is all local",
            found="a log of which a part was in remote storage",
            fix="logdirctl staged export copies what was local",
        )
    live = []
    for other in open_dirs:
        for name in other.top.names():
            parts = parse_partition_dir(name)
            if parts is None or (parts.topic, parts.partition) != item.key:
                continue
            if parts.form is DirForm.FUTURE:
                raise RefusedError(
                    f"{other.log_dir}/{name}",
                    why=Why.FUTURE_REPLICA_EXISTS,
                    expected="no -future of it",
                    found="a -future directory",
                    fix=FINISH_MOVE,
                )
            if parts.form is DirForm.CURRENT:
                live.append(other)
    if [other.log_dir for other in live] != [item.present.log_dir]:
        found = " and ".join(other.log_dir for other in live) or "no live directory of that name"
        expected = f"{item.path} in {item.present.log_dir} alone"
        raise RefusedError(
            where,
            why=Why.LIVE_REPLICA_MISSING,
            expected=expected,
            found=found,
            fix="start the broker until it has made its replica of the re-created topic, stop it, then try again",
        )
    with item.present.top.open(item.path) as directory:
        if (found_id := _id_in(directory)) != item.topic_id:
            raise RefusedError(
                directory.path,
                why=Why.CHANGED,
                expected=f"id {item.topic_id}",
                found=found_id,
                fix="run logdirctl staged adopt again",
            )
    for other in {one.log_dir: one for one in (open_dir, item.present)}.values():
        read_entries(other, item.key)  # A malformed checkpoint file must be found before anything is renamed.


def _adopt(open_dir: OpenLogDir, item: AdoptItem) -> None:
    for name in ready_names(open_dir):
        parts = parse_work_dir(name)
        if parts is not None and (parts.topic_id, parts.partition) == (item.topic_id, item.marker.partition):
            withdraw(open_dir, name)
    ready = _make_ready(open_dir, item, _build(open_dir, item))
    marker = replace(item.present_marker, checkpoints=read_entries(item.present, item.key), path=item.path)
    (staged,) = stage(item.present, [StageItem(path=item.path, marker=marker)])
    if staged.place is None:
        withdraw(open_dir, ready)
        raise staged.error or DiskError(open_dir.log_dir, expected="the new, empty replica staged", found="it is live")
    try:
        publish(open_dir, ready, item.key, item.entries, item.present)
    except (LogDirError, OSError) as error:
        if isinstance(error, UNKNOWN) or (isinstance(error, OSError) and is_sick(error)):
            raise  # It may be live: the new replica, put back, would be live beside it. Recovery finishes it.
        _put_back(item, staged.place, marker, error)
        withdraw(open_dir, ready)
        raise


def _build(open_dir: OpenLogDir, item: AdoptItem) -> str:
    """Create a directory under ``incoming/`` with the content of the future live replica; return its name."""
    parts = WorkDir(item.topic_id, None, item.marker.partition, 1, "")
    with open_dir.deleting.open(item.name) as rescued:
        found = require_marker(open_dir, rescued)
        require_staged(found, rescued.path)
        if found != item.marker:
            raise RefusedError(
                rescued.path,
                why=Why.CHANGED,
                expected="the marker on which the adoption was decided",
                found="a marker that changed",
                fix="run logdirctl staged adopt again",
            )
        names = require_plain(rescued)
        # The broker that opens it never closed it cleanly, and would trust indexes full of zeros (kafka-behaviour
        # §10.6).
        left_out = {FILE_NAME, NEW_MARKER, METADATA_FILE, METADATA_FILE + TEMPORARY, *last_indexes(names)}
        # Crash recovery writes the entries of this marker.
        marker = replace(found, intent=Intent.INCOMING, delay_ms=None, checkpoints=item.entries)
        name = make_marked(open_dir, parts, lambda inode: replace(marker, birth_inode=inode))
        try:
            with open_dir.incoming.open(name) as directory:
                for file in names:
                    if file not in left_out:
                        link(open_dir, rescued, file, directory)
                content = partition_metadata.render(PartitionMetadata(partition_metadata.VERSION, item.topic_id))
                write_new(open_dir, directory, METADATA_FILE, content)
                with syncing(directory):
                    # The files were made durable when they were staged; their new names are with the directory.
                    directory.sync_file(METADATA_FILE)
                    directory.sync()
        except OSError as error:
            if not is_sick(error):
                drop(open_dir, name, MADE)
            raise
    return name


def _make_ready(open_dir: OpenLogDir, item: AdoptItem, name: str) -> str:
    parts = parse_work_dir(name)
    if parts is None:
        raise ValueError(f"not a name under incoming/: {name!r}")
    ready = render_work_dir(parts._replace(mark="ready"))
    try:
        rename(open_dir, open_dir.incoming, name, open_dir.incoming, ready)
    except OSError as error:
        if not is_sick(error):
            drop(open_dir, name, MADE)
        raise
    with syncing(open_dir.incoming):
        open_dir.incoming.sync()
    return ready


def ready_names(open_dir: OpenLogDir) -> tuple[str, ...]:
    """Return the ``.ready`` names of adoptions under ``incoming/``; copies made by a move are not among them.

    Raises:
        OSError: the directory cannot be listed.
    """
    found = []
    for name in open_dir.incoming.names():
        parts = parse_work_dir(name)
        if parts is None or parts.mark != "ready" or open_dir.incoming.stat(name).type is not Type.DIRECTORY:
            continue
        with open_dir.incoming.open(name) as directory:
            try:
                marker = require_marker(open_dir, directory)
            except RefusedError:
                continue
        # The marker of a moved copy has the copy's own id; the marker of an adoption has the old id.
        if marker.intent is Intent.INCOMING and marker.topic_id != parts.topic_id:
            found.append(name)
    return tuple(found)


def withdraw(open_dir: OpenLogDir, ready: str) -> None:
    """Remove a directory that was ready to be published; the rescued files stay where they were.

    Raises:
        RefusedError: a file here has no other name, so it would be lost.
        ReadOnlyDiskError: a sync failed.
        OSError: any other error; the directory is still ready, or incomplete.
    """
    parts = parse_work_dir(ready)
    if parts is None:
        raise ValueError(f"not a name under incoming/: {ready!r}")
    with open_dir.incoming.open(ready) as directory:
        if last := only_names(directory, MADE):
            raise RefusedError(
                f"{directory.path}/{last[0]}",
                why=Why.LAST_COPY,
                expected="another hard link of the file, under deleting/",
                found="no other hard link",
                fix="inspect its directory: the file may be the last copy",
            )
    begun = render_work_dir(parts._replace(mark=""))
    rename(open_dir, open_dir.incoming, ready, open_dir.incoming, begun)
    with syncing(open_dir.incoming):
        open_dir.incoming.sync()
    drop(open_dir, begun, MADE)


def publish(
    open_dir: OpenLogDir, ready: str, key: TopicPartition, checkpoints: Checkpoints, present: OpenLogDir
) -> None:
    """Rename a ready directory to its live name, which is free.

    Args:
        open_dir: Its log dir.
        ready: Its name under ``incoming/``.
        key: The partition, by the current topic name.
        checkpoints: The entries of the rescued log.
        present: The log dir of the replica that was staged for it, whose entries are removed.

    Raises:
        ReadOnlyDiskError: a sync failed.
        FormatError, RefusedError, OSError: any other error; it is not live.
    """
    if present.log_dir != open_dir.log_dir:
        drop_entries(present, key)
    # All entries: one of the re-created replica would move the start of this log, or the start of its cleaning.
    set_entries(open_dir, key, checkpoints)
    live = name_for(key.topic, key.partition, DirForm.CURRENT)
    rename(open_dir, open_dir.incoming, ready, open_dir.top, live)
    with syncing(open_dir.top):
        open_dir.top.sync()
    with syncing(open_dir.incoming):
        open_dir.incoming.sync()
    try:
        with open_dir.top.open(live) as directory:
            # Under a live name a marker means nothing; recovery removes it if this cannot.
            clear_marker(directory)
            with syncing(directory):
                directory.sync()
    except OSError as error:
        if is_sick(error):
            raise


def _put_back(item: AdoptItem, place: str, marker: ReplicaMarker, why: LogDirError | OSError) -> None:
    """Undo the staging of the re-created replica: make it live again."""
    present = item.present
    back = RestoreItem(name=place.removeprefix(f"{DELETING}/"), marker=marker, path=item.path, drop_last_indexes=False)
    try:
        set_entries(present, item.key, marker.checkpoints)
        outcome = restore(present, back)
    except OSError as error:
        raise read_only(present.top, error, "a way back") from why
    if outcome.result is not Result.DONE:
        raise ReadOnlyDiskError(
            f"{present.log_dir}/{item.path}",
            expected="the re-created replica renamed back",
            found=outcome.error.found if outcome.error else "no staged replica to take back",
            fix="nothing more is written to this disk; the next command that changes something finishes the adoption",
        ) from why


def _consume(open_dir: OpenLogDir, item: AdoptItem) -> None:
    # Its files have their live names. If this directory cannot be removed now, it is purged at its deadline.
    try:
        remove(open_dir, claim(open_dir, item.name, item.marker), in_use=lambda directory, name: True)
    except (RefusedError, OSError) as error:
        if isinstance(error, OSError) and is_sick(error):
            raise
