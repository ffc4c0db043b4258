"""Functions of the samples of one series over a time.

Spec: Prometheus, "Functions". ``rate`` and its like extend what was seen to the ends of the range, unless a sample is
missing there, and a counter never below zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from tests.promql.aggregations import greatest, least, mean, quantile, variance
from tests.promql.store import Window

RangeFunction = Callable[[Window, Sequence[float]], float | None]
"""Of a window and the numbers that the function was given; ``None``: the series has no result."""
_NEAR = 1.1
"""How many times the mean distance of two samples an end of the range may be away to count as near."""


def _values(window: Window) -> list[float]:
    return [value for _, value in window.points]


def _seconds(ms: int) -> float:
    return ms / 1000


def extrapolated(window: Window, *, is_counter: bool) -> float | None:
    """Return by how much a series rose over its range; ``None`` with less than two samples."""
    points = window.points
    if len(points) < 2:
        return None
    (first_ms, first), (last_ms, last) = points[0], points[-1]
    rise = last - first
    if is_counter:
        # A counter that is lower than before began again at zero.
        rise += sum(before for before, after in pairwise(_values(window)) if after < before)
    seen = _seconds(last_ms - first_ms)
    distance = seen / (len(points) - 1)
    to_start, to_end = _seconds(first_ms - window.from_ms), _seconds(window.to_ms - last_ms)
    if to_start >= distance * _NEAR:
        to_start = distance / 2
    if is_counter and rise > 0 and first >= 0:
        to_start = min(to_start, seen * first / rise)
    if to_end >= distance * _NEAR:
        to_end = distance / 2
    return rise * (seen + to_start + to_end) / seen


def _rate(window: Window, _: Sequence[float]) -> float | None:
    rise = extrapolated(window, is_counter=True)
    return None if rise is None else rise / _seconds(window.to_ms - window.from_ms)


def _of_last_two(window: Window, *, is_rate: bool) -> float | None:
    if len(window.points) < 2:
        return None
    (before_ms, before), (last_ms, last) = window.points[-2:]
    if not is_rate:
        return last - before
    return (last if last < before else last - before) / _seconds(last_ms - before_ms)


def _line(window: Window, origin_ms: int) -> tuple[float, float] | None:
    """Return slope (per second) and height at an instant of the line that fits best; ``None`` with one sample."""
    if len(window.points) < 2:
        return None
    times = [_seconds(at_ms - origin_ms) for at_ms, _ in window.points]
    values = _values(window)
    if len(set(values)) == 1:
        return (0.0, values[0]) if math.isfinite(values[0]) else (math.nan, math.nan)
    middle_time, middle = math.fsum(times) / len(times), math.fsum(values) / len(values)
    spread = math.fsum((time - middle_time) ** 2 for time in times)
    slope = (
        math.fsum((time - middle_time) * (value - middle) for time, value in zip(times, values, strict=True)) / spread
    )
    return slope, middle - slope * middle_time


def _deriv(window: Window, _: Sequence[float]) -> float | None:
    line = _line(window, window.points[0][0])
    return None if line is None else line[0]


def _predict_linear(window: Window, parameters: Sequence[float]) -> float | None:
    line = _line(window, window.at_ms)
    return None if line is None else line[1] + line[0] * parameters[0]


def _count(window: Window, is_counted: Callable[[float, float], bool]) -> float:
    return float(sum(is_counted(before, after) for before, after in pairwise(_values(window))))


def _differ(before: float, after: float) -> bool:
    return before != after and not (math.isnan(before) and math.isnan(after))


def _over_time(reduce: Callable[[Sequence[float]], float]) -> RangeFunction:
    return lambda window, _: float(reduce(_values(window)))


RANGE_FUNCTIONS: dict[str, RangeFunction] = {
    "rate": _rate,
    "increase": lambda window, _: extrapolated(window, is_counter=True),
    "delta": lambda window, _: extrapolated(window, is_counter=False),
    "irate": lambda window, _: _of_last_two(window, is_rate=True),
    "idelta": lambda window, _: _of_last_two(window, is_rate=False),
    "deriv": _deriv,
    "predict_linear": _predict_linear,
    "changes": lambda window, _: _count(window, _differ),
    "resets": lambda window, _: _count(window, lambda before, after: after < before),
    "avg_over_time": _over_time(mean),
    "min_over_time": _over_time(least),
    "max_over_time": _over_time(greatest),
    "sum_over_time": _over_time(sum),
    "count_over_time": _over_time(len),
    "last_over_time": _over_time(lambda values: values[-1]),
    "present_over_time": _over_time(lambda values: 1.0),
    "stdvar_over_time": _over_time(variance),
    "stddev_over_time": _over_time(lambda values: math.sqrt(variance(values))),
    "quantile_over_time": lambda window, parameters: quantile(parameters[0], _values(window)),
}
