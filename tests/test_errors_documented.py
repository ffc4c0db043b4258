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
from logdir.refusal_slug import Why

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "errors.md").read_text()
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line.startswith("| `")]
LISTED = [slug for row in ROWS for slug in re.findall(r"`([a-z]+(?:-[a-z]+)*)`", row[0])]
DOCUMENTED = set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", PAGE))


def _errors(root: type[LogDirError]) -> set[type[LogDirError]]:
    return {root}.union(*(_errors(below) for below in root.__subclasses__()))


def _codes() -> list[str]:
    for package in (logdir, migrate, tools):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.rpartition(".")[2] in ("errors",):
                importlib.import_module(module.name)
    return [error.code for error in _errors(LogDirError) if "code" in vars(error)]


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


def test_every_refusal_is_documented_once_with_what_it_means_and_what_to_do() -> None:
    assert len(LISTED) == len(set(LISTED))
    assert {why.value for why in Why} <= set(LISTED)
    assert "refused" not in LISTED
    for slugs, *cells in ROWS:
        assert len(cells) == 2, slugs
        assert cells[0], slugs
        assert cells[1] or "see `" in cells[0], slugs


def test_the_page_lists_no_slug_that_nothing_has() -> None:
    pytest.importorskip("pyspark", reason="needs pyspark: pip install 'logdird[fleet]'")
    from migrate.plan.conflicts import SLUGS

    sources = [
        path.read_text() for package in (logdir, migrate, tools) for path in Path(package.__path__[0]).rglob("*.py")
    ]
    rest = set(LISTED) - {*all_codes(), *all_slugs(), *SLUGS, *(why.value for why in Why)}
    assert [slug for slug in rest if not any(re.search(rf'"{slug}[":]', source) for source in sources)] == []


def test_refusals_are_told_apart_by_slugs_of_their_own() -> None:
    """The slug of a refusal is a member of the closed table, not a text somebody typed."""
    values = {why.value for why in Why}
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", value) for value in values)
    typed = {
        path.name: found for path in (ROOT / "logdir").rglob("*.py") if (found := _typed(path.read_text()) & values)
    }
    assert typed == {}


def _typed(source: str) -> set[str]:
    """Return the slugs that stand as texts where a problem is made, of those that only refusals have."""
    return set(re.findall(r'Problem\(\s*"([a-z]+(?:-[a-z]+)*)"', source)) - all_codes() - SEEN_BY_SCAN


SEEN_BY_SCAN = {"partition-metadata-broken", "no-permission"}
"""Slugs of an inventory that refusals have, too."""
