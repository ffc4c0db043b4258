"""meta.properties in both versions."""

from __future__ import annotations

import calendar
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdir.errors import FormatError, InvalidIdError, MalformedFileError, UnsupportedVersionError
from logdir.formats.kafka.java_properties import Style
from logdir.formats.kafka.meta_properties import MetaProperties, MetaVersion, parse, render
from logdir.ids import ClusterId, DirectoryId
from tests.logdir.formats.contract import (
    PATH,
    broker_files,
    java_text,
    label,
    only_format_errors,
    same_as_java,
)
from tests.proof.plugin import Recorder

TEXT = "JEXY6aqzQY-32P5TStzaFg"
DIRECTORY = DirectoryId.parse(TEXT)
V0, V1 = MetaVersion.V0, MetaVersion.V1
CLUSTER = ClusterId("c")
FILES = broker_files("d*/meta.properties")
GOOD = f"#\n#Tue Nov 14 22:13:20 UTC 2023\nnode.id=1\ndirectory.id={TEXT}\nversion=1\ncluster.id=c\n".encode()

READ = {
    "v1": (b"version=1\nnode.id=7\ncluster.id=c", MetaProperties(V1, CLUSTER, 7)),
    "v1 with directory": (GOOD, MetaProperties(V1, CLUSTER, 1, DIRECTORY)),
    "v0": (b"version=0\nbroker.id=7\ncluster.id=c", MetaProperties(V0, CLUSTER, 7)),
    "v0 without a version": (b"broker.id=7\ncluster.id=c", MetaProperties(V0, CLUSTER, 7)),
    "empty file is v0": (b"", MetaProperties(V0, None, None)),
    "v0 without ids": (b"version=0\n", MetaProperties(V0, None, None)),
    "v0 with directory": (
        f"broker.id=1\ndirectory.id={TEXT}".encode(),
        MetaProperties(V0, None, 1, DIRECTORY),
    ),
    "blanks around the version": (b"version= \\t1 \nnode.id=7\ncluster.id=c", MetaProperties(V1, CLUSTER, 7)),
    "version with sign and zero": (b"version=+01\nnode.id=7\ncluster.id=c", MetaProperties(V1, CLUSTER, 7)),
    "cluster id is free text": (
        "version=1\nnode.id=7\ncluster.id=5ca1ab1e ü ".encode("latin-1"),
        MetaProperties(V1, ClusterId("5ca1ab1e ü "), 7),
    ),
    "cluster id may be empty": (b"version=1\nnode.id=7\ncluster.id=", MetaProperties(V1, ClusterId(""), 7)),
    "negative node id": (b"version=1\nnode.id=-1\ncluster.id=c", MetaProperties(V1, CLUSTER, -1)),
    "node.id means nothing in v0": (
        b"node.id=x\nbroker.id=7",
        MetaProperties(V0, None, 7, None, (("node.id", "x"),)),
    ),
    "broker.id means nothing in v1": (
        b"broker.id=x\nversion=1\nnode.id=7\ncluster.id=c\nz=9\na=1",
        MetaProperties(V1, CLUSTER, 7, None, (("broker.id", "x"), ("z", "9"), ("a", "1"))),
    ),
    "reserved directory id is readable": (
        b"version=1\nnode.id=7\ncluster.id=c\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ",
        MetaProperties(V1, CLUSTER, 7, DirectoryId(bytes(15) + b"\x01")),
    ),
}
REJECTED: dict[str, tuple[bytes, type[FormatError], str]] = {
    "version 2": (b"version=2\nnode.id=1\ncluster.id=c", UnsupportedVersionError, "version"),
    "version -1": (b"version=-1", UnsupportedVersionError, "version"),
    "version in words": (b"version=one", MalformedFileError, "version"),
    "version empty": (b"version=", MalformedFileError, "version"),
    "v1 without node id": (b"version=1\nbroker.id=1\ncluster.id=c", MalformedFileError, "node.id"),
    "v1 without cluster id": (b"version=1\nnode.id=1", MalformedFileError, "cluster.id"),
    "node id with trailing blank": (b"version=1\nnode.id=1 \ncluster.id=c", MalformedFileError, "node.id"),
    "node id beyond int32": (b"version=1\nnode.id=2147483648\ncluster.id=c", MalformedFileError, "node.id"),
    "node id empty": (b"version=1\nnode.id=\ncluster.id=c", MalformedFileError, "node.id"),
    "broker id in words": (b"broker.id=one", MalformedFileError, "broker.id"),
    "directory id": (b"broker.id=1\ndirectory.id=x", InvalidIdError, "directory.id"),
    "directory id with trailing blank": (f"directory.id={TEXT} ".encode(), InvalidIdError, "directory.id"),
    "directory id empty": (b"directory.id=", InvalidIdError, "directory.id"),
    "escape": (b"version=1\\u00", MalformedFileError, "hexadecimal"),
}


