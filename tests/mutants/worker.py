"""Tries changes in a copy of the tree, each in a process of its own: ``python -m tests.mutants.worker`` in that copy.

Reads one line of JSON a change and answers with one: which test fails first, in the order asked for, or none. What
takes long to import (pytest, Hypothesis, what lies below the changed code) is imported once, before the fork.

Not here: the copy and the order of tests (``runner``).
"""

from __future__ import annotations

import importlib
import json
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

WITHOUT: Final = "not kafka and not browser and not root and not slow and not spark"
"""What ``make test`` runs, less the tests that need a JVM."""
_BELOW: Final = (
    "hypothesis", "rich.table", "google_crc32c", "yaml", "_pytest.doctest", "pytest_timeout", "xdist",
    "logdir.formats.own.replica_marker", "logdir.formats.own.inventory", "logdir.formats.own.heartbeat_file",
    "logdir.formats.own.staging_limit_file", "logdir.observe.replicas", "logdir.observe.scan",
    "logdir.cluster.metadata_log",
    "tests.proof.plugin", "logdir.cluster.znodes", "logdir.cluster.request_document",
)  # fmt: skip


class Order:
    """Keeps the tests asked for, in their order, and says which failed first."""

    def __init__(self, tests: Sequence[str], answer: int) -> None:
        self._rank = {test: number for number, test in enumerate(tests)}
        self._answer = answer

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Take what was asked for."""
        found = [(self._rank_of(item.nodeid), number, item) for number, item in enumerate(items)]
        items[:] = [item for rank, _, item in sorted(found, key=lambda one: one[:2]) if rank >= 0]

    def _rank_of(self, test: str) -> int:
        """Return its place; one that is asked for without parameters means all of them."""
        return self._rank.get(test, self._rank.get(test.partition("[")[0], -1))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Say which failed."""
        if report.failed:
            os.write(self._answer, f"{report.nodeid}\n".encode())

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Say which file cannot be imported."""
        if report.failed:
            os.write(self._answer, f"{report.nodeid or 'collection'}\n".encode())


def arguments(files: Sequence[str], basetemp: Path) -> list[str]:
    """Return what pytest is called with."""
    return [
        *files, "-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=120",
        "-m", WITHOUT, f"--basetemp={basetemp}", "--hypothesis-seed=1", "-W", "default",
    ]  # fmt: skip


def _child(asked: Mapping[str, Any], answer: int, basetemp: Path) -> None:
    os.setsid()
    nowhere = os.open(os.environ.get("MUTANTS_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    status = pytest.main(arguments(asked["files"], basetemp), plugins=[Order(asked["tests"], answer)])
    os.write(answer, f"exit {int(status)}\n".encode())
    os._exit(0)


def attempt(asked: Mapping[str, Any], basetemp: Path) -> tuple[str, str]:
    """Return what became of one change, with the test that caught it or why nothing is known."""
    hear, answer = os.pipe()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(hear)
        try:
            _child(asked, answer, basetemp)
        finally:
            os._exit(70)
    os.close(answer)
    said = b""
    while True:
        left = started + asked["seconds"] - time.monotonic()
        ready, _, _ = select.select([hear], [], [], max(0.0, left))
        piece = os.read(hear, 65536) if ready else b""
        said += piece
        if not piece or b"\n" in said:
            break
    is_late = time.monotonic() - started >= asked["seconds"]
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(hear)
    shutil.rmtree(basetemp, ignore_errors=True)
    first = said.decode("utf-8", "replace").partition("\n")[0]
    if not first:
        return ("caught", "time limit") if is_late else ("caught", "process died")
    if first == "exit 0":
        return "survived", ""
    if first.startswith("exit "):
        return "unknown", first
    return "caught", first


def main() -> int:
    """Answer until there is nothing more to read."""
    for name in _BELOW:
        importlib.import_module(name)
    basetemp = Path(os.environ["MUTANTS_TEMP"])
    for line in sys.stdin:
        asked = json.loads(line)
        path = Path(asked["file"])
        before = path.read_bytes()
        try:
            path.write_text(asked["text"], "utf-8")
            end, test = attempt(asked, basetemp)
        finally:
            path.write_bytes(before)
        answer = {"end": end, "test": test}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
