"""``logdirctl metadata shell``: every command, by a pipe and on a terminal; nothing that is typed breaks it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from logdir.metadata.nodes import Line, Missed
from logdir.metadata.shell import MANUAL, Shell
from logdir.metadata.source import read_directory
from logdir.metadata.tree import build
from logdir.service.metadata import MetadataRequest, session
from tests.logdir.cluster.log_dir import A, B, LogDir, partition, record, topic
from tests.logdir.wire.golden_metadata import METADATA
from tests.tools.ctl import HOME
from tools.cli.metadata_shell import put, talk

LOG = METADATA / "4.3.1-kraft"
# What runs the tests may have SIGINT ignored, as a shell does to what it puts into the background.
_CODE = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from tools.entry import logdirctl; sys.exit(logdirctl())"
)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    log = LogDir(tmp_path / "log")
    log.append(topic("a", A), partition(A, 0, (1, 2)), topic("a b", B))
    log.append(record(4, resourceType=32, resourceName="x/y", name="k", value="v"))
    return Shell(build(read_directory(str(log.directory)), {"version": "1"}))


def typed(shell: Shell, *lines: str) -> list[Line]:
    return [one for line in lines for one in shell.run(line)]


def test_where_one_is(shell: Shell) -> None:
    assert typed(shell, "pwd") == ["/"]
    assert typed(shell, "cd image/topics", "pwd") == ["/image/topics"]
    assert typed(shell, "cd ../configs//.", "pwd") == ["/image/configs"]
    assert typed(shell, "cd ../../../..", "pwd") == ["/"]
    assert typed(shell, "cd /image/topics/byName/'a b'", "pwd") == ["/image/topics/byName/a\\ b"]
    assert typed(shell, "cd", "pwd") == ["/"]
    assert typed(shell, "cd im*/topics/byN?me", "pwd") == ["/image/topics/byName"]
    assert typed(shell, "cd '../../configs/GROUP:x\\/y'", "pwd", "cat k") == ["/image/configs/GROUP:x\\/y", "v"]
    assert typed(shell, "cd /nope") == [Missed("/nope", "no such directory")]
    assert typed(shell, "cd /image/provenance") == [Missed("/image/provenance", "not a directory")]
    assert typed(shell, "cd /image/*") == [Missed("/image/*", "more than one directory")]
    assert typed(shell, "pwd") == ["/image/configs/GROUP:x\\/y"]


def test_looking_around(shell: Shell) -> None:
    assert typed(shell, "ls") == ["image", "local"]
    assert typed(shell, "cd /image/topics/byName", "ls") == ["a", "a\\ b"]
    assert typed(shell, "ls a") == ["0", "id", "name"]
    assert typed(shell, "ls a\\ b 'a b'/name nope") == [
        Missed("nope", "no such file or directory"),
        "name",
        "",
        "/image/topics/byName/a\\ b:",
        "id",
        "name",
    ]
    assert typed(shell, "cat a/name a", "cat") == [
        "a",
        Missed("a", "is a directory"),
        Missed("cat", "usage: cat PATH..."),
    ]
    assert typed(shell, "find a") == [f"/image/topics/byName/a{end}" for end in ("", "/0", "/id", "/name")]
    (head, zero, *others) = typed(shell, "tree a")
    assert head == "a:"
    assert isinstance(zero, str)
    assert zero.startswith('  0: {"replicas":[1,2],')
    assert len(others) == 2
    assert typed(shell, "tree /local/version", "tree x") == [
        "version: 1",
        Missed("x", "no such file or directory"),
    ]


def test_the_manual_and_the_history(shell: Shell) -> None:
    assert typed(shell, "man ls") == ["usage: ls [PATH...]", MANUAL["ls"].text]
    assert typed(shell, "man", "man nope", "man ls cat") == [
        Missed("man", "usage: man COMMAND"),
        Missed("nope", "no such command; type help"),
        Missed("man", "usage: man COMMAND"),
    ]
    told = typed(shell, "help")
    assert sum(isinstance(line, str) and line.startswith(name) for line in told for name in MANUAL) >= 10
    assert set(MANUAL) == {"cd", "pwd", "ls", "cat", "find", "tree", "man", "help", "history", "exit"}
    assert typed(shell, "history 2") == ["    5  help", "    6  history 2"]
    assert len(typed(shell, "history")) == 7
    assert typed(shell, "history 0") == []
    assert len(typed(shell, "history 999999999")) == 9
    assert typed(shell, "history x", "history -1", "history 1 2") == [
        Missed("x", "not a number of lines"),
        Missed("-1", "not a number of lines"),
        Missed("history", "usage: history [NUMBER]"),
    ]
    assert typed(shell, "  ", "") == []
    assert typed(shell, "exit now") == [Missed("exit", "usage: exit")]
    assert not shell.is_over
    assert typed(shell, "exit") == []
    assert shell.is_over


def test_what_is_no_command_is_one_line(shell: Shell, tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    source = io.StringIO("rm -rf /\n\x1b[2J\ncat 'a\nls /nope\n\x00\nls\n")
    with session(MetadataRequest(directory=str(tmp_path / "log"))) as found:
        assert talk(found, source, out, err) is False
    assert out.getvalue() == "image\nlocal\n"
    assert err.getvalue().splitlines() == [
        "rm: no such command; type help",
        "\\x1b[2J: no such command; type help",
        "cat: cat 'a: no closing '",
        "ls: /nope: no such file or directory",
        "\\x00: no such command; type help",
    ]


def test_completion(shell: Shell) -> None:
    assert shell.complete("c", "c") == ["cat ", "cd "]
    assert shell.complete("man h", "h") == ["help", "history"]
    assert shell.complete("ls /im", "/im") == ["/image/"]
    assert shell.complete("ls /image/topics/byName/a/n", "/image/topics/byName/a/n") == ["/image/topics/byName/a/name"]
    typed(shell, "cd /image/topics/byName")
    assert shell.complete("ls ", "") == ["a/", "a\\ b/"]
    assert shell.complete("ls ../byI", "../byI") == ["../byId/"]
    assert shell.complete("ls /nope/x", "/nope/x") == []
    assert shell.complete("ls /image/provenance/x", "/image/provenance/x") == []


def test_columns_on_a_terminal(shell: Shell) -> None:
    wide = Shell(shell.place.root, width=lambda: 40)
    assert typed(wide, "ls /image") == [
        "acls             features",
        "clientQuotas     producerIds",
        "cluster          provenance",
        "configs          scram",
        "delegationToken  topics",
    ]
    narrow = Shell(shell.place.root, width=lambda: 1)
    assert len(typed(narrow, "ls /image")) == 10


def test_nothing_that_can_be_typed_breaks_it(shell: Shell) -> None:
    rng = random.Random(20_261_121)
    pieces = [*MANUAL, "/", "..", ".", "*", "image", "[", "{", "'", '"', "\\", " ", "\t", "\x00", "\x1b", "\udcff", "é"]
    for _ in range(3_000):
        line = " ".join(rng.choices(pieces, k=2)) + "".join(rng.choices(pieces, k=rng.randrange(6)))
        for one in shell.run(line):
            out, err = io.StringIO(), io.StringIO()
            put(one, "x", out, err)
            assert (out.getvalue() + err.getvalue()).count("\n") == 1
            assert (out.getvalue() + err.getvalue())[:-1].isprintable()
        shell.is_over = False


def _start(*words: object, stdin: int | None = subprocess.PIPE) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-c", _CODE, "metadata", "shell", *map(str, words)]
    return subprocess.Popen(argv, cwd=HOME, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _piped(data: bytes, *words: object) -> tuple[int, str, str]:
    with _start("--directory", LOG, *words) as child:
        out, err = child.communicate(data, timeout=120)
    return child.returncode, out.decode(), err.decode()


def test_by_a_pipe() -> None:
    status, out, err = _piped(b"cd image/topics/byName\nls pl*\ncat \xff\nexit\nls\n")
    assert out == "0\n1\n2\nid\nname\n"
    assert err == "cat: \\xff: no such file or directory\n"
    assert status == 1
    assert _piped(b"pwd") == (0, "/\n", "")
    assert _piped(b"") == (0, "", "")


def test_json_by_a_pipe() -> None:
    status, out, err = _piped(b"pwd\nls /nope\nexit\npwd\n", "--json")
    value = json.loads(out)
    assert (status, err, value["exit"], out.count("\n")) == (1, "", 1, 1)
    assert value["result"]["items"] == [
        {"typed": "pwd", "printed": ["/"]},
        {"typed": "ls /nope", "printed": []},
        {"typed": "exit", "printed": []},
    ]
    assert [one["slug"] for one in value["problems"]] == ["nothing-selected"]


def test_a_log_that_ends_early_is_told(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    log.append(topic("a", A))
    log.raw(b"\x01\x63\x00\x00")
    with _start("--directory", tmp_path) as child:
        out, err = child.communicate(b"ls /image/topics/byName\n", timeout=120)
    assert (child.returncode, out) == (1, b"a\n")
    assert err.count(b"\n") == 1
    assert b"unknown-record-type" in err


def test_a_reader_that_goes_away() -> None:
    with _start("--directory", LOG) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(b"find\n" * 200)
            child.stdin.close()
        assert child.stderr is not None
        err = child.stderr.read()
        child.wait(timeout=120)
    assert b"Traceback" not in err


class Typist:
    """A terminal with the shell on it."""

    def __init__(self, words: Sequence[object]) -> None:
        self._master, slave = pty.openpty()
        argv = [sys.executable, "-c", _CODE, "metadata", "shell", *map(str, words)]
        env = {**os.environ, "TERM": "dumb", "HOME": "/nonexistent"}
        self._child = subprocess.Popen(
            argv, cwd=HOME, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        os.close(slave)

    def wait_for(self, text: str) -> str:
        """Return what is shown until a text appears."""
        shown = b""
        until = time.monotonic() + 120
        while text.encode() not in shown:
            assert time.monotonic() < until, shown
            if select.select([self._master], [], [], 1)[0]:
                shown += os.read(self._master, 65536)
        return shown.decode()

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        os.kill(self._child.pid, signal.SIGINT)

    def end(self) -> int:
        """Return the exit status."""
        with contextlib.suppress(OSError):  # nobody is on the other side any more
            while True:
                os.read(self._master, 65536)
        return self._child.wait(timeout=120)

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        os.close(self._master)


@pytest.fixture
def typist() -> Iterator[Typist]:
    one = Typist(["--directory", LOG])
    yield one
    one.close()


def test_on_a_terminal(typist: Typist) -> None:
    assert "up to offset 205" in typist.wait_for(">> ")
    typist.type("cd image\n")
    typist.wait_for(">> ")
    typist.type("pwd\n")
    assert "/image" in typist.wait_for(">> ")
    typist.type("ls /nope\n")
    assert "ls: /nope: no such file or directory" in typist.wait_for(">> ")
    # An interrupt gives up the line, not the session.
    typist.type("half a li")
    time.sleep(0.2)
    typist.interrupt()
    typist.wait_for(">> ")
    typist.type("pwd\n")
    assert "/image" in typist.wait_for(">> ")
    typist.type("\x04")  # the end of the input
    assert typist.end() == 0
