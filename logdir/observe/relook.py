"""Incremental scan of a log dir: it lists all names, and reads only directories that are new or requested.

A directory with the same name and inode as before is the same one, and has the same topic id, because Kafka writes an
id only once. Its other content may have changed, and a directory without an id may have got one; a caller that needs
either requests the path. A requested directory is read unless its times, and those of the two files that matter, show
that no file was added, removed or replaced since it was read. If a part of a log dir cannot be listed, or something was
mounted in it, the whole log dir is scanned instead.

Not here: the choice of the requested paths (``service.log_dirs.last_look``), reading a directory (``replicas``).

Spec: design §2 law 4; attacks A15, A22, A44.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from logdir import clock
from logdir.formats.kafka.offset_checkpoint import NAMES
from logdir.formats.own.inventory import Kind
from logdir.observe import mounts as mount_table
from logdir.observe.classify import Inside, Place, Type, classify
from logdir.observe.entry import ScannedEntry
from logdir.observe.facts import LogDirFacts
from logdir.observe.replica import open_directory
from logdir.observe.replicas import Checkpointed, look, read_checkpoints
from logdir.observe.walk import opened
from logdir.paths import BESIDE, DELETING, HIDDEN_WORK_ROOT, INCOMING, MARKER_FILE, METADATA_FILE

_TOP = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LONGEST_INSIDE = 2
"""Length of a prefix directory's name; other directories that are no entries have fixed names."""
_NAMED_INSIDE = frozenset((DELETING, INCOMING))
_SETTLED_MS = 1000
"""A change time younger than this may hide a second change, because file systems have coarse clocks."""
_Found = tuple[bool, int]
"""Whether it is a directory (links are not), and its inode."""
_Stamp = tuple[int, ...]
"""Inode, modification time, change time, size."""


class Names(NamedTuple):
    """The entries of a log dir and its work roots, by name."""

    found: Mapping[tuple[int, str], _Found]
    """By the number of the root (the log dir, its hidden work root, the one beside it) and the path relative to it."""
    mounted: frozenset[bytes]
    """Paths, relative to their roots, on which something is mounted."""
    stamps: Mapping[str, tuple[_Stamp | None, ...]]
    """Stamps of existing requested directories, and of the files in them that are read."""
    begun_ms: int
    """Start of the scan, wall clock."""

    def is_settled(self, path: str) -> bool:
        """Whether any later change of a directory will change its stamps."""
        times = [one for stamp in self.stamps[path] if stamp is not None for one in stamp[1:3]]
        return max(times, default=0) < (self.begun_ms - _SETTLED_MS) * 1_000_000


class LookedAgain(NamedTuple):
    """The result of an incremental scan."""

    number: int
    """The number of this scan, to be given as ``since`` of the next one."""
    paths: tuple[str, ...] | None
    """Paths relative to their roots that were read or have vanished; ``None``: everything was read."""
    facts: LogDirFacts
    """Replicas at these paths alone; the facts of the log dir itself are complete."""


@dataclass(slots=True)
class Memory:
    """What is kept between the scans of one log dir."""

    now_ms: Callable[[], int] = clock.now_ms
    """The wall clock."""
    number: int = 0
    names: Names | None = None
    checkpoints: Checkpointed | None = None
    checkpoint_stamps: tuple[_Stamp | None, ...] = ()
    stamps: dict[str, tuple[_Stamp | None, ...]] = field(default_factory=dict)
    """Stamps of the directories from before they were read."""

    def read_checkpoints(self, log_dir: str, top: int) -> Checkpointed:
        """Return the content of the checkpoint files; they are read again if one was replaced."""
        stamps = tuple(_stamp(name, top) for name in NAMES)
        if self.checkpoints is None or stamps != self.checkpoint_stamps:
            # Kafka and we replace these files, and never write into one.
            self.checkpoints, self.checkpoint_stamps = read_checkpoints(log_dir, top), stamps
        return self.checkpoints

    def to_look_into(self, now: Names, changed: Collection[str]) -> frozenset[str]:
        """Return the changed paths, and the requested ones that may have changed; store their stamps."""
        some = {path for path, stamps in now.stamps.items() if self.stamps.get(path) != stamps}.union(changed)
        for path in some:
            self.stamps.pop(path, None)
            if path in now.stamps and now.is_settled(path):
                self.stamps[path] = now.stamps[path]
        return frozenset(some)


