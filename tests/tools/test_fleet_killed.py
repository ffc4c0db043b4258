"""``logdirctl fleet scan`` and ``fleet plan``, killed or failed at any moment: a whole directory or none.

Real processes, each in a session of its own, on the demonstration's trees. A kill takes the whole process group at
once: the command and its JVM.

Spec: design §2 law 8, §7.7 ("a directory that did not exist before").
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="needs pyspark: pip install 'logdird[fleet]'")
pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'logdird[fleet]'")

import pyarrow.parquet as pq

from examples import demo
from examples.broker import CLUSTER_IDS
from migrate import job, jvm
from migrate.errors import PlanFormatError, SessionError, SnapshotFormatError
from migrate.source import snapshot
from tools.cli.arguments import Exit
from tools.logdirctl.main import main

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

HOME = Path(__file__).parents[2]
UNREAD = ("events/broker-4", "lab/broker-2")
"""One has a log dir that was never formatted, one a log dir that is not there."""
_DEADLINE = 300.0
"""Seconds: far more than one run takes, so that a hung one fails."""


class Whole(NamedTuple):
    """One run that nobody disturbed."""

    output: Path
    begins: float
    """Seconds from its start until something lies at the output's place."""
    writes: float
    """Seconds from then until the output has its name."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demonstration's brokers by inventory, so that every run reads the same: every slug of a conflict."""
    try:
        jvm.find(os.environ)
    except SessionError as error:
        pytest.skip(str(error))
    top = tmp_path_factory.mktemp("demo")
    demo.build(top)
    lines = ["clusters:"]
    for cluster, cluster_id in CLUSTER_IDS.items():
        lines += [f"  - name: {cluster}", f"    cluster_id: {cluster_id}", "    brokers:"]
        for member in demo.FLEET:
            if member.cluster != cluster:
                continue
            dirs = [str(top / member.folder / name) for name in ("d1", "d2", *member.extra)]
            into = top / "inventories" / member.folder
            status = main(["inventory", "--log-dirs", ",".join(dirs), "-o", str(into)], StringIO(), StringIO())
            assert status == (Exit.PROBLEMS if member.folder in UNREAD else Exit.DONE)
            lines += [f"      - node_id: {member.node_id}", f"        inventories: [{into}/*.jsonl]"]
    (top / "fleet.yaml").write_text("\n".join([*lines, ""]))
    return top / "fleet.yaml"


