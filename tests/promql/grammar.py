"""The grammar of PromQL: an expression's text to its tree.

Left out, and refused by name: subqueries, the modifier ``@``, native histograms, durations in place of numbers.
"""

from __future__ import annotations

import re

from tests.promql.kinds import FUNCTIONS, shape_of
from tests.promql.syntax import (
    Aggregation,
    Binary,
    Call,
    Expr,
    Matcher,
    Matching,
    MatchOp,
    Number,
    Selector,
    Text,
    Unary,
)
from tests.promql.tokens import Kind, Token, duration_ms, number_of, text_of, tokens_of
from tests.promql.values import NAME, PromqlError

PRECEDENCE = {
    "or": 1,
    **dict.fromkeys(("and", "unless"), 2),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%"), 5),
    "^": 6,
}
"""A higher one binds more tightly; ``^`` alone groups from the right."""
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
SETS = frozenset({"and", "or", "unless"})
WITH_PARAMETER = frozenset({"topk", "bottomk", "quantile", "count_values"})
AGGREGATIONS = WITH_PARAMETER | {"sum", "avg", "min", "max", "count", "group", "stddev", "stdvar"}
_POWER = PRECEDENCE["^"]
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_RE2 = re.compile(r"\(\?(?:[=!]|<[=!])|(?<!\\)(?:\\\\)*\\[1-9]")
"""What Python's regular expressions know and Prometheus's do not: looking ahead or behind, and back references."""
_NUMBERS = {"inf": float("inf"), "nan": float("nan")}


def parse(text: str) -> Expr:
    """Return the tree of an expression.

    Raises:
        PromqlError: Prometheus would refuse it, or it needs what is left out here.
    """
    parser = _Parser(tokens_of(text))
    try:
        expr = parser.expression(0)
        parser.end()
        shape_of(expr)
    except PromqlError as error:
        raise PromqlError(f"{error}: in {text.strip()!r}") from None
    return expr


