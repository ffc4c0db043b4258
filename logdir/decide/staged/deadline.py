"""Deadlines of staged replicas: never early; late only by time that no trusted clock covers.

The delay is a minimum, counted from durable staging. Within one boot only boot time counts. Of a later boot the time
counts from its first heartbeat to its last one: before that the disk may have been in another host. The gap between the
last heartbeat of one boot and the first one of the next is credited once, by the wall clock, if the clock was steady at
both ends of the gap: synchronised, and in step with boot time for five minutes. No gap is credited in the first 15
minutes of uptime, when the clock may still be wrong because of a dead battery. Unknown time alone never holds a replica
for ever, as long as heartbeats are written: without a daemon time counts from the first command of a boot to its last.

If a boot id repeats, or boot time runs backwards (a machine restored from an older image, a container host with one id
for ever), only the time beyond everything counted earlier under that id counts.

Not here: the clocks (``clock``), other reasons against a purge (``purge``, ``purge_recheck``).

Spec: design §3.3; attacks A24, A25; KIP-516, ``delete.topic.delay.ms``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from logdir.clock import Instant
from logdir.errors import ConfigError, Problem
from logdir.formats.duration import Duration
from logdir.formats.own.heartbeat_file import MAX_BOOTS, Boot, Heartbeat, Steady
from logdir.formats.own.replica_marker import Intent, ReplicaMarker

DEFAULT_DELAY_MS = 4 * 60 * 60 * 1000
SETTING = "delete.topic.delay.ms"
HIGHEST_DELAY_MS = 2**63 - 1
"""The highest number that a marker is read with."""
LOOKS_LIKE_SECONDS = range(1, 24 * 60 * 60)
"""KIP-516 itself writes "14400 (4 hours)": such a value was most likely meant in seconds."""
UPTIME_BEFORE_CREDIT_MS = 15 * 60 * 1000
STEADY_MS = 5 * 60 * 1000
CLOCK_ERROR_MS = 2 * 16 * 1000
"""The kernel calls a clock synchronised that is wrong by up to 16 s; a gap has two ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayPolicy:
    """``delete.topic.delay.ms``, by topic."""

    default_ms: int = DEFAULT_DELAY_MS
    """The delay of a topic that no pattern matches."""
    patterns: tuple[tuple[str, int], ...] = ()
    """Topic glob and delay; if several match, the longest delay counts, because the delay is a minimum."""

    def delay_ms(self, topic: str) -> int:
        """Return the delay of a topic in milliseconds."""
        return max((delay for glob, delay in self.patterns if fnmatchcase(topic, glob)), default=self.default_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """The deadline has passed: the replica may be purged."""

    elapsed_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """The deadline has not passed."""

    remaining_ms: int
    at_earliest_wall_ms: int
    """For people: the wall clock may be wrong, and a reboot may delay it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The replica has no deadline; time alone never makes it due."""

    why: str


Verdict = Due | NotYet | Held


def check_delay(delay_ms: int, setting: str = SETTING) -> Problem | None:
    """Return the warning about a suspicious delay; ``None`` if there is none.

    Args:
        delay_ms: The value that the operator set.
        setting: The name of the setting.
    """
    if delay_ms < 0:
        return Problem("config-error", setting, "0 or more milliseconds", str(delay_ms))
    if delay_ms in LOOKS_LIKE_SECONDS:
        seconds = delay_ms * 1000
        return Problem(
            "config-error",
            setting,
            "milliseconds",
            f"{delay_ms}",
            f"milliseconds? that is less than 87 s; if {delay_ms} seconds are meant, set {seconds}",
        )
    return None


def check_typed_delay(given: Duration, setting: str) -> Problem | None:
    """Return the problem of a delay as an operator typed it: negative, or without a unit and maybe meant in seconds.

    Args:
        given: The delay; one with a unit is never taken for seconds.
        setting: What it was typed for.
    """
    problem = check_delay(given.ms, setting)
    if problem is None or given.ms not in LOOKS_LIKE_SECONDS:
        return problem
    return (
        None if given.has_unit else problem._replace(fix=f"milliseconds? type the unit: {given.ms}ms, or {given.ms}s")
    )


def require_delays(policy: DelayPolicy) -> None:
    """Check that a marker can hold every delay of a policy.

    Raises:
        ConfigError: a delay is negative, or has more than 63 bits; every such delay is a problem.
    """
    delays = [(policy.default_ms, SETTING), *((delay, f"{SETTING} of {glob}") for glob, delay in policy.patterns)]
    expected = f"0 to {HIGHEST_DELAY_MS} milliseconds"
    wrong = [(delay, setting) for delay, setting in delays if not 0 <= delay <= HIGHEST_DELAY_MS]
    if wrong:
        raise ConfigError(tuple(Problem("config-error", setting, expected, str(delay)) for delay, setting in wrong))


def check_policy(policy: DelayPolicy) -> tuple[Problem, ...]:
    """Return the warnings about the delays of a policy, in their order."""
    found = [check_delay(policy.default_ms)]
    found += [check_delay(delay, f"{SETTING} of {glob}") for glob, delay in policy.patterns]
    return tuple(problem for problem in found if problem is not None)


def begin(now: Instant) -> Heartbeat:
    """Return the first heartbeat of a work root, or of one that lost its heartbeat."""
    return Heartbeat(boots=(_first(now),), wall_ms=max(0, now.wall_ms), steady=_steady(None, now), gap_from_ms=None)


def beat(heartbeat: Heartbeat, now: Instant) -> Heartbeat:
    """Advance a heartbeat to an instant.

    The caller writes it before anything is staged in a boot: a replica staged in a boot without a heartbeat only counts
    time of the current boot.

    Args:
        heartbeat: The heartbeat as read.
        now: A later instant, or one of another boot.
    """
    *before, last = heartbeat.boots
    wall_ms = max(0, now.wall_ms)
    if last.boot_id != now.boot_id or now.boottime_ms < last.seen_ms:
        new = _first(now)
        return Heartbeat(
            boots=(*heartbeat.boots, new)[-MAX_BOOTS:],
            wall_ms=wall_ms,
            steady=_steady(None, now),
            gap_from_ms=heartbeat.wall_ms if _is_steady(heartbeat.steady, last.seen_ms) else None,
        )
    steady = _steady(heartbeat.steady, now)
    credited_ms, gap_from_ms = last.credited_ms, heartbeat.gap_from_ms
    is_up_long = now.boottime_ms >= UPTIME_BEFORE_CREDIT_MS
    if gap_from_ms is not None and is_up_long and _is_steady(steady, now.boottime_ms):
        first_wall_ms = wall_ms - (now.boottime_ms - last.from_ms)
        credited_ms = max(0, first_wall_ms - gap_from_ms - CLOCK_ERROR_MS)
        gap_from_ms = None
    return Heartbeat(
        boots=(*before, replace(last, seen_ms=now.boottime_ms, credited_ms=credited_ms)),
        wall_ms=wall_ms,
        steady=steady,
        gap_from_ms=gap_from_ms,
    )


def _first(now: Instant) -> Boot:
    """Return a boot at its first heartbeat: none of its time until now counts."""
    return Boot(boot_id=now.boot_id, seen_ms=now.boottime_ms, credited_ms=0, from_ms=now.boottime_ms)


def _steady(known: Steady | None, now: Instant) -> Steady | None:
    """Return since when the wall clock has been steady; ``None``: it is not synchronised."""
    if not now.is_synchronised or now.wall_ms < 0:
        return None
    if known is not None:
        away_ms = (now.wall_ms - known.wall_ms) - (now.boottime_ms - known.boottime_ms)
        if abs(away_ms) <= CLOCK_ERROR_MS:
            return known
    return Steady(boottime_ms=now.boottime_ms, wall_ms=now.wall_ms)


def _is_steady(steady: Steady | None, boottime_ms: int) -> bool:
    return steady is not None and boottime_ms - steady.boottime_ms >= STEADY_MS


def elapsed_ms(boot_id: str, boottime_ms: int, heartbeat: Heartbeat, now: Instant) -> int:
    """Return the time since an earlier instant, counting only time that is certain.

    Args:
        boot_id: Boot id of the earlier instant.
        boottime_ms: Boot time of the earlier instant.
        heartbeat: Heartbeat of its disk.
        now: The current instant.

    Returns:
        Milliseconds; below 0 if the earlier instant lies after ``now`` in the same boot.
    """
    boots = beat(heartbeat, now).boots
    at = next((number for number in reversed(range(len(boots))) if boots[number].boot_id == boot_id), None)
    if at is None:
        # A boot before the list, or one without a heartbeat: only the current boot is certainly later.
        return _counted(boots)[-1]
    if at == len(boots) - 1:
        return now.boottime_ms - boottime_ms
    counted = _counted(boots)
    after = sum(counted[number] + boots[number].credited_ms for number in range(at + 1, len(boots)))
    return boots[at].seen_ms - boottime_ms + after


def _counted(boots: tuple[Boot, ...]) -> list[int]:
    """Return the time that each boot counts: from its first heartbeat on, and not earlier under the same id."""
    highest: dict[str, int] = {}
    counted = []
    for boot in boots:
        known = highest.get(boot.boot_id, 0)
        counted.append(max(0, boot.seen_ms - max(known, boot.from_ms)))
        highest[boot.boot_id] = max(known, boot.seen_ms)
    return counted


def due(marker: ReplicaMarker, heartbeat: Heartbeat | None, now: Instant) -> Verdict:
    """Decide whether a staged replica may be purged.

    Args:
        marker: Its marker, just read.
        heartbeat: Heartbeat of its work root; ``None`` if it is missing or unreadable.
        now: The current instant.
    """
    if marker.intent is Intent.INCOMING:
        return Held(why="it is an incoming replica, not a staged one")
    if marker.delay_ms is None:
        return Held(why="it has no deadline; an operator decides")
    if heartbeat is None:
        return Held(why="the heartbeat of its work root is missing or cannot be read")
    elapsed = elapsed_ms(marker.boot_id, marker.boottime_ms, heartbeat, now)
    remaining = marker.delay_ms - elapsed
    if remaining <= 0:
        return Due(elapsed_ms=elapsed)
    return NotYet(remaining_ms=remaining, at_earliest_wall_ms=now.wall_ms + remaining)
