"""Runs the changes: ``python -m tests.mutants`` tries all that are drawn, and writes the record.

``--only TEXT`` takes those whose name holds a text, ``--survivors`` those that survived before, ``--new`` those of
which nothing is written down, ``--workers N`` so many side by side. ``--quick`` leaves out
the tests that cut the power. ``--list`` only prints the survivors of the record.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.mutants import record
from tests.mutants.record import Line
from tests.mutants.runner import WORKERS, Tried, rounds_of, survey, surveyed, try_all
from tests.mutants.sown import Mutant, drawn, rank


def main(argv: Sequence[str] | None = None) -> int:
    """Run; return the exit status: 1 if something survived of which the record says no reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--only", default="", help="names that hold this text")
    parser.add_argument("--survivors", action="store_true", help="only those that survived before")
    parser.add_argument("--new", action="store_true", help="only those of which the record says nothing")
    parser.add_argument("--list", action="store_true", help="print the survivors of the record, and run nothing")
    parser.add_argument("--survey", type=Path, metavar="FOLDER", help="a survey that was kept")
    parser.add_argument("--quick", action="store_true", help="without the tests that cut the power")
    parser.add_argument("--most", type=float, default=60.0, metavar="S", help="seconds of tests for a change")
    parser.add_argument("--workers", type=int, default=WORKERS)
    asked = parser.parse_args(argv)
    known = record.read()
    chosen = {one.key: one for one in drawn()}
    # Of what is gone, or drawn no more, nothing stays written down.
    lines = {key: line for key, line in known.items() if key in chosen and line.is_of(chosen[key])}
    if asked.list:
        return _listed(list(lines.values()))
    todo = [
        one
        for one in chosen.values()
        if asked.only in "/".join(map(str, one.key))
        and not (asked.survivors and (one.key not in lines or lines[one.key].killed_by))
        and not (asked.new and one.key in lines)
    ]
    # What guards data first, the others in the order of their names' digests: what is cut off is a sample, too.
    todo.sort(key=lambda one: (not one.is_guard, rank(one)))
    with tempfile.TemporaryDirectory() as folder:
        reached = surveyed(asked.survey) if asked.survey else survey(Path(folder), asked.workers)
    done = 0

    def rounds(mutant: Mutant) -> Sequence[Sequence[str]]:
        line = lines.get(mutant.key)
        before = [line.killed_by] if line and line.killed_by and line.is_by_test else []
        *tests, power_cuts = rounds_of(mutant, reached, asked.most)
        return before, *tests, [] if asked.quick else power_cuts

    def heard(tried: Tried) -> None:
        nonlocal done
        done += 1
        mutant = tried.mutant
        former = lines.get(mutant.key)
        if tried.end != "unknown":
            reason = former.reason if former and tried.end == "survived" else None
            lines[mutant.key] = Line(*mutant.key, mutant.was, tried.test or None, reason)
            record.write(lines.values())
        name = "/".join(map(str, mutant.key))
        print(f"{done}/{len(todo)} {tried.end} {tried.seconds:.1f} s {name}: {tried.test}", flush=True)

    try_all(todo, rounds, heard, seconds_of=lambda test: reached.seconds.get(test, 60.0), workers=asked.workers)
    return _listed(list(lines.values()))


def _listed(lines: Sequence[Line]) -> int:
    left = [line for line in lines if line.killed_by is None]
    for line in left:
        print(f"survived: {'/'.join(map(str, line.key))}: {line.was}: {line.reason or 'NO REASON'}")
    killed = len(lines) - len(left)
    share = 100 * killed / max(1, len(lines))
    print(f"mutants: {len(lines)} tried, {killed} caught ({share:.1f} %), {len(left)} survived")
    return 1 if any(line.reason is None for line in left) else 0


if __name__ == "__main__":
    sys.exit(main())
