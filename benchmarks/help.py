"""``logdirctl --help`` against a bare interpreter, from an environment of its own.

Spec: design §10 (start of a command).
"""

from __future__ import annotations

import os

from benchmarks.measure import Row, in_turn, installed, rows_of, show

_ROUNDS = 31
"""Each is a hundredth of a second; more of them cost nothing."""


def measure() -> list[Row]:
    """Install, and run both in turn."""
    with installed() as bin_dir:
        commands = {
            "python -I -c pass": [os.path.join(bin_dir, "python"), "-I", "-c", "pass"],
            "logdirctl --help": [os.path.join(bin_dir, "logdirctl"), "--help"],
        }
        medians = in_turn(commands, _ROUNDS)
        return rows_of(medians, {"logdirctl --help": "python -I -c pass"}, {"logdirctl --help": 3.0})


if __name__ == "__main__":
    print(show(measure()))
