"""The soak from outside, at the size this run takes; that it knows nothing of the product; and that it sees bugs."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.operations import functions, wrong
from tests.operations.seeded import Change, call, drop, named, seed, wrapped
from tests.operations.source import ROOT
from tests.proof.claims import BLACK_BOX
from tests.proof.plugin import Recorder
from tests.proof.sizes import SIZE, Size
from tests.soak.rounds import Soak, seeds

HALVES = 2
"""Of a run, side by side where there are two cores."""
SEED = 20
FOLDER = Path(__file__).parent
KINDS = (
    "stage", "restore", "purge", "hold", "export", "reconcile", "layout-apply", "layout-rollback", "uninstall", "init",
)  # fmt: skip


def memory(tmp_path: Path) -> Path:
    """Return a folder in memory if there is one."""
    return Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else tmp_path


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("half", [0, *(pytest.param(half, marks=pytest.mark.slow) for half in range(1, HALVES))])
def test_nothing_is_lost_early_doubled_or_changed_by_commands_killed_anywhere(
    half: int, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, record_proof: Recorder
) -> None:
    rounds = BLACK_BOX.count("rounds") // HALVES
    base = memory(tmp_path) / f"soak-{os.getpid()}-{half}"
    base.mkdir()
    try:
        report = Soak(base).run(seeds(SEED + half, rounds), rounds)
    finally:
        shutil.rmtree(base)
    print(report.table())
    # A product that refuses everything changes nothing, and is no good. Twenty rounds say nothing of that; in some
    # hundreds the few commands of a rare kind may all be killed, so one killed amid its changes counts there too.
    if SIZE is Size.FULL:
        assert [kind for kind in KINDS if not report.done[kind]] == []
    elif SIZE is not Size.SAMPLE:
        assert [kind for kind in KINDS if not report.done[kind] + report.amid[kind]] == []
    assert sum(report.amid.values()) >= (1 if SIZE is Size.SAMPLE else report.rounds // 5)
    counts = {"rounds": report.rounds, "kills": report.kills, "kills amid changes": sum(report.amid.values())}
    record_proof(BLACK_BOX, counts, seeds=SEED + half)


def test_the_soak_imports_nothing_of_the_product() -> None:
    allowed = re.compile(r"tests\.soak(\..*)?")
    for path in sorted(FOLDER.glob("*.py")):
        if path.name == Path(__file__).name:
            continue
        names = []
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names.append(node.module or "")
        strange = [n for n in names if n.partition(".")[0] not in sys.stdlib_module_names and not allowed.fullmatch(n)]
        assert strange == [], path


SLOW = Change(functions.RENAME_CALL, wrapped(wrong.slowly))
"""A kill comes some changes after the one it waits for, and between a marker and its rename lies one call.

So that a kill comes in time, a rename takes as long here as on a slow disk.
"""
BUGS = {
    "a restore puts no checkpoint entry back": (
        (Change(functions.RESTORE, drop(call("set_entries"))),),
        r"taken back with None in",
    ),
    "a restore leaves its marker": (
        (Change(functions.RESTORE, drop(call("_forget", nth=2))), Change(functions.RESTORE, drop(call("_forget")))),
        r"left behind",
    ),
    "a purge comes before its time": (
        (Change(functions.DUE, wrapped(wrong.due_early)),),
        r": (purging|gone), expected staged",
    ),
    "a hold leaves a deadline": (
        (Change(functions.HOLD, named(call("replace"), delay_ms=7)),),
        r"marker: delay 7|has a deadline",
    ),
    "a start leaves the marker of what is live": (
        (Change(functions.RECOVER_UNMARK, drop(call("clear_marker"))),),
        r"left behind",
    ),
}
UNDER_SLOW_RENAMES = ("a start leaves the marker of what is live",)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_that_was_sown_goes_unseen(name: str, tmp_path: Path) -> None:
    changes, line = BUGS[name]
    for package in ("logdir", "migrate", "scheduler", "tools"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for file, text in seed((*changes, SLOW) if name in UNDER_SLOW_RENAMES else changes).items():
        (tmp_path / file).write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", "5000", "--seed", "1"],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, timeout=1100, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(rf"^violation: .*({line})", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^replay: python -m tests\.soak --episode 1\.[0-9]+ ", done.stdout, re.MULTILINE)
