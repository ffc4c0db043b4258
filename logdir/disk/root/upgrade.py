"""Bringing the work root of an older release to the version of this one: only ``work-root.json`` is written anew.

It comes before anything that an older release would misread. Afterwards that release refuses the work root by name and
touches nothing there. What is staged, incoming or half done stays as it is: this release reads and finishes it.

Not here: which versions there are, and what differs (``formats.own.work_root_file``), making a work root (``init``).

Spec: design §3.2; style §5.5; attacks A24.
"""

from __future__ import annotations

from logdir.disk.kernel.failure import recording
from logdir.disk.kernel.small_file import read_file, replace_file
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.formats.own import work_root_file
from logdir.formats.own.work_root_file import VERSION
from logdir.paths import WORK_ROOT_FILE
from logdir.worker_call import worker_call


@worker_call
def upgrade(open_dir: OpenLogDir) -> bool:
    """Bring a work root to the version of this release, durably; return whether it was older. Its owner lock is held.

    Repeatable: after an interruption the file is that of the older or of this release, and a repetition finishes it.

    Raises:
        FormatError: ``work-root.json`` is malformed, or of a newer release.
        RefusedError: it is no regular file, or did not read back.
        DiskFullError: the disk is full, the reserve included; the file is unchanged.
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        OSError: any other error; the file is unchanged.
    """
    work = open_dir.work
    with recording(work, WORK_ROOT_FILE):
        before = read_file(work, WORK_ROOT_FILE)
        if before is None:
            return False  # It was removed since it was opened: the next opening refuses the work root.
        file = work_root_file.parse(before, f"{work.path}/{WORK_ROOT_FILE}")
        if file.version == VERSION:
            return False
        replace_file(
            work,
            WORK_ROOT_FILE,
            work_root_file.render(file),
            before=before,
            owner=open_dir.owner.for_file(),
            work=work,
            keep=False,
        )
    return True
