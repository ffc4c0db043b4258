"""``logdirctl layout``: move the replicas of a stopped broker to topic-id directories, by a plan, and back.

Not here: planning and doing it (``logdir.service.layout``), printing it (``layout_report``).

Spec: design §6, §8.
"""

from __future__ import annotations

import argparse
from typing import Any

from logdir.refusal_slug import Why
from logdir.service import layout
from logdir.service.layout import LayoutRequest
from logdir.service.layout_status import StatusNext, status
from logdir.service.report.layout_result import LayoutNext, LayoutVerb
from logdir.service.report.use_case import Ran
from logdir.text import quoted
from tools.cli.arguments import Streams
from tools.cli.broker import add_change, argv_of, has_override, next_argv, request_of
from tools.cli.change import ran_of
from tools.logdirctl.layout_report import NOT_READ_BY_KAFKA, print_result, print_status

_VERBS = (
    ("check", "show what a plan would do here", "Show what layout apply would do, and which steps no longer fit."),
    ("apply", "carry out a plan", "Take the replicas of a plan to topic-id directories; goes on where it was cut off."),
    ("verify", "check that a plan is carried out", "Check that every replica lies where the plan wants it."),
    (
        "rollback",
        "take every replica back to its topic name",
        "Take every replica back to {topic}-{partition}, and lift the start block.",
    ),
    (
        "finalize",
        "lift the start block for a broker that reads topic ids",
        "Lift the start block for the broker that --for-broker names.",
    ),
)
_MISSING = Why.LAYOUT_FILE_MISSING.value


def add_parser(commands: Any) -> None:
    """Add ``layout`` and its commands to the parser."""
    description = "Take the replicas of one stopped broker to topic-id directories, by a plan, and back."
    group = _parser(commands, "layout", None, description)
    below = group.add_subparsers(dest="layout_command", metavar="COMMAND", required=True)
    ends = "exit status: 0 done, 1 not all was done, 2 usage or configuration, 3 a broker runs, 4 refused"
    for name, text, description in _VERBS:
        verb, parser = LayoutVerb(name), _parser(below, name, text, description, ends)
        if verb.has_plan:
            of = "this broker's document: brokers/CLUSTER/NODE.jsonl of a plan"
            parser.add_argument("plan", metavar="PLAN", help=of)
        add_change(parser, changes=verb is not LayoutVerb.CHECK)
        if verb in (LayoutVerb.CHECK, LayoutVerb.APPLY, LayoutVerb.ROLLBACK):
            of = f"{_MISSING}: you confirm that the replicas under topic ids are this broker's"
            slug = {"metavar": "SLUG", "choices": [_MISSING], "help": of}
            parser.add_argument("--even-if-found", action="append", default=[], **slug)
        if verb is LayoutVerb.FINALIZE:
            of = "the broker that reads topic-id directories; kept in layout.json"
            parser.add_argument("--for-broker", metavar="TEXT", default="", help=of)
        parser.set_defaults(run=act, verb=verb)
        if verb is LayoutVerb.CHECK:
            parser.set_defaults(apply=False, skip_log_dir=[])
    description = "Show the layout of each log dir, and how far a change of layout is. Reads only."
    ends = "exit status: 0 done, 1 something is in trouble, 2 usage or configuration"
    parser = _parser(below, "status", "show how far a change of layout is", description, ends)
    add_change(parser, changes=False)
    parser.set_defaults(run=act_status)


def _parser(below: Any, name: str, text: str | None, description: str, epilog: str | None = None) -> Any:
    description = f"{description} {NOT_READ_BY_KAFKA}"
    shown = {} if text is None else {"help": text}
    parser = below.add_parser(name, **shown, description=description, epilog=epilog)
    parser.set_defaults(title=f"layout {name}")
    return parser


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``layout check``, ``apply``, ``verify``, ``rollback`` or ``finalize``; return the exit status."""
    verb: LayoutVerb = arguments.verb
    request = LayoutRequest(
        verb=verb,
        document=layout.read_plan(arguments.plan) if verb.has_plan else None,
        for_broker=getattr(arguments, "for_broker", ""),
        is_even_if_file_missing=_MISSING in getattr(arguments, "even_if_found", ()),
    )
    ran = ran_of(arguments, streams, "layout", request)
    return print_result(arguments, streams, ran, _next(arguments, verb, ran))


def act_status(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``layout status``; return the exit status."""
    found = status(request_of(arguments))
    verb = "layout rollback" if found.next is StatusNext.ROLLBACK else found.next.value
    return print_status(arguments, streams, found, f"logdirctl {verb} {argv_of(arguments)}")


def _next(arguments: argparse.Namespace, verb: LayoutVerb, ran: Ran) -> str:
    """Return the next command to type, never with an ``--even-…`` option."""
    named, where = argv_of(arguments), next_argv(arguments)
    document = f"{quoted(arguments.plan)} {where}" if verb.has_plan else where
    if ran.is_waiting and has_override(arguments):
        return f"logdirctl layout status {named}"
    same = LayoutVerb.APPLY if verb is LayoutVerb.CHECK else verb
    following = {
        LayoutNext.SAME: f"layout {same.value} {document} --apply",
        LayoutNext.VERIFY: f"layout verify {document} --apply",
        LayoutNext.UNINSTALL: f"uninstall {where}",
        LayoutNext.INVENTORY: f"inventory {named} -o inventories",
        LayoutNext.STATUS: f"layout status {named}",
    }
    return f"logdirctl {following[LayoutNext(ran.next)]}"
