"""Look at a log dir again: at the names of all of it, and inside those directories only that are new or asked for.

A directory that has the name and the inode it had is the one that was looked into before, and has the topic id it had:
Kafka writes one once. What else lies in it may have changed, and one that had no id may have got it; whoever relies on
either asks for it by its path. It is looked into, unless it was before and no file came, went or was replaced in it
since, by the times of the directory and of the two files that are read. No log dir is looked at again in this way if
something of it cannot be listed, or something else is mounted in it by now: then all of it is looked into.

Not here: which paths are asked for (``service.last_look``), what is read of each (``replicas``).

Spec: design §2 law 4; attacks A15, A22, A44.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from logdir import clock
from logdir.formats.kafka.offset_checkpoint import NAMES
from logdir.formats.own.inventory import Entry, Kind
from logdir.observe import mounts as mount_table
from logdir.observe.classify import Inside, Place, Type, classify
from logdir.observe.facts import LogDirFacts
from logdir.observe.replica import open_directory
from logdir.observe.replicas import Checkpointed, look, read_checkpoints
from logdir.observe.walk import opened
from logdir.paths import BESIDE, DELETING, HIDDEN_WORK_ROOT, INCOMING, MARKER_FILE, METADATA_FILE

_TOP = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LONGEST_INSIDE = 2
"""Characters of a prefix directory's name; the others that are no entries themselves have names of their own."""
_NAMED_INSIDE = frozenset((DELETING, INCOMING))
_SETTLED_MS = 1000
"""A time of change younger than this may stand for two changes: the clock of a file system has coarse steps."""
_Found = tuple[bool, int]
"""Whether it is a directory (links are none), and its inode."""
_Stamp = tuple[int, ...]
"""Inode, times of modification and change, size."""


class Names(NamedTuple):
    """What lies in a log dir and its work roots, by name."""

    found: Mapping[tuple[int, str], _Found]
    """By the number of the root (the log dir, its hidden work root, the one beside it) and the path relative to it."""
    mounted: frozenset[bytes]
    stamps: Mapping[str, tuple[_Stamp | None, ...]]
    """Of directories that were asked for and are there, and of the files in them that are read."""
    begun_ms: int
    """Wall clock."""

    def is_settled(self, path: str) -> bool:
        """Whether what changes in a directory from now on changes its stamps."""
        times = [one for stamp in self.stamps[path] if stamp is not None for one in stamp[1:3]]
        return max(times, default=0) < (self.begun_ms - _SETTLED_MS) * 1_000_000


class LookedAgain(NamedTuple):
    """What a look found."""

    number: int
    """Of this look: to be named by the next."""
    paths: tuple[str, ...] | None
    """Relative to their roots: these were looked into, or are gone; ``None``: everything was."""
    facts: LogDirFacts
    """Of these alone; what is known of the log dir itself is whole."""


@dataclass(slots=True)
class Memory:
    """What the looks at one log dir remember from one to the next."""

    now_ms: Callable[[], int] = clock.now_ms
    """The wall clock."""
    number: int = 0
    names: Names | None = None
    checkpoints: Checkpointed | None = None
    checkpoint_stamps: tuple[_Stamp | None, ...] = ()
    stamps: dict[str, tuple[_Stamp | None, ...]] = field(default_factory=dict)
    """Of directories that were looked into, as they were before."""

    def read_checkpoints(self, log_dir: str, top: int) -> Checkpointed:
        """Return what the checkpoint files say; they are read if one of them is another by now."""
        stamps = tuple(_stamp(name, top) for name in NAMES)
        if self.checkpoints is None or stamps != self.checkpoint_stamps:
            # Kafka and we replace these files, and never write into one.
            self.checkpoints, self.checkpoint_stamps = read_checkpoints(log_dir, top), stamps
        return self.checkpoints

    def to_look_into(self, now: Names, changed: Collection[str]) -> frozenset[str]:
        """Return the paths that changed, and those that were asked for and may have; what they are is remembered."""
        some = {path for path, stamps in now.stamps.items() if self.stamps.get(path) != stamps}.union(changed)
        for path in some:
            self.stamps.pop(path, None)
            if path in now.stamps and now.is_settled(path):
                self.stamps[path] = now.stamps[path]
        return frozenset(some)


def look_again(
    memory: Memory, log_dir: str, since: int, paths: Collection[str], closely: Callable[[Entry], bool]
) -> LookedAgain:
    """Look at a log dir again.

    Args:
        memory: Of the looks before; this one is remembered in it.
        log_dir: Path as configured.
        since: The number of the look that is known; of any other than the last everything is looked into.
        paths: Looked into unless they surely are as they were when they were last; relative to the log dir or a work
            root.
        closely: As for ``replicas.look``.

    Returns:
        What is new. A log dir that cannot be read has its problem, as of a look at everything.
    """
    before, number = memory.names, memory.number
    # Before anything is looked into: what changes meanwhile is another name, inode or stamp for the next look.
    now = memory.names = list_names(log_dir, memory.now_ms(), paths)
    memory.number = number + 1
    if now is not None and before is not None and since == number and now.mounted == before.mounted:
        some = memory.to_look_into(now, {path for (_, path), _ in now.found.items() ^ before.found.items()})
        facts = look(log_dir, closely=closely, only=some, checkpoints=memory.read_checkpoints)
        if facts.problem is None:
            # Names that are not ASCII are no replicas'.
            return LookedAgain(memory.number, tuple(sorted(filter(str.isascii, some))), facts)
    memory.stamps.clear()
    facts = look(log_dir, closely=closely, checkpoints=memory.read_checkpoints)
    return LookedAgain(memory.number, None, facts)


def merged(known: LogDirFacts, again: LookedAgain) -> LogDirFacts:
    """Return what lies in a log dir: what was known of it, and what a look again found instead.

    Args:
        known: Without a problem.
        again: Of a look that was not at everything.

    Returns:
        As of one look at everything, in its order.
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
    layouts = {"topic-id" if "/" in replica.path else "topic-name" for replica in replicas if replica.kind is Kind.LIVE}
    layout = "mixed" if len(layouts) == 2 else next(iter(layouts), "empty")
    return replace(again.facts, layout=layout, replicas=replicas, staged=staged)


def list_names(log_dir: str, now_ms: int, paths: Collection[str] = ()) -> Names | None:
    """List a log dir and its work roots, each directory once; nothing else is opened.

    Args:
        log_dir: Path as configured.
        now_ms: This moment (wall clock).
        paths: Of directories whose stamps are taken.

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
                    continue  # none, or a name of the log dir itself
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
    """List one directory; return the names of the directories in it. Raises ``OSError``."""
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
