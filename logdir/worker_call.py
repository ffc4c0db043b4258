"""The mark of a function that a worker process may be asked to call by its name.

Whoever writes such a function marks it where it stands: so the worker needs no table of what is above and below it.

Not here: how the name, the arguments and the result are sent (``logdir.worker.calls``).

Spec: design §5 "A port per log dir".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_MARK: Final = "__is_worker_call__"


def worker_call(call: Callable[P, R]) -> Callable[P, R]:
    """Mark a function of a module as one that a worker may be asked to call."""
    setattr(call, _MARK, True)
    return call


def is_worker_call(value: object) -> bool:
    """Whether a value is a function that was marked so."""
    return getattr(value, _MARK, False) is True
