"""Every bug that was once not missed is: sown again, the test that forbids it fails."""

from __future__ import annotations

import pytest

from tests.mutants.bugs import BUGS, Bug, text
from tests.mutants.runner import Asked, ask_all
from tests.proof.mutant_claims import SOWN_BUGS
from tests.proof.plugin import Recorder
from tests.proof.sizes import SIZE, Size


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_what_a_bug_changes_is_there_once(bug: Bug) -> None:
    assert text(bug)


def test_the_proof_asks_for_all_of_them() -> None:
    assert SOWN_BUGS.sizes["bugs"].at(Size.FULL) == len(BUGS)


@pytest.mark.timeout(3000)
def test_no_bug_that_was_sown_is_missed(record_proof: Recorder) -> None:
    """All of them in ``make proof`` and CI; in ``make test`` one, whose test is quick."""
    taken = BUGS[:1] if SIZE is Size.SAMPLE else BUGS
    missed = []

    def heard(asked: Asked, end: str, test: str) -> None:
        if end != "caught" or not test.startswith(asked.tests[0]):
            missed.append((asked.name, end, test))

    ask_all([Asked(bug.name, bug.file, text(bug), (bug.test,)) for bug in taken], heard)
    assert missed == []
    record_proof(SOWN_BUGS, {"bugs": len(taken)})
