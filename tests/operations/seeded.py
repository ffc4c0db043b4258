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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tests.operations.source import (
    ROOT,
    NoTargetError,
    Spot,
    Tree,
    blocks,
    called,
    file_of,
    listed,
    ordered,
    outwards,
    put,
    replace,
    statement_of,
    upwards,
)

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


Edit = Callable[[Tree, str], None]
"""Changes a tree in one function; told its name."""


def drop(spot: Spot) -> Edit:
    """Return the edit that leaves a statement out, a call that stands by itself."""

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        statement = statement_of(within, spot.find(within, function))
        if not isinstance(statement, ast.Expr):
            raise NoTargetError(f"{function}: the {spot} is part of something: {ast.unparse(statement)}")
        put(within, statement, [ast.Pass()])

    return edit


def retried(spot: Spot) -> Edit:
    """Return the edit that makes a call again if it fails."""

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        statement = statement_of(within, spot.find(within, function))
        again = ast.ExceptHandler(type=ast.Name("OSError", ast.Load()), name=None, body=[statement])
        put(within, statement, [ast.Try(body=[statement], handlers=[again], orelse=[], finalbody=[])])

    return edit


def never(spot: Spot) -> Edit:
    """Return the edit after which the nearest ``if`` that asks with this, or guards it, never holds."""

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        node = spot.find(within, function)
        for above, below in upwards(within, node):
            if isinstance(above, ast.If | ast.IfExp):
                if below is not above.test and below not in listed(above.body):
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
        statement = statement_of(within, spot.find(within, function))
        other = statement_of(within, goal.find(within, function))
        put(within, statement, [ast.Pass()])
        put(within, other, [statement, other] if before else [other, statement])

    return edit


def moved_whole(spot: Spot, *, after: Spot) -> Edit:
    """Return the edit that takes all that stands around one thing behind all that stands around another.

    Both are taken as far as the block that holds both.
    """

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        first, last = (outwards(within, one.find(within, function)) for one in (spot, after))
        for block in (list_ for list_ in blocks(within) if any(one in first for one in list_)):
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
        if not any(isinstance(above, ast.For | ast.While) for above, _ in upwards(within, node)):
            raise NoTargetError(f"{function}: the {spot} is in no loop")
        statement = statement_of(within, node)
        put(within, statement, [statement, ast.Break()])

    return edit


def instead(spot: Spot, code: str) -> Edit:
    """Return the edit that puts another expression in the place of a call."""

    def edit(tree: Tree, function: str) -> None:
        within = tree.find(function)
        replace(within, spot.find(within, function), ast.parse(code, mode="eval").body)

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
        for node in ordered(within):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
                for gone, stays in ((node.left, node.right), (node.right, node.left)):
                    if called(gone)[0] == flag:
                        replace(within, node, stays)
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
