"""What lies on each disk by kind, the undo window, and how far the metadata log was followed, for the status.

All of it comes from facts that the daemon has anyway: nothing here reads a disk. A start, a rescan each hour and a
request that was applied read every log dir in full; a capture or a purge reads what came and went. So the number of
directories is always that of the last listing, and the bytes of those that stay are from the last full reading: a
broker writes into its live replicas all the time.

Used by the thread of changes alone; outlives a session. What has not changed is not counted again: that is known by
the identity of the tuples, which a listing without a change leaves as they are.

Not here: what the figures look like (``report.figures``), when staged replicas are due (``daemon.look``).

Spec: docs/json.md, ``status``; docs/metrics.md; KIP-631, "New Metrics", ``MetadataLag``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from logdir.clock import Instant
from logdir.cluster.image import Image, Source
from logdir.daemon.look import Look, Staged
from logdir.daemon.report.figures import MOST_WINDOWS, KindFigures, UndoWindow
from logdir.daemon.report.status import LogDirStatus
from logdir.formats.own.inventory import Kind
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts, Replica, StagedReplica
from logdir.reasons import Reason

_Key = tuple[str | None, TopicId | None, Reason | None, bool]
"""Of a window: topic, its id, why it was staged, and whether it is held."""


class _Kinds(NamedTuple):
    """What was counted of one log dir, and of what."""

    replicas: tuple[Replica, ...]
    staged: tuple[StagedReplica, ...]
    kinds: tuple[KindFigures, ...]
    read_at_ms: int | None


class Group(NamedTuple):
    """The staged replicas of one window."""

    replicas: int
    log_bytes: int
    log_dirs: tuple[str, ...]
    staged_at_ms: int | None
    """Wall clock: the earliest."""
    due_ms: int | None
    """Boot-time clock: the earliest; ``None``: they are held."""


class Figures:
    """The figures of one daemon."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.metadata_lag: int | None = None
        """Records of the metadata log that were not followed, when it was read last; ``None``: not known."""
        self._kinds: dict[str, _Kinds] = {}
        self._staged: dict[str, tuple[Staged, dict[_Key, Group]]] = {}
        self._windows: list[tuple[_Key, Group]] = []
        """Those that go first, first."""

    def with_kinds(
        self, log_dirs: Iterable[LogDirStatus], facts: Iterable[LogDirFacts], read_at_ms: Mapping[str, int]
    ) -> tuple[LogDirStatus, ...]:
        """Return log dirs with what lies there; of one that could not be read what lay there when it was read last.

        Args:
            log_dirs: Every configured log dir.
            facts: Facts of every configured log dir.
            read_at_ms: When each was read in full in this session (wall clock).
        """
        for one in facts:
            known = self._kinds.get(one.log_dir)
            if one.problem is not None:
                continue
            is_same = known is not None and known.replicas is one.replicas and known.staged is one.staged
            kinds = known.kinds if known is not None and is_same else kinds_of(one.replicas, one.staged)
            before_ms = None if known is None else known.read_at_ms
            now_ms = read_at_ms.get(one.log_dir, before_ms)
            self._kinds[one.log_dir] = _Kinds(one.replicas, one.staged, kinds, now_ms)
        return tuple(self._filled(one) for one in log_dirs)

    def _filled(self, one: LogDirStatus) -> LogDirStatus:
        known = self._kinds.get(one.log_dir)
        return one if known is None else replace(one, kinds=known.kinds, read_at_ms=known.read_at_ms)

    def windows(self, look: Look, most: int = MOST_WINDOWS) -> tuple[tuple[UndoWindow, ...], int]:
        """Return what can be undone, and how many more such windows there are.

        Args:
            look: At all log dirs.
            most: How many are returned.

        Returns:
            Those that go first, first; then held ones, the oldest first. As in the status of a log dir, what could
            have gone already goes at the instant of the look.
        """
        known = {log_dir: self._groups(log_dir, staged) for log_dir, staged in look.staged.items() if staged.items}
        if known.keys() != self._staged.keys() or any(one is not self._staged[name] for name, one in known.items()):
            self._windows = sorted(_together(groups for _, groups in known.values()).items(), key=_order)
            self._staged = known
        shown = tuple(_window(key, group, look.now) for key, group in self._windows[:most])
        return shown, len(self._windows) - len(shown)

    def _groups(self, log_dir: str, staged: Staged) -> tuple[Staged, dict[_Key, Group]]:
        known = self._staged.get(log_dir)
        if known is not None and known[0].items is staged.items and known[0].deadlines == staged.deadlines:
            return known
        return staged, groups_of(log_dir, staged)

    def note_log(self, followed: Image | None, ends: Iterable[Image], high_watermark: int | None) -> None:
        """Note how far the metadata log was followed.

        Args:
            followed: The image of what is known to be committed; ``None``: no log could be used, and nothing changes.
            ends: Images of metadata logs to their ends.
            high_watermark: How far the quorum has committed; ``None``: not known.
        """
        if followed is not None and followed.source is Source.METADATA_LOG:
            reached = [one.offset for one in ends if one.origin == followed.origin]
            reached += [] if high_watermark is None else [high_watermark]
            if reached:
                self.note_offset(followed.offset, max(reached))

    def note_offset(self, followed: int, end: int) -> None:
        """Note the offset up to which the metadata log was followed, and that at which it ends or is committed."""
        self.metadata_lag = max(0, end - followed)


