"""Operations on replicas of one log dir in a form that can be sent to a worker: every argument is a value.

Not here: the operations themselves (``logdir.disk``).

Spec: design §5 "A port per log dir".
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import ClassVar, Final, NamedTuple

from logdir import clock
from logdir.decide.staged.purge import ClaimLimit, claim_limit_of
from logdir.disk.kernel.atomic_directory import require_place
from logdir.disk.kernel.failure import as_disk_error, disk_error
from logdir.disk.kernel.host import HostDisk
from logdir.disk.kernel.in_use import in_use
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.replica import capture as disk_capture
from logdir.disk.replica.capture import Linked
from logdir.disk.replica.capture_item import CaptureItem
from logdir.disk.replica.export import export
from logdir.disk.replica.outcome import Outcome, done, undone
from logdir.disk.replica.purge import Listing, claim_all, remove_all
from logdir.disk.replica.rate_limiter import RateLimiter
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.true_root import open_true_root
from logdir.errors import DiskError, LogDirError, Problem, ReadOnlyDiskError, RefusedError, StateError
from logdir.formats.own.replica_marker import ReplicaMarker
from logdir.observe.outside import KeptFree
from logdir.worker.state import WorkerState
from logdir.worker_call import worker_call

LINK_MS: Final = 1000
"""After so long no other batch of directories is linked: a broker removes those of other log dirs meanwhile."""
COMPLETE_MS: Final = 500
"""After so long no other batch of captures is completed: what came meanwhile has to be linked first."""
LINKED_FIRST: Final = 8
LINKED_AT_ONCE: Final = 32
"""Captures whose markers are made durable together, before their links: in the first batch of a call, and at most."""
COMPLETED_AT_ONCE: Final = 8
"""Captures that are completed together, before the clock is read again."""
CAPTURED_AT_ONCE: Final = 4
"""Parallel captures on one log dir: a sync is the disk's time."""


class PurgePausedError(StateError):
    """A removal was stopped between two steps; the replica is still claimed."""

    code: ClassVar[str] = "purge-paused"


class PurgeBatch(NamedTuple):
    """Staged replicas of one log dir that are purged together."""

    claimed: tuple[str, ...]
    """Names under ``deleting/`` that were claimed before; only their removal is finished."""
    markers: Mapping[str, ReplicaMarker]
    """By name under ``deleting/``: the marker because of which the replica may be purged."""
    bytes_per_second: int
    """Rate limit; 0: none."""
    files_per_second: int
    budget_ms: int = 0
    """After so long the rest is left claimed; 0: no limit."""

    @property
    def room(self) -> ClaimLimit:
        """Return how much may be claimed at a time."""
        return claim_limit_of(self.bytes_per_second, self.files_per_second)


class PurgedBatch(NamedTuple):
    """The result of purging a ``PurgeBatch``."""

    outcomes: Mapping[str, Outcome]
    """By name; a missing name was not touched, or its disk failed."""
    error: DiskError | None
    """Why the disk failed; ``None``: it did not."""


@worker_call
def purge(open_dir: OpenLogDir, batch: PurgeBatch) -> PurgedBatch:
    """Finish replicas claimed before; otherwise claim as many as the limit allows, and remove them."""
    outcomes: dict[str, Outcome] = {}
    try:
        _purge(open_dir, batch, outcomes)
    except ReadOnlyDiskError as error:
        return PurgedBatch(outcomes, error)
    except OSError as error:
        return PurgedBatch(outcomes, disk_error(open_dir.log_dir, error))
    return PurgedBatch(outcomes, None)


def _purge(open_dir: OpenLogDir, batch: PurgeBatch, outcomes: dict[str, Outcome]) -> None:
    seen: dict[str, Listing] = {}
    claimed = {name: name for name in batch.claimed}
    if not claimed:
        found = claim_all(open_dir, batch.markers, room=batch.room, seen=seen)
        for name, outcome in zip(batch.markers, found, strict=False):
            if outcome.place is None:
                outcomes[name] = outcome
            else:
                claimed[name] = os.path.basename(outcome.place)
    pace = RateLimiter(batch.bytes_per_second, batch.files_per_second)
    throttle = _Budget(pace, clock.monotonic_ms() + batch.budget_ms) if batch.budget_ms else pace
    removed = remove_all(open_dir, tuple(claimed.values()), throttle, in_use=in_use, seen=seen, at_once=pace.at_once)
    outcomes |= dict(zip(claimed, removed, strict=True))


class _Budget:
    """A rate limit that ends the removals between two of their steps once their time is over.

    At least one step is made, however long the claims took: else a slow disk would never get to its end.
    """

    def __init__(self, pace: RateLimiter, until_ms: int) -> None:
        self._pace, self._until_ms = pace, until_ms
        self._has_begun = False

    def __call__(self, freed_bytes: int, files: int) -> None:
        self._pace(freed_bytes, files)
        self._has_begun = self._has_begun or files > 0 or freed_bytes > 0
        if self._has_begun and clock.monotonic_ms() >= self._until_ms:
            raise PurgePausedError(
                "purge",
                expected="a removal that ends within its time",
                found="more to remove",
                fix="it is still claimed, and the next purge goes on with it",
            )


