"""``--delay`` and ``--hold``: for how long what is staged stays, as ``4h``, ``30m`` or plain milliseconds, or for ever.

Not here: which delays draw a question (``logdir.decide.staged.deadline``).

Spec: design §3.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdir.decide.staged.deadline import DEFAULT_DELAY_MS, LOOKS_LIKE_SECONDS, DelayPolicy, check_delay
from logdir.errors import ConfigError, Problem
from logdir.formats import duration
from logdir.formats.duration import Duration

if TYPE_CHECKING:
    import argparse

_FLAG, _HOLD = "--delay", "--hold"
_DEFAULT = Duration(DEFAULT_DELAY_MS, has_unit=False)


def add_delay(parser: Any) -> None:
    """Add the option; ``--delay-ms`` is the same."""
    parser.add_argument(
        _FLAG,
        "--delay-ms",
        type=duration.parse,
        default=_DEFAULT,
        metavar="TIME",
        help=f"purge no earlier than that: as 4h, 30m, or plain milliseconds (default {duration.render(_DEFAULT.ms)})",
    )


def add_hold(parser: Any) -> None:
    """Add ``--hold``, which excludes a delay."""
    parser.add_argument(_HOLD, action="store_true", help="without a deadline: until an operator purges it")


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


def delays_of(arguments: argparse.Namespace) -> DelayPolicy:
    """Return for how long what is staged stays.

    Raises:
        ConfigError: the delay is negative, draws a question, or stands beside ``--hold``.
    """
    problems = delay_problems(arguments)
    if getattr(arguments, "hold", False) and arguments.delay is not _DEFAULT:
        fix = f"without a deadline nothing waits: leave {_FLAG} out, or {_HOLD}"
        problems = [Problem("config-error", _FLAG, f"{_FLAG} or {_HOLD}", "both", fix)]
    if problems:
        raise ConfigError(tuple(problems))
    return DelayPolicy(default_ms=arguments.delay.ms)


def delay_words(arguments: argparse.Namespace) -> str:
    """Return delay and hold as options, each behind a blank, for the next command to type; empty if by default."""
    ms: int = arguments.delay.ms
    delay = "" if ms == DEFAULT_DELAY_MS else f" {_FLAG} {duration.render(ms)}"
    return f"{delay} {_HOLD}" if getattr(arguments, "hold", False) else delay
