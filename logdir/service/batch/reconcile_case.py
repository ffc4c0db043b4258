"""The use case *reconcile* as one call, for ``logdirctl`` and the daemon alike.

Not here: deciding what follows (``service.reconcile``), carrying it out (``reconcile_apply``).

Spec: design §4, §5 "A use case".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from logdir.decide.staged.deadline import require_delays
from logdir.errors import ConfigError
from logdir.service import reconcile
from logdir.service.batch import reconcile_apply
from logdir.service.cluster.source import SourceRequest, parse_uri, quorum_word
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.reconcile import Policy
from logdir.service.report.exit_status import Exit
from logdir.service.report.reconcile_result import rests_on, result_of
from logdir.service.report.reporter import Reporter
from logdir.service.report.use_case import Ran


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileRequest:
    """A request to compare a broker with a source of cluster metadata."""

    source: SourceRequest
    """The source of cluster metadata that is followed."""
    policy: Policy = field(default_factory=Policy)
    """The operator's options beside the source."""

    def require_valid(self) -> None:
        """Check that source and policy are valid. Raises ``ConfigError``."""
        if problems := self.policy.problems():
            raise ConfigError(problems)
        require_delays(self.policy.delays)
        parse_uri(self.source.uri)
        quorum_word(self.source)


def run(broker: OpenBroker, asked: ReconcileRequest, *, is_applied: bool, reporter: Reporter) -> Ran:
    """Decide what follows from the source, and, if it is to be applied, do it.

    Args:
        broker: The broker, opened.
        asked: The request.
        is_applied: Whether to do it; that needs Kafka's locks.
        reporter: Receives progress, and each scheduled loss of data.

    Raises:
        LogDirError: as ``OpenBroker.recover``, ``reconcile.plan`` and ``reconcile_apply.apply``.
    """
    if is_applied:
        broker.recover()
    shown = reconcile.plan(broker, asked.source, asked.policy, is_stopped=is_applied)
    decided = shown.decided
    rows, problems, is_done = None, broker.notes, False
    if is_applied and decided.is_followed:
        done = reconcile_apply.apply(broker, shown.desired, asked.policy, decided, reporter)
        decided, rows, is_done = done.decided, done.rows, done.has_changed
        problems = [*broker.notes, *done.problems]
    result = result_of(shown.desired, decided, rows, problems, is_applied=is_applied)
    # What the staging limit holds back would be refused again.
    plan = decided.plan
    is_farther = shown.is_farther and not is_applied
    has_more = plan is not None and plan.over_limit is None and (bool(plan.actions) or is_farther)
    return Ran(
        exit=Exit.REFUSED if result.is_refused else Exit.DONE if result.is_done else Exit.PROBLEMS,
        problems=result.problems,
        result=result,
        lines=(rests_on(shown.desired, decided),),
        is_waiting=has_more and not is_done,
    )
