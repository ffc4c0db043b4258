"""Functions of the elements of an instant vector.

Spec: Prometheus, "Functions".
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate

from tests.promql.values import Labels, PromqlError, Sample, Vector, distinct, nameless, replaced, value_of, without

_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"\$(?:\{(\w+)\}|(\w+)|(\$))")


def _log(function: Callable[[float], float]) -> Callable[[float], float]:
    def of(value: float) -> float:
        if value == 0:
            return -math.inf
        return math.nan if value < 0 else function(value)

    return of


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda value: float(function(value)) if math.isfinite(value) else value


def _sign(value: float) -> float:
    return value if math.isnan(value) else float((value > 0) - (value < 0))


def _round(value: float, to: float = 1.0) -> float:
    """Return the nearest multiple; half way the higher one."""
    return math.floor(value / to + 0.5) * to if math.isfinite(value) else value


def _clamp(value: float, lowest: float, highest: float) -> float:
    return max(lowest, min(highest, value))


def _clamp_min(value: float, lowest: float) -> float:
    return max(lowest, value)


def _clamp_max(value: float, highest: float) -> float:
    return min(highest, value)


def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


ELEMENTWISE: dict[str, Callable[Concatenate[float, ...], float]] = {
    "abs": abs,
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "exp": _exp,
    "ln": _log(math.log),
    "log2": _log(math.log2),
    "log10": _log(math.log10),
    "sqrt": _sqrt,
    "sgn": _sign,
    "round": _round,
    "clamp": _clamp,
    "clamp_min": _clamp_min,
    "clamp_max": _clamp_max,
}
"""Of the value of an element, and the numbers that the function was given."""


def elementwise(name: str, vector: Vector, numbers: Sequence[float], at_ms: int) -> Vector:
    """Return each element with another value and without its name."""
    if name == "clamp" and numbers[0] > numbers[1]:
        return ()
    function = ELEMENTWISE[name]
    return distinct(Sample(nameless(one.labels), function(one.value, *numbers), at_ms) for one in vector)


def sorted_by_value(vector: Vector, *, is_descending: bool) -> Vector:
    """Return the elements in the order of their values, NaN last."""
    sign = -1 if is_descending else 1
    return tuple(sorted(vector, key=lambda one: (math.isnan(one.value), sign * one.value)))


def label_replaced(vector: Vector, target: str, replacement: str, source: str, pattern: str) -> Vector:
    """Return each element, with a label by a regular expression on another one, where that matches as a whole.

    Raises:
        PromqlError: the target is no label, or the pattern no regular expression; two elements become the same.
    """
    if not _LABEL.fullmatch(target):
        raise PromqlError(f"invalid destination label name in label_replace(): {target}")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise PromqlError(f"invalid regular expression in label_replace(): {pattern}, {error}") from None
    found = []
    for one in vector:
        match = compiled.fullmatch(value_of(one.labels, source))
        if match is not None:
            one = one._replace(labels=replaced(one.labels, target, _expanded(replacement, match)))
        found.append(one)
    return distinct(found)


def _expanded(template: str, match: re.Match[str]) -> str:
    """Return a replacement; a group that the pattern does not have is empty."""

    def of(reference: re.Match[str]) -> str:
        braced, plain, dollar = reference.groups()
        if dollar:
            return "$"
        name = braced or plain
        if name.isdigit():
            return (match[int(name)] or "") if int(name) <= (match.re.groups or 0) else ""
        return match.groupdict().get(name) or ""

    return _REFERENCE.sub(of, template)


def histogram_quantile(part: float, vector: Vector, at_ms: int) -> Vector:
    """Return a quantile of each histogram, whose buckets the elements are, evenly spread within a bucket."""
    histograms: dict[Labels, dict[float, float]] = defaultdict(dict)
    for one in vector:
        bound = _bound(value_of(one.labels, "le"))
        if bound is not None:
            buckets = histograms[without(nameless(one.labels), ("le",))]
            buckets[bound] = buckets.get(bound, 0.0) + one.value
    return tuple(Sample(labels, _of_buckets(part, buckets), at_ms) for labels, buckets in histograms.items())


def _bound(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _of_buckets(part: float, buckets: Mapping[float, float]) -> float:
    if math.isnan(part):
        return math.nan
    if not 0 <= part <= 1:
        return -math.inf if part < 0 else math.inf
    bounds = sorted(buckets)
    counts: list[float] = []
    for bound in bounds:  # A scrape amid an observation may have a bucket that counts less than the one before.
        counts.append(max([buckets[bound], *counts[-1:]]))
    if len(bounds) < 2 or bounds[-1] != math.inf or not counts[-1] > 0:
        return math.nan
    rank = part * counts[-1]
    here = next(number for number, count in enumerate(counts) if count >= rank)
    if here == len(bounds) - 1:
        return bounds[-2]
    if here == 0 and bounds[0] <= 0:
        return bounds[0]
    lower, before = (0.0, 0.0) if here == 0 else (bounds[here - 1], counts[here - 1])
    inside = counts[here] - before
    return lower + (bounds[here] - lower) * divided_or(rank - before, inside)


def divided_or(part: float, whole: float) -> float:
    """Return a share; of nothing NaN, as 0/0 is."""
    return part / whole if whole else math.nan
