"""The report as text: deterministic, bounded, escaped, and equal to the plan."""

from __future__ import annotations

import html
import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from migrate.errors import PlanFormatError
from migrate.report.conflicts import ROWS_PER_SLUG, read_conflicts
from migrate.report.model import MINTED_SHOWN, Model, build_model
from migrate.report.next_steps import above_bound, next_commands, trial
from migrate.report.page import render_report
from migrate.report.sections import holder_path
from tests.migrate.plan_builder import (
    HOSTILE,
    HOSTILE_PLAN,
    KINDS,
    LARGE,
    LARGE_SINGLE,
    SMALL,
    TINY,
    Shape,
    build_plan,
)
from tools.logdirctl.main import build_parser

LIMIT_BYTES = 2 * 1000 * 1000


def embedded(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="plan">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def plan(directory: Path, name: str) -> Any:
    return json.loads((directory / f"{name}.json").read_bytes())


def test_equal_plans_give_equal_bytes_however_the_conflicts_are_split(tmp_path: Path) -> None:
    shape = Shape(brokers=12, disks=4, conflicts=60, blocked_every=5)
    whole = build_plan(tmp_path / "whole", shape)
    split = build_plan(tmp_path / "split", shape, files=7, shuffle=3)
    assert render_report(whole) == render_report(split)


def test_embedded_json_is_the_plan(tmp_path: Path) -> None:
    directory = build_plan(tmp_path / "plan", SMALL)
    shown = embedded(render_report(directory))
    assert shown["summary"] == plan(directory, "summary")
    waves = plan(directory, "waves")["clusters"]
    assert shown["waves"]["clusters"] == [{**cluster, "brokers": len(cluster["brokers"])} for cluster in waves]
    columns = shown["brokers"]["columns"]
    brokers = [dict(zip(columns, row, strict=True)) for row in shown["brokers"]["rows"]]
    every = [broker for cluster in waves for broker in cluster["brokers"]]
    assert [{key: broker[key] for key in every[0]} for broker in brokers] == every
    disks = [dict(zip(shown["disks"]["columns"], row, strict=True)) for row in shown["disks"]["rows"]]
    for disk in disks:
        disk["kinds"] = {kind: {"entries": of[0], "bytes": of[1]} for kind, of in disk["kinds"].items()}
    assert disks == plan(directory, "disks")["disks"]


def test_sums_equal_those_of_the_documents(tmp_path: Path) -> None:
    directory = build_plan(tmp_path / "plan", LARGE)
    model = build_model(directory)
    summary, disks = plan(directory, "summary"), plan(directory, "disks")["disks"]
    totals = model["totals"]
    assert totals["bytes"] == summary["bytes"]
    assert sum(cluster["log_dirs"] for cluster in model["clusters"]) == summary["log_dirs"]
    assert sum(cluster["replicas"] for cluster in model["clusters"]) == summary["replicas"]
    assert sum(facts["bytes"] for facts in model["broker_facts"]) == summary["bytes"]
    assert totals["unread"] == summary["conflicts"]["disk-unread"]
    for kind in KINDS:
        held = [disk["kinds"][kind] for disk in disks if kind in disk["kinds"]]
        if held:
            expected = [sum(of["entries"] for of in held), sum(of["bytes"] for of in held)]
            assert totals["kinds"][kind] == expected
    out_of_service = [
        of["bytes"]
        for disk in disks
        for kind, of in disk["kinds"].items()
        if kind in ("delete", "stray", "future", "staged")
    ]
    assert totals["reclaimable"][1] == sum(out_of_service)


def test_a_forecast_without_the_restarts_is_none(tmp_path: Path) -> None:
    model = build_model(build_plan(tmp_path / "plan", LARGE))
    for cluster, document in zip(model["clusters"], model["waves"]["clusters"], strict=True):
        forecast = {broker["node_id"]: broker["forecast_ms"] for broker in document["brokers"]}
        start_ms = 0
        for wave in cluster["waves"]:
            assert wave["start_ms"] == start_ms
            assert wave["restarts"] == len(wave["node_ids"])
            assert wave["length_ms"] == 5 * 60 * 1000 + max(forecast[node_id] for node_id in wave["node_ids"])
            start_ms += wave["length_ms"]
        assert cluster["length_ms"] == start_ms
    # Clusters run side by side.
    assert model["totals"]["length_ms"] == max(cluster["length_ms"] for cluster in model["clusters"])
    assert model["totals"]["restarts"] == model["summary"]["brokers"]["clean"]


def test_a_wave_without_steps_restarts_no_broker(tmp_path: Path) -> None:
    directory = build_plan(tmp_path / "plan", TINY)
    waves = plan(directory, "waves")
    for broker in waves["clusters"][0]["brokers"]:
        broker.update(steps=0, forecast_ms=250)
    (directory / "waves.json").write_text(json.dumps(waves))
    totals = build_model(directory)["totals"]
    assert (totals["restarts"], totals["length_ms"]) == (0, 250 * len(waves["clusters"][0]["waves"]))


@pytest.mark.parametrize("shape", [LARGE, LARGE_SINGLE], ids=["ten-disks-each", "one-disk-each"])
def test_two_thousand_disks_fit_in_two_megabytes(tmp_path: Path, shape: Shape) -> None:
    directory = build_plan(tmp_path / "plan", shape)
    assert plan(directory, "summary")["log_dirs"] == 2000
    assert len(render_report(directory).encode()) <= LIMIT_BYTES


def test_what_is_not_shown_is_counted(tmp_path: Path) -> None:
    directory = build_plan(tmp_path / "plan", LARGE)
    model = build_model(directory)
    rows = pq.read_table(directory / "conflicts").to_pylist()
    for conflict in model["conflicts"]:
        assert conflict["holders"] == sum(row["slug"] == conflict["slug"] for row in rows)
        assert len(conflict["shown"]) <= ROWS_PER_SLUG
    named = next(conflict for conflict in model["conflicts"] if conflict["slug"] == "one-name-two-ids")
    assert len(named["shown"]) == ROWS_PER_SLUG < named["holders"]
    first = sorted(
        (row["cluster"], row["unit"], row["node_id"], row["log_dir"])
        for row in rows
        if row["slug"] == "one-name-two-ids"
    )[:ROWS_PER_SLUG]
    assert [(row["cluster"], row["unit"], row["node_id"], row["log_dir"]) for row in named["shown"]] == first
    assert model["totals"]["minted"] == 900
    assert len(model["summary"]["minted"]) == MINTED_SHOWN


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_hostile_names_are_text(tmp_path: Path) -> None:
    page = render_report(build_plan(tmp_path / "plan", HOSTILE_PLAN))
    parser = _Tags()
    parser.feed(page)
    scripts = [attrs for tag, attrs in parser.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "plan"}, {}]
    assert not [tag for tag, _ in parser.tags if tag in ("img", "iframe", "object", "embed", "base")]
    assert not [name for _, attrs in parser.tags for name in attrs if name.startswith("on") or name == "style"]
    assert "&lt;script&gt;document.title=" in page
    assert "t" * 249 in page
    assert "\u202e" not in page
    assert "\0" not in page
    assert [row["topic"] for row in embedded(page)["summary"]["minted"]] == list(HOSTILE)


