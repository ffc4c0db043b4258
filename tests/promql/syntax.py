"""The tree of an expression."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from tests.promql.values import NAME, Labels, value_of


class MatchOp(Enum):
    """How a matcher compares."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LIKE = "=~"
    NOT_LIKE = "!~"


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition on a label; a regular expression is anchored at both ends."""

    label: str
    op: MatchOp
    value: str

    def matches(self, value: str) -> bool:
        """Whether a value of the label fits; an absent label has the empty one."""
        if self.op in (MatchOp.EQUAL, MatchOp.NOT_EQUAL):
            return (value == self.value) is (self.op is MatchOp.EQUAL)
        return (re.fullmatch(self.value, value) is not None) is (self.op is MatchOp.LIKE)


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    value: float


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    value: str


@dataclass(frozen=True, slots=True)
class Selector:
    """Series, at an instant or (with ``range_ms``) over a time; the name of the metric is a matcher like others."""

    matchers: tuple[Matcher, ...]
    range_ms: int | None = None
    offset_ms: int = 0

    @property
    def name(self) -> str | None:
        """The name of the metric, if the selector names one."""
        return next((one.value for one in self.matchers if one.label == NAME and one.op is MatchOp.EQUAL), None)

    def fits(self, labels: Labels) -> bool:
        """Whether a series is selected."""
        return all(one.matches(value_of(labels, one.label)) for one in self.matchers)


@dataclass(frozen=True, slots=True)
class Unary:
    """A sign before an expression."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Matching:
    """Which elements of two vectors belong together."""

    is_on: bool = False
    labels: tuple[str, ...] = ()
    many: str | None = None
    """``left`` or ``right``: the side on which several elements may belong to one of the other side."""
    include: tuple[str, ...] = ()
    """Labels that the many get from the one."""


@dataclass(frozen=True, slots=True)
class Binary:
    """Two expressions with an operator between them."""

    op: str
    left: Expr
    right: Expr
    is_bool: bool = False
    matching: Matching = Matching()


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregation over the elements of a vector."""

    op: str
    operand: Expr
    parameter: Expr | None = None
    is_without: bool = False
    grouping: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function."""

    function: str
    arguments: tuple[Expr, ...]


Expr = Number | Text | Selector | Unary | Binary | Aggregation | Call


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield an expression and all that it consists of."""
    yield expr
    below: tuple[Expr | None, ...]
    match expr:
        case Unary():
            below = (expr.operand,)
        case Binary():
            below = (expr.left, expr.right)
        case Aggregation():
            below = (expr.parameter, expr.operand)
        case Call():
            below = expr.arguments
        case _:
            below = ()
    for one in below:
        if one is not None:
            yield from walk(one)


def selectors(expr: Expr) -> tuple[Selector, ...]:
    """Return every selector of an expression."""
    return tuple(one for one in walk(expr) if isinstance(one, Selector))
