"""``python -m tests.kafka.soak``: kill the daemon, its workers and a stock broker many times; print a histogram.

Spec: design §3.3, §5.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.kafka.fetch import RELEASES, cache_dir, fetch
from tests.kafka.rig import Rig
from tests.kafka.soak.rounds import Soak
from tests.kafka.soak.world import SoakError


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("kills", nargs="?", type=int, default=15, help="how many; %(default)s by default")
    parser.add_argument("--seed", type=int, default=0, help="%(default)s by default")
    parser.add_argument("--release", default=RELEASES[-1], help="of the stock broker; %(default)s by default")
    asked = parser.parse_args(arguments)
    cache = cache_dir(os.environ)
    libs, client_libs = fetch(asked.release, cache), fetch(RELEASES[-1], cache)
    with tempfile.TemporaryDirectory(prefix="logdird-kafka-") as base:
        root = Path(base) / "soak"
        with Rig(version=asked.release, libs=libs, client_libs=client_libs, cache=cache, root=root) as rig:
            soak = Soak(rig, asked.seed)
            try:
                soak.run(asked.kills)
            except SoakError as fault:
                print(fault)
            else:
                return _report(soak)
            finally:
                print(soak.report.histogram())
    return 1


def _report(soak: Soak) -> int:
    print(f"{soak.done()}, 0 violations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
