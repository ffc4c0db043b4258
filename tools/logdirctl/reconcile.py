"""``logdirctl reconcile``: what follows on the disks of a broker from what its cluster says, shown or done.

The plan shows every action in the order it would be done, on what it rests, what it takes from view and until when that
can be undone. With ``--apply`` it is decided again under every lock, and done for what was shown and for nothing else;
it may be stopped after any action, and said again goes on from there.

Not here: what follows (``logdir.decide``), doing it (``reconcile_apply``), telling of it (``reconcile_report``).

Spec: design §2 laws 1, 4, §4, §6; KIP-516, "LeaderAndIsr", "Deletion", "Migration"; attacks A1, A3, A22, A29, A38, A43.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from logdir.decide import brake as brake_rule
from logdir.decide.deadline import DelayPolicy
from logdir.decide.document import DocumentPlan, plan_document
from logdir.decide.position import highest
from logdir.decide.reconcile import ReconcilePlan, ReconcileRequest, plan_reconcile
from logdir.decide.trust import DEFAULT_MAX_AGE_MS, SETTING
from logdir.disk import brake, controller
from logdir.disk.kernel_clock import read_instant
from logdir.errors import ConfigError, Problem
from logdir.formats.duration import Duration
from logdir.formats.inventory import Entry
from logdir.observe.facts import LogDirFacts
from tools.cli import Streams
from tools.logdirctl.broker import OpenBroker, add_change, next_words, opened
from tools.logdirctl.delay import add_delay, delay_problems, delay_words
from tools.logdirctl.desired_source import Desired, births_of, in_doubt, is_running, read_desired
from tools.logdirctl.naming import words_of
from tools.logdirctl.protection import add_protection, protected_of, protection_words
from tools.logdirctl.reconcile_report import Told, report
from tools.logdirctl.source import add_source, source_words
from tools.logdirctl.source_report import against_blank
from tools.logdirctl.usage import duration_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What follows, as decided on one look."""

    plan: ReconcilePlan | None
    """``None``: of a document that is refused, or was followed before."""
    document: DocumentPlan | None
    """Of a request document."""

    @property
    def refused(self) -> Problem | None:
        """Return why nothing at all follows."""
        if self.plan is not None:
            return self.plan.refused
        return None if self.document is None else self.document.problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What an operator said beside the source."""

    delays: DelayPolicy
    protected: tuple[str, ...]
    percent: int
    max_age_ms: int
    is_confirmed: bool
    is_image_confirmed: bool


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "reconcile",
        help="what follows on the disks from what the cluster says",
        description="Compare the log dirs of a broker with what its cluster says, and show, or with --apply do, what "
        "follows: ids are given, deadlines taken, replicas set aside. The plan may be asked for beside a running "
        "broker; --apply needs a stopped one.",
        epilog="exit status: 0 done, or nothing to do, 1 not all can be done, 2 usage or configuration, "
        "3 a broker runs, 4 refused",
        allow_abbrev=False,
    )
    add_source(parser, is_required=True)
    add_change(parser)
    add_delay(parser)
    add_protection(parser)
    parser.add_argument(
        "--max-staged-percent",
        type=int,
        default=brake_rule.DEFAULT_PERCENT,
        metavar="N",
        help=f"{brake_rule.SETTING}: of the partitions within 24 hours (default {brake_rule.DEFAULT_PERCENT})",
    )
    parser.add_argument(
        "--max-age",
        "--max-age-ms",
        type=duration_of,
        default=Duration(DEFAULT_MAX_AGE_MS, has_unit=False),
        metavar="TIME",
        help=f"{SETTING}: beside a running broker; as 10m, or plain milliseconds (default 10m)",
    )
    parser.add_argument("--even-over-limit", action="store_true", help="yes to what the brake held back")
    parser.add_argument(
        "--even-if-older-metadata",
        action="store_true",
        help="yes, the source is right although it is behind, or nothing is remembered of how far it was followed",
    )
    parser.set_defaults(run=act, title="reconcile")


def policy_of(arguments: argparse.Namespace) -> Policy:
    """Return what was said.

    Raises:
        ConfigError: a number does not fit; all of them at once.
    """
    problems = delay_problems(arguments)
    percent, age_ms = arguments.max_staged_percent, arguments.max_age.ms
    if percent not in range(101):
        problems.append(Problem("config-error", "--max-staged-percent", "a whole number of 0 to 100", str(percent)))
    if age_ms < 0:
        problems.append(Problem("config-error", "--max-age", "0 or more", str(age_ms)))
    if problems:
        raise ConfigError(tuple(problems))
    return Policy(
        delays=DelayPolicy(default_ms=arguments.delay.ms),
        protected=protected_of(arguments),
        percent=percent,
        max_age_ms=age_ms,
        is_confirmed=arguments.even_over_limit,
        is_image_confirmed=arguments.even_if_older_metadata,
    )


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    from tools.logdirctl.reconcile_apply import Applied, apply

    policy = policy_of(arguments)
    with opened(arguments, changes=arguments.apply) as broker:
        if arguments.apply:
            broker.recover()
        running = False if arguments.apply else is_running(broker.named.log_dirs)
        used = highest(controller.read_records(broker.sites))
        facts = broker.look(closely(()))
        desired = read_desired(
            arguments, broker.named, facts, used, now_ms=max(0, read_instant().wall_ms), is_broker_running=running
        )
        blank = against_blank(desired.image)
        if blank is not None:
            raise ConfigError((blank,))
        doubtful = {replica.path for replica in in_doubt(desired.image, facts)}
        if doubtful:
            facts = broker.look(closely(doubtful))
        decided = decide(broker, desired, policy, facts)
        done: Applied | None = None
        if arguments.apply and decided.plan is not None and decided.refused is None:
            done = apply(broker, desired, policy, decided, streams)
            decided = done.decided
        told = Told(
            decided=decided,
            desired=desired,
            rows=None if done is None else done.rows,
            problems=(*broker.notes, *(() if done is None else done.problems)),
            next_line=_next(arguments, desired, decided, is_done=done is not None and done.has_changed),
        )
        return report(arguments, streams, told)


def closely(paths: Collection[str]) -> Any:
    """Return which entries are opened: those of these paths."""

    def is_meant(entry: Entry) -> bool:
        return entry.name in paths

    return is_meant


def decide(
    broker: OpenBroker,
    desired: Desired,
    policy: Policy,
    facts: Sequence[LogDirFacts],
    *,
    is_counted: bool = False,
) -> Decided:
    """Decide what follows; reads when directories came to be, and changes nothing.

    Args:
        broker: Open.
        desired: What its cluster says.
        policy: What the operator said.
        facts: Of every log dir, those in doubt opened.
        is_counted: The brake spoke, and counted, of all of this before.
    """
    request = ReconcileRequest(
        image=desired.image,
        now=read_instant(),
        standing=desired.standing(max_age_ms=policy.max_age_ms, is_position_confirmed=policy.is_image_confirmed),
        births=births_of(in_doubt(desired.image, facts)),
        delays=policy.delays,
        protected=policy.protected,
        record=brake_rule.highest(brake.read_records(broker.sites)),
        percent=policy.percent,
        is_confirmed=policy.is_confirmed or is_counted,
    )
    if desired.document is None:
        return Decided(plan=plan_reconcile(request, facts), document=None)
    document = plan_document(
        desired.document, None, request, facts, node_id=desired.node_id, cluster_id=desired.cluster_id
    )
    return Decided(plan=document.plan, document=document)


def _next(arguments: argparse.Namespace, desired: Desired, decided: Decided, *, is_done: bool) -> str:
    where = next_words(arguments)
    plan = decided.plan
    # How far the cluster was followed is written down with nothing else to do, too; once.
    is_farther = plan is not None and plan.used is not None and plan.used != desired.used and not arguments.apply
    if is_done or plan is None or not (plan.actions or is_farther):
        return f"logdirctl staged ls {words_of(arguments)}"
    flags = delay_words(arguments) + protection_words(arguments)
    if arguments.max_staged_percent != brake_rule.DEFAULT_PERCENT:
        flags += f" --max-staged-percent {arguments.max_staged_percent}"
    return f"logdirctl reconcile {source_words(arguments)} {where}{flags} --apply"
