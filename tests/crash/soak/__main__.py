"""``python -m tests.crash.soak``: kill a process thousands of times; print at which steps that was, and a last line.

Spec: reliability §4.4 (L4), §7 row 4.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.crash.soak.rounds import Kill, Soak, SoakError
from tests.logdir.disk.rescue import quick_path


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("kills", nargs="?", type=int, default=200, help="how many; %(default)s by default")
    parser.add_argument("--seed", type=int, default=1, help="%(default)s by default")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="the schedule a failure wrote")
    asked = parser.parse_args(arguments)
    kills, seed, schedule = asked.kills, asked.seed, []
    if asked.replay:
        said = json.loads(asked.replay.read_text())
        seed, schedule = said["seed"], [Kill(*kill) for kill in said["kills"]]
        kills = len(schedule)
    with tempfile.TemporaryDirectory() as made, quick_path(Path(made)) as base:
        try:
            report = Soak(base, seed, schedule).run(kills)
        except SoakError as fault:
            print(fault)
            return 1
    print(report.table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
