"""Every ``logdirctl …`` of the sources and the documents is a command that exists; what documents show is run."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.command_lines import check, mentions, require_mention, require_next
from tools.cli.usage import UsageError

ROOT = Path(__file__).parents[2]
DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
SOURCES = sorted(path for name in ("logdir", "migrate", "scheduler", "tools") for path in (ROOT / name).rglob("*.py"))
PAGES = sorted((ROOT / "migrate").glob("report*.*"))
_VARIABLES = {
    "$K2": "--log-dirs /d",
    "$K": "--log-dirs /d",
    "$P": "plan/brokers/orders/1.jsonl",
    "$QUORUM": "--from metadata:/d --high-watermark 1 --leader-epoch 1",
}


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every text of a source with its line; of a formatted one its fixed parts, ``X`` between them."""
    module = ast.parse(path.read_text("utf-8"))
    inner = {id(part) for node in ast.walk(module) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, node.value


def blocks_of(path: Path) -> list[str]:
    """Return what a document shows to be typed, as ``typed_in``."""
    return list(typed_in(path.read_text("utf-8")))


def typed_in(text: str) -> Iterator[str]:
    """Yield the command lines of a document's blocks of code."""
    is_fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            is_fenced = not is_fenced
        found = re.search(r"(?:^|\|\s)(?:\S*/)?logdirctl (.*)", line.strip())
        if found and (is_fenced or line.startswith("    ")):
            yield re.split(r"\s+#|\s*\|\s|\s>\s", found[1])[0]


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_no_document_shows_a_command_that_does_not_parse(path: Path) -> None:
    text = path.read_text("utf-8")
    for line in typed_in(text):
        whole = line
        for name, words in _VARIABLES.items():
            whole = whole.replace(name, words)
        try:
            check(shlex.split(whole))
        except (UsageError, ValueError) as error:
            raise AssertionError(f"{path.name}: logdirctl {line}: {error}") from error
        except SystemExit:
            assert "--help" in line or "-h" in line
    prose = re.sub(r"^    .*$", "", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), flags=re.M)
    for found in mentions(prose):
        require_mention(found)


def test_no_text_of_the_sources_names_a_command_that_does_not_exist() -> None:
    count = 0
    for path in SOURCES:
        for number, text in texts_of(path):
            for found in mentions(text):
                try:
                    require_mention(found)
                except AssertionError as error:
                    raise AssertionError(f"{path.relative_to(ROOT)}:{number}: {error}") from None
                count += 1
    assert count > 60


def test_no_file_of_the_report_names_a_command_that_does_not_exist() -> None:
    for path in PAGES:
        if path.suffix != ".py":
            for found in mentions(path.read_text("utf-8")):
                require_mention(found)


@pytest.mark.parametrize(
    "line",
    [
        "stage x --log-dirs /d --even-over-limit --apply",
        "stage x",
        "stagd ls",
        "layout apply p --confirm",
    ],
)
def test_a_next_line_that_cannot_be_typed_is_never_let_through(line: str) -> None:
    with pytest.raises(AssertionError):
        require_next(line)


@pytest.mark.parametrize("text", ["doctor says why", "future clear", "staged ls --now", "restore x", "init --aply"])
def test_a_mention_of_what_does_not_exist_is_never_let_through(text: str) -> None:
    with pytest.raises(AssertionError):
        require_mention(text)
