"""Output files of a broker's inventories: whole files in a directory, in memory, or discarded.

Either all files of a broker appear, each whole and synced, or none does. An unfinished file has a name that starts with
``.`` and ends with ``.partial``: it remains after a kill, and no command reads it.

Not here: their content (``worker.inventory``).

Spec: design §7.1; style §5.5.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from logdir.errors import ConfigError, Problem
from logdir.worker.inventory import Summary, unwritten


class _Place(NamedTuple):
    """The destination of one inventory."""

    descriptor: int
    partial: str | None
    """Its path before it gets its final name; ``None`` if it gets no name."""


class InventoryFiles:
    """The inventory files of one broker while they are written: one open file per log dir, in their order."""

    def __init__(self, directory: str | None, *, is_written: bool) -> None:
        """Start without a file.

        Args:
            directory: The output directory; created if missing. ``None``: in memory.
            is_written: Whether any file is written.
        """
        self._directory = directory if is_written else None
        self._is_written = is_written
        self._places: list[_Place] = []
        self._given_up: list[_Place] = []

    def add(self) -> None:
        """Open one more file. Raises ``ConfigError``: the directory or the file cannot be created."""
        self._places.append(self._new(len(self._places)))

    def descriptor(self, index: int) -> int:
        """Return the descriptor of the file with this number; ``close`` closes it."""
        return self._places[index].descriptor

    def replace(self, index: int) -> int:
        """Return the descriptor of a new, empty file, in place of a file that a worker may still write to.

        Raises:
            ConfigError: no file can be created.
        """
        # A killed worker that hangs in the kernel may finish a write later; that must not reach the published file.
        self._given_up.append(self._places[index])
        self._places[index] = self._new(index)
        return self._places[index].descriptor

    def content(self, index: int) -> bytes | None:
        """Return the content of an inventory in memory; ``None`` if it is not in memory."""
        if not self._is_written or self._directory is not None:
            return None
        descriptor = self._places[index].descriptor
        with open(descriptor, "rb", closefd=False) as file:
            file.seek(0)
            return file.read()

    def publish(self, summaries: Sequence[Summary]) -> list[str | None]:
        """Sync every inventory, then rename each to its final name, which may replace an older file.

        Returns:
            The final path of each; ``None`` for each if the inventories are only printed.

        Raises:
            OutputError: a file could not be synced or renamed; it and those after it are not published.
        """
        if self._directory is None:
            return [None for _ in self._places]
        for place in self._places:
            try:
                os.fsync(place.descriptor)
            except OSError as error:
                raise unwritten(self._directory, error.strerror) from error
        paths: list[str | None] = []
        for place, summary in zip(self._places, summaries, strict=True):
            path = os.path.join(self._directory, file_name(summary))
            try:
                os.rename(str(place.partial), path)  # noqa: PTH104
            except OSError as error:
                raise unwritten(path, error.strerror) from error
            paths.append(path)
        _sync_names(self._directory)
        return paths

    def close(self) -> None:
        """Close every file; unpublished ones are removed."""
        for place in (*self._places, *self._given_up):
            with suppress(OSError):
                os.close(place.descriptor)
            if place.partial is not None:
                with suppress(OSError):
                    os.unlink(place.partial)  # noqa: PTH108 - no pathlib in what must start fast

    def _new(self, index: int) -> _Place:
        if not self._is_written:
            return _Place(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), None)
        if self._directory is None:
            return _Place(os.memfd_create("inventory"), None)
        path = os.path.join(self._directory, f".{index}-{os.urandom(6).hex()}.partial")
        try:
            os.makedirs(self._directory, exist_ok=True)
            return _Place(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), path)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "no path"
            problem = Problem("config-error", self._directory, "a directory to write to", str(reason))
            raise ConfigError((problem,)) from error


def file_name(summary: Summary) -> str:
    """Return the name of a disk's inventory file (design §7.1)."""
    from hashlib import sha256  # Loads OpenSSL: imported only if a file is written.

    node = "unknown" if summary.disk.node_id is None else summary.disk.node_id
    return f"{node}-{sha256(summary.disk.log_dir.encode()).hexdigest()[:12]}.jsonl"


@contextmanager
def opened_files(directory: str | None, count: int, *, is_written: bool) -> Iterator[InventoryFiles]:
    """Open a file for each log dir's inventory; unpublished ones are removed at the end.

    Args:
        directory: The output directory; created if missing. ``None``: in memory.
        count: How many files.
        is_written: Whether any file is written.

    Raises:
        ConfigError: the directory or a file in it cannot be created.
    """
    if directory and "/../" in f"{directory}/":
        # Otherwise every directory before a ``..`` of the path would be created, possibly in a log dir.
        directory = os.path.realpath(directory)
    files = InventoryFiles(directory, is_written=is_written)
    try:
        for _ in range(count):
            files.add()
        yield files
    finally:
        files.close()


def _sync_names(directory: str) -> None:
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise unwritten(directory, error.strerror) from error
