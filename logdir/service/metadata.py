"""Browse the metadata log of a KRaft node as a tree, and describe its nodes. Only reads.

Takes no lock, so it also works beside a running broker. A separate process reads the log and answers the queries: a
hung disk becomes SUSPECT after its timeout, and after the log is read the disk is not used again.

Not here: reading the log (``logdir.metadata``), printing records (``metadata_dump``).

Spec: design §2 law 6, §6; KIP-631, "metadata.log.dir"; kafka-formats §8; docs/json.md.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from logdir.errors import ConfigError, LogDirError, LogDirOfflineError, MalformedFileError, Problem, RefusedError
from logdir.formats.kafka import meta_properties
from logdir.metadata.nodes import LISTERS, Line, Missed, Place, chosen
from logdir.metadata.paths import path_of
from logdir.metadata.shell import Shell
from logdir.metadata.source import Look, read_directory, read_file
from logdir.metadata.tree import Found, Leaf, build, children
from logdir.paths import META_PROPERTIES, METADATA_DIR
from logdir.refusal_slug import Why
from logdir.service.log_dirs.config import read_config
from logdir.service.report.json_form import to_json
from logdir.text import utf8
from logdir.wire.json_text import text
from logdir.worker.port import Port
from logdir.worker.remote import DEFAULT_PATIENCE_MS, gather
from logdir.worker.start import close_all, start
from logdir.worker.state import WorkerState
from logdir.worker_call import worker_call

NO_LOG = "only a KRaft node has a metadata log, in its metadata.log.dir"
_MOST_BYTES = 1 << 20
_RIGHTS = (errno.EACCES, errno.EPERM)
_ABSENT = (errno.ENOENT, errno.ENOTDIR)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest:
    """A request to read metadata from the first of these fields that is not ``None``."""

    snapshot: str | None = None
    """A snapshot file, or the segment that begins at offset 0."""
    directory: str | None = None
    """The directory of the metadata log."""
    server_properties: str | None = None
    log_dirs: str | None = None
    """Paths, separated by commas."""
    disk_timeout_ms: int = DEFAULT_PATIENCE_MS
    """How long the disk may give no sign of life before it is SUSPECT."""

    def require_valid(self) -> None:
        """Check that every path in the request is valid. Raises ``ConfigError``."""
        for flag, path in (("--snapshot", self.snapshot), ("--directory", self.directory)):
            if path is not None and (not path or "\0" in path):
                raise ConfigError((Problem("config-error", flag, "a valid path", path or "none"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLog:
    """The files and offsets behind an answer."""

    origin: str
    """Path of the directory or file."""
    snapshot: str | None
    """Name of the snapshot that was read first; ``None``: the log was read from offset 0."""
    committed_offset: int
    """Records below this offset are known to be committed."""
    end_offset: int
    """The offset after the last record that was read; ``epoch`` is the epoch of that record, -1 if there is none."""
    epoch: int
    as_of_ms: int
    """Newest timestamp of a record (wall clock); 0 if there is none."""
    open_transaction: int | None
    """Where a transaction begins that does not end, and is not shown; ``None``: there is none."""
    is_log_behind: bool
    """Whether the log ends before the snapshot, and was not used."""

    @classmethod
    def of(cls, look: Look) -> MetadataLog:
        """Describe the files that were read."""
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
    """A node of the metadata tree."""

    path: str
    """Its path, as it can be typed."""
    names: tuple[str, ...]
    """The names in the path, without escapes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafItem(NodeItem):
    """A node with a value."""

    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryItem(NodeItem):
    """A directory and its entries."""

    children: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellItem:
    """One line typed in ``metadata shell``, and the lines that it printed."""

    typed: str
    printed: tuple[str, ...]


class MetadataOpened(NamedTuple):
    """The result of reading the metadata."""

    log: MetadataLog
    problems: tuple[Problem, ...]
    """Why reading stopped before the end of the files."""


