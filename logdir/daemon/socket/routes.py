"""The paths of the control socket, and which use case or operation a path is about.

Not here: what is answered (``handler``), the page about all of it (docs/api.md).

Spec: design §5, §6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from logdir.daemon.release import RELEASE
from logdir.service.batch.use_cases import NAMES, NEED_CLOSED, Spec, spec_of
from logdir.service.reading.questions import READINGS

STATUS: Final = "/v1/status"
"""The status, from memory."""
METRICS: Final = "/metrics"
"""The metrics, from memory, in the text format of Prometheus."""
PAGE: Final = "/status.html"
"""The status as a page."""
OPENAPI: Final = "/v1/openapi.json"
"""This interface as a document of OpenAPI."""
USE_CASES: Final = "/v1/use-cases/"
"""Before the name of a use case."""
OPERATIONS: Final = "/v1/operations"
"""Operations that are not waited for; before a slash and an id one of them."""
CHANGES: Final = (*NAMES, RELEASE.name)
"""The use cases that the thread of changes runs, planned or done."""


def part_of(name: str) -> str:
    """Return the name of a use case as a path has it.

    >>> part_of("staged purge")
    'staged-purge'
    """
    return name.replace(" ", "-")


def path_of(name: str) -> str:
    """Return the path of a use case.

    >>> path_of("staged purge")
    '/v1/use-cases/staged-purge'
    """
    return USE_CASES + part_of(name)


_BY_PART: Final[Mapping[str, str]] = {part_of(name): name for name in (*CHANGES, *READINGS, *NEED_CLOSED)}


def use_case_of(part: str) -> str | None:
    """Return the name of a use case by its name in a path; ``None``: there is none."""
    return _BY_PART.get(part)


def use_case_at(path: str) -> str | None:
    """Return the name of the use case that a path is of; ``None``: of none."""
    return use_case_of(path.removeprefix(USE_CASES)) if path.startswith(USE_CASES) else None


def operation_path(identity: str) -> str:
    """Return the path of an operation."""
    return f"{OPERATIONS}/{identity}"


def operation_at(path: str) -> str | None:
    """Return the id of the operation that a path is of; ``None``: of none.

    >>> operation_at("/v1/operations/1f-3"), operation_at("/v1/operations"), operation_at("/v1/operations/")
    ('1f-3', None, None)
    """
    return path.removeprefix(f"{OPERATIONS}/") or None if path.startswith(f"{OPERATIONS}/") else None


def spec_named(name: str) -> Spec:
    """Return a use case that the thread of changes runs. Raises ``KeyError``: there is none of that name."""
    return RELEASE if name == RELEASE.name else spec_of(name)
