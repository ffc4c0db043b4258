"""The staging limit: at most a tenth of a broker's partitions is staged within 24 hours unless an operator confirms
more.

All disks count together. One topic may always be staged. Staging all local replicas of a topic needs the stronger proof
that its id was removed, not only that a request did not name it. A copy of a live replica (reason *moved*) is no loss
and is not counted.

Each work root records how many were staged; the highest number is used. If a record is missing or unreadable, nothing
is staged without a confirmation. A number expires after 24 hours, and only while the kernel calls the clock
synchronised.

Not here: the file (``formats.own.staging_limit_file``), reading and writing it (``disk.record.staging_limit``).

Spec: design §2 law 1, §3.3; attacks A4, A38.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from logdir.clock import Instant
from logdir.decide.staged.deadline import UPTIME_BEFORE_CREDIT_MS
from logdir.errors import Problem
from logdir.evidence import Evidence, Proof, Removed
from logdir.formats.own.staging_limit_file import MAX_COUNTS, Count
from logdir.refusal_slug import Why

SETTING = "reconcile.max.staged.percent"
DEFAULT_PERCENT = 10
WINDOW_MS = 24 * 60 * 60 * 1000
STRONG = frozenset({
    Proof.METADATA_LOG, Proof.STOP_REPLICA, Proof.LIVE_CLUSTER, Proof.BROKER_DELETED, Proof.OPERATOR,
    Proof.IN_SYNC_ELSEWHERE,
})  # fmt: skip
"""Proofs that an id was removed. A FULL request only leaves it out (attacks A4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingVolume:
    """How much one decision would stage, by what evidence."""

    partitions: int
    topics: int
    live: int
    """Number of live replicas of the broker before it."""
    whole_topics: tuple[str, ...]
    """Topics without a live replica on this broker after it."""
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinLimit:
    """The staging may begin, after the record is durable in every work root."""

    record: tuple[Count, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitExceeded:
    """The staging waits until an operator confirms it."""

    problem: Problem
    record: tuple[Count, ...] | None
    """A changed record to write, so that counts without an instant begin to age; ``None``: write nothing."""


Verdict = WithinLimit | LimitExceeded


def is_strong(evidence: Evidence) -> bool:
    """Whether evidence shows by more than absence that an id was removed."""
    return isinstance(evidence, Removed) and evidence.proof in STRONG


def is_counted(evidence: Evidence) -> bool:
    """Whether the broker loses a replica by a staging with this evidence."""
    return not (isinstance(evidence, Removed) and evidence.proof is Proof.PUBLISHED_COPY)


def highest(records: Iterable[tuple[Count, ...] | None]) -> tuple[Count, ...] | None:
    """Return the record that holds for the broker.

    Args:
        records: The records of all its work roots; ``None`` for a missing or unreadable one.

    Returns:
        The highest count of each instant, in order, because a crash may leave a newer record in some work roots only.
        ``None`` if any record is ``None``, or there is none.
    """
    found: dict[tuple[int, int], Count] = {}
    seen = False
    for record in records:
        if record is None:
            return None
        seen = True
        repeated: dict[int, int] = {}
        for count in record:
            repeated[count.instant_ms] = repeated.get(count.instant_ms, 0) + 1
            key = (count.instant_ms, repeated[count.instant_ms])
            known = found.get(key, count)
            found[key] = Count(
                instant_ms=count.instant_ms,
                partitions=max(count.partitions, known.partitions),
                topics=max(count.topics, known.topics),
            )
    return tuple(found[key] for key in sorted(found)) if seen else None


def recent(record: Sequence[Count], now: Instant) -> tuple[Count, ...]:
    """Return the counts that have not expired.

    Args:
        record: All counts.
        now: The current instant.

    Returns:
        Counts of the last 24 hours. Without a trusted clock: all counts. With one: counts without an instant, or with a
        future one, get the current instant.
    """
    if not _is_trusted(now):
        return tuple(record)
    dated = (
        count if 0 < count.instant_ms <= now.wall_ms else replace(count, instant_ms=now.wall_ms) for count in record
    )
    return tuple(sorted(count for count in dated if now.wall_ms - count.instant_ms < WINDOW_MS))


def _is_trusted(now: Instant) -> bool:
    return now.is_synchronised and now.boottime_ms >= UPTIME_BEFORE_CREDIT_MS and now.wall_ms > 0


def _fitting(counts: Sequence[Count]) -> tuple[Count, ...]:
    """Merge the oldest counts under the instant of the youngest of them, so that the record fits its file."""
    excess = len(counts) - MAX_COUNTS
    if excess <= 0:
        return tuple(counts)
    old = counts[: excess + 1]
    one = Count(
        # 0 means no instant: a sum with such a count has none, either.
        instant_ms=0 if any(count.instant_ms == 0 for count in old) else max(count.instant_ms for count in old),
        partitions=sum(count.partitions for count in old),
        topics=sum(count.topics for count in old),
    )
    return (one, *counts[excess + 1 :])


def judge(
    volume: StagingVolume,
    record: tuple[Count, ...] | None,
    now: Instant,
    *,
    percent: int = DEFAULT_PERCENT,
    is_confirmed: bool = False,
) -> Verdict:
    """Decide whether a staging is within the limit.

    Args:
        volume: The planned staging.
        record: The stagings of the last 24 hours, as ``highest`` returned them.
        now: The current instant.
        percent: ``reconcile.max.staged.percent``, 0 to 100.
        is_confirmed: Whether an operator has confirmed it; then everything is allowed, and counted all the same.

    Returns:
        The record to write before the staging begins, or why the staging waits.
    """
    counted = () if record is None else recent(record, now)
    if not is_counted(volume.evidence) or volume.partitions == 0:
        return WithinLimit(record=_fitting(counted))
    new = Count(instant_ms=now.wall_ms if _is_trusted(now) else 0, partitions=volume.partitions, topics=volume.topics)
    if not is_confirmed:
        problem = _against(volume, record, counted, percent)
        if problem is not None:
            return LimitExceeded(problem=problem, record=None if record is None else _fitting(counted))
    return WithinLimit(record=_fitting(tuple(sorted((*counted, new)))))


def _against(
    volume: StagingVolume, record: tuple[Count, ...] | None, counted: tuple[Count, ...], percent: int
) -> Problem | None:
    fix = "check the plan, then add --even-over-limit"
    if record is None:
        return Problem(
            Why.STAGING_LIMIT_UNKNOWN.value,
            SETTING,
            "a staging-limit.json in every work root",
            "one that is missing or unreadable",
            fix,
        )
    if volume.whole_topics and not is_strong(volume.evidence):
        return Problem(
            Why.WHOLE_TOPIC_UNPROVEN.value,
            SETTING,
            "proof that the topic id was removed, as all local replicas of the topic would be staged",
            f"no proof for {', '.join(volume.whole_topics)}",
            fix,
        )
    before = sum(count.partitions for count in counted)
    # Replicas staged within the window were live at its start; without them the limit would shrink with each staging.
    allowed = (volume.live + before) * percent // 100
    is_one_topic = volume.topics + sum(count.topics for count in counted) <= 1
    if before + volume.partitions > allowed and not is_one_topic:
        return Problem(
            Why.OVER_STAGING_LIMIT.value,
            SETTING,
            f"at most {allowed} partitions staged within 24 hours ({percent} %), or one topic",
            f"{before} staged already, and {volume.partitions} more to stage",
            fix,
        )
    return None
