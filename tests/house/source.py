"""The source of the house as the rules read it: modules, what each imports, what its functions take.

Imports are counted wherever they stand: at the top, in a function, under ``TYPE_CHECKING``, and by name in a string
(``module`` or ``module:function``), which ``import_module`` gets.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGES = ("logdir", "migrate", "scheduler", "tools")


@dataclass(frozen=True)
class Module:
    """One module."""

    name: str
    path: Path
    """Relative to the top of the tree."""
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


def read(top: Path) -> dict[str, Module]:
    """Return every module of the four packages, by name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((top / package).rglob("*.py")):
            parts = path.relative_to(top).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = Module(name, path.relative_to(top), path.read_text(encoding="utf-8"))
    return found


_PARTS_OF_REFUSE = 6
"""Of ``logdir.decide.refusal.refuse``: log dir, path, slug, expected, found, fix."""


def without_fix(module: Module) -> Iterator[int]:
    """Yield the line of each refusal that is made without a fix, or with an empty one.

    A refusal is a ``RefusedError``, a ``refuse`` of ``logdir.decide``, or a ``Problem`` with a slug of ``Why``. A last
    argument with a star may hold the fix: whether it does, mypy checks.
    """
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        fixes = [one.value for one in node.keywords if one.arg in ("fix", None)]
        if node.func.id == "refuse" and node.args:
            # Log dir and path are often one tuple: ``*where``.
            count = sum(2 if isinstance(one, ast.Starred) else 1 for one in node.args)
            if count >= _PARTS_OF_REFUSE or isinstance(node.args[-1], ast.Starred):
                fixes.append(node.args[-1])
        elif node.func.id == "Problem" and node.args and ast.unparse(node.args[0]).startswith("Why."):
            fixes += node.args[4:]
        elif node.func.id != "RefusedError":
            continue
        if not any(not isinstance(one, ast.Constant) or one.value for one in fixes):
            yield node.lineno


_SAYS = re.compile(r"(?!ValueError|TypeError)\w+Error|refuse|Problem|StillAssigned|Candidate|LayoutStep")
"""What is made with texts for people; a wrong call is for programmers."""


def codes_said(module: Module) -> Iterator[tuple[int, str]]:
    """Yield line and source of each ``.value`` that goes into a text of a refusal, or of an item, but the slug itself.

    A name that stands for a text is followed within its function.
    """
    for function in ast.walk(module.tree):
        if isinstance(function, ast.FunctionDef):
            texts = _texts_of(function)
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and _SAYS.fullmatch(ast.unparse(node.func).rpartition(".")[2]):
                    parts = [*node.args, *(one.value for one in node.keywords)]
                    names = {one.id for part in parts for one in ast.walk(part) if isinstance(one, ast.Name)}
                    parts += [text for name in sorted(names) for text in texts.get(name, ())]
                    yield from ((one.lineno, ast.unparse(one)) for part in parts for one in _values_in(part))


def _texts_of(function: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    """Return what is assigned to each name in a function."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                for name, value in pairs:
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(value)
    return found


def _values_in(text: ast.expr) -> Iterator[ast.Attribute]:
    for node in ast.walk(text):
        if isinstance(node, ast.Attribute) and node.attr == "value":
            held = ast.unparse(node.value)
            if not held.startswith("Why.") and held.rpartition(".")[2] != "why":
                yield node


def imported(module: Module) -> Iterator[tuple[str, str | None]]:
    """Yield what is imported: a module, and a name out of it."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            if node.level:
                home = module.name.split(".")[: len(module.name.split(".")) + module.is_package - node.level]
                start = ".".join([*home, *filter(None, [node.module])])
            yield from ((start, alias.name) for alias in node.names)


def edges(modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """Return which modules of ours each module imports."""
    found: dict[str, set[str]] = {}
    for module in modules.values():
        whole = {f"{start}.{name}" if f"{start}.{name}" in modules else start for start, name in imported(module)}
        found[module.name] = ((whole & modules.keys()) | named(module, modules)) - {module.name}
    return found


def named(module: Module, modules: Mapping[str, Module]) -> set[str]:
    """Return which modules of ours a module names in strings; a package without code of its own counts for nothing."""
    known = {name: text for text, name in constants(module).items()}
    texts = (_text(node, known).partition(":")[0] for node in ast.walk(module.tree) if isinstance(node, ast.expr))
    return {text for text in texts if text in modules and not modules[text].is_package} - {module.name}


def _text(node: ast.expr, known: Mapping[str, str]) -> str:
    """Return the text of a string, also of one that is put together from constants of its module; else nothing."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
        return known.get(node.value.id, "\0")
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, known) for part in node.values)
    return ""


def circles(graph: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """Return every set of modules that import one another, directly or not."""
    reached = {name: _reachable(graph, name) for name in graph}
    found = {frozenset(two for two in reached[one] if one in reached[two]) for one in graph if one in reached[one]}
    return sorted(found, key=sorted)


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = list(graph[start])
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += graph[one]
    return seen


def fields_of_classes(module: Module) -> Iterator[tuple[str, set[str]]]:
    """Yield the name of every class and the names of the fields it declares itself."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            declared = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
            yield node.name, {target.id for target in declared if isinstance(target, ast.Name)}


def streams_taken(module: Module) -> Iterator[str]:
    """Yield every function that takes a stream, and every use of a standard stream."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            if any(_is_stream(one.annotation) for one in every if one is not None and one.annotation is not None):
                yield node.name
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in _STREAMS:
            yield ast.unparse(node)
    yield from _from_sys(module, _STREAMS)


def arguments_taken(module: Module) -> Iterator[str]:
    """Yield every use of the arguments of the process."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in _ARGUMENTS:
            yield ast.unparse(node)
    yield from _from_sys(module, _ARGUMENTS)


_STREAMS = frozenset(f"sys.{mark}{name}{mark}" for name in ("stdin", "stdout", "stderr") for mark in ("", "__"))
_ARGUMENTS = frozenset(("sys.argv", "sys.orig_argv"))


def _from_sys(module: Module, names: frozenset[str]) -> Iterator[str]:
    return (f"{start}.{name}" for start, name in imported(module) if f"{start}.{name}" in names)


def _is_stream(annotation: ast.expr) -> bool:
    text = ast.unparse(annotation)
    names = {node.id for node in ast.walk(ast.parse(text.strip("'\""))) if isinstance(node, ast.Name)}
    return bool(names & {"IO", "TextIO", "BinaryIO", "TextIOBase", "RawIOBase"})


def constants(module: Module) -> dict[str, str]:
    """Return the names of a module's constants that are texts, by what they say."""
    found = {}
    for node in module.tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            value = node.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[value.value] = node.target.id
    return found


def spelled(module: Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of every string in a module, parts of formatted ones too; docstrings excepted."""
    docs = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def pointers(module: Module) -> Iterator[str]:
    """Yield the modules, by their last parts, that stand in parentheses under "Not here" of a module."""
    text = ast.get_docstring(module.tree) or ""
    paragraph = text.partition("Not here:")[2].partition("\n\n")[0]
    for within in re.findall(r"\((``[^()]*``)\)", paragraph):
        yield from re.findall(r"``([a-z_]+(?:\.[a-z_]+)*)``", within)
