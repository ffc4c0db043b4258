"""Strict YAML: a repeated key is refused, and scalars follow the core schema of YAML 1.2.

pyyaml silently uses the last of two equal keys, and reads ``on`` as true, ``0755`` as 493 and ``12:30:00`` as 45000: in
a file about disks these are likely mistakes. Here they are texts.

Not here: the content of a document (``migrate.source.fleet``, ``logdir.daemon.config``).

Spec: style §5.9; libraries §0 "YAML".
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any, ClassVar

import yaml

from logdir.errors import ConfigError, Problem, shown

# Errors of pyyaml: its own classes, and those of its constructors for a scalar that does not fit its tag.
_NO_YAML = (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, RecursionError)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _StrictLoader(_Loader):  # type: ignore[misc]  # the base is chosen at run time: C where it was built
    """Reads scalars by YAML 1.2's core schema, and notes keys that are repeated."""

    yaml_implicit_resolvers: ClassVar[dict[str | None, list[tuple[str, re.Pattern[str]]]]] = {}

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self.repeated: list[tuple[int, str]] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    self.repeated.append((key.start_mark.line + 1, key.value))
                seen.add((key.tag, key.value))
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", "-+0123456789."),
    ("merge", r"<<", "<"),
):  # fmt: skip
    _StrictLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), ["" if c == "\0" else c for c in _first]
    )


def load_document(data: bytes, file: str, *, slug: str) -> object:
    """Read one YAML document.

    Args:
        data: The file's bytes.
        file: Its path, for messages.
        slug: The slug of its problems.

    Returns:
        The document, of whatever type; ``None`` if the file is empty.

    Raises:
        ConfigError: no YAML, more than one document, or repeated keys (all of them).
    """
    loader = _StrictLoader(data)
    try:
        document = loader.get_single_data()
    except _NO_YAML as error:
        mark = getattr(error, "problem_mark", None)
        where = file if mark is None else f"{file}:{mark.line + 1}"
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error) or type(error).__name__
        raise ConfigError((Problem(slug, where, "a YAML document", shown(what), "correct the YAML there"),)) from error
    finally:
        loader.dispose()
    if loader.repeated:
        raise ConfigError(
            tuple(
                Problem(slug, f"{file}:{line}", "each key once", f"{shown(key)!r} again", "keep one of them")
                for line, key in loader.repeated
            )
        )
    return document


def found_value(value: object) -> str:
    """Return a value of a document for a message; never a whole structure, which aliases can make arbitrarily large."""
    match value:
        case None:
            return "nothing (null)"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {shown(value)!r}"
        case int():
            return shown(str(value)) if abs(value) < 10**40 else "a number of more than 40 digits"
        case _:
            return shown(value)
