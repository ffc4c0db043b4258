"""Atomic, durable output of the planner: a file or a directory appears complete or not at all.

The output is written beside its final name as ``.{name}.{random}.partial``, synced, and renamed; the rename is the
commit. A failure removes it. A kill leaves the partial name, which no command reads.

Spark's tasks may fill a new directory: this module syncs their files, so on a cluster all machines must share the path.

Not here: changes inside a log dir, which only ``logdir.disk`` makes.

Spec: style §5.5; design §7.7 ("a directory that did not exist before").
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from logdir.errors import OutputError
from logdir.observe.outside import require_outside
from migrate.errors import OutputExistsError

_EXISTS_FIX = "name a directory that does not exist; an output never replaces anything"


_PARTIAL = re.compile(r"\..*\.[0-9a-f]{8}\.partial", re.DOTALL)


def _partial_name(name: str) -> str:
    # A random name, cut so that it fits in 255 bytes with its prefix and suffix.
    short = os.fsdecode(os.fsencode(name)[:200])
    return f".{short}.{secrets.token_hex(4)}.partial"


def is_partial(path: Path) -> bool:
    """Whether a path has the name of a leftover of an interrupted run, which was never synced.

    >>> is_partial(Path("/d/.plan.0123abcd.partial")), is_partial(Path("plan.partial"))
    (True, False)
    """
    return _PARTIAL.fullmatch(os.path.basename(os.path.abspath(path))) is not None


def fsync_dir(path: Path) -> None:
    """Sync one directory, so that the names in it survive a power cut.

    Raises:
        OSError: the directory cannot be opened or synced.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _fsync_tree(top: Path) -> None:
    for folder, _, names in os.walk(top, topdown=False):
        for name in names:
            descriptor = os.open(Path(folder) / name, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        fsync_dir(Path(folder))


def write_file(path: Path, pieces: bytes | Iterable[bytes], *, mode: int = 0o644) -> None:
    """Write or replace one file atomically, and sync it and its directory.

    Args:
        path: The final name; its directory exists.
        pieces: The bytes, in one or many pieces.
        mode: Permission bits before the umask.

    Raises:
        OutputError: the file could not be written; an existing one is unchanged.
    """
    if isinstance(pieces, bytes):
        pieces = (pieces,)
    partial = path.with_name(_partial_name(path.name))
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with open(descriptor, "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        fsync_dir(path.parent)
    except OSError as error:
        raise _failed(path, error) from error


def require_absent(path: Path) -> None:
    """Check that an output path is free and outside all log dirs; called before hours of work.

    Raises:
        RefusedError: the path lies in a log dir of this host (recognised by ``meta.properties``) or in a work root.
        OutputExistsError: an entry of that name exists, possibly a dangling link.
        OutputError: the parent directory does not exist, or cannot be read.
    """
    try:
        if os.path.lexists(path):
            raise OutputExistsError(
                str(path), expected="a directory that does not exist", found="a directory or file", fix=_EXISTS_FIX
            )
        path.parent.stat()
    except OSError as error:
        raise _failed(path, error) from error
    require_outside(str(path))


@contextlib.contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Create a directory that gets its final name only when the body has ended, with all its content synced.

    Args:
        path: The final name; must not exist, its parent must.

    Yields:
        The partial directory beside it, to be filled.

    Raises:
        OutputExistsError: the name exists, or was created meanwhile. Nothing is left, and nothing was replaced.
        OutputError: writing failed, in the body or after it. Nothing is left.
    """
    path = Path(os.path.abspath(path))
    require_absent(path)
    partial = path.with_name(_partial_name(path.name))
    try:
        partial.mkdir()
        made = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _failed(path, error) from error
    try:
        yield partial
        # Spark's tasks create missing parent directories: a directory recreated by them lacks the earlier files.
        if not os.path.samestat(os.fstat(made), partial.stat()):
            raise FileNotFoundError(errno.ENOENT, "the directory was removed while it was filled")
        _fsync_tree(partial)
        require_absent(path)
        # rename(2) replaces only an empty directory that was created meanwhile: no bytes are lost.
        partial.rename(path)
        fsync_dir(path.parent)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        # The body reads through Spark, which raises its own errors: an OSError here comes from writing.
        if isinstance(error, OSError) and not isinstance(error, ConnectionError):
            raise _failed(path, error) from error
        raise
    finally:
        os.close(made)


def _failed(path: Path, error: OSError) -> OutputError:
    return OutputError(
        str(path),
        expected="a place that can be written",
        found=error.strerror or str(error),
        fix="nothing was left behind; free space or grant permissions there, or name another place",
    )
