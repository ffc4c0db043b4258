"""Which metadata log or snapshot a ``metadata`` command is about, and what lies beside it.

Reads only; takes no lock, so it works beside a running broker too. Not here: reading the log (``logdir.desired``).

Spec: design §6; KIP-631, "metadata.log.dir"; kafka-formats §8.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from logdir.desired.metadata_log import newest
from logdir.errors import (
    ConfigError,
    LogDirError,
    LogDirOfflineError,
    MalformedFileError,
    Problem,
    RefusedError,
)
from logdir.formats import meta_properties
from logdir.names import METADATA_DIR
from logdir.text import quoted
from tools.logdirctl.naming import broker_of

if TYPE_CHECKING:
    import argparse

    from logdir.desired.metadata_source import Look

NO_LOG = "only a KRaft node has one, in its metadata.log.dir"
_SEGMENT = re.compile(r"([0-9]{20})\.log", re.ASCII)
_META_PROPERTIES = "meta.properties"
_MOST_BYTES = 1 << 20
_RIGHTS = (errno.EACCES, errno.EPERM)
_ABSENT = (errno.ENOENT, errno.ENOTDIR)


def add_place(parser: Any, *, is_required: bool = True) -> None:
    """Add the ways to say which metadata is meant."""
    place = parser.add_mutually_exclusive_group(required=is_required)
    place.add_argument(
        "--server-properties", metavar="FILE", help="the broker's configuration; metadata.log.dir is read there"
    )
    place.add_argument("--log-dirs", metavar="A,B", help="the log dirs themselves, separated by commas")
    place.add_argument("--directory", metavar="DIR", help=f"the {METADATA_DIR} itself")
    if is_required:
        place.add_argument("--snapshot", metavar="FILE", help="one snapshot, or the segment that begins at offset 0")


def place_words(arguments: argparse.Namespace) -> str:
    """Return the place as it was named, for the next command to type."""
    for flag in ("server_properties", "log_dirs", "directory", "snapshot"):
        said = getattr(arguments, flag, None)
        if said is not None:
            return f"--{flag.replace('_', '-')} {quoted(said)}"
    return ""


@contextmanager
def told(path: str, fix: str = "") -> Iterator[None]:
    """Turn an error of the kernel into one of ours.

    Args:
        path: What is read.
        fix: What to do where it is not there.
    """
    try:
        yield
    except OSError as error:
        where = os.fsdecode(error.filename) if error.filename is not None else path
        found = error.strerror or str(error)
        if error.errno in _ABSENT:
            raise MalformedFileError(where, expected="metadata to read", found=found, fix=fix) from error
        if error.errno in _RIGHTS:
            owner = "run as the owner of the log dirs"
            raise RefusedError(where, expected="the right to read it", found=found, fix=owner) from error
        raise LogDirOfflineError(
            where, expected="a disk that answers", found=found, fix="look at the kernel's log"
        ) from error


def directory_of(arguments: argparse.Namespace) -> str:
    """Return the directory of the metadata log.

    Raises:
        ConfigError: what was said names none, or several.
        MalformedFileError: none of the log dirs has one.
    """
    if arguments.directory is not None:
        return _typed("--directory", arguments.directory)
    named = broker_of(arguments)
    if named.metadata_log_dir is not None:
        return f"{os.path.abspath(named.metadata_log_dir)}/{METADATA_DIR}"
    if "metadata.log.dir" in named.unknown:
        found_there, fix = "a variable of config.providers", "name the directory of the metadata log: --directory"
        problem = Problem("config-error", arguments.server_properties, "a path in metadata.log.dir", found_there, fix)
        raise ConfigError((problem,))
    found, unread = [], []
    for log_dir in named.log_dirs:
        try:
            with told(log_dir):
                found += [f"{log_dir}/{METADATA_DIR}"] if METADATA_DIR in os.listdir(log_dir) else []
        except LogDirError as error:
            unread.append(error)
    if len(found) > 1:
        fix = "name the one the broker uses: --directory"
        raise ConfigError((Problem("config-error", "--log-dirs", f"one {METADATA_DIR}", " and ".join(found), fix),))
    if not found and unread:
        raise unread[0]  # it may be there
    if not found:
        where = ", ".join(named.log_dirs)
        fix = "name the broker's metadata.log.dir among the log dirs"
        raise MalformedFileError(where, expected=f"a {METADATA_DIR}", found="none", fix=fix)
    return found[0]


def _typed(flag: str, path: str) -> str:
    if not path or "\0" in path:
        raise ConfigError((Problem("config-error", flag, "a path the system takes", path or "none"),))
    return os.path.abspath(path)


def files_of(directory: str) -> list[str]:
    """Return the newest snapshot and the segments, oldest first.

    Raises:
        MalformedFileError: there is none of both.
        OSError: it cannot be read.
    """
    names = os.listdir(directory)
    segments = sorted(name for name in names if _SEGMENT.fullmatch(name))
    snapshot = newest(names, int(segments[0].partition(".")[0]) if segments else 0)
    found = [*([] if snapshot is None else [snapshot.name]), *segments]
    if not found:
        raise MalformedFileError(directory, expected="a metadata log", found="no segment and no snapshot")
    return [f"{directory}/{name}" for name in found]


def read(arguments: argparse.Namespace) -> Look:
    """Read what is meant.

    Raises:
        LogDirError: it is not named right, cannot be read, or is no metadata.
    """
    from logdir.desired.metadata_source import read_directory, read_file

    if arguments.snapshot is not None:
        path = _typed("--snapshot", arguments.snapshot)
        with told(path):
            return read_file(path)
    directory = directory_of(arguments)
    with told(directory, NO_LOG):
        return read_directory(directory)


def local_of(look: Look) -> dict[str, object]:
    """Return what is known of the log dir and of us: the leaves below ``/local`` that the log does not say."""
    from importlib.metadata import version

    leaves: dict[str, object] = {"version": version("logdird")}
    parent = os.path.dirname(look.origin if Path(look.origin).is_dir() else os.path.dirname(look.origin))
    try:
        value = meta_properties.parse(_small(f"{parent}/{_META_PROPERTIES}"))
    except (OSError, LogDirError):
        return leaves  # whose it is is said if it can be said
    if value.cluster_id is not None:
        leaves["clusterId"] = str(value.cluster_id)
    if value.node_id is not None:
        leaves["nodeId"] = value.node_id
    if value.directory_id is not None:
        leaves["directoryId"] = str(value.directory_id)
    return leaves


def _small(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        return os.read(descriptor, _MOST_BYTES)
    finally:
        os.close(descriptor)