class MetadataSession:
    """Metadata in the worker process that read it; every query must be answered before ``--disk-timeout``."""

    def __init__(self, port: Port, opened: MetadataOpened) -> None:
        """Start a session.

        Args:
            port: Port of the worker process.
            opened: The result of reading.
        """
        self._port = port
        self.log, self.problems = opened

    def lines(self, lister: str, paths: Sequence[str]) -> Iterator[Line]:
        """Yield what ``ls``, ``cat`` or ``find`` prints for some paths, in their order; ``Missed`` for a wrong path.

        Args:
            lister: ``ls``, ``cat`` or ``find``.
            paths: The paths as typed; without any path: the root.
        """
        return self._port.stream_opened(list_lines, lister, tuple(paths))

    def nodes(self, lister: str, paths: Sequence[str]) -> Iterator[Line]:
        """Yield each node as the JSON of a ``NodeItem``; arguments as for ``lines``."""
        return self._port.stream_opened(list_nodes, lister, tuple(paths))

    def run(self, line: str, width: int | None = None) -> Iterator[Line]:
        """Run a line of the shell; yield its output.

        Args:
            line: The line, without its line end.
            width: Columns of the terminal; ``None``: one entry a line.
        """
        return self._port.stream_opened(run_line, line, width)

    def complete(self, line: str, word: str) -> list[str]:
        """Return the completions of a word, as ``Shell.complete``."""
        return self._port.run_opened(complete, line, word)

    @property
    def is_over(self) -> bool:
        """Whether the user has left the shell."""
        return self._port.run_opened(is_over)


@contextmanager
def session(request: MetadataRequest) -> Iterator[MetadataSession]:
    """Read the requested metadata in a process of its own, which ends with the block.

    Raises:
        LogDirSuspectError: the disk does not answer in time.
        LogDirError: the request is invalid, or the files cannot be read or hold no metadata.
    """
    request.require_valid()
    is_file = request.snapshot is not None
    path = os.path.abspath(request.snapshot) if request.snapshot is not None else directory_of(request)
    (port,) = ports = start((path,), request.disk_timeout_ms)
    try:
        yield MetadataSession(port, port.run_opened(open_metadata, path, is_file=is_file))
    finally:
        close_all(ports)


class _Kept(NamedTuple):
    """Metadata that a worker has read and keeps."""

    shell: Shell
    width: list[int | None]
    """One element: the columns of the terminal while the current line runs; ``None``: one entry a line."""


@worker_call
def open_metadata(opened: WorkerState, path: str, *, is_file: bool) -> MetadataOpened:
    """Read metadata, and keep it for later calls.

    Args:
        opened: State of the worker.
        path: Path of a snapshot, or of the directory of the log.
        is_file: Whether the path is a snapshot.

    Raises:
        LogDirError: the files cannot be read, or hold no metadata.
    """
    with reading(path, "" if is_file else NO_LOG):
        look = read_file(path) if is_file else read_directory(path)
    width: list[int | None] = [None]
    opened.kept = _Kept(Shell(build(look, _local_of(look)), width=lambda: width[0]), width)
    return MetadataOpened(MetadataLog.of(look), () if look.ended is None else (look.ended,))


def _kept(opened: WorkerState) -> _Kept:
    if not isinstance(opened.kept, _Kept):
        raise ValueError("no metadata was read")
    return opened.kept


@worker_call
def list_lines(opened: WorkerState, lister: str, paths: tuple[str, ...]) -> Iterator[str | Missed]:
    """As ``MetadataSession.lines``, in the process that read the metadata."""
    yield from LISTERS[lister](Place(_kept(opened).shell.place.root), paths)


@worker_call
def list_nodes(opened: WorkerState, lister: str, paths: tuple[str, ...]) -> Iterator[str | Missed]:
    """As ``MetadataSession.nodes``, in the process that read the metadata."""
    for found in chosen(Place(_kept(opened).shell.place.root), paths, lister):
        yield found if isinstance(found, Missed) else utf8(text(to_json(_item(found, with_children=lister == "ls"))))


@worker_call
def run_line(opened: WorkerState, line: str, width: int | None) -> Iterator[str | Missed]:
    """As ``MetadataSession.run``, in the process that read the metadata."""
    kept = _kept(opened)
    kept.width[0] = width
    yield from kept.shell.run(line)


