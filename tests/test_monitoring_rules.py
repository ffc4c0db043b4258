"""The alert rules of ``examples/monitoring`` fire when they should, after their time, and on a healthy daemon never.

They are judged over made-up series by the evaluator of ``tests/promql``, as ``promtool test rules`` would do it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from logdir.daemon.state import LogDirState
from tests.monitoring.cases import ENDS, FIRES, NEAR_MISSES, Case
from tests.monitoring.contract import PROCESS, read_table, series_of, unknown, values_matched
from tests.monitoring.healthy import SOMETIMES, store_of, store_of_files
from tests.promql.notation import MINUTE_MS
from tests.promql.rule_file import Group, Rule, read_rules
from tests.promql.rules import Alert, alerts_over
from tests.promql.store import Store
from tests.promql.syntax import selectors
from tests.promql.values import NAME, value_of
from tests.test_errors_documented import DOCUMENTED

ROOT = Path(__file__).parents[1]
FILE = ROOT / "examples" / "monitoring" / "logdird.rules.yml"
GROUPS = read_rules(FILE.read_bytes(), FILE.name)
RULES = tuple(rule for group in GROUPS for rule in group.rules)
ALERTS = {rule.name: rule for rule in RULES if rule.is_alert}
RECORDED = {rule.name for rule in RULES if not rule.is_alert}
SEVERITIES = {"critical", "warning", "info"}
OPERATIONS = ROOT / "docs" / "operations.md"
METRICS = ROOT / "docs" / "metrics.md"


def ids(case: Case) -> str:
    return case.alert


def groups_with(name: str) -> tuple[Group, ...]:
    """Return the rules that one alert needs: itself, and what is recorded."""
    rules = tuple(rule for rule in RULES if rule.name == name or not rule.is_alert)
    return (Group(name=name, interval_ms=None, rules=rules),)


def minutes_of(case: Case, minutes: int) -> Iterator[tuple[int, tuple[Alert, ...]]]:
    """Yield each minute with what fires then of the alert of a case."""
    store = store_of(minutes, case.differing)
    over = alerts_over(groups_with(case.alert), store, from_ms=case.since * MINUTE_MS, to_ms=minutes * MINUTE_MS)
    for at_ms, alerts in over:
        yield at_ms // MINUTE_MS, tuple(one for one in alerts if one.is_firing)


@pytest.mark.parametrize("case", FIRES, ids=ids)
def test_an_alert_fires_after_its_time(case: Case) -> None:
    found = {minute: alerts for minute, alerts in minutes_of(case, case.minute + 1) if alerts}
    assert min(found, default=None) == case.minute
    (alert,) = found[case.minute]
    assert set(case.labels) <= alert.labels
    assert {name: bool(text) for name, text in alert.annotations} == {
        "summary": True,
        "description": True,
        "runbook_url": True,
    }


@pytest.mark.parametrize("case", NEAR_MISSES, ids=ids)
def test_an_alert_does_not_fire_without_need(case: Case) -> None:
    assert [minute for minute, alerts in minutes_of(case, case.minute) if alerts] == []


@pytest.mark.parametrize("case", ENDS, ids=ids)
def test_an_alert_ends(case: Case) -> None:
    fired = [minute for minute, alerts in minutes_of(case, case.minute + 5) if alerts]
    assert fired[-1:] == [case.minute - 1]


def test_on_a_healthy_daemon_nothing_is_found() -> None:
    found = [
        (at_ms // MINUTE_MS, alert.name)
        for at_ms, alerts in alerts_over(GROUPS, store_of(150), from_ms=0, to_ms=150 * MINUTE_MS)
        for alert in alerts
    ]
    assert found == []


def firing(store: Store, minute: int) -> set[tuple[str, str, str]]:
    """Return name, daemon and log dir of each alert that fires in a minute."""
    *_, (_, alerts) = alerts_over(GROUPS, store, from_ms=0, to_ms=minute * MINUTE_MS)
    labels = [(one.name, one.labels) for one in alerts if one.is_firing]
    return {(name, value_of(one, "daemon"), value_of(one, "log_dir")) for name, one in labels}


def test_two_daemons_of_a_host_that_come_by_text_files_are_told_apart() -> None:
    assert firing(store_of_files(150), 150) == set()
    due = """
        logdird_next_purge_timestamp_seconds{daemon="b1", log_dir="/d1"}  600x150
        logdird_next_purge_timestamp_seconds{daemon="b2", log_dir="/d1"}  600x150
        logdird_waiting{daemon="b2", slug="pause-file"}  1x150
    """
    expected = {("LogdirdPurgeOverdue", "b1", "/d1"), ("LogdirdPurgesStopped", "b2", "")}
    assert firing(store_of_files(150, due), 150) == expected
    gone = 'logdird_info{daemon="b2", version="0.3.0", node_id="1", cluster_id="c"}  1x9 stale'
    assert firing(store_of_files(30, gone), 30) == {("LogdirdGone", "b2", "")}


def test_each_alert_has_a_case_in_which_it_fires() -> None:
    assert {case.alert for case in FIRES} == set(ALERTS)
    assert {case.alert for case in (*NEAR_MISSES, *ENDS)} <= set(ALERTS)


@pytest.mark.parametrize("rule", ALERTS.values(), ids=lambda rule: rule.name)
def test_each_alert_says_how_bad_it_is_and_what_it_means(rule: Rule) -> None:
    assert set(rule.labels) == {"severity"}
    assert rule.labels["severity"] in SEVERITIES
    assert set(rule.annotations) == {"summary", "description", "runbook_url"}
    assert rule.name.startswith("Logdird")


@pytest.mark.parametrize("rule", ALERTS.values(), ids=lambda rule: rule.name)
def test_each_alert_names_a_runbook_that_is_there(rule: Rule) -> None:
    page, _, anchor = rule.annotations["runbook_url"].partition("#")
    assert page == "docs/operations.md"
    assert anchor in anchors(OPERATIONS.read_text("utf-8"))


def anchors(page: str) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and others make them."""
    headings = re.findall(r"^#+ (.+?)\s*$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_anchors_of_headings() -> None:
    assert anchors("# Undelete a topic\ntext\n## `logdirctl status`: what it says\n#no heading") == {
        "undelete-a-topic",
        "logdirctl-status-what-it-says",
    }


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_metric_and_label_is_in_the_table(rule: Rule) -> None:
    known = series_of(read_table(METRICS.read_text("utf-8")))
    recorded = dict.fromkeys(RECORDED, frozenset({"log_dir", "daemon"}))
    assert unknown(rule.expr, {**known, **recorded}) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_value_that_a_rule_names_can_be_there(rule: Rule) -> None:
    possible = {
        "state": {one.value for one in LogDirState},
        "slug": DOCUMENTED,
        "outcome": {"done", "refused"},
        "job": {"logdird"},
    }
    for metric, label, value in values_matched(rule.expr):
        if label != "file":
            assert value in possible[label], f"{metric}{{{label}}}"


def test_what_is_recorded_is_used_or_said_to_be_for_people() -> None:
    used = {one.name for rule in RULES for one in selectors(rule.expr)}
    page = (FILE.parent / "README.md").read_text("utf-8")
    assert {name for name in RECORDED if name not in used and f"`{name}`" not in page} == set()


def test_the_healthy_daemon_has_every_metric_of_the_table() -> None:
    known = series_of(read_table(METRICS.read_text("utf-8")))
    for labels in store_of(1).labels():
        names = {name for name, _ in labels} - {NAME, "job", "instance"}
        metric = dict(labels)[NAME]
        # A series without a text file has no daemon, and an empty label is none.
        assert names | {"daemon"} in (known[metric] | {"daemon"}, known[metric] - {"log_dir"}), metric
    shown = {dict(labels)[NAME] for labels in store_of(1).labels()}
    assert known.keys() - shown - SOMETIMES - {f"logdird_{name}" for name in PROCESS} == set()


def test_the_page_names_each_alert_once_with_its_severity() -> None:
    page = (FILE.parent / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| `(Logdird\w+)` \| (\w+) \|", page, re.MULTILINE)
    assert rows == [(rule.name, rule.labels["severity"]) for rule in ALERTS.values()]
