"""What is changed in the source: cosmic-ray's form of an operator, with operators of our own.

A condition is negated, a comparison or a constant moved by one, ``and`` and ``or`` swapped, and calls of a sync, a
lock, a look again and a record are left out. Docstrings, annotations, decorators and imports stay as they are.

Not here: which changes are tried (``sown``), trying them (``runner``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import parso
from cosmic_ray.operators.operator import Example, Operator

Node = Any
"""Of parso, which has no types."""
Span = tuple[tuple[int, int], tuple[int, int]]

_MOVED: Final = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_COMPARISONS: Final = frozenset({"comparison", "not_test", "and_test", "or_test"})
_NOT_TAKEN: Final = frozenset({"strict", "frozen", "slots", "kw_only"})
"""Keywords of calls whose ``True`` only checks how we call."""


def _has(node: Node, *types: str) -> bool:
    return node is not None and node.type in types


def _is_left(node: Node) -> bool:
    """Tell whether a node stands where nothing is changed: decorators, annotations, imports, types."""
    child, above = node, node.parent
    while above is not None:
        if above.type in {"decorator", "annassign", "import_from", "import_name", "tfpdef", "assert_stmt"}:
            # The value of an annotated assignment is no annotation.
            is_value = above.type == "annassign" and len(above.children) == 4 and child is above.children[3]
            if not is_value:
                return True
        if above.type == "funcdef" and child in above.children[3:-1]:
            return True
        child, above = above, above.parent
    return False


def _code(node: Node) -> str:
    text: str = node.get_code(include_prefix=False)
    return text


def _made(node: Node, text: str) -> Node:
    """Return what a text means, where a node stood."""
    made: Node = parso.parse(node.get_first_leaf().prefix + text)  # type: ignore[no-untyped-call] # parso has no types
    # Without the end marker, whose line may hold what follows.
    return made.children[0] if len(made.children) == 2 else made


class OneToOne(Operator):  # type: ignore[misc]
    """An operator that changes a node in one way at most."""

    name: str

    def becomes(self, node: Node) -> str | None:
        """Return the new text of a node, ``None`` if it is not of ours."""
        raise NotImplementedError

    def mutation_positions(self, node: Node) -> Iterator[Span]:
        """Yield the place of a node that is changed."""
        if self.becomes(node) is not None and not _is_left(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Node, index: int) -> Node:
        """Return the changed node."""
        text = self.becomes(node)
        if text is None:
            raise ValueError("nothing to change")
        return _made(node, text)

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return texts before and after."""
        return ()


class ConditionNegated(OneToOne):
    """``if a:`` becomes ``if not (a):``, and so in loops, ternaries, comprehensions and what is returned."""

    name = "condition-negated"

    def becomes(self, node: Node) -> str | None:
        """Return the negated condition."""
        above = node.parent
        if above is None or (_has(node, "keyword", "operator")):
            return None
        at = above.children.index(node)
        before = above.children[at - 1] if at else None
        word = getattr(before, "value", None)
        is_condition = (
            (_has(above, "if_stmt", "while_stmt") and word in {"if", "elif", "while"})
            or (_has(above, "ternary", "test") and word == "if" and at == 2)
            or (_has(above, "comp_if", "guard") and word == "if")
            or (_has(above, "return_stmt") and node.type in _COMPARISONS)
        )
        if not is_condition or _code(node) == "TYPE_CHECKING":
            return None
        return f"not ({_code(node)})"

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return texts before and after."""
        return (
            Example("if a or b: pass\n", "if not (a or b): pass\n"),
            Example("x = a if b else c\n", "x = a if not (b) else c\n"),
            Example("x = [a for a in b if c]\n", "x = [a for a in b if not (c)]\n"),
            Example("def f(): return a == b\n", "def f(): return not (a == b)\n"),
        )


class ComparisonMoved(OneToOne):
    """``<`` becomes ``<=``, ``==`` becomes ``!=``, and back."""

    name = "comparison-moved"

    def becomes(self, node: Node) -> str | None:
        """Return the comparison beside it."""
        return _MOVED.get(_code(node)) if _has(node, "operator") and _has(node.parent, "comparison") else None

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return texts before and after."""
        return (Example("x = a < b\n", "x = a <= b\n"), Example("x = a != b\n", "x = a == b\n"))


