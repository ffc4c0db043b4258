"""``logdirctl inventory``: scan the log dirs of one broker into inventory files.

Not here: the scan (``logdir.service.inventory``).

Spec: design §6, §7.1.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from logdir.service.inventory import InventoryDisk, InventoryRequest, take
from logdir.service.report.inventory_json import inventory_envelope
from logdir.text import size
from tools.cli.arguments import Exit, Streams, put, tell
from tools.cli.broker import add_broker, argv_of, request_of
from tools.cli.columns import Column, table
from tools.cli.progress import TerminalReporter

_KINDS = ("live", "future", "delete", "stray", "staged", "purging", "incoming", "unknown")


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "inventory",
        description="Scan every log dir of one broker, one process per disk. Reads only, beside a running broker too.",
        epilog="exit status: 0 every disk was read, 1 a disk could not be read or is not formatted, 2 usage, "
        "4 -o lies in a log dir or work root",
    )
    add_broker(parser)
    parser.add_argument("-o", "--output", metavar="DIR", help="write one inventory file per log dir into DIR")
    parser.add_flag("--exact", "sum up all files, not only segments")
    parser.add_flag("--json", "one JSON object on standard output")
    parser.set_defaults(run=act, title="inventory")


def _columns(disks: Sequence[InventoryDisk], *, is_exact: bool) -> Iterator[Column[InventoryDisk]]:
    def number(heading: str, count: Any) -> Column[InventoryDisk]:
        return Column(heading, lambda one: count(one) if one.disk.status == "ok" else None, is_number=True)

    def entries(kind: str) -> Any:
        return lambda one: one.kinds[kind].entries if kind in one.kinds else 0

    yield Column("log dir", lambda one: one.disk.log_dir)
    yield Column("status", lambda one: one.disk.status)
    yield Column("layout", lambda one: one.disk.layout or None)
    for kind in _KINDS:
        if kind == "live" or any(kind in one.kinds for one in disks):
            yield number(kind, entries(kind))
    yield number("log bytes", lambda one: size(sum(kind.log_bytes for kind in one.kinds.values())))
    if is_exact:
        yield number("all bytes", lambda one: size(sum(kind.bytes for kind in one.kinds.values())))
    yield number("no id", lambda one: one.problems.get("partition-metadata-missing", 0))
    yield number("free", lambda one: size(one.disk.free_bytes))


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    request = InventoryRequest(
        broker=request_of(arguments),
        is_exact=arguments.exact,
        output=arguments.output,
        is_written=arguments.json or arguments.output is not None,
    )
    found = take(request, TerminalReporter(streams, arguments.title))
    status = Exit.DONE if found.is_sound else Exit.PROBLEMS
    if arguments.json:
        streams.out.writelines(inventory_envelope(arguments.title, status, found))
        return status
    table(streams.out, tuple(_columns(found.disks, is_exact=arguments.exact)), found.disks)
    tell(arguments.title, found.problems, streams)
    if arguments.output is None:
        put(streams, f"next: logdirctl inventory {argv_of(arguments)} -o inventories")
        return status
    put(streams, *(f"wrote {one.file}" for one in found.disks))
    put(streams, "next: name these files in a fleet file (docs/fleet.md), for logdirctl fleet plan")
    return status
