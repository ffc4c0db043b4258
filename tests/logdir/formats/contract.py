"""What every codec of bytes keeps, checked in one place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from logdir.errors import FormatError
from tests.mutation import mutations, proof_size

GOLDEN = Path(__file__).parents[2] / "golden"
BROKERS = GOLDEN / "brokers"
PATH = "/d1/some-file"


def broker_files(pattern: str) -> list[Path]:
    found = sorted(BROKERS.glob(f"*/{pattern}"))
    assert found, pattern
    return found


def label(path: Path) -> str:
    return str(path.relative_to(BROKERS))


def java_answers(format_name: str) -> Iterator[tuple[bytes, str]]:
    for line in (GOLDEN / "java" / "readers.jsonl").read_text().splitlines():
        case = json.loads(line)
        if case["format"] == format_name:
            yield bytes.fromhex(case["hex"]), case["answer"]


def java_text(text: str | None) -> str:
    return "null" if text is None else "x" + text.encode("utf-16-be", "surrogatepass").hex()


def same_as_java(format_name: str, read: Callable[[bytes], str], reading: Callable[[str], str] = str) -> None:
    """``read`` returns our answer in the words of the golden file; both kinds of answer must occur."""
    answers = set()
    for data, answer in java_answers(format_name):
        try:
            ours = read(data)
        except FormatError:
            ours = "error"
        expected = answer if answer == "error" else reading(answer)
        assert ours.rstrip() == expected, data
        answers.add(answer == "error")
    assert answers == {True, False}


def only_format_errors(
    parse: Callable[[bytes, str], object], originals: Sequence[bytes], pieces: Sequence[bytes]
) -> None:
    """10,000 damaged files: read, or one typed error that says where, what was expected and what was found."""
    outcomes = {True: 0, False: 0}
    for data in mutations(originals, pieces, proof_size(10_000)):
        try:
            parse(data, PATH)
        except FormatError as error:
            assert error.path == PATH, data
            assert error.expected, data
            assert error.found, data
            assert "\n" not in str(error), data
            outcomes[False] += 1
        else:
            outcomes[True] += 1
    assert all(outcomes.values()), outcomes
