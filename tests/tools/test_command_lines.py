"""Every ``logdirctl …`` of the sources and the documents is a command that exists; what documents show is run."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.tools.command_lines import CONTINUED, _below, check, mentions, parser, require_mention, require_next
from tools.cli.usage import UsageError
from tools.logdird import build_parser as logdird_parser

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


@cache
def texts_of(path: Path) -> tuple[tuple[int, str], ...]:
    """Return every text of a source with its line; of a formatted one its fixed parts, ``X`` between them."""
    return tuple(_texts_of(path))


def _texts_of(path: Path) -> Iterator[tuple[int, str]]:
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
    """Yield the command lines of a document's blocks of code; a block ``text`` shows what they print."""
    fence = ""
    for line in CONTINUED.sub(" ", text).splitlines():
        if line.startswith("```"):
            fence = "" if fence else line
        found = re.search(r"(?:^|\|\s)(?:\S*/)?logdirctl (.*)", line.strip())
        if found and ((fence and fence != "```text") or line.startswith("    ")):
            yield re.split(r"\s+#|\s*\|\s|\s>\s", found[1])[0]


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_no_document_shows_a_command_that_does_not_parse(path: Path) -> None:
    text = CONTINUED.sub(" ", path.read_text("utf-8"))
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


STOCK_OPTIONS = {
    "kafka-dump-log": {"--cluster-metadata-decoder"},
    "kafka-log-dirs": {"--describe"},
    "kafka-metadata-quorum": {"--bootstrap-controller", "--status"},
    "kafka-configs": {"--add-config", "--alter", "--entity-name", "--entity-type"},
    "kafka-get-offsets": {"--bootstrap-server", "--time", "--topic"},
    "kafka-topics": {"--command-config", "--config", "--create", "--describe", "--replica-assignment"},
    "java": {"--add-modules", "--list-modules"},
    "curl": {"--unix-socket"},
    "systemctl": {"--now", "--type"},
    "pip": {"--no-cache-dir"},
    "podman": {"--detach", "--entrypoint", "--name", "--restart", "--rm", "--user", "--volume"},
    "of other programs in docs/": {"--quiet", "--reference", "--replay", "--mended"},
}
"""Options of programs that are not ours, of those that a text names; every other option is one of ``logdirctl``."""
STOCK_COMMANDS = {"kafka-storage": {"info", "format", "random-uuid", "version-mapping", "feature-dependencies"}}
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z](?![\w*…-])")
_STOCK = re.compile(r"(?<![\w./-])(kafka-storage)(?:\.sh)? ([a-z][a-z-]+)")
_DAEMON = re.compile(r"(?<![\w./`-])logdird (?:status|doctor|reload|start|stop|run)\b")
"""``logdird`` has options and no commands."""


def options_of(at: argparse.ArgumentParser) -> set[str]:
    """Return every option of a parser and of those below it."""
    return set(at._option_string_actions).union(*(options_of(below) for below in (_below(at) or {}).values()))


@cache
def _own_options() -> set[str]:
    return options_of(parser()) | options_of(logdird_parser())


def unknown_in(text: str) -> set[str]:
    """Return what a text names that does not exist: options, commands of stock tools, and of a daemon to come."""
    options = set(_OPTION.findall(text)) - _own_options() - set().union(*STOCK_OPTIONS.values())
    stock = {f"{tool} {word}" for tool, word in _STOCK.findall(text) if word not in STOCK_COMMANDS[tool]}
    return options | stock | set(_DAEMON.findall(text))


def test_every_option_and_stock_command_of_a_text_of_the_sources_exists() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{number}": unknown
        for path in SOURCES
        for number, text in texts_of(path)
        if (unknown := unknown_in(text))
    }
    assert found == {}


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_every_option_and_stock_command_of_a_document_exists(path: Path) -> None:
    assert unknown_in(path.read_text("utf-8")) == set()


def test_every_fix_is_among_the_texts_that_are_judged() -> None:
    """A fix that is made of parts is judged part by part; none is hidden in a file that no test reads."""
    judged = {text for path in SOURCES for _, text in texts_of(path)}
    fixes = [text for path in SOURCES for text in fixes_of(path)]
    assert len(fixes) > 150
    assert set(fixes) <= judged


def fixes_of(path: Path) -> Iterator[str]:
    """Yield the texts given as ``fix``: by keyword, or to a name ``fix`` that is."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        given: list[ast.expr] = []
        if isinstance(node, ast.Call):
            given = [one.value for one in node.keywords if one.arg == "fix"]
        elif isinstance(node, ast.Assign) and [ast.unparse(one) for one in node.targets] == ["fix"]:
            given = [node.value]
        for one in given:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                yield one.value
            elif isinstance(one, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in one.values)


@pytest.mark.parametrize(
    "text",
    ["add --confirm", "kafka-storage repair", "`logdird --chek-config`", "logdird status", "--even-if-odd lifts it"],
)
def test_what_does_not_exist_is_found_in_a_text(text: str) -> None:
    assert unknown_in(text)
