"""``logdirctl describe``: partitions of one broker by name, id or glob: their directories and the cluster's view.

A table, JSON, or what stock tools print. Reads only, beside a running broker too. A cluster image is needed only for
``--kafka-topics``: without ``--from``, and without a metadata log of the broker's own, only the disks are shown.

Not here: collecting what is shown (``logdir.service.describe``).

Spec: design §6; KIP-516, "Tools".
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from logdir.service.describe import DescribeRequest, DescribeResult, Form, describe
from logdir.service.report.describe_item import CLUSTER_COLUMNS, COLUMNS, DescribedItem
from logdir.service.report.following import Next
from logdir.service.report.source_item import source_line
from logdir.service.report.table import Table
from tools.cli.arguments import Exit, Streams, answer, say, tell
from tools.cli.broker import BROKER, argv_of, request_of, selector
from tools.cli.command import Command
from tools.cli.option import Flag, OneOf, Option, typed
from tools.cli.source import source, source_argv, source_of
from tools.cli.streams import as_utf8


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
    if arguments.form is Form.LISTING:
        return answer(arguments, streams, found, found.problems, _shown(arguments, found))
    tell(arguments.title, found.problems, streams)
    if arguments.form is Form.KAFKA_LOG_DIRS:
        as_utf8(streams.out)
    streams.out.writelines(f"{line}\n" for line in found.lines)
    return Exit.PROBLEMS if found.problems else Exit.DONE


def _shown(arguments: argparse.Namespace, found: DescribeResult) -> Iterator[str | Table[DescribedItem]]:
    if found.image is not None:
        yield source_line(found.image)
    if found.items:
        yield Table(COLUMNS if found.image is None else (*COLUMNS, *CLUSTER_COLUMNS), found.items)
    else:
        yield "nothing is there" if found.is_whole else "nothing is found on the log dirs that can be read"
    again = (argv_of, source_argv) if found.next is Next.STRAYS and found.image is not None else (argv_of,)
    yield f"next: logdirctl {found.next.value} {typed(arguments, *again)}"


_FORMS = OneOf("the forms of the output", is_required=False)


def _form(name: str, form: Form, text: str) -> Option:
    return Option(name, text, dest="form", action="store_const", const=form, default=Form.LISTING, one_of=_FORMS)


COMMAND = Command(
    title="describe",
    run=act,
    description="Show the partitions of one broker as they lie on its disks, and what the cluster says of them. "
    "A word that is a topic id and a topic name means the id. Reads only, beside a running broker too.",
    ends="0 done, 1 a disk could not be read, or a replica is missing or cannot be used, 2 usage or "
    "configuration, 4 the source is of another broker or cluster",
    options=(
        selector("everything if there is none"),
        *BROKER,
        Option("--disk", "only what lies on this log dir; may be repeated", "DIR", action="append"),
        # Without --from the broker's own log is read if there is one.
        *source(None),
        _form("--kafka-json", Form.KAFKA_LOG_DIRS, "the line of JSON that kafka-log-dirs --describe prints"),
        _form("--kafka-topics", Form.KAFKA_TOPICS, "the lines that kafka-topics --describe prints"),
        Flag("--json", "one JSON object on standard output", one_of=_FORMS),
    ),
)
