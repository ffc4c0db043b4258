"""Purge: the irrevocable removal of a staged replica, by a claim and then in small steps.

The claim is a rename to ``….purging``, after the marker was read again; it is durable before the first file is removed,
and restore refuses from then on. A big file that no other process holds is truncated in steps, so that other writes on
the disk do not wait for one huge removal; a file with a second name or an open descriptor is only unlinked. The marker
is removed after all other files, so an interrupted purge still identifies the replica. Several replicas share one sync
for their claims and one for their removal, and each is listed only once for both, provided that nothing in it changes
in between.

A replica that cannot be read, or that changed since it was judged, is left unchanged; the others are purged. An error
of a call that changes something concerns the disk, as everywhere (``failure``).

Not here: when a deadline has passed and how many replicas form a batch (``decide``), sleeping between steps (the
caller does, by ``throttle``).

Spec: design §3.3 "Purge"; attacks A10, A17, A18; reliability §2.3, §4.2 "tree removal".
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from logdir.decide.staged.purge import ClaimLimit, PurgeCost, fits
from logdir.disk.kernel.calls import Directory, Stat
from logdir.disk.kernel.failure import calling, full_disk, is_full, is_sick, with_reserve
from logdir.disk.kernel.fanout import for_each
from logdir.disk.kernel.fsync import syncing
from logdir.disk.replica.outcome import Outcome, Result, done, undone
from logdir.disk.replica.replica_dir import rename, require_file, require_marker
from logdir.disk.replica.staging import LOOK_AGAIN, as_error, require_staged
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.reserve import has_room
from logdir.errors import DiskError, LogDirError, ReadOnlyDiskError, RefusedError
from logdir.formats.own import own_json
from logdir.formats.own.replica_marker import FILE_NAME, ReplicaMarker, render
from logdir.names import parse_work_dir, render_work_dir
from logdir.paths import DELETING
from logdir.refusal_slug import Why

STEP_BYTES = 8 << 20
"""Bytes that one truncation removes from a file (reliability §2.3: 14 ms for a neighbour's fsync, against 646)."""
GROUP = 32
"""Number of small files that count as one step."""
_SMALL = (".index", ".timeindex", ".txnindex", ".snapshot")
"""Suffixes of the files beside segments: at most a few of their apparent ten megabytes were ever written."""
Throttle = Callable[[int, int], None]
"""Called with the bytes and files that a step freed; may sleep."""
InUse = Callable[[Directory, str], bool]
"""Whether a process has a file of a directory open or mapped."""
_ALONE = frozenset({errno.EIO, errno.EUCLEAN})
"""Errors that a bad block or inode under one replica causes; other sick errors concern the whole disk."""


class Listing(NamedTuple):
    """The files in a replica's directory when it was claimed."""

    inode: int
    mtime_ns: int
    """Modification time of the directory: it changes when an entry is added or removed."""
    files: Mapping[str, Stat | None]
    """Status of each file; ``None`` for a file that is small by its name and was not examined."""

    @property
    def load(self) -> PurgeCost:
        """Return the space and files that its removal frees."""
        alone = sum(found.size_bytes for found in self.files.values() if found is not None and found.links == 1)
        return PurgeCost(1, alone, len(self.files))


class _UnreadableError(OSError):
    """One replica cannot be read; nothing in it was changed."""


def _at_once(freed_bytes: int, files: int) -> None:
    """Throttle that does not wait."""


def claim(open_dir: OpenLogDir, name: str, marker: ReplicaMarker) -> str:
    """Claim a staged replica for removal; it cannot be restored any more.

    Args:
        open_dir: Its log dir.
        name: Its name under ``deleting/``.
        marker: The marker on which the deadline was judged; it is read again and must be equal.

    Returns:
        Its new name under ``deleting/``.

    Raises:
        RefusedError: its marker differs, an entry is no regular file, or the replica is not staged but incoming.
        ReadOnlyDiskError: the sync failed, or the disk is sick.
        OSError: any other error; it is still staged.
    """
    with calling(open_dir.deleting):
        claimed, _ = _judged(open_dir, name, marker)
        _claim(open_dir, name, claimed)
        with syncing(open_dir.deleting):
            open_dir.deleting.sync()
    return claimed


def _judged(open_dir: OpenLogDir, name: str, marker: ReplicaMarker) -> tuple[str, Listing]:
    """Check a replica again; return the name of its claim and its listing."""
    parts = parse_work_dir(name)
    if parts is None or parts.mark:
        raise ValueError(f"not the name of a staged replica: {name!r}")
    with _looking(), open_dir.deleting.open(name) as directory:
        require_staged(marker, directory.path)
        if not _is_byte_for_byte(open_dir, directory, marker):
            found = require_marker(open_dir, directory)
            require_staged(found, directory.path)
            if found != marker:
                raise RefusedError(
                    directory.path,
                    why=Why.CHANGED,
                    expected="the marker on which its deadline was judged",
                    found="a marker that changed",
                    fix=LOOK_AGAIN,
                )
        return render_work_dir(parts._replace(mark="purging")), _listed(directory)


def _is_byte_for_byte(open_dir: OpenLogDir, directory: Directory, marker: ReplicaMarker) -> bool:
    """Whether the marker file has exactly the bytes we would write for this directory and host, so it need not be
    parsed.

    False does not mean an error: ``require_marker`` then decides.
    """
    if (marker.cluster_id, marker.node_id, marker.directory_id) != (
        open_dir.cluster_id,
        open_dir.node_id,
        open_dir.directory_id,
    ):
        return False
    if marker.birth_inode != directory.identity().inode:
        return False
    try:
        return directory.read(FILE_NAME, own_json.MAX_BYTES) == render(marker)
    except FileNotFoundError:
        return False


def _claim(open_dir: OpenLogDir, name: str, claimed: str) -> None:
    """Rename a replica to its claimed name; not durable yet."""
    rename(open_dir, open_dir.deleting, name, open_dir.deleting, claimed)


def _listed(directory: Directory) -> Listing:
    """Check every file before the first is removed, so that a refused replica stays whole."""
    # Read before the names, so that an entry added between the two calls is noticed later.
    own = directory.own_stat()
    files: dict[str, Stat | None] = {}
    for name, kind in directory.types().items():
        files[name] = found = None if name.endswith(_SMALL) else directory.stat(name)
        require_file(directory, name, kind if found is None else found.type)
    return Listing(own.inode, own.mtime_ns, files)


@contextmanager
def _looking() -> Iterator[None]:
    """Turn a read error of one replica in the body into ``_UnreadableError``."""
    try:
        yield
    except OSError as error:
        if error.errno in _ALONE:
            raise _UnreadableError(error.errno, error.strerror, error.filename) from error
        raise


def remove(open_dir: OpenLogDir, claimed: str, throttle: Throttle = _at_once, *, in_use: InUse) -> None:
    """Remove a claimed replica; repeatable after any interruption.

    Args:
        open_dir: Its log dir.
        claimed: Its name, from ``claim``, or from a scan after ``recover``, which makes claims durable.
        throttle: Called after every step with the bytes of segments and the number of files it freed.
        in_use: Whether a process has a file open or mapped; such a file is only unlinked.

    Raises:
        RefusedError: an entry is no regular file.
        ReadOnlyDiskError: the sync failed, or the disk is sick.
        OSError: any other error; the rest is still claimed.
    """
    with calling(open_dir.deleting):
        _remove(open_dir, claimed, throttle, in_use, None)
        with syncing(open_dir.deleting):
            open_dir.deleting.sync()


def _remove(open_dir: OpenLogDir, claimed: str, throttle: Throttle, in_use: InUse, seen: Listing | None) -> None:
    """Remove files and directory; not durable yet."""
    parts = parse_work_dir(claimed)
    if parts is None or parts.mark != "purging":
        raise ValueError(f"not the name of a claimed replica: {claimed!r}")
    with ExitStack() as stack:
        with _looking():
            directory = stack.enter_context(open_dir.deleting.open(claimed))
            own = directory.own_stat()
            is_as_seen = seen is not None and (seen.inode, seen.mtime_ns) == (own.inode, own.mtime_ns)
            files = seen.files if seen is not None and is_as_seen else _listed(directory).files
        _remove_files(open_dir, directory, files, throttle, in_use)
    with_reserve(open_dir.work, lambda: open_dir.deleting.remove(claimed))


def claim_all(
    open_dir: OpenLogDir,
    items: Mapping[str, ReplicaMarker],
    *,
    room: ClaimLimit | None = None,
    seen: dict[str, Listing] | None = None,
) -> tuple[Outcome, ...]:
    """Claim several replicas with one sync.

    Args:
        open_dir: Their log dir.
        items: Their names under ``deleting/``, and the markers on which their deadlines were judged.
        room: Limit of data that may wait for removal; ``None``: no limit.
        seen: Receives the listing of each claimed replica, by its new name, for ``remove_all``.

    Returns:
        One outcome per item, in their order; ``place`` is relative to the work root. There are fewer outcomes if the
        limit is reached or the disk has no space for another name: later items are untouched. At least one outcome, if
        there is any item.

    Raises:
        ReadOnlyDiskError: the sync failed, or the disk is sick; the next scan shows the state of each.
    """
    outcomes: dict[str, Outcome] = {}
    taken = PurgeCost(0, 0, 0)
    with calling(open_dir.deleting):
        for name, marker in items.items():
            with _noting(open_dir, name, outcomes):
                claimed, listing = _judged(open_dir, name, marker)
                if room is not None and not fits(room, taken, listing.load):
                    break
                try:
                    _claim(open_dir, name, claimed)
                except OSError as error:
                    if is_full(error) and _is_any_done(outcomes):
                        break  # A new name needs space, too: removing the claimed replicas frees some.
                    raise
                taken = taken.plus(listing.load)
                if seen is not None:
                    seen[claimed] = listing
                outcomes[name] = done(f"{DELETING}/{name}", f"{DELETING}/{claimed}")
        if _is_any_done(outcomes):
            with syncing(open_dir.deleting):
                open_dir.deleting.sync()
    return tuple(outcomes.values())


def remove_all(
    open_dir: OpenLogDir,
    claimed: Sequence[str],
    throttle: Throttle = _at_once,
    *,
    in_use: InUse,
    seen: Mapping[str, Listing] = MappingProxyType({}),
    at_once: int = 1,
) -> tuple[Outcome, ...]:
    """Remove several claimed replicas with one sync after the last; repeatable after any interruption.

    A claim found by a scan may not be durable, if its process was killed: it is made durable first.

    Args:
        open_dir: Their log dir.
        claimed: Their names under ``deleting/``, from ``claim_all`` or a scan; each once.
        throttle: Called after every step, and before each replica with 0 bytes and 0 files.
        in_use: Whether a process has a file open or mapped; such a file is only unlinked.
        seen: Listings from ``claim_all``, whose claims are durable; these replicas are not listed again.
        at_once: How many removals may run at a time if the disk has space: a system call takes longer than the Python
            between two. Above 1, ``throttle`` and ``in_use`` are called from several threads.

    Returns:
        One outcome per name, in their order; an undone one is still claimed, and its ``place`` names it.

    Raises:
        ReadOnlyDiskError: the sync failed, or the disk is sick; the next scan shows the state of each.
    """
    outcomes: dict[str, Outcome] = {}
    with calling(open_dir.deleting):
        if any(name not in seen for name in claimed):
            with syncing(open_dir.deleting):
                open_dir.deleting.sync()

        def remove_one(name: str) -> None:
            with _noting(open_dir, name, outcomes, is_claimed=True):
                throttle(0, 0)
                _remove(open_dir, name, throttle, in_use, seen.get(name))
                outcomes[name] = done(f"{DELETING}/{name}", None)

        # On a full disk one by one: the reserve is released for one call.
        for_each(claimed, remove_one, at_once if at_once == 1 or has_room(open_dir.work.space()) else 1)
        if _is_any_done(outcomes):
            with syncing(open_dir.deleting):
                open_dir.deleting.sync()
    return tuple(outcomes[name] for name in claimed)


def _is_any_done(outcomes: Mapping[str, Outcome]) -> bool:
    """Whether any outcome is done, which a sync must make durable."""
    return any(one.result is Result.DONE for one in outcomes.values())


@contextmanager
def _noting(
    open_dir: OpenLogDir, name: str, outcomes: dict[str, Outcome], *, is_claimed: bool = False
) -> Iterator[None]:
    """Record an error of one replica as its outcome; if the replica was claimed, part of it may be removed already."""
    path, place = f"{open_dir.deleting.path}/{name}", f"{DELETING}/{name}"
    lies = place if is_claimed else None
    as_ours = _as_begun if is_claimed else as_error
    try:
        yield
    except ReadOnlyDiskError:
        raise
    except LogDirError as error:
        outcomes[name] = undone(place, error, lies)
    except FileNotFoundError:
        gone = RefusedError(
            path,
            why=Why.CHANGED,
            expected="the replica that was seen there",
            found="none: purged, or restored",
            fix=LOOK_AGAIN,
        )
        outcomes[name] = undone(place, gone)
    except _UnreadableError as error:
        open_dir.deleting.own_stat()  # An XFS that has shut down fails here, too: then the whole disk is concerned.
        outcomes[name] = undone(place, as_ours(path, error), lies)
    except OSError as error:
        if is_sick(error):
            raise
        outcomes[name] = undone(place, as_ours(path, error), lies)


def _as_begun(path: str, error: OSError) -> DiskError:
    """Convert an ``OSError`` of a removal that has begun."""
    begun = "its removal has begun: it cannot be restored, and files of it may be gone"
    if is_full(error):
        fix = f"{begun}; free space on that disk, then logdirctl staged purge goes on with it"
        return full_disk(path, error, fix)
    fix = f"{begun}; remove the cause, then logdirctl staged purge goes on with it"
    return DiskError(path, expected="a call that succeeds", found=error.strerror or error, fix=fix)


def _remove_files(
    open_dir: OpenLogDir, directory: Directory, files: Mapping[str, Stat | None], throttle: Throttle, in_use: InUse
) -> None:
    """Remove every file, the marker last."""
    waiting = 0
    group: list[str] = []
    for name in sorted(files, key=lambda name: name == FILE_NAME):
        waiting += _shortened(directory, name, files[name], throttle, in_use)
        group.append(name)
        if len(group) == GROUP or waiting >= STEP_BYTES:
            _unlink(open_dir, directory, group, waiting, throttle)
            group, waiting = [], 0
    if group:
        _unlink(open_dir, directory, group, waiting, throttle)


def _shortened(directory: Directory, name: str, found: Stat | None, throttle: Throttle, in_use: InUse) -> int:
    """Truncate a big file in steps; return the bytes that its final unlink frees."""
    if found is None:
        return 0
    if found.size_bytes > STEP_BYTES:
        # Check the file again before truncating: it may have got a second name.
        found = directory.stat(name)
        require_file(directory, name, found.type)
    if found.links != 1:
        return 0
    size = found.size_bytes
    if size > STEP_BYTES and not in_use(directory, name):
        while size > STEP_BYTES:
            size -= STEP_BYTES
            directory.truncate(name, size)
            throttle(STEP_BYTES, 0)
    return size


def _unlink(
    open_dir: OpenLogDir, directory: Directory, names: Sequence[str], freed_bytes: int, throttle: Throttle
) -> None:
    for name in names:
        with_reserve(open_dir.work, partial(directory.unlink, name))  # On btrfs a truncation needs space, too.
    throttle(freed_bytes, len(names))
