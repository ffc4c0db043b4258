"""Which stock releases a run starts: one per scenario, rotated by a seed; all of them in ``make proof``.

Run as a program it prints the seed and the releases of every scenario: ``python -m tests.kafka.rotation``, with
``--releases`` only which releases are needed.

Spec: design §9, row "real Kafka"; ``docs/architecture.md``, "Two tiers of proof".
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from tests.kafka.fetch import RELEASES
from tests.proof.sizes import SIZE, Size

BROKERS: Final = ("3.6.2", "3.8.1", "3.9.2", "4.2.1", "4.3.1")
"""The last that erases what it does not know, early JBOD, the last of 3.x, two of 4.x."""
SEED_VARIABLE: Final = "LOGDIRD_CI_SEED"
SCENARIOS: Final[Mapping[str, tuple[str, ...]]] = {
    "rig": BROKERS,
    "cluster": RELEASES,
    "inventory": ("3.6.2", "3.8.1", "3.9.2", "4.3.1"),
    "capture": BROKERS,
    "both captured": RELEASES,
    "layout": RELEASES,
    "recovery": RELEASES,
    "deleted": BROKERS,
    "deleted elsewhere": BROKERS,
    "last copy": BROKERS,
    "ways back": BROKERS,
    "renamed by hand": BROKERS,
    "adopted": BROKERS,
    "both adopted": BROKERS,
    "daemon": RELEASES,
    "client": BROKERS,
    "guided": BROKERS,
    "daemon soak": RELEASES,
    "daemon starts": RELEASES,
    "live cluster": RELEASES,
    "daemon undo": RELEASES,
    "operations": RELEASES,
    "gate": BROKERS,
}
"""The releases each scenario runs on, oldest first. The scenario's place decides which one a seed gives it."""


def seed_of(environ: Mapping[str, str]) -> int:
    """Return the seed the environment asks for, else 0; ``.ci/run`` sets it to the date of the commit."""
    return int(environ.get(SEED_VARIABLE, "0"))


def chosen(scenario: str, size: Size, seed: int) -> tuple[str, ...]:
    """Return the releases of a scenario: all at full size, else one.

    Raises:
        KeyError: There is no such scenario.
    """
    every = SCENARIOS[scenario]
    return every if size is Size.FULL else (every[(seed + list(SCENARIOS).index(scenario)) % len(every)],)


def releases_of(scenario: str) -> tuple[str, ...]:
    """Return the releases that this run tries a scenario on."""
    return chosen(scenario, SIZE, seed_of(os.environ))


def how() -> str:
    """Return by what rule this run takes its releases, and the variable that takes the same again."""
    return "all of them" if SIZE is Size.FULL else f"one per scenario: {SEED_VARIABLE}={seed_of(os.environ)}"


def main(argv: Sequence[str]) -> int:
    """Print the rotation, or with ``--releases`` the releases it needs, each once."""
    if "--releases" in argv:
        print(*sorted({*RELEASES, *(release for name in SCENARIOS for release in releases_of(name))}), sep="\n")
    else:
        width = max(map(len, SCENARIOS))
        print(f"stock releases, {how()}")
        print(*(f"{name:<{width}}  {' '.join(releases_of(name))}" for name in SCENARIOS), sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
