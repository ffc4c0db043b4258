"""``logdirctl staged ls | restore | adopt | purge | hold | export``: list staged replicas, or change them.

Not here: the changes themselves (``staged_change``).

Spec: design §3.3, §6.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from logdir import evidence
from logdir.decide.image.still_assigned import Assigned
from logdir.disk.replica.rate_limiter import BYTES_PER_SECOND
from logdir.service.report.staged import WHERE_READ
from logdir.service.staged_listing import COUNTING, StagedItem, StagedListingRequest, list_staged
from logdir.text import quoted, size, utc
from tools.cli.arguments import Exit, Streams, answered, put
from tools.cli.broker import add_change, add_selector, argv_of, request_of
from tools.cli.columns import Column, table
from tools.cli.delay import add_delay
from tools.cli.source import add_source, named_words, source_of

_ADOPTS = (
    "Make staged files the log of a topic that was created again, after a topic was deleted. The brokers of its "
    "replicas are stopped. Records written to the new topic are replaced."
)


def add_parser(commands: Any) -> None:
    """Add ``staged`` and its commands to the parser."""
    group = commands.add_parser(
        "staged",
        description="What was staged: list it, take it back, remove it for good, or keep it from being removed.",
    )
    below = group.add_subparsers(dest="staged_command", metavar="COMMAND", required=True)
    ls = below.add_parser(
        "ls",
        help="list what is staged, and until when it can be undone",
        description="List what is staged on every log dir of one broker. Reads only, beside a running broker too.",
        epilog="exit status: 0 done, 1 a disk could not be read, 2 usage or configuration",
    )
    add_selector(ls, "everything if there is none")
    add_change(ls, changes=False)
    add_source(ls)
    ls.set_defaults(run=act_ls, title="staged ls")
    for name, text, description in (
        ("restore", "take replicas back", "Take replicas of a stopped broker back to where they were."),
        ("adopt", "give the files of a deleted topic to one that was created again", _ADOPTS),
        ("hold", "keep replicas from being purged", "Remove the deadline of what is staged."),
        ("export", "copy replicas to a place outside the log dirs", "Copy what is staged, verified, elsewhere."),
        ("purge", "remove for good what is due", "Remove for good what is staged and whose deadline has passed."),
    ):
        parser = below.add_parser(
            name,
            help=text,
            description=description,
            epilog="exit status: 0 done, 1 not all was done, 2 usage or configuration, 3 a broker runs, 4 refused",
        )
        add_selector(parser, "everything that is due if there is none" if name == "purge" else "")
        add_change(parser)
        _add_own(parser, name)
        parser.set_defaults(run=partial(_change, name), title=f"staged {name}")


def _add_own(parser: Any, name: str) -> None:
    parser.add_argument("--disk", metavar="DIR", help="only what lies on this log dir")
    parser.add_argument(
        "--name", metavar="NAME", action="append", default=[], help="of several copies this one (name in staged ls)"
    )
    if name == "export":
        parser.add_argument("-o", "--output", metavar="DIR", required=True, help="where to copy to; it must exist")
    if name == "adopt":
        _add_adopt(parser)
    if name == "restore":
        add_source(parser)
        parser.add_flag(
            "--even-if-unknown",
            "rename back also what is not known to be still assigned here; never what is known to be gone",
        )
    if name == "purge":
        add_source(parser)
        parser.add_flag(
            "--even-if-assigned",
            "also what is still assigned here, if a live replica of it is in the ISR of another broker",
        )
        parser.add_flag("--even-if-last", "also what was staged as the only in-sync replica, or as not known")
        parser.add_flag("--even-if-early", "also what an operator staged, before its deadline")
        parser.add_flag("--include-held", "with --even-if-early: also what has no deadline")
        parser.add_argument(
            "--bytes-per-second",
            type=int,
            metavar="N",
            default=BYTES_PER_SECOND,
            help=f"how fast disks are freed (default {BYTES_PER_SECOND}); 0: as fast as it goes",
        )


def _add_adopt(parser: Any) -> None:
    add_source(parser)
    parser.add_argument(
        "--as", dest="as_topic", metavar="TOPIC", required=True, help="the topic that was created again, by its name"
    )
    parser.add_argument(
        "--with",
        dest="listings",
        metavar="FILE",
        action="append",
        default=[],
        help="what logdirctl staged ls --json printed on another broker of the replicas, once that was stopped",
    )
    parser.add_flag("--keep", "keep the staged directory, too: its files are shared")
    add_delay(parser)
    parser.add_flag(
        "--even-if-unknown",
        "adopt also where it is not known that the topic still has its id; the staged directory is kept",
    )


def _change(name: str, arguments: argparse.Namespace, streams: Streams) -> int:
    # Each reads a use case of its own, and a listing none of them.
    from tools.logdirctl import staged_change

    acts = {
        "adopt": staged_change.adopt,
        "restore": staged_change.restore,
        "hold": staged_change.hold,
        "export": staged_change.export,
        "purge": staged_change.purge,
    }
    return acts[name](arguments, streams)


def act_ls(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged ls``; return the exit status."""
    request = StagedListingRequest(
        broker=request_of(arguments),
        source=source_of(arguments),
        selector=arguments.selector,
        are_ends_wanted=arguments.json,
    )
    found = list_staged(request)
    status = Exit.PROBLEMS if found.problems else Exit.DONE
    if answered(arguments, streams, status, found.problems, found):
        return status
    if found.items:
        table(streams.out, _COLUMNS, found.items)
    else:
        put(streams, f"nothing is staged{'' if found.is_whole else WHERE_READ}")
    line = f"inventory {argv_of(arguments)}"
    if found.is_root_missing:
        line = f"init {argv_of(arguments)}"
    elif found.to_restore is not None:
        line = f"staged restore {quoted(found.to_restore)} {argv_of(arguments)}{named_words(arguments)}"
    put(streams, f"next: logdirctl {line}")
    return status


_ASSIGNED = {
    Assigned.HERE: "still assigned",
    Assigned.NOT_HERE: "not here",
    Assigned.GONE: "gone",
    Assigned.UNKNOWN: "not known",
}


_COLUMNS: tuple[Column[StagedItem], ...] = (
    Column("topic", lambda one: one.ref.topic or "?"),
    Column("p", "ref.partition", is_number=True),
    Column("id", "ref.topic_id"),
    Column("bytes", lambda one: size(one.log_bytes), is_number=True),
    Column("reason", lambda one: one.reason or "?"),
    Column("evidence", lambda one: "?" if one.evidence is None else evidence.words(one.evidence)),
    Column("assigned", lambda one: None if one.assigned is None else _ASSIGNED[one.assigned]),
    Column("restore", "restore"),
    Column("undo until (UTC)", lambda one: utc(one.undo_until_ms) if one.state == COUNTING else one.state),
    Column("disk", "log_dir"),
    Column("name", "name"),
    Column("detail", "detail"),
)
