"""``logdirctl reconcile``: show or do what follows on a broker's disks from the cluster image.

Not here: deciding and doing what follows (``logdir.service.reconcile``, ``batch.reconcile_case``).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from logdir.decide import staging_limit as limit_rule
from logdir.decide.image.trust import DEFAULT_MAX_AGE_MS, SETTING
from logdir.decide.staged.deadline import check_typed_delay
from logdir.errors import ConfigError
from logdir.formats.duration import Duration
from logdir.service.batch.reconcile_case import ReconcileRequest
from logdir.service.reconcile import Policy
from logdir.service.report.following import is_planned
from logdir.service.report.reconcile_item import COLUMNS, ReconcileItem
from logdir.service.report.table import Table
from logdir.service.report.use_case import Ran
from tools.cli.arguments import Exit, Streams, answer
from tools.cli.broker import CHANGED, argv_of, has_override, next_argv, said_of_override
from tools.cli.change import ran_of
from tools.cli.command import Command
from tools.cli.delay import DELAY, configured_delays, time_option
from tools.cli.option import Flag, Option, typed
from tools.cli.protection import protected_of, protection
from tools.cli.source import source, source_argv, source_of


def policy_of(arguments: argparse.Namespace) -> Policy:
    """Return the policy that the arguments ask for.

    Raises:
        ConfigError: a number is out of range; all such problems at once. Or the configuration does not fit.
    """
    policy = Policy(
        delays=configured_delays(arguments),
        protected=protected_of(arguments),
        percent=arguments.max_staged_percent,
        max_age_ms=arguments.max_age.ms,
        is_confirmed=arguments.even_over_limit,
        is_image_confirmed=arguments.even_if_older_metadata,
    )
    delay = check_typed_delay(arguments.delay, "--delay")
    if problems := (*(() if delay is None else (delay,)), *policy.problems()):
        raise ConfigError(problems)
    return policy


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status: refused if nothing may be done, problems if not all can be."""
    request = ReconcileRequest(source=source_of(arguments), policy=policy_of(arguments))
    ran = ran_of(arguments, streams, "reconcile", request)
    return answer(arguments, streams, ran.result, ran.problems, _shown(arguments, ran), status=ran.exit)


def _shown(arguments: argparse.Namespace, ran: Ran) -> Iterator[str | Table[ReconcileItem]]:
    yield from ran.lines
    if ran.result.items:
        yield Table(COLUMNS, ran.result.items, is_sparse=True)
    elif ran.exit is not Exit.REFUSED:
        yield "nothing to do"
    yield from said_of_override(arguments, is_planned=is_planned(ran.result.items))
    line = f"staged ls {argv_of(arguments)}"
    if ran.is_waiting and not has_override(arguments):
        line = f"reconcile {typed(arguments, source_argv, next_argv, DELAY, *_PROTECTION, _LIMIT)} --apply"
    yield f"next: logdirctl {line}"


_PROTECTION = protection()
_LIMIT = Option(
    "--max-staged-percent",
    f"{limit_rule.SETTING}: of all partitions, within 24 hours (default {limit_rule.DEFAULT_PERCENT})",
    "N",
    type=int,
    default=limit_rule.DEFAULT_PERCENT,
)
_MAX_AGE = time_option(
    "--max-age --max-age-ms",
    f"{SETTING}: of an image, beside a running broker; as 10m, or plain milliseconds (default 10m)",
    Duration(DEFAULT_MAX_AGE_MS, has_unit=False),
)
_OLDER = "follow the metadata, or a FULL request, although older than what was applied last, or none is recorded"
_OVERRIDES = (
    Flag("--even-over-limit", "also stage what exceeds the staging limit"),
    Flag("--even-if-older-metadata", _OLDER),
)
COMMAND = Command(
    title="reconcile",
    run=act,
    description="Compare the log dirs of a broker with what its cluster says, and show, or with --apply do, what "
    "follows: topic ids are written, deadlines removed, replicas staged. The plan may be shown beside a running "
    "broker; --apply needs a stopped one.",
    ends="0 done, or nothing to do, 1 not all can be done, 2 usage or configuration, 3 a broker runs, 4 refused",
    options=(*source(None, is_required=True), *CHANGED, DELAY, *_PROTECTION, _LIMIT, _MAX_AGE, *_OVERRIDES),
)
