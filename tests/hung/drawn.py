"""Which cases a run takes: all at full size; else some, drawn by the seed of the run.

Not here: how many tests of a claim that makes (``tests.proof.claims``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from typing import TypeVar

from tests.kafka.rotation import seed_of
from tests.proof.sizes import SIZE, Size

_T = TypeVar("_T")


def drawn(cases: Sequence[_T], count: int) -> Sequence[_T]:
    """Return the cases of this run, in their order.

    Args:
        cases: All of them.
        count: How many a run takes that is not at full size.
    """
    if SIZE is Size.FULL:
        return cases
    numbers = sorted(Random(seed_of(os.environ)).sample(range(len(cases)), count))
    return [cases[number] for number in numbers]
