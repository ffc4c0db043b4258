"""One codec for every table: each version of each message and record comes back as it went, and damage is named."""

from __future__ import annotations

import json
import random

import pytest

from logdir.wire import control, json_form
from logdir.wire.codec import Codec
from logdir.wire.errors import WireError
from logdir.wire.frames import MESSAGES
from logdir.wire.metadata_tables import TYPES
from logdir.wire.reading import TAGS
from logdir.wire.schema import Field, Versions, defaults, parse_fields
from tests.logdir.wire.random_values import random_struct
from tests.proof.metadata_claims import ROUND_TRIPS
from tests.proof.plugin import Recorder

SEED = 1
_Case = tuple[str, tuple[Field, ...], int, bool]


def _cases() -> list[_Case]:
    cases: list[_Case] = []
    for one in MESSAGES.values():
        name = f"{one.name} {one.direction} {one.form}"
        cases += [(name, one.fields, version, version in one.flexible) for version in one.versions.all()]
    for kind in TYPES.values():
        cases += [(kind.name, kind.fields, version, True) for version in kind.versions.all()]
    for control_type in control.TYPES.values():
        for version in control_type.versions.all():
            cases.append((control_type.name, control_type.table.fields, version, control_type.flexible))
    return cases


CASES = _cases()


def test_every_version_of_everything_comes_back_as_it_went(record_proof: Recorder) -> None:
    draw = random.Random(SEED)
    count = ROUND_TRIPS.count("values")
    assert len(CASES) == 2 * (133 + 12) + 37 + 8  # messages, those of KIPs, records, control records
    codecs = [Codec(fields, version, flexible=flexible) for _, fields, version, flexible in CASES]
    for number in range(count):
        name, fields, version, flexible = CASES[number % len(CASES)]
        codec = codecs[number % len(CASES)]
        value = random_struct(draw, fields, version, flexible=flexible)
        out = bytearray()
        codec.write(value, out)
        data = bytes(out)
        again = codec.read(data)
        assert again == value, name
        out.clear()
        codec.write(again, out)
        assert out == data, name
        if TAGS not in repr(value):
            document = json.loads(json.dumps(json_form.to_json(fields, version, value)))
            assert json_form.from_json(fields, version, document) == value, name
    record_proof(ROUND_TRIPS, {"values": count, "versions": len(CASES)}, seeds=SEED)


@pytest.mark.parametrize(("name", "fields", "version", "flexible"), CASES, ids=lambda value: str(value)[:40])
def test_every_cut_is_refused(name: str, fields: tuple[Field, ...], version: int, flexible: bool) -> None:
    codec = Codec(fields, version, flexible=flexible)
    out = bytearray()
    codec.write(random_struct(random.Random(version), fields, version, flexible=flexible), out)
    data = bytes(out)
    for end in range(min(len(data), 200)):
        with pytest.raises(WireError):
            codec.read(data[:end])
    with pytest.raises(WireError, match="expected the end of the bytes, found 1 more bytes"):
        codec.read(data + b"\0")


FLAT = parse_fields(
    """
    number    int32
    text      string    null 1+
    list      []int32   2+  tag 0
    structs   []{}
        id    uuid
        name  string    2+
    """
)


def _written(value: dict[str, object], version: int, *, flexible: bool) -> bytes:
    out = bytearray()
    Codec(FLAT, version, flexible=flexible).write(value, out)
    return bytes(out)


def test_bytes_of_both_encodings() -> None:
    value = {"number": 1, "text": "ab", "structs": ({"id": bytes(16)},)}
    old = bytes.fromhex("00000001 0002 6162 00000001") + bytes(16)
    new = bytes.fromhex("00000001 03 6162 02") + bytes(16) + b"\0\0"
    assert _written(value, 1, flexible=False) == old
    assert _written(value, 1, flexible=True) == new
    tagged = {**value, "list": (5,), "structs": ({"id": bytes(16), "name": ""},)}
    assert _written(tagged, 2, flexible=True) == new[:-2] + bytes.fromhex("01 00 01 00 05 02 00000005")


