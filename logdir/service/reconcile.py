"""Compare the log dirs of a broker with its cluster metadata, and decide what to do.

Not here: the rules (``logdir.decide``), carrying out the plan (``batch.reconcile_apply``).

Spec: design §2 laws 1, 4, §4, §6; KIP-516, "LeaderAndIsr", "Deletion", "Migration"; attacks A1, A3, A22, A29, A38, A43.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from logdir.decide import staging_limit as limit_rule
from logdir.decide.image.document import DocumentPlan
from logdir.decide.image.position import highest, readable
from logdir.decide.image.trust import DEFAULT_MAX_AGE_MS
from logdir.decide.reconcile import ReconcilePlan, ReconcileRequest, plan_reconcile
from logdir.decide.staged.deadline import DelayPolicy
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.record import controller, staging_limit
from logdir.errors import ConfigError, Problem
from logdir.observe.facts import LogDirFacts
from logdir.service.cluster.ends import read_with_ends
from logdir.service.cluster.followed import plan_followed
from logdir.service.cluster.image_source import Desired, against_blank, in_doubt
from logdir.service.cluster.source import SourceRequest, parse_uri
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.ports import metadata_path
from logdir.worker.look import NOTHING, Deep


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The actions and refusals that follow from an image for the log dirs as one scan found them."""

    plan: ReconcilePlan | None
    """``None`` for a request document that is refused, or was applied before."""
    document: DocumentPlan | None
    """The plan of a request document; ``None``: the source is no request document."""

    @property
    def has_actions(self) -> bool:
        """Whether anything would be done."""
        return self.plan is not None and bool(self.plan.actions)

    @property
    def is_followed(self) -> bool:
        """Whether there is a plan that is not refused as a whole, so that it can be carried out."""
        return self.plan is not None and self.refused is None

    @property
    def refused(self) -> Problem | None:
        """Return why the source is refused as a whole; ``None`` if it is not."""
        if self.plan is not None:
            return self.plan.refused
        return None if self.document is None else self.document.problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The operator's options beside the source."""

    delays: DelayPolicy = field(default_factory=DelayPolicy)
    """How long the replicas stay staged."""
    protected: tuple[str, ...] = ()
    """Globs of topics that must not be changed."""
    percent: int = limit_rule.DEFAULT_PERCENT
    """The staging limit, in percent of the broker's partitions."""
    max_age_ms: int = DEFAULT_MAX_AGE_MS
    """How old the cluster metadata may be while a broker runs."""
    is_confirmed: bool = False
    """Whether more than the staging limit may be staged (``--even-over-limit``)."""
    is_image_confirmed: bool = False
    """Whether the metadata, or a FULL request, may be older than the last applied (``--even-if-older-metadata``)."""

    def problems(self) -> tuple[Problem, ...]:
        """Return a problem for each number that is out of its range."""
        found = []
        if self.percent not in range(101):
            expected = "a whole number of 0 to 100"
            found.append(Problem("config-error", "--max-staged-percent", expected, str(self.percent)))
        if self.max_age_ms < 0:
            found.append(Problem("config-error", "--max-age", "0 or more", str(self.max_age_ms)))
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilePlanned:
    """The plan of ``logdirctl reconcile``: the image of the cluster, and what follows from it for the log dirs."""

    desired: Desired
    decided: Decided

    @property
    def is_farther(self) -> bool:
        """Whether carrying it out advances the last applied position, even if there is no action."""
        plan, last_applied = self.decided.plan, self.desired.last_applied
        if plan is None or plan.last_applied is None or plan.last_applied == last_applied:
            return False
        # Of a request only where nothing of it is left out.
        return self.desired.document is None or plan.is_whole


def plan(broker: OpenBroker, source: SourceRequest, policy: Policy, *, is_stopped: bool) -> ReconcilePlanned:
    """Scan a broker, read its cluster metadata, and decide; changes nothing.

    Args:
        broker: The broker, opened; before a change crash recovery has run.
        source: The source of the cluster metadata.
        policy: The operator's options.
        is_stopped: Whether it is certain that no broker runs.

    Raises:
        ConfigError: the source is invalid, or it is not known how far its metadata log is committed.
        LogDirError: the source cannot be read.
    """
    running = False if is_stopped else broker.ports.is_running()
    records = broker.on_all(controller.read_records)
    facts = broker.look(NOTHING)
    now_ms = max(0, read_instant().wall_ms)
    desired = broker.ports.apart(
        metadata_path(broker.named, parse_uri(source.uri).path),
        read_with_ends,
        source,
        broker.named,
        facts,
        highest(records),
        readable=readable(records),
        now_ms=now_ms,
        is_broker_running=running,
    )
    blank = against_blank(desired.image)
    if blank is not None:
        raise ConfigError((blank,))
    doubtful = {replica.path for replica in in_doubt(desired.image, facts)}
    if doubtful:
        facts = broker.look(Deep(paths=frozenset(doubtful)))
    return ReconcilePlanned(desired=desired, decided=decide(broker, desired, policy, facts, is_counted=False))


def decide(
    broker: OpenBroker,
    desired: Desired,
    policy: Policy,
    facts: Sequence[LogDirFacts],
    *,
    is_counted: bool,
) -> Decided:
    """Decide what to do; reads creation times of directories, and changes nothing.

    Args:
        broker: The broker, opened.
        desired: The cluster metadata.
        policy: The operator's options.
        facts: Facts of every log dir, with replicas in doubt opened.
        is_counted: Whether the staging limit has already approved and counted all of these actions.
    """
    request = ReconcileRequest(
        image=desired.image,
        beyond=desired.beyond,
        now=read_instant(),
        host_context=desired.host_context(
            max_age_ms=policy.max_age_ms, is_position_confirmed=policy.is_image_confirmed
        ),
        births=broker.births_of(in_doubt(desired.image, facts)),
        delays=policy.delays,
        protected=policy.protected,
        record=limit_rule.highest(broker.on_all(staging_limit.read_records)),
        percent=policy.percent,
        is_confirmed=policy.is_confirmed or is_counted,
    )
    document = plan_followed(desired, request, facts)
    if document is None:
        return Decided(plan=plan_reconcile(request, facts), document=None)
    return Decided(plan=document.plan, document=document)
