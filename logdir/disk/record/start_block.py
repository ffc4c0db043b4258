"""The start block: an invalid node id in every log dir of a broker, or in none, so that no broker starts.

Setting it writes the original bytes into ``start-block.json`` and a text for people, durable in every log dir; only
then it changes the first ``meta.properties``. Lifting it is the exact reverse: the original bytes, with their
modification time, return in every log dir; only then the first ``start-block.json`` is removed. So a blocked log dir
always holds the original bytes, and after an interruption both operations can be repeated. A broker whose log dirs have
different node ids does not start either: a partial start block keeps it out as a whole one does.

Not here: when a broker must be kept out (``decide.layout.transitions``), the blocked file (``start_block_file``).

Spec: design §8; attacks A37; reliability §4.2 "new file".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from typing import NamedTuple

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import calling, with_reserve
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.small_file import read_file, remove_file, replace_file
from logdir.disk.root.open_log_dir import LogDirTop, OpenLogDir
from logdir.errors import DiskError, LogDirError, NotFormattedError, ReadOnlyDiskError, RefusedError, StateError
from logdir.formats.kafka import meta_properties
from logdir.formats.own import start_block_file
from logdir.formats.own.start_block_file import FILE_NAME, StartBlockFile
from logdir.paths import META_PROPERTIES, START_BLOCK_NOTE, TEMPORARY
from logdir.refusal_slug import Why

_NEW = FILE_NAME + TEMPORARY
"""Temporary name of a new ``meta.properties``: Kafka itself may use ``meta.properties.tmp``."""


_TEXT = """\
This log dir is blocked by logdird.

No broker can start on it: its node.id was changed to {false} on purpose, in this and every other log dir
of the broker. The true one is {true}; the true meta.properties is kept in start-block.json. Edit neither of them.

The layout of its directories is, or was being, changed to one that brokers do not read. Ask

    logdirctl layout status

