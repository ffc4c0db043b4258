"""What must hold after a crash and its recovery, in words, worked out without the code it judges.

A *replica* is a partition directory of the start, known by its inode, which no rename changes. Every operation says its
*course*: the places a replica goes through, in order (``live``, ``staged``, ``held``, ``claimed``, ``gone``). An
acknowledgement ``{key} reached {n}`` says that place number ``n`` was reached, durably; ``{key} refused {n}`` that the
step to it was refused and undone. Then, after recovery:

- *lost*: a replica has no name though its course has not come to ``gone``; or one of its files is missing, or has other
  bytes, another time, owner or inode; or it is neither at the place last acknowledged nor at the next one; or a file
  that is none of ours, or was to be replaced, is neither as it was nor as it was to be.
- *early*: it is claimed or gone, or a file of it is, before the step to that was durable; a purge that was not asked
  for or not due is not in its course. Or its marker says another instant, delay, boot or time since boot than whoever
  staged it wrote: what is left counts never earlier than that, and nothing here has a reason to count later; what is
  held has no delay, and all else as before.
- *doubled*: it has two names, or two live directories on any disks have the name of one partition.
- *stuck*: what is staged has no whole marker of its own and so can neither come back nor go; a live one still has a
  marker; what is claimed cannot be removed, or what is staged not be restored (``operations.rollback`` tries).
- *trap*: live again, not cleanly closed, with the index files of its last segment (kafka-behaviour §10.6).
- *foreign*: what we made does not belong to whom the log dir belongs, or is something nobody asked for.
- *unreadable*: a file we made has a name and is not yet, or not wholly, given to whom the log dir belongs; also before
  any recovery, for a broker may come first (attacks A9).

The markers are read here by ``json`` and ``hashlib`` alone, names by two regular expressions.

Spec: reliability §4.4 (oracle); design §2 laws 3, 7, 9, §3.3.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from logdir.observe.classify import Type
from tests.crash.enumerate import State
from tests.crash.recording import Acks
from tests.crash.tree import Node, World

MARKER = "replica.json"
_OURS = {MARKER, "replica.new.json"}
_WORK = re.compile(r"(?P<id>no-id\.[^/]+|[A-Za-z0-9_-]{22})_(?P<partition>\d+)(\.\d+)?(?P<claimed>\.purging)?")
_LIVE = re.compile(r"(?P<log_dir>/d\d+/kafka)/(?P<path>[a-z.]+-\d+|[A-Za-z0-9_-]{2}/[A-Za-z0-9_-]{22}_\d+)")
_GONE = ("claimed", "gone")
_DEADLINE = ("staged_at_ms", "delay_ms", "boot_id", "boottime_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A partition directory of the start, and what may become of it."""

    key: str
    mount: str
    start: str
    """Its absolute path."""
    live: str
    """Where it is when live, absolute."""
    id: str
    """Its id's text, or ``no-id.{topic}``."""
    partition: int
    course: tuple[str, ...]
    drops: frozenset[str] = frozenset()
    """Files that are gone when it is live again."""
    is_claimed_before: bool = False
    """By a process that was killed, and said nothing: it may be gone or not, but what is staged is whole."""
    deadline: tuple[int, int | None, str, int] = (1_600_000_000_000, 14_400_000, "boot", 600_000)
    """What its marker says whenever it is staged: ``staged_at_ms``, ``delay_ms``, ``boot_id``, ``boottime_ms``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What an operation may change."""

    replicas: tuple[Replica, ...]
    files: Mapping[str, tuple[bytes | None, bytes | None, str]] = field(default_factory=dict)
    """Path of a file to be replaced, its old and new bytes, and the acknowledgement from which it is new."""
    directories: frozenset[str] = frozenset()
    """What may be made."""
    owner: tuple[int, int, int] = (0, 0, 0)
    """Of the log dir."""
    is_named_at_once: bool = False
    """Its file system makes no file without a name: one may be left unreadable, but nothing else may go wrong."""
    errors: tuple[str, ...] = ("ReadOnlyDiskError",)
    """With what the operation may end when calls fail."""


def judge(expected: Expected, start: World, state: State, acks: Acks) -> list[str]:
    """Return what is wrong, one line each."""
    return list(_judge(expected, start, state, acks))


