"""Where the inventories of one command go: whole files in a directory, memory, or nowhere.

All of a command's files appear, each whole and synced, or none does. What is being written has a name that starts
with ``.`` and ends with ``.partial``: after a kill it stays, and nobody reads it.

Spec: design §7.1; style §5.5.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, NamedTuple

from logdir.errors import ConfigError, LogDirError, Problem
from logdir.observe.outside import require_outside
from logdir.observe.process import Summary


class Place(NamedTuple):
    """Where one inventory is written to."""

    file: BinaryIO
    directory: str | None
    """Where it gets its final name; ``None`` if it gets none."""
    partial: str | None
    """Its path until then."""


def file_name(summary: Summary) -> str:
    """Return the name of a disk's inventory file (design §7.1)."""
    from hashlib import sha256

    node = "unknown" if summary.disk.node_id is None else summary.disk.node_id
    return f"{node}-{sha256(summary.disk.log_dir.encode()).hexdigest()[:12]}.jsonl"


def unwritten(path: str, reason: str | None) -> LogDirError:
    """Return the error of an inventory that could not be written."""
    from migrate.errors import OutputError

    return OutputError(
        path,
        expected="room and rights to write its inventory",
        found=reason or "an error",
        fix="no file was left; make room or name another directory with -o",
    )


@contextmanager
def places(
    directory: str | None, disks: int, *, is_written: bool, log_dirs: Sequence[str] = ()
) -> Iterator[list[Place]]:
    """Open a place for each disk's inventory; what was not published is gone at the end.

    Args:
        directory: Where the files shall be; made if it is not there. ``None``: in memory.
        disks: How many places.
        is_written: Whether anything is written at all.
        log_dirs: Of the broker; neither in them nor in their work roots is anything written.

    Raises:
        RefusedError: the directory lies in a log dir or a work root; nothing was made.
        ConfigError: the directory cannot be made, or no file in it.
    """
    if is_written and directory:
        require_outside(directory, log_dirs)
        if "/../" in f"{directory}/":
            # Else every directory that such a path goes through and leaves again would be made, in a log dir too.
            directory = os.path.realpath(directory)
    with ExitStack() as stack:
        found = []
        for index in range(disks):
            if not is_written:
                place = Place(open(os.devnull, "wb"), None, None)  # noqa: SIM115 - closed by the stack
            elif directory is None:
                place = Place(open(os.memfd_create("inventory"), "w+b"), None, None)  # noqa: SIM115
            else:
                place = _partial(directory, index)
            found.append(place)
            stack.callback(_close, place)
        yield found


def _partial(directory: str, index: int) -> Place:
    path = os.path.join(directory, f".{index}-{os.urandom(6).hex()}.partial")
    try:
        os.makedirs(directory, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no path"
        problem = Problem("config-error", directory, "a directory to write to", str(reason))
        raise ConfigError((problem,)) from error
    return Place(open(descriptor, "w+b"), directory, path)


def _close(place: Place) -> None:
    # What a full disk did not take is still buffered, and closing would try again.
    with contextlib.suppress(OSError):
        place.file.close()
    if place.partial is not None:
        with contextlib.suppress(OSError):
            os.unlink(place.partial)  # noqa: PTH108 - no pathlib in what must start fast


def publish(found: Sequence[Place], summaries: Sequence[Summary]) -> list[str | None]:
    """Sync every inventory, then give each its final name, which may replace a former one; return their paths.

    Raises:
        OutputError: one could not be synced or named; it and those after it have no file.
    """
    for place in found:
        if place.directory is not None:
            try:
                os.fsync(place.file.fileno())
            except OSError as error:
                raise unwritten(place.directory, error.strerror) from error
    paths: list[str | None] = []
    for place, summary in zip(found, summaries, strict=True):
        if place.directory is None or place.partial is None:
            paths.append(None)
            continue
        path = os.path.join(place.directory, file_name(summary))
        try:
            os.rename(place.partial, path)  # noqa: PTH104
        except OSError as error:
            raise unwritten(path, error.strerror) from error
        paths.append(path)
    if found and found[0].directory is not None:
        _sync_names(found[0].directory)
    return paths


def _sync_names(directory: str) -> None:
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise unwritten(directory, error.strerror) from error
