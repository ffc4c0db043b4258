"""Wrong functions that are put around right ones, each for one seeded bug.

Each is told the right one first, then what that is told.

Not here: bugs that leave something out or move it (``seeded.drop`` and its like say that in a word).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from logdir.clock import Instant
from logdir.decide.layout.action import Decision, ToIds
from logdir.decide.staged.deadline import Verdict
from logdir.disk.kernel import small_file
from logdir.disk.kernel.calls import Directory, Owner
from logdir.disk.record import start_block
from logdir.disk.replica.outcome import Outcome, done
from logdir.disk.replica.relayout_metadata import replace_metadata, with_topic
from logdir.disk.replica.staging import _write_marker
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError
from logdir.formats.own import start_block_file
from logdir.formats.own.replica_marker import FILE_NAME, ReplicaMarker, render

_NOBODY = Owner(0, 0, 0o600)


# Staging, holding, purging.


def marked_late(
    real: Callable[..., str], open_dir: OpenLogDir, parent: Directory, name: str, marker: ReplicaMarker
) -> str:
    """Rename, and only then write the marker."""
    place = real(open_dir, parent, name, marker)
    with open_dir.deleting.open(place) as late:
        _write_marker(open_dir, late, FILE_NAME, render(marker))
        late.sync_file(FILE_NAME)
        late.sync()
    return place


def marked_later(
    real: Callable[..., str], open_dir: OpenLogDir, parent: Directory, name: str, marker: ReplicaMarker
) -> str:
    """Rename, sync, and only then write the marker: a kill comes in time."""
    place = real(open_dir, parent, name, marker)
    open_dir.deleting.sync()
    with open_dir.deleting.open(place) as late:
        _write_marker(open_dir, late, FILE_NAME, render(marker))
    return place


def said_to_be_done(
    real: Callable[..., Outcome], open_dir: OpenLogDir, path: str, error: LogDirError | OSError
) -> Outcome:
    """Report what was undone as done."""
    real(open_dir, path, error)  # a sick disk is raised all the same
    return done(path, None)


def replacing(real: Callable[..., None], open_dir: OpenLogDir, name: str, claimed: str) -> None:
    """Claim by a rename that replaces."""
    open_dir.deleting.replace(name, claimed)


def emptied_first(real: Callable[..., None], open_dir: OpenLogDir, name: str, claimed: str) -> None:
    """Remove what is in it, and only then claim it."""
    with open_dir.deleting.open(name) as directory:
        for inner in directory.names():
            if inner != FILE_NAME:
                directory.unlink(inner)
    open_dir.deleting.sync()
    real(open_dir, name, claimed)


def timed_by_change(real: Callable[..., ReplicaMarker | None], directory: Directory) -> ReplicaMarker | None:
    """Take the deadline from the times of change of files."""
    said = real(directory)
    if said is None:
        return None
    changed_ms = min(directory.stat(name).mtime_ns for name in directory.names()) // 10**6
    return replace(said, boottime_ms=said.boottime_ms - said.staged_at_ms + changed_ms)


def timed_by_change_in_boot(real: Callable[..., ReplicaMarker | None], directory: Directory) -> ReplicaMarker | None:
    """Do the same, but count nothing from before the boot: such a marker can be written."""
    said = timed_by_change(real, directory)
    return None if said is None else replace(said, boottime_ms=max(0, said.boottime_ms))


def due_early(real: Callable[..., Verdict], marker: ReplicaMarker, heartbeat: object, now: Instant) -> Verdict:
    """Call due what is due in eleven days."""
    return real(marker, heartbeat, now._replace(boottime_ms=now.boottime_ms + 10**9))


# Calls of the kernel.


def slowly(real: Callable[..., None], *arguments: object) -> None:
    """Rename as a slow disk does."""
    time.sleep(0.03)
    real(*arguments)


# Small files and records.


def of_nobody(
    real: Callable[..., None], directory: Directory, name: str, data: bytes, owner: Owner, work: Directory
) -> None:
    """Write a file that belongs to the process."""
    real(directory, name, data, _NOBODY, work)


def given_late(real: Callable[..., None], directory: Directory, name: str, data: bytes, **named: Any) -> None:
    """Give a file away only when it has its name."""
    real(directory, name, data, **named)
    directory.adopt(name, named["owner"])


def on_first_only(real: Callable[..., None], open_dirs: Sequence[OpenLogDir], record: object) -> None:
    """Count on one disk."""
    real(open_dirs[:1], record)


# Capture and adoption.


def not_committed(real: Callable[..., str], open_dir: OpenLogDir, name: str, *_: object) -> str:
    """Call it done where it was begun."""
    return name


def marker_first(
    real: Callable[..., bool], open_dir: OpenLogDir, directory: Directory, name: str, *, is_ours: bool
) -> bool:
    """Remove the marker before anything else of a directory of links."""
    left = directory.names()
    if FILE_NAME in left:
        real(open_dir, directory, FILE_NAME, is_ours=True)
    if name in left and name != FILE_NAME:
        return real(open_dir, directory, name, is_ours=is_ours)
    return True


# Start block and layout.


def put_at_once(real: Callable[..., None], open_dir: OpenLogDir, change: Any) -> None:
    """Block the start as soon as what is true is kept in this log dir."""
    real(open_dir, change)
    start_block._put(open_dir, change.changed, None, before=change.file.original)


def given_up_first(
    real: Callable[..., None], open_dir: OpenLogDir, data: bytes, mtime_ns: int | None, *, before: bytes
) -> None:
    """Give up what is kept before it is in its place again."""
    if mtime_ns is not None:
        small_file.remove_file(open_dir.top, start_block_file.FILE_NAME)
    real(open_dir, data, mtime_ns, before=before)


def final_with_finalizing(real: Callable[..., Decision], *arguments: object) -> Decision:
    """Say *final* of a log dir before *finalizing* is said of the next, the start block lifted already."""
    found = real(*arguments)
    begin, unblock, end = found.phases
    said: Iterable[Any] = sorted((*begin, *end), key=lambda one: one.log_dir)
    return replace(found, phases=(unblock, tuple(said)))


_LATE: Mapping[str, list[ToIds]] = {"items": []}


def topic_noted(real: Callable[..., None], open_dir: OpenLogDir, item: ToIds) -> None:
    """Say no topic yet."""
    _LATE["items"].append(item)


def topic_said_late(
    real: Callable[..., None], open_dir: OpenLogDir, parent: Directory, path: str, to: Directory, place: str
) -> None:
    """Move, and only then say the topic."""
    real(open_dir, parent, path, to, place)
    for item in [one for one in _LATE["items"] if (one.path, one.place) == (path, place)]:
        _LATE["items"].remove(item)
        with to.open(place.rpartition("/")[2]) as inner:
            replace_metadata(inner, with_topic(item.ref.topic_id, item.ref.topic))