@worker_call
def complete(opened: WorkerState, line: str, word: str) -> list[str]:
    """As ``MetadataSession.complete``, in the process that read the metadata."""
    return _kept(opened).shell.complete(line, word)


@worker_call
def is_over(opened: WorkerState) -> bool:
    """As ``MetadataSession.is_over``, in the process that read the metadata."""
    return _kept(opened).shell.is_over


def _item(found: Found, *, with_children: bool) -> NodeItem:
    path, names, node = path_of(found.names), found.names, found.node
    if isinstance(node, Leaf):
        return LeafItem(path=path, names=names, value=node.value)
    if with_children:
        return DirectoryItem(path=path, names=names, children=tuple(children(node)))
    return NodeItem(path=path, names=names)


def typed(session: MetadataSession, line: str) -> tuple[ShellItem, list[Problem]]:
    """Run a line of the shell; return its output and its errors.

    Args:
        session: The session of the shell.
        line: The line, without its line end.
    """
    answers = list(session.run(line))
    missed = [one.problem for one in answers if isinstance(one, Missed)]
    return ShellItem(typed=line, printed=tuple(one for one in answers if isinstance(one, str))), missed


@contextmanager
def reading(path: str, fix: str = "") -> Iterator[None]:
    """Translate an ``OSError`` of the body into a ``LogDirError`` about the file.

    Args:
        path: The file that is read.
        fix: The fix for the message if the file does not exist.
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
            raise RefusedError(
                where, why=Why.NO_PERMISSION, expected="permission to read it", found=found, fix=owner
            ) from error
        raise LogDirOfflineError(
            where, expected="a disk that answers", found=found, fix="check the kernel log"
        ) from error


def directory_of(request: MetadataRequest) -> str:
    """Return the directory of the metadata log.

    Raises:
        ConfigError: the request names no directory, or several.
        MalformedFileError: no log dir holds a metadata log.
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
    found, unread = _searched(named.log_dirs, request.disk_timeout_ms)
    if len(found) > 1:
        fix = "name the directory that the broker uses: --directory"
        raise ConfigError((Problem("config-error", "--log-dirs", f"one {METADATA_DIR}", " and ".join(found), fix),))
    if not found and unread:
        raise unread[0]  # The metadata log may be in an unread log dir.
    if not found:
        where = ", ".join(named.log_dirs)
        fix = "name the broker's metadata.log.dir among the log dirs, or its metadata log: --directory"
        raise MalformedFileError(where, expected=f"a {METADATA_DIR}", found="no such directory", fix=fix)
    return found[0]


def _searched(log_dirs: Sequence[str], timeout_ms: int) -> tuple[list[str], list[LogDirError]]:
    """Return the directories of metadata logs in the log dirs, and the errors of unreadable log dirs."""
    ports = start(log_dirs, timeout_ms)
    try:
        begun = [port.begin(has_metadata_log, port.log_dir) for port in ports]
        gather(begun)
        found, unread = [], []
        for log_dir, pending in zip(log_dirs, begun, strict=True):
            try:
                with reading(log_dir):
                    found += [f"{log_dir}/{METADATA_DIR}"] if pending.result() else []
            except LogDirError as error:
                unread.append(error)
        return found, unread
    finally:
        close_all(ports)


@worker_call
def has_metadata_log(log_dir: str) -> bool:
    """Whether a metadata log lies in a log dir. Raises ``OSError``."""
    return METADATA_DIR in os.listdir(log_dir)


def _local_of(look: Look) -> dict[str, object]:
    """Return the leaves below ``/local``: facts about the log dir and this program that the log does not hold."""
    leaves: dict[str, object] = {"version": version("logdird")}
    parent = os.path.dirname(look.origin if Path(look.origin).is_dir() else os.path.dirname(look.origin))
    try:
        value = meta_properties.parse(_small(f"{parent}/{META_PROPERTIES}"))
    except (OSError, LogDirError):
        return leaves  # Its owner is shown if it is known.
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
