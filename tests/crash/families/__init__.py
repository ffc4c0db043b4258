"""Operations with a recovery and a judge of their own: work roots, capture and adoption, layout and bar, ids, copies.

Each family is a table of names to what makes a ``Case``; all of them together are crashed by ``python -m tests.crash``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from tests.crash.families.case import Case
from tests.crash.families.copies import COPIES
from tests.crash.families.gives import GIVES
from tests.crash.families.late import LATE
from tests.crash.families.layout import LAYOUT
from tests.crash.families.reconcile import RECONCILE
from tests.crash.families.records import RECORDS
from tests.crash.families.rescue import RESCUE
from tests.crash.families.roots import ROOTS

FAMILIES: dict[str, dict[str, Callable[[str], Case]]] = {
    "roots": ROOTS,
    "rescue": RESCUE,
    "layout": LAYOUT,
    "records": RECORDS,
    "reconcile": RECONCILE,
    "gives": GIVES,
    "copies": COPIES,
    "late": LATE,
}
"""Family to its cases."""
CASES: dict[str, Callable[[str], Case]] = {name: make for cases in FAMILIES.values() for name, make in cases.items()}
"""Name to what makes it."""


@functools.cache
def case(name: str) -> Case:
    """Return the case of this name."""
    return CASES[name](name)
