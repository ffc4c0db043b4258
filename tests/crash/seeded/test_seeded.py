"""The enumeration catches what it must: bugs seeded into a copy of the source, and every sync left out of it.

Here those of operations on one replica or one file; ``test_families`` has the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

from tests.crash.seeded.patched import LeftOut, caught_by, copy
from tests.crash.seeded.syncs import arguments, every, is_of_a_replica, why_needless
from tests.operations.operation import REPLICA
from tests.operations.registry import seeded
from tests.operations.seeded import Seeded
from tests.proof.claims import SYNCS
from tests.proof.plugin import Recorder

_T = TypeVar("_T")
BUGS = tuple(bug for one, bug in seeded() if one.family == REPLICA and bug.tried)
HERE = tuple(call for call in every() if is_of_a_replica(call))


def _tasted(items: Iterable[_T], name: Callable[[_T], str]) -> list[ParameterSet]:
    """Return all of them as parameters: a few for every run, the others, being slow, for those that take the time."""
    return [
        pytest.param(one, id=name(one), marks=() if number % 8 == 0 else pytest.mark.slow)
        for number, one in enumerate(items)
    ]


@pytest.mark.parametrize("bug", _tasted(BUGS, lambda bug: bug.name))
def test_a_bug_that_was_sown_is_caught(bug: Seeded, tmp_path: Path) -> None:
    copy(tmp_path, bug.changes)
    assert frozenset(caught_by(tmp_path, bug.tried)) == bug.caught_by


@pytest.mark.parametrize("call", _tasted(HERE, lambda call: call.shown))
def test_a_sync_left_out_is_caught_or_written_down(call: LeftOut, tmp_path: Path, record_proof: Recorder) -> None:
    copy(tmp_path, left_out=call)
    found = caught_by(tmp_path, arguments(call))
    assert bool(found) != bool(why_needless(call)), "nothing misses it, or it is missed after all"
    how = "written down" if not found else "missed by a model" if set(found) - {"order"} else "missed by the order"
    record_proof(SYNCS, {"syncs": 1, how: 1})


def test_a_copy_without_a_change_passes(tmp_path: Path) -> None:
    copy(tmp_path)
    assert caught_by(tmp_path, ("stage 1", "hold", "--models", "KJBP")) == ()
