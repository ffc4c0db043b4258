"""Reading and changing the entries of partitions in a log dir's four offset checkpoint files; each file is rewritten
whole.

Not here: the file format (``formats.kafka.offset_checkpoint``), the meaning of an offset.

Spec: design §2 law 9, §3.3; kafka-behaviour §2.12, §10.5; attacks A30, A39.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from logdir.disk.kernel.failure import calling
from logdir.disk.kernel.small_file import read_file, replace_file
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import MalformedFileError
from logdir.formats.kafka import offset_checkpoint
from logdir.formats.kafka.offset_checkpoint import NAMES, TopicPartition
from logdir.formats.own.replica_marker import Checkpoints
from logdir.paths import LOG_STARTS
from logdir.worker_call import worker_call

_FIELDS = ("recovery_point", "log_start", "high_watermark", "cleaner")
"""Fields of ``Checkpoints``, in the order of ``NAMES``."""


def read_entries(open_dir: OpenLogDir, partition: TopicPartition) -> Checkpoints:
    """Return a partition's entries in a log dir's checkpoint files. Raises as ``read_all_entries``."""
    return read_all_entries(open_dir, (partition,))[partition]


def read_all_entries(
    open_dir: OpenLogDir, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, Checkpoints]:
    """Return the entries of several partitions; each checkpoint file is parsed once.

    Raises:
        FormatError: a file is malformed.
        OSError: a file cannot be read.
    """
    found: dict[TopicPartition, dict[str, int | None]] = {partition: {} for partition in partitions}
    for field, name in zip(_FIELDS, NAMES, strict=True):
        _, offsets = _read(open_dir, name)
        for partition, entries in found.items():
            entries[field] = offsets.get(partition)
    return {partition: Checkpoints(**entries) for partition, entries in found.items()}


def drop_entries(open_dir: OpenLogDir, partition: TopicPartition) -> None:
    """Remove a partition's entries from the checkpoint files of a log dir.

    Raises:
        FormatError: a file is malformed.
        ReadOnlyDiskError: a sync failed.
        OSError: any other error; each file holds all of its old or all of its new entries.
    """
    for name in NAMES:
        _change(open_dir, name, partition, None)


def set_entries(open_dir: OpenLogDir, partition: TopicPartition, checkpoints: Checkpoints) -> None:
    """Set a partition's entries in the checkpoint files to exactly these; a missing value removes the entry.

    A file that has its entry is not written. Without its log-start entry a broker would undo DeleteRecords
    (kafka-behaviour §10.5); with that of another log it may remove every segment (§10.7).

    Raises:
        FormatError: a file is malformed.
        ReadOnlyDiskError: a sync failed.
        OSError: any other error; each file holds all of its old or all of its new entries.
    """
    for field, name in zip(_FIELDS, NAMES, strict=True):
        _change(open_dir, name, partition, getattr(checkpoints, field))


@worker_call
def put_back_log_starts(open_dir: OpenLogDir, offsets: Mapping[TopicPartition, int]) -> None:
    """Raise log starts to these, in one rewrite of the file; every lock of the broker is held.

    An entry that is as high already stays. The caller has checked that no log start lies behind the end of its log: a
    broker would remove every segment (kafka-behaviour §10.7).

    Raises:
        FormatError: the file is malformed.
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        OSError: any other error; the file holds all of its old or all of its new entries.
    """
    with calling(open_dir.top):
        before, known = _read(open_dir, LOG_STARTS)
        raised = {key: max(offset, known.get(key, offset)) for key, offset in offsets.items()}
        if known | raised != known:
            _write(open_dir, LOG_STARTS, before, known | raised)


def _change(open_dir: OpenLogDir, name: str, partition: TopicPartition, offset: int | None) -> None:
    before, offsets = _read(open_dir, name)
    if offsets.get(partition) != offset:
        wanted = {key: known for key, known in offsets.items() if key != partition}
        if offset is not None:
            wanted[partition] = offset
        _write(open_dir, name, before, wanted)


def _read(open_dir: OpenLogDir, name: str) -> tuple[bytes | None, dict[TopicPartition, int]]:
    """Return the bytes of a file, and its entries. Raises as ``read_all_entries``."""
    data = read_file(open_dir.top, name)
    return data, {} if data is None else offset_checkpoint.parse(data, f"{open_dir.log_dir}/{name}")


def _write(open_dir: OpenLogDir, name: str, before: bytes | None, wanted: Mapping[TopicPartition, int]) -> None:
    try:
        data = offset_checkpoint.render(wanted)
    except ValueError as error:
        # Kafka accepts this file, but we would not write it in this form: do not rewrite it.
        raise MalformedFileError(
            f"{open_dir.log_dir}/{name}", expected="entries Kafka writes", found=str(error)
        ) from error
    replace_file(open_dir.top, name, data, before=before, owner=open_dir.owner.for_file(), work=open_dir.work)
