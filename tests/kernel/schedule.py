"""Which power cuts a run makes: seeded, every operation and as many of its calls as there is room for.

Spec: reliability §4.4 (L2: 300 sampled, every call on three file systems at night).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tests.kernel.cuts import METHODS, NEIGHBOUR, Cut
from tests.kernel.fullness import HOWS
from tests.kernel.operations import kernel_operation, names
from tests.operations.operation import Trait
from tests.operations.registry import having

SEED = 516
_FIRST = 0.5
"""How often the first way to cut is taken."""
_AGAIN = 0.25
_COUNTING = ("ext4", "xfs")
"""What has an end of inodes."""
_RECOVERY = 6
"""Most recoveries make fewer calls."""


END = 1 << 20
"""More calls than any operation makes."""


def every_call() -> dict[str, list[int]]:
    """Return the numbers of calls after which each operation can be cut."""
    return {name: list(range(kernel_operation(name).calls + 1)) for name in names()}


def cuts(count: int, file_systems: Sequence[str], seed: int = SEED) -> Iterator[Cut]:
    """Yield so many cuts, none twice, or all that there are.

    Operations take turns, each with a call it was not cut at before as long as there is one, and so do file systems;
    of the ways to cut one, the first is taken half of the time. A quarter of the recoveries are cut, too.

    Args:
        count: How many at most.
        file_systems: On which.
        seed: Of the order.
    """
    rng = random.Random(seed)
    left: dict[str, list[tuple[int, str]]] = {}
    for name, calls in every_call().items():
        # Every call once before any is cut a second time, on another file system.
        rng.shuffle(calls)
        kinds = list(file_systems)
        rng.shuffle(kinds)
        left[name] = [
            (after, kinds[(at + turn) % len(kinds)]) for turn in range(len(kinds)) for at, after in enumerate(calls)
        ]
    made = 0
    while left and made < count:
        turn = sorted(left)
        rng.shuffle(turn)
        for name in turn[: count - made]:
            after, kind = left[name].pop(0)
            first, *others = METHODS[kind]
            method = first if rng.random() < _FIRST else rng.choice(others)
            again = rng.randrange(_RECOVERY) if rng.random() < _AGAIN else None
            yield Cut(kind, method, name, after, again)
            made += 1
            if not left[name]:
                del left[name]


def full_cuts(count: int, file_systems: Sequence[str], seed: int = SEED) -> Iterator[Cut]:
    """Yield so many runs on full disks, none twice, or all that there are: half come to their end, half are cut.

    Args:
        count: How many at most.
        file_systems: On which.
        seed: Of the choice.
    """
    rng = random.Random(f"{seed} full")
    kinds = [(kind, how) for kind in file_systems for how in HOWS if "inodes" not in how or kind in _COUNTING]
    filled = [name for name in names() if name not in having(Trait.RESERVE)]
    rng.shuffle(filled)
    todo = []
    for turn in range(len(kinds)):
        todo += [(name, *kinds[(at + turn) % len(kinds)]) for at, name in enumerate(filled)]
    for number, (name, kind, how) in enumerate(todo[:count]):
        # A neighbour has no room for a file of its own.
        method = rng.choice([one for one in METHODS[kind] if one != NEIGHBOUR])
        after = END if number % 2 else rng.randrange(kernel_operation(name).calls + 1)
        yield Cut(kind, method, name, after, full=how)
