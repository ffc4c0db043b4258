"""Staging a replica, restoring it by rename, and holding it.

Stage: write the marker, sync, rename the directory, sync both parents. The rename is the commit: before it a live
directory carries a marker without meaning; after it the directory under ``deleting/`` contains its own reason and
deadline. In a batch all markers are written first and share one ``syncfs``, which is called only while every lock of
the broker is held.

Restore is the reverse: first prepare what a live directory needs (its checkpoint entries, its last indexes), then
rename it, then remove the marker. Hold replaces the marker by one without a deadline.

Not here: whether an operation is allowed (``decide``), purging (``purge``).

Spec: design §3.3, §3.4; KIP-516, "Deletion"; attacks A8, A11, A15, A18.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import calling, full_disk, is_full, is_sick, with_reserve
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.unique_name import free_name, is_there
from logdir.disk.record.checkpoints import set_entries
from logdir.disk.replica.batches import Batches
from logdir.disk.replica.outcome import Outcome, done, undone
from logdir.disk.replica.replica_dir import (
    NEW_MARKER,
    clear_marker,
    last_indexes,
    rename,
    require_marker,
    require_plain,
)
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import DiskError, LogDirError, RefusedError
from logdir.formats.kafka.offset_checkpoint import TopicPartition
from logdir.formats.own import replica_marker
from logdir.formats.own.replica_marker import FILE_NAME, Checkpoints, Intent, ReplicaMarker
from logdir.names import WorkDir, parse_work_dir, render_work_dir
from logdir.paths import DELETING
from logdir.refusal_slug import Why
from logdir.worker_call import worker_call

AT_ONCE = 1024
"""Largest number of replicas that share one sync."""
_LONGEST_MS = 500
"""A batch that takes longer makes the next one smaller: the last batch of a lock hold may begin just before two seconds
are over.
"""
LOOK_AGAIN = "run logdirctl staged ls, which shows what is staged now"
"""Fix for a directory that is not, or no longer, staged."""
_MARKS = frozenset(("", "purging"))
"""Suffixes of names under ``deleting/``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageItem:
    """A live replica to stage."""

    path: str
    """Its path, relative to the log dir."""
    marker: ReplicaMarker


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreItem:
    """A staged replica to restore."""

    name: str
    """Its name under ``deleting/``."""
    marker: ReplicaMarker
    """The marker on which the restore was decided."""
    path: str
    """Its future live path, relative to the log dir."""
    drop_last_indexes: bool
    """Whether its log was not cleanly closed: the broker would trust indexes full of zeros (kafka-behaviour §10.6)."""
    checkpoints: Checkpoints | None = None
    """The entries of the checkpoint files that it gets; ``None``: those of the marker."""

    @property
    def entries(self) -> Checkpoints:
        """Return the entries of the checkpoint files that it gets."""
        return self.marker.checkpoints if self.checkpoints is None else self.checkpoints


def as_error(path: str, error: OSError) -> DiskError:
    """Convert the ``OSError`` of a call that left ``path`` unchanged to a ``DiskError``."""
    if is_full(error):
        return full_disk(path, error)
    return DiskError(
        path,
        expected="a call that succeeds",
        found=error.strerror or error,
        fix="it is unchanged; remove the cause, then repeat the command",
    )


def batches() -> Batches:
    """Return the batch sizes for ``stage``."""
    return Batches(AT_ONCE, _LONGEST_MS)


@worker_call
def stage(open_dir: OpenLogDir, items: Sequence[StageItem]) -> tuple[Outcome, ...]:
    """Stage replicas; every lock of the broker is held.

    Args:
        open_dir: Their log dir.
        items: At most as many as two seconds allow; no path twice.

    Returns:
        One outcome per item, in their order; ``place`` is relative to the work root.

    Raises:
        ReadOnlyDiskError: a sync failed or the disk is sick; the next scan shows the state of each.

    Spec: design §3.4: all markers, all renames, each touched directory once.
    """
    outcomes: dict[str, Outcome] = {}
    # In a loop of their own: half as long as a loop with system calls in between.
    rendered = [replica_marker.render(item.marker) for item in items]
    with ExitStack() as stack, calling(open_dir.top):
        marked: list[StageItem] = []
        for item, data in zip(items, rendered, strict=True):
            try:
                _mark(open_dir, item, data)
                marked.append(item)
            except (LogDirError, OSError) as error:
                outcomes[item.path] = _undone(open_dir, item.path, error)
        if marked:
            with syncing(open_dir.top):
                open_dir.top.sync_disk()
        parents: dict[str, Directory] = {}
        for item in marked:
            prefix, slash, name = item.path.rpartition("/")
            try:
                if slash and prefix not in parents:
                    parents[prefix] = stack.enter_context(open_dir.top.open(prefix))
                parent = parents.setdefault(prefix, open_dir.top)
                place = _rename_free(open_dir, parent, name, item.marker)
                outcomes[item.path] = done(item.path, f"{DELETING}/{place}")
            except (LogDirError, OSError) as error:
                outcomes[item.path] = _undone(open_dir, item.path, error)
                _unmark(open_dir, item.path)
        if parents:
            with syncing(open_dir.deleting):
                open_dir.deleting.sync()
            for parent in parents.values():
                with syncing(parent):
                    parent.sync()
    return tuple(outcomes[item.path] for item in items)