@contextmanager
def launched(verb: str, fleet: Path, output: Path, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command in a session of its own; when the body is left nothing of that session runs."""
    code = "import sys; from tools.entry import logdirctl; sys.exit(logdirctl())"
    scratch = output.parent.parent / "tmp"
    scratch.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", code, "fleet", verb, str(fleet), "-o", str(output), "--master", "local[2]"],
        cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        env={**os.environ, "TMPDIR": str(scratch), "LOGDIRD_SPARK_MEMORY": "1g"}, **more,
    )  # fmt: skip
    with process:
        try:
            yield process
        finally:
            for pid in members(process.pid):
                _kill(os.kill, pid)


def _kill(how: Callable[[int, int], None], number: int) -> None:
    with suppress(ProcessLookupError):
        how(number, signal.SIGKILL)


def members(session: int) -> list[int]:
    """Return the processes of a session that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, _, _, of_session, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(of_session) == session and state not in "ZX":
                found.append(int(entry.name))
    return found


def wait_until(condition: Callable[[], bool]) -> float:
    """Wait; return the seconds it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < _DEADLINE, "it took too long"
        time.sleep(0.005)
    return time.monotonic() - began


def run_whole(verb: str, fleet: Path, output: Path) -> Whole:
    output.parent.mkdir(exist_ok=True)
    others = set(output.parent.iterdir())
    with launched(verb, fleet, output) as process:
        begins = wait_until(lambda: set(output.parent.iterdir()) != others or process.poll() is not None)
        writes = wait_until(lambda: output.exists() or process.poll() is not None)
        out, err = process.communicate(timeout=_DEADLINE)
    assert (process.returncode, err) == (Exit.DONE, b""), err
    assert f"wrote {output}".encode() in out
    return Whole(output, begins, writes)


def table(folder: Path) -> list[str]:
    """Return the rows of a Parquet table as sorted texts."""
    return sorted(str(row) for path in folder.glob("*.parquet") for row in pq.read_table(path).to_pylist())


def require_equal(verb: str, found: Path, whole: Path) -> None:
    """Require that an output that is there is all that the undisturbed run wrote."""
    if verb == "scan":
        snapshot._marker(found)  # the reader looks at every file
        assert table(found / "rows") == table(whole / "rows")
        return
    for name in ("conflicts", "steps"):
        assert table(found / name) == table(whole / name)
    files = [
        {
            str(path.relative_to(top)): path.read_bytes()
            for path in top.rglob("*")
            if path.is_file() and path.suffix != ".parquet"
        }
        for top in (found, whole)
    ]
    assert files[0] == files[1]
    assert {"summary.json", "waves.json", "report.html"} <= files[0].keys()


def require_refused(verb: str, left: Path) -> None:
    """Require that no reader takes what a killed run left."""
    if verb == "scan":
        with pytest.raises(SnapshotFormatError):
            snapshot._marker(left)
    else:
        with pytest.raises(PlanFormatError):
            job.report(left, left.with_name("page.html"))
        with pytest.raises(PlanFormatError):
            job._require_final(left)


@pytest.mark.parametrize("verb", ["scan", "plan"])
def test_a_kill_at_any_moment_leaves_a_whole_directory_or_none(tmp_path: Path, fleet: Path, verb: str) -> None:
    whole = run_whole(verb, fleet, tmp_path / "whole" / "output")
    output = tmp_path / "killed" / "output"
    output.parent.mkdir()
    draw = random.Random(f"kill {verb}")
    # One while the engine starts; the rest while something is being written, the last of them about its end.
    writing = [draw.uniform(low, high) for low, high in ((0.05, 0.5), (0.5, 0.9), (0.9, 1.0))]
    outcomes = []
    for share in (None, *writing, "end"):
        before = set(output.parent.iterdir())
        with launched(verb, fleet, output) as process:
            if share is None:
                time.sleep(draw.uniform(0.2, 0.9) * whole.begins)
            else:
                wait_until(lambda: set(output.parent.iterdir()) != before or process.poll() is not None)  # noqa: B023
                if share == "end":
                    # The last that a writer of either directory does before the name is given is to sync it.
                    last = "snapshot.json" if verb == "scan" else "report.html"
                    wait_until(lambda: output.exists() or any(output.parent.glob(f".*/{last}")))  # noqa: B023
                else:
                    time.sleep(float(share) * whole.writes)
            _kill(os.killpg, process.pid)
            assert process.wait(_DEADLINE) in (-signal.SIGKILL, 0)
            wait_until(lambda: not members(process.pid))  # Python workers lead a group of their own, and follow
        outcomes.append(output.exists())
        if output.exists():
            require_equal(verb, output, whole.output)
            shutil.rmtree(output)
        left = list(output.parent.iterdir())
        assert [path.name for path in left if not path.name.startswith(".")] == []
        for path in left:
            require_refused(verb, path)
    assert False in outcomes, "no kill came before the end"
    assert any(output.parent.iterdir()), "no kill came while something was written"
    again = run_whole(verb, fleet, output)  # beside all that was left
    require_equal(verb, again.output, whole.output)


@pytest.mark.parametrize(
    ("verb", "limit"),
    [
        pytest.param("scan", 4_000, id="scan-rows"),
        pytest.param("plan", 4_000, id="plan-tables"),
        pytest.param("plan", 40_000, id="plan-report"),
    ],
)
def test_a_file_that_cannot_grow_is_one_line_and_leaves_nothing(
    tmp_path: Path, fleet: Path, verb: str, limit: int
) -> None:
    output = tmp_path / "out" / "output"
    output.parent.mkdir()

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with launched(verb, fleet, output, preexec_fn=little) as process:
        out, err = process.communicate(timeout=_DEADLINE)
    assert process.returncode in (Exit.PROBLEMS, Exit.USAGE), err
    assert (out, err.count(b"\n")) == (b"", 1), err
    assert b"internal-error" not in err
    assert list(output.parent.iterdir()) == []


@pytest.mark.parametrize("verb", ["scan", "plan"])
def test_a_parent_that_vanishes_is_one_line_and_leaves_no_output(tmp_path: Path, fleet: Path, verb: str) -> None:
    output = tmp_path / "out" / "output"
    output.parent.mkdir()
    with launched(verb, fleet, output) as process:
        wait_until(lambda: any(output.parent.iterdir()) or process.poll() is not None)
        output.parent.rename(tmp_path / "elsewhere")
        out, err = process.communicate(timeout=_DEADLINE)
    assert process.returncode in (Exit.PROBLEMS, Exit.USAGE), err
    assert (out, err.count(b"\n")) == (b"", 1), err
    assert b"internal-error" not in err
    assert not output.exists()
    assert not (tmp_path / "elsewhere" / "output").exists()
