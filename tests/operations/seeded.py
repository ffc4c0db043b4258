"""Bugs seeded into a copy of the source: by the function that has them and by what is meant, never by its text.

A bug names each function as it is imported, ``package.module:function`` or ``package.module:Class.method``, and says
what becomes of it: a call is left out, made twice or moved, a guard never holds, the function is wrapped in a wrong
one. A call is found by what is called and on what, and where there are several by its number. So neither a module that
moves, nor a local that gets another name, nor a line that is wrapped in another way breaks a bug. What cannot be found
raises ``NoTargetError``, with the name that was looked for.

Not here: copying the source and running it (``tests.crash.seeded.patched``), the bugs (each with its operation).

Spec: reliability §4.4 ("mutation score: test the test").
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_Function = ast.FunctionDef | ast.ClassDef
_WRAPPED = """
def _seeded(real):
    import functools
    @functools.wraps(real)
    def wrong(*arguments, **named):
        from {module} import {name}
        return {name}(real, *arguments, **named)
    return wrong
{function} = _seeded({function})
"""


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
        found = [node for node in _ordered(tree) if self._is_meant(node)]
        at = self.nth - 1 if self.nth > 0 else self.nth
        if not -len(found) <= at < len(found):
            raise NoTargetError(f"{function} holds {len(found)}, and no {self}")
        return found[at]

    def _is_meant(self, node: ast.AST) -> bool:
        match self.what, node:
            case "call", ast.Call():
                name, of = _called(node.func)
                return name == self.name and self.of in ("", of)
            case "raise", ast.Raise():
                return True
            case "yield", ast.Yield():
                return True
        return False


def call(name: str, *, of: str = "", nth: int = 1) -> Spot:
    """Return a call, by what is called.

    Args:
        name: The last part of its name: ``sync`` for ``site.deleting.sync()``.
        of: The last part of what it is called on: ``deleting`` there. A local may get another name: ``nth`` lasts.
        nth: Which of those.
    """
    return Spot(what="call", name=name, of=of, nth=nth)


def raising(nth: int = 1) -> Spot:
    """Return a ``raise``."""
    return Spot(what="raise", nth=nth)


def yielding(nth: int = 1) -> Spot:
    """Return a ``yield``."""
    return Spot(what="yield", nth=nth)


class Tree:
    """The source of one module, being changed."""

    def __init__(self, text: str) -> None:
        self.module = ast.parse(text)

    def find(self, function: str) -> ast.AST:
        """Return what a name means: a function, a method, a class, or what is assigned at the top.

        Raises:
            NoTargetError: Nothing has that name.
        """
        found: ast.AST = self.module
        for part in function.partition(":")[2].split("."):
            inner = [node for node in _bodies(found) if _defines(node, part)]
            if len(inner) != 1:
                raise NoTargetError(f"{function}: {part} is defined {len(inner)} times")
            found = inner[0]
        return found

    def text(self) -> str:
        """Return it as source again."""
        return ast.unparse(ast.fix_missing_locations(self.module)) + "\n"


Edit = Callable[[Tree, str], None]
"""Changes a tree in one function; told its name."""


def drop(spot: Spot) -> Edit:
    """Return the edit that leaves a statement out, a call that stands by itself."""

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        statement = _statement(within, spot.find(within, function))
        if not isinstance(statement, ast.Expr):
            raise NoTargetError(f"{function}: the {spot} is part of something: {ast.unparse(statement)}")
        _put(within, statement, [ast.Pass()])

    return edit


def retried(spot: Spot) -> Edit:
    """Return the edit that makes a call again if it fails."""

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        statement = _statement(within, spot.find(within, function))
        again = ast.ExceptHandler(type=ast.Name("OSError", ast.Load()), name=None, body=[statement])
        _put(within, statement, [ast.Try(body=[statement], handlers=[again], orelse=[], finalbody=[])])

    return edit


def never(spot: Spot) -> Edit:
    """Return the edit after which the nearest ``if`` that asks with this, or guards it, never holds."""

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        node = spot.find(within, function)
        for above, below in _upwards(within, node):
            if isinstance(above, ast.If | ast.IfExp):
                if below is not above.test and below not in _listed(above.body):
                    raise NoTargetError(f"{function}: the {spot} is what else is done")
                above.test = ast.Constant(False)
                return
        raise NoTargetError(f"{function}: nothing guards the {spot}")

    return edit


def moved(spot: Spot, *, before: Spot | None = None, after: Spot | None = None) -> Edit:
    """Return the edit that takes the statement of one thing to before or after the statement of another."""

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        goal = before or after
        if goal is None:
            raise TypeError("moved needs before or after")
        statement = _statement(within, spot.find(within, function))
        other = _statement(within, goal.find(within, function))
        _put(within, statement, [ast.Pass()])
        _put(within, other, [statement, other] if before else [other, statement])

    return edit


def moved_whole(spot: Spot, *, after: Spot) -> Edit:
    """Return the edit that takes all that stands around one thing behind all that stands around another.

    Both are taken as far as the block that holds both.
    """

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        first, last = (_outwards(within, one.find(within, function)) for one in (spot, after))
        for block in (list_ for list_ in _blocks(within) if any(one in first for one in list_)):
            one, other = ([each for each in block if each in found] for found in (first, last))
            if other and one != other:
                block.remove(one[0])
                block.insert(block.index(other[0]) + 1, one[0])
                return
        raise NoTargetError(f"{function}: the {spot} and the {after} share no block")

    return edit


def once(spot: Spot) -> Edit:
    """Return the edit after which a loop ends with the first of these."""

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        node = spot.find(within, function)
        if not any(isinstance(above, ast.For | ast.While) for above, _ in _upwards(within, node)):
            raise NoTargetError(f"{function}: the {spot} is in no loop")
        statement = _statement(within, node)
        _put(within, statement, [statement, ast.Break()])

    return edit


def instead(spot: Spot, code: str) -> Edit:
    """Return the edit that puts another expression in the place of a call."""

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        _replace(within, spot.find(within, function), ast.parse(code, mode="eval").body)

    return edit


def named(spot: Spot, **values: object) -> Edit:
    """Return the edit that gives keyword arguments of a call other values."""

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        node = spot.find(within, function)
        for name, value in values.items():
            given = [one for one in node.keywords if one.arg == name] if isinstance(node, ast.Call) else []
            if not given:
                raise NoTargetError(f"{function}: the {spot} has no {name}=")
            given[0].value = ast.Constant(value)  # type: ignore[arg-type]  # of those a literal can be

    return edit


def without(flag: str) -> Edit:
    """Return the edit that takes one flag out of those that are or-ed together."""

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        for node in _ordered(within):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
                for gone, stays in ((node.left, node.right), (node.right, node.left)):
                    if _called(gone)[0] == flag:
                        _replace(within, node, stays)
                        return
        raise NoTargetError(f"{function} has no {flag}")

    return edit


def valued(code: str) -> Edit:
    """Return the edit that gives what is assigned at the top of a module another value."""

    def edit(tree: Tree, function: str) -> None:
        found = tree.find(function)
        if not isinstance(found, ast.Assign | ast.AnnAssign):
            raise NoTargetError(f"{function} is nothing that is assigned")
        found.value = ast.parse(code, mode="eval").body

    return edit


def wrapped(wrong: Callable[..., object]) -> Edit:
    """Return the edit that puts a function of the tests around one, which is told that one and its arguments."""

    def edit(tree: Tree, function: str) -> None:
        if not isinstance(tree.find(function), ast.FunctionDef):
            raise NoTargetError(f"{function} is no function")
        code = _WRAPPED.format(module=wrong.__module__, name=wrong.__name__, function=function.partition(":")[2])
        tree.module.body += ast.parse(code).body

    return edit


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one function."""

    function: str
    """As it is imported: ``package.module:function``."""
    edit: Edit


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeded:
    """One bug, and what must catch it."""

    name: str
    changes: tuple[Change, ...]
    """In this order."""
    tried: tuple[str, ...] = ()
    """Arguments of ``tests.crash``: the cases, and of which models; none where only the soak is asked."""
    caught_by: frozenset[str] = frozenset()
    """By which models the enumeration catches it, exactly."""
    killed: tuple[str, ...] = ()
    """How a line begins that the soak of killed processes must print; none where it is not asked."""


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


