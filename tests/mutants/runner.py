"""Copies of the tree, a worker in each, and in which order the tests are tried on a change.

First what the record says caught it before, then the tests of its own module (``tests/logdir/decide/test_x.py`` of
``logdir/decide/x.py``), then all others that reach its line, the quick ones first. The
tree itself is not changed.

cosmic-ray's own machinery (a session, and a whole test command for each change) is not used: a start of pytest
with its imports costs more than most tests here, and it does not say which test caught what.

Not here: what is changed (``sown``), what is written down (``record``).
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from tests.mutants.sown import ROOT, Mutant

WORKERS: Final = 2
SURVEYED: Final = (
    "tests/logdir/decide/test_*.py", "tests/logdir/disk/test_*.py", "tests/reconcile/test_*.py",
    "tests/logdir/service/test_*.py", "tests/logdir/service/systemd/test_*.py", "tests/logdir/worker/test_*.py",
    "tests/tools/test_broker.py", "tests/tools/test_capture.py", "tests/tools/test_changes*.py",
    "tests/tools/test_quarantine.py", "tests/tools/test_disk_silent.py",
    "tests/tools/test_init*.py", "tests/tools/test_layout.py", "tests/tools/test_pro*.py", "tests/tools/test_purge*.py",
    "tests/tools/test_reconcile*.py", "tests/tools/test_refusals.py", "tests/tools/test_st*.py",
    "tests/tools/test_what_to_do.py",
    "tests/tools/test_gate.py", "tests/tools/test_handover.py", "tests/tools/test_hints.py",
    "tests/tools/test_known_gone.py",
    "tests/tools/test_listed_why.py",
    "tests/tools/test_next_after_override.py", "tests/tools/test_no_permission.py", "tests/tools/test_paths.py",
    "tests/tools/test_said_is_so.py", "tests/tools/test_uninstall.py",
    "tests/tools/test_describe.py", "tests/tools/test_json_documented.py", "tests/tools/test_metadata*.py",
    "tests/crash/families/test_failed_*.py", "tests/crash/races/test_races.py", "tests/releases/test_releases.py",
)  # fmt: skip
"""The tests that may catch a change of what decides and what it is carried out with."""
_NOT_COPIED: Final = shutil.ignore_patterns(
    ".venv", ".git", ".proof", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis", "build", "dist", "demo", "*.png"
)
_T = TypeVar("_T")
_LEAST_S: Final = 20.0
_AT_MOST_S: Final = 900.0
_MEASURED_S: Final = 300.0


_CASES: Final = "tests/crash/families/test_cases.py"
_OPERATIONS: Final = "tests/crash/test_operations.py"
_FAMILIES: Final = {
    "rescue": ("adopt", "adopt_recovery", "capture", "captured_files", "hardlink_dir", "unique_name"),
    "layout": ("start_block", "layout", "layout_view", "relayout", "relayout_metadata"),
    "records": ("staging_limit", "controller", "heartbeat", "quarantine"),
    "gives": ("give_id",),
    "copies": ("atomic_directory", "export"),
    "roots": ("work_root", "init", "plan", "removal", "reserve", "probe"),
}
"""Of the crash enumeration: which family judges which modules of ``logdir/disk``; the others are in its operations."""


class Survey(NamedTuple):
    """What a run of the tests as they are showed."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[str]]]

    @classmethod
    def of(cls, documents: Iterable[Mapping[str, Any]]) -> Survey:
        """Put together what several runs of ``survey`` wrote."""
        seconds: dict[str, float] = {}
        lines: dict[str, dict[str, list[str]]] = {}
        for one in documents:
            tests = one["tests"]
            seconds |= dict(zip(tests, one["seconds"], strict=True))
            for file, by_line in one["lines"].items():
                known = lines.setdefault(file, {})
                for line, numbers in by_line.items():
                    known.setdefault(line, []).extend(tests[number] for number in numbers)
        return cls(seconds, lines)

    def reaching(self, mutant: Mutant) -> set[str]:
        """Return the tests that reach a change."""
        by_line = self.lines.get(mutant.file, {})
        first, last = mutant.lines
        found = {test for n in range(first, last + 1) for test in by_line.get(str(n), ())}
        if not found or not mutant.function:
            found = {test for tests in by_line.values() for test in tests}
        return found


