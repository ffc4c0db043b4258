"""``logdirctl layout``: the replicas of one stopped broker from topic names to topic ids, by its plan, and back.

Every verb looks first and prints what it would do; ``--apply`` does it, in batches under the broker's own locks, and
takes up whatever a former run left. A plan's steps that no longer fit are refused by name, the others are done.

Not here: what may be done (``logdir.decide.relayout``), doing it (``logdir.disk.layout``), looking only
(``layout_status``).

Spec: design §3.1, §6, §7.7, §8; attacks A21, A22, A37.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from logdir.decide import relayout as decide
from logdir.decide.layout_action import Decision, Seen, TakeToNames
from logdir.disk import bar
from logdir.disk import layout as disk
from logdir.disk.bar import BarState
from logdir.disk.locks import Batch
from logdir.errors import LayoutFileMissingError, RefusedError, WorkRootInsideError
from logdir.formats import plan_document
from logdir.formats.plan_document import PlanDocument
from logdir.observe.named_file import read_named
from logdir.service.broker import OpenBroker, opened
from logdir.service.os_errors import told as told_of_disk
from logdir.service.quarantine import require_none_closed
from logdir.text import quoted
from tools.cli import Streams, say
from tools.logdirctl.broker import add_change, has_override, next_words, request_of
from tools.logdirctl.layout_report import NOT_READ_BY_KAFKA, Told, finish
from tools.logdirctl.layout_status import act as act_status
from tools.logdirctl.naming import words_of

_NOTE_EVERY = 0.2
"""Seconds between two progress lines on a terminal."""
_MAX_PLAN = 1 << 32
"""Bytes; a step takes some 300."""
_KEPT = """\
What is kept on this host while the layout is changed (logdirctl layout rollback takes it back):
  in each log dir: bar.json (the true meta.properties), logdird-bar.txt (the same for people), layout.json (how far)
  in a replica whose partition.metadata was missing or strange: relayout.json (what it was)
  once the log dirs are barred no broker can start until logdirctl layout rollback"""
_VERBS = (
    ("check", "say what a plan would do here", "Say what layout apply would do, and which steps no longer fit."),
    ("apply", "bring a plan about", "Take the replicas of a plan to topic-id directories, or go on with that."),
    ("verify", "see whether all of a plan came about", "See whether every replica lies where the plan wants it."),
    ("rollback", "take everything back to topic names", "Take every replica back to its name, and lift the bar."),
    ("finalize", "lift the bar for a broker that reads topic ids", "Lift the bar for the broker that is named."),
)
_WITH_PLAN = ("check", "apply", "verify")
_OVERRIDABLE = ("check", "apply", "rollback")
_OVERRIDE = "--even-if-found"


def add_parser(commands: Any) -> None:
    """Add the commands to the parser."""
    group = commands.add_parser(
        "layout",
        description="Take the replicas of one stopped broker to topic-id directories, by a plan, and back. "
        f"{NOT_READ_BY_KAFKA}",
        allow_abbrev=False,
    )
    below = group.add_subparsers(dest="layout_command", metavar="COMMAND", required=True)
    for verb, text, description in _VERBS:
        parser = below.add_parser(
            verb,
            help=text,
            description=f"{description} {NOT_READ_BY_KAFKA}",
            epilog="exit status: 0 done, 1 not all was done, 2 usage or configuration, 3 a broker runs, 4 refused",
            allow_abbrev=False,
        )
        if verb in _WITH_PLAN:
            parser.add_argument(
                "plan", metavar="PLAN", help="this broker's document: brokers/CLUSTER/NODE.jsonl of a plan"
            )
        add_change(parser, changes=verb != "check")
        if verb in _OVERRIDABLE:
            parser.add_argument(
                _OVERRIDE,
                metavar="SLUG",
                action="append",
                default=[],
                choices=[LayoutFileMissingError.code],
                help=f"{LayoutFileMissingError.code}: replicas under topic ids are this broker's",
            )
        if verb == "finalize":
            parser.add_argument(
                "--for-broker",
                metavar="TEXT",
                default="",
                help="the broker that reads topic-id directories; kept in layout.json",
            )
        parser.set_defaults(run=act, title=f"layout {verb}", verb=verb)
        if verb == "check":
            parser.set_defaults(apply=False, skip_log_dir=[])
    status = below.add_parser(
        "status",
        help="say how far a change of layout is",
        description="Say which layout each log dir is in, and how far a change of it is. Reads only. "
        f"{NOT_READ_BY_KAFKA}",
        epilog="exit status: 0 done, 1 something is in trouble, 2 usage or configuration",
        allow_abbrev=False,
    )
    add_change(status, changes=False)
    status.set_defaults(run=act_status, title="layout status")


class _Progress:
    """One line on a terminal that is written over; silent elsewhere."""

    def __init__(self, streams: Streams, total: int) -> None:
        self._err = streams.err
        self._shown = streams.err.isatty()
        self._total = total
        self._last = time.monotonic()

    def note(self, count: int) -> None:
        """Hear how many replicas were gone through."""
        now = time.monotonic()
        if self._shown and now - self._last > _NOTE_EVERY:
            self._last = now
            self._err.write(f"\r{count} of {self._total} replicas")
            self._err.flush()

    def done(self) -> None:
        """Take the line away."""
        if self._shown:
            self._err.write("\r\x1b[K")
            self._err.flush()


def read_plan(path: str) -> PlanDocument:
    """Read a plan document.

    Raises:
        ConfigError: there is no such file, it may not be read, or is no regular one.
        FormatError: it is no whole document.
    """
    data = read_named(path, _MAX_PLAN, "a plan document", "brokers/CLUSTER/NODE.jsonl of a plan directory")
    return plan_document.parse(data, path)


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run a verb; return the exit status."""
    plan = read_plan(arguments.plan) if arguments.verb in _WITH_PLAN else None
    with opened(request_of(arguments), changes=arguments.apply, is_bar_allowed=True) as broker:
        if broker.missing and arguments.verb != "rollback":
            raise RefusedError(
                ", ".join(broker.missing),
                expected="every log dir, to change them all or none",
                found="no answer",
                fix="mend it, or take the others back with logdirctl layout rollback",
            )
        # Before anything is touched, recovery included: what is refused as a whole changes nothing.
        decision, is_first = _decide(arguments, plan, broker)
        is_idle = arguments.verb == "rollback" and is_first and _is_untouched(broker, decision)
        if not arguments.apply:
            told = Told(decision=decision, notes=tuple(broker.notes), is_idle=is_idle, left_out=broker.missing)
            return finish(arguments, streams, told, _next(arguments, told))
        require_none_closed(broker.closed)
        broker.recover()
        if arguments.verb == "apply" and is_first and decision.phases:
            say(streams, _KEPT)  # not before: where a broker runs nothing is kept
        report = _carry_out(arguments, plan, broker, streams, decision)
        told = Told(
            decision=report.decision,
            report=report,
            notes=tuple(broker.notes),
            is_idle=is_idle,
            left_out=broker.missing,
        )
        return finish(arguments, streams, told, _next(arguments, told))


