"""leader-epoch-checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdir.errors import FormatError, MalformedFileError, UnsupportedVersionError
from logdir.formats.kafka.leader_epoch_checkpoint import EpochEntry, parse, render
from tests.logdir.formats.contract import PATH, broker_files, label, only_format_errors, same_as_java
from tests.proof.plugin import Recorder

FILES = broker_files("d*/*/leader-epoch-checkpoint")
GOOD = b"0\n2\n0 0\n3 120\n"
VALUE = (EpochEntry(0, 0), EpochEntry(3, 120))

# kafka-formats §4.3; the rows about lines and the header are those of the offset checkpoints.
READ = {
    "example": (GOOD, VALUE),
    "empty": (b"", ()),
    "only a version": (b"0", ()),
    "no final newline": (GOOD[:-1], VALUE),
    "crlf": (GOOD.replace(b"\n", b"\r\n"), VALUE),
    "blanks, signs, zeros": (b"0\n1\n+3\t 0120 \n", VALUE[1:]),
    "negative": (b"0\n1\n-1 -1\n", (EpochEntry(-1, -1),)),
    "duplicate epoch, last wins": (b"0\n2\n3 7\n3 120\n", VALUE[1:]),
    "unsorted": (b"0\n2\n3 120\n0 0\n", VALUE),
    "offsets that do not ascend": (b"0\n2\n0 9\n3 9\n", (EpochEntry(0, 9), EpochEntry(3, 9))),
}
REJECTED: dict[str, tuple[bytes, type[FormatError]]] = {
    "version 1": (b"1\n0\n", UnsupportedVersionError),
    "garbage": (b"garbage", MalformedFileError),
    "count too high": (b"0\n3\n0 0\n3 120\n", MalformedFileError),
    "count too low": (b"0\n1\n0 0\n3 120\n", MalformedFileError),
    "count negative": (b"0\n-2\n0 0\n3 120\n", MalformedFileError),
    "leading blank": (b"0\n1\n 0 0\n", MalformedFileError),
    "leading blank for an epoch": (b"0\n1\n 0\n", MalformedFileError),
    "three fields": (b"0\n1\n0 0 0\n", MalformedFileError),
    "blank line at the end": (GOOD + b"\n", MalformedFileError),
    "epoch beyond int32": (b"0\n1\n2147483648 0\n", MalformedFileError),
    "offset beyond int64": (b"0\n1\n0 9223372036854775808\n", MalformedFileError),
    "not utf-8": (GOOD + b"\xff", MalformedFileError),
}
WRONG = {
    "epochs fall": (EpochEntry(3, 0), EpochEntry(0, 120)),
    "epochs equal": (EpochEntry(3, 0), EpochEntry(3, 120)),
    "offsets equal": (EpochEntry(0, 7), EpochEntry(3, 7)),
    "offsets fall": (EpochEntry(0, 7), EpochEntry(3, 6)),
    "negative epoch": (EpochEntry(-1, 0),),
    "negative offset": (EpochEntry(0, -1),),
    "epoch too large": (EpochEntry(2**31, 0),),
    "offset too large": (EpochEntry(0, 2**63),),
}


@pytest.mark.parametrize(("data", "value"), READ.values(), ids=READ.keys())
def test_reads_what_kafka_reads(data: bytes, value: tuple[EpochEntry, ...]) -> None:
    assert parse(data, PATH) == value


@pytest.mark.parametrize(("data", "error"), REJECTED.values(), ids=REJECTED.keys())
def test_refuses_what_kafka_refuses(data: bytes, error: type[FormatError]) -> None:
    with pytest.raises(error) as caught:
        parse(data, PATH)
    assert caught.value.path == PATH
    assert caught.value.found


def as_a_broker_holds_them(answer: str) -> str:
    """The stock class answers with a list; the broker puts it into a map by epoch."""
    held = {int(entry.split(",")[0]): entry for entry in answer.split()[1:]}
    return " ".join(["ok", *(held[epoch] for epoch in sorted(held))])


def test_answers_as_the_stock_class() -> None:
    def ours(data: bytes) -> str:
        return " ".join(["ok", *(f"{entry.epoch},{entry.start_offset}" for entry in parse(data, PATH))])

    same_as_java("leader-epoch", ours, as_a_broker_holds_them)


@pytest.mark.parametrize("path", FILES, ids=label)
def test_files_of_brokers_are_read_and_written_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    value = parse(data, str(path))
    # Kafka creates the file empty when it opens it first.
    assert render(value) == (data or b"0\n0\n")


def test_writes_the_bytes_of_the_specification() -> None:
    assert render(VALUE).hex(" ") == "30 0a 32 0a 30 20 30 0a 33 20 31 32 30 0a"
    assert render(()) == b"0\n0\n"


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG.keys())
def test_never_writes_epochs_a_broker_would_not(value: tuple[EpochEntry, ...]) -> None:
    with pytest.raises(ValueError):
        render(value)


@given(st.sets(st.integers(0, 2**31 - 1), max_size=20), st.data())
def test_round_trip(epochs: set[int], data: st.DataObject) -> None:
    size = len(epochs)
    offsets = data.draw(st.sets(st.integers(0, 2**63 - 1), min_size=size, max_size=size))
    value = tuple(EpochEntry(*pair) for pair in zip(sorted(epochs), sorted(offsets), strict=True))
    assert parse(render(value)) == value


def test_damaged_files_raise_only_format_errors(record_proof: Recorder) -> None:
    only_format_errors(
        record_proof,
        "leader-epoch checkpoints",
        parse,
        [GOOD, *(path.read_bytes() for path in FILES)],
        [b"\n", b"\r", b" ", b"-", b"9" * 20, b"\xff", "٣".encode(), b"0", b"\x00", b"9 500\n"],
    )
