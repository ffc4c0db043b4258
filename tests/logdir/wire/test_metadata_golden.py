"""Every byte of the metadata logs of stock nodes is read as the stock decoder reads it, and written back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from logdir.wire import control, metadata_records
from logdir.wire.batch_writer import data_batch
from logdir.wire.batches import Batch, read_batches, read_values
from logdir.wire.metadata_fast import read_fast
from tests.logdir.wire.golden_metadata import DUMPED, FILES, PrintedBatch, label, printed
from tests.logdir.wire.rows import row_of
from tests.proof.metadata_claims import GOLDEN_DUMPS
from tests.proof.plugin import Recorder


def _batches(path: Path) -> list[Batch]:
    return list(read_batches(path.read_bytes(), str(path)))


def test_the_golden_files_are_there() -> None:
    assert len(DUMPED) == 8
    assert len(FILES) == 9
    assert sum(len(batch.records) for path in DUMPED for batch in printed(path)) == 997


@pytest.mark.parametrize("path", FILES, ids=label)
def test_batches_fill_the_file(path: Path) -> None:
    batches = _batches(path)
    assert [batch.position for batch in batches] == [
        sum(batch.size for batch in batches[:index]) for index in range(len(batches))
    ]
    assert batches[-1].position + batches[-1].size == path.stat().st_size


@pytest.mark.parametrize("path", DUMPED, ids=label)
def test_batch_headers_are_what_the_stock_decoder_prints(path: Path) -> None:
    batches, dump = _batches(path), printed(path)
    assert len(batches) == len(dump)
    for batch, shown in zip(batches, dump, strict=True):
        assert _header(batch) == {name: shown.fields[name] for name in _header(batch)}
        assert len(shown.records) == batch.count


def _header(batch: Batch) -> dict[str, str]:
    return {
        "baseOffset": str(batch.base_offset),
        "lastOffset": str(batch.last_offset),
        "count": str(batch.count),
        "baseSequence": str(batch.base_sequence),
        "producerId": str(batch.producer_id),
        "producerEpoch": str(batch.producer_epoch),
        "partitionLeaderEpoch": str(batch.leader_epoch),
        "isTransactional": str(batch.is_transactional).lower(),
        "isControl": str(batch.is_control).lower(),
        "position": str(batch.position),
        "CreateTime": str(batch.max_timestamp),
        "size": str(batch.size),
        "magic": str(batch.magic),
        "compresscodec": batch.codec.name.lower(),
        "crc": str(batch.crc),
        "isvalid": "true",
    }


@pytest.mark.parametrize("path", DUMPED, ids=label)
def test_records_are_what_the_stock_decoder_prints(path: Path, record_proof: Recorder) -> None:
    compared = 0
    for batch, shown in zip(_batches(path), printed(path), strict=True):
        for record, line in zip(batch.records(), shown.records, strict=True):
            compared += 1
            assert (record.offset, record.timestamp) == (line.offset, line.timestamp)
            assert (-1 if record.key is None else len(record.key)) == line.key_size
            assert len(record.value or b"") == line.value_size
        if batch.is_control:
            _same_control(batch, shown)
        else:
            _same_values(batch, shown)
    record_proof(GOLDEN_DUMPS, {"files": 1, "records": compared})


def _same_control(batch: Batch, shown: PrintedBatch) -> None:
    for record, line in zip(batch.records(), shown.records, strict=True):
        decoded = control.decode_control(record)
        if line.kind == "controlType":
            assert line.text == f"{decoded.name}({decoded.type})"
        else:
            assert line.kind.upper() == decoded.name.replace("_", "")
            assert control.to_json(decoded) == line.document
        assert control.encode_control(decoded) == (record.key, record.value)


def _same_values(batch: Batch, shown: PrintedBatch) -> None:
    values = list(read_values(batch))
    assert [offset for offset, _ in values] == [line.offset for line in shown.records]
    for (_, value), line in zip(values, shown.records, strict=True):
        record = metadata_records.decode(value)
        assert line.kind == "payload"
        assert metadata_records.to_json(record) == line.document
        # The order of keys is the stock decoder's too.
        assert repr(metadata_records.to_json(record)) == repr(line.document)
        assert metadata_records.encode(record) == value
        assert metadata_records.from_json(line.document) == record


@pytest.mark.parametrize("path", FILES, ids=label)
def test_batches_are_written_back_byte_for_byte(path: Path) -> None:
    for batch in _batches(path):
        records = list(batch.records())
        assert data_batch(records, leader_epoch=batch.leader_epoch, attributes=batch.attributes) == batch.data


@pytest.mark.parametrize("path", FILES, ids=label)
def test_the_fast_reader_says_what_the_tables_say(path: Path) -> None:
    for batch in _batches(path):
        if not batch.is_control:
            slow = [(offset, row_of(metadata_records.decode(value))) for offset, value in read_values(batch)]
            assert list(read_fast(batch)) == slow


def test_the_golden_files_hold_many_types() -> None:
    seen: Counter[str] = Counter()
    for path in FILES:
        for batch in _batches(path):
            if not batch.is_control:
                seen.update(metadata_records.decode(value).name for _, value in read_values(batch))
    assert len(seen) == 15
    assert min(seen[f"{name}_RECORD"] for name in ("TOPIC", "PARTITION", "PARTITION_CHANGE")) > 20