def _decide(arguments: argparse.Namespace, plan: PlanDocument | None, broker: OpenBroker) -> tuple[Decision, bool]:
    """Return what a verb would do, and whether nothing of it was begun on any log dir."""
    seen = disk.look_all(broker.sites)
    is_first = all(one.file is None for one in seen)
    return _decided(arguments, plan, seen), is_first


def _is_untouched(broker: OpenBroker, decision: Decision) -> bool:
    """Whether no log dir says that a change of layout ever began."""
    if any(isinstance(action, TakeToNames) for action in decision.actions):
        return False
    with told_of_disk(broker.named.log_dirs[0]):
        return bar.state(broker.sites) is BarState.OPEN


def _is_known(arguments: argparse.Namespace) -> bool:
    """Whether the operator says that replicas under topic ids are this broker's, though ``layout.json`` is missing."""
    return LayoutFileMissingError.code in getattr(arguments, "even_if_found", ())


def _decided(arguments: argparse.Namespace, plan: PlanDocument | None, seen: Sequence[Seen]) -> Decision:
    confirmed = _is_known(arguments)
    match arguments.verb, plan:
        case "check", PlanDocument():
            return decide.check(plan, seen, confirmed=confirmed)
        case "apply", PlanDocument():
            return decide.apply(plan, seen, confirmed=confirmed)
        case "verify", PlanDocument():
            return decide.verify(plan, seen)
        case "finalize", _:
            return decide.finalize(seen, arguments.for_broker)
        case _:
            return decide.rollback(seen, confirmed=confirmed)


def _carry_out(
    arguments: argparse.Namespace,
    plan: PlanDocument | None,
    broker: OpenBroker,
    streams: Streams,
    decision: Decision,
) -> disk.Report:
    progress = _Progress(streams, sum(len(getattr(action, "items", ())) for action in decision.actions))
    sites = broker.sites

    @contextmanager
    def locked() -> Iterator[Batch]:
        with broker.batch() as held:
            require_none_closed(broker.closed)  # one may have failed meanwhile
            yield held

    try:
        match arguments.verb, plan:
            case "apply", PlanDocument():
                return disk.apply(sites, plan, locked, confirmed=_is_known(arguments), told=progress.note)
            case "verify", PlanDocument():
                return disk.verify(sites, plan, locked)
            case "finalize", _:
                return disk.finalize(sites, arguments.for_broker, locked)
            case _:
                return disk.rollback(sites, locked, confirmed=_is_known(arguments), told=progress.note)
    finally:
        progress.done()


def _next(arguments: argparse.Namespace, told: Told) -> str:
    """Return the next command to type; never ``finalize``: no released Kafka reads what it leaves."""
    where = next_words(arguments)
    document = f"{quoted(arguments.plan)} {where}" if arguments.verb in _WITH_PLAN else where
    is_waiting = not arguments.apply and told.has_work
    if is_waiting and has_override(arguments):
        return f"logdirctl layout status {words_of(arguments)}"
    match arguments.verb:
        case "rollback" if (
            any(isinstance(one, WorkRootInsideError) for one in told.decision.refused) and not is_waiting
        ):
            return f"logdirctl uninstall {where}"
        case "check" | "apply" if told.decision.is_plan_stale and not is_waiting:
            return f"logdirctl inventory {words_of(arguments)} -o inventories"
        case "check" | "apply" if is_waiting or (arguments.apply and not told.is_finished):
            return f"logdirctl layout apply {document} --apply"
        case "check" | "apply" if not told.problems:
            return f"logdirctl layout verify {document} --apply"
        case "verify" | "rollback" if is_waiting:
            return f"logdirctl {arguments.title} {document} --apply"
        case "check" | "apply" | "verify" if told.problems:
            return f"logdirctl inventory {words_of(arguments)} -o inventories"
        case _:
            return f"logdirctl layout status {words_of(arguments)}"
