"""``brake.json`` in every work root: read before a decision, made durable before the staging it counts.

One root that cannot be written stops the staging; those written by then say too much, which only holds.

Not here: how much is too much (``decide.brake``), the file's form (``formats.brake_file``).

Spec: design §2 laws 1, 2, §3.3; attacks A38.
"""

from __future__ import annotations

from collections.abc import Sequence

from logdir.disk.failure import recording
from logdir.disk.site import Site
from logdir.disk.small_file import read_file, replace_file
from logdir.errors import FormatError, RefusedError
from logdir.formats import brake_file
from logdir.formats.brake_file import FILE_NAME, Count
from logdir.refusal_slug import Why


def read_records(sites: Sequence[Site]) -> tuple[tuple[Count, ...] | None, ...]:
    """Return what each work root says, for ``decide.brake.highest``.

    Args:
        sites: All log dirs of the broker.

    Returns:
        One record per site, in their order; ``None`` where the file is missing or cannot be read as one.
    """
    return tuple(_read(site) for site in sites)


def _read(site: Site) -> tuple[Count, ...] | None:
    try:
        data = site.work.read(FILE_NAME, brake_file.MAX_BYTES)
        return brake_file.parse(data, f"{site.work.path}/{FILE_NAME}")
    except (OSError, FormatError):
        return None


def write_record(sites: Sequence[Site], record: tuple[Count, ...]) -> None:
    """Make a record durable in every work root; where it stands already nothing is written.

    Args:
        sites: All log dirs of the broker whose owner locks are held.
        record: Of ``decide.brake.judge``.

    Raises:
        RefusedError: something else has the file's name, or what was written does not read back.
        ReadOnlyDiskError: a sync failed, or a disk is sick.
        DiskFullError: a disk has no room for it.
        OSError: another error. In all cases nothing may be staged now.
    """
    data = brake_file.render(record)
    for site in sites:
        with recording(site.work, FILE_NAME):
            before = read_file(site.work, FILE_NAME)
            # The old bytes are of no use to anybody: a record only ever counts for a day.
            replace_file(
                site.work, FILE_NAME, data, before=before, owner=site.owner.for_file(), work=site.work, keep=False
            )


def begin(site: Site) -> None:
    """Write an empty record into a work root that was just made, and only into such a one.

    Raises:
        RefusedError: there is one: nothing counted may be forgotten.
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        DiskFullError: the disk has no room for it.
        OSError: another error.
    """
    with recording(site.work, FILE_NAME):
        if read_file(site.work, FILE_NAME) is not None:
            raise RefusedError(
                f"{site.work.path}/{FILE_NAME}",
                why=Why.RECORD_EXISTS,
                expected="a new work root",
                found="a record of it",
            )
        data = brake_file.render(())
        replace_file(site.work, FILE_NAME, data, before=None, owner=site.owner.for_file(), work=site.work)
