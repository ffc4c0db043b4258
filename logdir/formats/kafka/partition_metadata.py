r"""``partition.metadata``: the topic id of one partition directory.

Read as tolerantly as by Kafka's own reader, because a file that it accepts is a good file. Written strictly. Where
Kafka's reader throws an IOException, the broker takes the log dir offline; where it throws another exception, the
broker does not start; here both are one typed error. Not here: whether the topic id is the right one.

Spec: kafka-formats §2; design §3.1 (third line, hexadecimal ids).

>>> parse(b"version: 0\ntopic_id: eXOy6xj-Q8ivrWAlsZGnkw")
PartitionMetadata(version=0, topic_id=TopicId(eXOy6xj-Q8ivrWAlsZGnkw), topic_name=None)
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from typing import NamedTuple

from logdir.errors import InvalidIdError, MalformedFileError, UnsupportedVersionError
from logdir.ids import TopicId
from logdir.java_number import parse_java_int
from logdir.names import is_legal_topic, require_legal_topic

VERSION = 0
"""The only version ever written."""

_HEAD = b"version: 0\ntopic_id: "
_SIZE = 43
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_LINE_END = re.compile(r"\r\n|\r|\n")
_COLON = re.compile(r":\s+", re.ASCII)
_TOPIC_NAME = "topic_name"


class PartitionMetadata(NamedTuple):
    """The content of ``partition.metadata``."""

    version: int
    """0; higher numbers are read (Kafka since 3.7), never written."""
    topic_id: TopicId
    topic_name: str | None = None
    """The third line, which only we write: in the topic-id layout and under ``deleting/``."""


def parse(data: bytes, path: str = "") -> PartitionMetadata:
    """Parse the bytes of ``partition.metadata``; a hexadecimal topic id is accepted, too.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Returns:
        The value; ``topic_name`` is ``None`` unless line 3 is ``topic_name: `` and a legal topic name.

    Raises:
        MalformedFileError: not UTF-8, fewer than two lines, or a line that is not a key and a value.
        UnsupportedVersionError: a version below 0.
        InvalidIdError: line 2 holds no topic id, or the zero id.
    """
    if len(data) == _SIZE and data.startswith(_HEAD):
        # 4,000 files of a scan are all but a few in the canonical form: decoded without text, and trusted
        # only if encoding the id again gives the same bytes.
        text = data[len(_HEAD) :].translate(_TO_STANDARD)
        try:
            bits = binascii.a2b_base64(text + b"==")
        except binascii.Error:
            bits = b""
        same = binascii.b2a_base64(bits, newline=False)[:22] == text
        # A "+" or "/" in the file would pass as "-" or "_", hence the last look.
        if same and any(bits) and b"+" not in data and b"/" not in data:
            return PartitionMetadata(VERSION, TopicId(bits))
    # Divergence: Kafka's reader refuses hexadecimal ids; design §3.1 reads them, KIP-516's example being one.
    return _parse(data, path, TopicId.parse_any)


def parse_stock(data: bytes, path: str = "") -> PartitionMetadata:
    """Parse the file exactly as a stock broker does: a hexadecimal id is refused, line 3 ignored.

    Raises:
        MalformedFileError, UnsupportedVersionError, InvalidIdError: a stock broker does not read this file.
    """
    return _parse(data, path, TopicId.parse)._replace(topic_name=None)


def _parse(data: bytes, path: str, read_id: Callable[[str, str], TopicId]) -> PartitionMetadata:
    lines = _lines(data, path)
    if len(lines) < 2:
        found = f"only {lines[0]!r}" if lines else "an empty file"
        raise MalformedFileError(path, expected="two lines: version and topic id", found=found)
    # The names of the keys are never checked, as in Kafka.
    number = _value(lines[0], 1, path)
    version = parse_java_int(number)
    if version is None:
        raise MalformedFileError(path, expected="a whole number of 32 bits in line 1", found=repr(number))
    if version < VERSION:
        raise UnsupportedVersionError(path, expected="version 0 or higher", found=version)
    topic_id = read_id(_value(lines[1], 2, path), path)
    if topic_id.is_zero:
        raise InvalidIdError(path, expected="a topic id", found=f"{topic_id} (the zero id)")
    return PartitionMetadata(version, topic_id, _topic_name(lines[2]) if len(lines) > 2 else None)


def _lines(data: bytes, path: str) -> list[str]:
    try:
        # Divergence: Kafka's reader never sees bad UTF-8 beyond the first 8 KiB if two lines end before; we do.
        lines = _LINE_END.split(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        whole = _LINE_END.split(data[: error.start].decode("utf-8"))
        # Kafka's reader stops at the end of line 2, so a character cut off at the end of the file is never seen.
        if error.end == len(data) and "end of data" in error.reason and len(whole) > 2:
            return whole[:2]
        found = f"{error.reason} at byte {error.start}"
        raise MalformedFileError(path, expected="UTF-8 text", found=found) from None
    if not lines[-1]:
        del lines[-1]
    return lines


def _pieces(line: str) -> list[str]:
    """Split a line at ``: `` as Java's ``split`` does: empty pieces at the end are dropped."""
    pieces = _COLON.split(line)
    while len(pieces) > 1 and not pieces[-1]:
        del pieces[-1]
    return pieces


def _value(line: str, number: int, path: str) -> str:
    pieces = _pieces(line)
    if len(pieces) != 2:
        raise MalformedFileError(path, expected=f"'key: value' in line {number}", found=repr(line))
    return pieces[1]


def _topic_name(line: str) -> str | None:
    # Kafka ignores this line whatever it holds, so nothing in it may make the file unreadable.
    pieces = _pieces(line)
    if len(pieces) != 2 or pieces[0] != _TOPIC_NAME:
        return None
    return pieces[1] if is_legal_topic(pieces[1]) else None


def render(value: PartitionMetadata) -> bytes:
    r"""Return the bytes Kafka writes: 43, no LF at the end; with a topic name a third line, also without LF.

    Raises:
        ValueError: a version other than 0, or the zero id.
        InvalidNameError: the topic name is not legal.

    >>> render(PartitionMetadata(0, TopicId.parse("eXOy6xj-Q8ivrWAlsZGnkw"), "a.b"))
    b'version: 0\ntopic_id: eXOy6xj-Q8ivrWAlsZGnkw\ntopic_name: a.b'
    """
    if value.version != VERSION:
        raise ValueError(f"partition.metadata is only written in version {VERSION}, not {value.version}")
    if value.topic_id.is_zero:
        raise ValueError("partition.metadata never holds the zero id")
    written = _HEAD + str(value.topic_id).encode("ascii")
    if value.topic_name is not None:
        written += f"\n{_TOPIC_NAME}: {require_legal_topic(value.topic_name)}".encode("ascii")
    return written
