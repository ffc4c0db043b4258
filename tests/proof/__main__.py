"""Judges the runs in a folder: ``python -m tests.proof FOLDER`` in CI, with ``-o docs/proof.md`` after a full run.

Prints a line a claim. Exit 1, a line a reason, and nothing written if the runs are no proof: a test failed, a claim
was not shown, too little of one was run. ``python -m tests.proof --larger`` prints the tests of which ``make test`` has
only a taste and CI runs more, if they need nothing that a machine may lack.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.proof.claims import CLAIMS
from tests.proof.page import circumstances, line, render
from tests.proof.records import forgive, merge, read_runs, refusals, tally
from tests.proof.sizes import Size


def larger_in_ci() -> list[str]:
    """Return node ids of the tests that CI runs at a larger size than ``make test``; not of claims with needs."""
    tasted = [
        claim
        for claim in CLAIMS
        if not claim.needs and any(sizes.at(Size.SAMPLE) < sizes.at(Size.CI) for sizes in claim.sizes.values())
    ]
    return sorted({test for claim in tasted for test in claim.where})


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof")
    parser.add_argument("folder", type=Path, nargs="?", help="where the runs are, as LOGDIRD_PROOF_OUT said")
    parser.add_argument("--larger", action="store_true", help="print the tests CI runs at a larger size than make test")
    parser.add_argument("-o", dest="page", type=Path, help="ask for everything at full size, and write this page")
    parser.add_argument(
        "--mended",
        action="append",
        default=[],
        metavar="TEST",
        help="failed in one run and, mended, passed in a later one: what counts, and the page says so",
    )
    asked = parser.parse_args(arguments)
    if asked.larger:
        print("\n".join(larger_in_ci()))
        return 0
    if asked.folder is None:
        parser.error("expected a folder of runs")
    try:
        runs = forgive(read_runs(asked.folder), asked.mended)
    except ValueError as error:
        print(f"no proof: {error}", file=sys.stderr)
        return 1
    outcomes = merge(runs)
    tallies = [tally(claim, outcomes) for claim in CLAIMS]
    for one in tallies:
        print(line(one))
    reasons = refusals(tallies, runs, full=asked.page is not None)
    for reason in reasons:
        print(f"no proof: {reason}", file=sys.stderr)
    if reasons:
        return 1
    if asked.page is not None:
        made = asked.page.with_name(f".{asked.page.name}.new")
        made.write_text(render(tallies, circumstances(datetime.now(UTC)), asked.mended), encoding="utf-8")
        made.replace(asked.page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
