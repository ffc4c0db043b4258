"""``logdirctl describe``: partitions of one broker by name, id or glob: their directories and the cluster's view.

A table, JSON, or what stock tools print. Reads only, beside a running broker too. A cluster image is needed only for
``--kafka-topics``: without ``--from``, and without a metadata log of the broker's own, only the disks are shown.

Not here: collecting what is shown (``logdir.service.describe``).

Spec: design §6; KIP-516, "Tools".
"""

from __future__ import annotations

import argparse
from typing import Any

from logdir.decide.describe import State
from logdir.service.describe import DescribeRequest, DescribeResult, Form, describe
from logdir.service.report.describe_item import DescribedItem
from logdir.service.report.source_item import source_line
from logdir.text import size
from tools.cli.arguments import Exit, Streams, answered, put, say, tell
from tools.cli.broker import add_broker, add_selector, argv_of, request_of
from tools.cli.columns import Column, table
from tools.cli.source import add_source, source_argv, source_of
from tools.cli.streams import as_utf8


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "describe",
        description="Show the partitions of one broker as they lie on its disks, and what the cluster says of them. "
        "An id wins over a name. Reads only, beside a running broker too.",
        epilog="exit status: 0 done, 1 a disk could not be read, or a replica is missing or cannot be used, 2 usage or "
        "configuration, 4 the source is of another broker or cluster",
    )
    add_selector(parser, "everything if there is none")
    add_broker(parser)
    parser.add_argument(
        "--disk", metavar="DIR", action="append", help="only what lies on this log dir; may be repeated"
    )
    add_source(parser)
    forms = parser.add_mutually_exclusive_group()
    for name, form, text in (
        ("--kafka-json", Form.KAFKA_LOG_DIRS, "the line of JSON that kafka-log-dirs --describe prints"),
        ("--kafka-topics", Form.KAFKA_TOPICS, "the lines that kafka-topics --describe prints"),
    ):
        forms.add_argument(name, dest="form", action="store_const", const=form, default=Form.LISTING, help=text)
    forms.add_argument("--json", action="store_true", help="one JSON object on standard output")
    # Who names no source takes the broker's own log if there is one, and does without if not.
    parser.set_defaults(run=act, title="describe", source=None)


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    is_named = any(one is not None for one in (arguments.source, arguments.high_watermark, arguments.leader_epoch))
    request = DescribeRequest(
        broker=request_of(arguments),
        source=source_of(arguments) if is_named else None,
        selector=arguments.selector,
        disks=None if arguments.disk is None else tuple(arguments.disk),
        form=arguments.form,
    )
    # What the source is, before it is said why it is refused.
    found = describe(request, source_read=lambda image: say(streams, f"logdirctl describe: {source_line(image)}"))
    tell(arguments.title, found.notes, streams)
    status = Exit.PROBLEMS if found.problems else Exit.DONE
    if answered(arguments, streams, status, found.problems, found):
        return status
    if arguments.form is not Form.LISTING:
        if arguments.form is Form.KAFKA_LOG_DIRS:
            as_utf8(streams.out)
        streams.out.writelines(f"{line}\n" for line in found.lines)
        return status
    if found.image is not None:
        put(streams, source_line(found.image))
    if found.items:
        table(streams.out, _COLUMNS if found.image is None else (*_COLUMNS, *_OF_CLUSTER), found.items)
    else:
        put(streams, "nothing is there" if found.is_whole else "nothing is found on the log dirs that can be read")
    put(streams, f"next: {_next(arguments, found)}")
    return status


def _next(arguments: argparse.Namespace, found: DescribeResult) -> str:
    where = argv_of(arguments)
    states = {one.state for one in found.items}
    if states & {State.UNCLAIMED, State.STRAY}:
        return f"logdirctl strays {where}" + ("" if found.image is None else f" {source_argv(arguments)}")
    if states & {State.STAGED, State.PURGING, State.INCOMING}:
        return f"logdirctl staged ls {where}"
    return f"logdirctl inventory {where}"


_COLUMNS: tuple[Column[DescribedItem], ...] = (
    Column("topic", lambda one: one.ref.topic or "?"),
    Column("p", "ref.partition", is_number=True),
    Column("id", "ref.topic_id"),
    Column("kind", lambda one: None if one.kind is None else one.kind.value + (", tiered" if one.tiered else "")),
    Column("state", lambda one: ", ".join((one.state.value, *one.problems))),
    Column("bytes", lambda one: size(one.log_bytes), is_number=True),
    Column("disk", "log_dir"),
    Column("path", "path"),
)
_OF_CLUSTER: tuple[Column[DescribedItem], ...] = (
    Column("leader", lambda one: None if one.cluster is None else one.cluster.leader),
    Column("replicas", lambda one: None if one.cluster is None else one.cluster.replicas),
    Column("isr", lambda one: None if one.cluster is None else one.cluster.isr),
)
