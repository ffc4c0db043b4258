"""Aggregations over the elements of a vector.

Spec: Prometheus, "Operators": aggregation operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tests.promql.syntax import Aggregation
from tests.promql.values import NAME, Labels, Sample, Vector, distinct, keeping, replaced, without


def mean(values: Sequence[float]) -> float:
    """Return the mean."""
    return sum(values) / len(values)


def variance(values: Sequence[float]) -> float:
    """Return the variance of a whole population."""
    middle = mean(values)
    return mean([(one - middle) ** 2 for one in values])


def quantile(part: float, values: Sequence[float]) -> float:
    """Return a quantile, between two values by their distance; of none NaN."""
    if not values or math.isnan(part):
        return math.nan
    if not 0 <= part <= 1:
        return -math.inf if part < 0 else math.inf
    ordered = sorted(values, key=lambda one: (not math.isnan(one), one))
    rank = part * (len(ordered) - 1)
    lower = math.floor(rank)
    upper = min(lower + 1, len(ordered) - 1)
    weight = rank - lower
    return ordered[lower] * (1 - weight) + ordered[upper] * weight


def least(values: Sequence[float]) -> float:
    """Return the least value that is a number, if there is one."""
    return min((one for one in values if not math.isnan(one)), default=math.nan)


def greatest(values: Sequence[float]) -> float:
    """Return the greatest value that is a number, if there is one."""
    return max((one for one in values if not math.isnan(one)), default=math.nan)


PLAIN: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "avg": mean,
    "min": least,
    "max": greatest,
    "count": lambda values: float(len(values)),
    "group": lambda values: 1.0,
    "stdvar": variance,
    "stddev": lambda values: math.sqrt(variance(values)),
}


def aggregated(expr: Aggregation, vector: Vector, parameter: float | str | None, at_ms: int) -> Vector:
    """Return the value of an aggregation."""
    groups: dict[Labels, list[Sample]] = {}
    for one in vector:
        groups.setdefault(_group(expr, one.labels), []).append(one)
    found: list[Sample] = []
    for labels, samples in groups.items():
        values = [one.value for one in samples]
        if expr.op in PLAIN:
            found.append(Sample(labels, float(PLAIN[expr.op](values)), at_ms))
        elif expr.op == "quantile":
            found.append(Sample(labels, quantile(_number(parameter), values), at_ms))
        elif expr.op == "count_values":
            found += _counted(labels, values, str(parameter), at_ms)
        else:
            # NaN comes last, and the labels of the elements stay.
            sign = 1 if expr.op == "bottomk" else -1
            ordered = sorted(samples, key=lambda one: (math.isnan(one.value), sign * one.value))
            found += [one._replace(at_ms=at_ms) for one in ordered[: max(0, int(_number(parameter)))]]
    return distinct(found)


def _group(expr: Aggregation, labels: Labels) -> Labels:
    return without(labels, (*expr.grouping, NAME)) if expr.is_without else keeping(labels, expr.grouping)


def _number(parameter: float | str | None) -> float:
    assert isinstance(parameter, float)
    return parameter


def _counted(labels: Labels, values: Sequence[float], name: str, at_ms: int) -> list[Sample]:
    counts: dict[str, int] = {}
    for one in values:
        text = written(one)
        counts[text] = counts.get(text, 0) + 1
    return [Sample(replaced(labels, name, text), float(count), at_ms) for text, count in counts.items()]


def written(value: float) -> str:
    """Return a number as Prometheus writes it into a label: no exponent, no needless point."""
    if math.isnan(value) or math.isinf(value):
        return {True: "NaN", False: "+Inf" if value > 0 else "-Inf"}[math.isnan(value)]
    return str(int(value)) if value == int(value) else repr(value)
