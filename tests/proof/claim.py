"""What a claim is: its words, the tests that show it, and how much of it is the whole.

Not here: the claims (``claims``, ``metadata_claims``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.proof.sizes import SIZE, Sizes


def tests_of(file: str, *names: str) -> tuple[str, ...]:
    """Return node ids of tests of one file; ``names`` lack their ``test_``."""
    return tuple(f"{file}::test_{name}" for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One line of the proof."""

    key: str
    text: str
    """Short; a line of the page."""
    where: tuple[str, ...]
    """Node ids of test functions, without parameters. All must have run and passed."""
    sizes: Mapping[str, Sizes] = field(default_factory=dict)
    """Label of what is counted to how much of it each size of run takes; other labels are counted as they come."""
    counted: str = ""
    """Label under which each passed test counts one, where the tests record nothing themselves."""
    needs: str = ""
    """What a machine may lack; then the claim is listed as not run."""

    def count(self, label: str) -> int:
        """Return how many of ``label`` this run takes."""
        return self.sizes[label].at(SIZE)

    def is_shown_by(self, test: str) -> bool:
        """Tell whether the node id is one of this claim's tests, with parameters or without."""
        return test.partition("[")[0] in self.where
