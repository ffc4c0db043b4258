"""The four codecs: what Kafka writes is read, no more than the limit is made, a missing library is one clear line."""

from __future__ import annotations

import json
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest

from logdir.wire.batches import read_batches
from logdir.wire.compression import Codec, decompress
from logdir.wire.errors import CodecMissingError, WireError
from logdir.wire.records import Record

TEXT = b"one value after another, " * 40
_HEADER = b"\x82SNAPPY\0" + b"\0\0\0\1" * 2


def _gzip(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=31)
    return stream.compress(data) + stream.flush()


def _raw(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def _xerial(data: bytes, block: int = 300) -> bytes:
    blocks = [_raw(data[at : at + block]) for at in range(0, len(data), block)]
    return _HEADER + b"".join(len(one).to_bytes(4, "big") + one for one in blocks)


FORMS: dict[str, tuple[Codec, Callable[[bytes], bytes]]] = {
    "none": (Codec.NONE, bytes),
    "gzip": (Codec.GZIP, _gzip),
    "snappy in blocks": (Codec.SNAPPY, _xerial),
    "snappy, one raw block": (Codec.SNAPPY, _raw),
    "lz4": (Codec.LZ4, lambda data: bytes(cramjam.lz4.compress(data))),
    "zstd": (Codec.ZSTD, lambda data: bytes(cramjam.zstd.compress(data))),
}
PACKED = [name for name in FORMS if name != "none"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 299, 300, 1000, 70_000, 3_000_000])
def test_what_was_compressed_comes_back(form: str, size: int) -> None:
    codec, compress = FORMS[form]
    data = (TEXT * (size // len(TEXT) + 1))[:size]
    assert decompress(codec, compress(data)) == data
    assert decompress(codec, compress(data), size) == data


@pytest.mark.parametrize("form", PACKED)
def test_one_byte_above_the_limit_is_refused(form: str) -> None:
    codec, compress = FORMS[form]
    with pytest.raises(WireError, match="at most 999 bytes when decompressed, found more"):
        decompress(codec, compress(TEXT), 999)


@pytest.mark.parametrize("form", ["gzip", "zstd", "lz4", "snappy, one raw block"])
def test_a_bomb_is_stopped_while_it_grows(form: str) -> None:
    codec, compress = FORMS[form]
    bomb = compress(bytes(64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match="at most 1048576 bytes"):
            decompress(codec, bomb, 1 << 20)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8 << 20


@pytest.mark.parametrize("form", PACKED)
def test_cut_off_data_is_refused(form: str) -> None:
    codec, compress = FORMS[form]
    data = compress(TEXT)
    for end in range(1, len(data)):
        if form == "snappy in blocks" and end in _ends_of_blocks(data):
            continue
        with pytest.raises(WireError):
            decompress(codec, data[:end])


def _ends_of_blocks(data: bytes) -> set[int]:
    ends, at = {16}, 16
    while at < len(data):
        at += 4 + int.from_bytes(data[at : at + 4], "big")
        ends.add(at)
    return ends


GOLDEN = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "golden" / "wire" / "codecs.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: f"{golden['release']} {golden['codec']}")
def test_batches_of_stock_classes_are_read(golden: dict[str, str]) -> None:
    (batch,) = read_batches(bytes.fromhex(golden["hex"]))
    assert batch.codec.name.lower() == golden["codec"]
    assert list(batch.records()) == [
        Record(offset=100 + index, timestamp=1700000000002 + index, key=f"k{2 + index}".encode(), value=value)
        for index, value in enumerate([b"one", b"", bytes(range(256)), b"x" * 5000, b"last"])
    ]
    if golden["codec"] != "none":
        with pytest.raises(WireError, match="at most 4096 bytes"):
            list(batch.records(4096))


def test_the_golden_batches_are_there() -> None:
    assert {golden["codec"] for golden in GOLDEN} == {codec.name.lower() for codec in Codec}


BROKEN = {
    "gzip that is none": (Codec.GZIP, b"nothing", "gzip data"),
    "nothing as gzip": (Codec.GZIP, b"", "the end of gzip data"),
    "garbage behind gzip": (Codec.GZIP, _gzip(b"a") + b"x", "the end of gzip data|gzip data"),
    "a snappy block below 0": (
        Codec.SNAPPY,
        _HEADER + b"\xff\xff\xff\xff",
        "a snappy block of at most 0 bytes, found -1",
    ),
    "a snappy block beyond the end": (Codec.SNAPPY, _HEADER + b"\0\0\0\x09ab", "at most 2 bytes, found 9"),
    "a snappy length cut off": (Codec.SNAPPY, _HEADER + b"\0\0", "the length of a snappy block"),
    "a snappy header cut off": (Codec.SNAPPY, _HEADER[:9], "a snappy header"),
    "nothing as snappy": (Codec.SNAPPY, b"", "a variable-length number"),
    "a snappy block of 2 GiB": (Codec.SNAPPY, b"\xff\xff\xff\xff\x07" + b"abc", "when decompressed, found more"),
    "a snappy block that is none": (Codec.SNAPPY, b"\x09abc", "a snappy block"),
    "lz4 that is none": (Codec.LZ4, b"nothing", "lz4 data"),
    "zstd that is none": (Codec.ZSTD, b"nothing", "zstd data"),
    "nothing as lz4": (Codec.LZ4, b"", "lz4 data"),
    "nothing as zstd": (Codec.ZSTD, b"", "zstd data"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_decompressed(case: str) -> None:
    codec, data, message = BROKEN[case]
    with pytest.raises(WireError, match=message):
        decompress(codec, data)


def test_gzip_members_and_snappy_streams_may_follow_each_other() -> None:
    assert decompress(Codec.GZIP, _gzip(b"ab") + _gzip(b"") + _gzip(b"c")) == b"abc"
    assert decompress(Codec.SNAPPY, _xerial(b"ab") + _xerial(b"c")) == b"abc"
    assert decompress(Codec.SNAPPY, _HEADER) == b""


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_missing_library_is_one_line_that_says_what_to_install(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(CodecMissingError) as caught:
        decompress(codec, b"x")
    assert str(caught.value) == (
        f"codec-missing: codec {codec.name.lower()}: expected the library cramjam, found no such library; "
        "pip install 'logdird[compression]'"
    )
    assert decompress(Codec.GZIP, _gzip(TEXT)) == TEXT