def _undone(open_dir: OpenLogDir, path: str, error: LogDirError | OSError) -> Outcome:
    if isinstance(error, LogDirError):
        return undone(path, error)
    if is_sick(error):
        raise error
    return undone(path, as_error(open_dir.path_of(path), error))


def _mark(open_dir: OpenLogDir, item: StageItem, data: bytes) -> None:
    with open_dir.parent_of(item.path) as (parent, name), parent.open(name) as directory:
        inode = directory.identity().inode
        if inode != item.marker.birth_inode:
            raise RefusedError(
                directory.path,
                why=Why.CHANGED,
                expected=f"the directory that was planned, of inode {item.marker.birth_inode}",
                found=inode,
                fix="another directory has the name now: run the command again",
            )
        names = require_plain(directory)
        if FILE_NAME in names or NEW_MARKER in names:
            clear_marker(directory)
        _write_marker(open_dir, directory, FILE_NAME, data)


def _write_marker(open_dir: OpenLogDir, directory: Directory, name: str, data: bytes) -> None:
    def write() -> None:
        try:
            directory.write(name, data, open_dir.owner.for_file())
        except OSError:
            _forget(directory, name)
            raise

    with_reserve(open_dir.work, write)


def _forget(directory: Directory, name: str) -> None:
    # An incomplete marker under a live name means nothing: recovery removes it if this cannot.
    try:
        directory.unlink(name)
    except OSError as error:
        if is_sick(error):
            raise


def _unmark(open_dir: OpenLogDir, path: str) -> None:
    try:
        with open_dir.parent_of(path) as (parent, name), parent.open(name) as directory:
            clear_marker(directory)
    except OSError as error:
        if is_sick(error):
            raise


def _rename_free(open_dir: OpenLogDir, parent: Directory, name: str, marker: ReplicaMarker) -> str:
    topic = None if marker.topic_id is not None else marker.topic
    parts = WorkDir(marker.topic_id, topic, marker.partition, 1, "")
    return free_name(open_dir.deleting, parts, lambda to: rename(open_dir, parent, name, open_dir.deleting, to), _MARKS)


@worker_call
def restore(open_dir: OpenLogDir, item: RestoreItem) -> Outcome:
    """Make a staged replica live again; the caller holds every lock of the broker and has checked that the live name is
    free.

    Args:
        open_dir: Its log dir.
        item: The replica and its live path.

    Returns:
        The outcome of the item; ``place`` is relative to the log dir. Undone: it is still staged, possibly without
        index files that a broker rebuilds.

    Raises:
        ReadOnlyDiskError: a sync failed or the disk is sick; the next scan shows its state.

    Spec: design §3.3 "Restore", class (a).
    """
    place = f"{DELETING}/{item.name}"
    with calling(open_dir.top):
        try:
            _restore(open_dir, item)
        except (LogDirError, OSError) as error:
            return _undone(open_dir, place, error)
    return done(place, item.path)


def _restore(open_dir: OpenLogDir, item: RestoreItem) -> None:
    _require_unclaimed(open_dir, item.name)
    with open_dir.deleting.open(item.name) as directory:
        marker = require_marker(open_dir, directory)
        require_staged(marker, directory.path)
        if marker != item.marker:
            raise RefusedError(
                directory.path,
                why=Why.CHANGED,
                expected="the marker on which the restore was decided",
                found="a marker that changed",
                fix="run the command again",
            )
        names = require_plain(directory)
        prefix, slash, name = item.path.rpartition("/")
        if slash:
            _make_prefix(open_dir, prefix)
        with open_dir.parent_of(item.path) as (parent, _):
            # Checked before the entries are written: they would overwrite those of the live replica.
            if is_there(parent, name):
                raise RefusedError(
                    f"{parent.path}/{name}",
                    why=Why.NAME_TAKEN,
                    expected="nothing of that name",
                    found="an entry of that name",
                    fix="inspect it and move it away; nothing is ever replaced",
                )
            # All entries: those of a later replica of that name would move the start of this log, or of its cleaning; a
            # broker removes every segment below a log start.
            set_entries(open_dir, TopicPartition(item.marker.topic, item.marker.partition), item.entries)
            if item.drop_last_indexes:
                _drop(open_dir, directory, last_indexes(names))
            rename(open_dir, open_dir.deleting, item.name, parent, name)
            with syncing(parent):
                parent.sync()
            with syncing(open_dir.deleting):
                open_dir.deleting.sync()
        # Under a live name a marker means nothing; recovery removes it if this removal is not reached, or is lost.
        _forget(directory, NEW_MARKER)
        _forget(directory, FILE_NAME)


