"""Help: the prebuilt text is the parser's own, and nothing goes undocumented."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

import tools.logdirctl
from tools.cli import Exit
from tools.logdirctl.main import build_parser, main

HELP = Path(tools.logdirctl.__file__).with_name("help.txt")


def parsers(top: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str | None]]:
    """Yield every command's parser with the line that lists it."""
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            listed = {choice.dest: choice.help for choice in action._choices_actions}
            for name, parser in action.choices.items():
                yield parser, listed.get(name)
                yield from parsers(parser)


def test_prebuilt_help_is_the_parsers_own() -> None:
    assert HELP.read_text(encoding="utf-8") == build_parser().format_help(), "run: make help"


def test_every_command_and_every_argument_has_help() -> None:
    found = dict(parsers(build_parser()))
    assert {parser.prog for parser in found} >= {"logdirctl inventory", "logdirctl fleet", "logdirctl fleet plan"}
    for parser, listed in found.items():
        assert listed, parser.prog
        for action in parser._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction), (parser.prog, action.dest)


def test_every_exit_status_is_documented() -> None:
    text = build_parser().format_help()
    for status in Exit:
        assert f" {status.value} " in text, status


@pytest.mark.parametrize("argv", [["inventory", "--help"], ["fleet", "--help"], ["fleet", "plan", "-h"], ["--help"]])
def test_help_goes_where_the_caller_says(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    assert main(argv, out, err) == 0
    assert out.getvalue().startswith("usage: logdirctl")
    assert (err.getvalue(), capsys.readouterr().out) == ("", "")


@pytest.mark.parametrize("argv", [["nonsense"], ["inventory"], ["inventory", "--jso"], ["fleet"], []])
def test_wrong_usage_is_one_line_and_status_2(argv: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    assert main(argv, out, err) == Exit.USAGE
    assert err.getvalue().count("\n") == 1
    assert out.getvalue() == ""
