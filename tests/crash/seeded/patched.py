"""A copy of the package with a change to its text, tried in a process of its own: what catches the change.

Not here: the changes (``bugs``), what is tried (``tests.crash.__main__``).

Spec: reliability §4.4 ("mutation score: test the test").
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
SYNCS = frozenset({"fsync", "sync", "sync_disk", "sync_file"})
_TIMEOUT_S = 280


class Edit(NamedTuple):
    """A piece of one file's text and what it becomes."""

    file: str
    old: str
    new: str


class LeftOut(NamedTuple):
    """One call of a sync in the source."""

    file: str
    line: int
    function: str
    text: str

    @property
    def key(self) -> str:
        """Its name: it does not change when lines above it do."""
        return f"{Path(self.file).stem}.{self.function}: {self.text}"


def sync_calls(file: str) -> Iterator[LeftOut]:
    """Yield every statement of a file that is a call of a sync."""
    text = (ROOT / file).read_text("utf-8")
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                called = node.value.func
                if isinstance(called, ast.Attribute) and called.attr in SYNCS:
                    yield LeftOut(file, node.lineno, function.name, ast.unparse(node))


def edited(edits: Sequence[Edit]) -> dict[str, str]:
    """Return the changed files, by path.

    Raises:
        ValueError: a piece is not there exactly once.
    """
    found: dict[str, str] = {}
    for file, old, new in edits:
        text = found.get(file) or (ROOT / file).read_text("utf-8")
        if text.count(old) != 1:
            raise ValueError(f"{file} holds {text.count(old)} times: {old}")
        found[file] = text.replace(old, new)
    return found


def copy(target: Path, edits: Sequence[Edit] = (), left_out: LeftOut | None = None) -> None:
    """Copy the package and change its text.

    Raises:
        ValueError: a piece is not there exactly once.
    """
    shutil.copytree(ROOT / "logdir", target / "logdir", ignore=shutil.ignore_patterns("__pycache__"))
    for file, text in edited(edits).items():
        (target / file).write_text(text, "utf-8")
    if left_out:
        path = target / left_out.file
        lines = path.read_text("utf-8").splitlines(keepends=True)
        line = lines[left_out.line - 1]
        if left_out.text not in line:
            raise ValueError(f"{left_out.file}:{left_out.line} is not {left_out.text}")
        lines[left_out.line - 1] = line.replace(left_out.text, "pass")
        path.write_text("".join(lines), "utf-8")


def run(target: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module against the copy."""
    paths = f"{target}:{ROOT}"
    # The working directory is the first place of imports.
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=target,
        env={"PYTHONPATH": paths, "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )


def caught_by(target: Path, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return what catches the change: the models, ``order``, or ``plain`` for an operation that fails as it is."""
    done = run(target, "tests.crash", "--first", *arguments)
    if done.returncode == 0:
        return ()
    found = set(re.findall(r"replay: (?:.* > )?([A-Z]+)@", done.stdout))
    found |= {"order"} if "\norder: " in f"\n{done.stdout}" else set()
    if "the operation fails without any crash" in done.stderr:
        found.add("plain")
    if not found:
        raise AssertionError(f"neither caught nor passed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return tuple(sorted(found))