def _drop(open_dir: OpenLogDir, directory: Directory, names: Sequence[str]) -> None:
    for name in names:
        with_reserve(open_dir.work, partial(directory.unlink, name))
    if names:
        with syncing(directory):
            directory.sync()


def _require_unclaimed(open_dir: OpenLogDir, name: str) -> None:
    parts = parse_work_dir(name)
    if parts is None or parts.mark:
        raise RefusedError(
            f"{open_dir.deleting.path}/{name}",
            why=Why.NOT_STAGED,
            expected="the name of a staged replica",
            found="a name of another kind",
            fix=LOOK_AGAIN,
        )
    claimed = render_work_dir(parts._replace(mark="purging"))
    if not is_there(open_dir.deleting, name):
        found = "one being purged" if is_there(open_dir.deleting, claimed) else "none: purged, or restored"
        raise RefusedError(
            f"{open_dir.deleting.path}/{name}",
            why=Why.CHANGED,
            expected="a staged replica",
            found=found,
            fix=LOOK_AGAIN,
        )


def _make_prefix(open_dir: OpenLogDir, prefix: str) -> None:
    with suppress(FileExistsError):
        with_reserve(open_dir.work, lambda: open_dir.top.make(prefix, open_dir.owner))
    # Done for an existing directory as well: the process that created it may have been stopped before these steps.
    with open_dir.top.open(prefix) as made:
        owner = made.own_stat().owner
        # The state that an interrupted ``make`` leaves; a directory that another program created stays unchanged.
        if owner != open_dir.owner and owner.mode == open_dir.owner.mode & 0o700 and not made.names():
            open_dir.top.adopt(prefix, open_dir.owner)
        with syncing(made):
            made.sync()
    with syncing(open_dir.top):
        open_dir.top.sync()


@worker_call
def hold(open_dir: OpenLogDir, name: str) -> Outcome:
    """Remove the deadline of a staged replica.

    Args:
        open_dir: Its log dir.
        name: Its name under ``deleting/``.

    Returns:
        The outcome of the replica: done also if it is already held, once that is durable.

    Raises:
        ReadOnlyDiskError: a sync failed or the disk is sick.
    """
    place = f"{DELETING}/{name}"
    with calling(open_dir.deleting):
        try:
            _require_unclaimed(open_dir, name)
            with open_dir.deleting.open(name) as directory:
                marker = require_marker(open_dir, directory)
                if marker.delay_ms is not None:
                    rewrite_marker(open_dir, directory, replace(marker, delay_ms=None))
                else:
                    # The process that held it may have been killed before that was durable.
                    with syncing(directory):
                        directory.sync()
        except (LogDirError, OSError) as error:
            return _undone(open_dir, place, error)
    return done(place, place)


def rewrite_marker(open_dir: OpenLogDir, directory: Directory, marker: ReplicaMarker) -> None:
    """Replace the marker of a directory in a work root, durably.

    Raises:
        ReadOnlyDiskError: a sync failed.
        OSError: any other error; the marker is unchanged.
    """
    _forget(directory, NEW_MARKER)
    _write_marker(open_dir, directory, NEW_MARKER, replica_marker.render(marker))
    with syncing(directory):
        directory.sync_file(NEW_MARKER)
    with_reserve(open_dir.work, lambda: directory.replace(NEW_MARKER, FILE_NAME))
    with syncing(directory):
        directory.sync()


def require_staged(marker: ReplicaMarker, path: str) -> None:
    """Check that a marker belongs to a staged replica.

    Raises:
        RefusedError: it belongs to an incoming one.
    """
    if marker.intent is Intent.INCOMING:
        found = "an incoming replica"
        raise RefusedError(
            path, why=Why.NOT_STAGED, expected="a staged or captured replica", found=found, fix=LOOK_AGAIN
        )