class _Parser:
    """Recursive descent, by precedence for operators."""

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self._tokens = tokens
        self._next = 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _is(self, *texts: str) -> bool:
        """Whether the next token is one of these signs or words."""
        return self._token.kind in (Kind.SIGN, Kind.NAME) and self._token.text in texts

    def _take(self) -> Token:
        token = self._token
        self._next += token.kind is not Kind.END
        return token

    def _take_if(self, *texts: str) -> str | None:
        return self._take().text if self._is(*texts) else None

    def _need(self, what: str) -> None:
        if self._take_if(what) is None:
            raise PromqlError(f"expected {what!r} at {self._token.at}, found {self._token.text!r}")

    def end(self) -> None:
        """Nothing may follow."""
        if self._token.kind is not Kind.END:
            raise PromqlError(f"unexpected {self._token.text!r} at {self._token.at}")

    def expression(self, least: int) -> Expr:
        """Return an expression of operators that bind at least so tightly."""
        left = self._unary()
        while True:
            word = self._token.text.lower() if self._token.kind is Kind.NAME else self._token.text
            binds = PRECEDENCE.get(word) if self._token.kind in (Kind.SIGN, Kind.NAME) else None
            if binds is None or binds < least:
                return left
            self._take()
            is_bool = self._take_if("bool") is not None
            if is_bool and word not in COMPARISONS:
                raise PromqlError("bool modifier can only be used on comparison operators")
            matching = self._matching(word)
            right = self.expression(binds if word == "^" else binds + 1)
            left = Binary(word, left, right, is_bool, matching)

    def _matching(self, op: str) -> Matching:
        word = self._take_if("on", "ignoring")
        if word is None:
            return Matching()
        labels = self._labels()
        group = self._take_if("group_left", "group_right")
        if group is None:
            return Matching(word == "on", labels)
        if op in SETS:
            raise PromqlError(f"no grouping allowed for {op!r} operation")
        include = self._labels() if self._is("(") else ()
        if word == "on" and set(include) & set(labels):
            raise PromqlError("a label must not occur in ON and GROUP clause at once")
        return Matching(word == "on", labels, group.removeprefix("group_"), include)

    def _labels(self) -> tuple[str, ...]:
        self._need("(")
        found: list[str] = []
        while not self._is(")"):
            found.append(self._label())
            if self._take_if(",") is None:
                break
        self._need(")")
        return tuple(found)

    def _label(self) -> str:
        token = self._take()
        if token.kind is not Kind.NAME or not _LABEL.fullmatch(token.text):
            raise PromqlError(f"expected a label at {token.at}, found {token.text!r}")
        return token.text

    def _unary(self) -> Expr:
        sign = self._take_if("-", "+")
        if sign is None:
            return self._primary()
        return Unary(sign, self.expression(_POWER))

    def _primary(self) -> Expr:
        token = self._token
        if token.kind is Kind.NUMBER:
            return Number(number_of(self._take().text))
        if token.kind is Kind.TEXT:
            return Text(text_of(self._take().text))
        if self._take_if("("):
            inner = self.expression(0)
            self._need(")")
            if self._is("["):
                raise PromqlError("ranges only allowed for vector selectors; subqueries are not read here")
            return inner
        if self._is("{"):
            return self._selector(None)
        if token.kind is not Kind.NAME:
            raise PromqlError(f"unexpected {token.text or 'end'!r} at {token.at}")
        return self._named(self._take())

    def _named(self, token: Token) -> Expr:
        name = token.text
        if name.lower() in _NUMBERS:
            return Number(_NUMBERS[name.lower()])
        if name.lower() in AGGREGATIONS and self._is("(", "by", "without"):
            return self._aggregation(name.lower())
        if self._is("("):
            if name not in FUNCTIONS:
                raise PromqlError(f"unknown function with name {name!r}")
            return Call(name, self._arguments())
        if name in PRECEDENCE:
            raise PromqlError(f"unexpected {name!r} at {token.at}")
        return self._selector(name)

    def _aggregation(self, op: str) -> Expr:
        modifier = self._modifier()
        arguments = self._arguments()
        modifier = modifier or self._modifier() or (False, ())
        expected = 2 if op in WITH_PARAMETER else 1
        if len(arguments) != expected:
            raise PromqlError(f"wrong number of arguments for {op!r}, expected {expected}, got {len(arguments)}")
        parameter = arguments[0] if expected == 2 else None
        return Aggregation(op, arguments[-1], parameter, *modifier)

    def _modifier(self) -> tuple[bool, tuple[str, ...]] | None:
        word = self._take_if("by", "without")
        return None if word is None else (word == "without", self._labels())

    def _arguments(self) -> tuple[Expr, ...]:
        self._need("(")
        found: list[Expr] = []
        while not self._is(")"):
            found.append(self.expression(0))
            if self._take_if(",") is None:
                break
        self._need(")")
        return tuple(found)

    def _selector(self, name: str | None) -> Expr:
        matchers = [] if name is None else [Matcher(NAME, MatchOp.EQUAL, name)]
        if self._take_if("{"):
            while not self._is("}"):
                matchers.append(self._matcher())
                if self._take_if(",") is None:
                    break
            self._need("}")
        if sum(one.label == NAME for one in matchers) > 1 and name is not None:
            raise PromqlError(f"metric name must not be set twice: {name!r}")
        if all(one.matches("") for one in matchers):
            raise PromqlError("vector selector must contain at least one non-empty matcher")
        range_ms = self._range() if self._is("[") else None
        offset_ms = self._offset() if self._take_if("offset") else 0
        if self._is("@", "["):
            raise PromqlError(f"{self._token.text!r} after a selector is not read here")
        return Selector(tuple(matchers), range_ms, offset_ms)

    def _matcher(self) -> Matcher:
        label = self._label()
        op = self._take_if("=", "!=", "=~", "!~")
        token = self._take()
        if op is None or token.kind is not Kind.TEXT:
            raise PromqlError(f"expected a matcher at {token.at}, found {token.text!r}")
        matcher = Matcher(label, MatchOp(op), text_of(token.text))
        if matcher.op in (MatchOp.LIKE, MatchOp.NOT_LIKE):
            if _NOT_RE2.search(matcher.value):
                raise PromqlError(f"not a regular expression of RE2: {matcher.value!r}")
            try:
                re.compile(matcher.value)
            except re.error as error:
                raise PromqlError(f"not a regular expression: {matcher.value!r}, {error}") from None
        return matcher

    def _duration(self) -> int:
        token = self._take()
        if token.kind is not Kind.DURATION:
            raise PromqlError(f"expected a duration at {token.at}, found {token.text!r}")
        return duration_ms(token.text)

    def _range(self) -> int:
        self._need("[")
        range_ms = self._duration()
        if self._token.text.startswith(":"):
            raise PromqlError("subqueries are not read here")
        self._need("]")
        if range_ms == 0:
            raise PromqlError("duration must be greater than 0")
        return range_ms

    def _offset(self) -> int:
        sign = self._take_if("-", "+")
        return self._duration() * (-1 if sign == "-" else 1)
