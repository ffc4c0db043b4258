"""``logdirctl explain`` says what the page of errors says, from what is installed."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from logdir.service.explain import read_page
from tests.test_errors_documented import all_codes, all_slugs
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit
from tools.logdirctl import explain

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "errors.md").read_text("utf-8")


def test_the_installed_page_is_the_one_of_the_docs_and_no_copy_that_ages() -> None:
    assert explain.PAGE.read_text("utf-8") == TEXT
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["*"]
    assert "*.md" in patterns
    assert explain.PAGE.parent == ROOT / "tools" / "logdirctl"


def test_no_slug_of_the_code_is_left_unexplained() -> None:
    known = {entry.slug for entry in read_page(explain.PAGE)}
    assert known >= all_codes()
    assert all_slugs() - known == set()


@pytest.mark.parametrize("slug", sorted({entry.slug for entry in read_page(explain.PAGE)}))
def test_no_word_of_the_page_is_left_out(slug: str) -> None:
    said = ctl("explain", slug)
    assert (said.status, said.err) == (Exit.DONE, "")
    rows = [line for line in TEXT.splitlines() if line.startswith("|") and f"`{slug}`" in line.split("|")[1]]
    assert rows
    for row in rows:
        for cell in re.split(r"(?<!\\)\|", row)[2:-1]:
            assert cell.strip().replace("\\|", "|") in said.out
    assert json.loads(ctl("explain", slug, "--json").out)["result"]["items"]


def test_an_unknown_slug_is_never_a_success() -> None:
    said = ctl("explain", "start-block-partal")
    assert (said.status, said.out) == (Exit.USAGE, "")
    assert "did you mean start-block-partial?" in said.err


def test_every_slug_is_listed_where_none_is_named() -> None:
    listed = {line.strip() for line in ctl("explain").out.splitlines() if line.startswith("  ")}
    assert listed == {entry.slug for entry in read_page(explain.PAGE)}
