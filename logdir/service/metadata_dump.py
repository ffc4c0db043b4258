"""Print every record batch and record of metadata files in the format of ``kafka-dump-log``. Only reads.

Separate processes read the files: a hung disk becomes SUSPECT after its timeout.

Not here: the output lines (``logdir.metadata.dump``), the choice of the log (``metadata``).

Spec: design §6; KIP-631, "kafka-dump-log.sh"; docs/json.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from logdir.cluster import metadata_file
from logdir.cluster.metadata_names import SNAPSHOT_SUFFIX, bases_of, newest, segment_name
from logdir.errors import ConfigError, LogDirError, MalformedFileError, Problem
from logdir.metadata.dump import RELEASES, Dump, form_of
from logdir.metadata.dump_item import DumpedBatch
from logdir.paths import SEGMENT_SUFFIX
from logdir.service.metadata import NO_LOG, MetadataRequest, directory_of, reading
from logdir.service.report.json_form import to_json
from logdir.wire.json_text import text
from logdir.worker.port import Port
from logdir.worker.remote import DEFAULT_PATIENCE_MS
from logdir.worker.start import close_all, start
from logdir.worker.state import WorkerState
from logdir.worker_call import worker_call

_MOST_GAPS_SHOWN = 10
_SUFFIXES = (SEGMENT_SUFFIX, SNAPSHOT_SUFFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataDumpRequest:
    """A request to dump files, or the newest snapshot and the log of a broker."""

    files: tuple[str, ...] = ()
    place: MetadataRequest | None = None
    """The broker's metadata; ``None``: only the files."""
    release: str = RELEASES[-1]
    """The Kafka release whose output format is used."""
    is_record_metadata_skipped: bool = False
    """Whether to print records without their offsets and sizes."""
    disk_timeout_ms: int = DEFAULT_PATIENCE_MS
    """How long a disk may give no sign of life before it is SUSPECT."""

    def require_valid(self) -> None:
        """Check that it names files or a broker, and a supported release. Raises ``ConfigError``."""
        if bool(self.files) == (self.place is not None):
            found = "both" if self.files else "neither"
            raise ConfigError((Problem("config-error", "metadata dump", "files, or a broker", found),))
        if self.place is not None:
            self.place.require_valid()
        if form_of(self.release) is None:
            expected = f"a release from {RELEASES[0]} to {RELEASES[-1]}"
            raise ConfigError((Problem("config-error", "--stock", expected, self.release),))
        wrong = [name for name in self.files if not name.endswith(_SUFFIXES) or "\0" in name]
        if wrong:
            expected = "a file whose name ends with .log or .checkpoint"
            raise ConfigError(tuple(Problem("config-error", name, expected, "another name") for name in wrong))


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpItem:
    """The dump of one file, as an item of the result."""

    path: str
    batches: tuple[DumpedBatch, ...] = ()
    trailing_bytes: int | None
    """As of ``DumpEnd``."""


class DumpEnd(NamedTuple):
    """What is known of a file once all its lines or record batches were yielded."""

    error: LogDirError | None
    """The error that ended the dump."""
    problems: tuple[Problem, ...]
    gaps: tuple[tuple[int, int], ...] = ()
    """Offsets of two neighbouring records with a gap between them, for the first hundred gaps."""
    trailing_bytes: int | None = None
    """Bytes after the last whole record batch; ``None``: the file was not read to its end."""

    @property
    def first_gaps(self) -> tuple[str, ...]:
        """A few of the gaps, for people: a line each."""
        return tuple(f"  {first} is followed by {second}" for first, second in self.gaps[:_MOST_GAPS_SHOWN])


