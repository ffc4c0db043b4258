"""Scanning one log dir, and the choice of partition directories to open.

Spec: design §5 "A port per log dir".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from logdir.decide.selector import parse
from logdir.formats.own.inventory import Kind
from logdir.observe import relook
from logdir.observe.entry import ScannedEntry
from logdir.observe.facts import LogDirFacts
from logdir.observe.relook import LookedAgain
from logdir.observe.replicas import look
from logdir.worker.state import WorkerState
from logdir.worker_call import worker_call


class Deep(NamedTuple):
    """Which partition directories a scan opens; of the others, inode and unexpected entries are not known."""

    kinds: tuple[Kind, ...] = (Kind.LIVE,)
    paths: frozenset[str] | None = None
    """Only these, relative to the log dir; ``None``: all."""
    selector: str | None = None
    """Only directories that this selector may match; ``None``: all."""
    topic: str | None = None
    """Only replicas of this topic; ``None``: of any."""

    def opens(self, entry: ScannedEntry) -> bool:
        """Whether an entry is opened."""
        if entry.kind not in self.kinds or (ref := entry.ref) is None:
            return False
        if self.paths is not None and entry.name not in self.paths:
            return False
        if self.topic is not None and ref.topic != self.topic:
            return False
        return self.selector is None or _parsed(self.selector).may_find(ref.topic, ref.topic_id, ref.partition)


_parsed = cache(parse)

EVERY_LIVE: Final = Deep()
NOTHING: Final = Deep(kinds=())
"""Opens no replica in the log dir: enough for a listing of staged replicas."""


@worker_call
def look_deep(log_dir: str, deep: Deep) -> LogDirFacts:
    """Scan one log dir as ``observe.replicas.look``; open the partition directories that ``deep`` chooses."""
    return look(log_dir, closely=deep.opens)


@worker_call
def look_again(opened: WorkerState, log_dir: str, since: int, paths: Sequence[str], deep: Deep) -> LookedAgain:
    """Scan one log dir incrementally, as ``observe.relook.look_again``."""
    return relook.look_again(opened.looks, log_dir, since, paths, deep.opens)
