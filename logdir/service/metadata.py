"""Read the metadata log of a KRaft node as a tree, and describe its nodes. Reads only.

Takes no lock, so it works beside a running broker too. Not here: reading the log (``logdir.desired``), printing records
(``metadata_dump``).

Spec: design §6; KIP-631, "metadata.log.dir"; kafka-formats §8; docs/json.md.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from logdir.desired.metadata_files import newest
from logdir.desired.metadata_nodes import Missed, Place, chosen
from logdir.desired.metadata_paths import path_of
from logdir.desired.metadata_shell import Shell
from logdir.desired.metadata_source import Look, read_directory, read_file
from logdir.desired.metadata_tree import Directory, Found, Leaf, build, children
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
from logdir.service.config import read_config

NO_LOG = "only a KRaft node has one, in its metadata.log.dir"
_SEGMENT = re.compile(r"([0-9]{20})\.log", re.ASCII)
_META_PROPERTIES = "meta.properties"
_MOST_BYTES = 1 << 20
_RIGHTS = (errno.EACCES, errno.EPERM)
_ABSENT = (errno.ENOENT, errno.ENOTDIR)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest:
    """Which metadata is read: the first that is not ``None``, in this order."""

    snapshot: str | None = None
    """One snapshot, or the segment that begins at offset 0."""
    directory: str | None = None
    """The directory of the metadata log."""
    server_properties: str | None = None
    log_dirs: str | None = None
    """Paths, separated by commas."""

    def require_valid(self) -> None:
        """Return if a path that is named is one. Raises ``ConfigError``."""
        for flag, path in (("--snapshot", self.snapshot), ("--directory", self.directory)):
            if path is not None and (not path or "\0" in path):
                raise ConfigError((Problem("config-error", flag, "a path the system takes", path or "none"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What was read."""

    look: Look
    root: Directory

    @property
    def problems(self) -> list[Problem]:
        """Why it stops before the end of the files."""
        return [] if self.look.ended is None else [self.look.ended]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLog:
    """What an answer rests on."""

    origin: str
    snapshot: str | None
    committed_offset: int
    end_offset: int
    epoch: int
    as_of_ms: int
    open_transaction: int | None
    is_log_behind: bool

    @classmethod
    def of(cls, look: Look) -> MetadataLog:
        """Describe what was read."""
        return cls(
            origin=look.origin,
            snapshot=look.snapshot,
            committed_offset=look.committed,
            end_offset=look.offset,
            epoch=look.epoch,
            as_of_ms=look.as_of_ms,
            open_transaction=look.open_transaction,
            is_log_behind=look.is_log_behind,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeItem:
    """A node of the tree."""

    path: str
    """As it can be typed."""
    names: tuple[str, ...]
    """Those in the path, without any escape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafItem(NodeItem):
    """A node with a value."""

    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryItem(NodeItem):
    """A directory that is listed."""

    children: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellItem:
    """One line of a session."""

    typed: str
    printed: tuple[str, ...]


def read(request: MetadataRequest) -> Metadata:
    """Read what is meant.

    Raises:
        LogDirError: it is not named right, cannot be read, or is no metadata.
    """
    request.require_valid()
    if request.snapshot is not None:
        path = os.path.abspath(request.snapshot)
        with reading(path):
            look = read_file(path)
    else:
        directory = directory_of(request)
        with reading(directory, NO_LOG):
            look = read_directory(directory)
    return Metadata(look=look, root=build(look, _local_of(look)))


def nodes(metadata: Metadata, paths: Sequence[str], lister: str) -> Iterator[NodeItem | Missed]:
    """Describe the nodes that paths lead to, in the order of the paths.

    Args:
        metadata: What was read.
        paths: As typed; none at all: the root.
        lister: ``ls``, ``cat`` or ``find``, as of ``metadata_nodes.chosen``.
    """
    for found in chosen(Place(metadata.root), paths, lister):
        yield found if isinstance(found, Missed) else _item(found, with_children=lister == "ls")


def _item(found: Found, *, with_children: bool) -> NodeItem:
    path, names, node = path_of(found.names), found.names, found.node
    if isinstance(node, Leaf):
        return LeafItem(path=path, names=names, value=node.value)
    if with_children:
        return DirectoryItem(path=path, names=names, children=tuple(children(node)))
    return NodeItem(path=path, names=names)


def typed(shell: Shell, line: str) -> tuple[ShellItem, list[Problem]]:
    """Do what a line says; return what is printed, and what it failed at.

    Args:
        shell: The session.
        line: Without its end.
    """
    answers = list(shell.run(line))
    missed = [one.problem for one in answers if isinstance(one, Missed)]
    return ShellItem(typed=line, printed=tuple(one for one in answers if isinstance(one, str))), missed


@contextmanager
def reading(path: str, fix: str = "") -> Iterator[None]:
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


def directory_of(request: MetadataRequest) -> str:
    """Return the directory of the metadata log.

    Raises:
        ConfigError: what was said names none, or several.
        MalformedFileError: none of the log dirs has one.
    """
    if request.directory is not None:
        return os.path.abspath(request.directory)
    named = read_config(request.server_properties, request.log_dirs)
    if named.metadata_log_dir is not None:
        return f"{os.path.abspath(named.metadata_log_dir)}/{METADATA_DIR}"
    if "metadata.log.dir" in named.unknown:
        found_there, fix = "a variable of config.providers", "name the directory of the metadata log: --directory"
        path = str(request.server_properties)
        raise ConfigError((Problem("config-error", path, "a path in metadata.log.dir", found_there, fix),))
    found, unread = [], []
    for log_dir in named.log_dirs:
        try:
            with reading(log_dir):
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


def _local_of(look: Look) -> dict[str, object]:
    """Return what is known of the log dir and of us: the leaves below ``/local`` that the log does not say."""
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
