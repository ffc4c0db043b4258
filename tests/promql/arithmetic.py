"""Operators on two numbers, as IEEE 754 and Go have them: no division by zero is an error."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def divided(left: float, right: float) -> float:
    """Return a quotient."""
    if right == 0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1, right)
    return left / right


def remainder(left: float, right: float) -> float:
    """Return what a division leaves, with the sign of the dividend."""
    return math.nan if math.isinf(left) or right == 0 else math.fmod(left, right)


def power(left: float, right: float) -> float:
    """Return a power."""
    try:
        return math.pow(left, right)
    except OverflowError:
        is_negative = left < 0 and math.fmod(right, 2) != 0
        return -math.inf if is_negative else math.inf
    except ValueError:
        return math.inf if left == 0 else math.nan


COMPUTE: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divided,
    "%": remainder,
    "^": power,
}
