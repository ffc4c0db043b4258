"""What the fields of a dataclass or named tuple mean, and their defaults, as a page about its JSON has them."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from typing import Any, Final

from logdir.service.report.json_form import to_json

ABSENT: Final = object()
"""The default of a field that has none."""


def meanings(kind: type) -> dict[str, str]:
    """Return the docstring of every field of a class, in its own body, as one line."""
    (found,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(found, ast.ClassDef)
    texts = {}
    for before, after in zip(found.body, found.body[1:], strict=False):
        match before, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                text = " ".join(text.split()).removesuffix(".").replace("``", "`")
                text = text.replace("`None`", "`null`")
                texts[name] = text[0].lower() + text[1:] if text[1].islower() else text
    return texts


def every_meaning(kind: type) -> dict[str, str]:
    """Return the same with the fields that the class has from others."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if dataclasses.is_dataclass(one) or hasattr(one, "_fields"):
            found |= meanings(one)
    return found


def default_of(kind: Any, name: str) -> object:
    """Return the default of a field in JSON; ``ABSENT``: it has none."""
    if not dataclasses.is_dataclass(kind):
        defaults: dict[str, object] = kind._field_defaults
        return to_json(defaults[name]) if name in defaults else ABSENT
    (field,) = (one for one in dataclasses.fields(kind) if one.name == name)
    if field.default is not dataclasses.MISSING:
        return to_json(field.default)
    return ABSENT if field.default_factory is dataclasses.MISSING else to_json(field.default_factory())
