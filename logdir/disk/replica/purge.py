"""The irrevocable removal of a staged replica: claimed, then removed a little at a time.

The claim is a rename to ``….purging`` on the marker just read again, made durable before the first file goes; from
there on restore refuses. A big file that nobody else holds is truncated in steps, so that a neighbour's writes do not
wait for one huge removal; one with a second name or an open descriptor is only unlinked. The marker goes last but for
the directory itself, so an interrupted purge says what it was. Several together share the sync of their claims and that
of their removal, and each is listed once for both, as long as nothing comes or goes in between.

Of several, one that cannot be read, or is not as it was judged, is left as it is; the others go on. An error of a call
that changes something tells of the disk, as everywhere (``failure``).

Not here: when a deadline has passed and how many go together (``decide``), the sleeping between steps (the
caller's ``throttle``).

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
from logdir.disk.kernel.failure import calling, full_disk, is_full, is_sick, syncing, with_reserve
from logdir.disk.kernel.fanout import for_each
from logdir.disk.replica.outcome import Outcome, Result, done, undone
from logdir.disk.replica.replica_dir import rename, require_file, require_marker
from logdir.disk.replica.staging import as_error, require_staged
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.reserve import has_room
from logdir.errors import DiskError, LogDirError, ReadOnlyDiskError, RefusedError
from logdir.formats.own import own_json
from logdir.formats.own.replica_marker import FILE_NAME, ReplicaMarker, render
from logdir.names import parse_work_dir, render_work_dir
from logdir.paths import DELETING
from logdir.refusal_slug import Why

STEP_BYTES = 8 << 20
"""What one truncation takes off a file (reliability §2.3: 14 ms for a neighbour's fsync, against 646)."""
GROUP = 32
"""Of small files so many are one step."""
_SMALL = (".index", ".timeindex", ".txnindex", ".snapshot")
"""What lies beside segments: of the ten megabytes such a file may seem to have few were ever written."""
Throttle = Callable[[int, int], None]
"""Told bytes and files freed by the step just made; may wait."""
InUse = Callable[[Directory, str], bool]
"""Whether somebody has a file of a directory open or mapped."""
_ALONE = frozenset({errno.EIO, errno.EUCLEAN})
"""What a bad block or inode under one replica says; what else is sick tells of the disk."""


class Listing(NamedTuple):
    """What was in a replica's directory when it was claimed."""

    inode: int
    mtime_ns: int
    """Of the directory: what comes or goes in it changes that."""
    files: Mapping[str, Stat | None]
    """``None``: by its name it is small, and was not looked at."""

    @property
    def load(self) -> PurgeCost:
        """Return what its removal frees."""
        alone = sum(found.size_bytes for found in self.files.values() if found is not None and found.links == 1)
        return PurgeCost(1, alone, len(self.files))


class _UnreadableError(OSError):
    """One replica cannot be read; nothing of it was changed."""


def _at_once(freed_bytes: int, files: int) -> None:
    """Do not wait."""


def claim(open_dir: OpenLogDir, name: str, marker: ReplicaMarker) -> str:
    """Take a staged replica for removal; from here on it cannot be restored.

    Args:
        open_dir: Its log dir.
        name: Under ``deleting/``.
        marker: On which the deadline was judged; it is read again and must say the same.

    Returns:
        Its new name under ``deleting/``.

    Raises:
        RefusedError: its marker says something else, it holds what is no regular file, or it is on its way in.
        ReadOnlyDiskError: the sync failed, or the disk is sick.
        OSError: another error; it is still staged.
    """
    with calling(open_dir.deleting):
        claimed, _ = _judged(open_dir, name, marker)
        _claim(open_dir, name, claimed)
        with syncing(open_dir.deleting):
            open_dir.deleting.sync()
    return claimed


def _judged(open_dir: OpenLogDir, name: str, marker: ReplicaMarker) -> tuple[str, Listing]:
    """Look at a replica again; return the name of its claim and what is in it."""
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
                    expected="the marker that was judged",
                    found="a marker that changed",
                    fix="look again",
                )
        return render_work_dir(parts._replace(mark="purging")), _listed(directory)


