"""``logdirctl inventory``: scan the log dirs of one broker into inventory files.

Not here: the scan (``logdir.service.inventory``).

Spec: design §6, §7.1.
"""

from __future__ import annotations

import argparse

from logdir.service.inventory import InventoryRequest, take
from logdir.service.report.inventory_json import inventory_envelope
from logdir.service.report.table import Table
from tools.cli import render
from tools.cli.arguments import Exit, Streams, put, tell
from tools.cli.broker import BROKER, JSON, argv_of, request_of
from tools.cli.command import Command
from tools.cli.option import Flag, Option
from tools.cli.progress import TerminalReporter


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
    columns = tuple(found.columns(is_exact=arguments.exact))
    render.table(streams.out, *Table(columns, found.disks).cells())
    tell(arguments.title, found.problems, streams)
    if arguments.output is None:
        put(streams, f"next: logdirctl inventory {argv_of(arguments)} -o inventories")
        return status
    put(streams, *(f"wrote {one.file}" for one in found.disks))
    put(streams, "next: name these files in a fleet file (docs/fleet.md), for logdirctl fleet plan")
    return status


COMMAND = Command(
    title="inventory",
    run=act,
    description="Scan every log dir of one broker, one process per disk. Reads only, beside a running broker too.",
    ends="0 every disk was read, 1 a disk could not be read or is not formatted, 2 usage, "
    "4 -o lies in a log dir or work root",
    options=(
        *BROKER,
        Option("-o --output", "write one inventory file per log dir into DIR", "DIR"),
        Flag("--exact", "sum up all files, not only segments"),
        JSON,
    ),
)
