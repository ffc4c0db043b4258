"""What the use cases that change replicas have in common, so that one frame can run any of them.

Not here: any of them (a module each in ``logdir.service``).

Spec: design §5 "A use case".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from logdir.errors import Problem
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.report.exit_status import Exit
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemResult


class Asked(Protocol):
    """A request to a use case."""

    def require_valid(self) -> None:
        """Check that the request is valid. Raises ``ConfigError``."""


class Planned(Protocol):
    """The plan of a use case: what would be done."""

    @property
    def items(self) -> Sequence[ItemResult]:
        """One per replica."""

    @property
    def problems(self) -> Sequence[Problem]:
        """Problems beside those of the items."""

    @property
    def is_empty(self) -> bool:
        """Whether the selector matched nothing."""


_R = TypeVar("_R", bound=Asked, contravariant=True)
_P = TypeVar("_P", bound=Planned)


class UseCase(Protocol[_R, _P]):
    """A module of ``logdir.service`` that changes replicas one by one."""

    def plan(self, broker: OpenBroker, asked: _R, /) -> _P:
        """Scan a broker and return the plan; changes nothing."""

    def apply(self, broker: OpenBroker, shown: _P, reporter: Reporter, /) -> tuple[list[ItemResult], list[Problem]]:
        """Carry out the plan that was shown; return one item per replica, and the problems of disks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of a use case, planned or done."""

    exit: Exit
    problems: tuple[Problem, ...]
    """Problems beside those of the items."""
    result: Any
    """Its result, with ``items``."""
    lines: tuple[str, ...] = ()
    """Remarks for people."""
    is_waiting: bool = False
    """Whether the same request, applied, has something to do; only of *reconcile* and the layout verbs."""
    next: str = ""
    """Of a layout verb: the next command, the value of a ``LayoutNext``."""
