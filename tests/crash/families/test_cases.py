"""Cases of every family, cut at every call under every model; a part of them with their recovery cut as well.

``make crash`` takes all of them; what is here is a taste of that, and what needs more than it takes.
"""

from __future__ import annotations

import pytest

from tests.crash.__main__ import results, unsynced_renames
from tests.crash.families import CASES, FAMILIES, case
from tests.crash.recording import record
from tests.proof.claims import FAMILY_CRASHES, FAMILY_CRASHES_WITHIN
from tests.proof.plugin import Recorder
from tests.proof.sizes import SIZE, Size

LONG = ("init", "layout of three", "batch to ids", "capture, then removed")
"""Whose recovery is not cut off as well."""
_LONGER = (*LONG, "layout over two disks, then back", "way back from final")
"""What a taste leaves out, but for one of each."""
# A removal done again after a kill does not make durable once more what the first had unlinked. Where entries of one
# directory may survive out of order, the word that the root is whole may come back: not so on ext4, XFS and btrfs.
REORDERED = "uninstall"


def _taken(family: str) -> tuple[str, ...]:
    """Return the cases this size of run takes."""
    names = tuple(FAMILIES[family])
    if SIZE is not Size.SAMPLE:
        return names
    return tuple(
        name for name in names if "taken up" not in name and (name == "init inside" or not name.startswith(_LONGER))
    )


@pytest.mark.parametrize("family", FAMILIES)
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
    names = [name for name in FAMILIES[family] if not name.startswith((*LONG, "bar, taken up", "lifting, taken up"))]
    if SIZE is not Size.FULL and family == "layout":
        names = names[1::3]  # half of all the time goes there
    for name in names:
        (result,) = results([name], "KJB" if name.startswith(REORDERED) else "KJBP", 2)
        assert not result.violating, str(result)
        inner += result.inner
    record_proof(FAMILY_CRASHES_WITHIN, {"states": inner})


@pytest.mark.parametrize("family", FAMILIES)
def test_both_parents_of_a_rename_are_durable_before_it_is_said(family: str) -> None:
    for name in _taken(family):
        one = case(name)
        recording = record(one.start.world(), one.run)
        assert not recording.error, (name, recording.error)
        assert unsynced_renames(recording, one.quiet) == [], name


@pytest.mark.parametrize("name", CASES)
def test_a_case_does_something_and_says_so(name: str) -> None:
    one = case(name)
    recording = record(one.start.world(), one.run)
    assert not recording.error, recording.error
    assert sum(made.is_change for made in recording.records) >= 1
    assert one.reaches <= set(recording.acks.said)
    if "taken up at call" in name:
        whole = record(one.start.world(), lambda host, _: one.recover(host)).records
        assert int(name.rpartition(" ")[2]) < len(whole), "nothing is killed"


def test_no_case_has_the_name_of_another() -> None:
    assert len(CASES) == sum(map(len, FAMILIES.values()))
