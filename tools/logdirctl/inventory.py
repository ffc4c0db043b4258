"""``logdirctl inventory``: scan the log dirs of one broker, one process per disk, into inventory files.

Not here: the processes (``inventory_disks``), where inventories go (``inventory_output``).

Spec: design §6, §7.1.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from logdir.errors import Problem
from logdir.observe.process import Request, Summary
from logdir.text import printable, utf8
from tools import render
from tools.cli import Exit, Streams, compact, envelope, say
from tools.logdirctl.inventory_disks import scan
from tools.logdirctl.inventory_output import places, publish
from tools.logdirctl.naming import add_broker, broker_of, words_of

_FIXES = {
    "absent": "mount it or take it out of log.dirs",
    "no-permission": "run as the broker's user",
    "io-error": "look at the kernel's log; do not restart the broker before you know more",
    "meta-properties-missing": "no broker starts on it: format it, or mount the right disk",
    "meta-properties-malformed": "a broker takes it for offline, or will not start on it; see docs/errors.md",
}


class Result(NamedTuple):
    """One scanned disk: its summary, and where its inventory is."""

    summary: Summary
    file: str | None
    """The file's path, where ``-o`` was given."""


_NO_RACK = "the inventories hold no broker.rack: name it in the fleet file"


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "inventory",
        description="Scan every log dir of one broker, one process per disk. Reads only, beside a running broker too.",
        epilog="exit status: 0 every disk was read, 1 a disk could not be read or is not formatted, 2 usage, "
        "4 -o lies in a log dir or work root",
        allow_abbrev=False,
    )
    add_broker(parser)
    parser.add_argument("-o", "--output", metavar="DIR", help="write one inventory file per log dir into DIR")
    parser.add_argument("--exact", action="store_true", help="size every file, not only segments")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.set_defaults(run=act, title="inventory")


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
                    Problem(slug, disk.log_dir, "none such entry", f"{count} of them", f"see logdirctl explain {slug}")
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


def _disk_json(result: Result, file: BinaryIO) -> Iterator[str]:
    """Write one disk of the result; its entries, where they are in no file, go through as the lines they are."""
    summary = result.summary
    kinds = {k: {"entries": v[0], "log_bytes": v[1], "bytes": v[2]} for k, v in summary.kinds.items()}
    yield f'{{"disk":{compact(summary.disk._asdict())},'
    if result.file is None:
        file.seek(0)
        lines = file.read().decode().split("\n")[1:-2]
        yield f'"entries":[{",".join(lines)}],'
    yield (
        f'"file":{compact(None if result.file is None else utf8(result.file))},"kinds":{compact(kinds)},'
        f'"problems":{compact(summary.problems)},"rows":{summary.rows},"sha256":{compact(summary.sha256)}}}'
    )


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    broker = broker_of(arguments)
    # What was configured, as other inventories of this broker will say it too.
    configured = tuple(map(utf8, broker.log_dirs))
    processes = 2 if len(broker.log_dirs) == 1 and len(os.sched_getaffinity(0)) > 1 else 1
    is_written = arguments.json or arguments.output is not None
    requests = [
        Request(path, arguments.exact, configured, broker.rack, processes, is_written) for path in broker.log_dirs
    ]
    kept_free = (*broker.log_dirs, *(() if broker.metadata_log_dir is None else (broker.metadata_log_dir,)))
    with places(arguments.output, len(requests), is_written=is_written, log_dirs=kept_free) as found:
        summaries = scan(requests, [place.file for place in found], streams)
        written = publish(found, summaries)
        results = [Result(*pair) for pair in zip(summaries, written, strict=True)]
        problems = _problems(summaries)
        if "broker.rack" in broker.unknown:
            variable = "a variable of config.providers"
            problems = [*problems, Problem("config-error", arguments.server_properties, "a value", variable, _NO_RACK)]
        unread = any(summary.disk.status != "ok" for summary in summaries)
        status = Exit.PROBLEMS if unread or any(summary.disk.problems for summary in summaries) else Exit.DONE
        if arguments.json:
            disks = ("".join(_disk_json(r, place.file)) for r, place in zip(results, found, strict=True))
            empty = envelope("inventory", status, problems, {"disks": []})
            head, tail = empty[: -len("]}}\n")], "]}}\n"
            streams.out.write(f"{head}{','.join(disks)}{tail}")
            return status
    _table(results, streams, exact=arguments.exact)
    for problem in problems:
        say(streams, f"logdirctl inventory: {problem.line()}")
    if arguments.output is None:
        streams.out.write(printable(f"next: logdirctl inventory {words_of(arguments)} -o inventories") + "\n")
    else:
        for result in results:
            streams.out.write(printable(f"wrote {result.file}") + "\n")
        streams.out.write("next: name these files in a fleet file (docs/fleet.md), for logdirctl fleet plan\n")
    return status
