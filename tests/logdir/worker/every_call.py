"""Every function of the product that a worker may be asked to call."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

import logdir
from logdir.worker_call import is_worker_call


@cache
def names() -> tuple[str, ...]:
    """Return the names of all of them, as ``module:function``."""
    found = []
    for one in pkgutil.walk_packages(logdir.__path__, "logdir."):
        module = import_module(one.name)
        mine = (value for value in vars(module).values() if getattr(value, "__module__", None) == one.name)
        found += [f"{one.name}:{value.__qualname__}" for value in mine if is_worker_call(value)]
    return tuple(sorted(found))