def look_again(
    memory: Memory, log_dir: str, since: int, paths: Collection[str], closely: Callable[[ScannedEntry], bool]
) -> LookedAgain:
    """Scan a log dir incrementally.

    Args:
        memory: The memory of earlier scans; it is updated.
        log_dir: Path as configured.
        since: The number of the scan that the caller has; if it is not the last one, everything is read.
        paths: Requested paths, relative to the log dir or a work root; read unless they are certainly unchanged.
        closely: As for ``replicas.look``.

    Returns:
        The new facts. Those of a log dir that cannot be read hold the problem, as in a full scan.
    """
    before, number = memory.names, memory.number
    # Listed before any directory is read: a change meanwhile shows as a new name, inode or stamp in the next scan.
    now = memory.names = list_names(log_dir, memory.now_ms(), paths)
    memory.number = number + 1
    if now is not None and before is not None and since == number and now.mounted == before.mounted:
        some = memory.to_look_into(now, {path for (_, path), _ in now.found.items() ^ before.found.items()})
        facts = look(log_dir, closely=closely, only=some, checkpoints=memory.read_checkpoints)
        if facts.problem is None:
            # Names that are not ASCII do not belong to replicas.
            return LookedAgain(memory.number, tuple(sorted(filter(str.isascii, some))), facts)
    memory.stamps.clear()
    facts = look(log_dir, closely=closely, checkpoints=memory.read_checkpoints)
    return LookedAgain(memory.number, None, facts)


def merged(known: LogDirFacts, again: LookedAgain) -> LogDirFacts:
    """Merge the known facts of a log dir with those of an incremental scan.

    Args:
        known: Facts without a problem.
        again: An incremental scan that did not read everything.

    Returns:
        The same facts as one full scan, in the same order.
    """
    if again.paths is None:
        return again.facts
    gone = frozenset(again.paths)
    replicas, staged = known.replicas, known.staged
    if again.facts.replicas or any(replica.path in gone for replica in replicas):
        kept = [replica for replica in replicas if replica.path not in gone]
        replicas = tuple(sorted((*kept, *again.facts.replicas), key=lambda replica: replica.path))
    if again.facts.staged or any(item.path in gone for item in staged):
        staying = [item for item in staged if item.path not in gone]
        staged = tuple(sorted((*staying, *again.facts.staged), key=lambda item: (item.root is not None, item.path)))
    if replicas is known.replicas:
        return replace(again.facts, layout=known.layout, replicas=replicas, staged=staged)
    layouts = {"topic-id" if "/" in replica.path else "topic-name" for replica in replicas if replica.kind is Kind.LIVE}
    layout = "mixed" if len(layouts) == 2 else next(iter(layouts), "empty")
    return replace(again.facts, layout=layout, replicas=replicas, staged=staged)


def list_names(log_dir: str, now_ms: int, paths: Collection[str] = ()) -> Names | None:
    """List a log dir and its work roots, each directory once; opens no other file.

    Args:
        log_dir: Path as configured.
        now_ms: Current wall clock time, milliseconds.
        paths: Directories whose stamps are needed.

    Returns:
        ``None`` if a part of it cannot be listed.
    """
    log_dir = os.path.abspath(log_dir)
    found: dict[tuple[int, str], _Found] = {}
    mounted: set[bytes] = set()
    stamps: dict[str, tuple[_Stamp | None, ...]] = {}
    try:
        mounts = mount_table.read_mounts()
        with opened(os.open(log_dir, _TOP)) as top:
            roots = (".", HIDDEN_WORK_ROOT, f"{log_dir}{BESIDE}")
            for number, path in enumerate(roots):
                try:
                    root = os.open(path, _TOP if number == 0 else _TOP | os.O_NOFOLLOW, dir_fd=top)
                except (FileNotFoundError, NotADirectoryError):
                    continue  # No such directory, or a name of the log dir itself.
                with opened(root):
                    mounted |= mount_table.mounted_below(mounts, os.fsencode(os.path.realpath(f"/proc/self/fd/{root}")))
                    _list_root(found, number, root)
                    for path in paths:
                        if found.get((number, path), (False, 0))[0]:
                            stamps[path] = (*stamps.get(path, ()), *_stamps(path, root))
    except OSError:
        return None
    return Names(found, frozenset(mounted), stamps, now_ms)


def _list_root(found: dict[tuple[int, str], _Found], number: int, root: int) -> None:
    place = Place.WORK_TOP if number else Place.TOP
    for name in _list(found, number, root, ""):
        if len(name) > _LONGEST_INSIDE and name not in _NAMED_INSIDE:
            continue
        if classify(name, Type.DIRECTORY, place) in (Inside.PREFIX, Inside.DELETING, Inside.INCOMING):
            with opened(open_directory(name, root)) as directory:
                _list(found, number, directory, f"{name}/")


def _list(found: dict[tuple[int, str], _Found], number: int, directory: int, above: str) -> list[str]:
    """List one directory; return the names of its sub-directories. Raises ``OSError``."""
    directories = []
    with os.scandir(directory) as entries:
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            found[number, above + entry.name] = is_directory, entry.inode()
            if is_directory:
                directories.append(entry.name)
    return directories


def _stamps(path: str, root: int) -> tuple[_Stamp | None, ...]:
    return tuple(_stamp(name, root) for name in (path, f"{path}/{METADATA_FILE}", f"{path}/{MARKER_FILE}"))


def _stamp(path: str, top: int) -> _Stamp | None:
    try:
        seen = os.stat(path, dir_fd=top, follow_symlinks=False)
    except OSError:
        return None
    return seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size
