"""``logdirctl layout``: move the replicas of a stopped broker to topic-id directories, by a plan, and back.

Not here: planning and doing it (``logdir.service.layout``).

Spec: design §6, §8.
"""

from __future__ import annotations

import argparse
from functools import partial

from logdir.decide.layout.precondition import RELEASES
from logdir.refusal_slug import Why
from logdir.service import layout
from logdir.service.layout import LayoutRequest
from logdir.service.layout_status import COLUMNS, StatusNext, status
from logdir.service.report.layout_result import STEP_COLUMNS, LayoutNext, LayoutVerb
from logdir.service.report.table import Table
from logdir.service.report.use_case import Ran
from tools.cli.arguments import Streams, answer, say
from tools.cli.broker import BROKER, CHANGED, JSON, argv_of, has_override, next_argv, request_of
from tools.cli.change import ran_of
from tools.cli.command import CHANGES, Command, Group
from tools.cli.option import Option, typed

NOT_READ_BY_KAFKA = f"No released Kafka ({RELEASES}) reads topic-id directories."
"""Printed by every ``logdirctl layout`` command and in its help (design §8)."""
_MISSING = Why.LAYOUT_FILE_MISSING.value


def act(verb: LayoutVerb, arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``layout check``, ``apply``, ``verify``, ``rollback`` or ``finalize``; return the exit status."""
    request = LayoutRequest(
        verb=verb,
        document=layout.read_plan(arguments.plan) if verb.has_plan else None,
        for_broker=getattr(arguments, "for_broker", ""),
        is_even_if_file_missing=_MISSING in getattr(arguments, "even_if_found", ()),
        skipped=tuple(getattr(arguments, "skip_log_dir", ())),
    )
    arguments.apply = verb is not LayoutVerb.CHECK and arguments.apply
    ran = ran_of(arguments, streams, "layout", request)
    say(streams, f"logdirctl {arguments.title}: {NOT_READ_BY_KAFKA}")
    steps = [Table(STEP_COLUMNS, ran.result.steps)] if ran.result.steps else []
    lines = f"{arguments.title}: {ran.lines[0]}", f"next: logdirctl {_next(arguments, verb, ran)}"
    return answer(arguments, streams, ran.result, ran.problems, (*steps, *lines), status=ran.exit)


def act_status(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``layout status``; return the exit status."""
    found = status(request_of(arguments))
    say(streams, f"logdirctl {arguments.title}: {NOT_READ_BY_KAFKA}")
    verb = "layout rollback" if found.next is StatusNext.ROLLBACK else found.next.value
    goes_on = f"the change of layout goes on with its plan: logdirctl layout {found.goes_on_with} PLAN"
    lines = () if found.goes_on_with is None else (goes_on,)
    shown = (Table(COLUMNS, found.result.items), *lines, f"next: logdirctl {verb} {argv_of(arguments)}")
    return answer(arguments, streams, found.result, found.problems, shown)


def _next(arguments: argparse.Namespace, verb: LayoutVerb, ran: Ran) -> str:
    """Return the next command to type, never with an ``--even-…`` option."""
    named, where = argv_of(arguments), next_argv(arguments)
    if ran.is_waiting and has_override(arguments):
        return f"layout status {named}"
    same = LayoutVerb.APPLY if verb is LayoutVerb.CHECK else verb
    following = {
        LayoutNext.SAME: f"layout {same.value} {typed(arguments, _PLAN, next_argv)} --apply",
        LayoutNext.VERIFY: f"layout verify {typed(arguments, _PLAN, next_argv)} --apply",
        LayoutNext.UNINSTALL: f"uninstall {where}",
        LayoutNext.INVENTORY: f"inventory {named} -o inventories",
        LayoutNext.STATUS: f"layout status {named}",
    }
    return following[LayoutNext(ran.next)]


def _verb(name: str, text: str, description: str, *options: Option, ends: str = CHANGES) -> Command:
    run = act_status if name == "status" else partial(act, LayoutVerb(name))
    description = f"{description} {NOT_READ_BY_KAFKA}"
    return Command(title=f"layout {name}", run=run, help=text, description=description, ends=ends, options=options)


_PLAN = Option("plan", "this broker's document: brokers/CLUSTER/NODE.jsonl of a plan", "PLAN")
_CONFIRMED = f"{_MISSING}: you confirm that the replicas under topic ids are this broker's"
_FOUND = Option("--even-if-found", _CONFIRMED, "SLUG", is_repeated=True, choices=[_MISSING])
_READER = Option("--for-broker", "the broker that reads topic-id directories; kept in layout.json", "TEXT", default="")
_CHECK = "Show what layout apply would do, and which steps no longer fit."
_APPLY = "Take the replicas of a plan to topic-id directories; goes on where it was cut off."
_VERIFY = "Check that every replica lies where the plan wants it."
_ROLLBACK = "Take every replica back to {topic}-{partition}, and lift the start block."
_FINALIZE = "Lift the start block for the broker that --for-broker names."
_STATUS = "Show the layout of each log dir, and how far a change of layout is. Reads only."
_TROUBLE = "0 done, 1 something is in trouble, 2 usage or configuration"
_FOR_READER = "lift the start block for a broker that reads topic ids"
COMMAND = Group(
    title="layout",
    description="Take the replicas of one stopped broker to topic-id directories, by a plan, and back. "
    f"{NOT_READ_BY_KAFKA}",
    commands=(
        _verb("check", "show what a plan would do here", _CHECK, _PLAN, *BROKER, JSON, _FOUND),
        _verb("apply", "carry out a plan", _APPLY, _PLAN, *CHANGED, _FOUND),
        _verb("verify", "check that a plan is carried out", _VERIFY, _PLAN, *CHANGED),
        _verb("rollback", "take every replica back to its topic name", _ROLLBACK, *CHANGED, _FOUND),
        _verb("finalize", _FOR_READER, _FINALIZE, *CHANGED, _READER),
        _verb("status", "show how far a change of layout is", _STATUS, *BROKER, JSON, ends=_TROUBLE),
    ),
)
