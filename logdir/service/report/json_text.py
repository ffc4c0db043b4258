"""JSON text of results: the one object that a command prints, in one piece, or in parts where it may be long.

Not here: the form of a result (``json_form``).

Spec: design §6; docs/json.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from logdir.errors import Problem
from logdir.service.report.json_form import to_json
from logdir.text import utf8

FORMAT: Final = 1
"""The version of the JSON output; it changes only when a documented key does."""


def compact(value: object) -> str:
    """Return JSON with sorted keys and no blanks; what UTF-8 cannot hold is replaced."""
    return utf8(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def envelope(command: str, exit_status: int, problems: Iterable[Problem], result: object) -> str:
    """Return the one JSON object of ``--json``, with a line end; ``result`` is a type with a form of ``json_form``."""
    value: dict[str, object] = {
        "command": command,
        "format": FORMAT,
        "exit": int(exit_status),
        "problems": [problem._asdict() for problem in problems],
        "result": to_json(result),
    }
    return compact(value) + "\n"


def envelope_as_it_comes(
    command: str, result: Iterable[str], end: Callable[[], tuple[int, Sequence[Problem]]]
) -> Iterator[str]:
    """Yield the one JSON object of ``--json`` in parts.

    Args:
        command: The name of the command, for the key ``command``.
        result: Keys and values of the result, in parts.
        end: Called after the last part of the result; returns the exit status and the problems.
    """
    yield f'{{"command":{compact(command)},"format":{FORMAT},"result":{{'
    yield from result
    status, problems = end()
    yield f'}},"exit":{int(status)},"problems":{compact(to_json(tuple(problems)))}}}\n'


def joined(key: str, items: Iterable[str | Iterable[str]]) -> Iterator[str]:
    """Yield the JSON of a key and its list in parts, however long; an item may be in parts, too."""
    separator = head = f'"{key}":['
    for item in items:
        yield separator
        yield from (item,) if isinstance(item, str) else item
        separator = ","
    yield "]" if separator == "," else f"{head}]"
