"""What is PromQL and what is none, and how it hangs together."""

from __future__ import annotations

import math

import pytest

from tests.promql.grammar import parse
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
    selectors,
)
from tests.promql.tokens import duration_ms
from tests.promql.values import NAME, PromqlError


def named(name: str, *matchers: Matcher, range_ms: int | None = None, offset_ms: int = 0) -> Selector:
    return Selector((Matcher(NAME, MatchOp.EQUAL, name), *matchers), range_ms, offset_ms)


A, B, C = named("a"), named("b"), named("c")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", Number(1)),
        (".5", Number(0.5)),
        ("1e3", Number(1000)),
        ("0x1F", Number(31)),
        ("Inf", Number(math.inf)),
        ('"a\\n\\"\\u00e9\\x41"', Text('a\n"éA')),
        (r"'\\.'", Text("\\.")),
        (r"`\.`", Text("\\.")),
        ("a # to the end of the line", A),
        ("a_total:rate5m", named("a_total:rate5m")),
        ('a{x="1",y!="2",z=~"3|4",w!~"5.*",}', named(
            "a",
            Matcher("x", MatchOp.EQUAL, "1"),
            Matcher("y", MatchOp.NOT_EQUAL, "2"),
            Matcher("z", MatchOp.LIKE, "3|4"),
            Matcher("w", MatchOp.NOT_LIKE, "5.*"),
        )),
        ('{x="1"}', Selector((Matcher("x", MatchOp.EQUAL, "1"),))),
        ("rate(a[5m])", Call("rate", (named("a", range_ms=300_000),))),
        ("a offset 1d", named("a", offset_ms=86_400_000)),
        ("rate(a[1h30m] offset -5m)", Call("rate", (named("a", range_ms=5_400_000, offset_ms=-300_000),))),
        ("time()", Call("time", ())),
        ("-a", Unary("-", A)),
    ],
)  # fmt: skip
def test_what_is_an_expression(text: str, expected: Expr) -> None:
    assert parse(text) == expected


def test_not_a_number() -> None:
    found = parse("NaN")
    assert isinstance(found, Number)
    assert math.isnan(found.value)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a * b + c", "(a * b) + c"),
        ("a - b - c", "(a - b) - c"),
        ("a / b * c % a", "((a / b) * c) % a"),
        ("a ^ b ^ c", "a ^ (b ^ c)"),
        ("-a ^ b", "-(a ^ b)"),
        ("-a * b", "(-a) * b"),
        ("a ^ -b * c", "(a ^ (-b)) * c"),
        ("a > b + c", "a > (b + c)"),
        ("a > b and b > c", "(a > b) and (b > c)"),
        ("a or b and c unless a", "a or ((b and c) unless a)"),
        ("a == b != c", "(a == b) != c"),
        ("sum by (x) (a)", "sum(a) by (x)"),
        ("sum without (x, y,) (a)", "sum(a) without (x, y)"),
        ("SUM(a) AND b", "sum(a) and b"),
    ],
)
def test_what_binds_more_tightly(text: str, same: str) -> None:
    assert parse(text) == parse(same)


def test_how_vectors_are_matched_and_grouped() -> None:
    matching = Matching(True, ("job", "instance"), "left", ("version",))
    assert parse("a * on (job, instance) group_left (version) b") == Binary("*", A, B, False, matching)
    assert parse("a == bool ignoring (x) b") == Binary("==", A, B, True, Matching(False, ("x",)))
    assert parse("a / ignoring () group_right b") == Binary("/", A, B, False, Matching(False, (), "right"))
    assert parse("topk by (x) (3, a)") == Aggregation("topk", A, Number(3), False, ("x",))
    assert parse('count_values("v", a)') == Aggregation("count_values", A, Text("v"))


def test_words_of_the_language_are_labels_and_metrics_too() -> None:
    assert parse('a{by="1", on="2", sum="3"}') == named(
        "a",
        Matcher("by", MatchOp.EQUAL, "1"),
        Matcher("on", MatchOp.EQUAL, "2"),
        Matcher("sum", MatchOp.EQUAL, "3"),
    )
    assert parse("sum") == named("sum")


def test_every_selector_is_found() -> None:
    found = selectors(parse("topk(scalar(a), -b) > bool clamp_max(c, 1) or absent(a)"))
    assert [one.name for one in found] == ["a", "b", "c", "a"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "unexpected 'end'"),
        ("a b", "unexpected 'b'"),
        ("(a", "expected ')'"),
        ("a +", "unexpected 'end'"),
        ("a ~ b", "unexpected character"),
        ("5mm", "unexpected character"),
        ("{}", "non-empty matcher"),
        ('{x=~".*"}', "non-empty matcher"),
        ('a{__name__="b"}', "set twice"),
        ("a{x=1}", "expected a matcher"),
        ('a{x="1" y="2"}', "expected '}'"),
        ('a{x:y="1"}', "expected a label"),
        (r'a{x=~"1\.2"}', "unknown escape"),
        ('a{x=~"("}', "not a regular expression"),
        ('a{x=~"a(?=b)"}', "RE2"),
        (r'a{x=~"(a)\\1"}', "RE2"),
        ("a[5]", "expected a duration"),
        ("a[0s]", "greater than 0"),
        ("a[5m:1m]", "subqueries"),
        ("rate(sum(a)[5m])", "expected ')'"),
        ("(a)[5m]", "ranges only allowed"),
        ("(a) offset 5m", "unexpected 'offset'"),
        ("a @ 5", "not read here"),
        ("a[5m][5m]", "not read here"),
        ("rate(a)", "expected range vector"),
        ("abs(a[5m])", "expected instant vector"),
        ("sum(a[5m])", "expected instant vector"),
        ("sum(1)", "expected instant vector"),
        ("a[5m] > 1", "operator >"),
        ('a + "b"', "operator +"),
        ("1 > 2", "must use BOOL"),
        ("1 and 2", "not allowed in binary scalar"),
        ("a and 1", "between a vector and a scalar"),
        ("a + bool b", "bool modifier"),
        ("a * on (x) 1", "only allowed between instant vectors"),
        ("a and on (x) group_left b", "no grouping allowed"),
        ("a * on (x) group_left (x) b", "ON and GROUP"),
        ("round()", "argument(s)"),
        ("round(a, 1, 2)", "argument(s)"),
        ("predict_linear(a[1h], 4h)", "unexpected '4h'"),
        ("topk(a)", "wrong number of arguments"),
        ("sum(a, b)", "wrong number of arguments"),
        ("topk(a, b)", "parameter of topk"),
        ("rates(a[5m])", "unknown function"),
    ],
)
def test_what_is_none(text: str, why: str) -> None:
    with pytest.raises(PromqlError) as caught:
        parse(text)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5m", 300_000), ("1h30m", 5_400_000), ("1d", 86_400_000), ("2w", 1_209_600_000), ("1s500ms", 1500), ("0s", 0)],
)
def test_durations(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "5", "m", "30m1h", "1m1m", "1.5h", "-5m", "5m "])
def test_no_durations(text: str) -> None:
    with pytest.raises(PromqlError):
        duration_ms(text)
