"""What every codec of bytes keeps, checked in one place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from logdir.errors import FormatError, LogDirError
from tests.mutation import SEED, mutations
from tests.proof.claims import DAMAGED_FILES
from tests.proof.plugin import Recorder

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


def same_as_java(
    format_name: str,
    read: Callable[[bytes], str],
    reading: Callable[[str], str] = str,
) -> None:
    """Compare ``read``, our answer in the words of the golden file; both kinds of answer must occur."""
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
    record_proof: Recorder,
    format_name: str,
    parse: Callable[[bytes, str], object],
    originals: Sequence[bytes],
    pieces: Sequence[bytes],
    families: tuple[type[LogDirError], ...] = (FormatError,),
) -> None:
    """Feed 10,000 damaged files: each is read, or one typed error says where, what expected, what found.

    Args:
        record_proof: The fixture.
        format_name: A label of the claim.
        parse: The reader.
        originals: Good files.
        pieces: What the format may trip over.
        families: What errors are allowed.
    """
    for data in originals:
        parse(data, PATH)
    refused = 0
    count = DAMAGED_FILES.count(format_name)
    for data in mutations(originals, pieces, count):
        try:
            parse(data, PATH)
        except families as error:
            says_it_all(error)
            refused += 1
    # Of a long file with a digest hardly a change leaves it readable: that not all is refused, the good ones show.
    assert refused
    record_proof(DAMAGED_FILES, {format_name: count}, seeds=SEED)


def says_it_all(error: LogDirError) -> None:
    assert error.path == PATH
    assert error.expected
    assert error.found
    assert len(str(error).splitlines()) == 1
