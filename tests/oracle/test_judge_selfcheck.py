"""The judge accepts what the answer describes and names whatever was changed in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.oracle.fleets import make_fleet
from tests.oracle.handmade import ID_A, Tiny, live
from tests.oracle.judge import CONFLICT_COLUMNS, compare, compare_with, plan_sha256
from tests.oracle.oracle import Answer, answer, render


def write_plan(found: Answer, waves: Mapping[str, list[list[int]]], folder: Path) -> None:
    """Write the plan that an answer describes, with the waves given."""
    clusters = [{**one.waves_entry, "waves": waves[one.name]} for one in found.clusters]
    for path, raw in {**found.documents, "waves.json": render({"clusters": clusters})}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(raw)
    wave_of = {(name, n): number for name, all_of in waves.items() for number, wave in enumerate(all_of) for n in wave}
    steps = [{**step, "wave": wave_of[step["cluster"], step["node_id"]]} for step in found.steps]
    conflicts = [dict(zip(CONFLICT_COLUMNS, row, strict=True)) for row in found.conflict_rows]
    for name, rows in (("steps", steps), ("conflicts", conflicts)):
        (folder / name).mkdir()
        pq.write_table(pa.Table.from_pylist(rows), folder / name / "part-0.parquet")
    summary = {
        **found.summary,
        "waves": max(map(len, waves.values())),
        "plan_sha256": plan_sha256(folder),
    }
    (folder / "summary.json").write_bytes(render(summary))


def one_by_one(found: Answer) -> dict[str, list[list[int]]]:
    return {one.name: [[node_id] for node_id in sorted(one.clean)] for one in found.clusters}


def test_the_judge_accepts_a_plan_made_from_the_answer_and_names_what_was_changed(tmp_path: Path) -> None:
    case = make_fleet(3, tmp_path / "fleet")
    found = answer(case.path)
    plan = tmp_path / "plan"
    write_plan(found, one_by_one(found), plan)
    assert compare(plan, case.path) == []
    document = plan / next(path for path in found.documents if b'"step":1,' in found.documents[path])
    document.write_bytes(document.read_bytes().replace(b'"step":1,', b'"step":2,'))
    (plan / "conflicts" / "part-0.parquet").unlink()
    rows = [dict(zip(CONFLICT_COLUMNS, row, strict=True)) for row in found.conflict_rows[1:]]
    pq.write_table(pa.Table.from_pylist(rows), plan / "conflicts" / "part-0.parquet")
    places = {line.split(":")[0] for line in compare(plan, case.path)}
    assert places == {str(document.relative_to(plan)), "conflicts/", "summary.json.plan_sha256"}


def test_the_judge_refuses_waves_that_break_a_floor_a_rack_or_the_order(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path)
    tiny.cluster("k")
    tiny.broker("k", 1, ("/d", [live("t", 0, ID_A)]), rack="x")
    tiny.broker("k", 2, ("/d", [live("t", 0, ID_A)]), rack="x")
    tiny.broker("k", 3, ("/d", []), rack="y")
    found = tiny.answer()
    verdicts = {}
    for number, waves in enumerate(
        ([[1], [2], [3]], [[1, 2], [3]], [[1], [2, 3]], [[1], [3, 2]], [[1], [], [2], [3]], [[1], [2]])
    ):
        plan = tmp_path / f"plan{number}"
        write_plan(found, {"k": waves}, plan) if number < 5 else None
        if number == 5:
            write_plan(found, {"k": [*waves, [3]]}, plan)
            raw = json.loads((plan / "waves.json").read_bytes())
            raw["clusters"][0]["waves"] = waves
            (plan / "waves.json").write_bytes(render(raw))
        verdicts[number] = " ".join(compare_with(found, plan))
    assert verdicts[0] == ""
    assert "leaves t-0 0 of 2, floor 1" in verdicts[1]
    assert "has racks" in verdicts[2]
    assert "does not ascend" in verdicts[3]
    assert "is empty" in verdicts[4]
    assert "broker 3 is in 0 waves, expected 1" in verdicts[5]
