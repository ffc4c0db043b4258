"""Rewriting ``partition.metadata`` in one partition directory between its two-line and three-line form.

Not here: the order of the steps, and every sync (``relayout``).

Spec: design §2 law 9, §3.1; attacks A8, A9, A10.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from logdir.disk.kernel.calls import Directory, Owner
from logdir.disk.kernel.failure import is_sick, with_reserve
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import FormatError, RefusedError
from logdir.formats.kafka import partition_metadata
from logdir.formats.kafka.partition_metadata import PartitionMetadata
from logdir.formats.own import relayout_file
from logdir.formats.own.relayout_file import Original, RelayoutFile
from logdir.ids import TopicId
from logdir.paths import METADATA_FILE
from logdir.refusal_slug import Why

NEW_METADATA = "partition.metadata.new.json"
"""Temporary name of a new ``partition.metadata``."""
KEPT = relayout_file.FILE_NAME
_LIMIT = 1 << 16
_KEPT_LIMIT = 2 * _LIMIT
"""Size limit of ``relayout.json``, which holds a ``partition.metadata`` in base64."""
_AGAIN = "take the inventory and plan again: logdirctl inventory, logdirctl fleet plan"


class Metadata(NamedTuple):
    """Content, modification time and owner of a ``partition.metadata``; all ``None`` if there is no file."""

    data: bytes | None
    mtime_ns: int | None
    owner: Owner | None


def plain(topic_id: TopicId) -> bytes:
    """Return the content of the file in the topic-name layout."""
    return partition_metadata.render(PartitionMetadata(partition_metadata.VERSION, topic_id))


def with_topic(topic_id: TopicId, topic: str) -> bytes:
    """Return the content of the file in the topic-id layout."""
    return partition_metadata.render(PartitionMetadata(partition_metadata.VERSION, topic_id, topic))


def is_ours(data: bytes | None, topic: str | None) -> bool:
    """Whether a ``partition.metadata`` has the content we write for the topic-id layout."""
    if data is None or topic is None:
        return False
    try:
        written = partition_metadata.parse(data)
    except FormatError:
        return False
    return data == with_topic(written.topic_id, topic)


def read_metadata(directory: Directory) -> Metadata:
    """Return the ``partition.metadata`` of a directory.

    Raises:
        RefusedError: it is larger than any valid one.
        OSError: it cannot be read.
    """
    data = read_bytes(directory)
    if data is None:
        return Metadata(None, None, None)
    found = directory.stat(METADATA_FILE)
    return Metadata(data, found.mtime_ns, found.owner)


def read_bytes(directory: Directory) -> bytes | None:
    """Return the bytes of the ``partition.metadata`` of a directory; raises as ``read_metadata``."""
    return _read(directory, METADATA_FILE)


def _read(directory: Directory, name: str, limit: int = _LIMIT) -> bytes | None:
    try:
        data = directory.read(name, limit)
    except FileNotFoundError:
        return None
    if len(data) > limit:
        raise RefusedError(
            f"{directory.path}/{name}",
            why=Why.FILE_TOO_LARGE,
            expected=f"at most {limit} bytes",
            found="a larger file",
            fix="neither Kafka nor logdird wrote it: inspect it, and write the true content back, or move it away",
        )
    return data


def require_id(found: Metadata, path: str, topic_id: TopicId, *, has_own: bool) -> None:
    """Check that a file still has the content that the plan expects.

    Args:
        found: The current file.
        path: Its directory, for the error.
        topic_id: The id in the plan.
        has_own: Whether the plan took the id from this directory; otherwise the directory may have no id.

    Raises:
        RefusedError: the content differs: the step is outdated.
        FormatError: it is malformed.
    """
    if found.data is None:
        if has_own:
            raise RefusedError(
                path, why=Why.CHANGED, expected=f"topic id {topic_id}", found=f"no {METADATA_FILE}", fix=_AGAIN
            )
        return
    written = partition_metadata.parse(found.data, f"{path}/{METADATA_FILE}").topic_id
    if written != topic_id:
        raise RefusedError(path, why=Why.CHANGED, expected=f"topic id {topic_id}", found=str(written), fix=_AGAIN)


def original_of(directory: Directory, found: Metadata, topic_id: TopicId, *, is_kept: bool) -> RelayoutFile:
    """Return the original content of a ``partition.metadata`` that has the topic-id form.

    Args:
        directory: The partition directory.
        found: The current file.
        topic_id: The id in it.
        is_kept: Whether ``relayout.json`` exists.

    Raises:
        FormatError: ``relayout.json`` is torn, altered, or of a newer version.
        OSError: a file cannot be read.
    """
    if is_kept and (data := _read(directory, KEPT, _KEPT_LIMIT)) is not None:
        return relayout_file.parse(data, f"{directory.path}/{KEPT}")
    return RelayoutFile(Original(plain(topic_id), found.mtime_ns or 0))


def mark(
    open_dir: OpenLogDir, directory: Directory, found: Metadata, topic_id: TopicId, data: bytes, *, leftovers: bool
) -> None:
    """Write the new file under its temporary name, and keep the old content if it would be lost. Not durable yet.

    Args:
        open_dir: The log dir.
        directory: The partition directory.
        found: The old file.
        topic_id: Id of the topic.
        data: Content of the new file.
        leftovers: Whether an interrupted run left temporary files in the directory.

    Raises:
        RefusedError: the old file's modification time cannot be kept.
        OSError: no space, or no permission; the new files are removed again if possible.
    """
    if found.mtime_ns is not None and found.mtime_ns < 0:
        raise RefusedError(
            f"{directory.path}/{METADATA_FILE}",
            why=Why.FILE_TIME_INVALID,
            expected="a time of change since 1970",
            found=found.mtime_ns,
            fix="touch the file",
        )
    owner = open_dir.owner.for_file()
    if leftovers:
        # The old file is in place, so the leftovers of an interrupted run hold nothing new.
        clear(directory)
    try:
        if found.data != plain(topic_id):
            original = None if found.data is None else Original(found.data, found.mtime_ns or 0)
            _write(open_dir, directory, KEPT, relayout_file.render(RelayoutFile(original)), owner, None)
        put_new(open_dir, directory, data, found.owner or owner, found.mtime_ns)
    except OSError as error:
        if not is_sick(error):
            with suppress(OSError):
                clear(directory)
        raise


def put_new(open_dir: OpenLogDir, directory: Directory, data: bytes, owner: Owner, mtime_ns: int | None) -> None:
    """Write a ``partition.metadata`` under its temporary name, which is free. Not durable yet. Raises ``OSError``."""
    _write(open_dir, directory, NEW_METADATA, data, owner, mtime_ns)


def replace_metadata(directory: Directory, data: bytes) -> None:
    """Rename the new file to its final name, after reading it back. Not durable yet.

    Raises:
        RefusedError: the file did not read back.
        OSError: the old file is still in place.
    """
    found = _read(directory, NEW_METADATA)
    if found != data:
        raise RefusedError(
            f"{directory.path}/{NEW_METADATA}",
            why=Why.READ_BACK_DIFFERS,
            expected="the bytes just written",
            found=found or "no file, or different bytes",
            fix="partition.metadata is as it was; check the kernel log: the disk may fail",
        )
    directory.replace(NEW_METADATA, METADATA_FILE)


def clear(directory: Directory) -> None:
    """Remove the temporary files beside ``partition.metadata``. Raises ``OSError``."""
    for name in (NEW_METADATA, KEPT):
        with suppress(FileNotFoundError):
            directory.unlink(name)


def _write(
    open_dir: OpenLogDir, directory: Directory, name: str, data: bytes, owner: Owner, mtime_ns: int | None
) -> None:
    def write() -> None:
        try:
            directory.write(name, data, owner, mtime_ns)
        except OSError:
            with suppress(OSError):
                directory.unlink(name)
            raise

    with_reserve(open_dir.work, write)
