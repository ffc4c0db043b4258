"""Errors of the command line: one problem each, with *did you mean*, under the command it was typed for.

Spec: design §6; docs/json.md.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from logdir.errors import Problem
from logdir.formats import duration
from logdir.suggestion import did_you_mean

SLUG = "usage-error"
_OVERRIDE = "--even-"
_PATTERNS = (
    (re.compile(r"the following arguments are required: (?P<path>.+)"), "a value", "none"),
    (re.compile(r"one of the arguments (?P<path>.+) is required"), "one of these", "none"),
    (re.compile(r"argument (?P<path>\S+): not allowed with argument (?P<what>.+)"), "{path} without {what}", "both"),
    (re.compile(r"argument (?P<path>\S+): expected (?P<what>.+)"), "{what}", "none"),
    (re.compile(r"argument (?P<path>\S+): ignored explicit argument (?P<what>.+)"), "no value", "{what}"),
    (re.compile(r"argument (?P<path>\S+): invalid int value: '(?P<what>.*)'"), "a whole number", "{what}"),
    # ``duration.parse`` is the only type of that name.
    (re.compile(r"argument (?P<path>\S+): invalid parse value: '(?P<what>.*)'"), duration.LOOKS_LIKE, "{what}"),
)
"""Pattern of an ``argparse`` message, with *expected* and *found* for it; other messages are passed on whole."""


class UsageError(Exception):
    """The command line names an unknown command or option, lacks an argument, or has a wrong value."""

    def __init__(self, command: str, problem: Problem) -> None:
        self.command = command
        """The command's words after ``logdirctl``; ``logdirctl`` itself if no command was recognised."""
        self.problem = problem
        super().__init__(problem.line())


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help in a fixed width, so that it is the same everywhere; to ask the terminal for its width also costs 5 ms."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=100, max_help_position=28)


class Parser(argparse.ArgumentParser):
    """A parser that raises ``UsageError`` instead of leaving the process; options are never abbreviated."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": Formatter, "allow_abbrev": False, **settings})
        self._typed: list[str] = []

    def error(self, message: str) -> NoReturn:
        """Turn a message of ``argparse`` into an error.

        Raises:
            UsageError: always.
        """
        self._refuse_unknown(self._typed)
        for pattern, expected, found in _PATTERNS:
            match = pattern.fullmatch(message)
            if match is not None:
                words = {"path": self.prog, **match.groupdict()}
                self._refuse(words["path"], expected.format(**words), found.format(**words))
        self._refuse(self.prog, "arguments that --help lists", message)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments, and refuse those that this parser does not know; return as ``ArgumentParser`` does.

        Raises:
            UsageError: an argument is unknown, missing or has a wrong value.
        """
        self._typed = [] if args is None else list(args)
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self._refuse_unknown(unknown)
            self._refuse(unknown[0], f"no further argument of {self.prog}", "one more")
        return parsed, unknown

    def _refuse_unknown(self, typed: Sequence[str]) -> None:
        """Refuse the first option that this parser does not know; what follows a command is its own parser's."""
        if any(isinstance(action, argparse._SubParsersAction) for action in self._actions):
            typed = typed[:1]
        known = self._option_string_actions
        for word in typed:
            name = word.partition("=")[0]
            if word == "--":
                return
            if word.startswith("--") and name not in known:
                options = [option for option in known if option.startswith("--")]
                self._refuse(name, f"an option of {self.prog}", "none of that name", _suggested(name, options))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = action.choices
        if choices is None or value in choices:
            return
        name = action.option_strings[0] if action.option_strings else str(action.metavar or action.dest)
        known = list(map(str, choices))
        expected = f"one of {', '.join(known)}"
        if isinstance(action, argparse._SubParsersAction):
            below = [full for full in _below(self) if full.split()[-1] == value]
            expected = f"a command of {self.prog}"
            if below:
                self._refuse(name, expected, str(value), f"did you mean {below[0]}?")
        self._refuse(name, expected, str(value), did_you_mean(str(value), known))

    def _refuse(self, path: str, expected: str, found: str, fix: str = "") -> NoReturn:
        command = self.prog.partition(" ")[2] or self.prog
        fix = f"{fix} see {self.prog} --help".lstrip()
        raise UsageError(command, Problem(SLUG, path, expected, found or "an empty text", fix))


def _suggested(typed: str, options: Sequence[str]) -> str:
    # An override is proposed only where one was begun to be typed.
    is_meant = typed.startswith(_OVERRIDE)
    return did_you_mean(typed, [name for name in options if is_meant or not name.startswith(_OVERRIDE)])


def _below(parser: argparse.ArgumentParser, prefix: str = "") -> Iterator[str]:
    """Yield every command of a parser, at any depth, as its words are typed."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield f"{prefix}{name}"
                yield from _below(child, f"{prefix}{name} ")


def wants_json(argv: Iterable[str]) -> bool:
    """Whether ``--json`` was typed, for a command line that cannot be parsed."""
    return "--json" in argv
