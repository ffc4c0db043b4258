"""Run every benchmark and add what was found to ``RESULTS.md``: ``python -m benchmarks.run [--fleet N …]``."""

from __future__ import annotations

import argparse
import datetime
import os
import platform

from benchmarks import fleet, inventory, relayout, stage
from benchmarks import help as help_text
from benchmarks.measure import HOME, ROUNDS, show
from benchmarks.unsynced import default_dir

RESULTS = os.path.join(HOME, "benchmarks", "RESULTS.md")
_HEAD = """\
# Results

Ratios of medians against a baseline measured in the same run (`python -m benchmarks.run`). Absolute figures say
something about one machine on one day only.
"""


def main() -> int:
    """Measure, print, append."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleet", metavar="N", type=int, nargs="*", default=[1_000_000], help="sizes; none: left out")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--dir", default=default_dir(), help="a directory of the file system that changes are made on")
    arguments = parser.parse_args()
    now = datetime.datetime.now(datetime.UTC)
    version = platform.python_version()
    parts = [
        f"\n## {now:%Y-%m-%d %H:%M} UTC\n",
        f"CPython {version}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f} at the start\n",
        show([*inventory.measure(arguments.rounds), *help_text.measure()]),
        "",
        show(
            [
                *relayout.measure(arguments.dir, rounds=arguments.rounds),
                *stage.measure(arguments.dir, rounds=arguments.rounds),
            ]
        ),
    ]
    if arguments.fleet:
        parts += ["", fleet.table(arguments.fleet)]
    text = "\n".join(parts) + "\n"
    new = not os.path.exists(RESULTS)
    with open(RESULTS, "a", encoding="utf-8") as file:
        file.write((_HEAD if new else "") + text)
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
