"""A report for those who look into a fault: versions, settings without secrets, inventories, and our small files.

It holds names of topics, paths and ids, and no record: no file of a partition is opened but our own marker. A log dir
that does not answer in time is left out and named. What cannot be read is a line of the report, and ends nothing: a
report is made when something is wrong.

Not here: what a daemon adds (``daemon.report.for_bug_report``), the file (``archive``), which settings are shown
(``settings``).

Spec: design §6 ``bug-report``; issue "The daemon at home on a host".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from logdir import clock
from logdir.errors import ConfigError, LogDirError, LogDirSuspectError, Problem
from logdir.observe.named_file import read_named
from logdir.observe.outside import require_outside_of
from logdir.service.bug_report import archive, host, settings
from logdir.service.bug_report.own_files import OwnFile, own_files
from logdir.service.inventory import InventoryRequest, take
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.ports import BrokerPorts, connected, kept_free_places
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.exit_status import problems_of
from logdir.service.report.json_form import KEY
from logdir.service.report.reporter import Reporter
from logdir.service.report.table import Column
from logdir.text import size, utf8
from logdir.worker.start import run_apart

WARNING: Final = (
    "the report holds names of topics, paths and ids of this host, and no records, passwords or other secrets that are "
    "known; look into it before you give it away"
)
"""What is said before a report is made."""
_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BugReportRequest:
    """A request to make a report."""

    broker: BrokerRequest
    output: str
    """Where it is written: a directory, or the file itself."""
    version: str
    """The version of this release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedFile:
    """One file in the report."""

    path: str
    """Its path in the archive."""
    size_bytes: int


REPORTED_COLUMNS: Final[tuple[Column[ReportedFile], ...]] = (
    Column("in the report", "path"),
    Column("size", lambda one: size(one.size_bytes), is_number=True),
)
"""The table of the files, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BugReportResult:
    """The report that was made."""

    output: str
    """Its path."""
    files: tuple[ReportedFile, ...] = field(metadata={KEY: "items"})


def make(
    request: BugReportRequest, documents: Mapping[str, bytes], reporter: Reporter
) -> tuple[BugReportResult, tuple[Problem, ...]]:
    """Make a report; return what is in it, and what could not be read.

    Args:
        request: The request.
        documents: What a daemon adds: content by path in the archive.
        reporter: Receives progress.

    Raises:
        RefusedError: the file exists, or lies in a log dir or a work root.
        OutputError: it could not be written; nothing of it is left.
    """
    now_ms = clock.now_ms()
    path = archive.place_of(request.output, f"logdird-report-{now_ms // 1000}.tar.gz")
    files: dict[str, bytes] = dict(documents)
    problems: list[Problem] = []
    files["versions.json"] = _json(host.versions(request.version))
    secrets = frozenset[bytes]()
    for name, source, known in (
        ("server.properties.txt", request.broker.server_properties, settings.BROKER),
        ("client.properties.txt", request.broker.client_properties, settings.CLIENT),
    ):
        if source is not None and (data := _read(source, problems)) is not None:
            files[name] = "".join(f"{line}\n" for line in settings.shown(data, known)).encode()
            secrets |= settings.secrets_of(data)
    named = _named(request.broker, problems)
    if named is not None:
        files["mounts.json"] = _json(host.mounts(named.log_dirs))
        files["log-dirs/numbers.txt"] = _numbers(named)
        files |= _of_log_dirs(request.broker, path, reporter, problems)
    files["problems.txt"] = "".join(f"{problem.line()}\n" for problem in problems).encode(errors="replace")
    shown = {name: settings.without(data, secrets) for name, data in files.items()}
    archive.write(path, shown, now_ms)
    items = tuple(ReportedFile(path=name, size_bytes=len(data)) for name, data in sorted(shown.items()))
    return BugReportResult(output=path, files=items), tuple(problems)


def _read(path: str, problems: list[Problem]) -> bytes | None:
    try:
        return read_named(path, _MAX_BYTES, "a properties file to read")
    except LogDirError as error:
        problems += problems_of(error)
        return None


def _named(request: BrokerRequest, problems: list[Problem]) -> BrokerConfig | None:
    try:
        return request.config()
    except LogDirError as error:
        problems += problems_of(error)
        return None


def _of_log_dirs(request: BrokerRequest, path: str, reporter: Reporter, problems: list[Problem]) -> Mapping[str, bytes]:
    """Return the inventory and our small files of each log dir that answers.

    Raises:
        RefusedError: the report would lie in a log dir or a work root.
        LogDirSuspectError: the disk of the report does not answer.
    """
    files: dict[str, bytes] = {}
    try:
        with connected(request) as ports:
            _require_place(ports, path)
            for number, found in enumerate(ports.each(lambda port: port.begin(own_files, port.log_dir)), 1):
                if not isinstance(found, LogDirSuspectError):
                    files[f"log-dirs/{number}-own-files.jsonl"] = b"".join(map(_line, found))
            problems += ports.notes
        result = take(InventoryRequest(broker=request), reporter)
    except ConfigError as error:  # Two paths lead to one log dir, for example.
        problems += error.problems
        return files
    for number, disk in enumerate(result.disks, 1):
        if disk.content is not None:
            files[f"log-dirs/{number}-inventory.jsonl"] = disk.content
    known = {(problem.slug, problem.path) for problem in problems}
    problems += [problem for problem in result.problems if (problem.slug, problem.path) not in known]
    return files


def _require_place(ports: BrokerPorts, path: str) -> None:
    run_apart(path, ports.patience_ms, ports.unreaped, require_outside_of, path, kept_free_places(ports))


def _numbers(named: BrokerConfig) -> bytes:
    """Return which log dir has which number in the names of files."""
    return "".join(f"{number} {utf8(log_dir)}\n" for number, log_dir in enumerate(named.log_dirs, 1)).encode()


def _line(one: OwnFile) -> bytes:
    line = {**one._asdict(), "content": json.loads(one.content)}
    return f"{json.dumps(line, sort_keys=True)}\n".encode()


def _json(value: object) -> bytes:
    return f"{json.dumps(value, indent=2, sort_keys=True)}\n".encode()