def test_page_asks_nobody(tmp_path: Path) -> None:
    page = render_report(build_plan(tmp_path / "plan", SMALL))
    parser = _Tags()
    parser.feed(page)
    targets = [attrs[name] for _, attrs in parser.tags for name in ("href", "src", "action") if name in attrs]
    assert all(target is not None and (target.startswith("#") or target == "data:,") for target in targets)
    policy = next(attrs["content"] for tag, attrs in parser.tags if "http-equiv" in attrs and tag == "meta")
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


def test_two_entries_of_one_node_id_are_not_one_row_twice(tmp_path: Path) -> None:
    directory = build_plan(tmp_path / "plan", TINY)
    waves, disks = plan(directory, "waves"), plan(directory, "disks")
    twin = {
        **waves["clusters"][0]["brokers"][0],
        "readiness": "blocked",
        "reasons": ["node-id-twice"],
        "steps": 0,
    }
    waves["clusters"][0]["brokers"][:1] = [twin, twin]
    waves["clusters"][0]["waves"] = [wave for wave in waves["clusters"][0]["waves"] if 1 not in wave]
    disks["brokers"][:1] = [{"broker": 0, "lists": "h1/1.jsonl"}, {"broker": 99, "lists": "h2/1.jsonl"}]
    disks["disks"].append({**disks["disks"][0], "broker": 99, "log_dir": "/elsewhere"})
    (directory / "waves.json").write_text(json.dumps(waves))
    (directory / "disks.json").write_text(json.dumps(disks))
    facts = build_model(directory)["broker_facts"][:3]
    assert [(of["twin"], of["twins"], of["lists"], of["log_dirs"]) for of in facts] == [
        (1, 2, "h1/1.jsonl", 1), (2, 2, "h2/1.jsonl", 1), (0, 1, None, 1)
    ]  # fmt: skip
    page = render_report(directory)
    assert page.count("of 2 of this node id") == 2
    assert "h1/1.jsonl" in page
    assert "h2/1.jsonl" in page


