"""What a change leaves of a disk that hung under it, by the content and the identity of every file: nothing, or all.

A worker that was killed makes the call in which it sleeps, and no other. So a replica is where it was or where it is to
be, the same files with the same bytes; every other replica is as it was.

Spec: design §2 laws 1, 2, 3, §3.3; attack A40.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from enum import Enum, auto
from pathlib import Path
from typing import Final, NamedTuple

from logdir.formats.own import heartbeat_file, replica_marker, staging_limit_file
from tests.builders import TOPIC_ID
from tests.hung.rig import OLD, Broker

_ROOT: Final = "d2.logdird"
_HEARTBEAT, _LIMIT = f"{_ROOT}/heartbeat.json", f"{_ROOT}/staging-limit.json"
_MARKS: Final = (f"{_ROOT}/owner.lock", _HEARTBEAT, _LIMIT)
"""What a change writes of itself: who works there, when it ran, and what may be staged."""
_MARKER: Final = "replica.json"
_SUBJECTS: Final = {
    "stage": ("d2/pay-1", f"{_ROOT}/deleting/{TOPIC_ID}_1"),
    "staged purge": (f"{_ROOT}/deleting/{OLD}_1", f"{_ROOT}/deleting/{OLD}_1.purging"),
}
"""From where a replica goes, and where to; of a purge, the name under which it is removed."""


class Became(Enum):
    """What became of a change."""

    NOTHING = auto()
    """The replica is where it was; of a staging, maybe with the marker that is written before the move."""
    BEGUN = auto()
    """A purge has claimed the replica for good, and not removed all of it."""
    DONE = auto()


class Kept(NamedTuple):
    """One file or directory; of a directory size, time and bytes are those of its entries."""

    mode: int
    owner: tuple[int, int]
    inode: int
    size: int = 0
    mtime_ns: int = 0
    sha256: str = ""


Everything = Mapping[str, Kept]


def everything(broker: Broker) -> Everything:
    """Return what lies on the sick disk, by path from the folder that holds log dir and work root."""
    found = {}
    top = broker.sick.parent
    for one in (broker.sick, top / _ROOT):
        for base, _, files in os.walk(one):
            found[str(Path(base).relative_to(top))] = _kept(Path(base))
            for path in (Path(base, name) for name in files):
                stat, kept = path.stat(), _kept(path)
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path.relative_to(top))] = kept._replace(
                    size=stat.st_size, mtime_ns=stat.st_mtime_ns, sha256=digest
                )
    return found


def _kept(path: Path) -> Kept:
    stat = path.stat()
    return Kept(stat.st_mode, (stat.st_uid, stat.st_gid), stat.st_ino)


def _at(found: Everything, top: str) -> dict[str, Kept]:
    """Return a directory and all below it, by path from there."""
    return {path[len(top) :]: kept for path, kept in found.items() if path == top or path.startswith(f"{top}/")}


def became(command: str, before: Everything, broker: Broker) -> Became:
    """Judge what a change left of the sick disk, and return what became of it.

    Args:
        command: ``stage`` or ``staged purge``.
        before: What lay there.
        broker: The broker; the disk answers again.

    Raises:
        AssertionError: something is neither as it was nor as the change leaves it.
    """
    after = everything(broker)
    tops = _SUBJECTS[command]
    assert _rest(after, tops) == _rest(before, tops), "the change was about another replica"
    _require_marks(before, after, broker)
    replica = _at(before, tops[0])
    assert replica
    there, moved = (_at(after, top) for top in tops)
    assert not (there and moved), "it is there twice"
    if command == "stage":
        assert there or moved, "the replica is lost"
        found = moved or there
        assert {path: kept for path, kept in found.items() if path != f"/{_MARKER}"} == replica
        assert not moved or f"/{_MARKER}" in moved, "it was moved without what explains the move"
        if f"/{_MARKER}" in found:
            marker = Path(tops[1] if moved else tops[0], _MARKER)
            assert str(replica_marker.parse((broker.sick.parent / marker).read_bytes()).topic_id) == TOPIC_ID
        return Became.DONE if moved else Became.NOTHING
    if there:
        assert there == replica
        return Became.NOTHING
    assert moved.items() <= replica.items()
    return Became.BEGUN if moved else Became.DONE


def _rest(found: Everything, tops: tuple[str, ...]) -> dict[str, Kept]:
    """Return all but the replica of a change, and what the change writes of itself."""
    own = {*_MARKS, *(f"{path}.tmp" for path in _MARKS), "d2/.lock"}
    return {
        path: kept
        for path, kept in found.items()
        if path not in own and not any(path == top or path.startswith(f"{top}/") for top in tops)
    }


def _require_marks(before: Everything, after: Everything, broker: Broker) -> None:
    """Assert that what a change writes of itself is as it was, or new and whole."""
    assert after[_MARKS[0]]._replace(mtime_ns=0, sha256="") == before[_MARKS[0]]._replace(mtime_ns=0, sha256="")
    top = broker.sick.parent
    if after[_HEARTBEAT] != before[_HEARTBEAT]:
        heartbeat_file.parse((top / _HEARTBEAT).read_bytes(), _HEARTBEAT)
    if after.get(_LIMIT) != before.get(_LIMIT):
        staging_limit_file.parse((top / _LIMIT).read_bytes(), _LIMIT)