def _is_byte_for_byte(open_dir: OpenLogDir, directory: Directory, marker: ReplicaMarker) -> bool:
    """Whether a marker that is of this directory and host stands there as we write it: then it need not be taken apart.

    Where it says no, nothing is wrong yet: ``require_marker`` tells.
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
    """Rename; not durable yet."""
    rename(open_dir, open_dir.deleting, name, open_dir.deleting, claimed)


def _listed(directory: Directory) -> Listing:
    """Look at every file, before the first goes: a replica that is refused is whole."""
    # Before the names: what comes between the two is seen to have come.
    own = directory.own_stat()
    files: dict[str, Stat | None] = {}
    for name, kind in directory.types().items():
        files[name] = found = None if name.endswith(_SMALL) else directory.stat(name)
        require_file(directory, name, kind if found is None else found.type)
    return Listing(own.inode, own.mtime_ns, files)


@contextmanager
def _looking() -> Iterator[None]:
    """Tell an error of reading one replica from one of changing it."""
    try:
        yield
    except OSError as error:
        if error.errno in _ALONE:
            raise _UnreadableError(error.errno, error.strerror, error.filename) from error
        raise


def remove(open_dir: OpenLogDir, claimed: str, throttle: Throttle = _at_once, *, in_use: InUse) -> None:
    """Remove a claimed replica; repeatable from wherever it stopped.

    Args:
        open_dir: Its log dir.
        claimed: Of ``claim``, or found by a scan after ``recover``, which makes claims durable.
        throttle: Called after every step with the bytes of segments it freed, and its files.
        in_use: Whether somebody has a file open or mapped; such a one is only unlinked.

    Raises:
        RefusedError: it holds what is no regular file.
        ReadOnlyDiskError: the sync failed, or the disk is sick.
        OSError: another error; what is left is still claimed.
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
    """Claim several with one sync.

    Args:
        open_dir: Their log dir.
        items: Their names under ``deleting/``, and the markers on which their deadlines were judged.
        room: How much may wait for its removal; ``None``: all of it.
        seen: Is told what lies in each that is claimed, by its new name: for ``remove_all``.

    Returns:
        One outcome per item, in their order; ``place`` is relative to the work root. Fewer, if there is no room, also
        on the disk for another name: the items after them were not touched. At least one, if there is any item.

    Raises:
        ReadOnlyDiskError: the sync failed, or the disk is sick; a scan tells what became of each.
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
                        break  # a new name takes room, too: what is claimed goes first, and makes some
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
    """Remove several claimed replicas with one sync after the last; repeatable from wherever it stopped.

    A claim that was found by a scan may be of a process that was killed before it was durable: it is made so first.

    Args:
        open_dir: Their log dir.
        claimed: Their names under ``deleting/``, of ``claim_all`` or found by a scan; none twice.
        throttle: Called after every step.
        in_use: Whether somebody has a file open or mapped; such a one is only unlinked.
        seen: Of ``claim_all``, whose claims are durable: what need not be listed once more.
        at_once: How many may be under way, where the disk has room: a call of the kernel takes longer than what is
            between two. ``throttle`` and ``in_use`` are then called from several threads.

    Returns:
        One outcome per name, in their order; what is not done is still claimed, and its ``place`` says where.

    Raises:
        ReadOnlyDiskError: the sync failed, or the disk is sick; a scan tells what became of each.
    """
    outcomes: dict[str, Outcome] = {}
    with calling(open_dir.deleting):
        if any(name not in seen for name in claimed):
            with syncing(open_dir.deleting):
                open_dir.deleting.sync()

        def remove_one(name: str) -> None:
            with _noting(open_dir, name, outcomes, is_claimed=True):
                _remove(open_dir, name, throttle, in_use, seen.get(name))
                outcomes[name] = done(f"{DELETING}/{name}", None)

        # On a full disk one by one: what is kept for that is given up for one call.
        for_each(claimed, remove_one, at_once if at_once == 1 or has_room(open_dir.work.space()) else 1)
        if _is_any_done(outcomes):
            with syncing(open_dir.deleting):
                open_dir.deleting.sync()
    return tuple(outcomes[name] for name in claimed)


def _is_any_done(outcomes: Mapping[str, Outcome]) -> bool:
    """Whether something is said that has to last: of what is not done nothing is."""
    return any(one.result is Result.DONE for one in outcomes.values())


@contextmanager
def _noting(
    open_dir: OpenLogDir, name: str, outcomes: dict[str, Outcome], *, is_claimed: bool = False
) -> Iterator[None]:
    """Note an error that concerns one alone; of one that is claimed nothing is as it was."""
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
            path, why=Why.CHANGED, expected="what was seen there", found="none: purged, or restored", fix="look again"
        )
        outcomes[name] = undone(place, gone)
    except _UnreadableError as error:
        open_dir.deleting.own_stat()  # an XFS that has shut down says so here, too: then it is not one alone
        outcomes[name] = undone(place, as_ours(path, error), lies)
    except OSError as error:
        if is_sick(error):
            raise
        outcomes[name] = undone(place, as_ours(path, error), lies)


def _as_begun(path: str, error: OSError) -> DiskError:
    """Return an error of the kernel, of a removal that has begun, as one of ours."""
    begun = "its removal has begun: it cannot be restored, and files of it may be gone"
    if is_full(error):
        fix = f"{begun}; make room on that disk, then logdirctl staged purge goes on with it"
        return full_disk(path, error, fix)
    fix = f"{begun}; see why, then logdirctl staged purge goes on with it"
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
    """Take off a big file what goes in steps; return the bytes that go with its name."""
    if found is None:
        return 0
    if found.size_bytes > STEP_BYTES:
        # What is truncated is looked at once more: it may have got a second name.
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
        with_reserve(open_dir.work, partial(directory.unlink, name))  # which takes room, too, on btrfs
    throttle(freed_bytes, len(names))
