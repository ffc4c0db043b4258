"""Help: every command and argument has its line, and help of all commands imports none of them."""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.cli.arguments import Exit
from tools.logdirctl.commands import COMMANDS, help_text
from tools.logdirctl.main import build_parser, main

ROOT = Path(__file__).parents[2]


def parsers(top: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str | None]]:
    """Yield every command's parser with the line that lists it."""
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            listed = {choice.dest: choice.help for choice in action._choices_actions}
            for name, parser in action.choices.items():
                yield parser, listed.get(name)
                yield from parsers(parser)


def test_help_lists_every_command_and_option_there_is() -> None:
    top = build_parser()
    (commands,) = (action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    listed = [line.split()[0] for line in help_text().splitlines() if line.startswith("    ") and line[4] != " "]
    assert listed == list(commands.choices) == list(COMMANDS)
    for action in top._actions:
        assert ", ".join(action.option_strings) in help_text()


def test_help_imports_no_command_and_no_parser() -> None:
    code = (
        "import sys; sys.argv = ['logdirctl', '--help']; from tools.entry import logdirctl; logdirctl(); "
        "sys.exit('argparse' in sys.modules or 'logdir.errors' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (said.returncode, said.stdout) == (0, help_text())


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["--version", "--help"]])
def test_help_is_the_same_however_it_is_asked_for(argv: list[str]) -> None:
    out = io.StringIO()
    assert (main(argv, out, io.StringIO()), out.getvalue()) == (0, help_text())


def test_every_command_and_every_argument_has_help() -> None:
    found = dict(parsers(build_parser()))
    assert {parser.prog for parser in found} >= {"logdirctl inventory", "logdirctl fleet", "logdirctl fleet plan"}
    for parser, listed in found.items():
        assert listed or COMMANDS[parser.prog.removeprefix("logdirctl ")], parser.prog
        for action in parser._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction), (parser.prog, action.dest)


def test_every_exit_status_is_documented() -> None:
    text = help_text()
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
