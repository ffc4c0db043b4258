"""A copy of the package with a change to its text, tried in a process of its own: what catches the change.

Not here: the changes (``tests.operations``), what is tried (``tests.crash.__main__``).

Spec: reliability §4.4 ("mutation score: test the test").
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.operations.registry import MORE
from tests.operations.seeded import Change, seed

ROOT = Path(__file__).parents[3]
SYNCS = frozenset({"fsync", "sync", "sync_disk", "sync_file", "sync_files"})
_TIMEOUT_S = 280
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}


class LeftOut(NamedTuple):
    """One call of a sync in the source."""

    file: str
    line: int
    function: str
    """As it is imported: ``package.module:function``."""
    text: str
    nth: int
    """Which sync of its function it is, from 1."""
    shown: str
    """Its name: it does not change when lines above it do."""


def sync_calls(file: str) -> Iterator[LeftOut]:
    """Yield every statement of a file that is a call of a sync."""
    module = file.removesuffix(".py").replace("/", ".")
    for name, function in _functions(ast.parse((ROOT / file).read_text("utf-8"))):
        seen: Counter[str] = Counter()
        for nth, node in enumerate(_syncs(function), 1):
            text = ast.unparse(node)
            seen[text] += 1
            number = f" #{seen[text]}" if seen[text] > 1 else ""
            shown = f"{Path(file).stem}.{name.rpartition('.')[2]}: {text}{number}"
            yield LeftOut(file, node.lineno, f"{module}:{name}", text, nth, shown)


def _functions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions of a module and the methods of its classes, with their names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{within}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield within + node.name, node


def _syncs(function: ast.FunctionDef) -> list[ast.Expr]:
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr in SYNCS
    ]
    return sorted(found, key=lambda node: node.lineno)


def copy(target: Path, changes: Sequence[Change] = (), left_out: LeftOut | None = None) -> None:
    """Copy the package, and seed bugs into it or leave one sync out.

    Raises:
        NoTargetError: What is changed is not there.
        ValueError: The sync is not there.
    """
    changed = seed(changes)
    files = [*changed, *([left_out.file] if left_out else [])]
    for package in {"logdir", *(Path(file).parts[0] for file in files)}:
        shutil.copytree(ROOT / package, target / package, ignore=shutil.ignore_patterns("__pycache__"))
    for file, text in changed.items():
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
        env={**_ENVIRONMENT, "PYTHONPATH": paths, MORE: os.environ.get(MORE, "")},
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
