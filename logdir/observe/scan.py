"""Scan one log dir and its work roots into an inventory: read-only, standard library only.

Every entry gets exactly one kind and its problems; nothing is skipped. A live broker renames and deletes while we
look: what is gone when we come to it is no problem, and what came under a new name meanwhile is looked for again. A
disk that cannot be read is said to be so, never returned as an empty one.

Not here: which kind a name has (``classify``), what lies in one directory (``replica``), files (``formats``).

Spec: design §3.2, §7.1; law 10.
"""

from __future__ import annotations

import errno
import marshal
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import NamedTuple

from logdir import names
from logdir.clock import now_ms
from logdir.errors import FormatError
from logdir.formats import meta_properties
from logdir.formats.inventory import Disk, Entry, Kind, Root, sort_key
from logdir.observe import mounts as mount_table
from logdir.observe import replica, share
from logdir.observe.classify import META_PROPERTIES, Inside, Named, Place, Type, classify

_ROUNDS = 3
"""How often a log dir is listed again when something in it went away while we looked."""
_Count = int | None
_Figures = tuple[_Count, _Count, _Count, _Count, _Count, _Count, _Count, _Count]
_NO_FIGURES: _Figures = (None, None, None, None, None, None, None, None)
_WORTH_SHARING = 256
"""Names at the top from which on a second process pays for its start."""
_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Scanned(NamedTuple):
    """What was seen in one log dir; the values of an inventory file not yet written."""

    disk: Disk
    entries: tuple[Entry, ...]


@contextmanager
def _opened(directory: int) -> Iterator[int]:
    try:
        yield directory
    finally:
        os.close(directory)


