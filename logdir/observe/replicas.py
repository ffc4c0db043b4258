"""Scanning one log dir for the deciders: the entries of a scan, with the facts of partition directories that it lacks.

Read-only, standard library only. An unreadable entry is reported as such, never left out.

Not here: listing and classifying the entries (``scan``), the value types (``facts``).

Spec: design §3.3, §7.1; laws 7, 10; attacks A15, A25, A44.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace

from logdir.errors import FormatError, MalformedFileError, Problem
from logdir.formats.kafka import meta_properties, offset_checkpoint
from logdir.formats.kafka.offset_checkpoint import NAMES, TopicPartition
from logdir.formats.own import own_json, replica_marker
from logdir.formats.own.inventory import Disk, Kind
from logdir.formats.own.replica_marker import BY_HAND, Checkpoints, ReplicaMarker
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.observe import replica as contents
from logdir.observe.entry import ScannedEntry
from logdir.observe.facts import LogDirFacts, Replica, StagedReplica
from logdir.observe.scan import scan_log_dir
from logdir.observe.walk import opened
from logdir.paths import BESIDE, CLEAN_MARKER, HIDDEN_WORK_ROOT, MARKER_FILE, META_PROPERTIES
from logdir.refusal_slug import Why
from logdir.replica_ref import ReplicaRef

_FIELDS = ("recovery_point", "log_start", "high_watermark", "cleaner")
"""Fields of ``Checkpoints``, in the order of ``offset_checkpoint.NAMES``."""
_IN_WORDS = {
    "absent": "no directory there",
    "io-error": "an error while it was read",
    "mount-point": "something is mounted there",
    "unreadable": "it cannot be read",
}
"""Problems of an inventory in the texts of a ``Problem``."""
NO_PERMISSION = "no-permission"
"""Problem slug, as in an inventory."""
_NO_FILE = (errno.EISDIR, errno.ELOOP)
"""How opening the marker fails where a directory or a link has its name."""
_TOP = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_IN_LOG_DIR = frozenset((Kind.LIVE, Kind.FUTURE, Kind.DELETE, Kind.STRAY, Kind.METADATA))
_STAGED = frozenset((Kind.STAGED, Kind.PURGING, Kind.INCOMING))
_UNTOUCHED = frozenset(("symlink", "unreadable", "mount-point"))
_Offsets = Mapping[str, Mapping[TopicPartition, int]]
Checkpointed = tuple[_Offsets, Problem | None]
"""The content of the checkpoint files, and the problem of one that cannot be used."""


def _every(entry: ScannedEntry) -> bool:
    return entry.kind is Kind.LIVE


def read_checkpoints(log_dir: str, top: int) -> Checkpointed:
    """Read the checkpoint files of a log dir.

    Args:
        log_dir: Path as configured, for messages.
        top: Descriptor of the open log dir.
    """
    found: dict[str, Mapping[TopicPartition, int]] = {}
    problem = None
    for field, name in zip(_FIELDS, NAMES, strict=True):
        path = f"{log_dir}/{name}"
        try:
            found[field] = offset_checkpoint.parse(contents.read_small(name, top), path)
        except FileNotFoundError:
            continue
        except FormatError as error:
            problem = problem or error.problem()
        except OSError as error:
            problem = problem or _unread(path, "a file that can be read", _found(error))
    return found, problem


def look(
    log_dir: str,
    *,
    taken_at_ms: int | None = None,
    closely: Callable[[ScannedEntry], bool] = _every,
    only: Collection[str] | None = None,
    checkpoints: Callable[[str, int], Checkpointed] = read_checkpoints,
) -> LogDirFacts:
    """Scan one log dir and its work root.

    Args:
        log_dir: Path as configured; a link is followed here only, as a broker does.
        taken_at_ms: As for ``scan_log_dir``.
        closely: Whether to open the directory of a replica; if not, its inode and unexpected entries are not known.
        only: As for ``scan_log_dir``; the layout is that of these alone.
        checkpoints: Function that reads the checkpoint files.

    Returns:
        The facts. An unreadable log dir has its problem and lists nothing.
    """
    disk, entries = scan_log_dir(log_dir, taken_at_ms=taken_at_ms, only=only)
    if disk.status != "ok":
        problem = _unread(log_dir, "a log dir that can be read", _in_words(disk.problems))
        return LogDirFacts(log_dir=log_dir, problem=problem, is_offline=True)
    try:
        with opened(os.open(log_dir, _TOP)) as top:
            return _look(log_dir, top, disk, entries, closely, checkpoints(log_dir, top))
    except OSError as error:
        problem = _unread(log_dir, "a log dir that can be read", _found(error))
        return LogDirFacts(log_dir=log_dir, problem=problem, is_offline=True)


def _found(error: OSError) -> str:
    return NO_PERMISSION if error.errno in (errno.EACCES, errno.EPERM) else error.strerror or str(error)


def _in_words(problems: Iterable[str]) -> str:
    return ", ".join(_IN_WORDS.get(one, one) for one in problems)


def _unread(path: str, expected: str, found: str) -> Problem:
    if found == NO_PERMISSION:
        return Problem(NO_PERMISSION, path, expected, "no permission to read it", "run as the broker's user")
    return Problem(
        "log-dir-offline", path, expected, found, "see that the disk is mounted and can be read, then try again"
    )


def _look(
    log_dir: str,
    top: int,
    disk: Disk,
    entries: tuple[ScannedEntry, ...],
    closely: Callable[[ScannedEntry], bool],
    checkpoints: Checkpointed,
) -> LogDirFacts:
    offsets, checkpoint_problem = checkpoints
    replicas = tuple(
        _replica(log_dir, top, entry, ref, offsets, is_opened=closely(entry))
        for entry in entries
        if entry.kind in _IN_LOG_DIR and (ref := entry.ref) is not None
    )
    doubled = _doubled(entries)
    offline = _offline(log_dir, top)
    return LogDirFacts(
        log_dir=log_dir,
        is_offline=offline is not None,
        problem=offline or next((_hidden(log_dir, entry) for entry in entries if _hides(entry)), None),
        cluster_id=disk.cluster_id,
        node_id=disk.node_id,
        directory_id=disk.directory_id,
        layout=disk.layout or "empty",
        has_clean_marker=_is_there(CLEAN_MARKER, top),
        checkpoint_problem=checkpoint_problem,
        replicas=replicas,
        staged=tuple(
            _staged_replica(log_dir, top, entry, ref, is_doubled=(entry.root, entry.name) in doubled)
            for entry in entries
            if entry.kind in _STAGED and (ref := entry.ref) is not None
        ),
    )


def _offline(log_dir: str, top: int) -> Problem | None:
    """Return why a broker of 3.7 or later treats a readable log dir as offline (kafka-behaviour §2.3)."""
    path = f"{log_dir}/{META_PROPERTIES}"
    try:
        meta_properties.parse(contents.read_small(META_PROPERTIES, top), path)
        return None
    except FileNotFoundError:
        return None  # With such a directory the broker does not start.
    except PermissionError:
        return _unread(path, "a file that can be read", NO_PERMISSION)  # The broker's user may have the permission.
    except FormatError as error:
        found = f"{error.found}, where {error.expected} is expected"
    except OSError as error:
        found = error.strerror or str(error)
    return Problem("log-dir-offline", path, "a file that can be read; a broker treats the log dir as offline", found)


def _hides(entry: ScannedEntry) -> bool:
    # An unreadable prefix directory or part of a work root may hold any replica.
    return entry.kind is Kind.UNKNOWN and "unreadable" in entry.problems


def _hidden(log_dir: str, entry: ScannedEntry) -> Problem:
    root = None if entry.root is None else _path_of(entry.root, log_dir)
    is_root = root is not None and entry.name == os.path.basename(root)
    place = root if root is not None and is_root else os.path.join(root or log_dir, entry.name)
    found = _in_words(entry.problems)
    try:
        os.close(os.open(place, _TOP | os.O_NOFOLLOW))
    except OSError as error:
        found = NO_PERMISSION if _found(error) == NO_PERMISSION else found
    return _unread(place, "a directory that can be read: a replica may lie in it", found)


def _is_there(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _open(path: str, parent: int, stack: ExitStack) -> int:
    """Open a directory below another, component by component, never through a link. Raises ``OSError``."""
    for name in path.split("/"):
        parent = stack.enter_context(opened(contents.open_directory(name, parent)))
    return parent


def _strangers(directory: int) -> tuple[str, ...]:
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if not entry.is_file(follow_symlinks=False):
                found.append(entry.name)
    return tuple(sorted(found))


def _replica(
    log_dir: str, top: int, entry: ScannedEntry, ref: ReplicaRef, offsets: _Offsets, *, is_opened: bool
) -> Replica:
    inode: int | None = None
    unexpected_entries: tuple[str, ...] = ()
    problems = entry.problems
    if is_opened and _UNTOUCHED.isdisjoint(problems):
        try:
            with ExitStack() as stack:
                directory = _open(entry.name, top, stack)
                inode = os.fstat(directory).st_ino
                unexpected_entries = _strangers(directory)
        except OSError:
            # Its name stays taken, whether it has just vanished or cannot be opened.
            problems = tuple(sorted({*problems, "unreadable"}))
    found = entry.contents
    known = {}
    if ref.topic is not None:
        key = TopicPartition(ref.topic, ref.partition)
        # Kafka writes no negative offset: ignore one.
        known = {field: offset for field in _FIELDS if (offset := offsets.get(field, {}).get(key, -1)) >= 0}
    return Replica(
        log_dir=log_dir,
        path=entry.name,
        kind=entry.kind,
        ref=ref,
        inode=inode,
        log_bytes=None if found is None else found.log_bytes,
        segments=None if found is None else found.segments,
        first_offset=None if found is None else found.first_offset,
        checkpoints=Checkpoints(**known),
        problems=problems,
        unexpected_entries=unexpected_entries,
    )


def _staged_replica(log_dir: str, top: int, entry: ScannedEntry, ref: ReplicaRef, *, is_doubled: bool) -> StagedReplica:
    inode: int | None = None
    marker: ReplicaMarker | None = None
    problem: Problem | None = None
    root = None if entry.root is None else _path_of(entry.root, log_dir)
    path = f"{root or log_dir}/{entry.name}"
    try:
        with ExitStack() as stack:
            if is_doubled:
                raise OSError(errno.EEXIST, "two work roots have a directory of this name", entry.name)
            above = top if root is None else stack.enter_context(opened(contents.open_directory(root, top)))
            directory = _open(entry.name, above, stack)
            inode = os.fstat(directory).st_ino
            marker = _marker(directory, path)
            if unexpected_entries := _strangers(directory):
                fix = "inspect it and move it away; the replica is held until then"
                problem = _held(
                    Why.UNEXPECTED_ENTRY,
                    f"{path}/{unexpected_entries[0]}",
                    "a regular file",
                    "a directory, a link or a special file",
                    fix,
                )
    except FormatError as error:
        problem = error.problem()
        problem = problem._replace(fix=problem.fix or BY_HAND)
    except FileNotFoundError:
        problem = _held(Why.MARKER_UNUSABLE, path, "a marker (replica.json)", "no such file")
    except OSError as error:
        found, fix = error.strerror or str(error), "run as the broker's user, and look at the disk it lies on"
        if is_doubled:
            fix = "compare both, and move one of them away; the replica is held until then"
        if error.errno in _NO_FILE:
            problem = _held(Why.MARKER_UNUSABLE, path, "a marker (replica.json)", "a directory or a link of that name")
        else:
            problem = _held(Why.REPLICA_UNREADABLE, path, "a directory that can be read", found, fix)
    if marker is not None and inode != marker.birth_inode:
        found = f"a marker of inode {marker.birth_inode}: the directory is a copy, or of another disk"
        problem = _held(Why.FOREIGN_MARKER, path, f"a marker of inode {inode}", found)
    return StagedReplica(
        log_dir=log_dir,
        name=entry.name.rpartition("/")[2],
        kind=entry.kind,
        ref=ref if marker is None else replace(ref, topic=marker.topic),
        inode=inode,
        marker=marker,
        problem=problem,
        log_bytes=None if entry.contents is None else entry.contents.log_bytes,
        first_offset=None if entry.contents is None else entry.contents.first_offset,
        root=root,
    )


def _held(why: Why, path: str, expected: str, found: str, fix: str = BY_HAND) -> Problem:
    return Problem(why.value, path, expected, found, fix)


def _path_of(root: WorkRootKind, log_dir: str) -> str:
    match root:
        case WorkRootKind.INSIDE:
            return log_dir
        case WorkRootKind.BESIDE:
            return f"{os.path.abspath(log_dir)}{BESIDE}"
        case WorkRootKind.IN_PLACE:
            return os.path.join(log_dir, HIDDEN_WORK_ROOT)


def _doubled(entries: Collection[ScannedEntry]) -> frozenset[tuple[WorkRootKind | None, str]]:
    """Return the entries that both work roots outside the log dir's own tree contain, by root and name."""
    counts = Counter(entry.name for entry in entries if entry.root is not None)
    return frozenset((root, name) for name, count in counts.items() if count > 1 for root in WorkRootKind)


def _marker(directory: int, path: str) -> ReplicaMarker:
    """Read a marker. Raises ``FormatError``, ``OSError``."""
    data = contents.read_small(MARKER_FILE, directory)
    if len(data) > own_json.MAX_BYTES:
        raise MalformedFileError(path, expected=f"at most {own_json.MAX_BYTES} bytes", found=len(data))
    return replica_marker.parse(data, f"{path}/{MARKER_FILE}")
