"""The README can be typed: every block, in order, against a fresh demonstration."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from examples import demo
from tests.tools.command_lines import require_parsable
from tests.tools.ctl import ctl, ctl_json
from tests.tools.test_command_lines import blocks_of
from tools.cli.arguments import Exit

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
INDENTED = re.findall(r"(?:^    .+\n)+", README, re.MULTILINE)
ON_SPARK = ("fleet.yaml -o", "/tmp/snapshot", "/tmp/plan", "demo/plan", "K2")
"""In what is typed after ``make demo`` alone."""
TYPED_ELSEWHERE = ("undo.md", "operations.md", "install.md")
"""A broker serves in between, or a systemd: tests/kafka/test_undo_page.py, operations_page.py, tests/systemd."""


def lines_of(*, on_spark: bool) -> list[str]:
    """Return what is typed, line by line."""
    typed = [line for _, block in BLOCKS for line in block.splitlines() if line.strip()]
    return [line for line in typed if on_spark or not any(word in line for word in ON_SPARK)]


def type_all(lines: list[str], folder: Path) -> None:
    """Type lines in one shell whose directory holds ``demo``; each must end with status 0, or the one it names."""
    (folder / "bin").mkdir()
    command = folder / "bin" / "logdirctl"
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tools.entry import logdirctl; sys.exit(logdirctl())"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n')
    command.chmod(0o755)
    # What it writes elsewhere stays in the test's own folder.
    script = "".join(f"{line.replace('/tmp/', f'{folder}/')}\necho $? >>statuses\n" for line in lines)
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        timeout=280,
    )
    found = list(map(int, (folder / "statuses").read_text().split()))
    named = [re.search(r"#.*exit status (\d)", line) for line in lines]
    wanted = [0 if one is None else int(one[1]) for one in named]
    failed = [(line, is_) for line, is_, wants in zip(lines, found, wanted, strict=False) if is_ != wants]
    assert (failed, len(found), done.returncode) == ([], len(lines), 0), done.stderr.decode()
    for text in (done.stdout.decode(), done.stderr.decode()):
        require_parsable(text)


def prepared(folder: Path) -> Path:
    """Make what ``make demo`` makes without Spark."""
    top = folder / "demo"
    top.mkdir()
    demo.build(top)
    (top / "fleet.yaml").write_text(demo.fleet_file())
    return top


@pytest.mark.slow
def test_no_line_of_the_readme_fails_when_it_is_typed(tmp_path: Path) -> None:
    prepared(tmp_path)
    type_all(lines_of(on_spark=False), tmp_path)


@pytest.mark.spark
@pytest.mark.slow
def test_no_line_of_the_readme_fails_with_spark(spark: object, tmp_path: Path) -> None:
    assert demo.main([str(tmp_path / "demo")], io.StringIO()) == 0
    type_all(lines_of(on_spark=True), tmp_path)


def test_no_block_of_the_readme_is_left_untyped() -> None:
    assert {kind for kind, _ in BLOCKS} == {"sh"}
    typed = lines_of(on_spark=True)
    assert {line.split()[1] for line in typed if line.startswith("logdirctl ")} == {
        "inventory", "describe", "strays", "metadata", "init", "stage", "capture", "staged", "uninstall", "reconcile",
        "fleet", "layout", "explain",
    }  # fmt: skip
    # Beside them only the two commands of the start and the installation, which CI runs.
    assert [block.split()[:2] for block in INDENTED] == [["make", "demo"], ["python3", "-m"]]


def test_no_exit_status_is_missing_from_the_readme() -> None:
    rows = re.findall(r"^\| (\d+) \|", README, re.MULTILINE)
    assert rows == [str(status.value) for status in sorted(Exit)]


def test_no_command_of_the_docs_fails_when_it_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = prepared(tmp_path) / "orders" / "broker-1"
    monkeypatch.chdir(broker / "d1" / "__cluster_metadata-0")
    count = 0
    for path in sorted((ROOT / "docs").glob("*.md")):
        if path.name in TYPED_ELSEWHERE:
            continue
        for line in blocks_of(path):
            monkeypatch.setattr("sys.stdin", io.StringIO())
            said = ctl(*shlex.split(line.replace("$K", f"--server-properties {broker}/server.properties")))
            assert said.status == Exit.DONE, (path.name, line, said.err)
            count += 1
    assert count >= 6


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["orders/broker-1", "orders/broker-2", "events/broker-1", "lab/broker-1"])
def test_no_replica_of_the_demonstration_is_misplaced(folder: str, tmp_path: Path) -> None:
    top = prepared(tmp_path)
    _, result = ctl_json("describe", "--server-properties", top / folder / "server.properties")
    states = [item["state"] for item in result["items"]]
    assert "misplaced" not in states
    assert states.count("leader") >= 5


@pytest.mark.slow
def test_the_stray_of_the_demonstration_is_never_unproven(tmp_path: Path) -> None:
    named = ["--server-properties", prepared(tmp_path) / "orders/broker-1/server.properties"]
    assert ctl("init", *named, "--apply").status == Exit.DONE
    status, result = ctl_json("strays", *named)
    proven = [stray["topic"] for stray in result["items"] if stray["state"] == "proven"]
    assert (status, proven) == (Exit.DONE, ["returns"])


@pytest.mark.slow
def test_a_broker_of_zookeeper_is_described_without_a_metadata_log(tmp_path: Path) -> None:
    top = prepared(tmp_path)
    said = ctl("describe", "plain", "--server-properties", top / "billing/broker-1/server.properties")
    assert (said.status, said.err) == (Exit.DONE, "")
