"""``--protect`` and ``--internal``: the topics whose replicas a command must not change.

Not here: what follows for a protected topic (``logdir.decide.refusal``).

Spec: design §3.3; attacks A38.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logdir.decide.refusal import INTERNAL
from tools.cli.option import Flag, Option

if TYPE_CHECKING:
    import argparse


def protected_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the globs of the topics that are protected."""
    return (*arguments.protect, *(() if arguments.internal else (INTERNAL,)))


def protection(of: str = "topics whose replicas are refused") -> tuple[Option, Option]:
    """Return ``--protect`` and ``--internal``; ``of`` is, for the help, the topics that ``--protect`` names."""
    text = f"{of}; may be repeated"
    return (
        Option("--protect", text, "GLOB", is_repeated=True, field="protected", value=protected_of),
        Flag("--internal", "do not protect topics whose names begin with two underscores"),
    )
