"""The wheel holds every package of the tree, under a version that no other tree has had.

A package that is left out is missed only where the wheel is installed.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.releases.rig import RELEASES
from tools.version import VERSION

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


def problem_of(version: str, changelog: str) -> str:
    """Return why a version does not fit a change log; empty if it does."""
    titles = re.findall(r"^## (\S+)", changelog, re.MULTILINE)
    newest = next(title for title in titles if title != "Unreleased")
    if titles[0] != "Unreleased":
        return "" if version == newest else f"{version}, and {newest} is released"
    under_way = re.fullmatch(r"(\d+\.\d+\.\d+)\.dev\d+", version)
    if under_way is None:
        return f"{version} has changes that no release has, and is no development version"
    numbers, released = (tuple(map(int, one.split("."))) for one in (under_way[1], newest))
    return "" if numbers > released else f"{version} is no version after {newest}"


def test_the_version_is_no_release_while_there_are_changes_after_it() -> None:
    assert problem_of(VERSION, (TOP / "CHANGELOG.md").read_text(encoding="utf-8")) == ""


@pytest.mark.parametrize(
    ("version", "titles", "fits"),
    [
        ("0.3.0.dev0", ("Unreleased", "0.2.0 - 2026-11-24"), True),
        ("0.2.0", ("Unreleased", "0.2.0 - 2026-11-24"), False),
        ("0.2.0.dev1", ("Unreleased", "0.2.0 - 2026-11-24"), False),
        ("0.3.0", ("Unreleased", "0.2.0 - 2026-11-24"), False),
        ("0.10.0.dev0", ("Unreleased", "0.9.0 - 2026-11-24"), True),
        ("0.3.0", ("0.3.0 - 2027-01-01", "0.2.0 - 2026-11-24"), True),
        ("0.3.0.dev0", ("0.3.0 - 2027-01-01", "0.2.0 - 2026-11-24"), False),
    ],
)
def test_a_version_that_a_release_has_or_will_have_is_found(version: str, titles: tuple[str, ...], fits: bool) -> None:
    assert (problem_of(version, "".join(f"## {title}\n" for title in titles)) == "") is fits


def test_every_release_of_the_change_log_left_its_trees() -> None:
    titles = re.findall(r"^## (\d\S+)", (TOP / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(RELEASES) == sorted(titles)
