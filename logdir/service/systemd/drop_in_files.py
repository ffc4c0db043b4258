"""The files of the drop-ins: read, compared, written and removed; never one that somebody else wrote or has changed.

They lie below ``/etc``, on no disk of the broker. A file is whole, or not there.

Not here: what stands in them (``drop_ins``), how one of ours is known (``unit_text``).

Spec: design §5 "A use case"; style §5.5; systemd.unit(5).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from logdir.errors import OutputError
from logdir.paths import TEMPORARY
from logdir.service.systemd.unit_text import is_sealed

_MOST_BYTES: Final = 1 << 20


def text_at(path: str) -> str | None:
    """Return the text of a file; ``None``: it does not exist.

    Raises:
        OutputError: it cannot be read.
    """
    with _mapped(path):
        try:
            with open(path, "rb") as file:
                return file.read(_MOST_BYTES).decode("utf-8", "replace")
        except FileNotFoundError:
            return None


def is_ours(text: str | None) -> bool:
    """Return whether a file may be written or removed: it is not there, or it is as we left it."""
    return text is None or is_sealed(text)


def found_beside(folder: str, name: str) -> tuple[str, ...]:
    """Return the drop-ins of one name in the directories of all units, sorted."""
    return tuple(sorted(str(path) for path in Path(folder).glob(f"*.d/{name}")))


def write(path: str, text: str) -> None:
    """Write a file of root's that everybody may read, durably, in place of the one that is there.

    Raises:
        OutputError: it cannot be written; what was there is unchanged.
    """
    folder, temporary = os.path.dirname(path), path + TEMPORARY
    with _mapped(path):
        os.makedirs(folder, mode=0o755, exist_ok=True)
        with suppress(FileNotFoundError):
            os.unlink(temporary)  # noqa: PTH108 - left by one that was killed
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode())
                os.fchmod(file.fileno(), 0o644)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, path)  # noqa: PTH104 - one call, one name
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108
            raise
        _sync_names(folder)


def remove(path: str) -> None:
    """Remove a file, durably.

    Raises:
        OutputError: it cannot be removed.
    """
    with _mapped(path):
        os.unlink(path)  # noqa: PTH108
        _sync_names(os.path.dirname(path))


def _sync_names(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _mapped(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(
            path,
            expected="a drop-in that can be read and written",
            found=error.strerror or str(error),
            fix="run it as root; or write elsewhere with --root DIR",
        ) from error