def test_log_dirs_on_one_device_share_its_capacity(tmp_path: Path) -> None:
    directory = build_plan(tmp_path / "plan", Shape(brokers=1, disks=3))
    disks = plan(directory, "disks")
    for disk in disks["disks"][:2]:
        disk.update(device="8:16", total_bytes=1000, free_bytes=400)
    disks["disks"][2].update(device=None, total_bytes=100, free_bytes=10)
    (directory / "disks.json").write_text(json.dumps(disks))
    totals = build_model(directory)["totals"]
    assert (totals["total_bytes"], totals["free_bytes"]) == (1100, 410)


def commands(model: Model) -> list[list[str]]:
    """Return every command of a page, split as a shell would."""
    said = [advice.command for advice in (*next_commands(model), *trial(model))]
    return [shlex.split(command) for command in said if command is not None]


def test_a_next_command_is_about_what_stands_in_the_way_and_nothing_else(tmp_path: Path) -> None:
    def verbs(name: str, shape: Shape) -> list[str]:
        model = build_model(build_plan(tmp_path / name, shape))
        said = [shlex.split(advice.command) for advice in next_commands(model) if advice.command is not None]
        return [" ".join(words[1 : 3 if words[1] == "layout" else 2]) for words in said]

    assert verbs("clean", TINY) == ["layout check"]
    assert verbs("unknown", Shape(unread_every=2)) == ["inventory", "layout check"]
    assert verbs("blocked", Shape(blocked_every=2)) == ["inventory", "layout check"]
    assert verbs("stuck", Shape(blocked_every=1)) == ["inventory"]


@pytest.mark.parametrize("shape", [TINY, SMALL, LARGE, HOSTILE_PLAN, Shape(unread_every=2), Shape(blocked_every=1)])
def test_no_command_of_the_page_is_refused_by_the_parser_or_has_a_gap(tmp_path: Path, shape: Shape) -> None:
    directory = build_plan(tmp_path / "plan", shape)
    model = build_model(directory)
    page = html.unescape(render_report(directory))
    found = commands(model)
    assert found
    for words in found:
        assert words[0] == "logdirctl"
        parsed = build_parser().parse_args(words[1:])
        assert not [word for word in words if word.isupper()], words
        assert not [word for word in words if word.startswith("--even-")], words
        known = {disk["log_dir"] for disk in model["disks"]}
        assert set(parsed.log_dirs.split(",")) <= known
    # What stands on the page is what was parsed, and nothing else on it looks like a command.
    shown = set(re.findall(r'<code class="cmd">(logdirctl [^<]*)</code>', page))
    assert {tuple(shlex.split(command)) for command in shown} == {tuple(words) for words in found}
    assert len(re.findall(r"logdirctl ", page)) == len(re.findall(r'<code class="cmd">logdirctl ', page))


def test_a_command_never_has_a_path_nobody_knows(tmp_path: Path) -> None:
    directory = build_plan(tmp_path / "plan", Shape(unread_every=1))
    disks = plan(directory, "disks")
    for disk in disks["disks"]:
        if disk["status"] != "ok":
            disk["log_dir"] = None
    (directory / "disks.json").write_text(json.dumps(disks))
    model = build_model(directory)
    assert commands(model) == []
    assert "path not known" in render_report(directory)


def test_no_page_with_steps_is_silent_about_the_kafka_that_cannot_read_them(tmp_path: Path) -> None:
    page = render_report(build_plan(tmp_path / "plan", TINY))
    assert "No released Kafka (2.8 to 4.3) reads topic-id directories" in page
    verbs = [words[1:3] for words in commands(build_model(tmp_path / "plan"))]
    assert ["layout", "finalize"] not in verbs
    # What is laid out is taken back by the very list that lays it out, and a place of ours is there first.
    assert [words[0] if words[0] == "init" else words[1] for words in verbs[1:]] == [
        "init", "apply", "verify", "rollback"
    ]  # fmt: skip
    assert "can migrate" not in page


