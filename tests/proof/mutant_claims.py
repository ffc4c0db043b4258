"""What the proof claims of the tests themselves: which changes of the source they miss.

Not here: the list of all claims (``claims``).
"""

from __future__ import annotations

from typing import Final

from tests.proof.claim import Claim
from tests.proof.sizes import Sizes

SOWN_BUGS: Final = Claim(
    key="sown-bugs",
    text="every bug that was once not missed by the tests, sown again, fails the test that forbids it",
    where=("tests/mutants/test_bugs.py::test_no_bug_that_was_sown_is_missed",),
    sizes={"bugs": Sizes(full=36, ci=36, sample=1)},
)
MUTANTS: Final = Claim(
    key="mutants",
    text="of changes drawn over decide, disk and what carries them out nine in ten are caught, the others explained",
    where=("tests/mutants/test_mutants.py::test_no_change_that_was_caught_is_missed",),
    # All that the record has, and it may lose some with the source that they change.
    sizes={"mutants": Sizes(full=1_100, ci=60, sample=1, ci_part=20)},
)