def rounds_of(mutant: Mutant, reached: Survey, most_s: float) -> tuple[list[str], ...]:
    """Return the tests for a change: of its own module, of the files with the most that reach it, and the others.

    Args:
        mutant: The change.
        reached: Of the tests as they are.
        most_s: How long all of them may take; the longest are left out.
    """
    own = f"/test_{Path(mutant.file).stem}"
    cost = 0.0
    by_file: dict[str, list[str]] = {}
    for test in sorted(reached.reaching(mutant), key=lambda test: (reached.seconds[test], test)):
        cost += reached.seconds[test]
        if cost > most_s:
            break
        by_file.setdefault(test.partition("::")[0], []).append(test)
    # A file costs its imports; of one that has many tests of a line one will be of it.
    files = sorted(by_file, key=lambda file: (own not in file, -len(by_file[file]), file))
    near = max(1, sum(own in file for file in files))
    found = [
        [test for file in some for test in by_file[file]]
        for some in (files[:near], files[near : near + 4], files[near + 4 :])
    ]
    return (*found, list(_crash_tests(mutant)))


def _crash_tests(mutant: Mutant) -> tuple[str, ...]:
    """Return the tests that cut the power: a call that is left out may be missed by no other."""
    if not mutant.file.startswith("logdir/disk/") or not mutant.is_guard:
        return ()
    stem = Path(mutant.file).stem
    family = next((name for name, stems in _FAMILIES.items() if stem in stems), None)
    if family is not None:
        return (
            f"{_CASES}::test_both_parents_of_a_rename_are_durable_before_it_is_said[{family}]",
            f"{_CASES}::test_every_case_survives_every_crash[{family}]",
        )
    return (
        f"{_OPERATIONS}::test_both_parents_of_a_rename_are_durable_before_it_is_said",
        f"{_OPERATIONS}::test_a_failed_sync_is_never_repeated_and_nothing_is_written_to_that_disk_after_it",
        f"{_OPERATIONS}::test_a10_a_full_disk_takes_the_reserve_once_and_the_step_again",
        f"{_OPERATIONS}::test_every_operation_survives_every_crash",
    )


class Asked(NamedTuple):
    """A changed file, and the tests to try on it, in their order."""

    name: str
    file: str
    text: str
    tests: tuple[str, ...]


class Tried(NamedTuple):
    """What became of a change."""

    mutant: Mutant
    end: str
    """``caught``, ``survived`` or ``unknown``."""
    test: str
    seconds: float


