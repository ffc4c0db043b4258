"""``heartbeat.json`` in a work root: read, advanced to the current instant, written durably.

A missing or unreadable file is not recreated on the way: nothing on its disk is purged until ``logdirctl init``
recreates it. A file of a newer version is refused by name.

Not here: which time counts (``decide.staged.deadline``), the file format (``formats.own.heartbeat_file``).

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
    """Return the heartbeat of a work root; ``None`` if the file is missing or malformed.

    Raises:
        UnsupportedVersionError: a newer release wrote the file.
        OSError: the file cannot be read.
    """
    data = read_file(open_dir.work, FILE_NAME)
    if data is None:
        return None
    try:
        return heartbeat_file.parse(data, f"{open_dir.work.path}/{FILE_NAME}")
    except MalformedFileError:
        return None


def beat(open_dir: OpenLogDir, now: Instant, unwritten: Heartbeat | None = None) -> Heartbeat | None:
    """Advance the heartbeat of a work root, durably; its owner lock is held.

    Args:
        open_dir: Its log dir.
        now: The current instant.
        unwritten: A later heartbeat than that of the file, which a full disk kept from being written.

    Returns:
        The new heartbeat; ``None`` if the file is missing or malformed: then nothing is written, and all staged data is
        held.

    Raises:
        UnsupportedVersionError: a newer release wrote the file.
        RefusedError: another kind of entry has the file's name, or the file did not read back.
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        DiskFullError: the disk is full.
        OSError: any other error; the file is unchanged.
    """
    with recording(open_dir.work, FILE_NAME):
        known = read(open_dir)
    return None if known is None else _write(open_dir, deadline.beat(unwritten or known, now))


def begin(open_dir: OpenLogDir, now: Instant) -> Heartbeat:
    """Write the first heartbeat of a work root, or of one that lost its heartbeat; time counted before is lost.

    Args:
        open_dir: The log dir; its owner lock is held.
        now: The current instant.

    Returns:
        The new heartbeat; an existing valid one is advanced.

    Raises:
        UnsupportedVersionError: a newer release wrote the file.
        RefusedError: as ``beat``.
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        DiskFullError: the disk is full.
        OSError: any other error; the file is unchanged.
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
