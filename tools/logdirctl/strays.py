"""``logdirctl strays``: list the replicas that no metadata claims.

Not here: finding them (``logdir.service.strays``).

Spec: design §4, §6; attacks A1, A2, A20, A27, A43.
"""

from __future__ import annotations

import argparse
from typing import Any

from logdir.decide.strays import State, Stray
from logdir.service.report.source_item import source_line
from logdir.service.strays import StraysRequest, StraysResult, proof_of, strays
from logdir.text import age, size
from tools.cli.arguments import Exit, Streams, answered, put, say
from tools.cli.broker import add_broker, add_selector, argv_of, request_of
from tools.cli.columns import Column, table
from tools.cli.protection import add_protection, protected_of, protection_words
from tools.cli.source import add_source, source_argv, source_of


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "strays",
        description="List what lies on the disks of one broker and the cluster does not claim, with what is missing "
        "for a proof. Reads only, beside a running broker too.",
        epilog="exit status: 0 done, 1 a disk could not be read, or a replica needs a look, 2 usage or "
        "configuration, 4 the source does not cover these disks",
    )
    add_selector(parser, "everything if there is none")
    add_broker(parser)
    add_source(parser)
    add_protection(parser, "topics that nothing may touch")
    parser.add_flag("--json", "one JSON object on standard output")
    parser.set_defaults(run=act, title="strays")


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    request = StraysRequest(
        broker=request_of(arguments),
        source=source_of(arguments),
        selector=arguments.selector,
        protected=protected_of(arguments),
    )
    # What the source is, before it is said why it is refused.
    found = strays(request, source_read=lambda image: say(streams, f"logdirctl strays: {source_line(image)}"))
    status = Exit.PROBLEMS if found.problems else Exit.DONE
    if answered(arguments, streams, status, found.all_problems, found):
        return status
    put(streams, "the cluster's word: not read" if found.image is None else source_line(found.image))
    if found.strays:
        table(streams.out, _COLUMNS, found.by_urgency)
    put(streams, found.summary, f"next: {_next(arguments, found)}")
    return status


def _next(arguments: argparse.Namespace, found: StraysResult) -> str:
    where = argv_of(arguments)
    states = {stray.state for stray in found.strays}
    if found.is_unplaced and found.strays and not found.has_work_roots:
        return f"logdirctl init {where}"
    if states & {State.PROVEN, State.HELD}:
        return f"logdirctl reconcile {where} {source_argv(arguments)}{protection_words(arguments)}"
    for stray in found.strays:
        if stray.state is State.WANTED and stray.ref.topic_id is not None:
            # An id may begin like a flag.
            return f"logdirctl describe id:{stray.ref.topic_id}_{stray.ref.partition} {where} {source_argv(arguments)}"
    return f"logdirctl inventory {where}"


_COLUMNS: tuple[Column[Stray], ...] = (
    Column("state", "state"),
    Column("topic", lambda one: one.ref.topic or "?"),
    Column("p", "ref.partition", is_number=True),
    Column("id", "ref.topic_id"),
    Column("kind", lambda one: one.kind.value + (", tiered" if one.is_tiered else "")),
    Column("bytes", lambda one: size(one.log_bytes), is_number=True),
    Column("age", lambda one: age(one.age_ms), is_number=True),
    Column("assignment", "assignment"),
    Column("reason", "reason"),
    Column("proof", lambda one: proof_of(one) or "no proof"),
    Column("missing", lambda one: None if one.missing is None else f"{one.missing.expected}; {one.missing.found}"),
    Column("disk", "log_dir"),
    Column("path", "path"),
)
