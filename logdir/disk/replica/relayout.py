"""Moving replicas from the topic-name layout to the topic-id layout, and back.

To ids: write the new ``partition.metadata`` (its third line names the topic) under a temporary name, and the old one's
content, if it cannot be derived, into ``relayout.json``; sync. Replace ``partition.metadata`` and create the prefix
directories; sync. Rename the replica, which is the commit; sync. To names: write the old ``partition.metadata`` under a
temporary name, rename the replica, sync; replace the file, sync; remove ``relayout.json``, sync. So a directory named
by id always contains its topic name, and a directory named by topic whose file still contains it was interrupted: a
stock broker ignores that third line, and either direction continues from there.

In a batch every sync is one ``syncfs``, called only while every lock of the broker is held: it replaces the fsync of
every parent directory. Modification times of files are preserved, those of directories are not.

Not here: whether and when to move (``decide.layout.transitions``), the order over all disks (``layout_phases``),
``start_block``.

Spec: design §3.1, §3.4; baselines §3; attacks A8, A9, A11, A44.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import NamedTuple, Protocol, TypeVar

from logdir.decide.layout.action import ToIds, ToNames
from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import calling, is_sick, with_reserve
from logdir.disk.kernel.fsync import syncing
from logdir.disk.replica.outcome import Outcome, done, undone
from logdir.disk.replica.relayout_metadata import (
    KEPT,
    NEW_METADATA,
    clear,
    is_ours,
    mark,
    original_of,
    put_new,
    read_metadata,
    replace_metadata,
    require_id,
    with_topic,
)
from logdir.disk.replica.replica_dir import NEW_MARKER, require_plain
from logdir.disk.replica.staging import as_error
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, ReadOnlyDiskError, RefusedError
from logdir.formats.kafka import partition_metadata
from logdir.formats.own.replica_marker import FILE_NAME
from logdir.names import is_prefix
from logdir.observe.classify import Type
from logdir.paths import METADATA_FILE, METADATA_TOPIC
from logdir.refusal_slug import Why
from logdir.worker_call import worker_call


class _Item(Protocol):
    @property
    def path(self) -> str: ...

    @property
    def prefix(self) -> str: ...


_I = TypeVar("_I", bound=_Item)


class _Batch:
    """The outcomes of the items of one batch."""

    def __init__(self, open_dir: OpenLogDir) -> None:
        self.open_dir = open_dir
        self.outcomes: dict[str, Outcome] = {}

    def passed(self, items: Iterable[_I], call: Callable[[_I], object]) -> list[_I]:
        """Return the items for which a call succeeded; record the errors of the others."""
        passed = []
        for item in items:
            try:
                call(item)
            except (LogDirError, OSError) as error:
                self.note(item, error)
            else:
                passed.append(item)
        return passed

    def passed_by_prefix(self, items: Iterable[_I], call: Callable[[Directory, _I], object]) -> list[_I]:
        """Return the items for which a call on their prefix directory succeeded; each directory is opened once."""
        passed = []
        for prefix, group in groupby(sorted(items, key=_prefix_and_path), key=lambda item: item.prefix):
            same = list(group)
            try:
                opened = self.open_dir.top.open(prefix)
            except OSError as error:
                for item in same:
                    self.note(item, error)
                continue
            with opened:
                passed += self.passed(same, lambda item, within=opened: call(within, item))  # type: ignore[misc]
        return passed

    def note(self, item: _Item, error: LogDirError | OSError) -> None:
        if isinstance(error, ReadOnlyDiskError):
            raise error
        if isinstance(error, OSError):
            if is_sick(error):
                raise error
            error = as_error(f"{self.open_dir.log_dir}/{item.path}", error)
        self.outcomes[item.path] = undone(item.path, error)

    def sync(self) -> None:
        with syncing(self.open_dir.top):
            self.open_dir.top.sync_disk()

    def in_order(self, items: Sequence[_I]) -> tuple[Outcome, ...]:
        return tuple(self.outcomes[item.path] for item in items)


def _prefix_and_path(item: _Item) -> tuple[str, str]:
    return item.prefix, item.path


@worker_call
def to_ids(open_dir: OpenLogDir, items: Sequence[ToIds]) -> tuple[Outcome, ...]:
    """Move replicas to the topic-id layout; every lock of the broker is held, and no broker can start.

    Args:
        open_dir: Their log dir.
        items: At most as many as two seconds allow; no replica twice. None of them has a ``-future`` directory in any
            log dir.

    Returns:
        One outcome per item, in their order; ``place`` is relative to the log dir. An undone replica is unchanged: it
        changed since the plan, may not be changed, or a call failed.

    Raises:
        ReadOnlyDiskError: a sync failed or the disk is sick; the next scan shows the state of each.
    """
    batch = _Batch(open_dir)
    with calling(open_dir.top):
        ours: set[str] = set()
        marked = batch.passed(items, lambda item: _mark(open_dir, item, ours))
        if marked:
            batch.sync()
        # The locks have been held since ``_mark``: a file that needs no replacing is not read again.
        replaced = batch.passed(marked, lambda item: None if item.path in ours else _give_topic(open_dir, item))
        made: set[str] = set()
        ready = batch.passed(replaced, lambda item: _make_prefix(open_dir, item.prefix, made))
        if ready:
            batch.sync()
        moved = batch.passed_by_prefix(
            ready, lambda prefix, item: _rename(open_dir, open_dir.top, item.path, prefix, item.place)
        )
        for item in moved:
            batch.outcomes[item.path] = done(item.path, item.place)
        stuck = [item for item in marked if batch.outcomes[item.path].error is not None]
        if stuck:
            back = [ToNames(ref=i.ref.by_name, path=i.path) for i in stuck]
            _to_names(_Batch(open_dir), back)
            for prefix in sorted({item.prefix for item in stuck}):
                _remove_empty(open_dir, prefix)
        if moved:
            batch.sync()
    return batch.in_order(items)


def _mark(open_dir: OpenLogDir, item: ToIds, ours: set[str]) -> None:
    """Write the files that must be durable before a replacement; add replicas that need no replacement to ``ours``."""
    path = f"{open_dir.log_dir}/{item.path}"
    if item.ref.topic == METADATA_TOPIC:
        raise RefusedError(
            path,
            why=Why.METADATA_LOG,
            expected="a topic's replica",
            found="the metadata log",
            fix="no command changes it",
        )
    with open_dir.top.open(item.path) as directory:
        names = require_plain(directory)
        if FILE_NAME in names or NEW_MARKER in names:
            raise RefusedError(
                path,
                why=Why.CHANGED,
                expected=f"no {FILE_NAME}",
                found="a marker",
                fix="repeat the command, which first recovers the log dir",
            )
        found = read_metadata(directory)
        require_id(found, path, item.ref.topic_id, has_own=item.has_own_id)
        data = with_topic(item.ref.topic_id, item.ref.topic)
        if found.data == data:
            # An interrupted run wrote it: the kept original must be readable before the replica is moved.
            original_of(directory, found, item.ref.topic_id, is_kept=KEPT in names)
            ours.add(item.path)
            return
        leftovers = KEPT in names or NEW_METADATA in names
        mark(open_dir, directory, found, item.ref.topic_id, data, leftovers=leftovers)


def _give_topic(open_dir: OpenLogDir, item: ToIds) -> None:
    with open_dir.top.open(item.path) as directory:
        replace_metadata(directory, with_topic(item.ref.topic_id, item.ref.topic))


def _make_prefix(open_dir: OpenLogDir, prefix: str, made: set[str]) -> None:
    """Create a prefix directory once; after a failure the directory is removed together with the moves into it."""
    if prefix in made:
        return
    try:
        with_reserve(open_dir.work, lambda: open_dir.top.make(prefix, open_dir.owner))
    except FileExistsError:
        found = open_dir.top.stat(prefix)
        if found.type is not Type.DIRECTORY:
            raise RefusedError(
                f"{open_dir.log_dir}/{prefix}",
                why=Why.WRONG_FILE_TYPE,
                expected="a directory",
                found=found.type.words,
                fix="move it away",
            ) from None
        if found.owner != open_dir.owner:
            # A killed run created it and had not yet set its owner.
            open_dir.top.adopt(prefix, open_dir.owner)
    made.add(prefix)


def _rename(open_dir: OpenLogDir, parent: Directory, path: str, to: Directory, place: str) -> None:
    name, new_name = path.rpartition("/")[2], place.rpartition("/")[2]
    with_reserve(open_dir.work, lambda: parent.rename(name, to, new_name))


def _remove_empty(open_dir: OpenLogDir, prefix: str) -> bool:
    try:
        open_dir.top.remove(prefix)
    except OSError as error:
        if is_sick(error):
            raise
        return False
    return True


class _Back(NamedTuple):
    """The steps for one replica that moves back."""

    data: bytes | None
    """The future content of ``partition.metadata``; ``None``: the file must not exist."""
    is_changed: bool
    """Whether the file has different content now."""
    has_leftovers: bool


@worker_call
def to_names(open_dir: OpenLogDir, items: Sequence[ToNames]) -> tuple[Outcome, ...]:
    """Move replicas back to the topic-name layout, with their original bytes and modification times.

    Every lock of the broker is held, and no broker can start.

    Args:
        open_dir: Their log dir.
        items: So few that they take at most two seconds; no replica twice. A replica that already lies under its topic
            name only loses the leftovers of an interrupted layout change, usually none.

    Returns:
        One outcome per item, in their order; ``place`` is relative to the log dir. An undone replica is unchanged; if a
        call failed it may be moved back except for ``relayout.json``, and a repetition finishes it.

    Raises:
        ReadOnlyDiskError: a sync failed or the disk is sick; the next scan shows the state of each.
    """
    batch = _Batch(open_dir)
    with calling(open_dir.top):
        _to_names(batch, items)
    return batch.in_order(items)


def _to_names(batch: _Batch, items: Sequence[ToNames]) -> None:
    open_dir = batch.open_dir
    plans: dict[str, _Back | None] = {}

    def prepare(item: ToNames) -> None:
        plans[item.path] = _prepare(open_dir, item)

    prepared = batch.passed(items, prepare)
    for item in prepared:
        batch.outcomes[item.path] = done(item.path, item.place)
    todo = {item.path: plan for item in prepared if (plan := plans[item.path]) is not None}
    if not todo:
        return
    under_ids = [item for item in prepared if item.path in todo and item.prefix]
    moved = batch.passed_by_prefix(
        under_ids, lambda prefix, item: _rename(open_dir, prefix, item.path, open_dir.top, item.place)
    )
    for item in under_ids:
        if batch.outcomes[item.path].error is not None:
            _forget_new(open_dir, item)
    batch.sync()
    here = [item for item in prepared if item.path in todo and not item.prefix] + moved
    restored = batch.passed(here, lambda item: _restore(open_dir, item, todo[item.path]))
    is_restored = {item.path for item in restored}
    unrestored = [item for item in moved if item.path not in is_restored]
    if unrestored:
        # Renamed back to its id, where the file names its topic: undone, not half done.
        returning = _Batch(open_dir)
        returning.passed_by_prefix(
            unrestored, lambda prefix, item: _rename(open_dir, open_dir.top, item.place, prefix, item.path)
        )
        for item in unrestored:
            _forget_new(open_dir, item)
    left = [item for item in restored if todo[item.path].has_leftovers]
    if left:
        batch.sync()
        batch.passed(left, lambda item: _clear(open_dir, item))
    batch.sync()


def _prepare(open_dir: OpenLogDir, item: ToNames) -> _Back | None:
    """Write the old ``partition.metadata`` under its temporary name; return ``None`` if there is nothing to do."""
    path = f"{open_dir.log_dir}/{item.path}"
    with open_dir.parent_of(item.path) as (parent, name), parent.open(name) as directory:
        names = directory.names()
        has_leftovers = KEPT in names or NEW_METADATA in names
        found = read_metadata(directory)
        if not item.prefix and not is_ours(found.data, item.ref.topic):
            return _Back(None, False, True) if has_leftovers else None
        require_plain(directory)
        if found.data is None:
            raise RefusedError(
                path,
                why=Why.TOPIC_NAME_UNKNOWN,
                expected="the topic's name in partition.metadata",
                found="no such file",
                fix="the replica stays under its topic id",
            )
        metadata = partition_metadata.parse(found.data, f"{path}/{METADATA_FILE}")
        if metadata.topic_name != item.ref.topic or item.ref.topic_id not in (None, metadata.topic_id):
            raise RefusedError(
                path,
                why=Why.CHANGED,
                expected=f"topic {item.ref.topic} with id {item.ref.topic_id}",
                found=f"topic {metadata.topic_name} with id {metadata.topic_id}",
                fix="inspect its partition.metadata, then repeat the command",
            )
        original = original_of(directory, found, metadata.topic_id, is_kept=KEPT in names).original
        if original is None:
            return _Back(None, True, has_leftovers)
        if NEW_METADATA in names:
            directory.unlink(NEW_METADATA)
        put_new(open_dir, directory, original.data, found.owner or open_dir.owner.for_file(), original.mtime_ns)
        return _Back(original.data, True, KEPT in names)


def _restore(open_dir: OpenLogDir, item: ToNames, plan: _Back) -> None:
    if not plan.is_changed:
        return
    with open_dir.top.open(item.place) as directory:
        if plan.data is None:
            directory.unlink(METADATA_FILE)
        else:
            replace_metadata(directory, plan.data)


def _clear(open_dir: OpenLogDir, item: ToNames) -> None:
    with open_dir.top.open(item.place) as directory:
        clear(directory)


def _forget_new(open_dir: OpenLogDir, item: ToNames) -> None:
    with suppress(OSError), open_dir.parent_of(item.path) as (parent, name), parent.open(name) as directory:
        directory.unlink(NEW_METADATA)


def remove_empty_prefixes(open_dir: OpenLogDir) -> tuple[str, ...]:
    """Remove the empty prefix directories, and make all changes of the disk durable.

    Every lock of the broker is held.

    Returns:
        The prefix directories that are not empty, sorted: no stock broker starts on them.

    Raises:
        ReadOnlyDiskError: a sync failed or the disk is sick.
        OSError: the log dir cannot be listed.
    """
    with calling(open_dir.top):
        found = [
            name for name in open_dir.top.names() if is_prefix(name) and open_dir.top.stat(name).type is Type.DIRECTORY
        ]
        left = tuple(name for name in found if not _remove_empty(open_dir, name))
        with syncing(open_dir.top):
            open_dir.top.sync_disk()
    return left