def test_a_null_is_a_null_in_both_encodings() -> None:
    value: dict[str, object] = {"number": 1, "text": None, "structs": ()}
    assert _written(value, 1, flexible=False) == bytes.fromhex("00000001 ffff 00000000")
    assert _written(value, 1, flexible=True) == bytes.fromhex("00000001 00 01 00")


UNREADABLE = {
    "a null that may not be": (0, True, "00000001 00 01 00", "text, which is never null, found null", 5),
    "an array that is null": (1, True, "00000001 01 00 00", "structs, which is never null", 6),
    "a length below null": (1, False, "00000001 fffe 00000000", "the length of text, found -2", 4),
    "a text that is not UTF-8": (1, True, "00000001 02 ff 01 00", "text in UTF-8, found ff", 5),
    "an encoded surrogate": (1, True, "00000001 04 eda080 01 00", "text in UTF-8, found ed", 5),
    "a text longer than allowed": (1, True, "00000001 8180 02 " + "61" * 32768 + "01 00", "at most 32767 bytes", 4),
    "a count beyond the end": (1, True, "00000001 00 ffffffff07 00", "2147483646 elements of structs", 10),
    "a count that would need more than remains": (1, True, "00000001 00 03" + "00" * 17 + "00", "2 elements", 6),
    "a number of 32 bits": (1, True, "00000001 ffffffff0f", "a number of 31 bits", 4),
    "a number without end": (1, True, "00000001 808080808001", "a number of 31 bits", 4),
    "a tag twice": (1, True, "00000001 00 01 02 0500 0500", "a tag above 5, found 5", 9),
    "tags that fall": (1, True, "00000001 00 01 02 0500 0400", "a tag above 5, found 4", 9),
    "a tag of a later version": (1, True, "00000001 00 01 01 0000", "no list in version 1", 7),
    "a tag's size beyond the end": (1, True, "00000001 00 01 01 0509 00", "9 bytes of tag 5", 9),
    "a known tag of another size": (2, True, "00000001 00 01 01 0002 0100", "list of 2 bytes, found -1 bytes", 7),
    "a known tag that goes on": (2, True, "00000001 00 01 01 0001 02 00000001", r"list of 1 bytes, found \+4", 7),
    "more tags than bytes": (2, True, "00000001 00 01 ffffffff07", "a variable-length number", 11),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_read(case: str) -> None:
    version, flexible, data, message, position = UNREADABLE[case]
    with pytest.raises(WireError, match=message) as caught:
        Codec(FLAT, version, flexible=flexible).read(bytes.fromhex(data))
    assert caught.value.position == position
    assert len(str(caught.value).splitlines()) == 1


def test_a_huge_count_makes_nothing() -> None:
    # 2^31 - 2 structs in a message of 4 kB: refused before one is made, or this test would not end.
    data = bytes.fromhex("00000001 00 ffffffff07") + bytes(4096)
    with pytest.raises(WireError, match="2147483646 elements of structs"):
        Codec(FLAT, 1, flexible=True).read(data)


UNWRITABLE = {
    "a field left out": ({"number": 1, "structs": ()}, "a field text"),
    "a number too large": ({"number": 1 << 31, "text": "", "structs": ()}, "a value of number that can be written"),
    "a null that may not be": ({"number": 1, "text": "", "structs": None}, "a value of structs .* found null"),
    "a text of 33 kB": ({"number": 1, "text": "x" * 32768, "structs": ()}, "a text of 32768 bytes"),
    "a text that UTF-8 cannot hold": ({"number": 1, "text": "\ud800", "structs": ()}, "a value of text"),
    "an id of 15 bytes": ({"number": 1, "text": "", "structs": ({"id": bytes(15)},)}, "an id of 15 bytes"),
    "a field of a later version": (
        {"number": 1, "text": "", "structs": (), "list": (1,)},
        "no field list in version 1",
    ),
    "a field of no version": ({"number": 1, "text": "", "structs": (), "more": 0}, "no field more"),
    "a known tag among the unknown": (
        {"number": 1, "text": "", "structs": (), TAGS: ((3, b""), (3, b""))},
        "tag 3 once, found twice",
    ),
}


@pytest.mark.parametrize("case", UNWRITABLE)
def test_what_cannot_be_written(case: str) -> None:
    value, message = UNWRITABLE[case]
    with pytest.raises(WireError, match=message):
        _written(value, 1, flexible=True)


def test_a_field_of_another_version_may_have_its_default() -> None:
    value = {"number": 1, "text": "", "structs": ()}
    assert _written(value | {"list": ()}, 1, flexible=True) == _written(value, 1, flexible=True)


def test_a_tagged_field_may_be_left_out() -> None:
    value = {"number": 1, "text": "", "structs": ()}
    assert _written(value, 2, flexible=True) == _written(value | {"list": ()}, 2, flexible=True)
    assert Codec(FLAT, 2, flexible=True).read(_written(value, 2, flexible=True))["list"] == ()


def test_a_struct_of_defaults_is_made_anew_each_time() -> None:
    fields = parse_fields("state {} tag 0\n    id int32 = -1")
    codec = Codec(fields, 0, flexible=True)
    first, second = codec.read(b"\0"), codec.read(b"\0")
    assert first == second == defaults(fields, 0) == {"state": {"id": -1}}
    assert first["state"] is not second["state"]


BAD_TABLES = {
    "a type that is none": "a int31",
    "a struct without one above": "a int32\n    b int32",
    "a word that is none": "a int32 0+ maybe 3",
    "versions that are none": "a int32 2x",
}


@pytest.mark.parametrize("text", BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_a_table_that_is_none(text: str) -> None:
    with pytest.raises(ValueError):
        parse_fields(text)


def test_versions() -> None:
    assert Versions.parse("2") == Versions(2, 2)
    assert Versions.parse("2-4") == Versions(2, 4)
    assert [version in Versions.parse("2+") for version in (1, 2, 99)] == [False, True, True]
    assert list(Versions(0, 2).all()) == [0, 1, 2]


UNMEANT = {
    "no object": ([], r"\$: expected an object"),
    "a field left out": ({"number": 1, "text": "", "structs": []} | {"number": None}, r"\$\.number: expected a value"),
    "a field nobody has": ({"number": 1, "text": "", "structs": [], "x": 1}, r"\$\.x: expected no such field"),
    "a field of a later version": ({"number": 1, "text": "", "structs": [], "list": []}, r"\$\.list: expected no such"),
    "a number as text": ({"number": "1", "text": "", "structs": []}, r"\$\.number: expected a value of type int32"),
    "a truth value as number": ({"number": True, "text": "", "structs": []}, r"\$\.number"),
    "a number too large": ({"number": 1 << 31, "text": "", "structs": []}, r"\$\.number"),
    "a number with a point": ({"number": 1.0, "text": "", "structs": []}, r"\$\.number"),
    "an object for a list": ({"number": 1, "text": "", "structs": {}}, r"\$\.structs: expected an array of object"),
    "no id": ({"number": 1, "text": "", "structs": [{"id": "AAAA"}]}, r"\$\.structs\[0\]\.id: expected an id"),
    "a text of 33 kB": ({"number": 1, "text": "x" * 32768, "structs": []}, r"\$\.text: expected a text of at most"),
    "a lone surrogate": ({"number": 1, "text": "\ud800", "structs": []}, r"\$\.text: expected text that UTF-8"),
}


@pytest.mark.parametrize("case", UNMEANT)
def test_a_document_that_does_not_mean_what_it_says(case: str) -> None:
    document, message = UNMEANT[case]
    with pytest.raises(WireError, match=message) as caught:
        json_form.from_json(FLAT, 1, document, "request.json")
    assert str(caught.value).startswith("wire-format: request.json: $")
    assert caught.value.position is None


@pytest.mark.parametrize(
    ("kind", "given"), [("float64", 10**400), ("float64", float("nan")), ("bytes", "a"), ("bool", 1)]
)
def test_other_values_that_are_none(kind: str, given: object) -> None:
    with pytest.raises(WireError, match=r"\$\.x"):
        json_form.from_json(parse_fields(f"x {kind}"), 0, {"x": given})
