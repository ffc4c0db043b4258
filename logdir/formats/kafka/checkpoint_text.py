"""Common grammar of Kafka's text checkpoints: a version, a count, and that many lines of fields.

Not here: the meaning of the fields (``offset_checkpoint``, ``leader_epoch_checkpoint``).

Spec: kafka-formats §4.2, §4.3; org.apache.kafka.server.common.CheckpointFile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from logdir.errors import MalformedFileError, UnsupportedVersionError
from logdir.java_number import parse_java_int

VERSION = 0

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANKS = re.compile(r"\s+", re.ASCII)
_FIRST_ENTRY = 3


def parse_entries(data: bytes, path: str, fields: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number from 1, fields) of every entry; the count is checked before the first is yielded.

    Args:
        data: The whole file.
        path: Path of the file, for the error.
        fields: The names of an entry's fields, for their number and the error.

    Raises:
        MalformedFileError: not UTF-8, a field that is no valid number, or a wrong number of entries or fields.
        UnsupportedVersionError: a version other than 0.
    """
    try:
        lines = _LINE_END.split(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise MalformedFileError(path, expected="UTF-8 text", found=f"{error.reason} at byte {error.start}") from None
    if not lines[-1]:
        del lines[-1]
    if not lines:
        return  # Kafka creates the file empty when it opens it first.
    version = parse_number(lines[0], 32, path, 1)
    if version != VERSION:
        raise UnsupportedVersionError(path, expected=f"checkpoint version {VERSION}", found=version)
    if len(lines) == 1:
        return
    count = parse_number(lines[1], 32, path, 2)
    entries = lines[2:]
    if count != len(entries):
        raise MalformedFileError(
            path, expected=f"{count} entries (the count in line 2)", found=f"{len(entries)} entries"
        )
    for number, line in enumerate(entries, _FIRST_ENTRY):
        yield number, _fields(line, fields, path, number)


def _fields(line: str, fields: Sequence[str], path: str, number: int) -> list[str]:
    pieces = _BLANKS.split(line)
    # Java's split drops empty fields at the end and keeps those at the start, so a leading blank is one more field.
    while pieces and not pieces[-1]:
        del pieces[-1]
    # Divergence: Kafka reads " 1 2" as partition 1 of a topic without a name; no broker can have such a log.
    if len(pieces) != len(fields) or not pieces[0]:
        raise MalformedFileError(path, expected=f"'{' '.join(fields)}' in line {number}", found=repr(line))
    return pieces


def parse_number(text: str, bits: int, path: str, line: int) -> int:
    """Return the number in a field; ``path`` and ``line`` are where it stands, for the error.

    Raises:
        MalformedFileError: Java would not read it as a number of that many bits.
    """
    number = parse_java_int(text, bits)
    if number is None:
        raise MalformedFileError(path, expected=f"a whole number of {bits} bits in line {line}", found=repr(text))
    return number


def render_entries(entries: Sequence[str]) -> bytes:
    """Return the bytes of a checkpoint file: version, count, one line per entry, LF after every line."""
    return "\n".join((str(VERSION), str(len(entries)), *entries, "")).encode("utf-8")
