"""A command, declared once: its words, its help, its options, what it runs; and a group of commands below one word.

A module of ``tools.logdirctl`` declares one as ``COMMAND``. One that changes replicas one by one is declared with
``Change``: its options fill the request of its use case, so that it needs no function of its own.

Not here: the options (``option``), the frame that runs a change (``change``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.cli.option import Option, add_options

if TYPE_CHECKING:
    import argparse

    from logdir.service.report.following import NextOf
    from tools.cli.arguments import Streams
    from tools.cli.option import Again

CHANGES = "0 done, 1 not all was done, 2 usage or configuration, 3 a broker runs, 4 refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command."""

    title: str
    """Its words after ``logdirctl``."""
    run: Callable[[argparse.Namespace, Streams], int]
    """Runs it, and returns the exit status."""
    options: Sequence[Option]
    """In the order of the help."""
    help: str | None = None
    """Its line in the help of its group; one without a group has it in ``tools.logdirctl.commands``."""
    description: str | None = None
    ends: str | None = None
    """What each exit status means."""

    def add(self, commands: Any) -> None:
        """Add it to the commands of a parser."""
        shown = {} if self.help is None else {"help": self.help}
        epilog = None if self.ends is None else f"exit status: {self.ends}"
        parser = commands.add_parser(self.title.split()[-1], description=self.description, epilog=epilog, **shown)
        add_options(parser, self.options)
        parser.set_defaults(run=self.run, title=self.title, options=self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Commands below one word."""

    title: str
    description: str
    commands: Sequence[Command]
    metavar: str = "COMMAND"

    def add(self, commands: Any) -> None:
        """Add all of them to the commands of a parser."""
        group = commands.add_parser(self.title, description=self.description)
        below = group.add_subparsers(dest=f"{self.title}_command", metavar=self.metavar, required=True)
        for command in self.commands:
            command.add(below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Runs a command that changes replicas one by one: the use case of its title, whose request its options fill."""

    again: Sequence[Again]
    """What the next command repeats of the options, in its order; never an ``--even-…`` option."""
    next_of: NextOf | None = None
    """Decides which command is next; ``None``: ``after_change``."""
    are_said: bool = False
    """As of ``change.finish``."""
    are_overrides_said: bool = True
    """Whether a plan that rests on an override says how it is done."""

    def __call__(self, arguments: argparse.Namespace, streams: Streams) -> int:
        """Run it; return the exit status."""
        from tools.cli.change import run  # not before: a listing in the same module needs far fewer modules

        how = {"are_said": self.are_said, "are_overrides_said": self.are_overrides_said}
        return run(arguments, streams, self.again, self.next_of, **how)
