"""The commands as their parsers have them, for whoever makes a text of them: words, arguments, exit statuses.

Read from the parsers themselves and not from their help, whose layout differs between releases of Python.

Not here: the texts (``man``, ``completion``).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from tools.logdirctl.commands import COMMANDS
from tools.logdirctl.main import build_parser
from tools.logdird import build_parser as daemon_parser


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An option, or an argument without a flag."""

    names: tuple[str, ...]
    """As typed, as ``-o`` and ``--output``; empty for an argument without a flag."""
    dest: str
    metavar: str
    """Its value in a text; empty if it has none."""
    text: str
    choices: tuple[str, ...]
    """All values that it takes; empty: any."""
    is_required: bool
    is_repeated: bool
    others: tuple[str, ...]
    """The first names of all options of which only one may be typed, this one among them; empty: it may stand beside
    any.
    """
    is_one_needed: bool
    """Whether one of ``others`` must be typed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command, or a group of commands below one word."""

    words: tuple[str, ...]
    """Of the program and the command."""
    summary: str
    """A line without a full stop."""
    description: str
    statuses: tuple[tuple[str, str], ...]
    """Each exit status that it names, and what it means."""
    arguments: tuple[Argument, ...]
    below: tuple[Command, ...]

    @property
    def leaves(self) -> Iterator[Command]:
        """Every command that is no group: this one, or those below it."""
        if not self.below:
            yield self
        for one in self.below:
            yield from one.leaves


@cache
def logdirctl() -> Command:
    """Return ``logdirctl`` with all its commands."""
    return _command(build_parser(), ("logdirctl",), "", COMMANDS)


@cache
def logdird() -> Command:
    """Return ``logdird``."""
    return _command(daemon_parser(), ("logdird",), "keep what a Kafka broker removes from its log dirs", {})


def every_command(top: Command) -> Iterator[Command]:
    """Yield a command and all below it."""
    yield top
    for one in top.below:
        yield from every_command(one)


def _command(
    parser: argparse.ArgumentParser, words: tuple[str, ...], summary: str, summaries: Mapping[str, str]
) -> Command:
    below: list[Command] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {one.dest: one.help or "" for one in action._choices_actions} | dict(summaries)
            below = [_command(child, (*words, name), texts[name], {}) for name, child in action.choices.items()]
    return Command(
        words=words,
        summary=summary,
        description=parser.description or "",
        statuses=tuple(statuses_in(parser.epilog or "")),
        arguments=tuple(_arguments(parser)),
        below=tuple(below),
    )


def statuses_in(epilog: str) -> Iterator[tuple[str, str]]:
    """Yield the exit statuses of an epilog.

    >>> list(statuses_in("exit status: 0 done, or nothing to do, 2 usage"))
    [('0', 'done, or nothing to do'), ('2', 'usage')]
    """
    text = epilog.removeprefix("exit status: ")
    for one in re.split(r", (?=\d+ )", text) if text != epilog else ():
        number, _, meaning = one.partition(" ")
        yield number, meaning


def _arguments(parser: argparse.ArgumentParser) -> Iterator[Argument]:
    groups = {id(one): group for group in parser._mutually_exclusive_groups for one in group._group_actions}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
            continue
        group = groups.get(id(action))
        choices = tuple(map(str, action.choices or ()))
        many = isinstance(action, argparse._AppendAction) or action.nargs in ("*", "+")
        yield Argument(
            names=tuple(action.option_strings),
            dest=action.dest,
            metavar=_metavar(action, choices),
            text=_help(parser, action),
            choices=choices,
            is_required=bool(action.required) and action.nargs not in ("?", "*"),
            is_repeated=many,
            others=() if group is None else tuple(one.option_strings[0] for one in group._group_actions),
            is_one_needed=group is not None and group.required,
        )


def _metavar(action: argparse.Action, choices: tuple[str, ...]) -> str:
    if action.option_strings and action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(choices) or action.dest.upper()


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    values = {name: value for name, value in vars(action).items() if value is not argparse.SUPPRESS}
    return (action.help or "") % {**values, "prog": parser.prog}
