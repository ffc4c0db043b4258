"""The file of a bug report: a ``.tar.gz`` that only its owner can read, which appears whole or not at all.

Not here: what is in it (``report``).

Spec: design §6 ``bug-report``; style §5.5.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from logdir.errors import OutputError, RefusedError
from logdir.refusal_slug import Why

_MODE: Final = 0o600
_TOP: Final = "logdird-report"
"""The one directory in the archive."""


def place_of(output: str, name: str) -> str:
    """Return the path of the file: ``output``, or the name in it if it is a directory."""
    return os.path.join(output, name) if Path(output).is_dir() else output


def write(path: str, files: Mapping[str, bytes], now_ms: int) -> None:
    """Write files into a new archive, readable for its owner alone.

    Args:
        path: Of the archive; it must not exist.
        files: Content by path below the one directory in the archive.
        now_ms: The instant that each file gets, epoch milliseconds.

    Raises:
        RefusedError: there is something of that name.
        OutputError: it could not be written; nothing of it is left.
    """
    data = _packed(files, now_ms // 1000)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
    except FileExistsError as error:
        raise RefusedError(
            path,
            why=Why.OUTPUT_EXISTS,
            expected="a name that nothing has",
            found="a file of that name",
            fix="name another file: nothing is replaced",
        ) from error
    except OSError as error:
        raise _failed(path, error) from error
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except BaseException as error:
        with suppress(OSError):
            Path(path).unlink()
        if isinstance(error, OSError):
            raise _failed(path, error) from error
        raise


def _failed(path: str, error: OSError) -> OutputError:
    fix = "nothing of it was left; name another place with --output"
    return OutputError(path, expected="room and rights to write the report", found=error.strerror or error, fix=fix)


def _packed(files: Mapping[str, bytes], now_s: int) -> bytes:
    found = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=found, mode="wb", mtime=now_s) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(f"{_TOP}/{name}")
            member.size, member.mtime, member.mode = len(data), now_s, _MODE
            archive.addfile(member, io.BytesIO(data))
    return found.getvalue()
