"""The small writer of the planning side: a file or a directory appears whole, durable, or not at all.

What is written lies beside its final name under a name of its own (``.{name}.{random}.partial``), is
synced, and is then renamed; the rename is the commit. A failure removes it. A kill leaves the partial name,
which nobody reads.

Not here: anything inside a log dir; that is ``logdir.disk``'s alone. A new directory may be filled by
Spark's tasks: what they wrote is synced from here, so on a cluster the path must be one that all its
machines share.

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

_EXISTS_FIX = "name a directory that does not exist; nothing is ever replaced"


_PARTIAL = re.compile(r"\..*\.[0-9a-f]{8}\.partial", re.DOTALL)


def _partial_name(name: str) -> str:
    # A name that nobody else picks; cut so that 255 bytes hold it with its marks.
    short = os.fsdecode(os.fsencode(name)[:200])
    return f".{short}.{secrets.token_hex(4)}.partial"


def is_partial(path: Path) -> bool:
    """Whether a path has the name of what a run that was stopped left behind: whole or not, it was never synced.

    >>> is_partial(Path("/d/.plan.0123abcd.partial")), is_partial(Path("plan.partial"))
    (True, False)
    """
    return _PARTIAL.fullmatch(os.path.basename(os.path.abspath(path))) is not None


def fsync_dir(path: Path) -> None:
    """Sync the names in one directory.

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
    """Write or replace one file, whole or not at all, and sync it and its directory.

    Args:
        path: The final name; its directory exists.
        pieces: The bytes, in one or many pieces.
        mode: Permission bits before the umask.

    Raises:
        OutputError: it could not be written; the former file, if any, is as it was.
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
    """Refuse a place that is taken or lies in a log dir, before the work of hours is done for it.

    Raises:
        RefusedError: it lies in a directory of this host that a ``meta.properties`` says to be a log dir, or in a
            work root.
        OutputExistsError: something has that name, be it a dangling link.
        OutputError: the parent is not there, or cannot be looked at.
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
    """Make a directory that appears under its name only when the body is done, with everything in it synced.

    Args:
        path: The final name; must not exist, its parent must.

    Yields:
        The partial directory beside it, to be filled.

    Raises:
        OutputExistsError: the name is taken, before or meanwhile. Nothing is left, and nothing was replaced.
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
        # Spark's tasks make every parent that is not there: in a directory of theirs, what came before is missing.
        if not os.path.samestat(os.fstat(made), partial.stat()):
            raise FileNotFoundError(errno.ENOENT, "the directory was removed while it was filled")
        _fsync_tree(partial)
        require_absent(path)
        # rename(2) replaces an empty directory that came in between, and nothing else: no bytes are lost.
        partial.rename(path)
        fsync_dir(path.parent)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        # A body reads through Spark, which has errors of its own: what the system refuses here, it refuses a writer.
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
        fix="nothing was left behind; make room or rights there, or name another place",
    )
