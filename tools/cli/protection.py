"""``--protect`` and ``--internal``: the topics whose replicas a command must not change.

Not here: what follows for a protected topic (``logdir.decide.refusal``).

Spec: design §3.3; attacks A38.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdir.decide.refusal import INTERNAL
from logdir.text import quoted

if TYPE_CHECKING:
    import argparse


def add_protection(parser: Any, of: str = "topics whose replicas are refused") -> None:
    """Add ``--protect`` and ``--internal``.

    Args:
        parser: Of the command.
        of: The topics that ``--protect`` names, for the help text.
    """
    parser.add_argument("--protect", metavar="GLOB", action="append", default=[], help=f"{of}; may be repeated")
    parser.add_flag("--internal", "do not protect topics whose names begin with two underscores")


def protected_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the globs of the topics that are protected."""
    return (*arguments.protect, *(() if arguments.internal else (INTERNAL,)))


def protection_words(arguments: argparse.Namespace) -> str:
    """Return ``--protect`` and ``--internal`` as typed, each after a blank, for the next command to type."""
    words = "".join(f" --protect {quoted(glob)}" for glob in arguments.protect)
    return words + (" --internal" if arguments.internal else "")
