"""Images of metadata logs that stock nodes wrote, against what the stock decoder prints of their records."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from logdir.cluster import metadata_log
from logdir.cluster.image import Image
from logdir.cluster.metadata_log import Watermark
from logdir.ids import TopicId, Uuid
from tests.logdir.wire.golden_metadata import METADATA, printed

DIRECTORIES = sorted(path for path in METADATA.iterdir() if path.is_dir())
NAMES = [path.name for path in DIRECTORIES]


def applied(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Fold printed records into plain dictionaries, by code of its own."""
    state: dict[str, Any] = {"topics": {}, "partitions": {}, "brokers": {}, "features": {}}
    for document in documents:
        data = document["data"]
        match document["type"]:
            case "TOPIC_RECORD":
                state["topics"][data["topicId"]] = data["name"]
            case "PARTITION_RECORD":
                state["partitions"][data["topicId"], data["partitionId"]] = dict(data)
            case "PARTITION_CHANGE_RECORD":
                one = state["partitions"][data["topicId"], data["partitionId"]]
                one["partitionEpoch"] += 1
                if data.get("leader", -2) != -2:
                    one["leaderEpoch"] += 1
                one |= {key: value for key, value in data.items() if value is not None and value != -2}
            case "REMOVE_TOPIC_RECORD":
                del state["topics"][data["topicId"]]
                gone = [key for key in state["partitions"] if key[0] == data["topicId"]]
                for key in gone:
                    del state["partitions"][key]
            case "REGISTER_BROKER_RECORD":
                state["brokers"][data["brokerId"]] = dict(data)
            case "BROKER_REGISTRATION_CHANGE_RECORD":
                fenced = data.get("fenced", 0)
                if fenced:
                    state["brokers"][data["brokerId"]]["fenced"] = fenced > 0
            case "FENCE_BROKER_RECORD" | "UNFENCE_BROKER_RECORD":
                raise AssertionError("none of these logs has one")
            case "FEATURE_LEVEL_RECORD":
                state["features"][data["name"]] = data["featureLevel"]
    return state


def compare(image: Image, state: dict[str, Any]) -> None:
    assert {str(TopicId(key)): topic.name for key, topic in image.topics.items()} == state["topics"]
    assert {name: str(TopicId(key)) for name, key in image.names.items()} == {
        name: key for key, name in state["topics"].items()
    }
    partitions = {
        (str(TopicId(key)), number): one
        for key, topic in image.topics.items()
        for number, one in topic.partitions.items()
    }
    assert partitions.keys() == state["partitions"].keys()
    for key, said in state["partitions"].items():
        one = partitions[key]
        found = {
            "replicas": list(one.replicas),
            "isr": list(one.isr),
            "leader": one.leader,
            "leaderEpoch": one.leader_epoch,
            "partitionEpoch": one.partition_epoch,
        }
        assert found == {name: said[name] for name in found}, key
        for node, directory in zip(said["replicas"], said.get("directories") or (), strict=False):
            assert str(one.directory(node)) == directory
    assert {
        number: (str(Uuid(one.incarnation)), one.epoch, one.is_fenced) for number, one in image.brokers.items()
    } == {
        number: (said["incarnationId"], said["brokerEpoch"], said["fenced"])
        for number, said in state["brokers"].items()
    }
    assert image.features == {name: level for name, level in state["features"].items() if level}


def documents(path: Path) -> list[dict[str, Any]]:
    return [record.document for batch in printed(path) for record in batch.records if record.kind == "payload"]


@pytest.mark.parametrize("directory", DIRECTORIES, ids=NAMES)
def test_an_image_says_what_the_stock_decoder_prints(directory: Path, tmp_path: Path) -> None:
    (segment,) = directory.glob("*.log")
    whole = Watermark(offset=10**9, epoch=1, is_prefix_checked=True)
    tail_only = tmp_path / "log"
    tail_only.mkdir()
    shutil.copy(segment, tail_only)
    image = metadata_log.read(str(tail_only), node_id=1, cluster_id="x", watermark=whole)
    compare(image, applied(documents(segment)))
    assert image.ended is None
    assert image.names_node()
    # Snapshot and tail together say the same as the log from its beginning.
    both = metadata_log.read(str(directory), node_id=1, cluster_id="x", watermark=whole)
    compare(both, applied(documents(segment)))
    assert (both.epoch, both.offset) == (image.epoch, image.offset)


@pytest.mark.parametrize("directory", DIRECTORIES, ids=NAMES)
def test_a_snapshot_says_what_the_stock_decoder_prints(directory: Path) -> None:
    snapshot = max(directory.glob("*.checkpoint"))
    image = metadata_log.read(str(directory), node_id=1, cluster_id="x")
    compare(image, applied(documents(snapshot)))
    assert str(image.offset) == snapshot.name.split("-")[0].lstrip("0")
