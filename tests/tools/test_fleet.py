"""``logdirctl fleet``: what it prints, and what it says beside it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.migrate.fleet_builder import Builder, an_id, live
from tools.cli.arguments import Exit
from tools.logdirctl.main import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def fleet_file(folder: Path, topics: str) -> Path:
    """One broker with one topic, ``orders``, and what is said of topics."""
    builder = Builder(folder)
    builder.disk([live("orders", 0, an_id("o"))], node_id=1)
    file = folder / "fleet.yaml"
    file.write_text(
        f"clusters: [{{name: east, topics: {topics}, brokers: [{{node_id: 1, inventories: ['*.jsonl']}}]}}]"
    )
    return file


def run(*argv: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    status = main(["fleet", *map(str, argv)], out, err)
    return status, out.getvalue(), err.getvalue()


@pytest.mark.slow
def test_topic_glob_without_a_match_is_one_line_of_warning_and_exit_0(spark: SparkSession, tmp_path: Path) -> None:
    two = "{min.insync.replicas: 2}"
    file = fleet_file(tmp_path, f"{{'or*': {two}, 'audit-*': {two}, \"odd\\nglob\": {two}}}")
    status, out, err = run("plan", file, "-o", tmp_path / "plan", "--json")
    expected = [
        f"fleet-topic-glob-without-match: {file}: clusters[0].topics[{glob}]: expected a glob that matches a topic, "
        "found no topic of cluster east that matches; correct or remove the glob"
        for glob in ("audit-*", "odd\\nglob")
    ]
    assert status == Exit.DONE
    assert err.splitlines() == [f"logdirctl fleet plan: warning: {line}" for line in expected]
    value = json.loads(out)
    assert value["exit"] == 0
    assert value["problems"] == [
        {
            "slug": "fleet-topic-glob-without-match",
            "path": f"{file}: clusters[0].topics[{glob}]",
            "expected": "a glob that matches a topic",
            "found": "no topic of cluster east that matches",
            "fix": "correct or remove the glob",
        }
        for glob in ("audit-*", "odd\\nglob")
    ]
    assert value["result"]["summary"] == json.loads((tmp_path / "plan" / "summary.json").read_bytes())


@pytest.mark.slow
def test_a_plan_from_a_snapshot_warns_alike(spark: SparkSession, tmp_path: Path) -> None:
    file = fleet_file(tmp_path, "{'audit-*': {min.insync.replicas: 2}}")
    snapshot = tmp_path / "snapshot"
    status, _, err = run("scan", file, "-o", snapshot)
    assert (status, err) == (Exit.DONE, "")
    status, out, err = run("plan", snapshot, "-o", tmp_path / "plan")
    assert (status, err.count("\n")) == (Exit.DONE, 1)
    assert f"{snapshot}: clusters[0].topics[audit-*]: " in err
    assert out.startswith("1 clusters, 1 log dirs, 1 replicas")


@pytest.mark.slow
def test_matching_globs_draw_no_word(spark: SparkSession, tmp_path: Path) -> None:
    file = fleet_file(tmp_path, "{'*': {min.insync.replicas: 1}, 'orders': {min.insync.replicas: 2}}")
    status, out, err = run("plan", file, "-o", tmp_path / "plan", "--json")
    assert (status, err, json.loads(out)["problems"]) == (Exit.DONE, "", [])
