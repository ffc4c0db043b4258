"""Every sync of ``logdir.disk``, and what its operations say of it: which cases must miss it, or why it need not be.

Spec: reliability §4.4, §7 row 3.
"""

from __future__ import annotations

from functools import cache

from tests.crash.seeded.patched import ROOT, LeftOut, sync_calls
from tests.operations import registry
from tests.operations.operation import REPLICA, Needless, Syncs
from tests.operations.source import NoTargetError, Tree, file_of

_RING = "logdir/disk"
_CALLS_THEMSELVES = frozenset({"host", "calls"})


def of(name: str) -> tuple[LeftOut, ...]:
    """Return the syncs of a function, or of a whole module.

    Raises:
        NoTargetError: There is none.
    """
    found = tuple(
        call for call in sync_calls(file_of(name)) if name in (call.function, call.function.partition(":")[0])
    )
    if not found:
        raise NoTargetError(f"{name} syncs nothing")
    return found


@cache
def every() -> tuple[LeftOut, ...]:
    """Return every sync of the ring but those in the calls themselves."""
    paths = [path for path in sorted((ROOT / _RING).rglob("*.py")) if path.stem not in _CALLS_THEMSELVES]
    return tuple(call for path in paths for call in sync_calls(str(path.relative_to(ROOT))))


def watched(call: LeftOut) -> tuple[Syncs, ...]:
    """Return which cases must miss a sync: those of its function, else those of its module."""
    for name in (call.function, call.function.partition(":")[0]):
        if found := tuple(each for _, each in registry.syncs() if each.of == name):
            return found
    return ()


def arguments(call: LeftOut) -> tuple[str, ...]:
    """Return the arguments of ``tests.crash`` that try all of these cases."""
    found = watched(call)
    names = dict.fromkeys(name for each in found for name in each.cases)
    return (*names, "--models", "KJBP", "--depth", str(max(each.depth for each in found)))


def is_of_a_replica(call: LeftOut) -> bool:
    """Whether operations on one replica or file must miss it, rather than families of their own."""
    mine = watched(call)
    return any(one.family == REPLICA and each in mine for one, each in registry.syncs())


def is_meant(one: Needless, call: LeftOut) -> bool:
    """Whether this sync is the one that need not be missed."""
    if one.function != call.function:
        return False
    tree = Tree((ROOT / call.file).read_text("utf-8"))
    return getattr(one.call.find(tree.find(one.function), one.function), "lineno", 0) == call.line


def why_needless(call: LeftOut) -> str:
    """Return why no model need miss a sync; empty if one must."""
    return next((one.because for one in registry.needless() if is_meant(one, call)), "")