class _Scan:
    """One scan under way."""

    def __init__(
        self, *, exact: bool, processes: int, mounts: tuple[mount_table.Mount, ...], progress: Callable[[int], None]
    ) -> None:
        self.exact = exact
        self.processes = processes
        self.mounts = mounts
        self.progress = progress
        # By the number of the root too: two work roots of one log dir may hold one name each.
        self.found: dict[tuple[int, str], Entry] = {}
        self.number = 0
        self.mounted: frozenset[bytes] = frozenset()

    def walk(self, directory: int, real_path: bytes, root: Root, place: Place) -> None:
        """Scan the tree of one root. Raises ``OSError`` if its top cannot be listed."""
        self.mounted = mount_table.mounted_below(self.mounts, real_path)
        self.number += 1
        done: set[str] = set()
        for number in range(_ROUNDS):
            listed = _list(directory)
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
            # What went away may have come back under another name: in a place already passed, or beside.
            done = listed.keys() - again

    def _names(
        self, directory: int, todo: list[str], listed: dict[str, Type], root: Root, place: Place
    ) -> tuple[set[str], bool]:
        """Scan names at the top; return those to be scanned again in a next round, and whether there must be one."""
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
        self, directory: int, todo: list[str], listed: dict[str, Type], root: Root, place: Place
    ) -> tuple[set[str], bool]:
        """Scan names at the top, the second half of them in a second process."""
        first, second = todo[: len(todo) // 2], todo[len(todo) // 2 :]

        def other_half() -> bytes:
            self.found = {}
            self.progress = _no_progress
            again, vanished = self._names(directory, second, listed, root, place)
            seen = [(path, tuple(entry)) for (_, path), entry in self.found.items()]
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
            for path, values in seen:
                self.found[self.number, path] = Entry(*values)
            self.progress(len(self.found))
        return again.union(more), vanished or gone

    def _forget(self, top: str) -> None:
        for key in [k for k in self.found if k[0] == self.number and (k[1] == top or k[1].startswith(f"{top}/"))]:
            del self.found[key]

    def _top(self, parent: int, name: str, kind: Type, seen: Named | Inside, root: Root) -> bool:
        """Scan one name at the top; whether it (and all in it) was still there."""
        match seen:
            case Named():
                return self._entry(parent, name, "", seen, kind, root)
            case Inside.WORK_ROOT:
                return True  # a root of its own; scan_log_dir comes to it
            case _:
                return self._inside(parent, name, seen, root)

    def _inside(self, parent: int, name: str, inside: Inside, root: Root) -> bool:
        """Scan a directory that is no entry itself."""
        try:
            if os.fsencode(name) in self.mounted:
                raise OSError(errno.EXDEV, "another file system is mounted here", name)
            directory = replica.open_directory(name, parent)
        except FileNotFoundError:
            return False
        except OSError as error:
            # Its content cannot be told: said as one unknown entry rather than as nothing.
            self.refuse(name, root, _problems_of(error))
            return True
        with _opened(directory):
            try:
                listed = _list(directory)
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

    def _entry(self, parent: int, name: str, above: str, seen: Named, kind: Type, root: Root) -> bool:
        """Scan one entry; whether it was still there."""
        path = above + name
        if kind is Type.FILE:
            return self._file(parent, name, path, seen, root)
        if kind is not Type.DIRECTORY:
            self._add(path, root, seen, None)
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
            if seen.is_replica:
                seen = _with_identity(seen, directory, contents)
        finally:
            os.close(directory)
        self._add(path, root, seen, contents)
        return True

    def _file(self, parent: int, name: str, path: str, seen: Named, root: Root) -> bool:
        size = 0
        if self.exact:
            try:
                size = os.stat(name, dir_fd=parent, follow_symlinks=False).st_size
            except FileNotFoundError:
                return False
            except OSError as error:
                self._add(path, root, seen._replace(problems=(*seen.problems, *_problems_of(error))), None)
                return True
        self._add(
            path, root, seen, replica.Contents(0, size, 0, 0, None, None, None, None, False, False, False)
        )
        return True

    def refuse(self, path: str, root: Root, problems: tuple[str, ...]) -> None:
        """Say that something whose content cannot be told lies here."""
        self._add(path, root, Named(Kind.UNKNOWN, problems=problems), None)

    def _add(self, path: str, root: Root, seen: Named, c: replica.Contents | None) -> None:
        figures: _Figures = _NO_FIGURES if c is None else c[:8]
        name, name_hex = path, None
        if not path.isascii():
            raw = os.fsencode(path)
            name = raw.decode("utf-8", "replace")
            name_hex = None if name.encode() == raw else raw.hex()
        self.found[self.number, path] = Entry(
            seen.kind.value, root.value, name, name_hex, seen.topic, seen.topic_id, seen.partition, *figures,
            tuple(sorted(seen.problems)) if len(seen.problems) > 1 else seen.problems,
        )  # fmt: skip
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


def _with_identity(seen: Named, directory: int, contents: replica.Contents) -> Named:
    """Add what ``partition.metadata`` and the marker say to what the name says."""
    if contents.has_metadata:
        identity = replica.read_identity(directory)
    else:
        identity = replica.Identity(None, None, "partition-metadata-missing")
    problem = identity.problem
    if problem is None and seen.topic_id is not None and identity.topic_id != seen.topic_id:
        problem = "partition-metadata-broken"
    topic = seen.topic
    if seen.topic is None:
        topic = identity.topic_name
        if topic is None and contents.has_marker:
            topic = replica.read_marker_topic(directory)
        if seen.needs_topic and identity.topic_name is None and problem is None:
            problem = "partition-metadata-broken"
    problems = seen.problems if problem is None else (*seen.problems, problem)
    return Named(seen.kind, topic, identity.topic_id, seen.partition, problems)


def _list(directory: int) -> dict[str, Type]:
    """List a directory with the type of each name. Raises ``OSError``."""
    listed = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                kind = Type.DIRECTORY
            elif entry.is_symlink():
                kind = Type.SYMLINK
            elif entry.is_file(follow_symlinks=False):
                kind = Type.FILE
            else:
                kind = Type.OTHER
            listed[entry.name] = kind
    return listed


def _layout(entries: tuple[Entry, ...]) -> str:
    live = {"topic-id" if "/" in e.name else "topic-name" for e in entries if e.kind == Kind.LIVE.value}
    return "mixed" if len(live) == 2 else next(iter(live), "empty")


def _status_of(error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "absent"
    return "no-permission" if error.errno in (errno.EACCES, errno.EPERM) else "io-error"


def _work_roots(scan: _Scan, log_dir: str, directory: int) -> None:
    """Scan the work roots ``in-place`` and ``beside`` where they exist (``inside`` is in the log dir's own tree)."""
    if os.fsencode(names.HIDDEN_WORK_ROOT) in scan.mounted:
        scan.refuse(names.HIDDEN_WORK_ROOT, Root.LOG_DIR, ("mount-point", "unreadable"))
    else:
        _work_root(scan, names.HIDDEN_WORK_ROOT, directory)
    _work_root(scan, f"{log_dir.rstrip('/')}.logdird", directory)


def _work_root(scan: _Scan, path: str, log_dir: int) -> None:
    """Scan one work root; an absolute ``path`` is its own, else it lies in the log dir."""
    name = os.path.basename(path)
    try:
        root = os.open(path, _ROOT | os.O_NOFOLLOW, dir_fd=log_dir)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        # A link or a plain file; inside the log dir it has been told as an entry already.
        if path != name:
            scan.refuse(name, Root.WORK_ROOT, ("symlink",) if os.path.islink(path) else ("plain-file",))
        return
    except OSError:
        scan.refuse(name, Root.WORK_ROOT, ("unreadable",))
        return
    with _opened(root):
        if os.fstat(root).st_dev != os.fstat(log_dir).st_dev:
            scan.refuse(name, Root.WORK_ROOT, ("mount-point", "unreadable"))
            return
        try:
            scan.walk(
                root, os.fsencode(os.path.realpath(f"/proc/self/fd/{root}")), Root.WORK_ROOT, Place.WORK_TOP
            )
        except OSError:
            scan.refuse(name, Root.WORK_ROOT, ("unreadable",))


def _identity(directory: int) -> tuple[meta_properties.MetaProperties | None, tuple[str, ...]]:
    try:
        value = meta_properties.parse(replica.read_small(META_PROPERTIES, directory))
    except FileNotFoundError:
        return None, ("meta-properties-missing",)
    except (OSError, FormatError):
        return None, ("meta-properties-malformed",)
    if value.node_id is None and value.cluster_id is None:
        # What a full disk leaves (kafka-formats §3.3): Kafka parses it, and then refuses to start on it.
        return value, ("meta-properties-malformed",)
    return value, ()


def _utf8(text: str | None) -> str | None:
    # A properties file can spell half of a surrogate pair, which no file of ours can hold.
    return text and text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _no_progress(entries: int) -> None:
    """Tell nobody."""


def scan_log_dir(
    log_dir: str,
    *,
    exact: bool = False,
    log_dirs: tuple[str, ...] | None = None,
    rack: str | None = None,
    taken_at_ms: int | None = None,
    processes: int = 1,
    progress: Callable[[int], None] = _no_progress,
) -> Scanned:
    """Look at one log dir and its work roots. Reads the disk, changes nothing.

    Args:
        log_dir: Path; a symlink is followed here only, as a broker does.
        exact: Size every file, not only segments.
        log_dirs: All log dirs configured for the broker, if known.
        rack: ``broker.rack``, if known.
        taken_at_ms: The instant to say, epoch milliseconds; the clock's if not given.
        processes: 2 lets a second, forked process look at half of a big log dir; only for a caller with one thread.
        progress: Called with the number of entries so far, now and then.

    Returns:
        The disk and its entries, sorted as in a file. A disk that cannot be read has status ``unreadable``, its
        problem, and no entries.
    """
    log_dir = os.path.abspath(log_dir)
    disk = Disk(
        log_dir=os.fsencode(log_dir).decode("utf-8", "replace"),
        taken_at_ms=now_ms() if taken_at_ms is None else taken_at_ms,
        exact=exact,
        status="ok",
        log_dirs=log_dirs,
        rack=_utf8(rack),
    )
    try:
        with _opened(os.open(log_dir, _ROOT)) as directory:
            return _scan_opened(disk, log_dir, directory, processes, progress)
    except OSError as error:
        return Scanned(disk._replace(status="unreadable", problems=(_status_of(error),)), ())


def _sorted(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    found = list(entries)
    # Texts in the order of their code points are in the order of their UTF-8 bytes; only hidden bytes need a key.
    quick = all(entry.name_hex is None for entry in found)
    return tuple(sorted(found, key=itemgetter(1, 2) if quick else sort_key))


def _scan_opened(
    disk: Disk, log_dir: str, directory: int, processes: int, progress: Callable[[int], None]
) -> Scanned:
    seen = os.fstat(directory)
    room = os.fstatvfs(directory)
    mounts = mount_table.read_mounts()
    real = os.fsencode(os.path.realpath(log_dir))
    scan = _Scan(exact=disk.exact, processes=processes, mounts=mounts, progress=progress)
    scan.walk(directory, real, Root.LOG_DIR, Place.TOP)
    _work_roots(scan, log_dir, directory)
    entries = _sorted(scan.found.values())
    identity, problems = _identity(directory)
    progress(len(entries))
    return Scanned(
        disk._replace(
            problems=problems,
            cluster_id=_utf8(identity.cluster_id) if identity else None,
            node_id=identity and identity.node_id,
            directory_id=str(identity.directory_id) if identity and identity.directory_id else None,
            device=f"{os.major(seen.st_dev)}:{os.minor(seen.st_dev)}",
            fs_type=mount_table.fs_type_of(mounts, real),
            total_bytes=room.f_blocks * room.f_frsize,
            free_bytes=room.f_bavail * room.f_frsize,
            total_inodes=room.f_files,
            free_inodes=room.f_favail,
            layout=_layout(entries),
        ),
        entries,
    )
