"""Atomic, durable replacement of a small file; the old content stays under the name with ``.old``.

The new bytes are written under the name with ``.tmp`` (Kafka's suffix, so that people recognise a leftover), synced,
read back and compared. The old bytes get a second name with ``.old``. One rename is the commit. At every instant the
name leads to all of the old bytes or all of the new ones.

Not here: the content of the files (``formats``).

Spec: design §2 law 9; reliability §4.2 "new file"; attacks A9, A10.
"""

from __future__ import annotations

from logdir.disk.kernel.calls import Directory, Owner
from logdir.disk.kernel.failure import calling, with_reserve
from logdir.disk.kernel.fsync import syncing
from logdir.errors import RefusedError
from logdir.observe.classify import Type
from logdir.paths import TEMPORARY
from logdir.refusal_slug import Why

KEPT = ".old"
MAX_BYTES = 16 << 20


def read_file(directory: Directory, name: str) -> bytes | None:
    """Return the content of a small file; ``None`` if it does not exist.

    Raises:
        RefusedError: it is larger than any file of Kafka or logdird.
        OSError: it cannot be read.
    """
    try:
        data = directory.read(name, MAX_BYTES)
    except FileNotFoundError:
        return None
    if len(data) > MAX_BYTES:
        raise RefusedError(
            f"{directory.path}/{name}",
            why=Why.FILE_TOO_LARGE,
            expected=f"at most {MAX_BYTES} bytes",
            found=f"{len(data)} or more",
            fix="it is no file of Kafka or logdird: inspect it, and move it away",
        )
    return data


def replace_file(
    directory: Directory,
    name: str,
    data: bytes,
    *,
    before: bytes | None,
    owner: Owner,
    work: Directory,
    keep: bool = True,
) -> None:
    """Replace the content of a file, or create it, durably.

    Args:
        directory: The directory that holds it.
        name: Its name.
        data: The new content; if it equals ``before``, nothing is changed.
        before: Its content when the change was decided; ``None`` if it did not exist.
        owner: Owner of a new file; an existing file keeps its own.
        work: The work root, which holds the reserve.
        keep: Whether the old bytes stay under the name with ``.old``.

    Raises:
        RefusedError: the file changed since it was decided, or the new content did not read back.
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        OSError: any other error; the file is unchanged.
    """
    if data == before:
        return
    with calling(directory):
        found = read_file(directory, name)
        if found != before:
            raise RefusedError(
                f"{directory.path}/{name}",
                why=Why.CHANGED,
                expected="the bytes that it had when its change was decided",
                found=_shown(found),
                fix="the file stays as it is; run the command again",
            )
        if found is not None:
            owner = directory.stat(name).owner
        temporary = name + TEMPORARY
        _clear(directory, temporary)
        _write(directory, temporary, data, owner, work)
        with syncing(directory):
            directory.sync_file(temporary)
        if read_file(directory, temporary) != data:
            raise RefusedError(
                f"{directory.path}/{temporary}",
                why=Why.READ_BACK_DIFFERS,
                expected="the bytes just written",
                found="bytes that differ",
                fix="nothing was replaced; check the kernel log: the disk may fail",
            )
        if found is not None and keep:
            _clear(directory, name + KEPT)
            with_reserve(work, lambda: directory.link(name, directory, name + KEPT))
        with_reserve(work, lambda: directory.replace(temporary, name))
        with syncing(directory):
            directory.sync()


def remove_file(directory: Directory, name: str) -> None:
    """Remove a file if it exists, durably.

    Raises:
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        OSError: any other error; the file is unchanged.
    """
    with calling(directory):
        if _clear(directory, name):
            with syncing(directory):
                directory.sync()


def _write(directory: Directory, name: str, data: bytes, owner: Owner, work: Directory) -> None:
    def write() -> None:
        try:
            directory.write(name, data, owner)
        except OSError:
            _clear(directory, name)
            raise

    with_reserve(work, write)


def _clear(directory: Directory, name: str) -> bool:
    try:
        found = directory.stat(name)
    except FileNotFoundError:
        return False
    if found.type is not Type.FILE:
        raise RefusedError(
            f"{directory.path}/{name}",
            why=Why.WRONG_FILE_TYPE,
            expected="a regular file",
            found=found.type.words,
            fix="inspect it, and move it away",
        )
    directory.unlink(name)
    return True


def _shown(data: bytes | None) -> str:
    return "no file" if data is None else f"{len(data)} other bytes"
