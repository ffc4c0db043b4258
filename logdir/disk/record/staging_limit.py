"""``staging-limit.json`` in every work root: read before a decision, made durable before the staging it counts.

If one work root cannot be written, the staging stops. The work roots written by then count too much, which only makes
us hold more.

Not here: the limit itself (``decide.staging_limit``), the file format (``formats.own.staging_limit_file``).

Spec: design §2 laws 1, 2, §3.3; attacks A38.
"""

from __future__ import annotations

from collections.abc import Sequence

from logdir.disk.kernel.failure import recording
from logdir.disk.kernel.small_file import read_file, replace_file
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import FormatError, RefusedError
from logdir.formats.own import staging_limit_file
from logdir.formats.own.staging_limit_file import FILE_NAME, Count
from logdir.refusal_slug import Why


def read_records(open_dirs: Sequence[OpenLogDir]) -> tuple[tuple[Count, ...] | None, ...]:
    """Return what each work root records as staged, for ``decide.staging_limit.highest``.

    Args:
        open_dirs: All log dirs of the broker.

    Returns:
        One record per log dir, in their order; ``None`` if the file is missing or unreadable.
    """
    return tuple(_read(open_dir) for open_dir in open_dirs)


def _read(open_dir: OpenLogDir) -> tuple[Count, ...] | None:
    try:
        data = open_dir.work.read(FILE_NAME, staging_limit_file.MAX_BYTES)
        return staging_limit_file.parse(data, f"{open_dir.work.path}/{FILE_NAME}")
    except (OSError, FormatError):
        return None


def write_record(open_dirs: Sequence[OpenLogDir], record: tuple[Count, ...]) -> None:
    """Write a record durably in every work root; a work root that already holds it is not written.

    Args:
        open_dirs: All log dirs of the broker whose owner locks are held.
        record: The record, from ``decide.staging_limit.judge``.

    Raises:
        RefusedError: another kind of entry has the file's name, or the file did not read back.
        ReadOnlyDiskError: a sync failed, or a disk is sick.
        DiskFullError: a disk is full.
        OSError: any other error. After any error, nothing may be staged.
    """
    data = staging_limit_file.render(record)
    for open_dir in open_dirs:
        with recording(open_dir.work, FILE_NAME):
            before = read_file(open_dir.work, FILE_NAME)
            # The old record is of no use: a record counts for one day only.
            replace_file(
                open_dir.work,
                FILE_NAME,
                data,
                before=before,
                owner=open_dir.owner.for_file(),
                work=open_dir.work,
                keep=False,
            )


def begin(open_dir: OpenLogDir) -> None:
    """Write an empty record into a new work root, and only into a new one.

    Raises:
        RefusedError: there is a record already: counted staging may never be forgotten.
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        DiskFullError: the disk is full.
        OSError: any other error.
    """
    with recording(open_dir.work, FILE_NAME):
        if read_file(open_dir.work, FILE_NAME) is not None:
            raise RefusedError(
                f"{open_dir.work.path}/{FILE_NAME}",
                why=Why.RECORD_EXISTS,
                expected="a new work root",
                found="a record of what was staged",
                fix="inspect it and move it away, then repeat logdirctl init",
            )
        data = staging_limit_file.render(())
        replace_file(open_dir.work, FILE_NAME, data, before=None, owner=open_dir.owner.for_file(), work=open_dir.work)