and take it back with `logdirctl layout rollback`, which lifts the start block.
"""


class StartBlockState(Enum):
    """Whether all, some or none of the log dirs of a broker are blocked."""

    SET = "set"
    PARTIAL = "partial"
    """Setting or lifting was interrupted: either can be repeated."""
    NONE = "none"


class _Found(NamedTuple):
    """What one log dir has of a start block."""

    data: bytes
    """The bytes of ``meta.properties``."""
    is_blocked: bool
    file: StartBlockFile | None
    """The content of ``start-block.json``; ``None`` if it is missing, or incomplete beside an unblocked
    ``meta.properties``.
    """
    has_file: bool


def true_properties(top: Directory) -> bytes | None:
    """Return the original ``meta.properties`` of a log dir, without the start block; ``None`` if it has none.

    Raises:
        FormatError: ``meta.properties``, or the ``start-block.json`` that it needs, is malformed.
        StateError: the log dir is blocked, and its original bytes are lost.
        OSError: a file cannot be read.
    """
    if read_file(top, META_PROPERTIES) is None and read_file(top, FILE_NAME) is None:
        return None
    found = _look(top)
    return found.data if found.file is None or not found.is_blocked else found.file.original


def state(tops: Iterable[LogDirTop]) -> StartBlockState:
    """Return whether all, some or none of the log dirs of a broker are blocked.

    Args:
        tops: All log dirs of the broker; each is only read.

    Raises:
        FormatError: a ``meta.properties``, or the ``start-block.json`` of a blocked log dir, is malformed.
        NotFormattedError: a log dir has no ``meta.properties``.
        StateError: a log dir is blocked, and its original bytes are lost or changed.
        OSError: a file cannot be read.
    """
    found = [_look(one.top) for one in tops]
    if found and all(each.is_blocked for each in found):
        return StartBlockState.SET
    return StartBlockState.PARTIAL if any(each.is_blocked or each.has_file for each in found) else StartBlockState.NONE


def set_block(open_dirs: Sequence[OpenLogDir]) -> None:
    """Set the start block, durably. Every lock of the broker is held. Repeatable.

    Args:
        open_dirs: All log dirs of the broker.

    Raises:
        ReadOnlyDiskError: a disk is read-only. The other log dirs are unchanged.
        LogDirError: as ``state``, or the block cannot be set; then no log dir is blocked.
    """
    found = _look_all(open_dirs)
    changes = [_change(open_dir, each) for open_dir, each in zip(open_dirs, found, strict=True)]
    touched: list[OpenLogDir] = []
    try:
        for open_dir, each, change in zip(open_dirs, found, changes, strict=True):
            with _map_os_errors(open_dir):
                if change is None:
                    # The process that blocked it may have been killed before the block was durable; its text may be
                    # lost.
                    if each.file is not None:
                        _explain(open_dir, each.file)
                    with syncing(open_dir.top):
                        open_dir.top.sync()
                else:
                    touched.append(open_dir)
                    _keep(open_dir, change)
        for open_dir, change in zip(open_dirs, changes, strict=True):
            if change is not None:
                with _map_os_errors(open_dir):
                    _put(open_dir, change.changed, None, before=change.file.original)
    except LogDirError as error:
        # No log dir stays blocked rather than some of them. A sick disk is left alone: nothing is written there any
        # more.
        for open_dir in touched:
            if not (isinstance(error, ReadOnlyDiskError) and error.path == open_dir.top.path):
                with suppress(LogDirError):
                    _lift([open_dir])
        raise


def lift_block(open_dirs: Sequence[OpenLogDir]) -> None:
    """Lift the start block, durably: bytes and modification times are the original ones. Repeatable.

    Every lock of the broker is held.

    Args:
        open_dirs: All log dirs of the broker.

    Raises:
        ReadOnlyDiskError: a disk is read-only. A partial start block may remain, which keeps brokers out, too.
        LogDirError: as ``state``, before any change; or a call failed, with the same result.
    """
    _lift(open_dirs)


class _Change(NamedTuple):
    changed: bytes
    file: StartBlockFile
    has_file: bytes | None
    """The bytes of an existing ``start-block.json``."""


def _change(open_dir: OpenLogDir, found: _Found) -> _Change | None:
    if found.is_blocked:
        return None
    path = f"{open_dir.log_dir}/{META_PROPERTIES}"
    with _map_os_errors(open_dir):
        mtime_ns = open_dir.top.stat(META_PROPERTIES).mtime_ns
        has_file = read_file(open_dir.top, FILE_NAME) if found.has_file else None
    if mtime_ns < 0:
        raise RefusedError(
            path,
            why=Why.FILE_TIME_INVALID,
            expected="a time of change since 1970",
            found=mtime_ns,
            fix="touch the file",
        )
    node_id = meta_properties.parse(found.data, path).node_id
    return _Change(start_block_file.blocked(found.data, path), StartBlockFile(found.data, mtime_ns, node_id), has_file)


def _look(top: Directory) -> _Found:
    path = f"{top.path}/{META_PROPERTIES}"
    data, kept = read_file(top, META_PROPERTIES), read_file(top, FILE_NAME)
    if kept is not None and not (data or b"").strip():
        # A new meta.properties would have another directory id, and the original would be lost with start-block.json.
        raise StateError(
            path,
            expected=f"the meta.properties that was blocked, since {FILE_NAME} is there",
            found="no such file" if data is None else "an empty file",
            fix=f"do not format it: {FILE_NAME} holds the true one, in base64 as meta_properties; "
            f"put that into {META_PROPERTIES}",
        )
    if data is None:
        raise NotFormattedError(
            path, expected=META_PROPERTIES, found="no such file", fix="check that the right disk is mounted"
        )
    is_blocked = start_block_file.is_blocked(data, path)
    if not is_blocked:
        # Its content does not matter: meta.properties itself holds the original bytes.
        return _Found(data, False, None, kept is not None)
    if kept is None:
        raise StateError(
            path,
            expected=f"{FILE_NAME} beside a blocked meta.properties",
            found="no such file",
            fix="restore the meta.properties of before the start block from its backup, in every log dir",
        )
    file = start_block_file.parse(kept, f"{top.path}/{FILE_NAME}")
    if start_block_file.blocked(file.original, path) != data:
        raise StateError(
            path,
            expected=f"the bytes kept in {FILE_NAME}, but for the node id",
            found="a file that was changed since it was blocked",
            fix=f"restore the meta.properties of before the start block from its backup, then move {FILE_NAME} away",
        )
    return _Found(data, True, file, True)


@contextmanager
def _map_os_errors(open_dir: OpenLogDir) -> Iterator[None]:
    """Turn an ``OSError`` of the body into a ``DiskError`` that names the log dir."""
    try:
        with calling(open_dir.top):
            yield
    except OSError as error:
        raise DiskError(
            open_dir.log_dir,
            expected="a start block in every log dir, or in none",
            found=error.strerror or error,
            fix="free space or grant permissions, then repeat the command",
        ) from error


def _keep(open_dir: OpenLogDir, change: _Change) -> None:
    owner = open_dir.owner.for_file()
    data = start_block_file.render(change.file)
    replace_file(open_dir.top, FILE_NAME, data, before=change.has_file, owner=owner, work=open_dir.work, keep=False)
    _explain(open_dir, change.file)
    with syncing(open_dir.top):
        open_dir.top.sync()


def _explain(open_dir: OpenLogDir, file: StartBlockFile) -> None:
    """Write the text for people if it is missing; the caller syncs the directory."""
    text = _TEXT.format(false=start_block_file.FALSE_NODE_ID, true=file.node_id).encode("ascii")

    def write() -> None:
        try:
            open_dir.top.write(START_BLOCK_NOTE, text, open_dir.owner.for_file())
        except OSError:
            _remove(open_dir.top, START_BLOCK_NOTE)
            raise

    if read_file(open_dir.top, START_BLOCK_NOTE) != text:
        _remove(open_dir.top, START_BLOCK_NOTE)
        with_reserve(open_dir.work, write)
    with syncing(open_dir.top):
        open_dir.top.sync_file(START_BLOCK_NOTE)


def _put(open_dir: OpenLogDir, data: bytes, mtime_ns: int | None, *, before: bytes) -> None:
    """Replace the bytes of ``meta.properties``: write a temporary file, read it back, compare, rename."""
    top, path = open_dir.top, f"{open_dir.log_dir}/{META_PROPERTIES}"
    if read_file(top, META_PROPERTIES) != before:
        raise RefusedError(
            path, why=Why.CHANGED, expected="the bytes just read", found="bytes that changed", fix="repeat the command"
        )
    owner = top.stat(META_PROPERTIES).owner
    _remove(top, _NEW)

    def write() -> None:
        try:
            top.write(_NEW, data, owner, mtime_ns)
        except OSError:
            _remove(top, _NEW)
            raise

    with_reserve(open_dir.work, write)
    with syncing(top):
        top.sync_file(_NEW)
    if read_file(top, _NEW) != data:
        raise RefusedError(
            f"{open_dir.log_dir}/{_NEW}",
            why=Why.READ_BACK_DIFFERS,
            expected="the bytes just written",
            found="bytes that differ",
            fix="meta.properties is as it was; check the kernel log: the disk may fail",
        )
    top.replace(_NEW, META_PROPERTIES)
    with syncing(top):
        top.sync()


def _look_all(open_dirs: Sequence[OpenLogDir]) -> list[_Found]:
    found = []
    for open_dir in open_dirs:
        with _map_os_errors(open_dir):
            found.append(_look(open_dir.top))
    return found


def _lift(open_dirs: Sequence[OpenLogDir]) -> None:
    found = _look_all(open_dirs)
    for open_dir, each in zip(open_dirs, found, strict=True):
        if each.is_blocked and each.file is not None:
            with _map_os_errors(open_dir):
                _put(open_dir, each.file.original, each.file.mtime_ns, before=each.data)
    for open_dir in open_dirs:
        with _map_os_errors(open_dir):
            _remove(open_dir.top, START_BLOCK_NOTE)
            _remove(open_dir.top, _NEW)
            # The bytes restored by a killed process must be durable as well before start-block.json is removed.
            with syncing(open_dir.top):
                open_dir.top.sync()
            remove_file(open_dir.top, FILE_NAME)


def _remove(top: Directory, name: str) -> None:
    try:
        top.stat(name)
    except FileNotFoundError:
        return
    top.unlink(name)
