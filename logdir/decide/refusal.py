"""Why a decider does not do with a replica what was asked: one enumeration for all of them.

Spec: design §2 law 8, §3.3, §4; attacks A1, A3, A4, A13, A15, A25, A33, A44, A46.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase

from logdir.errors import Problem
from logdir.formats.own.replica_marker import BY_HAND
from logdir.observe.classify import META_PROPERTIES
from logdir.observe.facts import LogDirFacts, Replica

FINISH_MOVE = "let the broker finish the move, or cancel it with kafka-reassign-partitions, then try again"
"""What to do about a ``-future`` directory."""
CHOOSE = "look at each, then choose one: logdirctl staged ls has their names, for --name and --disk of a restore"
"""What to do about several staged copies."""
INTERNAL = "__*"
"""Topics in which brokers keep what all clients rely on."""
_UNTOUCHED_FIXES = {
    "symlink": "a broker follows the link, and no command changes it: stop the broker, move the directory itself here",
    "mount-point": "no replica is renamed across mounts: with the broker stopped, unmount it, or leave it as it is",
    "unreadable": "run as the broker's user, and look at the disk it lies on",
}
UNTOUCHED = frozenset(_UNTOUCHED_FIXES)
"""Problems of a live replica that is never touched (A44)."""


class Why(Enum):
    """What speaks against it."""

    NOT_THERE = "not-there"
    METADATA_LOG = "metadata-log"
    PROTECTED = "protected"
    FUTURE = "future"
    """A ``-future`` directory would be promoted over it or bring it back (A13)."""
    NOT_OURS_TO_TOUCH = "not-ours-to-touch"
    """A link, a mount point, or not readable (A44)."""
    HELD = "held"
    """Something in it is no regular file, or its marker is not to be used."""
    NO_NAME = "no-name"
    """Nothing says its topic."""
    NO_EVIDENCE = "no-evidence"
    WANTED = "wanted"
    NO_PROOF = "no-proof"
    """A deadline without proof of removal."""
    CHECKPOINT = "checkpoint"
    UNREADABLE_LOG_DIR = "unreadable-log-dir"
    CLOSED = "closed"
    """Its disk failed a sync in this boot, or was away while the others lived on (A25)."""
    NAME_TOO_LONG = "name-too-long"
    """What it would be called when staged is longer than a file system takes."""
    PURGING = "purging"
    FOREIGN = "foreign"
    NOT_FORMATTED = "not-formatted"
    """Its log dir names neither cluster nor node."""
    LIVE_TWIN = "live-twin"
    ON_ITS_WAY = "on-its-way"
    CHOICE = "choice"
    OTHER_CLASS = "other-class"
    OTHER_LAYOUT = "other-layout"
    NOT_DUE = "not-due"
    TOO_YOUNG = "too-young"
    """The image is not surely younger than the directory (A1)."""
    LAST_COPY = "last-copy"
    """It may be the only one left of what was committed (A46)."""
    CONFLICT = "conflict"
    """What lies there and what the cluster says contradict each other: a person has to look."""
    LAST_IN_SYNC = "last-in-sync"
    """No other broker is in its ISR: the next start would serve an empty replica (A48)."""
    ASSIGNMENT_UNKNOWN = "assignment-unknown"
    """Nothing says whether the cluster still assigns it here (A47, A48)."""
    TOPIC_GONE = "topic-gone"
    """Its topic id was removed: a broker would erase it, or call it stray (A47)."""
    NOT_ASSIGNED_HERE = "not-assigned-here"
    """Its partition belongs to other nodes now (A47)."""
    STILL_ASSIGNED = "still-assigned"
    """Its removal waits for a live replica in the ISR (A48)."""
    KEPT_FOR_LAST = "kept-for-last"
    """It was staged as the only in-sync replica, or with nothing known (A48)."""
    LOW_SPACE = "low-space"
    """The disk is nearly full, and a capture keeps the space that the broker would free."""
    STALE = "stale"
    """It was asked for by an id that was staged here before (A3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One item that is not done."""

    log_dir: str
    path: str
    """Of the item that is refused: relative to the log dir or its work root."""
    why: Why
    problem: Problem
    """The line to print; its path may lead to what is in the way within the item."""


def _joined(log_dir: str, path: str) -> str:
    """Return an absolute path; the log dir's own where ``path`` is empty."""
    return f"{log_dir}/{path}" if path else log_dir


def refuse(log_dir: str, path: str, why: Why, expected: str, found: str, fix: str = "") -> Refusal:
    """Return a refusal with its line."""
    return Refusal(
        log_dir=log_dir, path=path, why=why, problem=Problem("refused", _joined(log_dir, path), expected, found, fix)
    )


def refuse_marker(log_dir: str, path: str, problem: Problem | None) -> Refusal:
    """Return the refusal of something staged whose marker cannot be used.

    Args:
        log_dir: As configured.
        path: Relative to the work root.
        problem: Of the marker; ``None`` where there is none.
    """
    if problem is None:
        return refuse(log_dir, path, Why.HELD, "a marker", "none", BY_HAND)
    return refuse(log_dir, path, Why.HELD, problem.expected, problem.found, problem.fix or BY_HAND)


def refuse_untouched(replica: Replica) -> Refusal | None:
    """Return the refusal of anything with a live replica that is a link, a mount point or unreadable, else ``None``."""
    problem = untouched_problem(replica.log_dir, replica.path, replica.problems)
    if problem is None:
        return None
    problem = problem._replace(slug="refused")
    return Refusal(log_dir=replica.log_dir, path=replica.path, why=Why.NOT_OURS_TO_TOUCH, problem=problem)


def untouched_problem(log_dir: str, path: str, problems: Collection[str]) -> Problem | None:
    """Return the line of a live replica that is a link, a mount point or unreadable, else ``None``.

    Args:
        log_dir: As configured.
        path: Of the replica, relative to it.
        problems: As in an inventory.
    """
    found = sorted(UNTOUCHED.intersection(problems))
    if not found:
        return None
    fix = "; ".join(_UNTOUCHED_FIXES[slug] for slug in found)
    expected = "a directory of the log dir itself that can be read"
    return Problem(found[0], f"{log_dir}/{path}", expected, ", ".join(found), fix)


def at(place: str, refusal: Refusal) -> Refusal:
    """Return a refusal of something staged, with the path where it lies: its work root may be beside the log dir.

    Args:
        place: ``StagedReplica.place``.
        refusal: As ``refuse`` makes it of a log dir and a path; one whose line names another file stays as it is.
    """
    if refusal.problem.path != f"{refusal.log_dir}/{refusal.path}":
        return refusal
    return replace(refusal, problem=refusal.problem._replace(path=place))


def refuse_as(log_dir: str, path: str, why: Why, expected: str, found: str, fix: str = "") -> Refusal:
    """Return a refusal whose line begins with a slug of its own."""
    return Refusal(
        log_dir=log_dir, path=path, why=why, problem=Problem(why.value, _joined(log_dir, path), expected, found, fix)
    )


def refuse_quarantined(log_dir: str, path: str, quarantined: Problem | None) -> Refusal | None:
    """Return the refusal of anything on a disk of which nothing may be changed; ``None`` if it may."""
    if quarantined is None:
        return None
    return Refusal(
        log_dir=log_dir, path=path, why=Why.CLOSED, problem=quarantined._replace(path=_joined(log_dir, path))
    )


def not_formatted(one: LogDirFacts) -> Problem | None:
    """Return the line of a log dir that can be read and names neither cluster nor node, else ``None``."""
    if one.problem is not None or one.cluster_id is not None or one.node_id is not None:
        return None
    return Problem(
        Why.NOT_FORMATTED.value,
        f"{one.log_dir}/{META_PROPERTIES}",
        "a file that names cluster and node",
        "no such file, or one that names neither: no broker starts on it",
        "kafka-storage format, or mount the right disk",
    )


def refuse_protected(log_dir: str, path: str, topic: str, patterns: Sequence[str]) -> Refusal:
    """Return the refusal of a topic that ``is_protected``, with the option that lifts it or causes it."""
    found = [pattern for pattern in patterns if fnmatchcase(topic, pattern)]
    fixes = ["--internal lets internal topics through"] if INTERNAL in found else []
    if others := [pattern for pattern in found if pattern != INTERNAL]:
        fixes.append(f"--protect {' and '.join(others)} keeps it")
    return refuse(log_dir, path, Why.PROTECTED, "a topic that is not protected", topic, ", and ".join(fixes))


def is_protected(topic: str, patterns: Sequence[str]) -> bool:
    """Whether a topic is one that nothing automatic or careless may touch; patterns are globs."""
    return any(fnmatchcase(topic, pattern) for pattern in patterns)
