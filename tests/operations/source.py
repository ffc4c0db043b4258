"""The source of the product as a tree: what a name means in it, where a call stands, and what is put in its place.

Not here: what is changed (``seeded``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_Function = ast.FunctionDef | ast.ClassDef


class NoTargetError(ValueError):
    """What a bug is to be seeded into is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One place in a function."""

    what: str
    """``call``, ``raise`` or ``yield``."""
    name: str = ""
    """What is called: the last part of its name."""
    of: str = ""
    """On what: the last part of that name; empty for anything."""
    nth: int = 1
    """Which of them, in the order of the source, from 1; from the last, if it is negative."""

    def __str__(self) -> str:
        called = f" of {self.of}.{self.name}" if self.of else f" of {self.name}" if self.name else ""
        return f"{self.what}{called} number {self.nth}"

    def find(self, tree: ast.AST, function: str) -> ast.AST:
        """Return the node.

        Raises:
            NoTargetError: There are fewer.
        """
        found = [node for node in ordered(tree) if self._is_meant(node)]
        at = self.nth - 1 if self.nth > 0 else self.nth
        if not -len(found) <= at < len(found):
            raise NoTargetError(f"{function} holds {len(found)}, and no {self}")
        return found[at]

    def _is_meant(self, node: ast.AST) -> bool:
        match self.what, node:
            case "call", ast.Call():
                name, of = called(node.func)
                return name == self.name and self.of in ("", of)
            case "raise", ast.Raise():
                return True
            case "yield", ast.Yield():
                return True
        return False


class Tree:
    """The source of one module, being changed."""

    def __init__(self, text: str) -> None:
        self.module = ast.parse(text)

    def find(self, function: str) -> ast.AST:
        """Return what a name means: a function, a method, a class, what is assigned at the top; a module, all of it.

        Raises:
            NoTargetError: Nothing has that name.
        """
        found: ast.AST = self.module
        for part in filter(None, function.partition(":")[2].split(".")):
            inner = [node for node in bodies(found) if defines(node, part)]
            if len(inner) != 1:
                raise NoTargetError(f"{function}: {part} is defined {len(inner)} times")
            found = inner[0]
        return found

    def text(self) -> str:
        """Return it as source again."""
        return ast.unparse(ast.fix_missing_locations(self.module)) + "\n"


def file_of(function: str) -> str:
    """Return the path of the module of a function, relative to the repository.

    Raises:
        NoTargetError: There is no such module.
    """
    path = function.partition(":")[0].replace(".", "/")
    for found in (f"{path}.py", f"{path}/__init__.py"):
        if (ROOT / found).is_file():
            return found
    raise NoTargetError(f"no module of that name: {function}")


# Nodes.


def ordered(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it, in the order of the source."""
    yield node
    for child in ast.iter_child_nodes(node):
        yield from ordered(child)


def called(node: ast.AST) -> tuple[str, str]:
    """Return the last two parts of a dotted name."""
    match node:
        case ast.Name(id=name):
            return name, ""
        case ast.Attribute(value=value, attr=name):
            return name, called(value)[0]
    return "", ""


def bodies(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a module, class or function, those in its blocks too, but of no inner function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
            if not isinstance(child, _Function):
                yield from bodies(child)


def defines(node: ast.AST, name: str) -> bool:
    match node:
        case ast.FunctionDef(name=found) | ast.ClassDef(name=found):
            return found == name
        case ast.Assign(targets=[ast.Name(id=found)]) | ast.AnnAssign(target=ast.Name(id=found)):
            return found == name
    return False


def listed(body: ast.AST | Sequence[ast.AST]) -> list[ast.AST]:
    return [body] if isinstance(body, ast.AST) else list(body)


def upwards(within: ast.AST, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield what a node stands in, and what of that it is, from the nearest on, up to the function."""
    parents = {child: above for above in ast.walk(within) for child in ast.iter_child_nodes(above)}
    while node is not within:
        yield parents[node], node
        node = parents[node]


def statement_of(within: ast.AST, node: ast.AST) -> ast.stmt:
    if isinstance(node, ast.stmt):
        return node
    return next(above for above, _ in upwards(within, node) if isinstance(above, ast.stmt))


def outwards(within: ast.AST, node: ast.AST) -> list[ast.AST]:
    return [node, *(above for above, _ in upwards(within, node))]


def blocks(within: ast.AST) -> Iterator[list[ast.AST]]:
    for above in ast.walk(within):
        for _, block in ast.iter_fields(above):
            if isinstance(block, list):
                yield block


def put(within: ast.AST, statement: ast.stmt, others: Sequence[ast.stmt]) -> None:
    """Put statements in the place of one."""
    for above in ast.walk(within):
        for _, block in ast.iter_fields(above):
            if isinstance(block, list) and any(one is statement for one in block):
                at = next(number for number, one in enumerate(block) if one is statement)
                block[at : at + 1] = others
                return
    raise AssertionError("a statement that stands nowhere")


def replace(within: ast.AST, node: ast.AST, other: ast.expr) -> None:
    """Put an expression in the place of one."""
    for above in ast.walk(within):
        for field, value in ast.iter_fields(above):
            if value is node:
                setattr(above, field, other)
                return
            if isinstance(value, list) and any(one is node for one in value):
                value[next(number for number, one in enumerate(value) if one is node)] = other
                return
    raise AssertionError("an expression that stands nowhere")