def _judge(expected: Expected, start: World, state: State, acks: Acks) -> Iterator[str]:
    if state.error and not state.error.startswith(expected.errors):
        yield f"half: the operation ends with {state.error}"
    yield from _unreadable(expected, start, state.crashed)
    before, after = start.tree(), state.recovered.tree()
    usable = {
        volume.mount: status
        for volume, status in zip(state.recovered.volumes, state.statuses, strict=True)
        if status not in ("absent", "empty")
    }
    before = {path: node for path, node in before.items() if _mount(path) in usable}
    after = {path: node for path, node in after.items() if _mount(path) in usable}
    paths: dict[tuple[str, int], list[str]] = {}
    for path, node in after.items():
        paths.setdefault((_mount(path), node.inode), []).append(path)
    explained: set[str] = set()
    for replica in expected.replicas:
        if replica.mount in usable:
            found = paths.get((replica.mount, before[replica.start].inode), [])
            is_read_only = usable[replica.mount] == "read-only"
            for path in (*found, replica.start):
                explained.update(inner for inner in (*after, *before) if f"{inner}/".startswith(f"{path}/"))
            yield from _replica(replica, before, after, found, acks, is_read_only)
    yield from _twice_live(after)
    yield from _rest(expected, before, after, explained, acks)


def _unreadable(expected: Expected, start: World, crashed: World) -> Iterator[str]:
    uid, gid, mode = expected.owner
    if expected.is_named_at_once:
        return
    for was, volume in zip(start.volumes, crashed.volumes, strict=True):
        made = (node for node in volume.nodes.values() if node.type is Type.FILE and node.inode not in was.nodes)
        wrong = {node.inode for node in made if node.owner != (uid, gid, mode & 0o666)}
        if wrong:
            yield from (
                f"unreadable: {path} belongs to {node.owner}" for path, node in volume.tree() if node.inode in wrong
            )


def _mount(path: str) -> str:
    return "/" + path.split("/")[1]


def _reached(replica: Replica, acks: Acks) -> tuple[int, bool]:
    """Return the place last acknowledged, and whether the step after it was refused."""
    reached, is_refused = 0, False
    for said in acks.said:
        key, word, number = said.rsplit(" ", 2)
        if key == replica.key:
            is_refused = word == "refused"
            reached = reached if is_refused else int(number)
    return reached, is_refused


def _replica(
    replica: Replica,
    before: Mapping[str, Node],
    after: Mapping[str, Node],
    found: list[str],
    acks: Acks,
    is_read_only: bool,
) -> Iterator[str]:
    reached, is_refused = _reached(replica, acks)
    course = replica.course
    is_open = replica.is_claimed_before and not reached
    allowed = course if is_open else course[reached : reached + (1 if is_refused else 2)]
    if len(found) > 1:
        yield f"doubled: {replica.key} is {' and '.join(found)}"
        return
    seen = _place(replica, after, found[0]) if found else "gone"
    if seen == "incoming" and is_read_only:
        return
    if seen.startswith("stuck"):
        yield seen
        return
    if seen not in allowed:
        word = "early" if seen in _GONE and seen in course else "lost"
        yield f"{word}: {replica.key} is {seen}, not {' or '.join(allowed)}"
        return
    if not found:
        return
    yield from _early(replica, after, found[0], seen)
    removing = seen == "claimed" and (replica.is_claimed_before or course[reached] == "claimed")
    is_back = seen == "live" and "live" not in course[:1]
    # Also where it was refused in the end: a broker makes index files again.
    is_coming = "live" in course[1 : reached + 2]
    yield from _files(replica, before, after, found[0], removing, optional=replica.drops if is_coming else frozenset())
    if is_back:
        for name in sorted(replica.drops):
            if f"{found[0]}/{name}" in after:
                yield f"trap: {replica.key} is live again with {name}"
    if seen == "live" and not is_read_only and any(f"{found[0]}/{name}" in after for name in _markers(after, found[0])):
        yield f"stuck: {replica.key} is live with a marker"


def _early(replica: Replica, after: Mapping[str, Node], path: str, seen: str) -> Iterator[str]:
    """Yield what is wrong with the deadline of what is staged; what is claimed has none any more."""
    if seen in ("staged", "held"):
        staged_at_ms, delay_ms, *boot = replica.deadline
        wanted = (staged_at_ms, None if seen == "held" else delay_ms, *boot)
        said = deadline(after, path)
        if said != wanted:
            yield f"early: the deadline of {replica.key} is {said}, not {wanted}"


def _markers(after: Mapping[str, Node], path: str) -> list[str]:
    return [name for name in after[path].entries if name.startswith("replica.")]


