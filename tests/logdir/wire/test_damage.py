"""Whatever is damaged, wherever: what is whole is read, the rest is refused by one typed error that names the byte."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import cramjam
import pytest

from logdir.wire import control
from logdir.wire.batch_writer import encode_batch
from logdir.wire.batches import CRC_START, Batch, read_batches, read_values
from logdir.wire.compression import Codec
from logdir.wire.crc32c import crc32c
from logdir.wire.errors import CorruptBatchError, WireError
from logdir.wire.frames import decode_request, decode_response, encode_request, encode_response
from logdir.wire.message import Direction, Form
from logdir.wire.metadata_fast import read_fast
from logdir.wire.records import HEADER
from tests.logdir.wire.golden_frames import golden_frames
from tests.logdir.wire.golden_metadata import FILES
from tests.mutation import SEED, mutations
from tests.proof.metadata_claims import DAMAGED_BATCHES
from tests.proof.plugin import Recorder

PATH = "/d1/t-0/00000000000000000000.log"
_PIECES = (b"\0", b"\x80", b"\xff" * 4, b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", b"\x82SNAPPY\0", bytes(40))
LIMIT = 1 << 20


def _names_its_byte(error: WireError, first: int, last: int) -> None:
    assert error.position is not None
    assert first <= error.position <= last
    assert error.path == f"{PATH} at byte {error.position}"
    assert error.expected
    assert error.found
    assert len(str(error).splitlines()) == 1


def test_no_damaged_file_is_read_beyond_its_whole_batches(record_proof: Recorder) -> None:
    count = DAMAGED_BATCHES.count("files")
    originals = [path.read_bytes()[:4000] for path in FILES]
    whole = {batch.data[CRC_START:] for original in originals for batch in read_batches(original)}
    refused = 0
    for data in mutations(originals, _PIECES, count):
        end = 0
        try:
            for batch in read_batches(data, PATH):
                assert batch.position == end
                assert batch.data == data[end : end + batch.size]
                assert batch.data[CRC_START:] in whole
                end += batch.size
        except CorruptBatchError as error:
            _names_its_byte(error, end, len(data) - 1)
            refused += 1
    assert 0 < refused < count
    record_proof(DAMAGED_BATCHES, {"files": count}, seeds=SEED)


class Body(NamedTuple):
    """The records of a real batch, plain or compressed, and what its header says of them."""

    attributes: int
    records: int
    last_offset_delta: int
    data: bytes


def _bodies() -> list[Body]:
    found = []
    for path in FILES:
        for number, batch in enumerate(read_batches(path.read_bytes())):
            plain = Body(batch.attributes, batch.count, batch.last_offset_delta, batch.data[HEADER.size :])
            found.append(plain)
            if number < 5:
                found += _compressed(plain)
    return found


def _compressed(plain: Body) -> list[Body]:
    gzip = zlib.compressobj(wbits=31)
    block = bytes(cramjam.snappy.compress_raw(plain.data))
    snappy = b"\x82SNAPPY\0" + b"\0\0\0\1" * 2 + len(block).to_bytes(4, "big") + block
    forms = [
        (Codec.GZIP, gzip.compress(plain.data) + gzip.flush()),
        (Codec.SNAPPY, snappy),
        (Codec.SNAPPY, block),
        (Codec.LZ4, bytes(cramjam.lz4.compress(plain.data))),
        (Codec.ZSTD, bytes(cramjam.zstd.compress(plain.data))),
    ]
    return [plain._replace(attributes=plain.attributes | codec, data=data) for codec, data in forms]


def _sealed(draw: random.Random, body: Body) -> Batch:
    """Return a batch whose checksum holds over a damaged body, now and then with a damaged header."""
    data = encode_batch(
        body.data,
        base_offset=draw.randrange(1 << 40),
        leader_epoch=1,
        attributes=draw.randrange(1 << 15) if draw.random() < 0.05 else body.attributes,
        last_offset_delta=draw.choice((0, 1 << 30)) if draw.random() < 0.1 else body.last_offset_delta,
        base_timestamp=0,
        max_timestamp=0,
        count=draw.randrange(1 << draw.choice((3, 31))) if draw.random() < 0.1 else body.records,
        producer_id=5 if draw.random() < 0.05 else -1,
    )
    (batch,) = read_batches(data, PATH)
    assert batch.crc == crc32c(data[CRC_START:])
    return batch


def test_damaged_batches_whose_checksum_holds_raise_only_wire_errors(record_proof: Recorder) -> None:
    draw = random.Random(SEED)
    count = DAMAGED_BATCHES.count("batches")
    bodies = _bodies()
    refused = read = 0
    for _ in range(count):
        body = draw.choice(bodies)
        (data,) = mutations([body.data], _PIECES, 1, draw.randrange(1 << 30))
        batch = _sealed(draw, body._replace(data=data))
        for outcome in (_all_records(batch), read_values(batch), read_fast(batch)):
            try:
                for _ in outcome:
                    read += 1
            except WireError as error:
                _names_its_byte(error, 0, len(batch.data))
                refused += 1
    assert refused > count
    assert read > count
    record_proof(DAMAGED_BATCHES, {"batches": count}, seeds=SEED)


def _all_records(batch: Batch) -> Iterator[object]:
    for record in batch.records(LIMIT):
        yield record
        if batch.is_control:
            try:
                yield control.decode_control(record, "control record")
            except WireError as error:
                _is_one_line(error)


def test_damaged_frames_raise_only_wire_errors(record_proof: Recorder) -> None:
    draw = random.Random(SEED)
    count = DAMAGED_BATCHES.count("frames")
    frames = golden_frames()
    refused = 0
    for _ in range(count):
        frame = draw.choice(frames)
        (data,) = mutations([frame.data], _PIECES, 1, draw.randrange(1 << 30))
        form = draw.choice((Form.SHIPPED, Form.SHIPPED, Form.KIP))
        try:
            if frame.direction is Direction.REQUEST:
                request = decode_request(data, form)
                # What was read can be written, and is read as the same again.
                assert decode_request(encode_request(*request, form), form) == request
            else:
                response = decode_response(frame.key, frame.version, data, form)
                again = encode_response(frame.key, frame.version, *response, form)
                assert decode_response(frame.key, frame.version, again, form) == response
        except WireError as error:
            _is_one_line(error)
            refused += 1
    assert 0 < refused < count
    record_proof(DAMAGED_BATCHES, {"frames": count}, seeds=SEED)


def _is_one_line(error: WireError) -> None:
    assert error.path
    assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_compressed_batch_names_where_its_records_start(codec: Codec) -> None:
    data = encode_batch(
        b"no such data",
        base_offset=0,
        leader_epoch=0,
        attributes=codec,
        last_offset_delta=0,
        base_timestamp=0,
        max_timestamp=0,
        count=1,
    )
    (batch,) = read_batches(data, PATH)
    with pytest.raises(WireError) as caught:
        list(batch.records())
    assert caught.value.position == HEADER.size