def kinds_of(replicas: Sequence[Replica], staged: Sequence[StagedReplica]) -> tuple[KindFigures, ...]:
    """Return what lies in one log dir and its work root, in the order of ``Kind``; a kind of which there is nothing is
    left out.
    """
    counts: dict[Kind, list[int]] = {}
    kind: Kind | None = None
    found = [0, 0]
    every: Iterable[Replica | StagedReplica] = chain(replicas, staged)
    for one in every:
        if one.kind is not kind:  # To look up a member of an enumeration costs more than all else here.
            kind = one.kind
            found = counts.setdefault(kind, [0, 0])
        found[0] += 1
        found[1] += one.log_bytes or 0
    return tuple(
        KindFigures(kind=one, entries=counts[one][0], log_bytes=counts[one][1]) for one in Kind if one in counts
    )


def groups_of(log_dir: str, staged: Staged) -> dict[_Key, Group]:
    """Return the staged replicas of one log dir by the window that they belong to."""
    found: dict[_Key, Group] = {}
    for item, due_ms in staged.timed:
        marker = item.marker
        key = item.ref.topic, item.ref.topic_id, None if marker is None else marker.reason, due_ms is None
        staged_at_ms = None if marker is None else marker.staged_at_ms
        one = Group(1, item.log_bytes or 0, (log_dir,), staged_at_ms, due_ms)
        before = found.get(key)
        found[key] = one if before is None else _sum(before, one)
    return found


def _sum(one: Group, other: Group) -> Group:
    """Return two groups together, which are of the same log dir, or of log dirs in their order."""
    return Group(
        one.replicas + other.replicas,
        one.log_bytes + other.log_bytes,
        one.log_dirs if other.log_dirs == one.log_dirs else one.log_dirs + other.log_dirs,
        _earlier(one.staged_at_ms, other.staged_at_ms),
        _earlier(one.due_ms, other.due_ms),
    )


def _together(parts: Iterable[Mapping[_Key, Group]]) -> dict[_Key, Group]:
    """Return the groups of several log dirs together."""
    found: dict[_Key, Group] = {}
    for groups in parts:
        for key, group in groups.items():
            before = found.get(key)
            found[key] = group if before is None else _sum(before, group)
    return found


def _order(one: tuple[_Key, Group]) -> tuple[bool, int, str, str]:
    (topic, topic_id, _, is_held), group = one
    at_ms = group.staged_at_ms if is_held else group.due_ms
    return is_held, at_ms or 0, topic or "", "" if topic_id is None else str(topic_id)


def _window(key: _Key, group: Group, now: Instant) -> UndoWindow:
    topic, topic_id, reason, _ = key
    due_ms = group.due_ms
    return UndoWindow(
        topic=topic,
        topic_id=topic_id,
        reason=reason,
        replicas=group.replicas,
        log_bytes=group.log_bytes,
        log_dirs=group.log_dirs,
        staged_at_ms=group.staged_at_ms,
        due_ms=None if due_ms is None else now.wall_ms + max(0, due_ms - now.boottime_ms),
    )


def _earlier(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
