"""Files that were set aside, taken over by a topic made anew: the way back for what a broker had really deleted.

The broker is stopped and every lock of it held. Beside the rescued directory, which is not changed, a new one is made
under ``incoming/`` of hard links: without the index files of the last segment, with the *new* id. It becomes
``{new id}_{partition}.ready``, durable. Then the replica that the broker had made anew is set aside with reason
*duplicate*, the checkpoint entries become those of the rescued log, and the new directory is renamed to the live name.

Names tell how far an interruption let it come (``recover_adoptions``, before ``recover``): no ``.ready``, or one beside
a live replica: not adopted, and the links go; one without a live replica: the rest is done; none and a live replica of
the rescued files: adopted. An error is undone the same way back.

The rescued directory is consumed at the end (claimed, then removed: its files live on under the live name), or kept.
What is kept shares its files with the live log: it outlives their removal, not what a broker truncates in place.

Not here: whether and where it may be done (``decide.adopt``), tiered logs, the topic-id layout (no broker opens it).

Spec: design §3.3 "Restore" class (b); kafka-behaviour §10.5, §10.6; attacks A8, A13, A16, A36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from logdir.decide.refusal import FINISH_MOVE
from logdir.disk.calls import Directory
from logdir.disk.checkpoint import drop_entries, read_entries, set_entries
from logdir.disk.entry import is_there
from logdir.disk.failure import calling, is_sick, read_only, syncing
from logdir.disk.linked import drop, link, make_marked, only_names, write_new
from logdir.disk.outcome import Outcome, Result, done, undone
from logdir.disk.purge import claim, remove
from logdir.disk.replica_dir import NEW_MARKER, clear_marker, last_indexes, rename, require_marker, require_plain
from logdir.disk.site import Site
from logdir.disk.small_file import TEMPORARY, read_file
from logdir.disk.staging import RestoreItem, StageItem, as_error, require_staged, restore, stage
from logdir.errors import DiskError, LogDirError, ReadOnlyDiskError, RefusedError
from logdir.formats import partition_metadata
from logdir.formats.offset_checkpoint import TopicPartition
from logdir.formats.partition_metadata import PartitionMetadata
from logdir.formats.replica_marker import FILE_NAME, Checkpoints, Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.names import DirForm, WorkDir, name_for, parse_partition_dir, parse_work_dir, render_work_dir
from logdir.observe.classify import METADATA_FILE, Type
from logdir.reasons import Reason
from logdir.refusal_slug import Why

MADE = (METADATA_FILE,)
"""What is no link in a directory that shall be live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptItem:
    """Rescued files, and the replica they become."""

    name: str
    """Under ``deleting/`` of the log dir where they become live."""
    marker: ReplicaMarker
    """As it was when this was decided."""
    topic: str
    """The topic made anew; it may have another name."""
    topic_id: TopicId
    """Its new id."""
    present: Site
    """The log dir in which the broker made its replica."""
    present_marker: ReplicaMarker
    """With which that one is set aside: reason *duplicate*. Its checkpoint entries are filled in here."""
    keep: bool = False
    """Whether the rescued directory stays set aside, its files shared with the live log."""

    @property
    def path(self) -> str:
        """Return the live name."""
        return name_for(self.topic, self.marker.partition, DirForm.CURRENT)

    @property
    def key(self) -> TopicPartition:
        """Return the key of its checkpoint entries."""
        return TopicPartition(self.topic, self.marker.partition)


def adopt(site: Site, item: AdoptItem, sites: Sequence[Site]) -> Outcome:
    """Make rescued files the log of a replica that a topic made anew has here.

    Args:
        site: The log dir in which they are set aside, and where they become live.
        item: Which files, and whose they become.
        sites: Every log dir of the broker, this one among them; its broker is stopped and every lock held.

    Returns:
        Its outcome; done, ``place`` is the live name. Undone, the new topic is as it was, and what was rescued too.

    Raises:
        ReadOnlyDiskError: a sync failed, a disk is sick, or the way back was barred; ``recover_adoptions`` goes on.
    """
    place = f"deleting/{item.name}"
    try:
        with calling(site.top):
            if not _is_adopted(site, item):
                _require_possible(site, item, sites)
                _adopt(site, item)
            if not item.keep:
                _consume(site, item)
    except (LogDirError, OSError) as error:
        return undone(place, error if isinstance(error, LogDirError) else as_error(site.path_of(place), error))
    return done(place, item.path)


