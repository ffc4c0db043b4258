"""Paths and names as an operator gives and reads them: refused before anything is made, printed on one line, and true.

Spec: design §2 laws 7, 8, §3.2, §6.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from logdir.errors import Problem
from logdir.observe.replicas import look
from logdir.paths import HIDDEN_WORK_ROOT
from logdir.text import quoted
from tests.builders import log_dir, partition
from tests.tools.ctl import CODE, HOME, Said, ctl, tree, two_disks
from tools.cli.arguments import Exit, Streams, say

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
    fields = {
        "slug": "changed-since-plan",
        "path": "/d",
        "expected": "a",
        "found": "b",
        "fix": "c",
        part: "x\ny\x1b[2J\x9bz",
    }
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
    said = ctl("stage", "pay", "--even-if-unknown", "--log-dirs", top)
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


# Where something staged lies.


def _staged(tmp_path: Path, kind: str) -> tuple[Path, Path, Path]:
    """Stage ``pay-0``; return its log dir, its work root and its place."""
    top = log_dir(tmp_path / "d1")
    partition(top / "pay-0")
    word = ("--even-if-found", "work-root-inside") if kind == "inside" else ()
    assert ctl("init", "--log-dirs", top, "--work-root", kind, *word, "--apply").status == Exit.DONE
    assert (
        ctl("stage", "pay", "--even-if-unknown", "--log-dirs", top, "--apply", "--even-over-limit").status == Exit.DONE
    )
    root = {"beside": tmp_path / "d1.logdird", "in-place": top / HIDDEN_WORK_ROOT, "inside": top}[kind]
    (place,) = (root / "deleting").iterdir()
    return top, root, place


def _paths_named(said: Said) -> list[str]:
    """Return the path each finding names."""
    return [
        line.split(": ")[2] for line in said.err.splitlines() if line.startswith("logdirctl") and ": expected " in line
    ]


@pytest.mark.parametrize("kind", ["beside", "in-place", "inside"])
def test_no_refusal_names_a_staged_replica_where_it_does_not_lie(tmp_path: Path, kind: str) -> None:
    top, _, place = _staged(tmp_path, kind)
    partition(top / "pay-0")  # a live twin
    said = ctl("staged", "restore", "pay", "--log-dirs", top)
    assert _paths_named(said) == [str(place)]
    assert Path(_paths_named(said)[0]).is_dir()
    assert _paths_named(ctl("staged", "restore", "pay", "--log-dirs", top, "--apply")) == [str(place)]
    assert _paths_named(ctl("staged", "purge", "pay", "--log-dirs", top)) == [str(place)]


@pytest.mark.parametrize("kind", ["beside", "in-place", "inside"])
def test_no_held_replica_is_named_where_it_does_not_lie(tmp_path: Path, kind: str) -> None:
    top, _, place = _staged(tmp_path, kind)
    (place / "below").mkdir()
    for verb in ("restore", "purge", "export"):
        more = ("-o", tmp_path) if verb == "export" else ()
        assert _paths_named(ctl("staged", verb, "pay", "--log-dirs", top, *more)) == [str(place)], verb
    assert _paths_named(ctl("staged", "ls", "--log-dirs", top)) == [str(place / "below")]
    (place / "below").rmdir()
    (place / "replica.json").write_bytes(b"{}\n")
    named = ctl("staged", "ls", "--log-dirs", top).err
    assert f": {place}/replica.json: " in named or f": {place}: " in named


def test_no_other_copy_is_named_where_it_does_not_lie(tmp_path: Path) -> None:
    top, root, place = _staged(tmp_path, "beside")
    copy = root / "deleting" / f"{place.name}.2"
    shutil.copytree(place, copy)
    said = ctl("staged", "restore", "pay", "--log-dirs", top)
    assert str(place) in said.err
    assert str(copy) in said.err
    assert f"{top}/deleting" not in said.err
    assert f"{top}: " not in said.err


@pytest.mark.parametrize("hidden", ["", "/deleting"], ids=["root", "part"])
def test_no_unreadable_work_root_is_named_with_its_log_dir_twice(
    tmp_path: Path, hidden: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    top, root, _ = _staged(tmp_path, "beside")
    real = os.open

    def refusing(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == (hidden.strip("/") or str(root)):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing)
    problem = look(str(top)).problem
    assert problem is not None
    assert problem.path == f"{root}{hidden}"


def test_no_path_stands_twice_in_what_a_recovery_says(tmp_path: Path) -> None:
    top, root, _ = _staged(tmp_path, "beside")
    strange = root / "incoming" / "MkU3OEVBNTcwNTJENDM2Qg_7"
    strange.mkdir()
    (strange / "below").mkdir()
    partition(top / "x-0")
    (top / "x-0" / "replica.json").mkdir()
    said = ctl("stage", "nothing", "--log-dirs", top, "--apply")
    lines = [line for line in said.err.splitlines() if re.search("recovery-failed|unexpected-entry", line)]
    assert len(lines) == 2, said.err
    for line in lines:
        assert line.count(": expected ") == 1, line
        assert line.count(str(tmp_path)) == 1, line
    assert {line.split(": ")[2] for line in lines} == {f"{strange}/below", f"{top}/x-0"}


def test_no_place_that_does_not_do_is_told_with_a_whole_message_inside(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    (tmp_path / "d1.logdird").write_text("")
    said = ctl("init", "--log-dirs", top)
    assert said.out.count("expected") == 0


@pytest.mark.parametrize(
    ("verb", "place"),
    [("scan", "d1/snapshot"), ("plan", "d1/plan"), ("plan", "d2/plan"), ("report", "d2/meta.properties")],
)
def test_no_fleet_command_writes_into_a_log_dir_that_can_be_known(tmp_path: Path, verb: str, place: str) -> None:
    pytest.importorskip("pyspark")
    (tmp_path / "d1").mkdir()  # known by the fleet file alone
    (tmp_path / "d2").mkdir()
    (tmp_path / "d2" / "meta.properties").write_text("version=1\n")
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text("clusters:\n- name: a\n  brokers: [{node_id: 1, log_dirs: [d1]}]\n")
    status, _, err = ctl("fleet", verb, fleet, "-o", tmp_path / place)
    assert (status, err.count("\n")) == (Exit.REFUSED, 1)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["d1", "d2", "fleet.yaml", "meta.properties"]


_NAMING = ("inventory --server-properties", "staged ls --server-properties", "layout check")


@pytest.mark.parametrize(
    ("line", "kind"),
    # A plan may be large.
    [(line, kind) for line in _NAMING for kind in ("fifo", "device", "directory", "huge")][:-1],
)
def test_no_command_reads_without_end_what_is_named_as_a_file(tmp_path: Path, line: str, kind: str) -> None:
    path = tmp_path / "named"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "directory":
            path.mkdir()
        case _:
            path.touch()
            os.truncate(path, (1 << 20) + 1)
    more = ("--log-dirs", str(tmp_path)) if line.startswith("layout") else ()
    # In a process of its own: one that waits for ever is ended, and is no answer.
    command = [sys.executable, "-c", CODE, *line.split(), str(path), *more]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (Exit.USAGE, 1)
    assert f" config-error: {path}: " in done.stderr


@pytest.mark.parametrize("make", [os.mkfifo, Path.touch], ids=["FIFO", "file"])
def test_what_lies_where_staged_replicas_do_is_never_called_a_dead_disk(
    make: Callable[[Path], object], tmp_path: Path
) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    place = Path(f"{disks[1]}.logdird/deleting")
    shutil.rmtree(place)
    make(place)
    before = sorted(tmp_path.rglob("*"))
    for command in (["stage", "pay", "--even-if-unknown"], ["staged", "ls"], ["staged", "purge"], ["uninstall"]):
        more = [] if command[-1] == "ls" else ["--apply"]
        said = ctl(*command, *named, *more)
        assert said.status in (Exit.REFUSED, Exit.PROBLEMS), said
        assert f"wrong-file-type: {place}: expected a directory, found something else; inspect it" in said.err
        assert "kernel's log" not in said.err
    assert sorted(tmp_path.rglob("*")) == before
