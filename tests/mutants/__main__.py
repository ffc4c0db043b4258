"""Runs the changes: ``python -m tests.mutants`` tries all that are drawn, and writes the record.

``--only TEXT`` takes those whose name holds a text, ``--survivors`` those that survived before, ``--new`` those of
which nothing is written down, ``--workers N`` so many side by side. ``--quick`` leaves out
the tests that cut the power. ``--list`` only prints the survivors of the record.

What a test caught before is tried on that test alone; only where it catches it no more, and for what is new, is it
measured which tests reach the change. A survivor with a reason is not tried unless ``--survivors`` asks for it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.mutants import record
from tests.mutants.record import Line
from tests.mutants.runner import WORKERS, Asked, Tried, ask_all, rounds_of, survey, surveyed, try_all
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
        # Why nothing can catch it is written down: that is read again, not tried again.
        and (asked.survivors or one.key not in lines or not lines[one.key].reason)
    ]
    # What guards data first, the others in the order of their names' digests: what is cut off is a sample, too.
    todo.sort(key=lambda one: (not one.is_guard, rank(one)))
    run = _Run(lines, len(todo))
    left = run.again(todo, asked.workers)
    if left:
        with tempfile.TemporaryDirectory() as folder:
            reached = surveyed(asked.survey) if asked.survey else survey(Path(folder), asked.workers)

        def rounds(mutant: Mutant) -> Sequence[Sequence[str]]:
            *tests, power_cuts = rounds_of(mutant, reached, asked.most)
            return *tests, [] if asked.quick else power_cuts

        seconds = reached.seconds
        try_all(left, rounds, run.heard, seconds_of=lambda test: seconds.get(test, 60.0), workers=asked.workers)
    return _listed(list(lines.values()))


class _Run:
    """What was tried so far, written down after each."""

    def __init__(self, lines: dict[tuple[str, str, str, int], Line], count: int) -> None:
        self._lines, self._count, self._done = lines, count, 0

    def again(self, todo: Sequence[Mutant], workers: int) -> list[Mutant]:
        """Try what a test caught before on that test alone; return the others, and what it catches no more."""
        by_name = {"/".join(map(str, one.key)): one for one in todo if self._test_of(one)}
        left = [one for one in todo if not self._test_of(one)]

        def heard(asked: Asked, end: str, test: str) -> None:
            mutant = by_name[asked.name]
            if end == "caught":
                self.heard(Tried(mutant, end, test, 0.0))
            else:
                left.append(mutant)

        ask_all([Asked(n, one.file, one.text(), (self._test_of(one),)) for n, one in by_name.items()], heard, workers)
        return left

    def _test_of(self, mutant: Mutant) -> str:
        line = self._lines.get(mutant.key)
        return line.killed_by or "" if line is not None and line.is_by_test else ""

    def heard(self, tried: Tried) -> None:
        """Write down what became of one."""
        self._done += 1
        mutant = tried.mutant
        former = self._lines.get(mutant.key)
        if tried.end != "unknown":
            reason = former.reason if former and tried.end == "survived" else None
            self._lines[mutant.key] = Line(*mutant.key, mutant.was, tried.test or None, reason)
            record.write(self._lines.values())
        name = "/".join(map(str, mutant.key))
        print(f"{self._done}/{self._count} {tried.end} {tried.seconds:.1f} s {name}: {tried.test}", flush=True)


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
