"""The four offset checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdir.errors import FormatError, MalformedFileError, UnsupportedVersionError
from logdir.formats.kafka.offset_checkpoint import NAMES, TopicPartition, parse, render
from tests.logdir.formats.contract import (
    PATH,
    broker_files,
    java_text,
    label,
    only_format_errors,
    same_as_java,
)
from tests.proof.plugin import Recorder

FILES = broker_files("d*/*-offset-checkpoint")
GOOD = b"0\n2\nfoo 0 42\n__consumer_offsets 17 1234567890123\n"
VALUE = {TopicPartition("foo", 0): 42, TopicPartition("__consumer_offsets", 17): 1234567890123}
ONE = {TopicPartition("a", 1): 5}

# kafka-formats §4.3, row by row.
READ = {
    "example": (GOOD, VALUE),
    "empty": (b"", {}),
    "only a version": (b"0\n", {}),
    "no entries": (b"0\n0\n", {}),
    "no final newline": (GOOD[:-1], VALUE),
    "crlf": (GOOD.replace(b"\n", b"\r\n"), VALUE),
    "cr": (GOOD.replace(b"\n", b"\r"), VALUE),
    "several blanks and tabs": (b"0\n1\na \t 1\x0b\f5\n", ONE),
    "trailing blank": (b"0\n1\na 1 5 \n", ONE),
    "signs and leading zeros": (b"+0\n01\na +01 +005\n", ONE),
    "negative offset": (b"0\n1\na 1 -5\n", {TopicPartition("a", 1): -5}),
    "duplicate key": (b"0\n2\na 1 4\na 1 5\n", ONE),
    "no-break space is no blank": ("0\n1\na\u00a0b 1 5\n".encode(), {TopicPartition("a\u00a0b", 1): 5}),
    "line separator is no line end": (
        "0\n1\na\u2028\x85b 1 5\n".encode(),
        {TopicPartition("a\u2028\x85b", 1): 5},
    ),
}
REJECTED: dict[str, tuple[bytes, type[FormatError]]] = {
    "version 1": (b"1\n0\n", UnsupportedVersionError),
    "version -1": (b"-1\n0\n", UnsupportedVersionError),
    "version with a blank": (b"0 \n0\n", MalformedFileError),
    "version in words": (b"zero\n", MalformedFileError),
    "blank first line": (b"\n0\n", MalformedFileError),
    "count with a blank": (b"0\n 1\na 1 5\n", MalformedFileError),
    "count too high": (b"0\n2\na 1 5\n", MalformedFileError),
    "count too low": (b"0\n0\na 1 5\n", MalformedFileError),
    "count negative": (b"0\n-1\n", MalformedFileError),
    "count huge": (b"0\n2147483647\na 1 5\n", MalformedFileError),
    "leading blank": (b"0\n1\n a 1 5\n", MalformedFileError),
    "leading blank for a topic": (b"0\n1\n 1 5\n", MalformedFileError),
    "blank line at the end": (b"0\n1\na 1 5\n\n", MalformedFileError),
    "blank line counted": (b"0\n2\na 1 5\n\n", MalformedFileError),
    "only blanks": (b"0\n1\n  \n", MalformedFileError),
    "two fields": (b"0\n1\na 1\n", MalformedFileError),
    "four fields": (b"0\n1\na b 1 5\n", MalformedFileError),
    "not utf-8": (b"0\n1\n\xff 1 5\n", MalformedFileError),
    "partition in words": (b"0\n1\na one 5\n", MalformedFileError),
    "partition beyond int32": (b"0\n1\na 2147483648 5\n", MalformedFileError),
    "offset beyond int64": (b"0\n1\na 1 9223372036854775808\n", MalformedFileError),
    "offset with thousands of digits": (b"0\n1\na 1 " + b"9" * 5000, MalformedFileError),
}


@pytest.mark.parametrize(("data", "value"), READ.values(), ids=READ.keys())
def test_reads_what_kafka_reads(data: bytes, value: dict[TopicPartition, int]) -> None:
    assert parse(data, PATH) == value


@pytest.mark.parametrize(("data", "error"), REJECTED.values(), ids=REJECTED.keys())
def test_refuses_what_kafka_refuses(data: bytes, error: type[FormatError]) -> None:
    with pytest.raises(error) as caught:
        parse(data, PATH)
    assert caught.value.path == PATH
    assert caught.value.found


def test_the_error_names_the_line() -> None:
    with pytest.raises(MalformedFileError, match="line 4"):
        parse(b"0\n2\na 1 5\na x 5\n", PATH)


def test_answers_as_the_stock_class() -> None:
    def ours(data: bytes) -> str:
        read = sorted((f"{java_text(key.topic)},{key.partition}", offset) for key, offset in parse(data, PATH).items())
        return "ok {" + ", ".join(f"{key}={offset}" for key, offset in read) + "}"

    same_as_java("offset-checkpoint", ours)


@pytest.mark.parametrize("path", FILES, ids=label)
def test_files_of_brokers_are_read_and_written_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    value = parse(data, str(path))
    assert path.name in NAMES
    # Kafka creates the file empty when it opens it first.
    assert render(value) == (data or b"0\n0\n")


def test_writes_the_bytes_of_the_specification() -> None:
    assert render(VALUE) == GOOD
    assert len(GOOD) == 49
    assert render({}) == b"0\n0\n"


WRONG = {
    "no topic": TopicPartition("", 0),
    "blank in the topic": TopicPartition("a b", 0),
    "line end in the topic": TopicPartition("a\n", 0),
    "half a character": TopicPartition("\ud800", 0),
    "negative partition": TopicPartition("a", -1),
    "partition too large": TopicPartition("a", 2**31),
}


@pytest.mark.parametrize("key", WRONG.values(), ids=WRONG.keys())
def test_never_writes_a_key_that_would_not_read_back(key: TopicPartition) -> None:
    with pytest.raises(ValueError):
        render({key: 0})


@pytest.mark.parametrize("offset", [-1, 2**63])
def test_never_writes_an_offset_out_of_range(offset: int) -> None:
    with pytest.raises(ValueError):
        render({TopicPartition("a", 0): offset})


TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True) | st.sampled_from(["é", "a\u00a0b", "\u2028", "𝟎"])
KEYS = st.builds(TopicPartition, TOPICS, st.integers(0, 2**31 - 1))


@given(st.dictionaries(KEYS, st.integers(0, 2**63 - 1), max_size=20))
def test_round_trip(value: dict[TopicPartition, int]) -> None:
    read = parse(render(value))
    assert read == value
    assert list(read) == list(value)


def test_damaged_files_raise_only_format_errors(record_proof: Recorder) -> None:
    only_format_errors(
        record_proof,
        "offset checkpoints",
        parse,
        [GOOD, *(path.read_bytes() for path in FILES)],
        [b"\n", b"\r", b" ", b"-", b"9" * 20, b"\xff", "٣".encode(), b"0", b"\x00", b"a 1 5\n"],
    )
