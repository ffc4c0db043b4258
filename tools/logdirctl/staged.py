"""``logdirctl staged ls | restore | adopt | purge | hold | export``: list staged replicas, or change or copy them.

Not here: listing and changing them (``logdir.service.staged_listing``, ``restore``, ``adopt``, ``purge`` and others).

Spec: design §3.3, §6.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from logdir.disk.replica.rate_limiter import BYTES_PER_SECOND
from logdir.service.batch.purge_recheck import PurgeOverrides
from logdir.service.report.staged import WHERE_READ, Selection
from logdir.service.report.table import Table
from logdir.service.staged_listing import COLUMNS, StagedItem, StagedListing, StagedListingRequest, list_staged
from logdir.text import quoted
from tools.cli.arguments import Streams, answer
from tools.cli.broker import BROKER, CHANGED, JSON, argv_of, even_if_unknown, next_argv, request_of, selector
from tools.cli.command import CHANGES, Change, Command, Group
from tools.cli.delay import DELAY
from tools.cli.option import Flag, Option, filled, typed
from tools.cli.source import SOURCE, named_argv


def _list(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged ls``; return the exit status."""
    fields = filled(arguments, arguments.options)
    found = list_staged(StagedListingRequest(broker=request_of(arguments), are_ends_wanted=arguments.json, **fields))
    return answer(arguments, streams, found, found.problems, _shown(arguments, found))


def _shown(arguments: argparse.Namespace, found: StagedListing) -> Iterator[str | Table[StagedItem]]:
    yield Table(COLUMNS, found.items) if found.items else f"nothing is staged{'' if found.is_whole else WHERE_READ}"
    line = f"inventory {argv_of(arguments)}"
    if found.is_root_missing:
        line = f"init {argv_of(arguments)}"
    elif found.to_restore is not None:
        line = f"staged restore {quoted(found.to_restore)} {typed(arguments, argv_of, named_argv)}"
    yield f"next: logdirctl {line}"


def _selection_of(arguments: argparse.Namespace) -> Selection:
    return Selection(arguments.selector, arguments.disk, tuple(arguments.name))


def _overrides_of(arguments: argparse.Namespace) -> PurgeOverrides:
    return PurgeOverrides(
        is_even_if_assigned=arguments.even_if_assigned,
        is_even_if_last=arguments.even_if_last,
        is_even_if_early=arguments.even_if_early,
    )


def _output_of(arguments: argparse.Namespace) -> str:
    return os.path.abspath(arguments.output) if arguments.output else ""


def _whole_selection(if_absent: str = "") -> Option:
    return selector(if_absent, field="selection", value=_selection_of)


def _disk_and_name(of_disk: str = "", of_names: str = "") -> tuple[Option, Option]:
    """Return ``--disk`` and ``--name``, with the fields that they fill by themselves."""
    text = "of several copies this one (name in staged ls)"
    return (
        Option("--disk", "only what lies on this log dir", "DIR", field=of_disk),
        Option("--name", text, "NAME", field=of_names, is_repeated=True),
    )


_SELECTOR, _DUE = _whole_selection(), _whole_selection("everything that is due if there is none")
_DISK, _NAME = _SELECTED = _disk_and_name()
_OUTPUT = Option(
    "-o --output", "where to copy to; it must exist", "DIR", field="output", value=_output_of, required=True
)
_TOPIC = "the topic that was created again, by its name"
_LISTINGS = "what logdirctl staged ls --json printed on another broker of the replicas, once that was stopped"
_ADOPTION = (
    Option("--as", _TOPIC, "TOPIC", dest="as_topic", field="as_topic", required=True),
    Option("--with", _LISTINGS, "FILE", dest="listings", field="listings", is_repeated=True),
    Flag("--keep", "keep the staged directory, too: its files are shared", "is_kept"),
    DELAY,
)
_RESTORE_UNKNOWN = "rename back also what is not known to be still assigned here; never what is known to be gone"
_ADOPT_UNKNOWN = "adopt also where it is not known that the topic still has its id; the staged directory is kept"
_ASSIGNED_HERE = "also what is still assigned here, if a live replica of it is in the ISR of another broker"
_RATE = f"how fast disks are freed (default {BYTES_PER_SECOND}); 0: as fast as it goes"
_GONE = Flag(
    "--topic-removed",
    "what belongs to a topic that the metadata shows as removed, before its deadline: to erase records for good",
    "is_topic_removed",
)
_PURGE = (
    Flag("--even-if-assigned", _ASSIGNED_HERE, "overrides", value=_overrides_of),
    Flag("--even-if-last", "also what was staged as the only in-sync replica, or as not known"),
    Flag("--even-if-early", "also what an operator staged, before its deadline"),
    _GONE,
    Flag("--include-held", "with --even-if-early: also held replicas, which have no deadline", "includes_held"),
    Option("--bytes-per-second", _RATE, "N", type=int, default=BYTES_PER_SECOND, field="bytes_per_second"),
)

COMMAND = Group(
    title="staged",
    description="What was staged: list it, take it back, remove it for good, or keep it from being removed.",
    commands=(
        Command(
            title="staged ls",
            run=_list,
            help="list what is staged, and until when it can be undone",
            description="List what is staged on every log dir of one broker. Reads only, beside a running broker too.",
            ends="0 done, 1 a disk could not be read, 2 usage or configuration",
            options=(selector("everything if there is none"), *BROKER, JSON, *SOURCE),
        ),
        Command(
            title="staged restore",
            run=Change(again=(_SELECTOR, next_argv, named_argv, *_SELECTED), are_said=True),
            help="take replicas back",
            description="Take replicas of a stopped broker back to where they were.",
            ends=CHANGES,
            options=(_SELECTOR, *CHANGED, *_SELECTED, *SOURCE, even_if_unknown(_RESTORE_UNKNOWN)),
        ),
        Command(
            title="staged adopt",
            run=Change(again=(_SELECTOR, next_argv, named_argv, *_SELECTED, *_ADOPTION)),
            help="give the files of a deleted topic to one that was created again",
            description="Make staged files the log of a topic that was created again, after a topic was deleted. The "
            "brokers of its replicas are stopped. Records written to the new topic are replaced.",
            ends=CHANGES,
            options=(_SELECTOR, *CHANGED, *_SELECTED, *SOURCE, *_ADOPTION, even_if_unknown(_ADOPT_UNKNOWN)),
        ),
        Command(
            title="staged hold",
            run=Change(again=(_SELECTOR, next_argv, *_SELECTED), are_overrides_said=False),
            help="keep replicas from being purged",
            description="Remove the deadline of what is staged.",
            ends=CHANGES,
            options=(selector(), *CHANGED, *_disk_and_name("disk", "names")),
        ),
        Command(
            title="staged export",
            run=Change(again=(_SELECTOR, next_argv, _DISK, _OUTPUT, _NAME), are_overrides_said=False),
            help="copy replicas to a place outside the log dirs",
            description="Copy what is staged, verified, elsewhere.",
            ends=CHANGES,
            options=(_SELECTOR, *CHANGED, *_SELECTED, _OUTPUT),
        ),
        Command(
            title="staged purge",
            run=Change(again=(_DUE, next_argv, named_argv, *_SELECTED, _GONE), are_said=True),
            help="remove for good what is due",
            description="Remove for good what is staged and whose deadline has passed.",
            ends=CHANGES,
            options=(_DUE, *CHANGED, *_SELECTED, *SOURCE, *_PURGE),
        ),
    ),
)
