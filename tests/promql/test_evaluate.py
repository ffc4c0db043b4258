"""The value of expressions, against figures that Prometheus gives or that can be counted by hand."""

from __future__ import annotations

import math

import pytest

from tests.promql.evaluate import evaluate
from tests.promql.notation import load, values_of
from tests.promql.store import Store
from tests.promql.values import PromqlError, shown

FIVE = 5 * 60 * 1000
AT_50M = 50 * 60 * 1000


def of(expr: str, store: Store, at_ms: int = AT_50M) -> dict[str, float] | float | str:
    """Return the elements of a vector by their labels as Prometheus writes them, or the number."""
    value = evaluate(expr, store, at_ms)
    return {shown(one.labels): one.value for one in value} if isinstance(value, tuple) else value


def close(expected: dict[str, float] | float) -> object:
    return pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


COUNTERS = load(
    """
    http_requests_total{path="/foo"}    0+10x10
    http_requests_total{path="/bar"}    0+18x5 0+18x5
    http_requests_total{path="/dings"}  10+10x10
    http_requests_total{path="/bumms"}  1+10x10
    middle_total                        0+10x4 0+10x5
    flips{path="/foo"}                  1 2 3 0 1 0 0 1 2 0
    flips{path="/bar"}                  1 2 3 4 5 1 2 3 4 5
    flips{path="/biz"}                  0 0 0 0 0 1 1 1 1 1
    once_total                          _x10 7
    """,
    FIVE,
)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        # Every sample but the first lies in the range; each series is extended to its start.
        ("increase(http_requests_total[50m])", {"/foo": 100, "/bar": 160, "/dings": 100, "/bumms": 100}),
        # The range begins long before: half a step is added, and no more than takes the counter to zero.
        ("increase(http_requests_total[100m])", {"/foo": 100, "/bar": 162, "/dings": 105, "/bumms": 101}),
        ('rate(http_requests_total{path="/foo"}[50m])', {"/foo": 100 / 3000}),
        ('irate(http_requests_total{path="/foo"}[50m])', {"/foo": 10 / 300}),
        ("resets(flips[50m])", {"/foo": 3, "/bar": 1, "/biz": 0}),
        ("resets(flips[31m])", {"/foo": 2, "/bar": 1, "/biz": 0}),
        ("changes(flips[50m])", {"/foo": 7, "/bar": 8, "/biz": 1}),
        ("delta(flips[51m])", {"/foo": -51 / 45, "/bar": 4 * 51 / 45, "/biz": 51 / 45}),
    ],
)
def test_what_happened_in_a_range(expr: str, expected: dict[str, float]) -> None:
    assert of(expr, COUNTERS) == close({f'{{path="{path}"}}': value for path, value in expected.items()})


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("rate(middle_total[50m])", 80 * 50 / 45 / 3000),
        ("deriv(middle_total[100m])", 0.010606060606060607),
        ("predict_linear(middle_total[100m], 3600)", 76.81818181818181),
        ("predict_linear(middle_total[50m], 3600)", 70.0),
        ("idelta(middle_total[50m])", 10),
        ("avg_over_time(middle_total[15m])", 40),
        ("min_over_time(middle_total[30m])", 0),
        ("max_over_time(middle_total[100m])", 50),
        ("sum_over_time(middle_total[15m])", 120),
        ("count_over_time(middle_total[15m])", 3),
        ("stdvar_over_time(middle_total[15m])", 200 / 3),
        ("quantile_over_time(0.5, middle_total[20m])", 35),
        ("present_over_time(once_total[5m])", 1),
        ("absent_over_time(nothing[5m])", 1),
    ],
)
def test_what_one_series_did(expr: str, expected: float) -> None:
    assert of(expr, COUNTERS) == close({"{}": expected})