@pytest.mark.parametrize(("data", "value"), READ.values(), ids=READ.keys())
def test_reads(data: bytes, value: MetaProperties) -> None:
    assert parse(data, PATH) == value


@pytest.mark.parametrize(("data", "error", "word"), REJECTED.values(), ids=REJECTED.keys())
def test_refuses_with_the_key_at_fault(data: bytes, error: type[FormatError], word: str) -> None:
    with pytest.raises(error) as caught:
        parse(data, PATH)
    assert caught.value.path == PATH
    assert word in caught.value.expected
    assert caught.value.found


def test_answers_as_the_stock_class() -> None:
    def ours(data: bytes) -> str:
        read = parse(data, PATH)
        node_id = "null" if read.node_id is None else read.node_id
        return f"ok {read.version.value} {java_text(read.cluster_id)} {node_id} {read.directory_id or 'null'}"

    same_as_java("meta-properties", ours)


@pytest.mark.parametrize("path", FILES, ids=label)
def test_files_of_brokers_are_read_and_written_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    value = parse(data, str(path))
    date = time.strptime(data.splitlines()[1].decode(), "#%a %b %d %H:%M:%S UTC %Y")
    at_ms = calendar.timegm(date) * 1000
    assert render(value, written_at_ms=at_ms) == render(value, written_at_ms=at_ms, style=Style.STOCK) == data
    tree = path.parts[-3]
    assert value.version is (V0 if tree.endswith(("-zk", "-migration")) else V1)
    assert value.node_id == 1
    assert value.cluster_id
    assert (value.directory_id is None) == tree.startswith(("2.8", "3.3", "3.6"))
    assert value.unknown == ()


def test_what_each_version_can_do() -> None:
    assert (V0.node_key, V1.node_key) == ("broker.id", "node.id")
    assert [V0.always_has_node_id, V1.always_has_node_id] == [False, True]
    assert [V0.always_has_cluster_id, V1.always_has_cluster_id] == [False, True]
    assert [V0.is_written_by_format, V1.is_written_by_format] == [False, True]


def test_unknown_keys_survive_a_rewrite() -> None:
    value = parse(b"version=1\nnode.id=1\ncluster.id=c\nfuture.key = a=b\nbroker.id=x\n")
    assert dict(parse(render(value._replace(node_id=2))).unknown) == {"future.key": "a=b", "broker.id": "x"}


WRONG = {
    "v1 without node id": MetaProperties(V1, CLUSTER, None),
    "v1 without cluster id": MetaProperties(V1, None, 1),
    "zero directory id": MetaProperties(V1, CLUSTER, 1, DirectoryId(bytes(16))),
    "reserved directory id": MetaProperties(V1, CLUSTER, 1, DirectoryId(bytes(8) + b"\x80" + bytes(7))),
    "unknown key is known": MetaProperties(V1, CLUSTER, 1, None, (("node.id", "2"),)),
}


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG.keys())
def test_never_writes_what_kafka_would_refuse(value: MetaProperties) -> None:
    with pytest.raises(ValueError):
        render(value)


@st.composite
def values(draw: st.DrawFn) -> MetaProperties:
    version = draw(st.sampled_from(MetaVersion))
    number = st.integers(-(2**31), 2**31 - 1)
    directory = st.binary(min_size=16, max_size=16).map(DirectoryId).filter(lambda d: not d.is_reserved)
    keys = st.text(max_size=8).filter(lambda key: key not in version.known_keys)
    return MetaProperties(
        version,
        draw(st.text().map(ClusterId) if version is V1 else st.none() | st.text().map(ClusterId)),
        draw(number if version is V1 else st.none() | number),
        draw(st.none() | directory),
        tuple(draw(st.dictionaries(keys, st.text(), max_size=4)).items()),
    )


@given(values())
def test_round_trip(value: MetaProperties) -> None:
    read = parse(render(value, written_at_ms=0))
    assert read._replace(unknown=()) == value._replace(unknown=())
    assert dict(read.unknown) == dict(value.unknown)


def test_damaged_files_raise_only_format_errors(record_proof: Recorder) -> None:
    only_format_errors(
        record_proof,
        "meta.properties",
        parse,
        [GOOD, *(path.read_bytes() for path in FILES)],
        [b"\n", b"\\", b"\\u", b"version=", b"version=2\n", b"node.id=x\n", b"\xff", b" ", b"#", b"-"],
    )
