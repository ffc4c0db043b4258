"""What an expression gives: a number, a string, a vector of an instant or of a time; and what does not fit together."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tests.promql.syntax import Aggregation, Binary, Call, Expr, Number, Selector, Text, Unary
from tests.promql.values import PromqlError


class Shape(Enum):
    """The kind of a value."""

    SCALAR = "scalar"
    STRING = "string"
    INSTANT = "instant vector"
    RANGE = "range vector"


class Signature(NamedTuple):
    """What a function takes and gives; the last ``optional`` arguments may be left out."""

    takes: tuple[Shape, ...]
    gives: Shape = Shape.INSTANT
    optional: int = 0


_NUMBER, _STRING, _INSTANT, _RANGE = Shape
_OVER_RANGE = (
    "rate", "increase", "irate", "idelta", "delta", "deriv", "changes", "resets", "absent_over_time",
    "avg_over_time", "min_over_time", "max_over_time", "sum_over_time", "count_over_time", "last_over_time",
    "present_over_time", "stddev_over_time", "stdvar_over_time",
)  # fmt: skip
_OVER_INSTANT = (
    "absent", "abs", "ceil", "floor", "exp", "ln", "log2", "log10", "sqrt", "sgn", "sort", "sort_desc", "timestamp",
)  # fmt: skip
FUNCTIONS = {
    **dict.fromkeys(_OVER_RANGE, Signature((_RANGE,))),
    **dict.fromkeys(_OVER_INSTANT, Signature((_INSTANT,))),
    "predict_linear": Signature((_RANGE, _NUMBER)),
    "quantile_over_time": Signature((_NUMBER, _RANGE)),
    "histogram_quantile": Signature((_NUMBER, _INSTANT)),
    "round": Signature((_INSTANT, _NUMBER), optional=1),
    "clamp": Signature((_INSTANT, _NUMBER, _NUMBER)),
    "clamp_min": Signature((_INSTANT, _NUMBER)),
    "clamp_max": Signature((_INSTANT, _NUMBER)),
    "label_replace": Signature((_INSTANT, _STRING, _STRING, _STRING, _STRING)),
    "time": Signature((), _NUMBER),
    "scalar": Signature((_INSTANT,), _NUMBER),
    "vector": Signature((_NUMBER,)),
}
_SETS = ("and", "or", "unless")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def shape_of(expr: Expr) -> Shape:
    """Return the kind of the value of an expression, all that it consists of checked.

    Raises:
        PromqlError: something does not fit.
    """
    match expr:
        case Number():
            return Shape.SCALAR
        case Text():
            return Shape.STRING
        case Selector():
            return Shape.INSTANT if expr.range_ms is None else Shape.RANGE
        case Unary():
            return _require("unary expression", shape_of(expr.operand), Shape.SCALAR, Shape.INSTANT)
        case Binary():
            return _binary(expr)
        case Aggregation():
            if expr.parameter is not None:
                wanted = Shape.STRING if expr.op == "count_values" else Shape.SCALAR
                _require(f"parameter of {expr.op}", shape_of(expr.parameter), wanted)
            return _require(f"aggregation {expr.op}", shape_of(expr.operand), Shape.INSTANT)
        case Call():
            return _call(expr)


def _require(what: str, found: Shape, *wanted: Shape) -> Shape:
    if found not in wanted:
        expected = " or ".join(one.value for one in wanted)
        raise PromqlError(f"expected {expected} in {what}, got {found.value}")
    return found


def _binary(expr: Binary) -> Shape:
    shapes = [shape_of(expr.left), shape_of(expr.right)]
    for one in shapes:
        _require(f"operator {expr.op}", one, Shape.SCALAR, Shape.INSTANT)
    if shapes == [Shape.SCALAR, Shape.SCALAR]:
        if expr.op in _SETS:
            raise PromqlError(f"set operator {expr.op!r} not allowed in binary scalar expression")
        if expr.op in _COMPARISONS and not expr.is_bool:
            raise PromqlError("comparisons between scalars must use BOOL modifier")
        return Shape.SCALAR
    if Shape.SCALAR in shapes:
        if expr.op in _SETS:
            raise PromqlError(f"set operator {expr.op!r} not allowed between a vector and a scalar")
        if expr.matching.is_on or expr.matching.labels or expr.matching.many:
            raise PromqlError("vector matching only allowed between instant vectors")
    return Shape.INSTANT


def _call(expr: Call) -> Shape:
    signature = FUNCTIONS[expr.function]
    most = len(signature.takes)
    if not most - signature.optional <= len(expr.arguments) <= most:
        raise PromqlError(f"expected {most} argument(s) in call to {expr.function!r}, got {len(expr.arguments)}")
    for wanted, argument in zip(signature.takes, expr.arguments, strict=False):
        _require(f"call to function {expr.function!r}", shape_of(argument), wanted)
    return signature.gives