@pytest.mark.parametrize(
    "expr",
    ["rate(once_total[1h])", "deriv(once_total[1h])", "absent_over_time(once_total[1h])", "rate(nothing[1h])"],
)
def test_what_has_no_result(expr: str) -> None:
    assert of(expr, COUNTERS) == {}


def test_last_over_time_keeps_the_name() -> None:
    assert of("last_over_time(once_total[5m])", COUNTERS) == {"once_total{}": 7}


def test_a_counter_that_begins_again_counts_from_zero() -> None:
    assert of("irate(middle_total[25m])", COUNTERS, 25 * 60 * 1000) == {"{}": 0}
    assert of("increase(middle_total[15m])", COUNTERS, 25 * 60 * 1000) == close({"{}": 10 * 15 / 10})


SERIES = load("a{x='1'} 1 2 3 stale\na{x='2'} 5 _ _ _ _ _ 6\nb{x='1'} 10x9", 60_000)


@pytest.mark.parametrize(
    ("minute", "expected"),
    [
        (0, {'a{x="1"}': 1, 'a{x="2"}': 5}),
        (2, {'a{x="1"}': 3, 'a{x="2"}': 5}),
        (3, {'a{x="2"}': 5}),  # The series says that it has ended.
        (4, {'a{x="2"}': 5}),
        (5, {}),  # Five minutes old.
        (6, {'a{x="2"}': 6}),
    ],
)
def test_a_sample_counts_for_five_minutes_unless_its_series_ends(minute: int, expected: dict[str, float]) -> None:
    assert of("a", SERIES, minute * 60_000) == expected


def test_an_offset_looks_back_and_a_range_leaves_stale_markers_out() -> None:
    assert of("a offset 3m", SERIES, 4 * 60_000) == {'a{x="1"}': 2, 'a{x="2"}': 5}
    assert of("a offset -2m", SERIES, 0) == {'a{x="1"}': 3, 'a{x="2"}': 5}
    assert of("count_over_time(a[4m])", SERIES, 4 * 60_000) == {'{x="1"}': 2}
    assert of("count_over_time(a[4m] offset 1m)", SERIES, 5 * 60_000) == {'{x="1"}': 2}
    assert of("timestamp(a)", SERIES, 4 * 60_000) == {'{x="2"}': 0}
    assert of("timestamp(a + 0)", SERIES, 4 * 60_000) == {'{x="2"}': 240}


HISTOGRAM = load(
    """
    h_bucket{le="0.1", start="positive"}   0+5x10
    h_bucket{le=".2", start="positive"}    0+7x10
    h_bucket{le="1e0", start="positive"}   0+11x10
    h_bucket{le="+Inf", start="positive"}  0+12x10
    h_bucket{le="-.2", start="negative"}   0+1x10
    h_bucket{le="-0.1", start="negative"}  0+2x10
    h_bucket{le="0.3", start="negative"}   0+2x10
    h_bucket{le="+Inf", start="negative"}  0+3x10
    open_bucket{le="1"}                    1x10
    empty_bucket{le="1"}                   0x10
    empty_bucket{le="+Inf"}                0x10
    falling_bucket{le="1"}                 4x10
    falling_bucket{le="2"}                 3x10
    falling_bucket{le="+Inf"}              4x10
    """,
    FIVE,
)


@pytest.mark.parametrize(
    ("part", "positive", "negative"),
    [
        (-0.1, -math.inf, -math.inf),
        (0, 0, -0.2),
        (0.2, 0.048, -0.2),
        (0.5, 0.15, -0.15),
        (0.8, 0.72, 0.3),
        (1, 1, 0.3),
        (1.01, math.inf, math.inf),
    ],
)
def test_quantiles_of_histograms(part: float, positive: float, negative: float) -> None:
    expected = {'{start="positive"}': positive, '{start="negative"}': negative}
    assert of(f"histogram_quantile({part}, h_bucket)", HISTOGRAM) == close(expected)
    assert of(f"histogram_quantile({part}, rate(h_bucket[50m]))", HISTOGRAM) == close(expected)


