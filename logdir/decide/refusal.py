"""Why a decider does not do with a replica what was asked: one enumeration for all of them.

Spec: design §2 law 8, §3.3; attacks A4, A13, A15, A25, A33, A44.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

from logdir.errors import Problem


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
    PURGING = "purging"
    FOREIGN = "foreign"
    LIVE_TWIN = "live-twin"
    ON_ITS_WAY = "on-its-way"
    CHOICE = "choice"
    OTHER_CLASS = "other-class"
    OTHER_LAYOUT = "other-layout"
    NOT_DUE = "not-due"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One item that is not done."""

    log_dir: str
    path: str
    """Relative to the log dir, or the name under ``deleting/``."""
    why: Why
    problem: Problem
    """The line to print."""


def refuse(log_dir: str, path: str, why: Why, expected: str, found: str, fix: str = "") -> Refusal:
    """Return a refusal with its line."""
    return Refusal(
        log_dir=log_dir, path=path, why=why, problem=Problem("refused", f"{log_dir}/{path}", expected, found, fix)
    )


def is_protected(topic: str, patterns: Sequence[str]) -> bool:
    """Whether a topic is one that nothing automatic or careless may touch; patterns are globs."""
    return any(fnmatchcase(topic, pattern) for pattern in patterns)
