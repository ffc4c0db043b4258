"""Run every benchmark and add what was found to ``RESULTS.md``: ``python -m benchmarks.run [--fleet N …]``."""

from __future__ import annotations

import argparse
import datetime
import os
from collections.abc import Sequence

from benchmarks import before, daemon, fleet, frozen, inventory, locks, metadata, purge, relayout, stage, staged_ls
from benchmarks import help as help_text
from benchmarks.file_systems import dirs_or_images, measured
from benchmarks.measure import HOME, ROUNDS, Row, machine, show
from benchmarks.metadata_records import RECORDS
from benchmarks.unsynced import default_dir

RESULTS = os.path.join(HOME, "benchmarks", "RESULTS.md")
_HEAD = """\
# Results

Ratios of medians against a baseline measured in the same run (`python -m benchmarks.run`). Absolute figures say
something about one machine on one day only.
"""


def _changes(dirs: Sequence[str], rounds: int) -> list[Row]:
    """Measure what changes a disk, on each file system."""
    home = default_dir()
    dirs = dirs_or_images(dirs, home)

    def measure(path: str) -> list[Row]:
        return [
            *relayout.measure(path, rounds=rounds),
            *stage.measure(path, rounds=rounds),
            *locks.measure(path),
            *purge.unpaced(path, rounds=rounds),
        ]

    return [*measured(dirs, home, measure), *measured(dirs, home, purge.beside_neighbour, purge.DISCARD)]


def main() -> int:
    """Measure, print, append."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleet", metavar="N", type=int, nargs="*", default=[1_000_000], help="sizes; none: left out")
    parser.add_argument(
        "--metadata", metavar="N", type=int, default=RECORDS, help="records of the metadata log; 0: left out"
    )
    parser.add_argument(
        "--before", metavar="REVISION", help="an earlier revision that whole commands are compared with"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--dir",
        nargs="*",
        default=[],
        help="one of each file system that changes are made on; none: of an ext4 and an XFS in images, as root",
    )
    arguments = parser.parse_args()
    now = datetime.datetime.now(datetime.UTC)
    parts = [
        f"\n## {now:%Y-%m-%d %H:%M} UTC\n",
        f"{machine()}; load {os.getloadavg()[0]:.1f} at the start\n",
        show([*inventory.measure(arguments.rounds), *help_text.measure(), *staged_ls.measure()]),
        "",
        show(_changes(arguments.dir, arguments.rounds)),
        "",
        daemon.measure(default_dir()),
        "",
        frozen.table(default_dir()),
    ]
    if arguments.before:
        rows = before.measure(arguments.before, default_dir(), before.PARTITIONS, arguments.rounds)
        parts[4:4] = [show(rows), ""]
    if arguments.metadata:
        parts += ["", metadata.measure(arguments.metadata, arguments.rounds)]
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
