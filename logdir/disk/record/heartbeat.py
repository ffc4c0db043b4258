"""``heartbeat.json`` in a work root: read, folded forward to this moment, written durably.

A file that is missing or cannot be read is not begun again in passing: until ``logdirctl init`` does that, nothing on
its disk is purged. One of a newer version is refused by name.

Not here: what counts (``decide.deadline``), the file's form (``formats.heartbeat_file``).

Spec: design §2 law 2, §3.3; attacks A24, A25.
"""

from __future__ import annotations

from logdir.clock import Instant
from logdir.decide.staged import deadline
from logdir.disk.kernel.failure import recording
from logdir.disk.kernel.small_file import read_file, replace_file
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import MalformedFileError
from logdir.formats.own import heartbeat_file
from logdir.formats.own.heartbeat_file import FILE_NAME, Heartbeat


def read(open_dir: OpenLogDir) -> Heartbeat | None:
    """Return what a work root says; ``None`` if it is missing or malformed.

    Raises:
        UnsupportedVersionError: a newer release wrote it.
        OSError: it cannot be read.
    """
    data = read_file(open_dir.work, FILE_NAME)
    if data is None:
        return None
    try:
        return heartbeat_file.parse(data, f"{open_dir.work.path}/{FILE_NAME}")
    except MalformedFileError:
        return None


def beat(open_dir: OpenLogDir, now: Instant) -> Heartbeat | None:
    """Fold the heartbeat of a work root forward, durably; its owner lock is held.

    Returns:
        As it is now; ``None`` if it is missing or malformed: then nothing was written, and everything is held.

    Raises:
        UnsupportedVersionError: a newer release wrote it.
        RefusedError: something else has the file's name, or what was written does not read back.
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        DiskFullError: the disk has no room for it.
        OSError: another error; it is as it was.
    """
    with recording(open_dir.work, FILE_NAME):
        known = read(open_dir)
    return None if known is None else _write(open_dir, deadline.beat(known, now))


def begin(open_dir: OpenLogDir, now: Instant) -> Heartbeat:
    """Write the first heartbeat of a work root, or of one that lost it: what was counted before counts no more.

    Args:
        open_dir: The log dir; its owner lock is held.
        now: This moment.

    Returns:
        As it is now; one that is there and whole is folded forward.

    Raises:
        UnsupportedVersionError: a newer release wrote it.
        RefusedError: as ``beat``.
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        DiskFullError: the disk has no room for it.
        OSError: another error; it is as it was.
    """
    return beat(open_dir, now) or _write(open_dir, deadline.begin(now))


def _write(open_dir: OpenLogDir, value: Heartbeat) -> Heartbeat:
    with recording(open_dir.work, FILE_NAME):
        replace_file(
            open_dir.work,
            FILE_NAME,
            heartbeat_file.render(value),
            before=read_file(open_dir.work, FILE_NAME),
            owner=open_dir.owner.for_file(),
            work=open_dir.work,
            keep=False,
        )
    return value
