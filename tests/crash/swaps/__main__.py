"""``python -m tests.crash.swaps``: attack; print every escape, and a last line."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.crash.swaps.assault import attack
from tests.logdir.disk.rescue import quick_path


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.swaps", description=__doc__.partition(":")[2])
    parser.add_argument("operations", nargs="?", type=int, default=2000, help="how many; %(default)s by default")
    parser.add_argument("--seed", type=int, default=1, help="%(default)s by default")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made, quick_path(Path(made)) as base:
        report = attack(base, asked.operations, asked.seed, [base / "sentinel", Path(made) / "sentinel"])
    print("\n".join([*dict.fromkeys(report.escapes), *report.faults[:3]]))
    print("done:", dict(report.done), "refused:", dict(report.refused))
    print(report.totals())
    return bool(report.escapes or report.faults)


if __name__ == "__main__":
    sys.exit(main())
