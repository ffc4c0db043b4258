"""Every operation on a disk there is, for all rigs: which there are is said here and nowhere else.

``LOGDIRD_OPERATIONS`` names modules, between commas, whose ``OPERATIONS`` are there besides: processes that rigs start
read it too. ``added`` is that for as long as a test runs.

Spec: reliability §4.4; ``tests/operations/README.md``.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.operations import (
    adopt,
    capture,
    copies,
    gives,
    hold,
    late,
    layout,
    purge,
    reconcile,
    records,
    recover,
    restore,
    roots,
    small_file,
    stage,
    start_block,
    together,
)
from tests.operations.case import Case
from tests.operations.operation import REPLICA, Draw, Make, Needless, Operation, Syncs, Trait, Written
from tests.operations.seeded import Seeded

MORE = "LOGDIRD_OPERATIONS"
_MODULES = (
    stage, restore, hold, purge, small_file, recover, together, roots, capture, adopt, start_block, layout, records,
    reconcile, gives, copies, late,
)  # fmt: skip


@functools.cache
def operations() -> tuple[Operation, ...]:
    """Return all of them.

    Raises:
        ValueError: Two have the same name, or two of their cases.
    """
    more = [importlib.import_module(name) for name in os.environ.get(MORE, "").split(",") if name]
    found: list[Operation] = [one for module in (*_MODULES, *more) for one in module.OPERATIONS]
    names = [one.name for one in found]
    cases_ = [name for one in found for name in one.cases]
    if twice := sorted({name for known in (names, cases_) for name in known if known.count(name) > 1}):
        raise ValueError(f"two operations or two cases are called {twice[0]!r}")
    return tuple(found)


@contextmanager
def added(module: str) -> Iterator[None]:
    """Have the operations of one more module, here and in processes started meanwhile.

    Args:
        module: As it is imported; its ``OPERATIONS`` are the descriptors.
    """
    before = os.environ.get(MORE)
    os.environ[MORE] = module if before is None else f"{before},{module}"
    _forget()
    try:
        yield
    finally:
        if before is None:
            del os.environ[MORE]
        else:
            os.environ[MORE] = before
        _forget()


def _forget() -> None:
    for cached in (operations, cases, draws):
        cached.cache_clear()


# Cases.


@functools.cache
def cases() -> Mapping[str, Make]:
    """Return what makes each case, by its name, in the order of the operations."""
    return {name: make for one in operations() for name, make in one.cases.items()}


@functools.cache
def case(name: str) -> Case:
    """Return the case of this name."""
    return cases()[name](name)


def families() -> Mapping[str, tuple[str, ...]]:
    """Return the names of cases by family; those of one replica or one file first."""
    found: dict[str, tuple[str, ...]] = {REPLICA: ()}
    for one in operations():
        found[one.family] = (*found.get(one.family, ()), *one.cases)
    return found


def family_of(name: str) -> str:
    """Return in which family a case is counted."""
    return next(family for family, names in families().items() if name in names)


def having(*traits: Trait) -> frozenset[str]:
    """Return the names of cases that have one of these traits."""
    return frozenset(name for one in operations() for trait in traits for name in one.traits.get(trait, ()))


def on_kernels() -> tuple[str, ...]:
    """Return the names of cases that run on real kernels as well."""
    return tuple(name for one in operations() for name in (one.cases if one.on_kernels is None else one.on_kernels))


# What only one rig asks for.


@functools.cache
def draws() -> Mapping[str, Draw]:
    """Return what a random worker may draw, by its kind, in the order of the kinds."""
    found = {draw.kind: draw for one in operations() for draw in one.draws}
    return dict(sorted(found.items()))


def kinds() -> tuple[str, ...]:
    """Return the kinds a random worker may draw."""
    return tuple(draws())


def seeded() -> tuple[tuple[Operation, Seeded], ...]:
    """Return every bug, with the operation it is seeded into."""
    return tuple((one, bug) for one in operations() for bug in one.seeded)


def syncs() -> tuple[tuple[Operation, Syncs], ...]:
    """Return which cases of which operation must miss which syncs."""
    return tuple((one, each) for one in operations() for each in one.syncs)


def files() -> Mapping[str, Written]:
    """Return the files of ours that are written whole, by their names."""
    return {name: file for one in operations() for name, file in one.files.items()}


def needless() -> tuple[Needless, ...]:
    """Return the syncs that no model misses."""
    return tuple(each for one in operations() for each in one.needless)
