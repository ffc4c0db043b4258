"""Scan one log dir and its work roots into an inventory: read-only, standard library only.

Every entry gets exactly one kind and its problems; none is left out. An unreadable disk is reported as such, never as
an empty one.

Not here: walking a tree (``walk``), the kind of a name (``classify``), file formats (``formats``).

Spec: design §3.2, §7.1; law 10.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable
from operator import itemgetter
from typing import NamedTuple

from logdir.clock import now_ms
from logdir.errors import FormatError
from logdir.formats.kafka import meta_properties
from logdir.formats.own.inventory import Disk, Kind, raw_name
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.observe import mounts as mount_table
from logdir.observe import replica
from logdir.observe.classify import Place
from logdir.observe.entry import ScannedEntry
from logdir.observe.walk import Walk, no_progress, opened
from logdir.paths import BESIDE, HIDDEN_WORK_ROOT, META_PROPERTIES

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Scanned(NamedTuple):
    """The result of scanning one log dir."""

    disk: Disk
    entries: tuple[ScannedEntry, ...]
    """Sorted as in an inventory file: those of the log dir before those of work roots, by name."""


def _layout(entries: Iterable[ScannedEntry]) -> str:
    live = {"topic-id" if "/" in e.name else "topic-name" for e in entries if e.kind is Kind.LIVE}
    return "mixed" if len(live) == 2 else next(iter(live), "empty")


def _status_of(error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "absent"
    return "no-permission" if error.errno in (errno.EACCES, errno.EPERM) else "io-error"


def _work_roots(scan: Walk, log_dir: str, directory: int) -> None:
    """Scan the work roots ``in-place`` and ``beside`` where they exist (``inside`` is in the log dir's own tree)."""
    if os.fsencode(HIDDEN_WORK_ROOT) in scan.mounted:
        scan.refuse(HIDDEN_WORK_ROOT, None, ("mount-point", "unreadable"))
    else:
        _work_root(scan, WorkRootKind.IN_PLACE, HIDDEN_WORK_ROOT, directory)
    _work_root(scan, WorkRootKind.BESIDE, f"{log_dir.rstrip('/')}{BESIDE}", directory)


def _work_root(scan: Walk, kind: WorkRootKind, path: str, log_dir: int) -> None:
    """Scan one work root; ``path`` is absolute, or relative to the log dir."""
    name = os.path.basename(path)
    try:
        root = os.open(path, _ROOT | os.O_NOFOLLOW, dir_fd=log_dir)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        # A link or a plain file; inside the log dir it is already listed as an entry.
        if path != name:
            scan.refuse(name, kind, ("symlink",) if os.path.islink(path) else ("plain-file",))
        return
    except OSError:
        scan.refuse(name, kind, ("unreadable",))
        return
    with opened(root):
        if os.fstat(root).st_dev != os.fstat(log_dir).st_dev:
            scan.refuse(name, kind, ("mount-point", "unreadable"))
            return
        try:
            scan.walk(root, os.fsencode(os.path.realpath(f"/proc/self/fd/{root}")), kind, Place.WORK_TOP)
        except OSError:
            scan.refuse(name, kind, ("unreadable",))


def _identity(directory: int) -> tuple[meta_properties.MetaProperties | None, tuple[str, ...]]:
    try:
        value = meta_properties.parse(replica.read_small(META_PROPERTIES, directory))
        if value.node_id == meta_properties.START_BLOCK_NODE_ID:
            return _true_identity(value, directory)
    except FileNotFoundError:
        return None, ("meta-properties-missing",)
    except PermissionError:
        return None, ("no-permission",)
    except (OSError, FormatError):
        return None, ("meta-properties-malformed",)
    if value.node_id is None and value.cluster_id is None:
        # The result of a full disk (kafka-formats §3.3): Kafka parses it, and then does not start.
        return value, ("meta-properties-malformed",)
    return value, ()


def _true_identity(
    blocked: meta_properties.MetaProperties, directory: int
) -> tuple[meta_properties.MetaProperties, tuple[str, ...]]:
    """Return the original identity of a blocked log dir; without a node id if that is lost."""
    from logdir.formats.own import start_block_file

    try:
        file = start_block_file.parse(replica.read_small(start_block_file.FILE_NAME, directory))
        if start_block_file.blocked(file.original) == replica.read_small(META_PROPERTIES, directory):
            return meta_properties.parse(file.original), ()
    except (OSError, FormatError):
        pass
    return blocked._replace(node_id=None), ("meta-properties-malformed",)


def _utf8(text: str | None) -> str | None:
    # A properties file can contain half of a surrogate pair, which our files cannot.
    return text and text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def configured(
    log_dir: str,
    *,
    exact: bool,
    log_dirs: tuple[str, ...] | None,
    rack: str | None,
    taken_at_ms: int | None = None,
) -> Disk:
    """Return the facts of a log dir that are known without reading it; arguments as for ``scan_log_dir``."""
    return Disk(
        log_dir=os.fsencode(os.path.abspath(log_dir)).decode("utf-8", "replace"),
        taken_at_ms=now_ms() if taken_at_ms is None else taken_at_ms,
        exact=exact,
        status="ok",
        log_dirs=log_dirs,
        rack=_utf8(rack),
    )


def unread(disk: Disk, problem: str) -> Scanned:
    """Return the result for a log dir that cannot be read: no entries, and the slug of the problem."""
    return Scanned(disk._replace(status="unreadable", problems=(problem,)), ())


def scan_log_dir(
    log_dir: str,
    *,
    exact: bool = False,
    log_dirs: tuple[str, ...] | None = None,
    rack: str | None = None,
    taken_at_ms: int | None = None,
    processes: int = 1,
    progress: Callable[[int], None] = no_progress,
    only: Collection[str] | None = None,
) -> Scanned:
    """Scan one log dir and its work roots. Reads the disk, changes nothing.

    Args:
        log_dir: Path; a symlink is followed here only, as a broker does.
        exact: Size every file, not only segments.
        log_dirs: All log dirs configured for the broker, if known.
        rack: ``broker.rack``, if known.
        taken_at_ms: The instant to record, epoch milliseconds; default: now.
        processes: 2 lets a forked process scan half of a big log dir; only for a caller with one thread.
        progress: Called from time to time with the number of entries so far.
        only: Paths relative to the log dir or a work root, of one or two components: only these are scanned, and no
            directory is listed.

    Returns:
        The disk and its entries, sorted as in a file. A disk that cannot be read has status ``unreadable``, its
        problem, and no entries.
    """
    log_dir = os.path.abspath(log_dir)
    disk = configured(log_dir, exact=exact, log_dirs=log_dirs, rack=rack, taken_at_ms=taken_at_ms)
    try:
        with opened(os.open(log_dir, _ROOT)) as directory:
            scan = Walk(
                exact=exact, processes=processes, mounts=mount_table.read_mounts(), progress=progress, only=only
            )
            return _scan_opened(scan, disk, log_dir, directory)
    except OSError as error:
        return unread(disk, _status_of(error))


def _sorted(entries: Iterable[ScannedEntry]) -> tuple[ScannedEntry, ...]:
    own: list[ScannedEntry] = []
    outside: list[ScannedEntry] = []
    for entry in entries:
        (own if entry.root is None else outside).append(entry)
    return (*_by_name(own), *_by_name(outside))


def _by_name(entries: list[ScannedEntry]) -> list[ScannedEntry]:
    # Sorting by code points equals sorting by UTF-8 bytes; only names that are not UTF-8 need a key.
    if all(entry.name_hex is None for entry in entries):
        return sorted(entries, key=itemgetter(0))
    return sorted(entries, key=lambda entry: raw_name(entry.name, entry.name_hex))


def _scan_opened(scan: Walk, disk: Disk, log_dir: str, directory: int) -> Scanned:
    seen = os.fstat(directory)
    room = os.fstatvfs(directory)
    real = os.fsencode(os.path.realpath(log_dir))
    scan.walk(directory, real, None, Place.TOP)
    _work_roots(scan, log_dir, directory)
    entries = _sorted(scan.found.values())
    identity, problems = _identity(directory)
    scan.progress(len(entries))
    return Scanned(
        disk._replace(
            problems=problems,
            cluster_id=_utf8(identity.cluster_id) if identity else None,
            node_id=identity and identity.node_id,
            directory_id=str(identity.directory_id) if identity and identity.directory_id else None,
            device=f"{os.major(seen.st_dev)}:{os.minor(seen.st_dev)}",
            fs_type=mount_table.fs_type_of(scan.mounts, real),
            total_bytes=room.f_blocks * room.f_frsize,
            free_bytes=room.f_bavail * room.f_frsize,
            total_inodes=room.f_files,
            free_inodes=room.f_favail,
            layout=_layout(entries),
        ),
        entries,
    )
