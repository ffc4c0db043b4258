"""Rule files as Prometheus reads them, the state of alerts over time, and their words."""

from __future__ import annotations

import pytest

from logdir.errors import ConfigError
from tests.promql.evaluate import evaluate
from tests.promql.notation import MINUTE_MS, load
from tests.promql.rule_file import read_rules
from tests.promql.rules import Alert, alerts_over
from tests.promql.templates import FUNCTIONS, rendered
from tests.promql.values import PromqlError, labels_of, shown

FILE = """
groups:
- name: one
  interval: 1m
  rules:
  - record: job:a:sum
    expr: sum by (job) (a)
    labels: {level: job}
  - alert: TooMuch
    expr: job:a:sum > 5
    for: 2m
    labels: {severity: warning}
    annotations: {summary: "{{ $labels.job }} has {{ $value }}"}
"""


def states(file: str, series: str, minutes: int) -> list[str]:
    """Return for each minute the state of each alert: ``-`` none, ``p`` pending, ``F`` it fires."""
    groups = read_rules(file.encode(), "rules.yml")
    found: list[str] = []
    for _, alerts in alerts_over(groups, load(series), from_ms=0, to_ms=minutes * MINUTE_MS):
        found.append("".join("F" if one.is_firing else "p" for one in alerts) or "-")
    return found


def test_an_alert_fires_once_it_was_found_for_its_time() -> None:
    assert states(FILE, 'a{job="x", i="1"} 1 4 4 4 4 1 4\na{job="x", i="2"} 1 4 4 4 4 1 4', 6) == list("-ppFF-p")


def test_each_set_of_labels_has_a_state_of_its_own() -> None:
    found = states(FILE, 'a{job="x"} 9x5\na{job="y"} 1 9x4', 4)
    assert found == ["p", "pp", "Fp", "FF", "FF"]


def test_an_alert_that_is_kept_fires_until_its_time_is_over() -> None:
    kept = FILE.replace("for: 2m", "for: 1m\n    keep_firing_for: 2m")
    assert states(kept, 'a{job="x"} 9 9 1 9 1 1 1 1', 7) == list("pFFFFF--")


def test_what_an_alert_is() -> None:
    groups = read_rules(FILE.encode(), "rules.yml")
    *_, (_, (alert,)) = alerts_over(groups, load('a{job="x"} 9x5'), from_ms=0, to_ms=2 * MINUTE_MS)
    labels = labels_of(job="x", level="job", severity="warning", alertname="TooMuch")
    words = (("summary", "x has 9"),)
    assert alert == Alert(name="TooMuch", labels=labels, annotations=words, value=9, is_firing=True)


def test_what_is_recorded_ends_with_its_series() -> None:
    store = load('a{job="x"} 9 9 stale')
    for _ in alerts_over(read_rules(FILE.encode(), "rules.yml"), store, from_ms=0, to_ms=2 * MINUTE_MS):
        pass
    found = [evaluate("job:a:sum", store, minute * MINUTE_MS) for minute in (1, 2)]
    assert [[shown(one.labels) for one in vector] for vector in found if isinstance(vector, tuple)] == [
        ['job:a:sum{job="x", level="job"}'],
        [],
    ]


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("groups:", "group:", "not found in a rule file"),
        ("interval: 1m", "intervall: 1m", "not found in a rule file"),
        ("interval: 1m", "interval: 1", "expected a text"),
        ("interval: 1m", "interval: 1 m", "not a valid duration"),
        ("for: 2m", "For: 2m", "not found in a rule file"),
        ("labels: {level: job}", "for: 2m", "not found in a rule file"),
        ("labels: {level: job}", "labels: {level: 1}", "expected a text"),
        ("labels: {level: job}", "labels: {le-vel: job}", "invalid label name"),
        ("record: job:a:sum", "record: job-a-sum", "invalid recording rule name"),
        ("expr: job:a:sum > 5", "expr: job:a:sum >", "unexpected 'end'"),
        ("expr: job:a:sum > 5", "expr: job:a:sum[5m]", "expected an instant vector"),
        ("expr: job:a:sum > 5", "expr: 5", "expected a text"),
        ("- name: one", "- title: one", "expected a text"),
        ("  rules:", "  rules: []\n  limit:", "expected a list"),
    ],
)
def test_what_prometheus_refuses(before: str, after: str, why: str) -> None:
    assert before in FILE
    with pytest.raises(PromqlError, match=why):
        read_rules(FILE.replace(before, after, 1).encode(), "rules.yml")


def test_what_is_there_twice() -> None:
    with pytest.raises(ConfigError):
        read_rules(FILE.replace("for: 2m", "for: 2m\n    for: 3m").encode(), "rules.yml")
    with pytest.raises(PromqlError, match="group is repeated"):
        read_rules((FILE + FILE.split("groups:\n")[1]).encode(), "rules.yml")
    with pytest.raises(PromqlError, match="rule repeated"):
        read_rules((FILE + "  - record: job:a:sum\n    expr: a\n    labels: {level: job}\n").encode(), "rules.yml")


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        ("humanize", 0, "0"),
        ("humanize", 1_234_567, "1.235M"),
        ("humanize", 0.05, "50m"),
        ("humanize", 999, "999"),
        ("humanize1024", 1_048_576, "1Mi"),
        ("humanize1024", 1536, "1.5ki"),
        ("humanize1024", 0.5, "0.5"),
        ("humanize1024", -2048, "-2ki"),
        ("humanizeDuration", 0, "0s"),
        ("humanizeDuration", 0.1, "100ms"),
        ("humanizeDuration", 1, "1s"),
        ("humanizeDuration", 12345, "3h 25m 45s"),
        ("humanizeDuration", 100_000, "1d 3h 46m 40s"),
        ("humanizeDuration", -60, "-1m 0s"),
        ("humanizePercentage", 0.1234567, "12.35%"),
        ("humanizeTimestamp", 1435065584.128, "2015-06-23 13:19:44.128 +0000 UTC"),
        ("humanizeTimestamp", 0, "1970-01-01 00:00:00 +0000 UTC"),
    ],
)
def test_figures_for_people(function: str, value: float, expected: str) -> None:
    assert FUNCTIONS[function](value) == expected


def test_the_words_of_an_alert() -> None:
    text = "{{ $labels.job }}: {{ $value | humanize1024 }}B, {{$value}}"
    assert rendered(text, labels_of(job="x"), 2048) == "x: 2kiB, 2048"


@pytest.mark.parametrize(
    "text", ["{{ $labels.jab }}", "{{ .Labels.job }}", "{{ $value | humanise }}", "{{ $value", "{{ end }}"]
)
def test_words_that_say_nothing(text: str) -> None:
    with pytest.raises(PromqlError):
        rendered(text, labels_of(job="x"), 1)
