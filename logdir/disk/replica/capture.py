"""Capture: hard-link a ``-delete`` or ``-stray`` directory before the running broker removes it, without changing it.

The directory is listed, linked file by file into a directory under ``incoming/`` whose marker is already durable, and
listed again. Both listings and the links must agree in names, sizes and inodes, include ``partition.metadata``, and
lack no part of the log. Only then the capture is synced, gets its deadline, and is renamed to ``deleting/``. Otherwise
it stays under ``incoming/`` with its captured marker: *partial*, kept and never restorable.

Of several directories all are linked before the first file of a replica is synced: a broker removes what it deletes
after a fixed time, and links take a fraction of the time of syncs. Their markers are all written before the first is
synced: on a busy disk each sync waits for a commit of the journal, and one commit then serves them all. Files are
synced by ``fsync``: ``syncfs`` would wait for all that the broker writes meanwhile, too.

Repeatable: a second capture of a directory continues the first by its inodes, unless that was claimed for removal.

Not here: the choice of directories (``decide.capture``), of which replica they are (``capture_item``), which capture is
continued (``earlier_capture``), operations on a capture (``adopt``, ``export``, ``purge``).

Spec: design §2 law 4, §3.3; kafka-behaviour §3.2, §10.5; attacks A17, A23, A33; reliability §4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from logdir.clock import Instant
from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import calling, is_sick
from logdir.disk.kernel.fanout import for_each
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.unique_name import free_name
from logdir.disk.replica.capture_item import CapturedReplica, CaptureItem, SharedEntries, first_marker, parts_of
from logdir.disk.replica.captured_files import Files, complaint, is_within, look
from logdir.disk.replica.earlier_capture import EarlierCaptures
from logdir.disk.replica.hardlink_dir import begin_marked, drop, link, sync_marked
from logdir.disk.replica.outcome import Outcome, Result, done, undone
from logdir.disk.replica.replica_dir import NEW_MARKER, readable_marker, rename
from logdir.disk.replica.staging import as_error, rewrite_marker
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, RefusedError
from logdir.formats.own.replica_marker import FILE_NAME, ReplicaMarker
from logdir.paths import DELETING, INCOMING, SEGMENT_SUFFIX
from logdir.refusal_slug import Why

_ROUNDS = 4
"""How often a changing directory is listed again before its files are kept as a partial capture."""


class _Known(NamedTuple):
    """What is read once for several captures of a log dir."""

    earlier: EarlierCaptures
    entries: SharedEntries


class _Begun(NamedTuple):
    """A directory whose capture has its marker. It has no links yet, unless an earlier process began it."""

    name: str
    """Under ``incoming/``."""
    replica: CapturedReplica
    source: Directory
    seen: Files
    """What was in it at first."""


class Linked(NamedTuple):
    """A directory of which every file that could be linked is: whatever its broker removes now, it has what it has."""

    name: str
    """Under ``incoming/``."""
    replica: CapturedReplica
    begun: ReplicaMarker | None
    """The marker that it has there; ``None``: it cannot be read."""
    lack: RefusedError | None = None
    """Why it is partial; ``None``: it will be whole."""


def capture(
    open_dir: OpenLogDir, items: Sequence[CaptureItem], now: Callable[[], Instant], threads: int = 1
) -> list[Outcome]:
    """Capture directories; the owner lock is held, the broker may run.

    All are linked before the first file of a replica is synced.

    Args:
        open_dir: Their log dir.
        items: Directories to capture, each once; those the broker removes first come first.
        now: The clocks; a deadline counts from the instant at which the capture was durable.
        threads: How many directories are captured at a time.

    Returns:
        One outcome per item, in order. Done: ``place`` is under ``deleting/``; undone: nothing is left, or a *partial*
        capture.

    Raises:
        ReadOnlyDiskError: a sync failed or the disk is sick; a second capture shows the state of each.
        OSError: the work root cannot be listed, or a checkpoint file not be read; nothing was captured.
    """
    begun = link_up(open_dir, items, now, threads)
    ended = iter(complete(open_dir, [one for one in begun if isinstance(one, Linked)], now, threads))
    return [next(ended) if isinstance(one, Linked) else one for one in begun]


def link_up(
    open_dir: OpenLogDir, items: Sequence[CaptureItem], now: Callable[[], Instant], threads: int = 1
) -> list[Linked | Outcome]:
    """Begin the capture of directories, as ``capture``: a broker may remove what is linked; ``complete`` keeps it.

    Every marker is durable before the first link is made.

    Args:
        open_dir: Their log dir.
        items: Some dozens at most: each stays open until all are linked.
        now: As ``capture``.
        threads: As ``capture``.

    Returns:
        For each item what is to be completed, or its outcome if there is no more to do.

    Raises:
        ReadOnlyDiskError, OSError: as ``capture``.
    """
    found: dict[str, Linked | Outcome] = {}
    begun: dict[str, _Begun] = {}

    def for_all(some: Iterable[CaptureItem], step: Callable[[CaptureItem], None]) -> None:
        def one(item: CaptureItem) -> None:
            try:
                with calling(open_dir.top):
                    step(item)
            except (LogDirError, OSError) as error:
                begun.pop(item.name, None)
                found[item.name] = undone(item.name, _ours(open_dir, item, error))

        for_each(some, one, threads)

    with calling(open_dir.top):
        known = _Known(EarlierCaptures.of(open_dir), SharedEntries.read(open_dir, items))
    with ExitStack() as opened:

        def begin(item: CaptureItem) -> None:
            source = opened.enter_context(open_dir.top.open(item.name))
            one = _begin(open_dir, item, source, known, now)
            if isinstance(one, Outcome):
                found[item.name] = one
            else:
                begun[item.name] = one

        def go_on(item: CaptureItem) -> None:
            found[item.name] = _link_up(open_dir, begun[item.name])

        for_all(items, begin)
        for_all(
            [item for item in items if item.name in begun], lambda item: sync_marked(open_dir, begun[item.name].name)
        )
        if begun:
            with syncing(open_dir.incoming):
                open_dir.incoming.sync()
        for_all([item for item in items if item.name in begun], go_on)
    return [found[item.name] for item in items]


def complete(
    open_dir: OpenLogDir, linked: Sequence[Linked], now: Callable[[], Instant], threads: int = 1
) -> list[Outcome]:
    """Complete captures that were begun with ``link_up``; return their outcomes, as ``capture``.

    Raises:
        ReadOnlyDiskError: as ``capture``.
    """
    outcomes: dict[str, Outcome] = {}

    def one(begun: Linked) -> None:
        item = begun.replica.item
        try:
            with calling(open_dir.top):
                outcomes[item.name] = _complete(open_dir, begun, now)
        except (LogDirError, OSError) as error:
            outcomes[item.name] = undone(item.name, _ours(open_dir, item, error))

    for_each(linked, one, threads)
    return [outcomes[one.replica.item.name] for one in linked]


def _ours(open_dir: OpenLogDir, item: CaptureItem, error: LogDirError | OSError) -> LogDirError:
    return error if isinstance(error, LogDirError) else as_error(f"{open_dir.log_dir}/{item.name}", error)


def _begin(
    open_dir: OpenLogDir, item: CaptureItem, source: Directory, known: _Known, now: Callable[[], Instant]
) -> _Begun | Outcome:
    """Find the capture that an earlier process began, or make a directory for one, not durable yet."""
    parts = parts_of(open_dir, item)
    seen = look(source)
    replica = CapturedReplica.of(item, parts, source)
    found = known.earlier.find(open_dir, item.name, replica.place, seen)
    if found is not None and found.startswith(f"{DELETING}/"):
        # The process that renamed it may have been killed before the rename was durable.
        with syncing(open_dir.deleting):
            open_dir.deleting.sync()
        with syncing(open_dir.incoming):
            open_dir.incoming.sync()
        return done(item.name, found)
    if not any(name.endswith(SEGMENT_SUFFIX) for name in seen):
        raise RefusedError(
            f"{open_dir.log_dir}/{item.name}",
            why=Why.NO_SEGMENTS,
            expected="segments",
            found="no segment: it is empty, or all but removed by its broker",
            fix="there is nothing to keep",
        )
    name = found or begin_marked(open_dir, replica.place, partial(first_marker, open_dir, replica, known.entries, now))
    return _Begun(name, replica, source, seen)


def _link_up(open_dir: OpenLogDir, capture: _Begun) -> Linked | Outcome:
    name, replica = capture.name, capture.replica
    item = replica.item
    path = f"{open_dir.log_dir}/{item.name}"
    with open_dir.incoming.open(name) as target:
        try:
            begun = readable_marker(target)
            problem = _link_all(open_dir, capture, target, begun)
            if problem is None:
                return Linked(name, replica, begun)
        except OSError as error:
            if is_sick(error):
                raise
            return _give_up(open_dir, name, target, item, as_error(path, error))
        why = RefusedError(
            path, why=Why.PARTIAL_CAPTURE, expected="a complete replica", found=problem, fix=_PARTIAL.format(name)
        )
        if not any(file.endswith(SEGMENT_SUFFIX) for file in look(target)):
            return _give_up(open_dir, name, target, item, why)
    return Linked(name, replica, begun, why)


def _complete(open_dir: OpenLogDir, linked: Linked, now: Callable[[], Instant]) -> Outcome:
    item = linked.replica.item
    with open_dir.incoming.open(linked.name) as target:
        if linked.lack is not None:
            _sync_files(target)
            with syncing(target):
                target.sync()
            return _partial(item, linked.name, linked.lack)
        try:
            _sync_files(target)
            place = _commit(open_dir, linked, target, now)
        except OSError as error:
            if is_sick(error):
                raise
            return _give_up(open_dir, linked.name, target, item, as_error(f"{open_dir.log_dir}/{item.name}", error))
    return done(item.name, f"{DELETING}/{place}")


_PARTIAL = "what there was is kept as partial in incoming/{}; it can be exported, not restored"


def _partial(item: CaptureItem, name: str, error: LogDirError) -> Outcome:
    return Outcome(path=item.name, result=Result.UNDONE, place=f"{INCOMING}/{name}", error=error)


def _link_all(open_dir: OpenLogDir, capture: _Begun, target: Directory, begun: ReplicaMarker | None) -> str | None:
    """Link files until the directory stops changing; return what a whole replica lacks, ``None`` if nothing.

    Args:
        open_dir: Its log dir.
        capture: What is captured: a file of its first listing that has vanished counts as missing.
        target: The directory for the links.
        begun: The marker of its capture; ``None``: it has none that can be read.
    """
    source, seen, replica = capture.source, capture.seen, capture.replica
    seen_start = replica.item.log_start_seen if replica.is_topic_sure else None
    starts = [None if begun is None else begun.checkpoints.log_start, seen_start]
    start = next((one for one in starts if one is not None), None)
    problem = None
    held = look(target)
    for _ in range(_ROUNDS):
        for name, (inode, _) in seen.items():
            _link(open_dir, source, target, name, inode, held.get(name))
        held = look(target)
        after = look(source)
        problem = complaint(target, seen, held, after, log_start=start, is_tiered=replica.item.tiered)
        if problem is None or not after:
            break
        seen = {**seen, **after}
    return problem


def _link(
    open_dir: OpenLogDir, source: Directory, target: Directory, name: str, inode: int, held: tuple[int, int] | None
) -> None:
    if held is not None:
        if held[0] == inode:
            return
        # A broker replaces its small files by new ones of the same name: the later one counts.
        target.unlink(name)
    try:
        link(open_dir, source, name, target)
    except FileNotFoundError:
        return  # The next listing shows what that means.
    except FileExistsError:  # A listing that lagged, as on btrfs, did not show it.
        if target.stat(name).inode != inode:
            raise


def _sync_files(target: Directory) -> None:
    # The broker may not have synced its writes, and may remove its names before a sync.
    names = [name for name in target.names() if name not in (FILE_NAME, NEW_MARKER)]
    with syncing(target):
        target.sync_files(names)


def _commit(open_dir: OpenLogDir, linked: Linked, target: Directory, now: Callable[[], Instant]) -> str:
    name, replica, begun = linked.name, linked.replica, linked.begun
    # Since it was linked another may have got its name, after a purge.
    there = readable_marker(target)
    if begun is None or there != begun:
        is_read = begun is not None and there is not None
        raise RefusedError(
            f"{target.path}/{FILE_NAME}",
            why=Why.MARKER_UNUSABLE,
            expected="the marker of this capture",
            found="the marker of another capture" if is_read else "no marker that can be read",
            fix="nothing was removed; run logdirctl capture again, which begins a new copy",
        )
    instant = now()
    delay = replica.item.delay_ms if replica.is_deleted and replica.is_topic_sure else None
    points = begun.checkpoints
    seen = replica.item.log_start_seen
    if points.log_start is None and seen is not None and replica.is_topic_sure and is_within(target.names(), seen):
        points = replace(points, log_start=seen)
    marker = replace(
        begun,
        topic=replica.topic,
        staged_at_ms=instant.wall_ms,
        delay_ms=delay,
        boot_id=instant.boot_id,
        boottime_ms=instant.boottime_ms,
        checkpoints=points,
        tiered=begun.tiered or replica.item.tiered,
    )
    rewrite_marker(open_dir, target, marker)
    place = free_name(
        open_dir.deleting, replica.place, lambda to: rename(open_dir, open_dir.incoming, name, open_dir.deleting, to)
    )
    with syncing(open_dir.deleting):
        open_dir.deleting.sync()
    with syncing(open_dir.incoming):
        open_dir.incoming.sync()
    return place


def _give_up(open_dir: OpenLogDir, name: str, target: Directory, item: CaptureItem, error: LogDirError) -> Outcome:
    """Remove the links, unless a link has become the last name of its data."""
    try:
        if drop(open_dir, name):
            return undone(item.name, error)
    except (OSError, RefusedError) as failed:
        if isinstance(failed, OSError) and is_sick(failed):
            raise
    with syncing(target):
        target.sync()
    return _partial(item, name, error)
