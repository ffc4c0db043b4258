"""Options of commands, declared once each: how one is typed, which field of a request it fills, how it is typed again.

Not here: the options that several commands have (``broker``, ``delay``, ``protection``, ``source``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from logdir.text import quoted

if TYPE_CHECKING:
    import argparse


class OneOf(NamedTuple):
    """Options of which only one may be typed; each names this."""

    of: str
    is_required: bool = True
    """Whether one of them must be typed."""


class Option:
    """One option, or one argument without a flag."""

    def __init__(
        self,
        names: str,
        text: str,
        metavar: str | None = None,
        *,
        field: str = "",
        value: Callable[[argparse.Namespace], Any] | None = None,
        render: Callable[[Any], str] = str,
        one_of: OneOf | None = None,
        is_repeated: bool = False,
        **settings: Any,
    ) -> None:
        """Declare the option.

        Args:
            names: As ``--delay --delay-ms``, the one to type again first; or the name of an argument without a flag.
            text: Its line of help.
            metavar: Its value in the help; ``None``: as ``argparse`` has it.
            field: The field of the request that it fills; empty: none, or another option or the command fills it.
            value: Returns the value of that field from all arguments; ``None``: what was typed.
            render: Returns a typed value as text, to type it again.
            one_of: The options beside which it may not be typed.
            is_repeated: Whether it may be typed several times; the field is then a tuple.
            settings: Further ones of ``argparse``, as ``type`` and ``default``.
        """
        self.names, self.one_of, self.field = names.split(), one_of, field
        repeated = {"action": "append", "default": []} if is_repeated else {}
        shown = {} if metavar is None else {"metavar": metavar}
        self.settings: dict[str, Any] = {"help": text, **shown, **repeated, **settings}
        self._value, self._render = value, render
        name = next((one for one in self.names if one.startswith("--")), names)
        self._dest: str = settings.get("dest", name.removeprefix("--").replace("-", "_"))

    def value_of(self, arguments: argparse.Namespace) -> Any:
        """Return the value of the field that it fills."""
        value = getattr(arguments, self._dest) if self._value is None else self._value(arguments)
        return tuple(value) if isinstance(value, list) else value

    def typed(self, arguments: argparse.Namespace) -> str:
        """Return it as it was typed; empty if it was not, or if it says the same as its default."""
        value, default = getattr(arguments, self._dest, None), self.settings.get("default")
        if value is None or isinstance(value, bool):
            return self.names[0] if value else ""
        texts = [self._render(one) for one in (value if isinstance(value, list) else [value])]
        if default not in (None, []) and texts == [self._render(default)]:
            return ""
        flag = f"{self.names[0]} " if self.names[0].startswith("-") else ""
        return " ".join(f"{flag}{quoted(text)}" for text in texts)


class Flag(Option):
    """An option without a value."""

    def __init__(self, name: str, text: str, field: str = "", **more: Any) -> None:
        """Declare the flag, as ``Option``."""
        super().__init__(name, text, field=field, **{"action": "store_true", **more})


def add_options(parser: Any, options: Iterable[Option]) -> None:
    """Add options to the parser of a command, in the order of its help."""
    groups: dict[OneOf, Any] = {}
    for option in options:
        into = parser
        if (one_of := option.one_of) is not None:
            into = groups.get(one_of) or parser.add_mutually_exclusive_group(required=one_of.is_required)
            groups[one_of] = into
        into.add_argument(*option.names, **option.settings)


def filled(arguments: argparse.Namespace, options: Iterable[Option]) -> dict[str, Any]:
    """Return the fields of a request that options fill, with their values."""
    return {one.field: one.value_of(arguments) for one in options if one.field}


Again = Option | Callable[["argparse.Namespace"], str]
"""An option to type again, or a function that returns several as they are typed again."""


def typed(arguments: argparse.Namespace, *options: Again) -> str:
    """Return options as they were typed, a blank between two, for the next command to type."""
    texts = (one.typed(arguments) if isinstance(one, Option) else one(arguments) for one in options)
    return " ".join(text for text in texts if text)
