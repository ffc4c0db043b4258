"""Cases of every family, cut at every call under every model; a part of them with their recovery cut as well.

``make crash`` takes all of them; what is here is a taste of that, and what needs more than it takes.
"""

from __future__ import annotations

import pytest

from tests.crash.__main__ import results, unsynced_renames
from tests.crash.recording import record
from tests.operations.operation import REPLICA, Trait
from tests.operations.registry import case, families, having
from tests.proof.claims import FAMILY_CRASHES, FAMILY_CRASHES_WITHIN
from tests.proof.plugin import Recorder
from tests.proof.sizes import SIZE, Size

FAMILIES = tuple(family for family in families() if family != REPLICA)
_LONG = frozenset(("layout", "rescue"))
"""Families with the most states: CI and make proof have them, make test the others."""
_MANY = 40
"""Of a family with more cases than that, other runs than the largest take a third where recovery is cut off as well."""


def _taken(family: str) -> tuple[str, ...]:
    """Return the cases this size of run takes."""
    left = having(Trait.TAKEN_UP, Trait.LONG) if SIZE is Size.SAMPLE else frozenset()
    return tuple(name for name in families()[family] if name not in left)


@pytest.mark.parametrize(
    "family", [pytest.param(one, marks=pytest.mark.slow) if one in _LONG else one for one in FAMILIES]
)
def test_every_case_survives_every_crash(family: str, record_proof: Recorder) -> None:
    distinct = 0
    for result in results(_taken(family)):
        assert not result.violating, str(result)
        distinct += result.distinct
    record_proof(FAMILY_CRASHES, {"cases": len(_taken(family)), "distinct states": distinct})


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_survives_a_crash_within_its_recovery(family: str, record_proof: Recorder) -> None:
    inner = 0
    # Those that are long have thousands of states whose recovery is the whole of it again: the others show the same.
    names = [name for name in families()[family] if name not in having(Trait.LONG_RECOVERY)]
    if SIZE is not Size.FULL and len(names) > _MANY:
        names = names[1::3]
    for name in names:
        (result,) = results([name], "KJB" if name in having(Trait.REORDERED) else "KJBP", 2)
        assert not result.violating, str(result)
        inner += result.inner
    record_proof(FAMILY_CRASHES_WITHIN, {"states": inner})


@pytest.mark.parametrize("family", FAMILIES)
def test_both_parents_of_a_rename_are_durable_before_it_is_said(family: str) -> None:
    for name in _taken(family):
        one = case(name)
        recording = record(one.start.world(), one.do)
        assert not recording.error, (name, recording.error)
        assert unsynced_renames(recording, one.quiet) == [], name


@pytest.mark.parametrize("name", [name for family in FAMILIES for name in families()[family]])
def test_a_case_does_something_and_says_so(name: str) -> None:
    one = case(name)
    recording = record(one.start.world(), one.do)
    assert not recording.error, recording.error
    assert sum(made.is_change for made in recording.records) >= 1
    assert one.reaches <= set(recording.acks.said)
    if name in having(Trait.TAKEN_UP):
        whole = record(one.start.world(), lambda host, _: one.recovery(host)).records
        assert int(name.rpartition(" ")[2]) < len(whole), "nothing is killed"
