"""Refusals: why a decision leaves a replica unchanged; one type for all deciders.

Spec: design §2 law 8, §3.3, §4; attacks A1, A3, A4, A13, A15, A25, A33, A44, A46.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from logdir.errors import Problem
from logdir.formats.own.replica_marker import BY_HAND
from logdir.observe.facts import LogDirFacts, Replica
from logdir.paths import META_PROPERTIES
from logdir.refusal_slug import Why

FINISH_MOVE = "let the broker finish the move, or cancel it with kafka-reassign-partitions, then try again"
"""Fix for a ``-future`` directory."""
READ_ONLY = "no command changes it: name a topic instead"
"""Fix for the metadata log of the quorum."""
FINISH_COPY = "finish the capture or adoption that makes the copy"
"""Fix for an incoming copy."""
CHOOSE = "look at each, then choose one: logdirctl staged ls has their names, for --name and --disk of a restore"
"""Fix for a restore that several staged copies match."""
INTERNAL = "__*"
"""Topics in which brokers keep data that all clients rely on."""
_UNTOUCHED_FIXES = {
    "symlink": "a broker follows the link, and no command changes it: stop the broker, move the directory itself here",
    "mount-point": "no replica is renamed across mounts: with the broker stopped, unmount it, or leave it as it is",
    "unreadable": "run as the broker's user, and look at the disk it lies on",
}
_UNTOUCHED_FOUND = {
    "symlink": "a symbolic link",
    "mount-point": "a mount point",
    "unreadable": "a directory that cannot be read",
}
"""What the slugs of ``_UNTOUCHED_FIXES`` say, in words."""
_OF_STAGED = (Why.FOREIGN_MARKER, Why.UNEXPECTED_ENTRY, Why.REPLICA_UNREADABLE)
"""Problems that ``observe`` may report for a staged replica apart from an unusable marker."""
UNTOUCHED = frozenset(_UNTOUCHED_FIXES)
"""Problems of a live replica that is never changed (A44)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One item that a decision leaves unchanged, and why."""

    log_dir: str
    path: str
    """Path of the refused item, relative to the log dir or its work root."""
    why: Why | None
    """The slug; ``None`` if the problem has the slug of a disk or of a metadata source."""
    problem: Problem
    """The problem to print; its path may name the obstacle inside the item."""


def _joined(log_dir: str, path: str) -> str:
    """Return an absolute path; the path of the log dir if ``path`` is empty."""
    return f"{log_dir}/{path}" if path else log_dir


def refuse(log_dir: str, path: str, why: Why, expected: str, found: str, fix: str) -> Refusal:
    """Return a refusal with its problem."""
    return Refusal(
        log_dir=log_dir, path=path, why=why, problem=Problem(why.value, _joined(log_dir, path), expected, found, fix)
    )


def refuse_marker(log_dir: str, path: str, problem: Problem | None) -> Refusal:
    """Return the refusal of a staged replica whose marker cannot be used.

    Args:
        log_dir: As configured.
        path: Relative to the work root.
        problem: The problem of the marker; ``None`` if there is no marker.
    """
    if problem is None:
        return refuse(log_dir, path, Why.MARKER_UNUSABLE, "a marker (replica.json)", "no marker", BY_HAND)
    why = next((why for why in _OF_STAGED if why.value == problem.slug), Why.MARKER_UNUSABLE)
    return refuse(log_dir, path, why, problem.expected, problem.found, problem.fix or BY_HAND)


def refuse_untouched(replica: Replica) -> Refusal | None:
    """Return the refusal of a live replica that is a link, a mount point or unreadable; ``None`` for any other."""
    problem = untouched_problem(replica.log_dir, replica.path, replica.problems)
    if problem is None:
        return None
    is_plain = {"symlink", "mount-point"}.isdisjoint(replica.problems)
    why = Why.REPLICA_UNREADABLE if is_plain else Why.NOT_A_PLAIN_DIRECTORY
    return Refusal(log_dir=replica.log_dir, path=replica.path, why=why, problem=problem._replace(slug=why.value))


def untouched_problem(log_dir: str, path: str, problems: Collection[str]) -> Problem | None:
    """Return the problem of a live replica that is a link, a mount point or unreadable; ``None`` for any other.

    Args:
        log_dir: As configured.
        path: Path of the replica, relative to the log dir.
        problems: Slugs of its problems, as in an inventory.
    """
    found = sorted(UNTOUCHED.intersection(problems))
    if not found:
        return None
    fix = "; ".join(_UNTOUCHED_FIXES[slug] for slug in found)
    expected = "a directory of the log dir itself that can be read"
    words = " and ".join(_UNTOUCHED_FOUND[slug] for slug in found)
    return Problem(found[0], f"{log_dir}/{path}", expected, words, fix)


def at(place: str, refusal: Refusal) -> Refusal:
    """Return a refusal of a staged replica with its real path, because the work root may lie beside the log dir.

    Args:
        place: ``StagedReplica.place``.
        refusal: A refusal from ``refuse`` with log dir and path; if its problem names another file, it is unchanged.
    """
    if refusal.problem.path != f"{refusal.log_dir}/{refusal.path}":
        return refusal
    return replace(refusal, problem=refusal.problem._replace(path=place))


def refuse_quarantined(log_dir: str, path: str, quarantined: Problem | None) -> Refusal | None:
    """Return the refusal of an item on a quarantined disk; ``None`` if the disk may be changed."""
    if quarantined is None:
        return None
    return Refusal(log_dir=log_dir, path=path, why=None, problem=quarantined._replace(path=_joined(log_dir, path)))


def not_formatted(one: LogDirFacts) -> Problem | None:
    """Return the problem of a readable log dir without cluster id and node id; ``None`` for any other."""
    if one.problem is not None or one.cluster_id is not None or one.node_id is not None:
        return None
    return Problem(
        Why.NOT_FORMATTED.value,
        f"{one.log_dir}/{META_PROPERTIES}",
        "a file that names cluster and node",
        "no such file, or one that names neither: no broker starts on it",
        "mount the right disk; format a new one with kafka-storage format",
    )


def refuse_protected(log_dir: str, path: str, topic: str, patterns: Sequence[str]) -> Refusal:
    """Return the refusal of a protected topic, with the option that protects it or overrides that."""
    found = [pattern for pattern in patterns if fnmatchcase(topic, pattern)]
    fixes = ["--internal lets internal topics through"] if INTERNAL in found else []
    if others := [pattern for pattern in found if pattern != INTERNAL]:
        fixes.append(f"--protect {' and '.join(others)} keeps it")
    which = f"the topic {topic}"
    return refuse(log_dir, path, Why.TOPIC_PROTECTED, "a topic that is not protected", which, ", and ".join(fixes))


def is_protected(topic: str, patterns: Sequence[str]) -> bool:
    """Whether a topic is protected from automatic and careless changes; patterns are globs."""
    return any(fnmatchcase(topic, pattern) for pattern in patterns)