@pytest.mark.parametrize(("name", "expected"), [("open", math.nan), ("empty", math.nan), ("falling", 0.5)])
def test_histograms_that_are_no_whole_ones(name: str, expected: float) -> None:
    assert of(f"histogram_quantile(0.5, {name}_bucket)", HISTOGRAM) == close({"{}": expected})


GAUGES = load(
    """
    a{x="1", y="u"}  1
    a{x="2", y="u"}  2
    a{x="3", y="v"}  6
    b{x="1"}         10
    b{x="3"}         30
    c{z="w"}         5
    info{y="u", version="0.3.0"}  1
    info{y="v", version="0.3.1"}  1
    n                NaN
    p{x="9"}         1
    q{x="9"}         2
    """
)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("1 + 2 * 3 ^ 2", 19),
        ("-2 ^ 2", -4),
        ("2 ^ 3 ^ 2", 512),
        ("-7 % 3", -1),
        ("1 / 0", math.inf),
        ("-1 / 0", -math.inf),
        ("0 / 0", math.nan),
        ("0 ^ -1", math.inf),
        ("-8 ^ 0.5", -math.sqrt(8)),
        ("(-8) ^ 0.5", math.nan),
        ("1 > bool 2", 0),
        ("2 == bool 2", 1),
        ("scalar(c)", 5),
        ("scalar(a)", math.nan),
        ("time()", 0),
        ("a > 1", {'a{x="2", y="u"}': 2, 'a{x="3", y="v"}': 6}),
        ("5 > a", {'a{x="1", y="u"}': 1, 'a{x="2", y="u"}': 2}),
        ("a > bool 1", {'{x="1", y="u"}': 0, '{x="2", y="u"}': 1, '{x="3", y="v"}': 1}),
        ("2 * c", {'{z="w"}': 10}),
        ("-c", {'{z="w"}': -5}),
        ("a / ignoring (y) b", {'{x="1"}': 0.1, '{x="3"}': 0.2}),
        ("b > on (x) a", {'{x="1"}': 10, '{x="3"}': 30}),
        ("b > ignoring (y) a", {'b{x="1"}': 10, 'b{x="3"}': 30}),
        ("a + on (y) group_left (version) info", {
            '{version="0.3.0", x="1", y="u"}': 2,
            '{version="0.3.0", x="2", y="u"}': 3,
            '{version="0.3.1", x="3", y="v"}': 7,
        }),
        ("info < on (y) group_right a", {'a{x="2", y="u"}': 1, 'a{x="3", y="v"}': 1}),
        ("a and on (x) b", {'a{x="1", y="u"}': 1, 'a{x="3", y="v"}': 6}),
        ("a unless on (x) b", {'a{x="2", y="u"}': 2}),
        ("b or on () c", {'b{x="1"}': 10, 'b{x="3"}': 30}),
        ("nothing or c", {'c{z="w"}': 5}),
        ("sum(a)", {"{}": 9}),
        ("avg by (y) (a)", {'{y="u"}': 1.5, '{y="v"}': 6}),
        ("max without (x) (a)", {'{y="u"}': 2, '{y="v"}': 6}),
        ("min(a)", {"{}": 1}),
        ("count by (version) (info)", {'{version="0.3.0"}': 1, '{version="0.3.1"}': 1}),
        ("group(a)", {"{}": 1}),
        ("stddev(a)", {"{}": math.sqrt(14 / 3)}),
        ("stdvar by (y) (a)", {'{y="u"}': 0.25, '{y="v"}': 0}),
        ("quantile(0.75, a)", {"{}": 4}),
        ("topk(1, a)", {'a{x="3", y="v"}': 6}),
        ("bottomk by (y) (1, a)", {'a{x="1", y="u"}': 1, 'a{x="3", y="v"}': 6}),
        ("topk(0, a)", {}),
        ('count_values("v", a > bool 1)', {'{v="0"}': 1, '{v="1"}': 2}),
        ("sum(nothing)", {}),
        ("count(nothing) > 0 or vector(0)", {"{}": 0}),
        ("absent(a)", {}),
        ('absent(nothing{x="1", y=~"2.*"})', {'{x="1"}': 1}),
        ("absent(sum(nothing))", {"{}": 1}),
        ("abs(-c)", {'{z="w"}': 5}),
        ("round(c / 2)", {'{z="w"}': 3}),
        ("round(c, 2)", {'{z="w"}': 6}),
        ("floor(c / 2)", {'{z="w"}': 2}),
        ("ceil(c / 2)", {'{z="w"}': 3}),
        ("clamp(a, 2, 5)", {'{x="1", y="u"}': 2, '{x="2", y="u"}': 2, '{x="3", y="v"}': 5}),
        ("clamp(a, 5, 2)", {}),
        ("clamp_min(c, 6)", {'{z="w"}': 6}),
        ("clamp_max(c, 4)", {'{z="w"}': 4}),
        ("ln(c - 5)", {'{z="w"}': -math.inf}),
        ("sgn(c - 9)", {'{z="w"}': -1}),
        ("n == n", {}),
        ('label_replace(c, "k", "$1-${1}$$", "z", "(w).*")', {'c{k="w-w$", z="w"}': 5}),
        ('label_replace(c, "k", "$1", "z", "v(.*)")', {'c{z="w"}': 5}),
        ('label_replace(c, "z", "", "z", ".*")', {"c{}": 5}),
    ],
)  # fmt: skip
def test_operators_and_functions_of_an_instant(expr: str, expected: dict[str, float] | float) -> None:
    assert of(expr, GAUGES, 0) == close(expected)


