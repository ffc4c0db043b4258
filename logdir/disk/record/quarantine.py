"""Quarantine records: a disk that failed a sync in this boot is recorded in all other work roots, and checked before
any change.

The kernel reports a failed sync only once, to one process; later processes learn of it only from these records. A
broker with one disk has no other work root to record it in.

Not here: detecting the failure (``kernel.fsync``), the file format (``formats.own.quarantine_file``), the
consequences (the callers).

Spec: design §2 laws 2, 6, §3.4; reliability §4.3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from logdir.clock import Instant
from logdir.disk.kernel.failure import recording
from logdir.disk.kernel.small_file import read_file, replace_file
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, MalformedFileError
from logdir.formats.own import quarantine_file
from logdir.formats.own.quarantine_file import FILE_NAME, QuarantinedDisk, QuarantineFile


def read_quarantine(open_dirs: Sequence[OpenLogDir], boot_id: str) -> Mapping[str, QuarantinedDisk]:
    """Return the log dirs that failed a sync in this boot, by path.

    Args:
        open_dirs: All log dirs of a broker that answer.
        boot_id: Id of the current boot.

    Raises:
        FormatError: a file is malformed, or of a newer release, so the failed disk is not known.
        OSError: a file cannot be read.
    """
    found: dict[str, QuarantinedDisk] = {}
    for teller in open_dirs:
        file = _read(teller)
        if file is None or file.boot_id != boot_id:
            continue
        for one in file.disks:
            for open_dir in open_dirs:
                same_path = one.directory_id is None and one.log_dir == open_dir.log_dir
                if same_path or (one.directory_id is not None and one.directory_id == open_dir.directory_id):
                    found.setdefault(open_dir.log_dir, one)
    return found


def _read(open_dir: OpenLogDir) -> QuarantineFile | None:
    data = read_file(open_dir.work, FILE_NAME)
    return None if data is None else quarantine_file.parse(data, f"{open_dir.work.path}/{FILE_NAME}")


def write_quarantine(
    open_dirs: Sequence[OpenLogDir], failed: Mapping[int, str], now: Instant, *, quarantined: Collection[str] = ()
) -> tuple[str, ...]:
    """Record failed disks durably in the work roots of all healthy disks. Never raises.

    Args:
        open_dirs: All log dirs of a broker that answer; their owner locks are held.
        failed: Device to error message: ``HostDisk.failed``.
        now: The current instant.
        quarantined: Log dirs that may not be changed for another reason.

    Returns:
        The log dirs on the failed devices.
    """
    sick = {open_dir.log_dir: what for open_dir in open_dirs if (what := _failed(open_dir, failed)) is not None}
    disks = tuple(
        QuarantinedDisk(open_dir.log_dir, open_dir.directory_id, sick[open_dir.log_dir], max(0, now.wall_ms))
        for open_dir in open_dirs
        if open_dir.log_dir in sick
    )
    for open_dir in open_dirs:
        if disks and open_dir.log_dir not in sick and open_dir.log_dir not in quarantined:
            # Best effort: a work root that cannot be written fails at its own next change.
            with suppress(LogDirError, OSError), recording(open_dir.work, FILE_NAME):
                _write(open_dir, QuarantineFile(now.boot_id, disks))
    return tuple(sick)


def _failed(open_dir: OpenLogDir, failed: Mapping[int, str]) -> str | None:
    for directory in (open_dir.top, open_dir.work):
        with suppress(OSError, LogDirError):
            if (what := failed.get(directory.identity().device)) is not None:
                return what
    return None


def _write(open_dir: OpenLogDir, file: QuarantineFile) -> None:
    before = read_file(open_dir.work, FILE_NAME)
    known = None
    with suppress(MalformedFileError):
        known = _read(open_dir)
    if known is not None and known.boot_id == file.boot_id:
        others = tuple(one for one in known.disks if one[:2] not in {disk[:2] for disk in file.disks})
        file = file._replace(disks=(*others, *file.disks))
    data = quarantine_file.render(file)
    replace_file(
        open_dir.work, FILE_NAME, data, before=before, owner=open_dir.owner.for_file(), work=open_dir.work, keep=False
    )
