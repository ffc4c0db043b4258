"""``staging-limit.json`` in every work root: read before a decision, made durable before the staging it counts.

One root that cannot be written stops the staging; those written by then say too much, which only holds.

Not here: how much is too much (``decide.staging_limit``), the file's form (``formats.own.staging_limit_file``).

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
    """Return what each work root says, for ``decide.staging_limit.highest``.

    Args:
        open_dirs: All log dirs of the broker.

    Returns:
        One record per site, in their order; ``None`` where the file is missing or cannot be read as one.
    """
    return tuple(_read(open_dir) for open_dir in open_dirs)


def _read(open_dir: OpenLogDir) -> tuple[Count, ...] | None:
    try:
        data = open_dir.work.read(FILE_NAME, staging_limit_file.MAX_BYTES)
        return staging_limit_file.parse(data, f"{open_dir.work.path}/{FILE_NAME}")
    except (OSError, FormatError):
        return None


def write_record(open_dirs: Sequence[OpenLogDir], record: tuple[Count, ...]) -> None:
    """Make a record durable in every work root; where it stands already nothing is written.

    Args:
        open_dirs: All log dirs of the broker whose owner locks are held.
        record: Of ``decide.staging_limit.judge``.

    Raises:
        RefusedError: something else has the file's name, or what was written does not read back.
        ReadOnlyDiskError: a sync failed, or a disk is sick.
        DiskFullError: a disk has no room for it.
        OSError: another error. In all cases nothing may be staged now.
    """
    data = staging_limit_file.render(record)
    for open_dir in open_dirs:
        with recording(open_dir.work, FILE_NAME):
            before = read_file(open_dir.work, FILE_NAME)
            # The old bytes are of no use to anybody: a record only ever counts for a day.
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
    """Write an empty record into a work root that was just made, and only into such a one.

    Raises:
        RefusedError: there is one: nothing counted may be forgotten.
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        DiskFullError: the disk has no room for it.
        OSError: another error.
    """
    with recording(open_dir.work, FILE_NAME):
        if read_file(open_dir.work, FILE_NAME) is not None:
            raise RefusedError(
                f"{open_dir.work.path}/{FILE_NAME}",
                why=Why.RECORD_EXISTS,
                expected="a new work root",
                found="a record of it",
            )
        data = staging_limit_file.render(())
        replace_file(open_dir.work, FILE_NAME, data, before=None, owner=open_dir.owner.for_file(), work=open_dir.work)