class FileDump:
    """The dump of one file; its errors are known after its lines or batches were read."""

    def __init__(self, name: str, request: MetadataDumpRequest, port_of: Callable[[str], Port]) -> None:
        """Start a dump.

        Args:
            name: The path, as typed or found.
            request: The request.
            port_of: Returns the port that reads the files of a directory.
        """
        self.name = name
        self.path = os.path.abspath(name)
        self.end = DumpEnd(None, ())
        self._request = request
        self._port_of = port_of

    def lines(self) -> Iterator[str]:
        """Yield the lines that ``kafka-dump-log`` prints after ``Dumping FILE``, without line ends."""
        return self._all(dump_lines)

    def batches(self) -> Iterator[str]:
        """Yield one JSON object per record batch, with the names that ``kafka-dump-log`` prints as keys."""
        return self._all(dump_batches)

    def _all(self, call: Callable[[WorkerState, str, MetadataDumpRequest], Iterator[str]]) -> Iterator[str]:
        port = self._port_of(os.path.dirname(self.path))
        try:
            yield from port.stream_opened(call, self.path, self._request)
            self.end = port.run_opened(end_of_dump)
        except LogDirError as error:
            self.end = DumpEnd(error, (error.problem(),))


@worker_call
def dump_lines(opened: WorkerState, path: str, request: MetadataDumpRequest) -> Iterator[str]:
    """Yield lines as ``FileDump.lines``, in the process that reads the file."""
    skipped = request.is_record_metadata_skipped
    return _dumped(opened, path, request, lambda dump: dump.lines(skip_record_metadata=skipped))


@worker_call
def dump_batches(opened: WorkerState, path: str, request: MetadataDumpRequest) -> Iterator[str]:
    """Yield batches as ``FileDump.batches``, in the process that reads the file."""
    return _dumped(opened, path, request, lambda dump: (text(to_json(one)) for one in dump.batches()))


@worker_call
def end_of_dump(opened: WorkerState) -> DumpEnd:
    """Return the ``DumpEnd`` of the file that this process dumped last."""
    if not isinstance(opened.kept, DumpEnd):
        raise ValueError("no file was dumped")
    return opened.kept


def _dumped(
    opened: WorkerState, path: str, request: MetadataDumpRequest, parts: Callable[[Dump], Iterator[str]]
) -> Iterator[str]:
    form = form_of(request.release)
    assert form is not None, "the request is valid"
    opened.kept = DumpEnd(None, ())
    try:
        # An OSError counts as an error of the file.
        with reading(path), metadata_file.opened(path, is_followed=bool(request.files)) as file:
            dump = Dump(file, form=form)
            yield from parts(dump)
    except LogDirError as error:
        opened.kept = DumpEnd(error, (error.problem(),))
        return
    opened.kept = DumpEnd(None, tuple(_counted(dump)), tuple(dump.gaps), dump.trailing_bytes)


@contextmanager
def files_to_dump(request: MetadataDumpRequest) -> Iterator[tuple[FileDump, ...]]:
    """Yield every requested file in the order of the dump: named files, or snapshot and segments, oldest first.

    One process per directory reads its files; it ends with the block.

    Raises:
        ConfigError: the request is not valid.
        LogDirError: the broker's metadata log does not exist, or its disk does not answer.
    """
    request.require_valid()
    ports: dict[str, Port] = {}

    def port_of(directory: str) -> Port:
        if directory not in ports:
            (ports[directory],) = start((directory,), request.disk_timeout_ms)
        return ports[directory]

    try:
        names: Sequence[str] = request.files
        if request.place is not None:
            directory = directory_of(request.place)
            names = port_of(directory).run(files_of, directory)
        yield tuple(FileDump(name, request, port_of) for name in names)
    finally:
        close_all(tuple(ports.values()))


@worker_call
def files_of(directory: str) -> list[str]:
    """Return the paths of a metadata log's newest snapshot and of its segments, oldest first.

    Raises:
        MalformedFileError: the directory holds neither.
        LogDirError: as ``reading``.
    """
    with reading(directory, NO_LOG):
        names = os.listdir(directory)
    bases = bases_of(names)
    snapshot = newest(names, bases[0] if bases else 0)
    found = [*([] if snapshot is None else [snapshot.name]), *map(segment_name, bases)]
    if not found:
        raise MalformedFileError(directory, expected="a metadata log", found="no segment and no snapshot")
    return [f"{directory}/{name}" for name in found]


def _counted(dump: Dump) -> list[Problem]:
    more = dump.unreadable - len(dump.problems)
    if not more:
        return dump.problems
    last = dump.problems[-1]
    return [
        *dump.problems[:-1],
        last._replace(fix=f"{last.fix}{'; ' if last.fix else ''}{more} more problems in this file"),
    ]
