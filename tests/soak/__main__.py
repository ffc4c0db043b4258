"""``python -m tests.soak``: kill commands thousands of times on three log dirs; print a table, and a last line.

Spec: design §9; reliability §7 row 4.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.soak.rounds import EPISODE, Soak, SoakError, seeds


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("rounds", nargs="?", type=int, default=200, help="how many; %(default)s by default")
    parser.add_argument("--seed", type=int, default=1, help="%(default)s by default")
    parser.add_argument("--episode", metavar="SEED.NUMBER", help="only this one, as a violation names it")
    parser.add_argument("--keep", action="store_true", help="leave the log dirs of a violation where they are")
    asked = parser.parse_args(arguments)
    episodes = [asked.episode] if asked.episode else seeds(asked.seed, asked.rounds)
    rounds = EPISODE if asked.episode else asked.rounds
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="soak-", dir=shared) as base:
        try:
            print(Soak(Path(base)).run(episodes, rounds).table())
        except SoakError as fault:
            print(fault)
            if asked.keep:
                print(f"kept: {base}", flush=True)
                os._exit(1)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
