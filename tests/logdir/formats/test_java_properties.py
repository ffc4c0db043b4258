"""Java Properties text, read and written as Java does."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdir.errors import MalformedFileError
from logdir.formats.kafka.java_properties import Style, date_text, java_order, parse, render
from tests.logdir.formats.contract import GOLDEN, PATH, java_text, only_format_errors, same_as_java
from tests.proof.plugin import Recorder

# kafka-formats §3.2, rule by rule.
READ = {
    "empty": (b"", {}),
    "one line": (b"a=b\n", {"a": "b"}),
    "no end of line": (b"a=b", {"a": "b"}),
    "crlf": (b"a=b\r\nc=d\r\n", {"a": "b", "c": "d"}),
    "cr": (b"a=b\rc=d\r", {"a": "b", "c": "d"}),
    "latin-1": (b"a=\xe9\xc3\xa9", {"a": "éÃ©"}),
    "bom is part of the key": (b"\xef\xbb\xbfa=b", {"ï»¿a": "b"}),
    "leading blanks": (b" \t\fa=b", {"a": "b"}),
    "vertical tab is no blank": (b"\x0ba=b", {"\x0ba": "b"}),
    "blank lines": (b"\n \t\n\r\n\fa=b", {"a": "b"}),
    "comments": (b"#x=1\n!y=2\n  # z=3\na=b", {"a": "b"}),
    "comment is not continued": (b"#x\\\na=b", {"a": "b"}),
    "continuation": (b"a=b\\\n   c", {"a": "bc"}),
    "continuation over crlf": (b"a=b\\\r\n\tc", {"a": "bc"}),
    "continuation in the key": (b"a\\\nb=c", {"ab": "c"}),
    "continuation is no comment": (b"a=b\\\n#c", {"a": "b#c"}),
    "empty continuation ends the line": (b"a=b\\\n\nc=d", {"a": "b", "c": "d"}),
    "even backslashes do not continue": (b"a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
    "three backslashes continue": (b"a=b\\\\\\\nc", {"a": "b\\c"}),
    "backslash at the end vanishes": (b"a=b\\", {"a": "b"}),
    "comment after a lone backslash": (b"\\\n#c", {}),
    "lone backslash": (b"\\", {"": ""}),
    "lone backslash and lf": (b"\\\n", {"": ""}),
    "lone backslash and crlf": (b"\\\r\n", {}),
    "colon": (b"a:b", {"a": "b"}),
    "blank separates": (b"a b", {"a": "b"}),
    "blanks around the separator": (b"a \t= \f b", {"a": "b"}),
    "only one separator is skipped": (b"a = = b", {"a": "= b"}),
    "trailing blanks belong to the value": (b"a=b \t", {"a": "b \t"}),
    "no value": (b"a\nb=\nc:", {"a": "", "b": "", "c": ""}),
    "no key": (b"=v", {"": "v"}),
    "escaped separators": (b"a\\=\\:\\ b=c", {"a=: b": "c"}),
    "control escapes": (b"a=\\t\\n\\r\\f", {"a": "\t\n\r\f"}),
    "other escapes are the character": (b"a=\\q\\b\\0\\\\", {"a": "qb0\\"}),
    "unicode": (b"\\u0061=\\u00e9\\u20AC", {"a": "é€"}),
    "surrogate pair": (b"a=\\ud83d\\ude00", {"a": "\U0001f600"}),
    "upper-case u is no escape": (b"a=\\U0061", {"a": "U0061"}),
    "last of a repeated key": (b"a=1\nb=2\na=3", {"a": "3", "b": "2"}),
}


@pytest.mark.parametrize(("data", "expected"), READ.values(), ids=READ.keys())
def test_reads_the_grammar(data: bytes, expected: dict[str, str]) -> None:
    assert parse(data) == expected


def test_keys_keep_the_order_of_the_file() -> None:
    assert list(parse(b"b=1\na=2\nc=3\na=4")) == ["b", "a", "c"]


@pytest.mark.parametrize(
    "data",
    [b"a=\\u12", b"a=\\u", b"a=\\u12g4", b"\\uuuu=1", b"a=\\u\xd9\xa1234", b"ok=1\na=\\u 123"],
)
def test_malformed_unicode_escape_is_one_error(data: bytes) -> None:
    with pytest.raises(MalformedFileError) as caught:
        parse(data, PATH)
    assert caught.value.path == PATH
    assert "hexadecimal" in caught.value.expected


def test_reads_what_java_reads() -> None:
    def ours(data: bytes) -> str:
        read = parse(data, PATH)
        keys = sorted(read, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return " ".join(["ok", *(f"{java_text(key)}={java_text(read[key])}" for key in keys)])

    same_as_java("properties", ours)


def test_writes_what_java_writes() -> None:
    lines = (GOLDEN / "java" / "writers.jsonl").read_text().splitlines()
    for line in lines:
        case = json.loads(line)
        written = render(dict(case["properties"]), style=Style(case["style"]))
        assert written == bytes.fromhex(case["hex"]), case
    assert len(lines) > 100


def test_writes_the_example_of_the_specification() -> None:
    properties = {
        "version": "1", "cluster.id": "MkU3OEVBNTcwNTJENDM2Qk", "node.id": "1",
        "directory.id": "JEXY6aqzQY-32P5TStzaFg",
    }  # fmt: skip
    assert render(properties, written_at_ms=1_700_000_000_000) == (
        b"#\n#Tue Nov 14 22:13:20 UTC 2023\n"
        b"node.id=1\ndirectory.id=JEXY6aqzQY-32P5TStzaFg\nversion=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\n"
    )


def test_stock_style_grows_at_each_rewrite_and_escaped_does_not() -> None:
    once = parse(render({"a": "é"}, style=Style.STOCK))["a"]
    assert once == "Ã©"
    assert parse(render({"a": "é"}))["a"] == "é"


def test_order_and_date() -> None:
    assert java_order(["version", "cluster.id", "broker.id", "directory.id"]) == [
        "broker.id", "directory.id", "version", "cluster.id",
    ]  # fmt: skip
    assert len(java_order([str(n) for n in range(100)])) == 100
    assert date_text(0) == "Thu Jan 01 00:00:00 UTC 1970"
    assert date_text(1_078_012_799_999) == "Sat Feb 28 23:59:59 UTC 2004"


@given(st.dictionaries(st.text(), st.text(), max_size=20))
def test_round_trip(properties: dict[str, str]) -> None:
    assert parse(render(properties, written_at_ms=0)) == properties


@given(st.binary())
def test_any_bytes_are_read_or_malformed(data: bytes) -> None:
    try:
        read = parse(data, PATH)
    except MalformedFileError:
        return
    assert parse(render(read)) == read


def test_damaged_files_raise_only_format_errors(record_proof: Recorder) -> None:
    only_format_errors(
        record_proof,
        "java properties",
        parse,
        [b"#\n#Tue\nnode.id=1\na\\ b : c\\\n  d\nx=\\u00e9\\u20ac\n", b"log.dirs=/a,/b\n"],
        [b"\\", b"\\u", b"\\u00", b"\n", b"\r", b"=", b"\xff", b"#"],
    )


SECRET = {
    "in its value": (b"# TLS\r\n\r\nssl.keystore.password=s3cret\\users\n", "line 3, ssl.keystore.password"),
    "in a value of two lines": (b"a=1\nsasl.jaas.config=alice\\\n  s3cret\\u12zz", "line 2, sasl.jaas.config"),
    "where a key stands": (b"ssl.keystore.password=\ns3cret\\users\n", "line 2"),
    "behind what is no key of Kafka's": (b"s3cret s3cret\\users", "line 1"),
    "behind a key with another s3cret": (b"s3cret.A=\\u00", "line 1"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "found"), SECRET.values(), ids=SECRET)
def test_an_error_shows_the_line_and_the_key_and_never_a_value(data: bytes, found: str) -> None:
    with pytest.raises(MalformedFileError) as caught:
        parse(data, PATH)
    assert str(caught.value) == (
        f"malformed-file: {PATH}: expected four hexadecimal digits after every \\u, found another text in {found}; "
        "write \\\\u for a plain \\u"
    )
