"""``logdirctl inventory``: scan the log dirs of one broker, one process per disk, into inventory files.

Spec: design §6, §7.1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any, BinaryIO, NamedTuple

from logdir.errors import ConfigError, Problem
from logdir.formats import inventory as inventory_file
from logdir.observe.process import Request, Summary, parse_summary, run
from tools import render
from tools.cli import Exit, Streams, envelope, say

Action = Callable[[argparse.Namespace, Streams], int]

_NOTE_EVERY = 0.2
"""Seconds between two progress lines on a terminal."""
_FIXES = {
    "absent": "mount it or take it out of log.dirs",
    "no-permission": "run as the broker's user",
    "io-error": "look at the kernel's log; do not restart the broker before you know more",
    "meta-properties-missing": "a broker will not start on it; see docs/errors.md",
    "meta-properties-malformed": "a broker will not start on it; see docs/errors.md",
}


class Broker(NamedTuple):
    """Whose log dirs are scanned."""

    log_dirs: tuple[str, ...]
    rack: str | None


class Result(NamedTuple):
    """One scanned disk: its summary, and where its inventory is."""

    summary: Summary
    file: str | None
    """The file's path, where ``-o`` was given."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "inventory",
        help="scan the log dirs of one broker",
        description="Scan every log dir of one broker, one process per disk. Reads only, beside a running broker too.",
        epilog="exit status: 0 every disk was read, 1 a disk could not be read, 2 usage or configuration",
        allow_abbrev=False,
    )
    broker = parser.add_mutually_exclusive_group(required=True)
    broker.add_argument(
        "--server-properties", metavar="FILE", help="the broker's configuration; log.dirs is read there"
    )
    broker.add_argument("--log-dirs", metavar="A,B", help="the log dirs themselves, separated by commas")
    parser.add_argument("-o", "--output", metavar="DIR", help="write one inventory file per log dir into DIR")
    parser.add_argument("--exact", action="store_true", help="size every file, not only segments")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.set_defaults(run=act, title="inventory")


def broker_of(arguments: argparse.Namespace) -> Broker:
    """Find out which log dirs are meant. Reads the broker's configuration.

    Raises:
        ConfigError: the file cannot be read or names nothing usable.
    """
    if arguments.server_properties is None:
        dirs = [part.strip() for part in arguments.log_dirs.split(",")]
        rack = None
    else:
        from logdir.formats import server_properties

        path: str = arguments.server_properties
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise ConfigError(
                (Problem("config-error", path, "a server.properties to read", str(error.strerror)),)
            ) from error
        value = server_properties.parse(data, path)
        dirs, rack = list(value.log_dirs), value.rack
    where = arguments.server_properties or "--log-dirs"
    problems = [
        Problem("config-error", where, "a path between the commas", "nothing") for part in dirs if not part
    ]
    absolute = [os.path.abspath(part) for part in dirs if part]
    twice = sorted({path for path in absolute if absolute.count(path) > 1})
    problems += [
        Problem("config-error", where, "each log dir once", f"{path} more than once") for path in twice
    ]
    if problems:
        raise ConfigError(tuple(problems))
    return Broker(tuple(absolute), rack)


def file_name(summary: Summary) -> str:
    """Return the name of a disk's inventory file (design §7.1)."""
    node = "unknown" if summary.disk.node_id is None else summary.disk.node_id
    return f"{node}-{hashlib.sha256(summary.disk.log_dir.encode()).hexdigest()[:12]}.jsonl"


