"""Paths and names as an operator gives and reads them: refused before anything is made, printed on one line, and true.

Spec: design §2 laws 7, 8, §3.2, §6.
"""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest

from logdir.errors import Problem
from tests.builders import log_dir, partition
from tests.tools.ctl import Said, ctl, tree, two_disks
from tools.cli import Exit, Streams, say
from tools.render import quoted

ODD = [b"d\xff", b"\xc3d", b"d\xed\xa0\x80"]


def _slugs(said: Said) -> list[str]:
    return [line.split(": ")[1] for line in said.err.splitlines() if line.startswith("logdirctl")]


def _typed(words: str) -> list[str]:
    """Return what a shell makes of some words."""
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True)
    return [os.fsdecode(one) for one in done.stdout.split(b"\0")[:-1]]


# A log dir whose path no text holds.


@pytest.mark.parametrize("name", ODD, ids=repr)
@pytest.mark.parametrize("verb", [("init",), ("stage", "x"), ("staged", "purge"), ("uninstall",)], ids=" ".join)
@pytest.mark.parametrize("flag", [(), ("--apply",)], ids=["plan", "apply"])
def test_nothing_is_made_for_a_log_dir_whose_path_is_not_utf8(
    tmp_path: Path, name: bytes, verb: tuple[str, ...], flag: tuple[str, ...]
) -> None:
    top = log_dir(Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)))
    partition(top / "x-0")
    before = tree(tmp_path)
    said = ctl(*verb, "--log-dirs", top, *flag)
    assert (said.status, said.out, _slugs(said)) == (Exit.USAGE, "", ["config-error"])
    assert len(said.err.splitlines()) == 1
    assert tree(tmp_path) == before
    assert len(os.listdir(tmp_path)) == 1


def test_a_log_dir_whose_path_is_not_utf8_is_still_looked_at(tmp_path: Path) -> None:
    top = log_dir(Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff")))
    partition(top / "x-0")
    assert ctl("inventory", "--log-dirs", top).status == Exit.DONE
    assert ctl("describe", "--log-dirs", top).status == Exit.DONE


# One log dir under two paths.


@pytest.mark.parametrize(
    "verb", [("init",), ("stage", "pay"), ("staged", "ls"), ("inventory",), ("describe",)], ids=" ".join
)
def test_no_log_dir_is_taken_for_two_when_it_is_named_twice_through_a_link(
    tmp_path: Path, verb: tuple[str, ...]
) -> None:
    one, _ = two_disks(tmp_path / "disks")
    (tmp_path / "link").symlink_to(tmp_path / "disks")
    before = tree(tmp_path)
    apply = ("--apply",) if verb[0] in ("init", "stage") else ()
    said = ctl(*verb, "--log-dirs", f"{one},{tmp_path}/link/d1", *apply)
    assert (said.status, said.out, _slugs(said)) == (Exit.USAGE, "", ["config-error"])
    assert str(one) in said.err
    assert f"{tmp_path}/link/d1" in said.err
    assert "pid" not in said.err
    assert tree(tmp_path) == before


def test_a_log_dir_of_a_server_properties_is_not_taken_for_two_either(tmp_path: Path) -> None:
    one, _ = two_disks(tmp_path / "disks")
    (tmp_path / "link").symlink_to(tmp_path / "disks")
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=1\nlog.dirs={one},{tmp_path}/link/d1\n")
    assert ctl("init", "--server-properties", file, "--apply").status == Exit.USAGE
    assert not (tmp_path / "disks" / "d1.logdird").exists()


# Names and paths with characters that a terminal acts on.


@pytest.mark.parametrize("part", ["expected", "found", "fix", "path"])
def test_no_finding_is_more_than_one_line(part: str) -> None:
    fields = {"slug": "refused", "path": "/d", "expected": "a", "found": "b", "fix": "c", part: "x\ny\x1b[2J\x9bz"}
    line = Problem(**fields).line()
    assert line.isprintable()
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize("name", ["a\nb", "a\tb\x1b[2J", "it's\n1", "back\\slash\n1", "\u2028x", "\x9b0m", "a b"])
def test_no_next_line_names_another_path_than_the_one_given(tmp_path: Path, name: str) -> None:
    top = log_dir(tmp_path / name)
    partition(top / "pay-0")
    for verb in (["init"], ["inventory"], ["staged", "ls"], ["describe"]):
        said = ctl(*verb, "--log-dirs", top)
        (line,) = [line for line in said.out.split("\n") if line.startswith("next: ")]
        assert line.isprintable()
        words = _typed(line.removeprefix("next: "))
        assert words[words.index("--log-dirs") + 1] == str(top), line
    ctl("init", "--log-dirs", top, "--apply")
    said = ctl("stage", "pay", "--log-dirs", top)
    for line in (said.out + said.err).split("\n"):
        assert line.isprintable()


def test_no_next_line_names_another_path_than_one_whose_bytes_are_no_text(tmp_path: Path) -> None:
    top = log_dir(Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff1")))
    said = ctl("inventory", "--log-dirs", top)
    words = _typed(said.out.splitlines()[-1].removeprefix("next: "))
    assert words[words.index("--log-dirs") + 1] == str(top)


def test_a_plain_word_is_not_quoted_more_than_a_shell_needs() -> None:
    assert quoted("/data/d1") == "/data/d1"
    assert quoted("a b") == "'a b'"
    assert quoted("é") == "'é'"


def test_no_line_of_dialogue_steers_a_terminal() -> None:
    err = io.StringIO()
    say(Streams(io.StringIO(), err), "logdirctl x: /d\x1b[2J\x9b0m")
    assert err.getvalue() == "logdirctl x: /d\\x1b[2J\\x9b0m\n"
