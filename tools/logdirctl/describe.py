"""``logdirctl describe``: partitions of one broker by name, id or glob: its disks, and what is said of them.

A table, JSON, or what stock tools print. Reads only, beside a running broker too. The cluster's word is optional but
for ``--kafka-topics``: without a source, and without a metadata log of the broker's own, the disks are told alone.

Not here: how things stand (``decide.describe``), stock forms (``describe_stock``).

Spec: design §6; KIP-516, "Tools".
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from logdir.decide.describe import Described, State, choose, describe, missing_problem
from logdir.decide.selector import EVERYTHING, parse
from logdir.decide.trust import ANY_AGE_MS, check_image
from logdir.desired.image import NO_LEADER, Image, Partition
from logdir.disk.kernel_clock import read_instant
from logdir.errors import ConfigError, LogDirError, Problem, RefusedError
from tools import render
from tools.cli import Exit, Streams, envelope, problems_of, say
from tools.logdirctl.desired_source import OWN_LOG, add_source, own_log, parse_uri, read_desired, source_words
from tools.logdirctl.host import Host, look_at_host, unformatted
from tools.logdirctl.naming import Broker, add_broker, broker_of, words_of
from tools.logdirctl.report import nothing_selected
from tools.logdirctl.source_report import against_blank, source_json, source_line
from tools.streams import as_utf8

_SELECTOR = "a topic name, a topic id, name-p, id_p or a glob"
_IN_TROUBLE = frozenset((State.UNUSABLE, State.MISSING))


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
    selector = None if arguments.selector in (None, EVERYTHING) else parse(arguments.selector)
    if arguments.source is not None:
        parse_uri(arguments.source)
    named = broker_of(arguments)
    disks = _disks_of(arguments, named)
    host = look_at_host(named)
    problems = [*host.problems, *(one.problem for one in host.facts if one.problem is not None)]
    problems += unformatted(host.facts)
    # Stock tools ask brokers for this, and no cluster.
    image = None if arguments.kafka_json else _image(arguments, named, host, problems, streams)
    if arguments.kafka_json or arguments.kafka_topics:
        from tools.logdirctl import describe_stock

        if arguments.kafka_json:
            as_utf8(streams.out)
            lines = describe_stock.log_dirs(named, host.facts, selector, disks)
        else:
            lines = describe_stock.topics(arguments, image, selector)
        if selector is not None and not lines.found:
            problems.append(nothing_selected(selector.text, "describe"))
        _say(problems, streams)
        for line in lines.lines:
            streams.out.write(f"{line}\n")
        return Exit.PROBLEMS if problems else Exit.DONE
    known = rows = describe(host.facts, image)
    if selector is not None:
        rows = choose(selector, rows)
    # What a selector means depends on all disks.
    rows = tuple(row for row in rows if disks is None or row.log_dir in disks)
    if selector is not None and not rows:
        problems.append(nothing_selected(selector.text, "describe", known))
    return _listing(arguments, streams, rows, image, problems)


def _disks_of(arguments: argparse.Namespace, named: Broker) -> frozenset[str] | None:
    """Return the log dirs that were asked for, ``None`` if no one was.

    Raises:
        ConfigError: one is none of the broker's, or the form tells of no disks.
    """
    if arguments.disk is None:
        return None
    if arguments.kafka_topics:
        raise ConfigError((Problem("config-error", "--disk", "a form that tells of disks", "--kafka-topics"),))
    disks = frozenset(map(os.path.abspath, arguments.disk))
    foreign = sorted(disks.difference(named.log_dirs))
    if foreign:
        expected = "one of the broker's log dirs"
        raise ConfigError(
            tuple(Problem("config-error", "--disk", expected, render.printable(path)) for path in foreign)
        )
    return disks


def _listing(
    arguments: argparse.Namespace,
    streams: Streams,
    rows: Sequence[Described],
    image: Image | None,
    problems: list[Problem],
) -> int:
    problems += [missing_problem(row) for row in rows if row.state is State.MISSING]
    status = Exit.PROBLEMS if problems or any(row.state in _IN_TROUBLE for row in rows) else Exit.DONE
    _say(problems, streams)
    if arguments.json:
        source = None if image is None else source_json(arguments.source, image)
        result = {"source": source, "items": [_json(row) for row in rows]}
        streams.out.write(envelope("describe", status, problems, result))
        return status
    if image is not None:
        streams.out.write(f"{source_line(image)}\n")
    _table(rows, image, streams)
    streams.out.write(render.printable(f"next: {_next(arguments, rows, image)}") + "\n")
    return status


def _say(problems: Sequence[Problem], streams: Streams) -> None:
    for problem in problems:
        say(streams, f"logdirctl describe: {problem.line()}")


def _image(
    arguments: argparse.Namespace, named: Broker, host: Host, problems: list[Problem], streams: Streams
) -> Image | None:
    """Return what the cluster says, ``None`` if nobody was asked; what is wrong with the own log is told, not raised.

    Raises:
        LogDirError: the source that was named cannot be used.
    """
    named_ones = (arguments.source, arguments.high_watermark, arguments.leader_epoch)
    is_asked = arguments.kafka_topics or any(one is not None for one in named_ones)
    if not is_asked and own_log(named, host.facts) is None:
        return None
    arguments.source = arguments.source or str(OWN_LOG)
    now_ms = read_instant().wall_ms
    try:
        # Whatever its age, and whoever runs: nothing follows from what is shown.
        desired = read_desired(arguments, named, host.facts, host.used, now_ms=now_ms, is_broker_running=True)
        blank = against_blank(desired.image)
        if blank is not None:
            if is_asked:
                raise ConfigError((blank,))
            _say([blank], streams)  # of a young cluster: nothing is wrong with that
            return None
        standing = desired.standing(max_age_ms=ANY_AGE_MS, is_position_confirmed=True)
        distrust = check_image(desired.image, host.facts, standing, now_ms)
        if distrust is not None:
            say(streams, f"logdirctl describe: {source_line(desired.image)}")  # what it is, and then why not
            raise RefusedError.of(distrust.problem)
    except LogDirError as error:
        if is_asked:
            raise
        problems.extend(problems_of(error))
        return None
    if desired.image.ended is not None:
        problems.append(desired.image.ended)
    return desired.image


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
        "log_dir": None if row.log_dir is None else render.utf8(row.log_dir),
        "path": None if row.path is None else render.utf8(row.path),
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


def _table(rows: Sequence[Described], image: Image | None, streams: Streams) -> None:
    if not rows:
        streams.out.write("nothing is there\n")
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