@worker_call
def inodes_alone(open_dir: OpenLogDir, name: str) -> int | None:
    """Return how many inodes the removal of a staged replica frees.

    Args:
        open_dir: Its log dir.
        name: Its name under ``deleting/``.

    Returns:
        Those of its files and of its directory; ``None``: a file is linked elsewhere, too, so that its removal frees
        less than its bytes.
    """
    with open_dir.deleting.open(name) as directory:
        files = directory.names()
        return None if any(directory.stat(file).links != 1 for file in files) else len(files) + 1


class CaptureStep(NamedTuple):
    """A part of the captures of one log dir."""

    begun: int
    """How many of the items, from the first on, were linked or have an outcome."""
    outcomes: tuple[Outcome, ...]
    """Of those that came to their end, also of earlier steps; ``path`` is the name of the directory."""
    linked: int
    """How many are to be completed by later steps."""


@worker_call
def capture_step(opened: WorkerState, items: tuple[CaptureItem, ...], *, is_all: bool) -> CaptureStep:
    """Link directories of one log dir, and complete what is linked if there is time, as ``disk.replica.capture``.

    On a slow disk not all of it is done, so that the other log dirs are looked at again.

    Args:
        opened: The worker's log dir.
        items: Directories to link, each once.
        is_all: Whether linked captures may be completed: no log dir has, or is soon expected to have, others to link.

    Raises:
        LogDirError, OSError: as ``disk.replica.capture``; what is linked is found by a later look, or by recovery.
    """
    try:
        return _capture_step(opened, items, is_all=is_all)
    except (LogDirError, OSError):
        opened.linked.clear()  # The asker counts on none of them.
        raise


def _capture_step(opened: WorkerState, items: tuple[CaptureItem, ...], *, is_all: bool) -> CaptureStep:
    outcomes: list[Outcome] = []
    begun, at_once, until_ms = 0, LINKED_FIRST, clock.monotonic_ms() + LINK_MS
    while begun < len(items) and (not begun or clock.monotonic_ms() < until_ms):
        some = items[begun : begun + at_once]
        begun += len(some)
        # A disk whose syncs take long is asked for few at a time, and the others wait for it less.
        at_once = min(2 * at_once, LINKED_AT_ONCE)
        for item, one in zip(some, _link_up(opened.open_dir, some), strict=True):
            if isinstance(one, Outcome):
                outcomes.append(one)
            else:
                opened.linked[item.name] = one
    until_ms = clock.monotonic_ms() + COMPLETE_MS
    while is_all and begun == len(items) and opened.linked:
        linked = [opened.linked.pop(name) for name in tuple(islice(opened.linked, COMPLETED_AT_ONCE))]
        outcomes += disk_capture.complete(opened.open_dir, linked, read_instant, CAPTURED_AT_ONCE)
        if clock.monotonic_ms() >= until_ms:
            break
    return CaptureStep(begun, tuple(outcomes), len(opened.linked))


def _link_up(open_dir: OpenLogDir, items: tuple[CaptureItem, ...]) -> Sequence[Linked | Outcome]:
    """Link directories; if the work root or a checkpoint file cannot be read, what was linked is still completed."""
    try:
        return disk_capture.link_up(open_dir, items, read_instant, CAPTURED_AT_ONCE)
    except ReadOnlyDiskError:
        raise
    except (LogDirError, OSError) as error:
        why = error if isinstance(error, LogDirError) else as_disk_error(open_dir.log_dir, error)
        return [undone(item.name, why) for item in items]


@worker_call
def capture(open_dir: OpenLogDir, item: CaptureItem) -> Outcome:
    """Capture one directory with the current clocks, as ``disk.replica.capture.capture``."""
    (outcome,) = disk_capture.capture(open_dir, [item], read_instant)
    return outcome


@worker_call
def export_aside(log_dir: str, place: str, destination: str, places: tuple[KeptFree, ...]) -> Outcome:
    """Export one replica, as ``disk.replica.export.export``, from a process that has not opened its log dir.

    If that fails, the outcome is ``undone`` with the error.

    Raises:
        ReadOnlyDiskError: the disk cannot be read.
        LogDirError: as ``open_true_root``.
    """
    with open_true_root(HostDisk(), log_dir, is_start_block_allowed=True) as root:
        try:
            export(root.open_dir, place, destination, places)
        except ReadOnlyDiskError:
            raise
        except LogDirError as error:
            return undone(place, error)
    return done(place, place)


@worker_call
def place_problems(destinations: tuple[str, ...], places: tuple[KeptFree, ...]) -> list[Problem | None]:
    """Return the problem of each destination, in order; ``None``: a copy can be made there. Accesses no log dir."""
    return [_place_problem(destination, places) for destination in destinations]


def _place_problem(destination: str, places: tuple[KeptFree, ...]) -> Problem | None:
    try:
        require_place(destination, places)
    except RefusedError as error:
        return error.problem()
    return None
