"""The arguments by which a command names a broker, and what an operator says of its disks.

Not here: opening its log dirs (``logdir.service.log_dirs.open_broker``).
"""

from __future__ import annotations

import argparse
from typing import Any

from logdir.text import quoted
from tools.cli.target import add_broker, argv_of


def add_selector(parser: Any, if_absent: str = "") -> None:
    """Add which partitions are meant.

    Args:
        parser: Of the command.
        if_absent: What is meant where nothing is typed; empty: something has to be.
    """
    text = "a topic name, a topic id, name-p, id_p or a glob"
    optional = {"nargs": "?", "help": f"{text}; {if_absent}"} if if_absent else {"help": text}
    parser.add_argument("selector", metavar="SELECTOR", **optional)


def add_change(parser: Any, *, changes: bool = True) -> None:
    """Add what every command about a broker's replicas takes."""
    add_broker(parser)
    if changes:
        parser.add_argument(
            "--skip-log-dir",
            metavar="DIR",
            action="append",
            default=[],
            help="a log dir that has failed and may not answer",
        )
        parser.add_argument(
            "--even-if-stale-disk",
            metavar="DIR",
            action="append",
            default=[],
            help="a log dir that was away and is back: you have looked at what is on it",
        )
        parser.add_flag("--apply", "do it; without this the plan is printed")
    parser.add_flag("--json", "one JSON object on standard output")


def next_argv(arguments: argparse.Namespace) -> str:
    """Return the broker as it was named, and which of its log dirs are left out; never an override."""
    skipped = [f"--skip-log-dir {quoted(one)}" for one in getattr(arguments, "skip_log_dir", ())]
    return " ".join([argv_of(arguments), *skipped])


SAME_WITH_APPLY = "to do this, type the same with --apply"
"""Behind a plan that rests on an override: no ``next:`` line carries one, and without it the same would be refused."""


def has_override(arguments: argparse.Namespace) -> bool:
    """Return whether the operator overrode anything."""
    return any(bool(value) for name, value in vars(arguments).items() if name.startswith(("even_", "include_held")))


def said_of_override(arguments: argparse.Namespace, *, is_planned: bool) -> tuple[str, ...]:
    """Return what stands before the next command where a plan rests on an override.

    Args:
        arguments: Of the command.
        is_planned: Something would be done.
    """
    return (SAME_WITH_APPLY,) if is_planned and not arguments.apply and has_override(arguments) else ()
