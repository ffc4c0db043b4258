"""``--delay`` and ``--hold``: for how long what is staged stays, as ``4h``, ``30m`` or plain milliseconds, or for ever.

Not here: which delays look like seconds (``logdir.decide.staged.deadline``).

Spec: design §3.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdir.decide.staged.deadline import DEFAULT_DELAY_MS, DelayPolicy, check_typed_delay
from logdir.errors import ConfigError, Problem
from logdir.formats import duration
from logdir.formats.duration import Duration
from tools.cli.option import Flag, Option

if TYPE_CHECKING:
    import argparse

_FLAG, _HOLD = "--delay", "--hold"
_DEFAULT = Duration(DEFAULT_DELAY_MS, has_unit=False)


def time_option(names: str, text: str, default: Duration, **filling: Any) -> Option:
    """Return an option that takes a time; ``filling``: ``field`` and ``value``, as of ``Option``."""
    filling["render"] = lambda given: duration.render(given.ms)
    return Option(names, text, "TIME", type=duration.parse, default=default, **filling)


def configured_delays(arguments: argparse.Namespace) -> DelayPolicy:
    """Return the delay that was typed, else those of the configuration that ``--config`` names, else the default.

    Raises:
        ConfigError: the configuration does not fit.
    """
    if arguments.delay is not _DEFAULT or arguments.config is None:
        return DelayPolicy(default_ms=arguments.delay.ms)
    from logdir.daemon.config import read_config

    return read_config(arguments.config).delays


def delays_of(arguments: argparse.Namespace) -> DelayPolicy:
    """Return the delay after which what an operator stages may be purged.

    A delay of 0 in the configuration keeps deletions from being captured; what is staged by hand is to be kept, by the
    default delay then.

    Raises:
        ConfigError: the delay is negative, may be meant in seconds, or is typed together with ``--hold``; or the
            configuration does not fit.
    """
    problem = check_typed_delay(arguments.delay, _FLAG)
    if getattr(arguments, "hold", False) and arguments.delay is not _DEFAULT:
        fix = f"{_HOLD} stages without a deadline, so no delay counts: leave {_FLAG} or {_HOLD} out"
        problem = Problem("config-error", _FLAG, f"{_FLAG} or {_HOLD}", "both", fix)
    if problem is not None:
        raise ConfigError((problem,))
    found = configured_delays(arguments)
    if arguments.delay is not _DEFAULT:
        return found
    patterns = tuple((glob, delay or DEFAULT_DELAY_MS) for glob, delay in found.patterns)
    return DelayPolicy(default_ms=found.default_ms or DEFAULT_DELAY_MS, patterns=patterns)


DELAY = time_option(
    f"{_FLAG} --delay-ms",
    "purge no earlier than that: as 4h, 30m, or plain milliseconds "
    f"(by default that of --config, else {duration.render(_DEFAULT.ms)})",
    _DEFAULT,
    field="delays",
    value=delays_of,
)
HOLD = Flag(_HOLD, "without a deadline: it stays until an operator purges it", "is_held")
