"""``controller.json`` in every work root: the last applied cluster metadata, read before a change and made durable with
it.

If one work root cannot be written, the change that depends on the record stops. The work roots written by then hold
a newer position than was applied; its only effect is that older metadata is refused.

Not here: comparing positions (``decide.image.position``), the file format (``formats.own.controller_file``).

Spec: design §2 laws 1, 2, §4; attacks A3, A20, A28, A43.
"""

from __future__ import annotations

from collections.abc import Sequence

from logdir.disk.kernel.failure import recording
from logdir.disk.kernel.small_file import read_file, replace_file
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import FormatError, RefusedError, UnsupportedVersionError
from logdir.formats.own import controller_file
from logdir.formats.own.controller_file import FILE_NAME, ControllerFile
from logdir.refusal_slug import Why


def read_records(open_dirs: Sequence[OpenLogDir]) -> tuple[ControllerFile | None, ...]:
    """Return what each work root records as last applied, for ``decide.image.position.highest``.

    Args:
        open_dirs: All log dirs of the broker.

    Returns:
        One record per log dir, in their order; ``None`` if the file is missing, unreadable, or of another cluster or
        node.

    Raises:
        UnsupportedVersionError: a newer release wrote a file.
    """
    return tuple(_read(open_dir) for open_dir in open_dirs)


def _read(open_dir: OpenLogDir) -> ControllerFile | None:
    try:
        data = open_dir.work.read(FILE_NAME, controller_file.MAX_BYTES)
        record = controller_file.parse(data, f"{open_dir.work.path}/{FILE_NAME}")
    except UnsupportedVersionError:
        raise
    except (OSError, FormatError):
        return None
    is_ours = record.node_id == open_dir.node_id and record.cluster_id in (None, open_dir.cluster_id)
    return record if is_ours else None


def write_record(open_dirs: Sequence[OpenLogDir], record: ControllerFile) -> None:
    """Write a record durably in every work root; a work root that already holds it is not written.

    Args:
        open_dirs: All log dirs of the broker that may be changed; their owner locks are held.
        record: The record, from ``decide``.

    Raises:
        RefusedError: another kind of entry has the file's name, or the file did not read back.
        ReadOnlyDiskError: a sync failed, or a disk is sick.
        DiskFullError: a disk is full.
        OSError: any other error. After any error, a change that depends on the record must not be made.
    """
    data = controller_file.render(record)
    for open_dir in open_dirs:
        with recording(open_dir.work, FILE_NAME):
            before = read_file(open_dir.work, FILE_NAME)
            # The old record is of no use: it is only older.
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
    """Write the first record into a new work root, and only into a new one.

    Raises:
        RefusedError: there is a record already: the last applied position may never be forgotten.
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
                found="a record of the last applied metadata",
                fix="inspect it and move it away, then repeat logdirctl init",
            )
        if open_dir.node_id is None:
            raise RefusedError(
                open_dir.log_dir,
                why=Why.NOT_FORMATTED,
                expected="a node id in meta.properties",
                found="no node id",
                fix="mount the right disk; format a new one with kafka-storage format",
            )
        data = controller_file.render(controller_file.begin(open_dir.cluster_id, open_dir.node_id))
        replace_file(open_dir.work, FILE_NAME, data, before=None, owner=open_dir.owner.for_file(), work=open_dir.work)
