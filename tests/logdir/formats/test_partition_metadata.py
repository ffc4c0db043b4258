"""partition.metadata, as tolerant as Kafka and as strict as Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdir.errors import (
    FormatError,
    InvalidIdError,
    InvalidNameError,
    MalformedFileError,
    UnsupportedVersionError,
)
from logdir.formats.kafka.partition_metadata import PartitionMetadata, parse, parse_stock, render
from logdir.ids import METADATA_TOPIC_ID, TopicId
from tests.logdir.formats.contract import PATH, broker_files, label, only_format_errors, same_as_java
from tests.proof.plugin import Recorder

TEXT = b"eXOy6xj-Q8ivrWAlsZGnkw"
ID = TopicId.parse(TEXT.decode())
GOOD = b"version: 0\ntopic_id: " + TEXT
ZERO = b"A" * 22
FILES = broker_files("d*/*/partition.metadata")


def with_version(number: bytes) -> bytes:
    return b"version: " + number + b"\ntopic_id: " + TEXT


# kafka-formats §2, "What a reader accepts", row by row.
ACCEPTED = {
    "canonical": (GOOD, 0, ID),
    "trailing newline": (GOOD + b"\n", 0, ID),
    "crlf": (GOOD.replace(b"\n", b"\r\n") + b"\r\n", 0, ID),
    "lone cr": (GOOD.replace(b"\n", b"\r"), 0, ID),
    "extra lines": (GOOD + b"\nwhatever\n\n: :", 0, ID),
    "other key names": (b"a: 0\nb: " + TEXT, 0, ID),
    "no key names": (b": 0\n: " + TEXT, 0, ID),
    "tab after the colon": (b"version:\t0\ntopic_id: \t \x0b\f" + TEXT, 0, ID),
    "bom": (b"\xef\xbb\xbf" + GOOD, 0, ID),
    "plus": (with_version(b"+0"), 0, ID),
    "minus zero": (with_version(b"-0"), 0, ID),
    "leading zeros": (with_version(b"00"), 0, ID),
    "thousands of zeros": (with_version(b"0" * 5000), 0, ID),
    "arabic digit": (with_version("٠".encode()), 0, ID),
    "version 1": (with_version(b"1"), 1, ID),
    "largest version": (with_version(b"2147483647"), 2147483647, ID),
    "metadata topic": (b"version: 0\ntopic_id: " + ZERO[:-1] + b"Q", 0, METADATA_TOPIC_ID),
    "padded id": (GOOD + b"==", 0, ID),
    "spare bits of the last character": (GOOD[:-1] + b"x", 0, ID),
    "character cut off at the end of line 3": (GOOD + b"\ntopic_name: ab\xc3", 0, ID),
    "id and then a colon and a blank": (GOOD + b": ", 0, ID),
}
REJECTED: dict[str, tuple[bytes, type[FormatError]]] = {
    "version below 0": (with_version(b"-1"), UnsupportedVersionError),
    "no blank": (GOOD.replace(b"version: 0", b"version:0"), MalformedFileError),
    "no-break space as blank": (GOOD.replace(b": 0", ":\u00a00".encode()), MalformedFileError),
    "blank line between": (GOOD.replace(b"\n", b"\n\n"), MalformedFileError),
    "trailing blank on line 1": (with_version(b"0 "), MalformedFileError),
    "three pieces": (with_version(b"a: b: c"), MalformedFileError),
    "lines swapped": (b"topic_id: " + TEXT + b"\nversion: 0", MalformedFileError),
    "beyond int32": (with_version(b"2147483648"), MalformedFileError),
    "beyond int32, long": (with_version(b"9" * 5000), MalformedFileError),
    "underscore": (with_version(b"0_0"), MalformedFileError),
    "digit beyond the basic plane": (with_version("\U0001d7ce".encode()), MalformedFileError),
    "zero id": (b"version: 0\ntopic_id: " + ZERO, InvalidIdError),
    "zero id, padded": (b"version: 0\ntopic_id: " + ZERO + b"==", InvalidIdError),
    "zero id by spare bits": (b"version: 0\ntopic_id: " + ZERO[:-1] + b"B", InvalidIdError),
    "character cut off at the end of line 2": (GOOD + b"\xc3", MalformedFileError),
    "not utf-8": (GOOD + b"\n\xff", MalformedFileError),
    "id with trailing blank": (GOOD + b" ", InvalidIdError),
    "id too short": (GOOD[:-1], InvalidIdError),
    "id too long": (GOOD + b"A", InvalidIdError),
    "one pad": (GOOD + b"=", InvalidIdError),
    "standard alphabet +": (b"version: 0\ntopic_id: +" + TEXT[1:], InvalidIdError),
    "standard alphabet /": (b"version: 0\ntopic_id: /" + TEXT[1:], InvalidIdError),
    "43 bytes, bad character": (GOOD[:-3] + b"*kw", InvalidIdError),
    "43 bytes, pad inside": (GOOD[:-3] + b"=kw", InvalidIdError),
    "43 bytes, line end inside": (GOOD[:-3] + b"\nkw", InvalidIdError),
    "empty": (b"", MalformedFileError),
    "only a line end": (b"\n", MalformedFileError),
    "one line": (b"version: 0", MalformedFileError),
    "one line and its end": (b"version: 0\n", MalformedFileError),
    "binary zeros": (bytes(43), MalformedFileError),
}


@pytest.mark.parametrize(("data", "version", "topic_id"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_reads_what_kafka_reads(data: bytes, version: int, topic_id: TopicId) -> None:
    assert parse(data, PATH) == parse_stock(data, PATH) == PartitionMetadata(version, topic_id)


@pytest.mark.parametrize(("data", "error"), REJECTED.values(), ids=REJECTED.keys())
def test_refuses_what_kafka_refuses(data: bytes, error: type[FormatError]) -> None:
    for read in (parse, parse_stock):
        with pytest.raises(error) as caught:
            read(data, PATH)
        assert caught.value.path == PATH
        assert caught.value.found


def test_answers_as_the_stock_class() -> None:
    def ours(data: bytes) -> str:
        read = parse_stock(data, PATH)
        return f"ok {read.version} {read.topic_id}"

    same_as_java("partition-metadata", ours)


@pytest.mark.parametrize("text", [ID.hex(), ID.hex().upper(), "7973b2eb-18fe-43c8-afad-6025b191a793"])
def test_hexadecimal_ids_are_read_by_us_and_not_by_stock(text: str) -> None:
    data = f"version: 0\ntopic_id: {text}".encode()
    assert parse(data).topic_id == ID
    with pytest.raises(InvalidIdError):
        parse_stock(data)


NAMES = {
    "name": (b"topic_name: a.b", "a.b"),
    "name and line end": (b"topic_name: a.b\n", "a.b"),
    "several blanks": (b"topic_name:  a.b", "a.b"),
    "other key": (b"topic: a.b", None),
    "not legal": (b"topic_name: a/b", None),
    "dots": (b"topic_name: ..", None),
    "nothing": (b"topic_name: ", None),
    "too long": (b"topic_name: " + b"a" * 250, None),
}


@pytest.mark.parametrize(("line", "name"), NAMES.values(), ids=NAMES.keys())
def test_third_line_is_the_topic_name_or_nothing(line: bytes, name: str | None) -> None:
    data = GOOD + b"\n" + line
    assert parse(data) == PartitionMetadata(0, ID, name)
    assert parse_stock(data) == PartitionMetadata(0, ID)


@pytest.mark.parametrize("path", FILES, ids=label)
def test_files_of_brokers_are_read_and_written_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    value = parse(data, str(path))
    assert render(value) == data
    assert len(data) == 43
    assert (value.topic_id == METADATA_TOPIC_ID) == path.parent.name.startswith("__cluster_metadata-")


def test_writes_the_bytes_of_the_specification() -> None:
    assert render(PartitionMetadata(0, ID)).hex() == (
        "76657273696f6e3a20300a746f7069635f69643a2065584f7936786a2d513869767257416c735a476e6b77"
    )


def test_never_writes_another_version_a_zero_id_or_an_illegal_name() -> None:
    with pytest.raises(ValueError, match="version"):
        render(PartitionMetadata(1, ID))
    with pytest.raises(ValueError, match="zero"):
        render(PartitionMetadata(0, TopicId(bytes(16))))
    with pytest.raises(InvalidNameError):
        render(PartitionMetadata(0, ID, "a\nb"))


IDS = st.binary(min_size=16, max_size=16).filter(any).map(TopicId)
LEGAL = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True).filter(lambda name: name not in (".", ".."))


@given(IDS, st.none() | LEGAL)
def test_round_trip(topic_id: TopicId, name: str | None) -> None:
    value = PartitionMetadata(0, topic_id, name)
    assert parse(render(value)) == value


@given(st.binary(min_size=22, max_size=22) | st.text("AQgw-_+/=Zz9 \n", min_size=22, max_size=22).map(str.encode))
def test_fast_path_and_full_reader_agree(text: bytes) -> None:
    # The full reader is reached by a line end more, which changes nothing else.
    canonical = b"version: 0\ntopic_id: " + text
    try:
        slow: object = parse(canonical + b"\n")
    except FormatError as error:
        slow = type(error)
    try:
        fast: object = parse(canonical)
    except FormatError as error:
        fast = type(error)
    assert fast == slow


def test_damaged_files_raise_only_format_errors(record_proof: Recorder) -> None:
    only_format_errors(
        record_proof,
        "partition.metadata",
        parse,
        [GOOD, GOOD + b"\ntopic_name: abc", FILES[0].read_bytes()],
        [b"\n", b"\r", b": ", b" ", b"-", b"==", b"\xff", "٣".encode(), b"0", b"\x00"],
    )
