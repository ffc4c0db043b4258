"""The notation of series of ``promtool test rules``: ``0+10x5`` is 0 10 20 30 40 50.

    1 2.5 -3     values, one each interval          _        no sample
    a+bxN a-bxN  a, and N more, each b further      _xN      no sample N times
    axN          a, and N more of it                stale    the series ends

Spec: Prometheus, "Unit testing for rules", series.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tests.promql.grammar import parse
from tests.promql.store import Store
from tests.promql.syntax import MatchOp, Selector
from tests.promql.values import Labels, PromqlError, labels_of

MINUTE_MS = 60 * 1000
_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?(?i:inf|nan)"
_STEPS = re.compile(rf"({_NUMBER})(?:([-+])([0-9.]+(?:[eE][-+]?[0-9]+)?))?x([0-9]+)")
_MISSING = re.compile(r"_(?:x([0-9]+))?")


def values_of(text: str) -> tuple[float | str | None, ...]:
    """Return one entry for each interval: a value, ``None`` for no sample, or ``stale``.

    Raises:
        PromqlError: it is not in that notation.
    """
    return tuple(one for word in text.split() for one in _expanded(word))


def _expanded(word: str) -> Iterator[float | str | None]:
    if word == "stale":
        yield word
    elif missing := _MISSING.fullmatch(word):
        yield from [None] * int(missing[1] or 1)
    elif steps := _STEPS.fullmatch(word):
        start, sign, size, count = steps.groups()
        step = float(size or 0) * (-1 if sign == "-" else 1)
        yield from (float(start) + step * number for number in range(int(count) + 1))
    elif re.fullmatch(_NUMBER, word):
        yield float(word)
    else:
        raise PromqlError(f"no series notation: {word!r}")


def series_labels(text: str) -> Labels:
    """Return the labels of a series as it is written: ``name{label="value"}``.

    Raises:
        PromqlError: it is written as no single series.
    """
    selector = parse(text)
    if not isinstance(selector, Selector) or any(one.op is not MatchOp.EQUAL for one in selector.matchers):
        raise PromqlError(f"no series: {text!r}")
    return labels_of((one.label, one.value) for one in selector.matchers)


def load(lines: str, interval_ms: int = MINUTE_MS, store: Store | None = None) -> Store:
    """Return a store with a series for each line, the name and labels first, then the values; the first is at 0.

    Args:
        lines: The series; an empty line counts for nothing.
        interval_ms: Time between two values.
        store: Where they are added; ``None``: a new one.
    """
    filled = Store() if store is None else store
    for line in filter(None, map(str.strip, lines.splitlines())):
        name, values = _split(line)
        add(filled, series_labels(name), values_of(values), interval_ms)
    return filled


def add(store: Store, labels: Labels, values: Iterable[float | str | None], interval_ms: int = MINUTE_MS) -> None:
    """Add a series, one value each interval, the first at 0."""
    for number, value in enumerate(values):
        if value is not None:
            store.add(labels, number * interval_ms, None if isinstance(value, str) else value)


def _split(line: str) -> tuple[str, str]:
    """Part a line after the labels: a value of a label may have blanks."""
    head, brace, tail = line.rpartition("}")
    if brace:
        return head + brace, tail
    name, _, values = line.partition(" ")
    return name, values
