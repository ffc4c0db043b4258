"""Compare a plan directory with what the oracle says it must be.

What it is: every byte of ``summary.json``, ``waves.json`` and ``brokers/``, every row of ``conflicts/`` (but
``detail``) and ``steps/``. Waves are free within the text, so they are checked for every partition and every
wave, not for identity.

What it is not: a judge of ``report.html``, of speed, or of how good the waves are beyond the lower bound.

Spec: design §7.5, §7.7.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.oracle.oracle import Answer, ClusterAnswer, answer, render

CONFLICT_COLUMNS = (
    "slug",
    "cluster",
    "node_id",
    "log_dir",
    "name",
    "topic",
    "topic_id",
    "partition",
    "unit",
)
STEP_COLUMNS = (
    "cluster",
    "node_id",
    "wave",
    "step",
    "op",
    "log_dir",
    "from",
    "to",
    "topic",
    "topic_id",
    "partition",
    "id_from",
    "log_bytes",
)


def plan_sha256(plan_dir: Path) -> str:
    """Recompute ``plan_sha256`` from the files."""
    paths = [
        Path("waves.json"),
        *(path.relative_to(plan_dir) for path in plan_dir.glob("brokers/**/*.jsonl")),
    ]
    lines = (
        f"{hashlib.sha256((plan_dir / path).read_bytes()).hexdigest()}  {path}\n" for path in sorted(paths, key=str)
    )
    return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:400]}…"


def _differences(where: str, expected: object, found: object) -> list[str]:
    """Name each place where two JSON values part."""
    if isinstance(expected, dict) and isinstance(found, dict):
        result = []
        for key in sorted(expected.keys() | found.keys()):
            if key not in found or key not in expected:
                side = "missing" if key not in found else "not expected"
                result.append(f"{where}.{key}: {side}")
            else:
                result += _differences(f"{where}.{key}", expected[key], found[key])
        return result
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        result = []
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            result += _differences(f"{where}[{number}]", one, other)
        return result
    if expected != found or type(expected) is not type(found):
        return [f"{where}: expected {_show(expected)}, found {_show(found)}"]
    return []


def _compare_json(where: str, expected: object, raw: bytes) -> list[str]:
    if render(expected) == raw:
        return []
    try:
        found = json.loads(raw)
    except ValueError as error:
        return [f"{where}: not JSON ({error})"]
    return _differences(where, expected, found) or [f"{where}: equal values, other bytes: {_show(raw[:200])}"]


def _compare_rows(where: str, expected: Iterable[tuple[Any, ...]], found: Iterable[tuple[Any, ...]]) -> list[str]:
    wanted, seen = Counter(expected), Counter(found)
    result = [f"{where}: missing {count} x {_show(row)}" for row, count in (wanted - seen).items()]
    return result + [f"{where}: not expected {count} x {_show(row)}" for row, count in (seen - wanted).items()]


def check_waves(cluster: ClusterAnswer, waves: list[list[int]]) -> list[str]:
    """Check waves of node ids against every floor, one partition and one wave at a time."""
    where = f"waves.json {cluster.name}"
    result = []
    counted = Counter(node_id for wave in waves for node_id in wave)
    for node_id in sorted(cluster.clean.keys() | counted.keys()):
        wanted = 1 if node_id in cluster.clean else 0
        if counted[node_id] != wanted:
            result.append(f"{where}: broker {node_id} is in {counted[node_id]} waves, expected {wanted}")
    for number, wave in enumerate(waves):
        if not wave:
            result.append(f"{where}: wave {number} is empty")
        if wave != sorted(wave):
            result.append(f"{where}: wave {number} does not ascend: {wave}")
        racks = {cluster.clean.get(node_id) for node_id in wave}
        if cluster.respect_racks and len(racks) > 1:
            result.append(f"{where}: wave {number} has racks {racks}")
        down = {cluster.ordinals[node_id] for node_id in wave if node_id in cluster.ordinals}
        for (topic, partition), (brokers, floor) in cluster.floors.items():
            if len(brokers - down) < floor and brokers & down:
                left = f"{len(brokers - down)} of {len(brokers)}"
                result.append(f"{where}: wave {number} leaves {topic}-{partition} {left}, floor {floor}")
    if len(waves) < cluster.lower_bound:
        result.append(f"{where}: {len(waves)} waves are fewer than the lower bound {cluster.lower_bound}")
    return result


def read_rows(folder: Path, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Read the named columns of a Parquet folder as tuples."""
    table = pq.read_table(folder).to_pylist()
    return [tuple(row[column] for column in columns) for row in table]


def _compare_documents(plan_dir: Path, expected: Mapping[str, bytes]) -> list[str]:
    found = {str(path.relative_to(plan_dir)) for path in (plan_dir / "brokers").glob("**/*") if path.is_file()}
    result = [f"{path}: missing" for path in sorted(expected.keys() - found)]
    result += [f"{path}: not expected" for path in sorted(found - expected.keys())]
    for path in sorted(expected.keys() & found):
        raw = (plan_dir / path).read_bytes()
        if raw == expected[path]:
            continue
        lines, wanted = raw.split(b"\n"), expected[path].split(b"\n")
        if len(lines) != len(wanted):
            result.append(f"{path}: {len(lines)} lines, expected {len(wanted)}")
        for number, (one, other) in enumerate(zip(wanted, lines, strict=False), start=1):
            if one != other:
                result.append(f"{path}:{number}: expected {_show(one)}, found {_show(other)}")
                break
    return result


def compare_with(expected: Answer, plan_dir: Path) -> list[str]:
    """Name every difference between a plan directory and an answer; empty if there is none."""
    waves_raw = (plan_dir / "waves.json").read_bytes()
    by_name = {cluster["name"]: cluster for cluster in json.loads(waves_raw)["clusters"]}
    result = []
    clusters = []
    wave_of: dict[tuple[str, int], int] = {}
    for one in expected.clusters:
        waves = by_name.get(one.name, {}).get("waves", [])
        clusters.append({**one.waves_entry, "waves": waves})
        result += check_waves(one, waves)
        wave_of.update({(one.name, node): number for number, wave in enumerate(waves) for node in wave})
    result += _compare_json("waves.json", {"clusters": clusters}, waves_raw)
    summary = {
        **expected.summary,
        "waves": max((len(cluster["waves"]) for cluster in clusters), default=0),
        "plan_sha256": plan_sha256(plan_dir),
    }
    result += _compare_json("summary.json", summary, (plan_dir / "summary.json").read_bytes())
    result += _compare_documents(plan_dir, expected.documents)
    conflicts = read_rows(plan_dir / "conflicts", CONFLICT_COLUMNS)
    result += _compare_rows("conflicts/", expected.conflict_rows, conflicts)
    steps = [
        tuple({**step, "wave": wave_of.get((step["cluster"], step["node_id"]))}[column] for column in STEP_COLUMNS)
        for step in expected.steps
    ]
    return result + _compare_rows("steps/", steps, read_rows(plan_dir / "steps", STEP_COLUMNS))


def compare(plan_dir: Path, fleet_yaml: Path, former: Path | None = None) -> list[str]:
    """Name every difference between a plan and what design §7 says about its fleet.

    Args:
        plan_dir: the plan to judge.
        fleet_yaml: the fleet file it was made from.
        former: the plan given as ``--ids``.

    Returns:
        One line per difference; empty if there is none.
    """
    return compare_with(answer(fleet_yaml, former), plan_dir)
