"""The table of metrics, the text format and dashboards are read as they are written."""

from __future__ import annotations

import pytest

from tests.monitoring.contract import read_table, series_of, unknown, values_matched
from tests.monitoring.exposition import read_exposition
from tests.monitoring.grafana import names_of_variables, substituted
from tests.promql.grammar import parse
from tests.promql.values import PromqlError, labels_of

PAGE = """
# Metrics

| key | type |
|---|---|
| `logdird_not_a_metric` | text |

| metric | type | labels | meaning |
|---|---|---|---|
| `logdird_info` | gauge | `daemon`, `version` | 1 |
| `logdird_free_bytes`, `logdird_size_bytes` | gauge | `log_dir` | of its disk, also as `logdird_other` |
| `logdird_done_total` | counter | - | done |
| `logdird_documents_total` | counter | `outcome` (done, refused) | documents |
| `logdird_look_seconds` | histogram | `log_dir` | a look |

The end of `logdird_text`.
"""
TABLE = read_table(PAGE)


def test_the_table_of_metrics() -> None:
    assert {name: (one.type, sorted(one.labels)) for name, one in TABLE.items()} == {
        "logdird_info": ("gauge", ["daemon", "version"]),
        "logdird_free_bytes": ("gauge", ["log_dir"]),
        "logdird_size_bytes": ("gauge", ["log_dir"]),
        "logdird_done_total": ("counter", []),
        "logdird_documents_total": ("counter", ["outcome"]),
        "logdird_look_seconds": ("histogram", ["log_dir"]),
    }
    assert all(name == one.name for name, one in TABLE.items())


def test_the_series_of_a_histogram() -> None:
    found = series_of(TABLE)
    assert "logdird_look_seconds" not in found
    assert found["logdird_look_seconds_bucket"] == {"log_dir", "le", "daemon"}
    assert found["logdird_look_seconds_sum"] == found["logdird_look_seconds_count"] == {"log_dir", "daemon"}
    assert found["process_open_fds"] == set()
    assert found["logdird_process_open_fds"] == {"daemon"}


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ('sum by (job, le) (rate(logdird_look_seconds_bucket{instance="x", log_dir=~"a|b"}[5m]))', []),
        ("logdird_free_bytes / logdird_size_bytes", []),
        ("logdird_done_total * on (job, instance) group_left (version) logdird_info", []),
        ("logdird_look_seconds", ["metric logdird_look_seconds"]),
        ('{job="x"}', ["metric None"]),
        ('logdird_done_total{log_dir="x"}', ["label log_dir of logdird_done_total"]),
        ("sum by (kind) (logdird_free_bytes)", ["label kind of a group or match"]),
        ("logdird_done_total + on (log_dir) logdird_info", ["label log_dir of a group or match"]),
        ("up == 0 or logdird_nothing", ["metric logdird_nothing"]),
    ],
)
def test_what_no_series_has(expr: str, expected: list[str]) -> None:
    assert unknown(parse(expr), series_of(TABLE)) == expected


def test_the_values_that_a_selector_names() -> None:
    found = values_matched(parse('logdird_documents_total{outcome=~"done|refused"} > logdird_info{daemon!="b1"}'))
    assert list(found) == [
        ("logdird_documents_total", "outcome", "done"),
        ("logdird_documents_total", "outcome", "refused"),
        ("logdird_info", "daemon", "b1"),
    ]


def test_the_text_format() -> None:
    text = (
        "# HELP logdird_free_bytes Free.\n# TYPE logdird_free_bytes gauge\n"
        'logdird_free_bytes{log_dir="/a\\"b\\\\c"} 1.5e+09\n'
        "# TYPE logdird_look_seconds histogram\n"
        'logdird_look_seconds_bucket{le="+Inf",log_dir="/d"} 3 1700000000000\n\n'
    )
    found = read_exposition(text)
    assert found.types == {"logdird_free_bytes": "gauge", "logdird_look_seconds": "histogram"}
    assert found.samples[labels_of(__name__="logdird_free_bytes", log_dir='/a"b\\c')] == 1.5e9
    assert found.samples[labels_of(__name__="logdird_look_seconds_bucket", log_dir="/d", le="+Inf")] == 3
    assert {"logdird_free_bytes", "logdird_look_seconds_sum"} <= found.names


@pytest.mark.parametrize("text", ["a", "a{x} 1", "a{x='1'} 1", "a 1\na 2", "a one two three"])
def test_no_text_format(text: str) -> None:
    with pytest.raises(PromqlError):
        read_exposition(text)


def test_the_variables_of_a_dashboard() -> None:
    text = 'rate(a{instance=~"$instance", log_dir=~"${log_dir:regex}"}[$__rate_interval])'
    assert names_of_variables(text) == {"instance", "log_dir"}
    expected = 'rate(a{instance=~"x", log_dir=~".*"}[4m])'
    assert substituted(text, {"instance": "x", "log_dir": ".*"}) == expected
    with pytest.raises(KeyError):
        substituted(text, {"instance": "x"})
