"""What the run found: ``tests/mutants/record.jsonl``, a line a change, and why a survivor is one.

Not here: finding it (``runner``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from tests.mutants.sown import Mutant

PATH: Final = Path(__file__).with_name("record.jsonl")


class Line(NamedTuple):
    """What became of one change."""

    operator: str
    file: str
    function: str
    number: int
    was: str
    """The line that was changed: of another line this says nothing."""
    killed_by: str | None
    """A test's node id, or its file where that could not even be imported; ``time limit`` or ``process died``; ``None``
    for a survivor.
    """
    reason: str | None
    """Why a survivor is equivalent or harmless."""

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Its name."""
        return self.operator, self.file, self.function, self.number

    @property
    def is_by_test(self) -> bool:
        """Whether a test, or a file of them, caught it that can be run again by its name."""
        return self.killed_by is not None and self.killed_by.startswith("tests/")

    def is_of(self, mutant: Mutant) -> bool:
        """Whether it speaks of this change of the present source."""
        return self.key == mutant.key and self.was == mutant.was


def read(path: Path = PATH) -> dict[tuple[str, str, str, int], Line]:
    """Return the record, by name; empty where there is none."""
    if not path.exists():
        return {}
    lines = [Line(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    return {line.key: line for line in lines}


def write(lines: Iterable[Line], path: Path = PATH) -> None:
    """Replace the record; sorted by place, so that a change of one function changes few lines."""
    listed = sorted(lines, key=lambda line: (line.file, line.function, line.operator, line.number))
    text = "".join(json.dumps(line._asdict(), ensure_ascii=False) + "\n" for line in listed)
    path.write_text(text, "utf-8")
