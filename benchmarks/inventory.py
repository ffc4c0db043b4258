"""``logdirctl inventory`` against ``find -printf`` of the same trees, installed as a user has it.

Spec: design §10, rows 2 and 3.
"""

from __future__ import annotations

import os
import sys
import tempfile

from benchmarks.measure import ROUNDS, Row, can_drop_caches, drop_caches, in_turn, installed, rows_of, show
from benchmarks.trees import FILES, PARTITIONS, make_log_dir

_PRINT = ["-printf", "%p %s %T@\n"]
_BASELINES = {"table": "find", "--json": "find", "-o DIR": "find", "--exact": "find", "two disks": "find of both"}
_CPU_BUDGETS = {"table": 2.2, "--json": 2.2, "-o DIR": 2.2}
_BUDGETS = {"table": 1.0, "--json": 1.0, "-o DIR": 1.0, "--exact": 1.5, "two disks": 0.65}


def measure(rounds: int = ROUNDS) -> list[Row]:
    """Make two log dirs, run every form in turn, warm and, as root, cold."""
    with tempfile.TemporaryDirectory(prefix="logdird-trees-") as work, installed() as bin_dir:
        one, two = os.path.join(work, "d1"), os.path.join(work, "d2")
        make_log_dir(one, disk=1)
        make_log_dir(two, disk=2)
        ours = [os.path.join(bin_dir, "logdirctl"), "inventory", "--log-dirs"]
        commands = {
            "find": ["find", one, *_PRINT],
            "table": [*ours, one],
            "--json": [*ours, one, "--json"],
            "-o DIR": [*ours, one, "-o", os.path.join(work, "out")],
            "--exact": [*ours, one, "--exact"],
            "find of both": ["find", one, two, *_PRINT],
            "two disks": [*ours, f"{one},{two}", "-o", os.path.join(work, "out")],
        }
        rows = rows_of(in_turn(commands, rounds), _BASELINES, _BUDGETS, ", warm", _CPU_BUDGETS)
        if can_drop_caches():
            cold = in_turn(commands, rounds, before=drop_caches)
            # Only what the budget names cold; the rest is for information.
            rows += rows_of(cold, _BASELINES, {k: v for k, v in _BUDGETS.items() if k != "two disks"}, ", cold")
        return rows


def main() -> int:
    """Measure and print."""
    print(f"{PARTITIONS} partitions of {FILES} files, {os.cpu_count()} cores")
    print(show(measure(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
