"""Walking one tree of a log dir or work root, entry by entry.

A live broker renames and deletes during the walk: an entry that has vanished is no problem, and is searched under its
new name in another round.

Not here: the kind of a name (``classify``), the content of a directory (``replica``), the choice of trees (``scan``).

Spec: design §7.1; law 10.
"""

from __future__ import annotations

import errno
import marshal
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from logdir.formats.own.inventory import Kind
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.ids import TopicId
from logdir.observe import mounts as mount_table
from logdir.observe import replica, share
from logdir.observe.classify import Inside, Named, Place, Type, classify, followed
from logdir.observe.entry import ScannedEntry, from_plain, to_plain

_ROUNDS = 3
"""How often a log dir is listed again if an entry vanished during the walk."""
_TYPES = {stat.S_IFREG: Type.FILE, stat.S_IFDIR: Type.DIRECTORY, stat.S_IFLNK: Type.SYMLINK}
_WORTH_SHARING = 256
"""From this number of names at the top a second process is worth its start."""


@contextmanager
def opened(directory: int) -> Iterator[int]:
    """Yield an open descriptor, and close it at the end of the block."""
    try:
        yield directory
    finally:
        os.close(directory)


def no_progress(entries: int) -> None:
    """Take a report of progress and ignore it."""


class Walk:
    """A scan of one log dir in progress: how it is done, and the entries found so far in the trees it walked."""

    def __init__(
        self,
        *,
        exact: bool,
        processes: int,
        mounts: tuple[mount_table.Mount, ...],
        progress: Callable[[int], None],
        only: Collection[str] | None = None,
    ) -> None:
        self.exact = exact
        self.processes = processes
        self.mounts = mounts
        self.progress = progress
        self.only = only
        # Keyed by the number of the root too: two work roots of one log dir may contain the same name.
        self.found: dict[tuple[int, str], ScannedEntry] = {}
        self.number = 0
        self.mounted: frozenset[bytes] = frozenset()

    def walk(self, directory: int, real_path: bytes, root: WorkRootKind | None, place: Place) -> None:
        """Scan a log dir or one of its work roots into this walk's entries. Raises ``OSError``: it cannot be listed."""
        self.mounted = mount_table.mounted_below(self.mounts, real_path)
        self.number += 1
        if self.only is not None:
            self._some(directory, self.only, root, place)
            return
        done: set[str] = set()
        for number in range(_ROUNDS):
            listed = list_types(directory)
            for gone in done - listed.keys():
                self._forget(gone)
            todo = [name for name in listed if name not in done]
            for name in todo if number else ():
                self._forget(name)
            if number == 0 and self.processes > 1 and len(todo) >= _WORTH_SHARING:
                again, vanished = self._shared(directory, todo, listed, root, place)
            else:
                again, vanished = self._names(directory, todo, listed, root, place)
            if not vanished:
                return
            # A vanished entry may have a new name now, in a part that was already walked.
            done = listed.keys() - again

    def _some(self, directory: int, paths: Collection[str], root: WorkRootKind | None, place: Place) -> None:
        """Scan entries by their paths; missing ones are left out. Raises ``OSError``."""
        tops: dict[str, list[str]] = {}
        for path in paths:
            name, slash, below = path.partition("/")
            listed = tops.setdefault(name, [])
            if slash:
                listed.append(below)
        for name, kind in types_of(directory, tops).items():
            seen = classify(name, kind, place)
            match seen:
                case Named():
                    if name in paths:
                        self._entry(directory, name, "", seen, kind, root)
                case Inside.WORK_ROOT:
                    pass  # a root of its own
                case _:
                    self._inside(directory, name, seen, root, partial(types_of, names=tops[name]))

    def _names(
        self, directory: int, todo: list[str], listed: dict[str, Type], root: WorkRootKind | None, place: Place
    ) -> tuple[set[str], bool]:
        """Scan entries that lie directly in a log dir or work root.

        Returns:
            The names to scan again in a next round, and whether one is needed: whether an entry vanished.
        """
        vanished = False
        again = set()
        for name in todo:
            kind = listed[name]
            seen = classify(name, kind, place)
            if not isinstance(seen, Named):
                again.add(name)
            if not self._top(directory, name, kind, seen, root):
                vanished = True
                again.add(name)
        return again, vanished

    def _shared(
        self, directory: int, todo: list[str], listed: dict[str, Type], root: WorkRootKind | None, place: Place
    ) -> tuple[set[str], bool]:
        """Scan names at the top, the second half of them in a second process; returns what ``_names`` does."""
        first, second = todo[: len(todo) // 2], todo[len(todo) // 2 :]

        def other_half() -> bytes:
            self.found = {}
            self.progress = no_progress
            again, vanished = self._names(directory, second, listed, root, place)
            seen = [(path, to_plain(entry)) for (_, path), entry in self.found.items()]
            return marshal.dumps((list(again), vanished, seen))

        other = share.begin(other_half)
        try:
            again, vanished = self._names(directory, first, listed, root, place)
        except BaseException:
            if other is not None:
                other.drop()
            raise
        data = None if other is None else other.result()
        if data is None:
            more, gone = self._names(directory, second, listed, root, place)
        else:
            more, gone, seen = marshal.loads(data)  # noqa: S302 - from our own copy, through our own pipe
            for path, plain in seen:
                self.found[self.number, path] = from_plain(plain, root)
            self.progress(len(self.found))
        return again.union(more), vanished or gone

    def _forget(self, top: str) -> None:
        for key in [k for k in self.found if k[0] == self.number and (k[1] == top or k[1].startswith(f"{top}/"))]:
            del self.found[key]

    def _top(self, parent: int, name: str, kind: Type, seen: Named | Inside, root: WorkRootKind | None) -> bool:
        """Scan one name at the top; return whether it, and all its content, still existed."""
        match seen:
            case Named():
                return self._entry(parent, name, "", seen, kind, root)
            case Inside.WORK_ROOT:
                return True  # A root of its own, which scan_log_dir scans separately.
            case _:
                return self._inside(parent, name, seen, root)

    def _inside(
        self,
        parent: int,
        name: str,
        inside: Inside,
        root: WorkRootKind | None,
        types: Callable[[int], dict[str, Type]] | None = None,
    ) -> bool:
        """Scan ``deleting/``, ``incoming/`` or a prefix directory: all of it, or what ``types`` lists; return if it is
        there and was read.
        """
        try:
            if os.fsencode(name) in self.mounted:
                raise OSError(errno.EXDEV, "another file system is mounted here", name)
            directory = replica.open_directory(name, parent)
        except FileNotFoundError:
            return False
        except OSError as error:
            # Its content cannot be read: report one unknown entry rather than nothing.
            self.refuse(name, root, _problems_of(error))
            return True
        with opened(directory):
            try:
                listed = (types or list_types)(directory)
            except OSError as error:
                self.refuse(name, root, _problems_of(error))
                return True
            whole = True
            for below, kind in listed.items():
                seen = classify(below, kind, inside.value, name)
                if not isinstance(seen, Named):
                    raise AssertionError(f"{below!r} below {name!r} is an entry")
                whole = self._entry(directory, below, f"{name}/", seen, kind, root) and whole
        return whole

    def _entry(self, parent: int, name: str, above: str, seen: Named, kind: Type, root: WorkRootKind | None) -> bool:
        """Scan one entry; return whether it still existed."""
        path = above + name
        if kind is Type.FILE:
            return self._file(parent, name, path, seen, root)
        if kind is not Type.DIRECTORY:
            is_at_top = kind is Type.SYMLINK and root is None and not above
            self._add(path, root, followed(name, seen) if is_at_top else seen, None)
            return True
        if self.mounted and os.fsencode(path) in self.mounted:
            self._add(path, root, seen._replace(problems=(*seen.problems, "mount-point", "unreadable")), None)
            return True
        try:
            directory = replica.open_directory(name, parent)
        except FileNotFoundError:
            return False
        except OSError as error:
            self._add(path, root, seen._replace(problems=(*seen.problems, *_problems_of(error))), None)
            return True
        try:
            try:
                contents = replica.measure(directory, exact=self.exact)
            except OSError as error:
                self._add(path, root, seen._replace(problems=(*seen.problems, *_problems_of(error))), None)
                return True
            if contents.has_vanished and not _is_still(name, parent, directory):
                return False
            metadata_id = seen.topic_id
            if seen.partition is not None:
                seen, metadata_id = _with_identity(seen, directory, contents)
        finally:
            os.close(directory)
        self._put(path, root, seen, metadata_id, contents)
        return True

    def _file(self, parent: int, name: str, path: str, seen: Named, root: WorkRootKind | None) -> bool:
        size = 0
        if self.exact:
            try:
                size = os.stat(name, dir_fd=parent, follow_symlinks=False).st_size
            except FileNotFoundError:
                return False
            except OSError as error:
                self._add(path, root, seen._replace(problems=(*seen.problems, *_problems_of(error))), None)
                return True
        self._add(path, root, seen, replica.Contents(0, size, 0, 0, None, None, None, None, False, False, False))
        return True

    def refuse(self, path: str, root: WorkRootKind | None, problems: tuple[str, ...]) -> None:
        """Record an entry whose content cannot be read."""
        self._add(path, root, Named(Kind.UNKNOWN, problems=problems), None)

    def _add(self, path: str, root: WorkRootKind | None, seen: Named, contents: replica.Contents | None) -> None:
        """Add an entry whose ``partition.metadata`` was not read."""
        self._put(path, root, seen, seen.topic_id, contents)

    def _put(
        self,
        path: str,
        root: WorkRootKind | None,
        seen: Named,
        metadata_id: TopicId | None,
        contents: replica.Contents | None,
    ) -> None:
        if len(seen.problems) > 1:
            seen = seen._replace(problems=tuple(sorted(seen.problems)))
        name, name_hex = path, None
        if not path.isascii():
            raw = os.fsencode(path)
            name = raw.decode("utf-8", "replace")
            name_hex = None if name.encode() == raw else raw.hex()
        self.found[self.number, path] = ScannedEntry(name, name_hex, root, seen, metadata_id, contents)
        if not len(self.found) & 0xFF:
            self.progress(len(self.found))


def _is_still(name: str, parent: int, directory: int) -> bool:
    try:
        now = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return False
    then = os.fstat(directory)
    return (now.st_dev, now.st_ino) == (then.st_dev, then.st_ino)


def _problems_of(error: OSError) -> tuple[str, ...]:
    return ("mount-point", "unreadable") if error.errno == errno.EXDEV else ("unreadable",)


def _with_identity(seen: Named, directory: int, contents: replica.Contents) -> tuple[Named, TopicId | None]:
    """Return the information in the name, completed from ``partition.metadata`` and the marker, and the file's id."""
    if contents.has_metadata:
        metadata_id, metadata_topic, problem = replica.read_identity(directory)
    else:
        metadata_id, metadata_topic, problem = None, None, "partition-metadata-missing"
    kind, topic, topic_id, partition, problems, needs_topic = seen
    if topic_id is None:
        topic_id = metadata_id
    elif problem is None and metadata_id != topic_id:
        # The name is the durable state (law 2); the file inside may be broken.
        problem = "partition-metadata-broken"
    if topic is None:
        topic = metadata_topic
        if topic is None and contents.has_marker:
            topic = replica.read_marker_topic(directory)
        if needs_topic and metadata_topic is None and problem is None:
            problem = "partition-metadata-broken"
    if problem is not None:
        problems = (*problems, problem)
    return Named(kind, topic, topic_id, partition, problems), metadata_id


def list_types(directory: int) -> dict[str, Type]:
    """List an open directory with the type of each name; links are not followed. Raises ``OSError``."""
    listed: dict[str, Type] = {}
    file = Type.FILE
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):  # The usual case.
                listed[entry.name] = file
            elif entry.is_dir(follow_symlinks=False):
                listed[entry.name] = Type.DIRECTORY
            else:
                listed[entry.name] = Type.SYMLINK if entry.is_symlink() else Type.OTHER
    return listed


def types_of(directory: int, names: Iterable[str]) -> dict[str, Type]:
    """Return the types of some names in an open directory, as ``list_types``; missing names are left out."""
    found: dict[str, Type] = {}
    for name in names:
        try:
            mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        except FileNotFoundError:
            continue
        found[name] = _TYPES.get(stat.S_IFMT(mode), Type.OTHER)
    return found
