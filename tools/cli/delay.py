"""``--delay`` and ``--hold``: for how long what is staged stays, as ``4h``, ``30m`` or plain milliseconds, or for ever.

Not here: which delays look like seconds (``logdir.decide.staged.deadline``).

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
    """Add ``--delay``, which may also be typed as ``--delay-ms``."""
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
    parser.add_argument(_HOLD, action="store_true", help="without a deadline: it stays until an operator purges it")


def delay_problems(arguments: argparse.Namespace) -> list[Problem]:
    """Return the problem of a delay that may be meant in seconds, or is negative; empty: there is none.

    A delay with a unit is never taken for seconds.
    """
    given: Duration = arguments.delay
    question = check_delay(given.ms, _FLAG)
    if question is None or (given.has_unit and given.ms in LOOKS_LIKE_SECONDS):
        return []
    if given.ms in LOOKS_LIKE_SECONDS:
        question = question._replace(fix=f"milliseconds? type the unit: {given.ms}ms, or {given.ms}s")
    return [question]


def delays_of(arguments: argparse.Namespace) -> DelayPolicy:
    """Return the delay after which what is staged may be purged.

    Raises:
        ConfigError: the delay is negative, may be meant in seconds, or is typed together with ``--hold``.
    """
    problems = delay_problems(arguments)
    if getattr(arguments, "hold", False) and arguments.delay is not _DEFAULT:
        fix = f"{_HOLD} stages without a deadline, so no delay counts: leave {_FLAG} or {_HOLD} out"
        problems = [Problem("config-error", _FLAG, f"{_FLAG} or {_HOLD}", "both", fix)]
    if problems:
        raise ConfigError(tuple(problems))
    return DelayPolicy(default_ms=arguments.delay.ms)


def delay_words(arguments: argparse.Namespace) -> str:
    """Return ``--delay`` and ``--hold`` for the next command to type, each after a blank; empty if not typed."""
    ms: int = arguments.delay.ms
    delay = "" if ms == DEFAULT_DELAY_MS else f" {_FLAG} {duration.render(ms)}"
    return f"{delay} {_HOLD}" if getattr(arguments, "hold", False) else delay
