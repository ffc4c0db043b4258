"""Operators between vectors and numbers: which elements belong together, and what comes out of two.

Spec: Prometheus, "Operators": vector matching.
"""

from __future__ import annotations

from collections import defaultdict

from tests.promql.arithmetic import COMPARE, COMPUTE
from tests.promql.syntax import Binary, Matching
from tests.promql.values import (
    NAME,
    Labels,
    PromqlError,
    Sample,
    Value,
    Vector,
    distinct,
    keeping,
    nameless,
    replaced,
    shown,
    value_of,
    without,
)


def binary(expr: Binary, left: Value, right: Value, at_ms: int) -> Value:
    """Return the value of an expression with an operator, by the values of its two sides."""
    assert not isinstance(left, str)
    assert not isinstance(right, str)
    if isinstance(left, float) and isinstance(right, float):
        return _of_two(expr.op, left, right)
    if isinstance(left, float) or isinstance(right, float):
        return _with_scalar(expr, left, right, at_ms)
    match expr.op:
        case "and":
            there = {_signature(one.labels, expr.matching) for one in right}
            return tuple(one for one in left if _signature(one.labels, expr.matching) in there)
        case "unless":
            there = {_signature(one.labels, expr.matching) for one in right}
            return tuple(one for one in left if _signature(one.labels, expr.matching) not in there)
        case "or":
            there = {_signature(one.labels, expr.matching) for one in left}
            return distinct((*left, *(one for one in right if _signature(one.labels, expr.matching) not in there)))
        case _:
            return _matched(expr, left, right, at_ms)


def _of_two(op: str, left: float, right: float) -> float:
    return float(COMPARE[op](left, right)) if op in COMPARE else COMPUTE[op](left, right)


def _with_scalar(expr: Binary, left: float | Vector, right: float | Vector, at_ms: int) -> Vector:
    """Return each element with the number; a comparison keeps the element's own value."""
    vector = right if isinstance(left, float) else left
    assert not isinstance(vector, float)
    found = []
    for one in vector:
        first = left if isinstance(left, float) else one.value
        second = right if isinstance(right, float) else one.value
        value = _of_two(expr.op, first, second)
        if expr.op not in COMPARE or expr.is_bool:
            found.append(Sample(nameless(one.labels), value, at_ms))
        elif value:
            found.append(one._replace(at_ms=at_ms))
    return distinct(found)


def _signature(labels: Labels, matching: Matching) -> Labels:
    """Return the labels by which an element finds its partner."""
    return keeping(labels, matching.labels) if matching.is_on else without(labels, (*matching.labels, NAME))


def _matched(expr: Binary, left: Vector, right: Vector, at_ms: int) -> Vector:
    """Return what comes out of every two elements that belong together."""
    matching = expr.matching
    many, single = (right, left) if matching.many == "right" else (left, right)
    partners: dict[Labels, Sample] = {}
    for one in single:
        signature = _signature(one.labels, matching)
        if signature in partners:
            side = "left" if matching.many == "right" else "right"
            raise PromqlError(f"found duplicate series for the match group {shown(signature)} on the {side} side")
        partners[signature] = one
    found: dict[Labels, list[Sample]] = defaultdict(list)
    for one in many:
        signature = _signature(one.labels, matching)
        partner = partners.get(signature)
        if partner is None:
            continue
        first, second = (partner, one) if matching.many == "right" else (one, partner)
        value = _of_two(expr.op, first.value, second.value)
        if expr.op in COMPARE and not expr.is_bool:
            if not value:
                continue
            value = first.value
        labels = _result_labels(expr, one.labels, partner.labels)
        if matching.many is None and found[signature]:
            raise PromqlError("multiple matches for labels: many-to-one matching must be explicit")
        if any(before.labels == labels for before in found[signature]):
            raise PromqlError("multiple matches for labels: grouping labels must ensure unique matches")
        found[signature].append(Sample(labels, value, at_ms))
    return distinct(one for group in found.values() for one in group)


def _result_labels(expr: Binary, many: Labels, single: Labels) -> Labels:
    matching = expr.matching
    labels = many if expr.op in COMPARE and not expr.is_bool else nameless(many)
    if matching.many is None:
        return keeping(labels, matching.labels) if matching.is_on else without(labels, matching.labels)
    for name in matching.include:
        labels = replaced(labels, name, value_of(single, name))
    return labels
