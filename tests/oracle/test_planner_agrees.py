"""The planner against its judge: random fleets, one Spark session, no difference allowed.

Spec: design §7.4 to §7.7, read independently by :mod:`tests.oracle.oracle`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.oracle.fleets import FleetCase, make_damaged_fleet, make_fleet, make_later_fleet
from tests.oracle.handmade import Tiny, live
from tests.oracle.judge import compare_with
from tests.oracle.oracle import answer, mint
from tests.proof.claims import RANDOM_FLEETS
from tests.proof.plugin import Recorder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# The whole in `make proof`, a seeded sample in CI, a taste in `make test`, which has eight minutes for everything.
SEEDS = range(RANDOM_FLEETS.count("fleets"))


def differences(spark: SparkSession, case: FleetCase, out: Path, former: Path | None = None) -> str:
    """Plan a fleet with the project's own command function; what the judge says of it, a line each."""
    from migrate.job import plan

    print(f"seed {case.seed}: {', '.join(sorted(case.sown))}")
    plan(spark, case.path, out, former=former)
    return "\n".join(compare_with(answer(case.path, former), out))


def first_seed_that_mints(folder: Path) -> int:
    """Find a seed whose plan mints in the cluster that a later fleet adds to, and where nothing is unread."""
    for seed in range(200):
        summary = answer(make_fleet(seed, folder / f"try{seed}").path).summary
        if summary["minted"] and not summary["conflicts"]["disk-unread"]:
            return seed
    raise AssertionError("no seed below 200 mints")


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_fleet_gets_the_plan_the_text_asks_for(
    spark: SparkSession, tmp_path: Path, seed: int, record_proof: Recorder
) -> None:
    case = make_fleet(seed, tmp_path / "fleet")
    assert differences(spark, case, tmp_path / "plan") == ""
    record_proof(RANDOM_FLEETS, {"fleets": 1}, seeds=seed)


@pytest.mark.slow
def test_every_damage_is_counted_as_the_text_says(spark: SparkSession, tmp_path: Path) -> None:
    case = make_damaged_fleet(tmp_path / "fleet")
    assert differences(spark, case, tmp_path / "plan") == ""


@pytest.mark.slow
def test_ids_of_a_former_plan_come_first_unless_somebody_holds_them(spark: SparkSession, tmp_path: Path) -> None:
    seed = first_seed_that_mints(tmp_path)
    assert differences(spark, make_fleet(seed, tmp_path / "first"), tmp_path / "plan1") == ""
    minted = json.loads((tmp_path / "plan1" / "summary.json").read_bytes())["minted"]
    later = make_later_fleet(seed, tmp_path / "later")
    assert differences(spark, later, tmp_path / "plan2", tmp_path / "plan1") == ""
    again = json.loads((tmp_path / "plan2" / "summary.json").read_bytes())["minted"]
    assert [row for row in again if row["topic"] != "later"] == minted
    taken = make_later_fleet(seed, tmp_path / "taken", taken=minted[0]["topic_id"])
    assert differences(spark, taken, tmp_path / "plan3", tmp_path / "plan1") == ""


@pytest.mark.slow
def test_an_id_that_would_start_with_a_dash_is_drawn_again(spark: SparkSession, tmp_path: Path) -> None:
    tiny = Tiny(tmp_path)
    tiny.cluster("k")
    topics = [f"topic{number}" for number in range(400)]
    tiny.broker("k", 1, ("/d", [live(topic, 0, None) for topic in topics]))
    expected = tiny.answer()
    inventory_sha256 = expected.summary["inventory_sha256"]
    assert any(mint(inventory_sha256, "k", topic, 0).startswith("-") for topic in topics)
    case = FleetCase(seed=0, path=tmp_path / "fleet.yaml", sown=frozenset({"missing-id"}))
    assert differences(spark, case, tmp_path / "plan") == ""