def _is_adopted(site: Site, item: AdoptItem) -> bool:
    """Whether an earlier adoption of this came to its end, but for the rescued directory."""
    with site.deleting.open(item.name) as rescued:
        wanted = {name: rescued.stat(name).inode for name in rescued.names() if name.endswith(".log")}
    if not is_there(site.top, item.path):
        return False
    with site.top.open(item.path) as live:
        if _id_in(live) != item.topic_id or not wanted:
            return False
        return all(is_there(live, name) and live.stat(name).inode == inode for name, inode in wanted.items())


def _id_in(directory: Directory) -> TopicId | None:
    data = read_file(directory, METADATA_FILE)
    path = f"{directory.path}/{METADATA_FILE}"
    return None if data is None else partition_metadata.parse_stock(data, path).topic_id


def _require_possible(site: Site, item: AdoptItem, sites: Sequence[Site]) -> None:
    where = site.path_of(f"deleting/{item.name}")
    if item.marker.topic_id == item.topic_id:
        raise RefusedError(
            where,
            why=Why.RESTORE_KIND_DIFFERS,
            expected="a topic with another id",
            found="the same id",
            fix="logdirctl staged restore renames it back",
        )
    if item.present_marker.reason is not Reason.DUPLICATE or item.present_marker.topic_id != item.topic_id:
        raise RefusedError(
            where,
            why=Why.CHANGED,
            expected="a marker of the new replica, reason duplicate",
            found="a marker with another reason or topic id",
        )
    if item.marker.tiered:
        raise RefusedError(
            where,
            why=Why.RESTORE_KIND_DIFFERS,
            expected="a log that is all local",
            found="one of which a part was in remote storage",
        )
    live = []
    for other in sites:
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
            fix="make the topic again, start its broker once",
        )
    with item.present.top.open(item.path) as directory:
        if (found_id := _id_in(directory)) != item.topic_id:
            raise RefusedError(
                directory.path, why=Why.CHANGED, expected=f"id {item.topic_id}", found=found_id, fix="plan again"
            )
    # A file that is not in its form must be found before anything is renamed.
    for other in {one.log_dir: one for one in (site, item.present)}.values():
        read_entries(other, item.key)


def _adopt(site: Site, item: AdoptItem) -> None:
    for name in ready_names(site):
        parts = parse_work_dir(name)
        if parts is not None and (parts.topic_id, parts.partition) == (item.topic_id, item.marker.partition):
            withdraw(site, name)
    ready = _make_ready(site, item, _build(site, item))
    marker = replace(item.present_marker, checkpoints=read_entries(item.present, item.key), path=item.path)
    (staged,) = stage(item.present, [StageItem(path=item.path, marker=marker)])
    if staged.place is None:
        withdraw(site, ready)
        raise staged.error or DiskError(site.log_dir, expected="the new replica set aside", found="it is live")
    try:
        publish(site, ready, item.key, item.marker.checkpoints, item.present)
    except (LogDirError, OSError) as error:
        if isinstance(error, ReadOnlyDiskError) or (isinstance(error, OSError) and is_sick(error)):
            raise
        _put_back(item, staged.place, marker, error)
        withdraw(site, ready)
        raise


def _build(site: Site, item: AdoptItem) -> str:
    """Return the name, under ``incoming/``, of a directory that holds what shall be live."""
    parts = WorkDir(item.topic_id, None, item.marker.partition, 1, "")
    with site.deleting.open(item.name) as rescued:
        found = require_marker(site, rescued)
        require_staged(found, rescued.path)
        if found != item.marker:
            raise RefusedError(
                rescued.path,
                why=Why.CHANGED,
                expected="the marker this was decided on",
                found="a marker that changed",
                fix="plan again",
            )
        names = require_plain(rescued)
        # Never cleanly closed by the broker that will open it: it would trust zeros (kafka-behaviour §10.6).
        left_out = {FILE_NAME, NEW_MARKER, METADATA_FILE, METADATA_FILE + TEMPORARY, *last_indexes(names)}
        marker = replace(found, intent=Intent.INCOMING, delay_ms=None)
        name = make_marked(site, parts, lambda inode: replace(marker, birth_inode=inode))
        try:
            with site.incoming.open(name) as directory:
                for file in names:
                    if file not in left_out:
                        link(site, rescued, file, directory)
                said = partition_metadata.render(PartitionMetadata(partition_metadata.VERSION, item.topic_id))
                write_new(site, directory, METADATA_FILE, said)
                with syncing(directory):
                    # The files were made durable when they were set aside; their new names are with the directory.
                    directory.sync_file(METADATA_FILE)
                    directory.sync()
        except OSError as error:
            if not is_sick(error):
                drop(site, name, MADE)
            raise
    return name


