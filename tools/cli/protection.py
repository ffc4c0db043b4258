"""``--protect`` and ``--internal``: which topics a command is told to keep its hands off.

Not here: what follows for a protected topic (``logdir.decide.refusal``).

Spec: design §3.3; attacks A38.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdir.decide.refusal import INTERNAL
from logdir.text import quoted

if TYPE_CHECKING:
    import argparse


def add_protection(parser: Any, of: str = "topics that are refused") -> None:
    """Add both flags.

    Args:
        parser: Of the command.
        of: What ``--protect`` names, in its words.
    """
    parser.add_argument("--protect", metavar="GLOB", action="append", default=[], help=f"{of}; may be repeated")
    parser.add_flag("--internal", "also topics whose names begin with two underscores")


def protected_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the globs of the topics that are protected."""
    return (*arguments.protect, *(() if arguments.internal else (INTERNAL,)))


def protection_words(arguments: argparse.Namespace) -> str:
    """Return both as they were said, each behind a blank, for the next command to type."""
    words = "".join(f" --protect {quoted(glob)}" for glob in arguments.protect)
    return words + (" --internal" if arguments.internal else "")
