"""Run every benchmark and add what was found to ``RESULTS.md``: ``python -m benchmarks.run [PART …] [--fleet N …]``.

Each part is written down as soon as it is measured: together they take the better part of an hour.
"""

from __future__ import annotations

import argparse
import datetime
import os
from collections.abc import Callable, Mapping, Sequence

from benchmarks import (
    before,
    daemon,
    fleet,
    frozen,
    interfaces,
    inventory,
    locks,
    metadata,
    purge,
    relayout,
    stage,
    staged_ls,
)
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

_Part = Callable[[argparse.Namespace], str]
"""Measures and returns Markdown tables."""


def _looks(given: argparse.Namespace) -> str:
    return show([*inventory.measure(given.rounds), *help_text.measure(), *staged_ls.measure()])


def _before(given: argparse.Namespace) -> str:
    return show(before.measure(given.before, default_dir(), before.PARTITIONS, given.rounds))


def _changes(given: argparse.Namespace) -> str:
    """Measure what changes a disk, on each file system."""
    home, rounds = default_dir(), given.rounds
    dirs = dirs_or_images(given.dir, home)

    def measure(path: str) -> list[Row]:
        return [
            *relayout.measure(path, rounds=rounds),
            *stage.measure(path, rounds=rounds),
            *locks.measure(path),
            *purge.unpaced(path, rounds=rounds),
        ]

    return show([*measured(dirs, home, measure), *measured(dirs, home, purge.beside_neighbour, purge.DISCARD)])


PARTS: Mapping[str, _Part] = {
    "looks": _looks,
    "changes": _changes,
    "before": _before,
    "daemon": lambda given: daemon.measure(default_dir()),
    "interfaces": lambda given: interfaces.measure(default_dir(), rounds=max(given.rounds, interfaces.ROUNDS)),
    "frozen": lambda given: frozen.table(default_dir()),
    "metadata": lambda given: metadata.measure(given.metadata, given.rounds),
    "fleet": lambda given: fleet.table(given.fleet),
}


def _add(text: str) -> None:
    new = not os.path.exists(RESULTS)
    with open(RESULTS, "a", encoding="utf-8") as file:
        file.write((_HEAD if new else "") + text)
    print(text, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, append, part by part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", metavar="PART", nargs="*", help=f"{', '.join(PARTS)}; none: all of them")
    parser.add_argument("--fleet", metavar="N", type=int, nargs="+", default=[1_000_000], help="sizes")
    parser.add_argument("--metadata", metavar="N", type=int, default=RECORDS, help="records of the metadata log")
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
    given = parser.parse_args(argv)
    unknown = sorted(set(given.parts) - set(PARTS))
    if unknown:
        parser.error(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    if "before" in given.parts and not given.before:
        parser.error("part before needs --before REVISION")
    wanted = given.parts or [name for name in PARTS if name != "before" or given.before]
    now = datetime.datetime.now(datetime.UTC)
    _add(f"\n## {now:%Y-%m-%d %H:%M} UTC\n\n{machine()}; load {os.getloadavg()[0]:.1f} at the start\n")
    for name in wanted:
        _add(f"\n{PARTS[name](given)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
