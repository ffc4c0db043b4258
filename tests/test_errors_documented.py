"""Every slug an operator can meet is explained in docs/errors.md, and nothing else is."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import logdir
import migrate
import tools
from logdir.errors import LogDirError

ROOT = Path(__file__).parents[1]
DOCUMENTED = set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", (ROOT / "docs" / "errors.md").read_text()))


def _errors(root: type[LogDirError]) -> set[type[LogDirError]]:
    return {root}.union(*(_errors(below) for below in root.__subclasses__()))


def _codes() -> list[str]:
    for package in (logdir, migrate, tools):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.rpartition(".")[2] in ("errors",):
                importlib.import_module(module.name)
    return [error.code for error in _errors(LogDirError)]


def all_codes() -> set[str]:
    """Return the code of every error."""
    return set(_codes())


def test_every_error_code_is_documented_and_used_by_one_class() -> None:
    codes = _codes()
    assert len(codes) == len(set(codes))
    assert set(codes) <= DOCUMENTED


def all_slugs() -> set[str]:
    """Return every slug of a finding that the sources name."""
    slugs: set[str] = set()
    for package in ("logdir", "migrate", "tools"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text()
            slugs |= set(re.findall(r'(?:Problem\(\s*|\bslug=|\bSLUG\w* = |\bproblem = )"([a-z]+(?:-[a-z]+)*)"', text))
            for group in re.findall(r"problems=\(([^)]*)\)", text):
                slugs |= set(re.findall(r'"([a-z]+(?:-[a-z]+)*)"', group))
    fleet = (ROOT / "migrate/source/fleet.py").read_text()
    slugs |= {f"fleet-{slug}" for slug in re.findall(r'self\.problem\(\s*"([a-z-]+)"', fleet)}
    return slugs


def test_every_problem_slug_in_the_code_is_documented() -> None:
    slugs = all_slugs()
    assert {"fleet-unknown-key", "symlink", "mount-point", "fleet-file"} <= slugs
    assert slugs <= DOCUMENTED


def test_every_conflict_is_documented() -> None:
    pytest.importorskip("pyspark", reason="needs pyspark: pip install 'logdird[fleet]'")
    from migrate.plan.conflicts import SLUGS

    assert len(SLUGS) == 14
    assert set(SLUGS) <= DOCUMENTED
