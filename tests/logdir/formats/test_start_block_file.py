"""``start-block.json``, and a ``meta.properties`` blocked by its node id alone."""

from __future__ import annotations

import pytest

from logdir.errors import FormatError, MalformedFileError, UnsupportedVersionError
from logdir.formats.kafka import java_properties, meta_properties
from logdir.formats.own import own_json, start_block_file
from logdir.formats.own.start_block_file import FALSE_NODE_ID, StartBlockFile
from tests.builders import CLUSTER, DIRECTORY, META
from tests.logdir.formats.contract import broker_files, label
from tests.mutation import mutations

GOOD = META.format(node=1, directory=DIRECTORY, cluster=CLUSTER).encode()
FILE = StartBlockFile(GOOD, 1_700_000_000_123_456_789, 1)


@pytest.mark.parametrize("value", [FILE, StartBlockFile(b"", 0, None), StartBlockFile(bytes(range(256)), 1, 0)])
def test_what_is_rendered_reads_back(value: StartBlockFile) -> None:
    assert start_block_file.parse(start_block_file.render(value)) == value


def test_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"/d/start-block.json.*start_block version 1.*found 2"):
        start_block_file.parse(own_json.render("start_block", 2, {}), "/d/start-block.json")


def test_a_time_before_1970_cannot_be_kept() -> None:
    with pytest.raises(ValueError, match="1970"):
        start_block_file.render(FILE._replace(mtime_ns=-1))


def test_text_that_is_no_base64_is_malformed() -> None:
    data = own_json.render("start_block", 1, {"meta_properties": "§", "mtime_ns": 1, "node_id": 1})
    with pytest.raises(MalformedFileError, match="base64 in meta_properties"):
        start_block_file.parse(data, "/d/start-block.json")


def test_damage_is_refused_and_nothing_else_is_raised() -> None:
    whole = start_block_file.render(FILE)
    for data in mutations([whole], [b'"start_block":1', b"null"], 500):
        if data != whole:
            with pytest.raises(FormatError):
                start_block_file.parse(data)


@pytest.mark.parametrize("path", broker_files("d*/meta.properties"), ids=label)
def test_every_brokers_file_is_blocked_by_one_line_alone(path: object) -> None:
    data = path.read_bytes()  # type: ignore[attr-defined]
    changed = start_block_file.blocked(data)
    before, after = data.splitlines(keepends=True), changed.splitlines(keepends=True)
    differing = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    key = meta_properties.parse(data).version.node_key
    assert [new for _, new in differing] == [f"{key}={FALSE_NODE_ID}\n".encode()]
    assert start_block_file.is_blocked(changed)
    assert not start_block_file.is_blocked(data)
    assert start_block_file.blocked(changed) == changed


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"#only a comment",
        b"version=0\nbroker.id=3\n",
        b"version=0\ncluster.id=x",
        b"version=1\r\nnode.id=3\r\ncluster.id=x\r\n",
        b"version=1\rnode.id=3\rcluster.id=x\r",
        b"version=1\ncluster.id=x\nnode\\.id=3",
        b"version=1\ncluster.id=x\nnode.id=\\\n  3\n",
        b"version=1\ncluster.id=x\nnode.id 3\n",
        b"node.id = 1\nversion=1\ncluster.id=x\n  node.id : 3\n",
        b"version=1\nnode.id=3\ncluster.id=x\n#node.id=3\nmine=a\\\nnode.id=3\nbroker.id=9\n",
        b"version=1\nnode.id=3\ncluster.id=x\nlast=\\",
        b"version=1\nnode.id=-1\ncluster.id=\xe9\n",
    ],
)
def test_only_the_node_id_differs_whatever_the_file_looks_like(data: bytes) -> None:
    changed = start_block_file.blocked(data)
    before, after = meta_properties.parse(data), meta_properties.parse(changed)
    assert after == before._replace(node_id=FALSE_NODE_ID)
    comments = [line for line in data.splitlines() if line.startswith(b"#")]
    assert [line for line in changed.splitlines() if line.startswith(b"#")] == comments
    said = java_properties.parse(changed)
    key = before.version.node_key
    assert {**java_properties.parse(data), key: str(FALSE_NODE_ID)} == said


def test_a_malformed_file_is_not_blocked() -> None:
    with pytest.raises(MalformedFileError, match=r"/d/meta\.properties"):
        start_block_file.blocked(b"version=1\n", "/d/meta.properties")
