"""The wheel holds every package of the tree: what is left out is missed only where it is installed."""

from __future__ import annotations

import tomllib
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
# The bridge for Spark lies deeper, under a name of its own.
ELSEWHERE = {"pyspark_logdir"}


def test_every_package_is_in_the_wheel() -> None:
    shipped = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    found = {
        ".".join(path.parent.relative_to(TOP).parts)
        for top in ("logdir", "migrate", "scheduler", "tools")
        for path in (TOP / top).rglob("*.py")
        if "spark_bridge" not in path.parts
    }
    assert sorted(found) == sorted(set(shipped) - ELSEWHERE)