class _Progress:
    """One line on a terminal that is written over; silent elsewhere."""

    def __init__(self, streams: Streams, disks: int) -> None:
        self._err = streams.err
        self._shown = streams.err.isatty()
        self._counts = [0] * disks
        self._last = time.monotonic()

    def at(self, disk: int) -> Callable[[int], None]:
        """Return what hears of one disk's progress."""

        def note(count: int) -> None:
            self._counts[disk] = count
            now = time.monotonic()
            if self._shown and now - self._last > _NOTE_EVERY:
                self._last = now
                self._err.write(f"\rscanning {len(self._counts)} log dirs: {sum(self._counts)} entries")
                self._err.flush()

        return note

    def done(self) -> None:
        """Take the line away."""
        if self._shown:
            self._err.write("\r\x1b[K")
            self._err.flush()


def _child_environment() -> dict[str, str]:
    # The child must run this installation's code and no other, wherever it was started from.
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return {**os.environ, "PYTHONPATH": home, "PYTHONSAFEPATH": "1"}


@contextmanager
def _started(
    requests: Sequence[Request], files: Sequence[IO[bytes]]
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start one process per disk; whatever happens, none is left behind."""
    children: list[subprocess.Popen[bytes]] = []
    try:
        for request, file in zip(requests, files, strict=True):
            command = [sys.executable, "-m", "logdir.observe.process", json.dumps(request._asdict())]
            children.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.PIPE,
                    env=_child_environment(),
                )
            )
        yield children
    finally:
        for child in children:
            child.kill()
            child.wait()
            if child.stderr is not None:
                child.stderr.close()


def _listen(child: subprocess.Popen[bytes], log_dir: str, note: Callable[[int], None]) -> Summary:
    """Read what a child tells until it ends.

    Raises:
        RuntimeError: it ended without a summary; its last words are in the message.
    """
    summary: Summary | None = None
    strange = b""
    if child.stderr is None:
        raise RuntimeError("the child has no pipe")
    for line in child.stderr:
        if line.startswith(b'{"entries":'):
            note(int(json.loads(line)["entries"]))
        elif line.startswith(b'{"summary":'):
            summary = parse_summary(json.dumps(json.loads(line)["summary"]))
        else:
            strange = line.strip() or strange
    status = child.wait()
    if status != 0 or summary is None:
        raise RuntimeError(f"the scan of {log_dir} ended with {status}: {strange.decode(errors='replace')}")
    return summary


def scan(requests: Sequence[Request], files: Sequence[IO[bytes]], streams: Streams) -> list[Summary]:
    """Scan every disk, each in a process of its own if there are several.

    Args:
        requests: What to scan.
        files: Where each inventory goes, one per request.
        streams: For progress on a terminal.

    Returns:
        One summary per request, in their order.
    """
    progress = _Progress(streams, len(requests))
    try:
        if len(requests) == 1:
            return [run(requests[0], _binary(files[0]), progress.at(0))]
        from threading import Thread

        heard: list[Summary | BaseException | None] = [None] * len(requests)

        def listen(index: int, child: subprocess.Popen[bytes]) -> None:
            try:
                heard[index] = _listen(child, requests[index].log_dir, progress.at(index))
            except (RuntimeError, ValueError, OSError) as error:
                heard[index] = error

        with _started(requests, files) as children:
            threads = [Thread(target=listen, args=pair, daemon=True) for pair in enumerate(children)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        summaries = []
        for one in heard:
            if not isinstance(one, Summary):
                raise RuntimeError("a scan ended early") from one
            summaries.append(one)
        return summaries
    finally:
        progress.done()


def _binary(file: IO[bytes]) -> BinaryIO:
    return file  # type: ignore[return-value]  # tempfile's wrapper has every method of BinaryIO


def _problems(summaries: Sequence[Summary]) -> list[Problem]:
    found = []
    for summary in summaries:
        disk = summary.disk
        for slug in disk.problems:
            expected = "a log dir that can be read" if disk.status != "ok" else "a whole meta.properties"
            found.append(Problem(slug, disk.log_dir, expected, slug.replace("-", " "), _FIXES.get(slug, "")))
        for slug, count in summary.problems.items():
            if slug not in ("plain-file", "partition-metadata-missing", "name-truncated"):
                found.append(
                    Problem(slug, disk.log_dir, "none such entry", f"{count} of them", "see docs/errors.md")
                )
    return found


def _table(results: Sequence[Result], streams: Streams, *, exact: bool) -> None:
    kinds = ("live", "future", "delete", "stray", "staged", "purging", "incoming", "unknown")
    shown = [k for k in kinds if k == "live" or any(k in r.summary.kinds for r in results)]
    headers = [
        "log dir",
        "status",
        "layout",
        *shown,
        "log bytes",
        *(["all bytes"] if exact else []),
        "no id",
        "free",
    ]
    rows = []
    for summary, _ in results:
        disk, found = summary.disk, summary.kinds
        figures = ["-" if disk.status != "ok" else str(found.get(k, (0, 0, 0))[0]) for k in shown]
        sizes = [sum(v[i] for v in found.values()) if disk.status == "ok" else None for i in (1, 2)]
        rows.append([
            disk.log_dir,
            disk.status,
            disk.layout or "-",
            *figures,
            *map(render.size, sizes if exact else sizes[:1]),
            str(summary.problems.get("partition-metadata-missing", 0)) if disk.status == "ok" else "-",
            render.size(disk.free_bytes),
        ])  # fmt: skip
    render.table(streams.out, headers, rows, frozenset(range(3, len(headers))))


def _result(result: Result, file: IO[bytes]) -> dict[str, object]:
    summary = result.summary
    kinds = {k: {"entries": v[0], "log_bytes": v[1], "bytes": v[2]} for k, v in summary.kinds.items()}
    value: dict[str, object] = {
        "disk": summary.disk._asdict(),
        "rows": summary.rows,
        "sha256": summary.sha256,
        "kinds": kinds,
        "problems": summary.problems,
        "file": result.file,
    }
    if result.file is None:
        file.seek(0)
        inventory = inventory_file.parse(file, summary.disk.log_dir)
        value["entries"] = [entry._asdict() for entry in inventory.entries]
    return value


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(1 << 20):
        yield piece


def _written(directory: str, summary: Summary, file: IO[bytes]) -> str:
    """Write one inventory file under its final name, whole or not at all; return its path."""
    from pathlib import Path

    from migrate.publish import write_file

    path = Path(directory) / file_name(summary)
    write_file(path, _pieces(file))
    return str(path)


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    broker = broker_of(arguments)
    if arguments.output is not None:
        try:
            os.makedirs(arguments.output, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                (Problem("config-error", arguments.output, "a directory to write to", str(error.strerror)),)
            ) from error
    # What was configured, as other inventories of this broker will say it too.
    configured = tuple(os.fsencode(path).decode("utf-8", "replace") for path in broker.log_dirs)
    requests = [Request(path, arguments.exact, configured, broker.rack) for path in broker.log_dirs]
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in requests]
        summaries = scan(requests, files, streams)
        results = []
        for summary, file in zip(summaries, files, strict=True):
            written = None if arguments.output is None else _written(arguments.output, summary, file)
            results.append(Result(summary, written))
        problems = _problems(summaries)
        unread = any(summary.disk.status != "ok" for summary in summaries)
        status = Exit.PROBLEMS if unread else Exit.DONE
        if arguments.json:
            told: dict[str, object] = {"disks": [_result(r, f) for r, f in zip(results, files, strict=True)]}
            streams.out.write(envelope("inventory", status, problems, told))
            return status
    _table(results, streams, exact=arguments.exact)
    for problem in problems:
        say(streams, f"logdirctl inventory: {problem.line()}")
    if arguments.output is None:
        streams.out.write("next: logdirctl inventory … -o DIR writes this down for logdirctl fleet plan\n")
    else:
        for result in results:
            streams.out.write(f"wrote {result.file}\n")
        streams.out.write(
            "next: name these files in a fleet file and type: logdirctl fleet plan FLEET -o PLAN\n"
        )
    return status
