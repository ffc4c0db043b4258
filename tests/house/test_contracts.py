"""pyproject.toml holds every import contract of the house, and none of them excuses more than it says."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
CONTRACTS = {
    one["name"]: one for one in tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
}
EXCUSED: dict[str, int] = {
    "the rings of logdir": 0,
    "the house": 0,
    "below the command line nothing parses arguments, runs an event loop or draws on a terminal": 0,
    "logdir reaches no terminal by way of another package": 0,
    "a broker host needs no Spark": 0,
    "the scheduler knows words, formats and the requests of use cases": 0,
    "the planner knows words, formats, what observes and what decides": 0,
    "what decides touches nothing": 0,
    "only logdir.disk.kernel calls the kernel by ctypes": 1,
    "only logdir.worker starts processes, and only it, the daemon and the client of Kafka open sockets": 8,
    "each third party only where its reason says": 8,
}
"""Of each contract how many exceptions it has at most."""


def test_the_contracts_of_the_house_are_there() -> None:
    assert CONTRACTS.keys() == EXCUSED.keys()


@pytest.mark.parametrize("name", EXCUSED)
def test_a_contract_gets_no_more_exceptions(name: str) -> None:
    assert len(CONTRACTS[name].get("ignore_imports", ())) <= EXCUSED[name]


@pytest.mark.parametrize("name", [name for name in EXCUSED if name not in ("the rings of logdir", "the house")])
def test_a_contract_is_not_lifted_for_a_package(name: str) -> None:
    sources = set(CONTRACTS[name]["source_modules"])
    assert sources & {"logdir", "migrate", "scheduler", "logdir.decide"}
    assert CONTRACTS[name].get("as_packages", True)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("the scheduler knows words, formats and the requests of use cases", {"formats", "service"}),
        ("the planner knows words, formats, what observes and what decides", {"formats", "observe", "decide"}),
    ],
)
def test_who_knows_some_rings_is_forbidden_every_other(name: str, known: set[str]) -> None:
    rings = {one.parent.name for one in TOP.glob("logdir/*/__init__.py")}
    assert known < rings
    assert {f"logdir.{ring}" for ring in rings - known} <= set(CONTRACTS[name]["forbidden_modules"])


def test_no_module_of_logdir_is_in_no_ring() -> None:
    rings = CONTRACTS["the rings of logdir"]
    assert (rings["containers"], rings["exhaustive"], rings.get("exhaustive_ignores", ())) == (["logdir"], True, ())
