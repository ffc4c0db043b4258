"""The command as a process: any locale, a full disk and a closed pipe on standard output, and how fast it starts."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.tools.ctl import HOME, two_disks
from tools.version import VERSION

CODE = "import sys; from tools.entry import logdirctl; sys.exit(logdirctl())"
LOCALES = (
    {"LC_ALL": "C", "PYTHONUTF8": "0"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "C", "PYTHONIOENCODING": "latin-1"},
    {"LC_ALL": "en_US.ISO-8859-1", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "ascii:strict"},
)
COMMANDS = (
    ["--help"], ["--version"], ["stage", "--help"], ["explain"], ["explain", "start-block-partial", "--json"],
    ["inventory"], ["inventory", "--json"], ["staged", "ls"], ["staged", "ls", "--json"], ["describe"],
    ["describe", "--kafka-json"], ["describe", "--json"], ["layout", "status"],
)  # fmt: skip


def argv_of(words: list[str], named: str) -> list[str]:
    is_about_a_broker = words[0] not in ("--help", "--version", "explain") and "--help" not in words
    return [*words, *(["--log-dirs", named] if is_about_a_broker else [])]


def run(
    words: Sequence[str | bytes], *, env: dict[str, str] | None = None, out: int = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "PYTHON"))}
    command: list[str | bytes] = [sys.executable, "-c", CODE, *words]
    return subprocess.run(
        command, cwd=HOME, stdout=out, stderr=subprocess.PIPE, env={**kept, **(env or {})}, timeout=120
    )


@pytest.fixture
def named(tmp_path: Path) -> str:
    folder = tmp_path / "päth-…"
    folder.mkdir()
    return ",".join(map(str, two_disks(folder)))


@pytest.mark.parametrize("env", LOCALES, ids=lambda env: " ".join(env.values()))
@pytest.mark.parametrize("words", [*COMMANDS[2:7], *COMMANDS[9:11]], ids=" ".join)
def test_no_locale_ends_in_a_fault_of_ours(words: list[str], env: dict[str, str], named: str) -> None:
    done = run([os.fsencode(word) for word in argv_of(words, named)], env=env)
    assert done.returncode in (0, 1), done.stderr
    assert b"Traceback" not in done.stderr
    assert b"internal-error" not in done.stderr
    if "--json" in words or "--kafka-json" in words:
        assert "päth" in done.stdout.decode("utf-8") or words[0] in ("explain", "staged")
        json.loads(done.stdout)


@pytest.mark.parametrize("env", LOCALES, ids=lambda env: " ".join(env.values()))
def test_no_path_that_is_utf8_is_refused_in_any_locale(env: dict[str, str], named: str) -> None:
    words: list[str | bytes] = ["--log-dirs", os.fsencode(named)]
    first = named.split(",")[0]
    done = run(["init", *words, "--apply"], env=env)
    assert (done.returncode, b"config-error" in done.stderr) == (0, False), done.stderr
    recorded = json.loads(Path(f"{first}.logdird/work-root.json").read_bytes())
    assert recorded["log_dir"] == first
    done = run(["stage", "pay-0", "--even-if-unknown", *words, "--json"], env=env)
    assert (done.returncode, b"config-error" in done.stdout) == (0, False), done.stdout
    # Bytes that are no UTF-8 are refused in every locale.
    odd = os.fsencode(first) + b"\xff"
    Path(first).rename(os.fsdecode(odd))
    done = run(["init", "--log-dirs", odd], env=env)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done.stderr
    assert b" config-error: " in done.stderr


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_full_disk_on_standard_output_is_one_line_and_never_a_fault_of_ours(words: list[str], named: str) -> None:
    with open("/dev/full", "wb") as full:
        done = run([*argv_of(words, named)], out=full.fileno(), env={"LC_ALL": "C.UTF-8"})
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 1, lines
    assert [line for line in lines if "stdout-failed" in line] == lines[-1:]
    assert "No space left on device" in lines[-1]
    assert len(lines) - 1 <= sum("problem" in line or ": expected" in line for line in lines)


@pytest.mark.parametrize("words", [["--help"], ["explain"], ["inventory", "--json"], ["describe"]], ids=" ".join)
def test_a_closed_pipe_is_never_a_traceback(words: list[str], named: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run([*argv_of(words, named)], out=writing)
    finally:
        os.close(writing)
    assert done.returncode == 1
    assert b"stdout" not in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", ["--version", "staged ls", "stage other --even-if-unknown --apply"])
def test_a_standard_stream_that_is_closed_is_never_a_fault_of_ours(words: str, closed: str, tmp_path: Path) -> None:
    named = ",".join(map(str, two_disks(tmp_path)))
    assert run(["init", "--log-dirs", named, "--apply"]).returncode == 0
    about = "" if words == "--version" else f"--log-dirs {named}"
    script = f'exec "$0" -c "$1" {words} {about} {closed}'
    command = ["/bin/sh", "-c", script, sys.executable, CODE]
    done = subprocess.run(command, cwd=HOME, capture_output=True, timeout=120)
    assert b"Traceback" not in done.stderr
    # Without a standard output the version has no reader.
    assert done.returncode == (1 if ">&-" in closed.replace("2>&-", "") else 0), done.stderr
    if "stage other" in words:
        assert not (tmp_path / "d1" / "other-0").exists()


def test_what_was_changed_is_never_denied_because_it_could_not_be_printed(tmp_path: Path) -> None:
    named = ",".join(map(str, two_disks(tmp_path)))
    assert run(["init", "--log-dirs", named, "--apply"]).returncode == 0
    with open("/dev/full", "wb") as full:
        done = run(["stage", "other", "--even-if-unknown", "--log-dirs", named, "--apply", "--json"], out=full.fileno())
    assert (done.returncode, done.stderr.count(b"stdout-failed")) == (1, 1)
    assert b"stays changed" in done.stderr
    assert not (tmp_path / "d1" / "other-0").exists()


def test_the_version_is_that_of_the_distribution_and_of_no_second_place() -> None:
    assert run(["--version"]).stdout.decode() == f"logdirctl {VERSION}\n"
    assert version("logdird") == VERSION


def test_the_version_never_takes_the_parser() -> None:
    code = "import sys; sys.argv = ['logdirctl', '--version']; from tools.entry import logdirctl; logdirctl()"
    code += "; print(sorted({'argparse', 'json', 're', 'email', 'importlib.metadata'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=HOME, capture_output=True, timeout=60)
    assert done.stdout.decode().splitlines()[1:] == ["[]"], done.stderr


def test_the_version_takes_no_longer_than_a_bare_interpreter_and_some() -> None:
    def took(command: list[str]) -> float:
        started = time.perf_counter()
        subprocess.run(command, cwd=HOME, capture_output=True, check=True, timeout=60)
        return time.perf_counter() - started

    bare: list[float] = []
    ours: list[float] = []
    for _ in range(9):
        bare.append(took([sys.executable, "-c", "pass"]))
        ours.append(took([sys.executable, "-c", CODE, "--version"]))
    # Beside other tests a start takes what it takes: the difference is ours.
    assert statistics.median(ours) - statistics.median(bare) <= 0.1
