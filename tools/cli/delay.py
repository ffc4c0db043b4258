"""``--delay``: for how long what is staged stays, as ``4h``, ``30m`` or plain milliseconds.

Not here: which delays draw a question (``logdir.decide.staged.deadline``).

Spec: design §3.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdir.decide.staged.deadline import DEFAULT_DELAY_MS, LOOKS_LIKE_SECONDS, check_delay
from logdir.errors import ConfigError, Problem
from logdir.formats import duration
from logdir.formats.duration import Duration
from tools.cli.usage import duration_of

if TYPE_CHECKING:
    import argparse

_FLAG = "--delay"
_DEFAULT = Duration(DEFAULT_DELAY_MS, has_unit=False)


def add_delay(parser: Any) -> None:
    """Add the option; ``--delay-ms`` is the same."""
    parser.add_argument(
        _FLAG,
        "--delay-ms",
        type=duration_of,
        default=_DEFAULT,
        metavar="TIME",
        help=f"purge no earlier than that: as 4h, 30m, or plain milliseconds (default {duration.render(_DEFAULT.ms)})",
    )


def delay_problems(arguments: argparse.Namespace) -> list[Problem]:
    """Return the question that the delay draws; a unit answers it."""
    given: Duration = arguments.delay
    question = check_delay(given.ms, _FLAG)
    if question is None or (given.has_unit and given.ms in LOOKS_LIKE_SECONDS):
        return []
    if given.ms in LOOKS_LIKE_SECONDS:
        question = question._replace(
            fix=f"milliseconds? with a unit it is taken as typed: {given.ms}ms, or {given.ms}s"
        )
    return [question]


def require_no_delay(arguments: argparse.Namespace, flag: str) -> None:
    """Return if no delay was said, beside an option that asks for none.

    Raises:
        ConfigError: one was said.
    """
    if arguments.delay is not _DEFAULT:
        fix = f"without a deadline nothing waits: leave {_FLAG} out, or {flag}"
        raise ConfigError((Problem("config-error", _FLAG, f"{_FLAG} or {flag}", "both", fix),))


def delay_of(arguments: argparse.Namespace) -> int:
    """Return the delay in milliseconds.

    Raises:
        ConfigError: it is negative, or draws a question.
    """
    problems = delay_problems(arguments)
    if problems:
        raise ConfigError(tuple(problems))
    ms: int = arguments.delay.ms
    return ms


def delay_words(arguments: argparse.Namespace) -> str:
    """Return the delay as an option behind a blank, for the next command to type; empty if it is the default."""
    ms: int = arguments.delay.ms
    return "" if ms == DEFAULT_DELAY_MS else f" {_FLAG} {duration.render(ms)}"
