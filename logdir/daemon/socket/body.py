"""The bodies of requests: one JSON object with known keys, and the request of a use case in it.

Not here: reading the bytes (``handler``), the form of requests (``service.report.json_form``).

Spec: docs/api.md, docs/json.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from logdir.daemon.socket.routes import CHANGES, part_of, spec_named, use_case_of
from logdir.errors import MalformedMessageError
from logdir.formats.own import own_json
from logdir.service.batch.use_cases import Spec
from logdir.service.reading.questions import Question, Reading
from logdir.service.report.json_form import from_json
from logdir.text import printable

MOST_BYTES: Final = 64 * 1024 * 1024
"""Size limit of a request that may change something: room for a plan of 200,000 replicas."""
MOST_QUESTION_BYTES: Final = 64 * 1024
"""Size limit of what is asked of a use case that only reads: whoever may connect may send it."""
_LISTED: Final = "docs/json.md lists the keys"
_FLAG: Final = "apply (true or false)"


class Asked(NamedTuple):
    """A request to a use case that the thread of changes runs."""

    spec: Spec
    request: Any
    is_applied: bool


def asked_of(name: str, body: bytes) -> Asked:
    """Return the request in the body for a use case.

    Args:
        name: Its name.
        body: An object with the keys ``apply`` and ``request``.

    Raises:
        MalformedMessageError: the body is no such object, or its parts do not fit together.
        ConfigError: as the request.
    """
    value = _object(body, {"apply", "request"}, f"{_FLAG} and request")
    return _asked(name, value)


def operation_of(body: bytes) -> Asked:
    """Return the request in the body for an operation.

    Args:
        body: An object with the keys ``use_case``, ``apply`` and ``request``.

    Raises:
        MalformedMessageError: the body is no such object, or its parts do not fit together.
        ConfigError: as the request.
    """
    value = _object(body, {"use_case", "apply", "request"}, f"use_case, {_FLAG} and request")
    part = value["use_case"]
    name = use_case_of(part) if isinstance(part, str) else None
    if name is None or name not in CHANGES:
        raise MalformedMessageError(
            "use_case",
            expected=f"one of {', '.join(map(part_of, CHANGES))}",
            found=part,
            fix="docs/api.md says which use cases are asked at paths of their own",
        )
    return _asked(name, value)


def question_of(reading: Reading, body: bytes) -> Question:
    """Return the question in the body for a use case that only reads.

    Raises:
        MalformedMessageError: the body is no such object, or asks for a change.
    """
    value = _object(body, {"apply", "request"}, f"{_FLAG} and request")
    if value["apply"]:
        raise MalformedMessageError(
            "apply", expected="false: this use case only reads", found="true", fix="send it with apply false"
        )
    question: Question = from_json(reading.request, value["request"])
    return question


def _asked(name: str, value: Mapping[str, Any]) -> Asked:
    spec = spec_named(name)
    request: Any = from_json(spec.request, value["request"])
    _require_valid(request)
    return Asked(spec, request, value["apply"])


def _object(body: bytes, keys: set[str], expected: str) -> dict[str, Any]:
    """Return the object of a body, which has these keys and no other, and a flag as ``apply``.

    Raises:
        MalformedMessageError: the body is no such object; ``expected`` says which keys it has.
    """
    try:
        # A key that stands twice is refused: the other value of ``apply`` may be what was meant.
        value = own_json.parse_json(body)
        if b"\\u" in body:  # Only written so can a text hold what no name and no path can.
            for text in _texts(value):
                os.fsencode(text)  # A byte that is not UTF-8 is half a character of a kind that is right.
                if "\0" in text:
                    raise ValueError("a text with a NUL character")
    except (ValueError, RecursionError) as error:
        raise MalformedMessageError("request", expected="one JSON object", found=printable(str(error))) from error
    if not isinstance(value, dict) or value.keys() != keys or type(value["apply"]) is not bool:
        raise MalformedMessageError(
            "request", expected=f"an object with the keys {expected}", found="another value", fix=_LISTED
        )
    return value


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a JSON value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _require_valid(request: Any) -> None:
    """Check that a request is valid.

    Raises:
        MalformedMessageError: its parts do not fit together, which none of our own commands sends.
        ConfigError: as the request.
    """
    if not hasattr(request, "require_valid"):
        return
    try:
        request.require_valid()
    except ValueError as error:
        raise MalformedMessageError(
            "request", expected="a request whose parts fit together", found=printable(str(error)), fix=_LISTED
        ) from error
