"""``logdirctl strays``: list the replicas that no metadata claims.

Not here: finding them (``logdir.service.strays``).

Spec: design §4, §6; attacks A1, A2, A20, A27, A43.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from logdir.decide.strays import State, Stray
from logdir.service.report.source_item import source_line
from logdir.service.report.table import Table
from logdir.service.strays import COLUMNS, StraysRequest, StraysResult, strays
from tools.cli.arguments import Exit, Streams, answer, say
from tools.cli.broker import BROKER, JSON, argv_of, request_of, selector
from tools.cli.command import Command
from tools.cli.option import filled, typed
from tools.cli.protection import protection
from tools.cli.source import SOURCE, source_argv


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    request = StraysRequest(broker=request_of(arguments), **filled(arguments, arguments.options))
    # What the source is, before it is said why it is refused.
    found = strays(request, source_read=lambda image: say(streams, f"logdirctl strays: {source_line(image)}"))
    status = Exit.PROBLEMS if found.problems else Exit.DONE
    return answer(arguments, streams, found, found.all_problems, _shown(arguments, found), status=status)


def _shown(arguments: argparse.Namespace, found: StraysResult) -> Iterator[str | Table[Stray]]:
    yield "the cluster's word: not read" if found.image is None else source_line(found.image)
    if found.strays:
        yield Table(COLUMNS, found.by_urgency)
    yield found.summary
    yield f"next: logdirctl {_next(arguments, found)}"


def _next(arguments: argparse.Namespace, found: StraysResult) -> str:
    where = argv_of(arguments)
    states = {stray.state for stray in found.strays}
    if found.is_unplaced and found.strays and not found.has_work_roots:
        return f"init {where}"
    if states & {State.PROVEN, State.HELD}:
        return f"reconcile {typed(arguments, argv_of, source_argv, *_PROTECTION)}"
    for stray in found.strays:
        if stray.state is State.WANTED and stray.ref.topic_id is not None:
            # An id may begin like a flag.
            return f"describe id:{stray.ref.topic_id}_{stray.ref.partition} {where} {source_argv(arguments)}"
    return f"inventory {where}"


_PROTECTION = protection("topics that nothing may touch")
COMMAND = Command(
    title="strays",
    run=act,
    description="List what lies on the disks of one broker and the cluster does not claim, with what is missing "
    "for a proof. Reads only, beside a running broker too.",
    ends="0 done, 1 a disk could not be read, or a replica needs a look, 2 usage or configuration, "
    "4 the source does not cover these disks",
    options=(selector("everything if there is none"), *BROKER, *SOURCE, *_PROTECTION, JSON),
)
