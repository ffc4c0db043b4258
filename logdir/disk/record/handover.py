"""``handover.json`` in a work root: written when the log dirs are handed over to a broker, and read.

Not here: what is done before (``service.batch.handover``), the file format (``formats.own.handover_file``).

Spec: design §6 ``handover``; attacks A22, A30.
"""

from __future__ import annotations

from logdir.clock import Instant
from logdir.disk.kernel.failure import recording
from logdir.disk.kernel.small_file import read_file, replace_file
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.formats.kafka.offset_checkpoint import NAMES
from logdir.formats.own import handover_file
from logdir.formats.own.handover_file import FILE_NAME, HandoverFile


def keep(open_dir: OpenLogDir, now: Instant) -> None:
    """Write when the log dir is handed over, with its checkpoint files as they are; every lock of the broker is held.

    Raises:
        ValueError: the checkpoint files together are too large.
        RefusedError: a file is too large or no regular file, or the new file did not read back.
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        OSError: any other error; an older ``handover.json`` is unchanged.
    """
    with recording(open_dir.work, FILE_NAME):
        found = {name: read_file(open_dir.top, name) for name in NAMES}
        data = handover_file.render(HandoverFile(now.boot_id, now.boottime_ms, now.wall_ms, found))
        replace_file(
            open_dir.work,
            FILE_NAME,
            data,
            before=read_file(open_dir.work, FILE_NAME),
            owner=open_dir.owner.for_file(),
            work=open_dir.work,
            keep=False,
        )


def read(open_dir: OpenLogDir) -> HandoverFile | None:
    """Return what was kept at the last handover of a log dir; ``None``: there was none.

    Raises:
        FormatError: the file is malformed, or of a newer release.
        RefusedError: it is too large.
        OSError: it cannot be read.
    """
    data = read_file(open_dir.work, FILE_NAME)
    return None if data is None else handover_file.parse(data, f"{open_dir.work.path}/{FILE_NAME}")