def test_no_conflict_stands_in_the_way_is_not_shown_above_conflicts(tmp_path: Path) -> None:
    free = "No conflict stands in the way"
    assert free in render_report(build_plan(tmp_path / "none", TINY))
    page = render_report(build_plan(tmp_path / "many", Shape(conflicts=140)))
    assert build_model(tmp_path / "many")["totals"]["steps"] > 0
    assert sum(plan(tmp_path / "many", "summary")["conflicts"].values()) == 420
    assert free not in page
    assert ">420</data> conflicts below block no broker" in page


def test_waves_above_the_bound_are_not_left_unexplained(tmp_path: Path) -> None:
    directory = build_plan(tmp_path / "plan", Shape(brokers=6))
    waves = plan(directory, "waves")
    (cluster,) = waves["clusters"]

    def why(wanted: list[list[int]], bound: int, origin: str = "sets") -> str:
        cluster.update({"waves": wanted, "lower_bound": bound, "from": origin})
        (directory / "waves.json").write_text(json.dumps(waves))
        model = build_model(directory)
        return above_bound(model["waves"]["clusters"][0], model["clusters"][0])

    # Racks are r0 to r2, by node id modulo three.
    assert why([[1, 2, 3, 4, 5, 6]], 1) == ""
    mixed = why([[1, 2], [3, 4], [5, 6]], 2)
    assert "one partition at a time" in mixed
    assert "rack" not in mixed
    assert "pairs" in why([[1, 2], [3, 4], [5, 6]], 2, "pairs")
    by_rack = why([[1], [4], [2, 5], [3, 6]], 3)
    assert "rack r1 2 waves" in by_rack
    assert "rack r2 1 wave" in by_rack
    assert html.escape(by_rack) in render_report(directory)


def test_the_name_of_an_unread_disk_is_not_kept_from_the_head_of_the_page(tmp_path: Path) -> None:
    page = render_report(build_plan(tmp_path / "plan", Shape(unread_every=2)))
    lead = page[page.index('<p class="lead">') : page.index('<div class="ready">')]
    assert "/var/lib/kafka/data-1" in lead
    assert "broker 2" in lead


def test_path_of_an_entry_of_a_work_root_names_the_work_root(tmp_path: Path) -> None:
    model = build_model(build_plan(tmp_path / "plan", SMALL))
    rows = {conflict["slug"]: conflict["shown"] for conflict in model["conflicts"]}
    assert " in the work root of /var/lib/kafka/data-" in holder_path(rows["leftover"][0])
    assert re.fullmatch(r"/var/lib/kafka/data-\d/lost\+found-\d", holder_path(rows["unknown-entry"][0]))


def test_empty_fleet_and_missing_conflicts_are_drawn(tmp_path: Path) -> None:
    directory = build_plan(tmp_path / "plan", Shape(brokers=1, disks=1, blocked_every=1, minted=0))
    for file in (directory / "conflicts").iterdir():
        file.unlink()
    page = render_report(directory)
    assert "No broker is clean yet" in page
    assert "No conflict was found." in page
    assert "No topic needed a new id." in page


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("summary.json", None),
        ("summary.json", "{}"),
        ("waves.json", "[]"),
        ("disks.json", "{"),
        ("disks.json", '{"disks":[{"cluster":"main"}]}'),
        ("disks.json", '{"brokers":[],"disks":[]}'),
        ("conflicts/part-00000.parquet", "no parquet"),
    ],
)
def test_what_is_no_plan_is_refused_in_one_line(tmp_path: Path, name: str, content: str | None) -> None:
    directory = build_plan(tmp_path / "plan", SMALL)
    (directory / name).unlink()
    if content is not None:
        (directory / name).write_text(content)
    with pytest.raises(PlanFormatError) as raised:
        render_report(directory)
    assert "\n" not in str(raised.value)


def test_slug_unknown_to_the_summary_is_refused(tmp_path: Path) -> None:
    directory = build_plan(tmp_path / "plan", SMALL)
    with pytest.raises(PlanFormatError, match="a slug of"):
        read_conflicts(directory / "conflicts", {"leftover": 4})