@contextmanager
def copied() -> Iterator[Path]:
    """Copy the tree to a place of its own."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        top = Path(folder) / "tree"
        shutil.copytree(ROOT, top, ignore=_NOT_COPIED, symlinks=True)
        yield top


def _environment(top: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR", "MUTANTS_LOG") if name in os.environ}
    temp = str(top.parent / "t")
    return {**kept, "PYTHONPATH": str(top), "MUTANTS_TEMP": temp}


def _compiled(top: Path) -> None:
    # By checksum: what is changed is never taken for what was compiled, however short the time between.
    command = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "logdir", "tools", "tests", "migrate"]
    subprocess.run([sys.executable, *command], cwd=top, check=False, stdout=subprocess.DEVNULL)


def survey(folder: Path, workers: int = WORKERS) -> Survey:
    """Run the tests as they are, each file by itself; return what they reach, kept in a folder for the next time.

    A file that hangs while it is measured (threads, and processes that end amid a call) is left out.
    """
    files = sorted({str(p.relative_to(ROOT)) for where in SURVEYED for p in ROOT.glob(where)})

    def measured(top: Path, file: str) -> None:
        out = _kept(folder, file)
        command = [sys.executable, "-m", "tests.mutants.survey", str(out), file]
        nothing = subprocess.DEVNULL
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                command,
                cwd=top,
                env=_environment(top),
                stdout=nothing,
                stderr=nothing,
                check=False,
                timeout=_MEASURED_S,
            )

    with copied() as top, ThreadPoolExecutor(workers) as pool:
        _compiled(top)
        list(pool.map(partial(measured, top), [file for file in files if not _kept(folder, file).exists()]))
    return surveyed(folder)


def _kept(folder: Path, file: str) -> Path:
    return folder / f"survey-{file.replace('/', '-')}.json"


def surveyed(folder: Path) -> Survey:
    """Return what was kept."""
    return Survey.of(json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("survey-*.json")))


class _Worker:
    """A process in a copy, and the conversation with it."""

    def __init__(self, top: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.worker"],
            cwd=top,
            env=_environment(top),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, asked: Asked, seconds: float) -> tuple[str, str]:
        """Return how it ended, and the test that caught it."""
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise ValueError("no pipes")
        question = {
            "file": asked.file,
            "text": asked.text,
            "files": list(dict.fromkeys(test.partition("::")[0] for test in asked.tests)),
            "tests": asked.tests,
            "seconds": seconds,
        }
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        return answer["end"], answer["test"]

    def end(self) -> None:
        """Let it end by itself."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def _side_by_side(items: Iterable[_T], one: Callable[[_Worker, _T], None], workers: int) -> None:
    """Do something with each item, in so many copies of the tree."""
    todo: queue.SimpleQueue[_T] = queue.SimpleQueue()
    for item in items:
        todo.put(item)
    is_over = threading.Event()

    def work() -> None:
        try:
            with copied() as top:
                _compiled(top)
                worker = _Worker(top)
                try:
                    while not is_over.is_set():
                        one(worker, todo.get_nowait())
                finally:
                    worker.end()
        except queue.Empty:
            return
        finally:
            # Nothing is left, or something went wrong: nobody begins another.
            is_over.set()

    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(work) for _ in range(workers)]:
            future.result()


def ask_all(asked: Iterable[Asked], heard: Callable[[Asked, str, str], None], workers: int = WORKERS) -> None:
    """Try changed files side by side, each on its tests; an error of a worker is raised.

    Args:
        asked: The files.
        heard: Called with each, how it ended and what caught it, by one thread at a time.
        workers: How many processes.
    """
    one_at_a_time = threading.Lock()

    def one(worker: _Worker, item: Asked) -> None:
        end, test = worker.ask(item, _AT_MOST_S)
        with one_at_a_time:
            heard(item, end, test)

    _side_by_side(asked, one, workers)


def try_all(
    mutants: Iterable[Mutant],
    tests_of: Callable[[Mutant], Sequence[Sequence[str]]],
    heard: Callable[[Tried], None],
    *,
    seconds_of: Callable[[str], float],
    workers: int = WORKERS,
) -> None:
    """Try changes side by side; an error of a worker is raised.

    Args:
        mutants: The changes.
        tests_of: The tests for a change, in rounds: a later round only if the one before caught nothing.
        heard: Called with each that was tried, by one thread at a time.
        seconds_of: How long a test takes as it is.
        workers: How many processes.
    """
    one_at_a_time = threading.Lock()

    def one(worker: _Worker, mutant: Mutant) -> None:
        began = time.monotonic()
        end, test = "survived", ""
        name, text = "/".join(map(str, mutant.key)), mutant.text()
        for tests in tests_of(mutant):
            if tests and end == "survived":
                limit = min(_AT_MOST_S, _LEAST_S + 8 * sum(map(seconds_of, tests)))
                end, test = worker.ask(Asked(name, mutant.file, text, tuple(tests)), limit)
        with one_at_a_time:
            heard(Tried(mutant, end, test, round(time.monotonic() - began, 2)))

    _side_by_side(mutants, one, workers)
