"""The irrevocable removal of a staged replica: claimed, then removed a little at a time.

The claim is a rename to ``….purging`` on the marker just read again, made durable before the first file goes; from
there on restore refuses. A big file that nobody else holds is truncated in steps, so that a neighbour's writes do not
wait for one huge removal; one with a second name or an open descriptor is only unlinked. The marker goes last but for
the directory itself, so an interrupted purge says what it was. Several together share the sync of their claims and that
of their removal.

Not here: when a deadline has passed (``decide.deadline``), the sleeping between steps (``pace`` is the caller's).

Spec: design §3.3 "Purge"; attacks A10, A17, A18; reliability §2.3, §4.2 "tree removal".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from logdir.disk.calls import Directory, Stat
from logdir.disk.failure import calling, is_sick, syncing, with_reserve
from logdir.disk.outcome import Outcome, done, undone
from logdir.disk.replica_dir import rename, require_file, require_marker, require_plain
from logdir.disk.site import Site
from logdir.disk.staging import as_error, require_staged
from logdir.errors import LogDirError, ReadOnlyDiskError, RefusedError
from logdir.formats.replica_marker import FILE_NAME, ReplicaMarker
from logdir.names import parse_work_dir, render_work_dir

STEP_BYTES = 8 << 20
"""What one truncation takes off a file (reliability §2.3: 14 ms for a neighbour's fsync, against 646)."""
Pace = Callable[[int, int], None]
"""Told bytes and files freed by the step just made; may wait."""
InUse = Callable[[Directory, str], bool]
"""Whether somebody has a file of a directory open or mapped."""


def _at_once(freed_bytes: int, files: int) -> None:
    """Do not wait."""


def claim(site: Site, name: str, marker: ReplicaMarker) -> str:
    """Take a staged replica for removal; from here on it cannot be restored.

    Args:
        site: Its log dir.
        name: Under ``deleting/``.
        marker: On which the deadline was judged; it is read again and must say the same.

    Returns:
        Its new name under ``deleting/``.

    Raises:
        RefusedError: its marker says something else, it holds what is no regular file, or it is on its way in.
        ReadOnlyDiskError: the sync failed, or the disk is sick.
        OSError: another error; it is still staged.
    """
    with calling(site.deleting):
        claimed = _claim(site, name, marker)
        with syncing(site.deleting):
            site.deleting.sync()
    return claimed


def _claim(site: Site, name: str, marker: ReplicaMarker) -> str:
    """Rename; not durable yet."""
    parts = parse_work_dir(name)
    if parts is None or parts.mark:
        raise ValueError(f"not the name of a staged replica: {name!r}")
    claimed = render_work_dir(parts._replace(mark="purging"))
    with site.deleting.open(name) as directory:
        found = require_marker(site, directory)
        require_staged(found, directory.path)
        if found != marker:
            raise RefusedError(directory.path, expected="the marker that was judged", found="another", fix="look again")
        require_plain(directory)
    rename(site, site.deleting, name, site.deleting, claimed)
    return claimed


def remove(site: Site, claimed: str, pace: Pace = _at_once, *, in_use: InUse) -> int:
    """Remove a claimed replica; repeatable from wherever it stopped.

    Args:
        site: Its log dir.
        claimed: Of ``claim``, or found by a scan.
        pace: Called after every step.
        in_use: Whether somebody has a file open or mapped; such a one is only unlinked.

    Returns:
        Bytes freed, as far as nobody else holds them.

    Raises:
        RefusedError: it holds what is no regular file.
        ReadOnlyDiskError: the sync failed, or the disk is sick.
        OSError: another error; what is left is still claimed.
    """
    with calling(site.deleting):
        freed = _remove(site, claimed, pace, in_use)
        with syncing(site.deleting):
            site.deleting.sync()
    return freed


def _remove(site: Site, claimed: str, pace: Pace, in_use: InUse) -> int:
    """Remove files and directory; not durable yet."""
    parts = parse_work_dir(claimed)
    if parts is None or parts.mark != "purging":
        raise ValueError(f"not the name of a claimed replica: {claimed!r}")
    freed = 0
    with site.deleting.open(claimed) as directory:
        # Before the first goes: a replica that is refused is whole.
        found = {name: directory.stat(name) for name in directory.names()}
        for name, what in found.items():
            require_file(directory, name, what)
        for name in sorted(found, key=lambda name: name == FILE_NAME):
            freed += _remove_file(site, directory, name, found[name], pace, in_use)
    with_reserve(site.work, lambda: site.deleting.remove(claimed))
    return freed


def claim_all(site: Site, items: Mapping[str, ReplicaMarker]) -> tuple[Outcome, ...]:
    """Claim several with one sync.

    Args:
        site: Their log dir.
        items: Their names under ``deleting/``, and the markers on which their deadlines were judged.

    Returns:
        One outcome per item, in their order; ``place`` is relative to the work root.

    Raises:
        ReadOnlyDiskError: the sync failed, or the disk is sick; a scan tells what became of each.
    """
    outcomes: dict[str, Outcome] = {}
    with calling(site.deleting):
        for name, marker in items.items():
            with _noting(site, name, outcomes):
                outcomes[name] = done(f"deleting/{name}", f"deleting/{_claim(site, name, marker)}")
        with syncing(site.deleting):
            site.deleting.sync()
    return tuple(outcomes[name] for name in items)


def remove_all(site: Site, claimed: Sequence[str], pace: Pace = _at_once, *, in_use: InUse) -> tuple[Outcome, ...]:
    """Remove several claimed replicas with one sync after the last; repeatable from wherever it stopped.

    Args:
        site: Their log dir.
        claimed: Their names under ``deleting/``, of ``claim_all`` or found by a scan; none twice.
        pace: Called after every step.
        in_use: Whether somebody has a file open or mapped; such a one is only unlinked.

    Returns:
        One outcome per name, in their order; what is not done is still claimed.

    Raises:
        ReadOnlyDiskError: the sync failed, or the disk is sick; a scan tells what became of each.
    """
    outcomes: dict[str, Outcome] = {}
    with calling(site.deleting):
        for name in claimed:
            with _noting(site, name, outcomes):
                _remove(site, name, pace, in_use)
                outcomes[name] = done(f"deleting/{name}", None)
        with syncing(site.deleting):
            site.deleting.sync()
    return tuple(outcomes[name] for name in claimed)


@contextmanager
def _noting(site: Site, name: str, outcomes: dict[str, Outcome]) -> Iterator[None]:
    """Note an error that concerns one alone."""
    try:
        yield
    except ReadOnlyDiskError:
        raise
    except LogDirError as error:
        outcomes[name] = undone(f"deleting/{name}", error)
    except OSError as error:
        if is_sick(error):
            raise
        outcomes[name] = undone(f"deleting/{name}", as_error(f"{site.deleting.path}/{name}", error))


def _remove_file(site: Site, directory: Directory, name: str, found: Stat, pace: Pace, in_use: InUse) -> int:
    if found.size_bytes > STEP_BYTES:
        # What is truncated is looked at once more: it may have got a second name.
        found = directory.stat(name)
        require_file(directory, name, found)
    size = found.size_bytes
    alone = found.links == 1
    if size > STEP_BYTES and alone and not in_use(directory, name):
        while size > STEP_BYTES:
            size -= STEP_BYTES
            directory.truncate(name, size)
            pace(STEP_BYTES, 0)
    with_reserve(site.work, partial(directory.unlink, name))  # which takes room, too, on btrfs
    pace(size if alone else 0, 1)
    return found.size_bytes if alone else 0