class AndOr(OneToOne):
    """``and`` becomes ``or``, and back."""

    name = "and-or"

    def becomes(self, node: Node) -> str | None:
        """Return the other word."""
        if not (_has(node, "keyword") and _has(node.parent, "and_test", "or_test")):
            return None
        return {"and": "or", "or": "and"}.get(node.value)

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return texts before and after."""
        return (Example("x = a and b\n", "x = a or b\n"),)


class ConstantMoved(OneToOne):
    """A number becomes one more, from ten on half of it; ``True`` becomes ``False``, and back."""

    name = "constant-moved"

    def becomes(self, node: Node) -> str | None:
        """Return the other constant."""
        if _has(node, "keyword") and node.value in {"True", "False"}:
            above = node.parent
            if _has(above, "argument") and above.children[0].value in _NOT_TAKEN:
                return None
            return "False" if node.value == "True" else "True"
        if not _has(node, "number"):
            return None
        if not re.fullmatch(r"[0-9_]+", node.value):
            # Octal and hexadecimal: modes and flags.
            return f"({node.value} ^ 1)"
        number = int(node.value)
        return str(number // 2 if number >= 10 else number + 1)

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return texts before and after."""
        return (
            Example("x = 1\n", "x = 2\n"),
            Example("x = 24 * 60\n", "x = 12 * 60\n"),
            Example("x = 24 * 60\n", "x = 24 * 30\n", occurrence=1),
            Example("x = f(a=True)\n", "x = f(a=False)\n"),
            Example("x = f(a, strict=True)\n", "x = f(a, strict=True)\n"),
        )


class CallDropped(OneToOne):
    """A statement that only calls becomes ``pass``, if what it calls is of one kind."""

    kind: re.Pattern[str]

    def becomes(self, node: Node) -> str | None:
        """Return ``pass`` for a call of this kind that stands alone."""
        if not (_has(node, "atom_expr", "power") and _has(node.parent, "simple_stmt")):
            return None
        last = node.children[-1]
        if not (_has(last, "trailer") and last.children[0].value == "("):
            return None
        called = "".join(_code(child) for child in node.children[:-1])
        name = re.split(r"[.(]", called)[-1]
        return "pass" if self.kind.fullmatch(name) and self.kind_of(name) is type(self) else None

    @staticmethod
    def kind_of(name: str) -> type[CallDropped]:
        """Return the first kind that a name is of."""
        return next(kind for kind in _KINDS if kind.kind.fullmatch(name))


class SyncDropped(CallDropped):
    """A sync is left out."""

    name = "sync-dropped"
    kind = re.compile(r"_?(f?sync\w*|syncfs)")

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return texts before and after."""
        return (Example("a.sync()\nb.c.sync_file(d)\n", "a.sync()\npass\n", occurrence=1),)


class LockDropped(CallDropped):
    """Taking or asking for a lock is left out."""

    name = "lock-dropped"
    kind = re.compile(r"_?\w*(lock|held|hold_all)\w*")

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return texts before and after."""
        return (Example("held.require_held()\n", "pass\n"),)


class RecheckDropped(CallDropped):
    """A look again before a change is left out."""

    name = "recheck-dropped"
    kind = re.compile(r"_?(require|check|refuse|verify|ensure|against|compare)\w*")

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return texts before and after."""
        return (Example("broker.require_unchanged()\n", "pass\n"),)


class RecordDropped(CallDropped):
    """What is written down is not."""

    name = "record-dropped"
    kind = re.compile(r"_?(write|record|begin|put|replace|keep|say|beat|rewrite|give|adopt|set)\w*")

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return texts before and after."""
        return (Example("staging_limit.write_record(open_dirs, record)\n", "pass\n"),)


class OtherCallDropped(CallDropped):
    """Any other call that stands alone is left out."""

    name = "call-dropped"
    kind = re.compile(r"\w+")

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return texts before and after."""
        return (Example("found.append(1)\n", "pass\n"),)


class RefusalDropped(OneToOne):
    """A ``raise`` becomes ``pass``."""

    name = "refusal-dropped"

    def becomes(self, node: Node) -> str | None:
        """Return ``pass`` for an error that is raised."""
        return "pass" if _has(node, "raise_stmt") else None

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return texts before and after."""
        return (Example("if a:\n    raise Error(b)\n", "if a:\n    pass\n"),)


class ContextDropped(OneToOne):
    """A ``with`` that binds no name becomes ``if True``."""

    name = "context-dropped"

    def becomes(self, node: Node) -> str | None:
        """Return the same suite without its context."""
        if not _has(node, "with_stmt") or not _has(node.children[1], "atom_expr", "power", "name"):
            return None
        if len(node.children) != 4:  # a second context stands behind the first
            return None
        suite: str = node.children[3].get_code()
        return f"if True:{suite}"

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return texts before and after."""
        return (
            Example("with a(b):\n    c()\nd()\n", "if True:\n    c()\nd()\n"),
            Example("with a(b) as c:\n    d()\n", "with a(b) as c:\n    d()\n"),
            Example("with a(b), c as d:\n    e()\n", "with a(b), c as d:\n    e()\n"),
        )


_KINDS: Final = (SyncDropped, LockDropped, RecheckDropped, RecordDropped, OtherCallDropped)
OPERATORS: Final[tuple[type[OneToOne], ...]] = (
    ConditionNegated,
    ComparisonMoved,
    AndOr,
    ConstantMoved,
    *_KINDS,
    ContextDropped,
    RefusalDropped,
)
GUARDS: Final = frozenset(
    one.name for one in (SyncDropped, LockDropped, RecheckDropped, RecordDropped, ContextDropped, RefusalDropped)
)
"""Names of the operators that take away what guards data."""
