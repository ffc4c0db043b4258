"""The completion of bash and zsh is that of the parsers, and starts no program.

bash is driven as it calls the function itself: ``COMP_WORDS`` and ``COMP_CWORD`` set, ``COMPREPLY`` read.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.generated.commands import Argument, every_command, logdirctl, logdird
from tests.generated.completion import FILES, HOME, OF_DIRS, OF_FILES, OF_LISTS, OF_NOTHING, OVERRIDE, kind_of
from tests.tools.command_lines import leaf_commands, parser
from tools.logdird import build_parser as daemon_parser

BASH = HOME / "logdirctl.bash"
FOLDER = ("a file", "d1", "d2")
"""What lies where it is tried: a file, and two directories."""
Words = tuple[str, ...]


def completed(folder: Path, cases: Sequence[Words]) -> dict[Words, list[str]]:
    """Return what is proposed for the last word of each command line, by one bash that can start no program."""
    (folder / "a file").touch()
    for name in FOLDER[1:]:
        (folder / name).mkdir(exist_ok=True)
    script = [f". {shlex.quote(str(BASH))}"]
    for words in cases:
        script += [
            f"COMP_WORDS=({' '.join(map(shlex.quote, words))})",
            f"COMP_CWORD={len(words) - 1}",
            f"_logdirctl {shlex.quote(words[0])}",
            # Without a reply printf would write an empty line.
            "((${#COMPREPLY[@]})) && printf '%s\\n' \"${COMPREPLY[@]}\"",
            "printf '\\0'",
        ]
    done = subprocess.run(
        [shutil.which("bash") or "/bin/bash", "--norc", "--noprofile", "-c", "\n".join(script)],
        cwd=folder,
        env={"PATH": "/nowhere", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    *replies, rest = done.stdout.split("\0")
    assert (rest, len(replies)) == ("", len(cases))
    return {words: sorted(reply.splitlines()) for words, reply in zip(cases, replies, strict=True)}


def leaves() -> Mapping[Words, argparse.ArgumentParser]:
    """Return the parser of every command that is no group."""
    found: dict[Words, argparse.ArgumentParser] = {("logdird",): daemon_parser()}
    return found | {("logdirctl", *name.split()): one for name, one in leaf_commands(parser())}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_file_is_as_it_is_generated(path: Path) -> None:
    assert path.read_text("utf-8") == FILES[path](), "python -m tests.generated writes it again"


def test_every_command_is_proposed_where_it_is_typed(tmp_path: Path) -> None:
    groups = [one for one in every_command(logdirctl()) if one.below]
    found = completed(tmp_path, [(*one.words, "") for one in groups])
    for one in groups:
        assert found[(*one.words, "")] == sorted(below.words[-1] for below in one.below)
    assert completed(tmp_path, [("logdirctl", "sta")])[("logdirctl", "sta")] == ["stage", "staged", "status"]


def test_every_option_is_proposed_and_an_override_only_where_it_is_begun(tmp_path: Path) -> None:
    found = completed(tmp_path, [(*words, typed) for words in leaves() for typed in ("-", OVERRIDE)])
    for words, one in leaves().items():
        options = {name for name in one._option_string_actions if name.startswith("--")}
        overrides = {name for name in options if name.startswith(OVERRIDE)}
        assert set(found[(*words, "-")]) == options - overrides
        assert set(found[(*words, OVERRIDE)]) == overrides


def expected(one: Argument) -> list[str]:
    """Return what is proposed for the value of an argument where ``FOLDER`` lies."""
    return {"files": sorted(FOLDER), "dirs": ["d1", "d2"], "lists": ["d1", "d2"], "words": sorted(one.choices)}.get(
        kind_of(one), []
    )


def test_the_value_of_every_option_is_completed_by_what_it_is(tmp_path: Path) -> None:
    commands = [one for top in (logdirctl(), logdird()) for one in every_command(top)]
    wanted = {
        (*command.words, name, ""): expected(one)
        for command in commands
        for one in command.arguments
        if one.metavar
        for name in one.names
    }
    assert len(wanted) > 150
    assert completed(tmp_path, list(wanted)) == wanted


def test_an_argument_without_a_flag_is_completed_only_if_it_is_a_path(tmp_path: Path) -> None:
    wanted = {
        (*command.words, ""): expected(one)
        for command in every_command(logdirctl())
        for one in [one for one in command.arguments if not one.names][:1]
    }
    assert completed(tmp_path, list(wanted)) == wanted
    assert (wanted["logdirctl", "stage", ""], wanted["logdirctl", "metadata", "ls", ""]) == ([], [])
    assert wanted["logdirctl", "layout", "apply", ""] == sorted(FOLDER)
    assert wanted["logdirctl", "disk", "release", ""] == ["d1", "d2"]


@pytest.mark.parametrize(
    ("typed", "proposed"),
    [
        (("inventory", "--config", "=", "d"), ["d1", "d2"]),
        (("inventory", "--config", "="), sorted(FOLDER)),
        (("inventory", "--log-dirs", "/x,d"), ["/x,d1", "/x,d2"]),
        (("init", "--work-root", "in"), ["in-place", "inside"]),
        (("staged", "purge", "pay", "--topic"), ["--topic-removed"]),
        (("staged", "purge", "--config", "ls", "--even-if-e"), ["--even-if-early"]),
        (("nonsense", ""), sorted(one.words[-1] for one in logdirctl().below)),
        (("status", "x"), []),
    ],
)
def test_what_is_typed_so_far_counts(typed: Words, proposed: list[str], tmp_path: Path) -> None:
    words = ("logdirctl", *typed)
    assert completed(tmp_path, [words]) == {words: proposed}


def test_every_value_of_an_option_is_known_to_be_a_path_or_none() -> None:
    known = OF_FILES | OF_DIRS | OF_LISTS | OF_NOTHING
    arguments = [one for top in (logdirctl(), logdird()) for command in every_command(top) for one in command.arguments]
    assert {one.metavar for one in arguments if not one.choices} <= known


def test_zsh_reads_its_file() -> None:
    if shutil.which("zsh") is None:
        pytest.skip("needs zsh: apt install zsh")
    done = subprocess.run(["zsh", "-n", HOME / "_logdirctl"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_file_of_zsh_has_every_command_and_every_option() -> None:
    text = (HOME / "_logdirctl").read_text("utf-8")
    assert text.startswith("#compdef logdirctl logdird\n")
    parts = [part.partition("() {\n") for part in text.split("\n\n")]
    functions = {name: body for name, _, body in parts if body}
    for words, one in leaves().items():
        body = functions["_logdird_0" if words == ("logdird",) else f"_{'_'.join(words)}"]
        for name in one._option_string_actions:
            assert any(f"{name}{mark}[" in body for mark in ("", "=", "+")), (words, name)
        # Every quote is closed in its line: no text runs on into the next specification.
        assert all(line.replace("'\\''", "").count("'") % 2 == 0 for line in body.splitlines())
