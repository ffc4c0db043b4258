"""Our tables are the schemas of stock releases, and their classes read our bytes as we mean them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from logdir.wire import control, json_form, metadata_records
from logdir.wire.batch_writer import data_batch
from logdir.wire.batches import read_batches
from logdir.wire.codec import Codec
from logdir.wire.compression import Codec as Compression
from logdir.wire.errors import WireError
from logdir.wire.frames import MESSAGES
from logdir.wire.message import Form, Message
from logdir.wire.metadata_tables import TYPES
from logdir.wire.records import Record
from tests.kafka.fetch import RELEASES
from tests.kafka.wire_oracle import Schemas, ask, flat
from tests.logdir.wire.random_values import random_struct
from tests.mutation import mutations
from tests.proof.metadata_claims import KAFKA_READS
from tests.proof.plugin import Recorder

pytestmark = pytest.mark.kafka

SEED = 1
EACH = 12
"""Random values of each version of each message."""

_RENAMED = {"replicaEpoch": "candidateEpoch", "replicaId": "candidateId", "replicaDirectoryId": "candidateDirectoryId"}
"""Fields of Vote that were called otherwise up to 3.9."""

_CONTROL = {
    2: "LeaderChangeMessage",
    3: "SnapshotHeaderRecord",
    4: "SnapshotFooterRecord",
    5: "KRaftVersionRecord",
    6: "VotersRecord",
}


def _shipped() -> Iterator[tuple[str, Message]]:
    for (_, direction, form), one in MESSAGES.items():
        if form is Form.SHIPPED:
            yield f"{one.name}{direction.capitalize()}", one


def _renamed(lines: list[str], name: str, release: str) -> list[str]:
    if name != "VoteRequest" or release != "3.9.2":
        return lines
    return [line.replace(".replica", ".candidate") for line in lines]


@pytest.mark.parametrize("release", RELEASES)
def test_messages_are_the_schemas_of_the_release(release: str, releases: dict[str, Path]) -> None:
    schemas = Schemas(releases[release], release)
    compared = 0
    for name, one in _shipped():
        if name not in schemas or not schemas.versions(name):
            assert release == "4.3.1"
            assert one.key in (4, 5, 6, 7)
            continue
        assert schemas.key(name) == one.key
        assert schemas.versions(name).stop - 1 <= one.versions.high
        if release == "4.3.1":
            assert schemas.versions(name).stop - 1 == one.versions.high
        for version in schemas.versions(name):
            assert _renamed(flat(one.fields, version), name, release) == schemas.flat(name, version), (name, version)
            assert (version in one.flexible) == (version in schemas.flexible(name)), (name, version)
            compared += 1
    assert compared > 180


@pytest.mark.parametrize("release", RELEASES)
def test_records_are_the_schemas_of_the_release(release: str, releases: dict[str, Path]) -> None:
    schemas = Schemas(releases[release], release)
    ours = {kind.number: kind for kind in TYPES.values()}
    for name in schemas.names("metadata"):
        kind = ours.pop(schemas.key(name))
        assert schemas.flexible(name).start == 0
        if release == "4.3.1":
            assert list(schemas.versions(name)) == list(kind.versions.all())
        for version in schemas.versions(name):
            assert flat(kind.fields, version) == schemas.flat(name, version), (name, version)
    assert sorted(ours) == ([28] if release == "3.9.2" else [])
    for number, name in _CONTROL.items():
        control_type = control.TYPES[number]
        assert list(schemas.versions(name)) == list(control_type.versions.all())
        for version in schemas.versions(name):
            assert flat(control_type.table.fields, version) == schemas.flat(name, version), (name, version)


@dataclass(frozen=True)
class _Question:
    """A value, what to ask about it, and what should be answered."""

    words: tuple[str, ...]
    data: bytes
    document: Any


def _messages(draw: random.Random, schemas: Schemas, release: str, each: int) -> Iterator[_Question]:
    for name, one in _shipped():
        if name not in schemas:
            continue
        for version in schemas.versions(name):
            flexible = version in one.flexible
            codec = Codec(one.fields, version, flexible=flexible)
            for _ in range(each):
                value = random_struct(draw, one.fields, version, flexible=flexible)
                out = bytearray()
                codec.write(value, out)
                document = json_form.to_json(one.fields, version, value)
                if name == "VoteRequest" and release == "3.9.2":
                    document = _old_vote(document)
                words = ("message", name, str(version), out.hex())
                yield _Question(words, bytes(out), _without_records(document))


def _old_vote(document: Any) -> Any:
    if isinstance(document, dict):
        return {_RENAMED.get(name, name): _old_vote(value) for name, value in document.items()}
    return [_old_vote(value) for value in document] if isinstance(document, list) else document


def _without_records(document: Any) -> Any:
    # Kafka's converter writes an empty text for the records of a fetched partition, whatever they are.
    if isinstance(document, dict):
        return {name: _without_records(value) for name, value in document.items() if name != "records"}
    return [_without_records(value) for value in document] if isinstance(document, list) else document


def _records(draw: random.Random, schemas: Schemas, each: int) -> Iterator[_Question]:
    for name in sorted(schemas.names("metadata")):
        kind = TYPES[schemas.key(name)]
        for version in schemas.versions(name):
            for _ in range(each):
                fields = random_struct(draw, kind.fields, version, flexible=True)
                record = metadata_records.MetadataRecord(type=kind.number, version=version, fields=fields)
                data = metadata_records.encode(record)
                yield _Question(("record", data.hex()), data, metadata_records.to_json(record))


def _batches(draw: random.Random, count: int) -> Iterator[_Question]:
    for _ in range(count):
        offset = draw.randrange(1 << 40)
        records = []
        for _ in range(draw.randint(1, 5)):
            headers = tuple(
                (draw.choice(("", "h", "ü")), draw.choice((None, b"", b"x"))) for _ in range(draw.randint(0, 2))
            )
            key, value = (draw.choice((None, b"", draw.randbytes(200))) for _ in range(2))
            time = 1700000000000 + draw.randint(-(1 << 33), 1 << 33)
            records.append(Record(offset=offset, timestamp=time, key=key, value=value, headers=headers))
            offset += draw.choice((1, 1, 70))
        data = data_batch(records)
        shown = [
            [
                one.offset,
                one.timestamp,
                _hex(one.key),
                _hex(one.value),
                [[n.encode().hex(), _hex(v)] for n, v in one.headers],
            ]
            for one in records
        ]
        yield _Question(("batches", data.hex()), data, shown)


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


@pytest.mark.parametrize("release", RELEASES)
def test_stock_classes_read_and_write_what_we_do(
    release: str, releases: dict[str, Path], tmp_path: Path, record_proof: Recorder
) -> None:
    draw = random.Random(SEED)
    schemas = Schemas(releases[release], release)
    values = [*_messages(draw, schemas, release, EACH), *_records(draw, schemas, EACH)]
    batches = list(_batches(draw, 200))
    questions = [*values, *batches]
    answers = ask((one.words for one in questions), libs=releases[release], root=tmp_path, version=release)
    for question, answer in zip(questions, answers, strict=True):
        assert not answer.error, question.words[:3]
        *written, document = answer.words
        if written:
            assert written == [question.data.hex()], question.words[:3]
        # repr: the order of keys is Kafka's too.
        assert repr(_without_records(json.loads(document))) == repr(question.document), question.words[:3]
    record_proof(KAFKA_READS, {"releases": 1, "values": len(values), "batches": len(batches)}, seeds=SEED)


@pytest.mark.parametrize("release", RELEASES)
def test_what_we_read_of_damaged_values_stock_classes_read_alike(
    release: str, releases: dict[str, Path], tmp_path: Path
) -> None:
    draw = random.Random(SEED)
    schemas = Schemas(releases[release], release)
    values = [
        one
        for one in (*_messages(draw, schemas, release, 2), *_records(draw, schemas, 8))
        if "Vote" not in one.words[1]
    ]
    questions = []
    for _ in range(6000):
        original = draw.choice(values)
        (data,) = mutations([original.data], [b"\0", b"\x80", b"\xff" * 4], 1, draw.randrange(1 << 30))
        question = _read_by_us(original.words, data)
        if question is not None:
            questions.append(question)
    answers = ask((one.words for one in questions), libs=releases[release], root=tmp_path, version=release)
    assert len(questions) > 600
    for question, answer in zip(questions, answers, strict=True):
        # What we accept Kafka accepts, means and writes as we do. It accepts more: tags in any order, bad UTF-8.
        assert not answer.error, question.words
        assert answer.words[0] == question.data.hex(), question.words
        assert _without_records(json.loads(answer.words[1])) == question.document, question.words


def _read_by_us(words: tuple[str, ...], data: bytes) -> _Question | None:
    try:
        if words[0] == "record":
            record = metadata_records.decode(data)
            again, document = metadata_records.encode(record), metadata_records.to_json(record)
        else:
            one = dict(_shipped())[words[1]]
            version = int(words[2])
            codec = Codec(one.fields, version, flexible=version in one.flexible)
            value = codec.read(data)
            out = bytearray()
            codec.write(value, out)
            again, document = bytes(out), json_form.to_json(one.fields, version, value)
    except WireError:
        return None
    return _Question((*words[:-1], data.hex()), again, _without_records(document))


@pytest.mark.parametrize("release", RELEASES)
def test_every_codec_of_stock_classes_is_read(release: str, releases: dict[str, Path], tmp_path: Path) -> None:
    draw = random.Random(SEED)
    codecs = [codec.name.lower() for codec in Compression]
    values = [[draw.randbytes(20), b"x" * 200_000, b""], [draw.randbytes(100_000)], [b"a"]]
    asked = [(codec, group) for codec in codecs for group in values]
    questions = [("build", codec, *(value.hex() for value in group)) for codec, group in asked]
    answers = ask(questions, libs=releases[release], root=tmp_path, version=release)
    for (codec, group), answer in zip(asked, answers, strict=True):
        (batch,) = read_batches(bytes.fromhex(answer.words[0]))
        assert batch.codec.name.lower() == codec
        assert [record.value for record in batch.records()] == group
        assert [record.offset for record in batch.records()] == [100 + index for index in range(len(group))]
        assert next(batch.records()).key == b"k2"
