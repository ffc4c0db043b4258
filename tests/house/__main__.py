"""``python -m tests.house``: print what breaks a rule of the house; exit status 1 if anything does."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.house.rules import findings
from tests.house.source import read


def main() -> int:
    lines = list(findings(read(Path(__file__).resolve().parents[2])))
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
