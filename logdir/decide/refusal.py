"""Why a decider does not do with a replica what was asked: one enumeration for all of them.

Spec: design §2 law 8, §3.3, §4; attacks A1, A3, A4, A13, A15, A25, A33, A44, A46.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase

from logdir.errors import Problem

FINISH_MOVE = "let the broker finish the move, or cancel it with kafka-reassign-partitions, then try again"
"""What to do about a ``-future`` directory."""
LOOK_AT_IT = "run as the owner of the log dirs, and look at the disk it lies on"
"""What to do about a directory that cannot be read."""


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
    """What it would be called when set aside is longer than a file system takes."""
    PURGING = "purging"
    FOREIGN = "foreign"
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
    STALE = "stale"
    """It was asked for by an id that was set aside here before (A3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One item that is not done."""

    log_dir: str
    path: str
    """Of the item that is refused: relative to the log dir, or the name under ``deleting/``."""
    why: Why
    problem: Problem
    """The line to print; its path may lead to what is in the way within the item."""


def refuse(log_dir: str, path: str, why: Why, expected: str, found: str, fix: str = "") -> Refusal:
    """Return a refusal with its line."""
    return Refusal(
        log_dir=log_dir, path=path, why=why, problem=Problem("refused", f"{log_dir}/{path}", expected, found, fix)
    )


def at(place: str, refusal: Refusal) -> Refusal:
    """Return a refusal of something staged, with the path where it lies: its work root may be beside the log dir.

    Args:
        place: ``SetAside.place``.
        refusal: As ``refuse`` makes it of a log dir and a path; one whose line names another file stays as it is.
    """
    if refusal.problem.path != f"{refusal.log_dir}/{refusal.path}":
        return refusal
    return replace(refusal, problem=refusal.problem._replace(path=place))


def refuse_as(log_dir: str, path: str, why: Why, expected: str, found: str, fix: str = "") -> Refusal:
    """Return a refusal whose line begins with a slug of its own."""
    return Refusal(
        log_dir=log_dir, path=path, why=why, problem=Problem(why.value, f"{log_dir}/{path}", expected, found, fix)
    )


def refuse_closed(log_dir: str, path: str, closed: Problem | None) -> Refusal | None:
    """Return the refusal of anything on a disk of which nothing may be changed; ``None`` if it may."""
    if closed is None:
        return None
    return Refusal(log_dir=log_dir, path=path, why=Why.CLOSED, problem=closed._replace(path=f"{log_dir}/{path}"))


def is_protected(topic: str, patterns: Sequence[str]) -> bool:
    """Whether a topic is one that nothing automatic or careless may touch; patterns are globs."""
    return any(fnmatchcase(topic, pattern) for pattern in patterns)
