"""Which releases a run takes: one per scenario by the seed of its commit, all of them at full size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kafka.rotation import BROKERS, SCENARIOS, chosen, seed_of
from tests.proof.sizes import Size

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("size", [Size.SAMPLE, Size.CI])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_release_is_left_out_when_the_seed_goes_round(scenario: str, size: Size) -> None:
    taken = [chosen(scenario, size, seed) for seed in range(5)]
    assert {len(one) for one in taken} == {1}
    assert {release for (release,) in taken} == set(SCENARIOS[scenario])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_full_run_takes_every_release(scenario: str) -> None:
    assert chosen(scenario, Size.FULL, 3) == SCENARIOS[scenario]


def test_the_scenarios_of_one_run_do_not_all_take_the_same_release() -> None:
    for seed in range(5):
        assert {release for name in SCENARIOS for release in chosen(name, Size.CI, seed)} == set(BROKERS)


def test_the_releases_that_behave_differently_are_started() -> None:
    assert BROKERS == ("3.6.2", "3.8.1", "3.9.2", "4.2.1", "4.3.1")


@pytest.mark.parametrize(("environ", "seed"), [({}, 0), ({"LOGDIRD_CI_SEED": "1763000003"}, 1_763_000_003)])
def test_the_seed_is_the_environments(environ: dict[str, str], seed: int) -> None:
    assert seed_of(environ) == seed


def test_a_run_prints_what_takes_the_same_releases_again() -> None:
    said = [printed("8"), printed("8"), printed("9")]
    assert said[0] == said[1] != said[2]
    assert "LOGDIRD_CI_SEED=8" in said[0]
    assert all(name in said[0] for name in SCENARIOS)
    assert set(printed("8", "--releases").split()) == {*BROKERS}


def printed(seed: str, *argv: str) -> str:
    words = [sys.executable, "-m", "tests.kafka.rotation", *argv]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LOGDIRD_")}
    done = subprocess.run(words, cwd=ROOT, env={**environ, "LOGDIRD_CI_SEED": seed}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
