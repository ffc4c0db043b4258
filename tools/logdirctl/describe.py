"""``logdirctl describe``: partitions of one broker by name, id or glob: its disks, and what is said of them.

A table, JSON, or what stock tools print. Reads only, beside a running broker too. The cluster's word is optional but
for ``--kafka-topics``: without a source, and without a metadata log of the broker's own, the disks are told alone.

Not here: what is described (``logdir.service.describe``).

Spec: design §6; KIP-516, "Tools".
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from logdir.decide.describe import Described, State
from logdir.desired.image import NO_LEADER, Image, Partition
from logdir.service.describe import DescribeRequest, Form, describe
from logdir.text import printable, utf8
from tools import render
from tools.cli import Exit, Streams, envelope, say
from tools.logdirctl.naming import add_broker, request_of, words_of
from tools.logdirctl.source import add_source, source_of, source_words
from tools.logdirctl.source_report import source_json, source_line
from tools.streams import as_utf8

_SELECTOR = "a topic name, a topic id, name-p, id_p or a glob"


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "describe",
        help="show partitions by topic, id or disk",
        description="Show the partitions of one broker as they lie on its disks, and what the cluster says of them. "
        "An id wins over a name. Reads only, beside a running broker too.",
        epilog="exit status: 0 done, 1 a disk could not be read, or a replica is missing or cannot be used, 2 usage or "
        "configuration, 4 the source is of another broker or cluster",
        allow_abbrev=False,
    )
    parser.add_argument("selector", metavar="SELECTOR", nargs="?", help=f"{_SELECTOR}; everything if there is none")
    add_broker(parser)
    parser.add_argument(
        "--disk", metavar="DIR", action="append", help="only what lies on this log dir; may be said more than once"
    )
    add_source(parser)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--kafka-json", action="store_true", help="the line of JSON that kafka-log-dirs --describe prints"
    )
    forms.add_argument("--kafka-topics", action="store_true", help="the lines that kafka-topics --describe prints")
    forms.add_argument("--json", action="store_true", help="one JSON object on standard output")
    # Who names no source takes the broker's own log if there is one, and does without if not.
    parser.set_defaults(run=act, title="describe", source=None)


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    is_named = any(one is not None for one in (arguments.source, arguments.high_watermark, arguments.leader_epoch))
    form = (
        Form.KAFKA_LOG_DIRS if arguments.kafka_json else Form.KAFKA_TOPICS if arguments.kafka_topics else Form.LISTING
    )
    request = DescribeRequest(
        broker=request_of(arguments),
        source=source_of(arguments) if is_named else None,
        selector=arguments.selector,
        disks=None if arguments.disk is None else tuple(arguments.disk),
        form=form,
    )
    # What the source is, before it is said why it is refused.
    found = describe(request, source_read=lambda image: say(streams, f"logdirctl describe: {source_line(image)}"))
    for problem in (*found.notes, *found.problems):
        say(streams, f"logdirctl describe: {problem.line()}")
    status = Exit.PROBLEMS if found.problems else Exit.DONE
    if form is not Form.LISTING:
        if form is Form.KAFKA_LOG_DIRS:
            as_utf8(streams.out)
        for line in found.lines:
            streams.out.write(f"{line}\n")
        return status
    if arguments.json:
        source = None if found.image is None else source_json(found.uri, found.image)
        result = {"source": source, "items": [_json(row) for row in found.rows]}
        streams.out.write(envelope("describe", status, found.problems, result))
        return status
    if found.image is not None:
        streams.out.write(f"{source_line(found.image)}\n")
    _table(found.rows, found.image, streams, is_whole=found.is_whole)
    streams.out.write(printable(f"next: {_next(arguments, found.rows, found.image)}") + "\n")
    return status


def _next(arguments: argparse.Namespace, rows: Sequence[Described], image: Image | None) -> str:
    where = words_of(arguments)
    states = {row.state for row in rows}
    if states & {State.UNCLAIMED, State.STRAY}:
        return f"logdirctl strays {where}" if image is None else f"logdirctl strays {where} {source_words(arguments)}"
    if states & {State.STAGED, State.PURGING, State.INCOMING}:
        return f"logdirctl staged ls {where}"
    return f"logdirctl inventory {where}"


def _json(row: Described) -> dict[str, object]:
    return {
        "topic": row.topic,
        "topic_id": None if row.topic_id is None else str(row.topic_id),
        "partition": row.partition,
        "state": row.state.value,
        "kind": None if row.kind is None else row.kind.value,
        "log_dir": None if row.log_dir is None else utf8(row.log_dir),
        "path": None if row.path is None else utf8(row.path),
        "log_bytes": row.log_bytes,
        "segments": row.segments,
        "first_offset": row.first_offset,
        "problems": list(row.problems),
        "tiered": row.is_tiered,
        "cluster": None if row.said is None else _said_json(row.said),
    }


def _said_json(said: Partition) -> dict[str, object]:
    return {
        "leader": None if said.leader == NO_LEADER else said.leader,
        "leader_epoch": said.leader_epoch,
        "replicas": list(said.replicas),
        "isr": list(said.isr),
        "adding": list(said.adding),
        "removing": list(said.removing),
    }


def _nodes(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes)) or "-"


def _table(rows: Sequence[Described], image: Image | None, streams: Streams, *, is_whole: bool) -> None:
    if not rows:
        streams.out.write("nothing is there\n" if is_whole else "nothing is found on the log dirs that can be read\n")
        return
    headers = ["topic", "p", "id", "kind", "state", "bytes", "disk", "path"]
    more = [] if image is None else ["leader", "replicas", "isr"]
    shown = []
    for row in rows:
        said = row.said
        cells = [
            row.topic or "?",
            str(row.partition),
            "-" if row.topic_id is None else str(row.topic_id),
            "-" if row.kind is None else row.kind.value + (", tiered" if row.is_tiered else ""),
            ", ".join((row.state.value, *row.problems)),
            render.size(row.log_bytes),
            row.log_dir or "-",
            row.path or "-",
        ]
        if image is not None:
            leader = "-" if said is None or said.leader == NO_LEADER else str(said.leader)
            cells += [leader, *(("-", "-") if said is None else (_nodes(said.replicas), _nodes(said.isr)))]
        shown.append(cells)
    render.table(streams.out, headers + more, shown, frozenset((1, 5)))