def _make_ready(site: Site, item: AdoptItem, name: str) -> str:
    parts = parse_work_dir(name)
    if parts is None:
        raise ValueError(f"not a name under incoming/: {name!r}")
    ready = render_work_dir(parts._replace(mark="ready"))
    try:
        rename(site, site.incoming, name, site.incoming, ready)
    except OSError as error:
        if not is_sick(error):
            drop(site, name, MADE)
        raise
    with syncing(site.incoming):
        site.incoming.sync()
    return ready


def ready_names(site: Site) -> tuple[str, ...]:
    """Return the names under ``incoming/`` of what waits to be adopted; copies that were moved are others'.

    Raises:
        OSError: it cannot be listed.
    """
    found = []
    for name in site.incoming.names():
        parts = parse_work_dir(name)
        if parts is None or parts.mark != "ready" or site.incoming.stat(name).type is not Type.DIRECTORY:
            continue
        with site.incoming.open(name) as directory:
            try:
                marker = require_marker(site, directory)
            except RefusedError:
                continue
        # A copy on its way has its own id; what is adopted has the marker of the old one.
        if marker.intent is Intent.INCOMING and marker.topic_id != parts.topic_id:
            found.append(name)
    return tuple(found)


def withdraw(site: Site, ready: str) -> None:
    """Take away what was ready to be published; the rescued files are where they were.

    Raises:
        RefusedError: they are not: here is the last name of one.
        ReadOnlyDiskError: a sync failed.
        OSError: another error; it is still ready, or begun.
    """
    parts = parse_work_dir(ready)
    if parts is None:
        raise ValueError(f"not a name under incoming/: {ready!r}")
    with site.incoming.open(ready) as directory:
        if last := only_names(directory, MADE):
            raise RefusedError(
                f"{directory.path}/{last[0]}",
                why=Why.LAST_COPY,
                expected="another name in deleting/",
                found="no other name of the file",
                fix="look at it",
            )
    begun = render_work_dir(parts._replace(mark=""))
    rename(site, site.incoming, ready, site.incoming, begun)
    with syncing(site.incoming):
        site.incoming.sync()
    drop(site, begun, MADE)


def publish(site: Site, ready: str, key: TopicPartition, checkpoints: Checkpoints, present: Site) -> None:
    """Make what is ready live; nothing has its live name.

    Args:
        site: Its log dir.
        ready: Under ``incoming/``.
        key: Its topic, as it is called now, and partition.
        checkpoints: Of the rescued log.
        present: The log dir of the replica that was set aside for it, whose entries go.

    Raises:
        ReadOnlyDiskError: a sync failed.
        FormatError, RefusedError, OSError: another error; it is not live.
    """
    if present.log_dir != site.log_dir:
        drop_entries(present, key)
    # All of them: an entry of the replica made anew would move the start of this log, or of its cleaning.
    set_entries(site, key, checkpoints)
    live = name_for(key.topic, key.partition, DirForm.CURRENT)
    rename(site, site.incoming, ready, site.top, live)
    with syncing(site.top):
        site.top.sync()
    with syncing(site.incoming):
        site.incoming.sync()
    try:
        with site.top.open(live) as directory:
            # Under a live name a marker means nothing; a scan removes it if this cannot.
            clear_marker(directory)
            with syncing(directory):
                directory.sync()
    except OSError as error:
        if is_sick(error):
            raise


def _put_back(item: AdoptItem, place: str, marker: ReplicaMarker, why: LogDirError | OSError) -> None:
    """Make the replica live again that was set aside for nothing."""
    present = item.present
    back = RestoreItem(name=place.removeprefix("deleting/"), marker=marker, path=item.path, drop_last_indexes=False)
    try:
        set_entries(present, item.key, marker.checkpoints)
        outcome = restore(present, back)
    except OSError as error:
        raise read_only(present.top, error, "a way back") from why
    if outcome.result is not Result.DONE:
        raise ReadOnlyDiskError(
            f"{present.log_dir}/{item.path}",
            expected="a way back",
            found=outcome.error.found if outcome.error else "no staged replica to take back",
            fix="nothing more is written here; the next start finishes the adoption",
        ) from why


def _consume(site: Site, item: AdoptItem) -> None:
    # Its files have their live names. What cannot go now, goes at its deadline.
    try:
        remove(site, claim(site, item.name, item.marker), in_use=lambda directory, name: True)
    except (RefusedError, OSError) as error:
        if isinstance(error, OSError) and is_sick(error):
            raise
