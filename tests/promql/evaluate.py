"""The value of an expression at an instant.

Not here: over a time (a test asks at each step), the value of a range, of which only functions know.
"""

from __future__ import annotations

from tests.promql.aggregations import aggregated
from tests.promql.grammar import parse
from tests.promql.instant_functions import ELEMENTWISE, elementwise, histogram_quantile, label_replaced, sorted_by_value
from tests.promql.operators import binary
from tests.promql.range_functions import RANGE_FUNCTIONS
from tests.promql.store import Store
from tests.promql.syntax import Aggregation, Binary, Call, Expr, MatchOp, Number, Selector, Text, Unary
from tests.promql.values import NAME, Labels, PromqlError, Sample, Value, Vector, distinct, labels_of, nameless


def evaluate(expr: Expr | str, store: Store, at_ms: int) -> Value:
    """Return the value of an expression at an instant.

    Raises:
        PromqlError: the text is no expression, or its vectors do not fit together.
    """
    return _Evaluation(store, at_ms).value(parse(expr) if isinstance(expr, str) else expr)


class _Evaluation:
    def __init__(self, store: Store, at_ms: int) -> None:
        self._store = store
        self._at_ms = at_ms

    def value(self, expr: Expr) -> Value:
        match expr:
            case Number() | Text():
                return expr.value
            case Selector():
                if expr.range_ms is not None:
                    raise PromqlError("invalid expression type 'range vector' for an instant")
                return self._store.instant(expr, self._at_ms)
            case Unary():
                return self._signed(expr)
            case Binary():
                return binary(expr, self.value(expr.left), self.value(expr.right), self._at_ms)
            case Aggregation():
                parameter = None if expr.parameter is None else self.value(expr.parameter)
                assert not isinstance(parameter, tuple)
                return aggregated(expr, self._vector(expr.operand), parameter, self._at_ms)
            case Call():
                return self._called(expr)

    def _signed(self, expr: Unary) -> Value:
        value = self.value(expr.operand)
        assert not isinstance(value, str)
        if expr.op == "+":
            return value
        if isinstance(value, float):
            return -value
        return distinct(Sample(nameless(one.labels), -one.value, self._at_ms) for one in value)

    def _vector(self, expr: Expr) -> Vector:
        value = self.value(expr)
        assert isinstance(value, tuple)
        return value

    def _number(self, expr: Expr) -> float:
        value = self.value(expr)
        assert isinstance(value, float)
        return value

    def _text(self, expr: Expr) -> str:
        value = self.value(expr)
        assert isinstance(value, str)
        return value

    def _called(self, call: Call) -> Value:
        name, arguments = call.function, call.arguments
        if name in RANGE_FUNCTIONS:
            return self._over_range(call)
        if name in ELEMENTWISE:
            numbers = [self._number(one) for one in arguments[1:]]
            return elementwise(name, self._vector(arguments[0]), numbers, self._at_ms)
        match name:
            case "time":
                return self._at_ms / 1000
            case "vector":
                return (Sample(frozenset(), self._number(arguments[0]), self._at_ms),)
            case "scalar":
                vector = self._vector(arguments[0])
                return vector[0].value if len(vector) == 1 else float("nan")
            case "timestamp":
                is_read = isinstance(arguments[0], Selector)  # All else was made now.
                found = [(one, one.at_ms if is_read else self._at_ms) for one in self._vector(arguments[0])]
                return distinct(Sample(nameless(one.labels), taken / 1000, self._at_ms) for one, taken in found)
            case "absent":
                return () if self._vector(arguments[0]) else self._absent(arguments[0])
            case "absent_over_time":
                selector = arguments[0]
                assert isinstance(selector, Selector)
                return () if self._store.windows(selector, self._at_ms) else self._absent(selector)
            case "sort" | "sort_desc":
                return sorted_by_value(self._vector(arguments[0]), is_descending=name == "sort_desc")
            case "label_replace":
                target, replacement, source, pattern = (self._text(one) for one in arguments[1:])
                return label_replaced(self._vector(arguments[0]), target, replacement, source, pattern)
            case "histogram_quantile":
                return histogram_quantile(self._number(arguments[0]), self._vector(arguments[1]), self._at_ms)
            case _:
                raise AssertionError(name)

    def _over_range(self, call: Call) -> Vector:
        (selector,) = (one for one in call.arguments if isinstance(one, Selector) and one.range_ms is not None)
        numbers = [self._number(one) for one in call.arguments if one is not selector]
        function = RANGE_FUNCTIONS[call.function]
        found = []
        for window in self._store.windows(selector, self._at_ms):
            value = function(window, numbers)
            if value is not None:
                labels = window.labels if call.function == "last_over_time" else nameless(window.labels)
                found.append(Sample(labels, value, self._at_ms))
        return distinct(found)

    def _absent(self, expr: Expr) -> Vector:
        """Return one element, with the labels that the selector asks for by ``=`` and that are named once."""
        labels: Labels = frozenset()
        if isinstance(expr, Selector):
            names = [one.label for one in expr.matchers]
            equal = [one for one in expr.matchers if one.op is MatchOp.EQUAL and names.count(one.label) == 1]
            labels = labels_of((one.label, one.value) for one in equal if one.label != NAME)
        return (Sample(labels, 1.0, self._at_ms),)
