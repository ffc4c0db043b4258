"""The manual pages are those of the parsers, and roff that shows every character as it is typed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from logdir.daemon.config import KEYS
from tests.generated.commands import every_command, logdirctl, logdird
from tests.generated.man import FILES, HOME, escaped
from tests.tools.command_lines import leaf_commands, parser

MACROS = {".TH", ".SH", ".SS", ".TP", ".PP", ".br", ".nf", ".fi"}
ESCAPES = re.compile(r"\\(?:-|e|&|f[BIR]|\((?:aq|ga|ha|ti|dq)|\[u[0-9A-F]{4,6}\])")


def text_of(page: str) -> str:
    """Return what a reader sees of a page, without fonts."""
    found = re.sub(r"\\f[BIR]", "", page)
    for escape, shown in {"\\-": "-", "\\(aq": "'", "\\(ga": "`", "\\(dq": '"', "\\(ti": "~", "\\&": ""}.items():
        found = found.replace(escape, shown)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_page_is_as_it_is_generated(path: Path) -> None:
    assert path.read_text("utf-8") == FILES[path](), "python -m tests.generated writes it again"


def test_no_page_is_left_of_a_command_that_is_gone() -> None:
    assert sorted(HOME.iterdir()) == sorted(FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_page_is_valid_roff(path: Path) -> None:
    page = path.read_text("ascii")
    lines = page.splitlines()
    assert lines[0].startswith('.\\" Made by ')
    assert lines[1].startswith(f".TH {escaped(path.stem.upper())} {path.suffix[1:]} ")
    for line in lines[1:]:
        assert line, "an empty line is a paragraph of its own"
        assert not line.startswith("'")
        if line.startswith("."):
            assert line.split()[0] in MACROS, line
        rest = ESCAPES.sub("", line)
        assert "\\" not in rest, line
        assert "-" not in rest, line
        # Each font ends in its own line.
        assert len(re.findall(r"\\f[BI]", line)) == line.count("\\fR"), line
    assert page.count(".nf") == page.count(".fi")
    sections = [line.removeprefix(".SH ") for line in lines if line.startswith(".SH ")]
    assert sections[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"]
    assert sections[-1] == "SEE ALSO"
    assert len(sections) == len(set(sections))


def test_a_formatter_finds_nothing_wrong() -> None:
    if shutil.which("mandoc") is not None:
        # A page has no date: it changes with the commands alone.
        command = ["mandoc", "-T", "lint", "-W", "warning", *map(str, FILES)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []
    elif shutil.which("groff") is not None:
        done = subprocess.run(["groff", "-man", "-ww", "-z", *map(str, FILES)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    else:
        pytest.skip("needs mandoc or groff: apt install mandoc")


def test_every_command_and_every_option_is_on_a_page() -> None:
    for name, found in leaf_commands(parser()):
        page = text_of((HOME / f"logdirctl-{name.split()[0]}.1").read_text("utf-8"))
        assert f"\nlogdirctl {name} " in page or f"\nlogdirctl {name}\n" in page
        for option in found._option_string_actions:
            assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", page), (name, option)
    overview = text_of((HOME / "logdirctl.1").read_text("utf-8"))
    for one in logdirctl().below:
        assert f"logdirctl-{one.words[1]}(1)" in overview
    daemon = text_of((HOME / "logdird.8").read_text("utf-8"))
    assert all(name in daemon for one in logdird().arguments for name in one.names)


def test_every_key_of_the_configuration_is_on_its_page() -> None:
    page = text_of((HOME / "logdird.yaml.5").read_text("utf-8"))
    for key in KEYS:
        assert f"\n{key.name} ({key.type}" in page
        assert f"default: {key.default_text})\n" in page


def test_every_exit_status_of_a_command_is_on_its_page() -> None:
    for one in every_command(logdirctl()):
        for number, meaning in one.statuses:
            page = text_of((HOME / f"logdirctl-{one.words[1]}.1").read_text("utf-8"))
            assert f".TP\n{number}\n{meaning}\n" in page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".hidden", "\\&.hidden"),
        ("'quoted'", "\\(aqquoted\\(aq"),
        ("a\\b", "a\\eb"),
        ("--even-if-last", "\\-\\-even\\-if\\-last"),
        ("…", "\\[u2026]"),
        ('"', "\\(dq"),
    ],
)
def test_no_character_of_a_text_is_taken_for_roff(text: str, expected: str) -> None:
    assert escaped(text) == expected
