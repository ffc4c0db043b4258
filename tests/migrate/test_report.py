"""The report as text: deterministic, bounded, escaped, and equal to the plan."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from migrate.errors import PlanFormatError
from migrate.report import render_report
from migrate.report_conflicts import ROWS_PER_SLUG, read_conflicts
from migrate.report_model import MINTED_SHOWN, build_model
from migrate.report_sections import holder_path, next_commands
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


def test_waves_of_a_cluster_follow_one_another_and_clusters_run_side_by_side(tmp_path: Path) -> None:
    model = build_model(build_plan(tmp_path / "plan", LARGE))
    for cluster, document in zip(model["clusters"], model["waves"]["clusters"], strict=True):
        forecast = {broker["node_id"]: broker["forecast_ms"] for broker in document["brokers"]}
        start_ms = 0
        for wave in cluster["waves"]:
            assert wave["start_ms"] == start_ms
            assert wave["forecast_ms"] == max(forecast[node_id] for node_id in wave["node_ids"])
            start_ms += wave["forecast_ms"]
    assert model["totals"]["forecast_ms"] == max(cluster["forecast_ms"] for cluster in model["clusters"])


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


def test_two_entries_of_one_node_id_are_counted_once(tmp_path: Path) -> None:
    directory = build_plan(tmp_path / "plan", TINY)
    waves = plan(directory, "waves")
    twin = {
        **waves["clusters"][0]["brokers"][0],
        "readiness": "blocked",
        "reasons": ["node-id-twice"],
        "steps": 0,
    }
    waves["clusters"][0]["brokers"][:1] = [twin, twin]
    waves["clusters"][0]["waves"] = [wave for wave in waves["clusters"][0]["waves"] if 1 not in wave]
    (directory / "waves.json").write_text(json.dumps(waves))
    model = build_model(directory)
    assert [facts["entries"] for facts in model["broker_facts"][:3]] == [2, 0, 1]
    assert sum(facts["bytes"] for facts in model["broker_facts"]) == plan(directory, "summary")["bytes"]
    assert "disks of all 2 entries of this node id" in render_report(directory)


def test_log_dirs_on_one_device_share_its_capacity(tmp_path: Path) -> None:
    directory = build_plan(tmp_path / "plan", Shape(brokers=1, disks=3))
    disks = plan(directory, "disks")
    for disk in disks["disks"][:2]:
        disk.update(device="8:16", total_bytes=1000, free_bytes=400)
    disks["disks"][2].update(device=None, total_bytes=100, free_bytes=10)
    (directory / "disks.json").write_text(json.dumps(disks))
    totals = build_model(directory)["totals"]
    assert (totals["total_bytes"], totals["free_bytes"]) == (1100, 410)


def test_next_command_is_about_what_stands_in_the_way(tmp_path: Path) -> None:
    def commands(name: str, shape: Shape) -> list[str]:
        return [command for _, command in next_commands(build_model(build_plan(tmp_path / name, shape)))]

    ahead = "logdirctl layout apply brokers/main/1.jsonl"
    assert commands("clean", TINY) == [ahead]
    assert commands("unknown", Shape(unread_every=2)) == ["logdirctl inventory -o DIR", ahead]
    assert commands("blocked", Shape(blocked_every=2)) == ["logdirctl fleet plan FLEET -o NEW_PLAN", ahead]
    assert commands("stuck", Shape(blocked_every=1)) == ["logdirctl fleet plan FLEET -o NEW_PLAN"]


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
    assert "No broker can migrate yet" in page
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
