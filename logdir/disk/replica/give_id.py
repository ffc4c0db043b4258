"""Writing the topic id that a request assigns into ``partition.metadata`` of a live replica that has none.

The file is written under Kafka's own temporary name, synced, read back, and renamed to its final name without replacing
anything. So a broker never reads an incomplete file, and no existing id is ever replaced.

Not here: whether the id may be given (``decide.reconcile``).

Spec: design §2 law 9, §4; KIP-516, "Migration"; attacks A3, A9.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import calling, is_sick, with_reserve
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.unique_name import is_there
from logdir.disk.replica.outcome import Outcome, done, undone
from logdir.disk.replica.relayout_metadata import plain, read_metadata
from logdir.disk.replica.replica_dir import require_plain
from logdir.disk.replica.staging import as_error
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, RefusedError
from logdir.formats.kafka import partition_metadata
from logdir.ids import TopicId
from logdir.paths import METADATA_FILE, TEMPORARY
from logdir.refusal_slug import Why
from logdir.worker_call import worker_call

_LOOK = "compare both ids: no command replaces the id of a replica"


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveItem:
    """A live replica of the topic-name layout, and the id it gets."""

    path: str
    """Its path, relative to the log dir."""
    topic_id: TopicId


@worker_call
def give_id(open_dir: OpenLogDir, item: GiveItem) -> Outcome:
    """Give a live replica the topic id it lacks; every lock of the broker is held.

    Args:
        open_dir: Its log dir.
        item: The replica and its id.

    Returns:
        The outcome of the item. Done also if the replica already has that id; one with a different id is unchanged.

    Raises:
        ReadOnlyDiskError: a sync failed or the disk is sick; the next scan shows whether the replica has its id.

    Spec: KIP-516, "Migration".
    """
    with calling(open_dir.top):
        try:
            _give(open_dir, item)
        except LogDirError as error:
            return undone(item.path, error)
        except OSError as error:
            if is_sick(error):
                raise
            return undone(item.path, as_error(f"{open_dir.log_dir}/{item.path}", error))
    return done(item.path, item.path)


def _give(open_dir: OpenLogDir, item: GiveItem) -> None:
    with open_dir.parent_of(item.path) as (parent, name), parent.open(name) as directory:
        if parent is not open_dir.top or item.topic_id.is_zero:
            # In the topic-id layout the directory name holds the id, and the file must hold the topic name as well.
            found = item.path if parent is not open_dir.top else str(item.topic_id)
            raise RefusedError(
                directory.path,
                why=Why.CHANGED,
                expected="a replica in the topic-name layout, and a topic id",
                found=found,
                fix="it got no id; run logdirctl reconcile again, which looks at it again",
            )
        require_plain(directory)
        if not _has_it(directory, item.topic_id):
            _put(open_dir, directory, plain(item.topic_id))
        with syncing(directory):
            directory.sync()


def _has_it(directory: Directory, topic_id: TopicId) -> bool:
    found = read_metadata(directory)
    if found.data is None:
        return False
    path = f"{directory.path}/{METADATA_FILE}"
    current_id = partition_metadata.parse(found.data, path).topic_id
    if current_id != topic_id:
        raise RefusedError(path, why=Why.CHANGED, expected=f"no id, or id {topic_id}", found=str(current_id), fix=_LOOK)
    return True


def _put(open_dir: OpenLogDir, directory: Directory, data: bytes) -> None:
    temporary = METADATA_FILE + TEMPORARY
    try:
        if is_there(directory, temporary):
            directory.unlink(temporary)
        _write(open_dir, directory, temporary, data)
        with syncing(directory):
            directory.sync_file(temporary)
        found = directory.read(temporary, len(data))
        if found != data:
            raise RefusedError(
                f"{directory.path}/{temporary}",
                why=Why.READ_BACK_DIFFERS,
                expected="the bytes just written",
                found=found,
                fix="no partition.metadata was written; check the kernel log: the disk may fail",
            )
        with_reserve(open_dir.work, lambda: directory.rename(temporary, directory, METADATA_FILE))
    except (RefusedError, OSError) as error:
        if not (isinstance(error, OSError) and is_sick(error)):
            with suppress(OSError):
                directory.unlink(temporary)
        raise


def _write(open_dir: OpenLogDir, directory: Directory, name: str, data: bytes) -> None:
    def write() -> None:
        try:
            directory.write(name, data, open_dir.owner.for_file())
        except OSError:
            with suppress(OSError):
                directory.unlink(name)
            raise

    with_reserve(open_dir.work, write)
