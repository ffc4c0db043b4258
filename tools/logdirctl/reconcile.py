"""``logdirctl reconcile``: show or do what follows on a broker's disks from the cluster image.

Not here: deciding what follows (``logdir.service.reconcile``), printing it (``reconcile_report``).
"""

from __future__ import annotations

import argparse
from typing import Any

from logdir.decide import staging_limit as limit_rule
from logdir.decide.image.trust import DEFAULT_MAX_AGE_MS, SETTING
from logdir.decide.staged.deadline import DelayPolicy
from logdir.errors import ConfigError
from logdir.formats import duration
from logdir.formats.duration import Duration
from logdir.service.batch.reconcile_case import ReconcileRequest
from logdir.service.reconcile import Policy
from tools.cli.arguments import Streams
from tools.cli.broker import add_change, argv_of, has_override, next_argv, said_of_override
from tools.cli.change import ran_of
from tools.cli.delay import add_delay, delay_problems, delay_words
from tools.cli.protection import add_protection, protected_of, protection_words
from tools.cli.report import is_planned
from tools.cli.source import add_source, source_argv, source_of
from tools.logdirctl.reconcile_report import report


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "reconcile",
        description="Compare the log dirs of a broker with what its cluster says, and show, or with --apply do, what "
        "follows: topic ids are written, deadlines removed, replicas staged. The plan may be shown beside a running "
        "broker; --apply needs a stopped one.",
        epilog="exit status: 0 done, or nothing to do, 1 not all can be done, 2 usage or configuration, "
        "3 a broker runs, 4 refused",
    )
    add_source(parser, is_required=True)
    add_change(parser)
    add_delay(parser)
    add_protection(parser)
    parser.add_argument(
        "--max-staged-percent",
        type=int,
        default=limit_rule.DEFAULT_PERCENT,
        metavar="N",
        help=f"{limit_rule.SETTING}: of all partitions, within 24 hours (default {limit_rule.DEFAULT_PERCENT})",
    )
    parser.add_argument(
        "--max-age",
        "--max-age-ms",
        type=duration.parse,
        default=Duration(DEFAULT_MAX_AGE_MS, has_unit=False),
        metavar="TIME",
        help=f"{SETTING}: of an image, beside a running broker; as 10m, or plain milliseconds (default 10m)",
    )
    parser.add_flag("--even-over-limit", "yes to what the staging limit held back")
    parser.add_flag(
        "--even-if-older-metadata",
        "follow the source although it is older than the last applied metadata, or none is recorded",
    )
    parser.set_defaults(run=act, title="reconcile")


def policy_of(arguments: argparse.Namespace) -> Policy:
    """Return the policy that the arguments ask for.

    Raises:
        ConfigError: a number is out of range; all such problems at once.
    """
    policy = Policy(
        delays=DelayPolicy(default_ms=arguments.delay.ms),
        protected=protected_of(arguments),
        percent=arguments.max_staged_percent,
        max_age_ms=arguments.max_age.ms,
        is_confirmed=arguments.even_over_limit,
        is_image_confirmed=arguments.even_if_older_metadata,
    )
    if problems := (*delay_problems(arguments), *policy.problems()):
        raise ConfigError(problems)
    return policy


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    ran = ran_of(
        arguments, streams, "reconcile", ReconcileRequest(source=source_of(arguments), policy=policy_of(arguments))
    )
    lines = said_of_override(arguments, is_planned=is_planned(ran.result.items))
    return report(arguments, streams, ran, (*lines, f"next: {_next(arguments, is_waiting=ran.is_waiting)}"))


def _next(arguments: argparse.Namespace, *, is_waiting: bool) -> str:
    if not is_waiting or has_override(arguments):
        return f"logdirctl staged ls {argv_of(arguments)}"
    flags = delay_words(arguments) + protection_words(arguments)
    if arguments.max_staged_percent != limit_rule.DEFAULT_PERCENT:
        flags += f" --max-staged-percent {arguments.max_staged_percent}"
    return f"logdirctl reconcile {source_argv(arguments)} {next_argv(arguments)}{flags} --apply"
