"""The Grafana dashboard of ``examples/monitoring`` can be imported, and each of its panels shows something.

Its expressions are read and evaluated as Grafana would send them, over the series of a daemon that is well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from logdir.daemon.state import DaemonState, LogDirState
from tests.monitoring.contract import read_table, series_of, unknown, values_matched
from tests.monitoring.grafana import Dashboard, names_of_variables, read_dashboard, substituted
from tests.monitoring.healthy import store_of, store_of_files
from tests.promql.evaluate import evaluate
from tests.promql.grammar import parse
from tests.promql.kinds import Shape, shape_of
from tests.promql.notation import MINUTE_MS
from tests.promql.store import Store
from tests.promql.syntax import selectors
from tests.promql.values import value_of

ROOT = Path(__file__).parents[1]
DASHBOARD: Dashboard = read_dashboard(ROOT / "examples" / "monitoring" / "logdird-dashboard.json")
METRICS = ROOT / "docs" / "metrics.md"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
PANELS = tuple(one for one in DASHBOARD.panels if one["type"] != "row")
QUERIES = tuple((panel, target) for panel in PANELS for target in panel["targets"])
KINDS = {"stat", "timeseries", "state-timeline", "heatmap", "table"}
AT_MS = 30 * MINUTE_MS
ALL = {"daemon": ".*", "node": ".*", "log_dir": ".*"}
ANY = {**ALL, "instance": ".*"}
EXPRESSIONS = tuple(parse(substituted(target["expr"], ANY)) for _, target in QUERIES)
"""As Grafana sends them if all is chosen."""
GAP = "logdird_last_gap_end_timestamp_seconds"
SCRAPED = store_of(30, f"{GAP}  60x30")
FROM_FILES = store_of_files(30, f'{GAP}{{daemon="b1"}}  60x30')
PLACES = (
    pytest.param(SCRAPED, {**ALL, "instance": "b1:9404"}, id="scraped"),
    pytest.param(FROM_FILES, {**ALL, "instance": "b1:9100"}, id="from files"),
    pytest.param(
        FROM_FILES, {"daemon": "b1", "node": "1", "log_dir": "(/d1|/d2)", "instance": "b1:9100"}, id="one of two"
    ),
)


def test_it_is_a_dashboard_that_every_grafana_imports() -> None:
    document = DASHBOARD.document
    assert (document["id"], document["uid"], document["title"]) == (None, "logdird", "logdird")
    assert document["schemaVersion"] >= 39
    assert "__inputs" not in document, "the data source is a variable"
    numbers = [one["id"] for one in DASHBOARD.panels]
    assert len(set(numbers)) == len(numbers)
    assert {one["type"] for one in PANELS} == KINDS


def test_every_panel_says_what_it_shows_and_asks_the_source_that_was_chosen() -> None:
    for panel in PANELS:
        assert panel["title"], panel["id"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["datasource"] == SOURCE, panel["title"]
        assert panel["targets"], panel["title"]
        letters = [one["refId"] for one in panel["targets"]]
        assert len(set(letters)) == len(letters), panel["title"]
        assert all(one["datasource"] == SOURCE for one in panel["targets"]), panel["title"]
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)


def test_no_panel_lies_on_another_one() -> None:
    for panel in DASHBOARD.panels:
        place = panel["gridPos"]
        assert min(place.values()) >= 0, panel["title"]
        assert place["x"] + place["w"] <= 24, panel["title"]
    for one, other in combinations(DASHBOARD.panels, 2):
        a, b = one["gridPos"], other["gridPos"]
        is_beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        is_above = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert is_beside or is_above, f"{one['title']}, {other['title']}"


def test_its_variables_choose_the_source_the_daemon_its_node_and_log_dirs() -> None:
    assert list(DASHBOARD.variables) == ["datasource", "daemon", "node", "instance", "log_dir"]
    assert DASHBOARD.variables["datasource"]["type"] == "datasource"
    assert DASHBOARD.variables["datasource"]["query"] == "prometheus"
    for name in ("daemon", "node", "instance", "log_dir"):
        variable = DASHBOARD.variables[name]
        assert variable["datasource"] == SOURCE
        assert variable["multi"] is variable["includeAll"] is True
        assert variable.get("allValue") == ALL.get(name)
    used = {name for _, target in QUERIES for name in names_of_variables(target["expr"])}
    used |= {name for _, selector, _ in DASHBOARD.label_values for name in names_of_variables(selector)}
    assert used == {"daemon", "node", "instance", "log_dir"}


@pytest.mark.parametrize(("store", "chosen"), PLACES)
def test_each_variable_has_values(store: Store, chosen: Mapping[str, str]) -> None:
    expected = {"daemon": {"b1", "b2"}, "node": {"1"}, "instance": {chosen["instance"]}, "log_dir": {"/d1", "/d2"}}
    for name, selector, label in DASHBOARD.label_values:
        found = evaluate(substituted(selector, chosen), store, AT_MS)
        assert isinstance(found, tuple)
        values = {value_of(one.labels, label) for one in found}
        assert values, name
        assert values <= expected[name], name


@pytest.mark.parametrize(("store", "chosen"), PLACES)
@pytest.mark.parametrize(("panel", "target"), QUERIES, ids=[f"{one['title']} {two['refId']}" for one, two in QUERIES])
def test_each_query_shows_something(
    panel: Mapping[str, Any], target: Mapping[str, Any], store: Store, chosen: Mapping[str, str]
) -> None:
    found = evaluate(substituted(target["expr"], chosen), store, AT_MS)
    assert isinstance(found, tuple)
    assert found
    legends = [tuple(value_of(one.labels, name) for name in _shown(target)) for one in found]
    # What cannot be told apart in the legend is drawn as two lines of one name.
    assert len(set(legends)) == len(legends), panel["title"]
    for one in legends:
        assert all(value for name, value in zip(_shown(target), one, strict=True) if name != "daemon"), panel["title"]


def _shown(target: Mapping[str, Any]) -> list[str]:
    """Return the labels by which a reader tells series apart: those of the legend, or those of a row of the table."""
    if target.get("format") == "table":
        return ["instance", "daemon", *(["log_dir"] if "log_dir" in target["expr"] else [])]
    return re.findall(r"\{\{ *(\w+) *\}\}", target["legendFormat"])


@pytest.mark.parametrize(("panel", "target"), QUERIES, ids=[f"{one['title']} {two['refId']}" for one, two in QUERIES])
def test_each_query_asks_for_what_is_in_the_table(panel: Mapping[str, Any], target: Mapping[str, Any]) -> None:
    known = series_of(read_table(METRICS.read_text("utf-8")))
    expr = parse(substituted(target["expr"], ANY))
    assert shape_of(expr) is Shape.INSTANT
    assert unknown(expr, known) == []
    possible = {"state": {one.value for one in LogDirState}, "job": {"logdird"}}
    for metric, label, value in values_matched(expr):
        assert value in possible.get(label, {".*", ""}), f"{panel['title']}: {metric}{{{label}}}"


def test_what_comes_as_a_histogram_is_drawn_as_one() -> None:
    (heatmap,) = (panel for panel in PANELS if panel["type"] == "heatmap")
    (target,) = heatmap["targets"]
    assert (target["format"], target["legendFormat"]) == ("heatmap", "{{le}}")
    assert heatmap["options"]["calculate"] is False


def test_a_table_asks_for_now_and_all_else_for_a_time() -> None:
    for panel, target in QUERIES:
        is_of_now = panel["type"] in ("table", "stat")
        assert (target["instant"], target["range"]) == (is_of_now, not is_of_now), panel["title"]


def test_a_query_of_a_counter_is_as_long_as_grafana_says() -> None:
    for panel, target in QUERIES:
        ranges = re.findall(r"\[(.*?)\]", target["expr"])
        assert set(ranges) <= {"$__rate_interval"}, panel["title"]


def test_states_have_the_names_of_their_numbers() -> None:
    by_title = {panel["title"]: panel for panel in PANELS}
    (mapping,) = by_title["State"]["fieldConfig"]["defaults"]["mappings"]
    assert {int(number) for number in mapping["options"]} == {int(one) for one in DaemonState} - {0}
    timeline = by_title["State of each log dir"]
    (mapping,) = timeline["fieldConfig"]["defaults"]["mappings"]
    named = {one["text"]: float(number) for number, one in mapping["options"].items()}
    assert named.keys() == {one.value for one in LogDirState}
    (target,) = timeline["targets"]
    for state, number in named.items():
        bad = "\n".join(
            f'logdird_log_dir_state{{log_dir="/d1", state="{one.value}"}}  {int(one.value == state)}x30'
            for one in LogDirState
        )
        found = evaluate(substituted(target["expr"], ANY), store_of(30, bad), AT_MS)
        assert isinstance(found, tuple)
        assert {value_of(one.labels, "log_dir"): one.value for one in found} == {"/d1": number, "/d2": 0}


def test_every_metric_of_the_table_is_on_the_dashboard_or_is_left_out_for_a_reason() -> None:
    known = series_of(read_table(METRICS.read_text("utf-8"))).keys()
    drawn = {one.name for expr in EXPRESSIONS for one in selectors(expr)}
    left_out = {
        # The average says less than the median, and the bucket without a bound counts as much.
        "logdird_look_seconds_sum", "logdird_look_seconds_count",
        # An alert says it; nobody looks at a curve of it.
        "up", "node_textfile_mtime_seconds", "process_start_time_seconds", "logdird_process_start_time_seconds",
        "process_virtual_memory_bytes", "logdird_process_virtual_memory_bytes",
        "process_max_fds", "logdird_process_max_fds",
    }  # fmt: skip
    assert known - drawn == left_out
