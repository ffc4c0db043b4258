"""Durations as people type them: plain milliseconds, as in Kafka, or a whole number with a unit.

>>> parse("4h"), parse("14400000ms"), parse("14400000")
(Duration(ms=14400000, has_unit=True), Duration(ms=14400000, has_unit=True), Duration(ms=14400000, has_unit=False))
>>> render(14_400_000), render(90_000), render(1_234)
('4h', '90s', '1234ms')

Not here: which durations make sense (``decide.staged.deadline``).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_UNITS: Final = {"d": 24 * 60 * 60 * 1000, "h": 60 * 60 * 1000, "m": 60 * 1000, "s": 1000, "ms": 1}
_TEXT: Final = re.compile(r"([+-]?[0-9]{1,18})\s?(ms|[dhms])?", re.ASCII)
_LIMIT_MS: Final = 1 << 63
LOOKS_LIKE: Final = "a duration as 4h, 30m, 90s, 14400000ms or plain milliseconds"


class Duration(NamedTuple):
    """A duration that was parsed from text."""

    ms: int
    has_unit: bool
    """Whether the text had a unit; ``False``: plain milliseconds."""


def parse(text: str) -> Duration:
    """Parse a duration.

    Raises:
        ValueError: the text is no duration; the message shows the valid forms.
    """
    found = _TEXT.fullmatch(text.strip())
    number, unit = found.groups() if found is not None else ("", None)
    ms = int(number) * _UNITS[unit or "ms"] if number else _LIMIT_MS
    if abs(ms) >= _LIMIT_MS:
        raise ValueError(LOOKS_LIKE)
    return Duration(ms, unit is not None)


def render(ms: int) -> str:
    """Return a duration as text, in the largest of h, m, s and ms that leaves a whole number; ``parse`` reads it."""
    unit = next((unit for unit, size in _UNITS.items() if ms and ms % size == 0 and unit != "d"), "ms")
    return f"{ms // _UNITS[unit]}{unit}"
