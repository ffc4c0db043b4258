"""A small file replaced whole or not at all, what it was kept beside it.

The new bytes are written under the name with ``.tmp`` (as Kafka does, so that a leftover is nobody's riddle), synced,
read back and compared; the old ones get a second name with ``.old``; one rename is the commit. At every instant the
name leads to all of the old bytes or all of the new.

Not here: what stands in the file (``formats``).

Spec: design §2 law 9; reliability §4.2 "new file"; attacks A9, A10.
"""

from __future__ import annotations

from logdir.disk.kernel.calls import Directory, Owner
from logdir.disk.kernel.failure import calling, syncing, with_reserve
from logdir.errors import RefusedError
from logdir.observe.classify import Type
from logdir.paths import TEMPORARY
from logdir.refusal_slug import Why

KEPT = ".old"
MAX_BYTES = 16 << 20


def read_file(directory: Directory, name: str) -> bytes | None:
    """Return a small file, ``None`` if there is none.

    Raises:
        RefusedError: it is larger than anything Kafka or we keep.
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
            fix="it is no file of Kafka or logdird: look at it, and move it away",
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
    """Give a file new content, durably.

    Args:
        directory: Where it lies.
        name: Its name.
        data: What it shall hold; the same as ``before`` changes nothing.
        before: What it held when that was decided; ``None`` if it was not there.
        owner: Of a file that is new; one that is there keeps its own.
        work: Holds the reserve.
        keep: Whether the old bytes stay under the name with ``.old``.

    Raises:
        RefusedError: it holds something else by now, or what was written does not read back.
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        OSError: another error; the file is as it was.
    """
    if data == before:
        return
    with calling(directory):
        found = read_file(directory, name)
        if found != before:
            raise RefusedError(
                f"{directory.path}/{name}",
                why=Why.CHANGED,
                expected="the bytes the plan was made from",
                found=_shown(found),
                fix="plan again",
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
            )
        if found is not None and keep:
            _clear(directory, name + KEPT)
            with_reserve(work, lambda: directory.link(name, directory, name + KEPT))
        with_reserve(work, lambda: directory.replace(temporary, name))
        with syncing(directory):
            directory.sync()


def remove_file(directory: Directory, name: str) -> None:
    """Remove a file if it is there, durably.

    Raises:
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        OSError: another error; the file is as it was.
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
            f"{directory.path}/{name}", why=Why.WRONG_FILE_TYPE, expected="a regular file", found=found.type.value
        )
    directory.unlink(name)
    return True


def _shown(data: bytes | None) -> str:
    return "no file" if data is None else f"{len(data)} other bytes"