def _place(replica: Replica, after: Mapping[str, Node], path: str) -> str:
    if path == replica.live:
        return "live"
    parent, _, name = path.rpartition("/")
    matched = _WORK.fullmatch(name)
    if parent.endswith("/incoming") and matched:
        return "incoming"
    if not parent.endswith("/deleting") or matched is None:
        return f"at {path}"
    if (matched["id"], int(matched["partition"])) != (replica.id, replica.partition):
        return f"at {path}"
    if matched["claimed"]:
        return "claimed"
    marker = _marker(after.get(f"{path}/{MARKER}"))
    if marker is None:
        return f"stuck: {replica.key} is staged without a whole marker"
    said = (marker["birth_inode"], marker["partition"], marker["topic_id"] or f"no-id.{marker['topic']}")
    if said != (after[path].inode, replica.partition, replica.id):
        return f"stuck: {replica.key} is staged under the marker of another"
    return "held" if marker["delay_ms"] is None else "staged"


def deadline(tree: Mapping[str, Node], path: str) -> tuple[object, ...] | None:
    """Return what the marker in a directory says of its deadline; ``None`` if it is not whole.

    Returns:
        ``staged_at_ms``, ``delay_ms``, ``boot_id`` and ``boottime_ms``.
    """
    marker = _marker(tree.get(f"{path}/{MARKER}"))
    return None if marker is None else tuple(marker[key] for key in _DEADLINE)


def _marker(node: Node | None) -> dict[str, Any] | None:
    """Read a marker: one line, its digest over the line without that key."""
    if node is None or not node.data.endswith(b"\n"):
        return None
    try:
        values: dict[str, Any] = json.loads(node.data)
    except ValueError:
        return None
    said = values.pop("sha256", None)
    line = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return values if said == hashlib.sha256(line.encode()).hexdigest() else None


def _facts(node: Node) -> tuple[object, ...]:
    # Whose times of change are a directory's own business.
    times = () if node.type is Type.DIRECTORY else (node.mtime_ns, node.inode)
    return (node.type, node.data, node.owner, *times)


def _files(
    replica: Replica,
    before: Mapping[str, Node],
    after: Mapping[str, Node],
    path: str,
    removing: bool,
    optional: frozenset[str],
) -> Iterator[str]:
    names = set(before[replica.start].entries) - _OURS
    for name in sorted(names):
        node = after.get(f"{path}/{name}")
        if node is None:
            if not removing and name not in optional:
                yield f"lost: {replica.key} has no {name}"
        elif not removing and _facts(node) != _facts(before[f"{replica.start}/{name}"]):
            yield f"lost: {replica.key} has another {name}"
    for name in sorted(set(after[path].entries) - names - _OURS):
        yield f"foreign: {replica.key} has a new {name}"


def _twice_live(after: Mapping[str, Node]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for path in after:
        matched = _LIVE.fullmatch(path)
        if matched and seen.setdefault(matched["path"], path) != path:
            yield f"doubled: {seen[matched['path']]} and {path} are live"


def _rest(
    expected: Expected,
    before: Mapping[str, Node],
    after: Mapping[str, Node],
    explained: set[str],
    acks: Acks,
) -> Iterator[str]:
    uid, gid, mode = expected.owner
    for path in sorted({*before, *after} - explained):
        old, new = before.get(path), after.get(path)
        if path in expected.files:
            was, will, said = expected.files[path]
            found = None if new is None else new.data
            if found not in ((will,) if said in acks else (was, will)):
                yield f"lost: {path} is neither as it was nor as it was to be"
            if new is not None and old is None and new.owner != (uid, gid, mode & 0o666):
                yield f"foreign: {path} belongs to {new.owner}"
            if new is not None and old is not None and new.owner != old.owner:
                yield f"foreign: {path} belongs to {new.owner}"
        elif path.removesuffix(".old") in expected.files and path.endswith(".old"):
            if new is not None and new.data != expected.files[path.removesuffix(".old")][0]:
                yield f"lost: what was kept as {path} is not what was there"
        elif path.removesuffix(".tmp") in expected.files and path.endswith(".tmp"):
            continue
        elif path in expected.directories:
            if new is not None and new.entries and new.owner != (uid, gid, mode):
                yield f"foreign: {path} belongs to {new.owner}"
        elif path.endswith("/reserve") and old is not None and new is not None:
            if new.data not in (old.data, b""):
                yield f"lost: {path} holds something else"
        elif old is None:
            yield f"foreign: {path} was made"
        elif new is None:
            yield f"lost: {path}"
        elif _facts(old) != _facts(new):
            yield f"lost: {path} is not as it was"
    # Under a live name it is on its way out or in, and recovery takes it away; of what is staged it is the word.
    for path, node in after.items():
        if path.endswith(f"/{MARKER}") and "/deleting/" in path and node.owner != (uid, gid, mode & 0o666):
            yield f"foreign: {path} belongs to {node.owner}"
