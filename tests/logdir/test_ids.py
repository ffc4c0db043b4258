"""Topic, directory and cluster ids."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdir.errors import InvalidIdError
from logdir.ids import METADATA_TOPIC_ID, DirectoryId, TopicId, Uuid

TEXT = "eXOy6xj-Q8ivrWAlsZGnkw"
HEX = "7973b2eb18fe43c8afad6025b191a793"
BITS = st.binary(min_size=16, max_size=16)

# kafka-formats §1, "Parsing", row by row.
ACCEPTED = {
    "22 characters": (TEXT, HEX),
    "padded": (TEXT + "==", HEX),
    "spare bits are dropped": ("A" * 21 + "R", "0" * 31 + "1"),
    "zero": ("A" * 22, "0" * 32),
    "all bits": ("_" * 21 + "w", "f" * 32),
    "leading dash": ("-" + "A" * 21, "f8" + "0" * 30),
}
REJECTED = {
    "one pad": TEXT + "=",
    "21 characters": TEXT[:-1],
    "23 characters": TEXT + "A",
    "24 characters": TEXT + "AA",
    "three pads": TEXT + "===",
    "23 characters and a pad": TEXT + "A=",
    "empty": "",
    "plus": "+" + TEXT[1:],
    "slash": "/" + TEXT[1:],
    "leading blank": " " + TEXT,
    "trailing blank": TEXT + " ",
    "trailing newline": TEXT + "\n",
    "newline after the padding": TEXT + "==\n",
    "pad inside": TEXT[:5] + "=" + TEXT[6:],
    "not ascii": "é" + TEXT[1:],
    "digit of another script": "٣" + TEXT[1:],
}


@pytest.mark.parametrize(("text", "expected"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_reads_what_kafka_reads(text: str, expected: str) -> None:
    assert TopicId.parse(text).hex() == expected


@pytest.mark.parametrize("text", REJECTED.values(), ids=REJECTED.keys())
def test_refuses_what_kafka_refuses(text: str) -> None:
    for read in (TopicId.parse, TopicId.parse_any, DirectoryId.parse):
        with pytest.raises(InvalidIdError) as caught:
            read(text, "/d")
        assert caught.value.path == "/d"
        assert caught.value.found


HEXADECIMAL = [HEX, HEX.upper(), "7973b2eb-18fe-43c8-afad-6025b191a793"]


@pytest.mark.parametrize("text", HEXADECIMAL)
def test_hexadecimal_is_read_only_where_asked(text: str) -> None:
    assert str(TopicId.parse_any(text)) == TEXT
    with pytest.raises(InvalidIdError):
        TopicId.parse(text)


@pytest.mark.parametrize(
    "text", [HEX[:-1], HEX + "0", "7973b2eb18fe-43c8-afad-6025b191a793", "g" + HEX[1:], HEX + "\n"]
)
def test_nearly_hexadecimal_is_refused(text: str) -> None:
    with pytest.raises(InvalidIdError):
        TopicId.parse_any(text)


@given(BITS)
def test_round_trip_and_text_form(bits: bytes) -> None:
    topic_id = TopicId(bits)
    text = str(topic_id)
    assert text == base64.urlsafe_b64encode(bits).decode().rstrip("=")
    assert text[-1] in "AQgw"
    assert TopicId.parse(text) == TopicId.parse_any(topic_id.hex()) == topic_id
    assert bytes(topic_id) == bits


@given(BITS, BITS)
def test_order_is_that_of_signed_halves(one: bytes, other: bytes) -> None:
    def halves(bits: bytes) -> tuple[int, int]:
        high, low = int.from_bytes(bits[:8], "big"), int.from_bytes(bits[8:], "big")
        return high - (high >> 63 << 64), low - (low >> 63 << 64)

    assert (TopicId(one) < TopicId(other)) == (halves(one) < halves(other))


def test_negative_halves_come_first() -> None:
    ids = [TopicId(b"\x00" * 16), TopicId(b"\x7f" + b"\xff" * 15), TopicId(b"\x80" + b"\x00" * 15)]
    assert sorted(ids) == [ids[2], ids[0], ids[1]]


def test_a_topic_id_is_never_a_directory_id() -> None:
    bits = bytes(range(16))
    assert TopicId(bits) != DirectoryId(bits)
    assert TopicId(bits) == TopicId(bits)
    assert len({TopicId(bits), DirectoryId(bits), TopicId(bits)}) == 2


@pytest.mark.parametrize("size", [0, 15, 17])
def test_an_id_has_sixteen_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        TopicId(bytes(size))


def _id(high: int, low: int) -> Uuid:
    return Uuid(high.to_bytes(8, "big") + low.to_bytes(8, "big"))


def test_reserved_block() -> None:
    assert _id(0, 0).is_zero
    assert not _id(0, 1).is_zero
    assert str(_id(0, 2)) == "AAAAAAAAAAAAAAAAAAAAAg"
    assert str(_id(0, 98)) == "AAAAAAAAAAAAAAAAAAAAYg"
    assert str(_id(0, 99)) == "AAAAAAAAAAAAAAAAAAAAYw"
    assert all(_id(0, low).is_reserved for low in (0, 1, 99, 1 << 63, (1 << 64) - 1))
    assert not any(_id(*halves).is_reserved for halves in ((0, 100), (1, 0), (1 << 63, 0), (0, (1 << 63) - 1)))
    assert str(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"


@given(BITS)
def test_random_topic_ids_are_version_4_and_redrawn_at_a_dash(bits: bytes) -> None:
    topic_id = TopicId.from_random(bits)
    if topic_id is None:
        assert bits[0] >> 2 == 0b111110
    else:
        assert not str(topic_id).startswith("-")
        assert topic_id.hex()[12] == "4"
        assert topic_id.hex()[16] in "89ab"


def test_draws_again_until_the_id_may_be_used() -> None:
    dash, zero, good = b"\xf8" + bytes(15), bytes(16), bytes(range(100, 116))
    drawn = iter([dash, zero, good])
    assert bytes(DirectoryId.random(lambda size: next(drawn))) == good
    drawn = iter([dash, good])
    assert TopicId.random(lambda size: next(drawn)).hex() == "6465666768694a6bac6d6e6f70717273"


def test_random_ids_differ() -> None:
    assert len({TopicId.random() for _ in range(100)}) == 100
    assert len({DirectoryId.random() for _ in range(100)}) == 100
