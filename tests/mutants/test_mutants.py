"""What was caught is caught again: all of it in ``make proof``, a part in CI by the tests of the record alone."""

from __future__ import annotations

import hashlib

import pytest

from tests.mutants import record
from tests.mutants.__main__ import main
from tests.mutants.record import Line
from tests.mutants.runner import Asked, ask_all
from tests.mutants.sown import Mutant, drawn
from tests.proof.mutant_claims import MUTANTS
from tests.proof.plugin import Recorder
from tests.proof.sizes import SIZE, Size

SEED = 13


def _place(line: Line) -> bytes:
    return hashlib.sha256(f"{SEED} {line.key}".encode()).digest()


def _still_there() -> list[tuple[Mutant, Line]]:
    """Return what the record says of the present source, by the seed."""
    lines = record.read()
    found = [(one, lines[one.key]) for one in drawn() if one.key in lines and lines[one.key].is_of(one)]
    return sorted(found, key=lambda both: _place(both[1]))


def test_no_line_of_the_record_says_both_what_caught_a_change_and_why_nothing_can() -> None:
    lines = record.read().values()
    assert [line.key for line in lines if line.killed_by and line.reason] == []


@pytest.mark.timeout(6 * 3600)
def test_no_change_that_was_caught_is_missed(record_proof: Recorder) -> None:
    if SIZE is Size.FULL:
        status = main([])
        lines = list(record.read().values())
        caught = sum(line.killed_by is not None for line in lines)
        assert (status, caught * 10 >= len(lines) * 9) == (0, True)
        record_proof(MUTANTS, {"mutants": len(lines), "caught": caught})
        return
    taken = [(one, line) for one, line in _still_there() if line.is_by_test][: MUTANTS.count("mutants")]
    missed = []

    def heard(asked: Asked, end: str, test: str) -> None:
        if end != "caught":
            missed.append((asked.name, end, test))

    asked = [Asked("/".join(map(str, one.key)), one.file, one.text(), (line.killed_by or "",)) for one, line in taken]
    ask_all(asked, heard)
    assert missed == []
    record_proof(MUTANTS, {"mutants": len(taken), "caught": len(taken)}, seeds=SEED)