def seed(changes: Iterable[Change]) -> Mapping[str, str]:
    """Return the changed files, by path.

    Raises:
        NoTargetError: A module, a function, or what is changed in it is not there.
    """
    trees: dict[str, Tree] = {}
    for change in changes:
        file = file_of(change.function)
        if file not in trees:
            trees[file] = Tree((ROOT / file).read_text("utf-8"))
        change.edit(trees[file], change.function)
    return {file: tree.text() for file, tree in trees.items()}


# Nodes.


def _ordered(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it, in the order of the source."""
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _ordered(child)


def _called(node: ast.AST) -> tuple[str, str]:
    """Return the last two parts of a dotted name."""
    match node:
        case ast.Name(id=name):
            return name, ""
        case ast.Attribute(value=value, attr=name):
            return name, _called(value)[0]
    return "", ""


def _bodies(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a module, class or function, those in its blocks too, but of no inner function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
            if not isinstance(child, _Function):
                yield from _bodies(child)


def _defines(node: ast.AST, name: str) -> bool:
    match node:
        case ast.FunctionDef(name=found) | ast.ClassDef(name=found):
            return found == name
        case ast.Assign(targets=[ast.Name(id=found)]) | ast.AnnAssign(target=ast.Name(id=found)):
            return found == name
    return False


def _listed(body: ast.AST | Sequence[ast.AST]) -> list[ast.AST]:
    return [body] if isinstance(body, ast.AST) else list(body)


def _upwards(within: ast.AST, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield what a node stands in, and what of that it is, from the nearest on, up to the function."""
    parents = {child: above for above in ast.walk(within) for child in ast.iter_child_nodes(above)}
    while node is not within:
        yield parents[node], node
        node = parents[node]


def _statement(within: ast.AST, node: ast.AST) -> ast.stmt:
    if isinstance(node, ast.stmt):
        return node
    return next(above for above, _ in _upwards(within, node) if isinstance(above, ast.stmt))


def _outwards(within: ast.AST, node: ast.AST) -> list[ast.AST]:
    return [node, *(above for above, _ in _upwards(within, node))]


def _blocks(within: ast.AST) -> Iterator[list[ast.AST]]:
    for above in ast.walk(within):
        for _, block in ast.iter_fields(above):
            if isinstance(block, list):
                yield block


def _put(within: ast.AST, statement: ast.stmt, others: Sequence[ast.stmt]) -> None:
    """Put statements in the place of one."""
    for above in ast.walk(within):
        for _, block in ast.iter_fields(above):
            if isinstance(block, list) and any(one is statement for one in block):
                at = next(number for number, one in enumerate(block) if one is statement)
                block[at : at + 1] = others
                return
    raise AssertionError("a statement that stands nowhere")


def _replace(within: ast.AST, node: ast.AST, other: ast.expr) -> None:
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