def test_elements_are_sorted_by_their_values() -> None:
    store = load('d{x="1"} 3\nd{x="2"} NaN\nd{x="3"} 1')
    assert list(of("sort(d)", store, 0)) == ['d{x="3"}', 'd{x="1"}', 'd{x="2"}']  # type: ignore[arg-type]  # a vector
    assert list(of("sort_desc(d)", store, 0)) == ['d{x="1"}', 'd{x="3"}', 'd{x="2"}']  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expr", "why"),
    [
        ("b + on (y) a", "duplicate series for the match group"),
        ("a + on (y) info", "many-to-one matching must be explicit"),
        ("a + on (y) group_right info", "duplicate series"),
        ('abs({x="9"})', "same labelset"),
        ('label_replace(a, "x", "", "x", ".*") and a', "same labelset"),
        ('label_replace(a, "x-y", "", "x", ".*")', "invalid destination label"),
        ("a[5m]", "range vector"),
    ],
)
def test_vectors_that_do_not_fit(expr: str, why: str) -> None:
    with pytest.raises(PromqlError, match=why):
        evaluate(expr, GAUGES, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 -2.5 1e3", (1, -2.5, 1000)),
        ("0+10x3", (0, 10, 20, 30)),
        ("5-1x2", (5, 4, 3)),
        ("-1-1x2", (-1, -2, -3)),
        ("7x2", (7, 7, 7)),
        ("1 _ _x2 stale", (1, None, None, None, "stale")),
        ("1.5e9+60x1", (1.5e9, 1_500_000_060)),
        ("", ()),
    ],
)
def test_the_notation_of_series(text: str, expected: tuple[float | str | None, ...]) -> None:
    assert values_of(text) == expected


@pytest.mark.parametrize("text", ["x3", "1+x3", "1x", "one", "1,2", "_y"])
def test_no_notation(text: str) -> None:
    with pytest.raises(PromqlError):
        values_of(text)


def test_samples_of_a_series_come_in_order() -> None:
    with pytest.raises(PromqlError, match="out of order"):
        load("a 1", store=load("a 1 2"))
