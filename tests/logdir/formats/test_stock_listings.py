"""What stock tools list: the order of Java's maps, the JSON of log dirs, the lines of topics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logdir.formats.stock_output import log_dirs_json, topic_lines
from logdir.formats.stock_output.java_map import map_order, partition_hash, text_hash
from logdir.formats.stock_output.log_dirs_json import LogDirLine, PartitionLine
from logdir.formats.stock_output.topic_lines import PartitionText, Reassignment, TopicText
from logdir.ids import TopicId

RECORDED = sorted((Path(__file__).parents[2] / "golden" / "log-dirs-tool").glob("*.txt"))


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("a", 97), ("hello", 99162322), ("Aa", 2112), ("BB", 2112), ("\N{GRINNING FACE}", 1772899)],
)
def test_hashes_are_javas(text: str, value: int) -> None:
    assert text_hash(text) == value


def test_a_map_grows_when_it_is_three_quarters_full() -> None:
    """12 keys fit into 16 bins, 13 do not; made with one bin, a map of 6 keys has 8."""
    keys = list(range(0, 13 * 16, 16))
    assert map_order(reversed(keys[:12]), lambda key: key) == keys[11::-1]  # all in bin 0: as they came
    assert map_order([16, 1, *range(32, 43)], lambda key: key)[:3] == [32, 1, 33]
    assert map_order([8, 1, 2, 3, 4, 5], lambda key: key, bins=1) == [8, 1, 2, 3, 4, 5]
    assert map_order([8, 1, 2, 3, 4, 5, 6], lambda key: key, bins=1) == [1, 2, 3, 4, 5, 6, 8]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_a_stock_tool_printed_is_rendered_again(path: Path) -> None:
    line = path.read_text().splitlines()[-1]
    value = json.loads(line)
    (broker,) = value["brokers"]
    read = [
        LogDirLine(one["logDir"], one["error"], tuple(_line(row) for row in one["partitions"]))
        for one in broker["logDirs"]
    ]
    again = log_dirs_json.render(broker["broker"], read)
    assert len(again) == len(line)
    assert [*json.loads(again)] == [*value]
    assert [*json.loads(again)["brokers"][0]["logDirs"][0]] == [*broker["logDirs"][0]]
    rows = {one["logDir"]: one["partitions"] for one in json.loads(again)["brokers"][0]["logDirs"]}
    for one in broker["logDirs"]:
        assert map_order(one["partitions"], lambda row: partition_hash(*_line(row)[:2])) == one["partitions"]
        assert sorted(map(json.dumps, rows[one["logDir"]])) == sorted(map(json.dumps, one["partitions"]))


def _line(row: dict[str, object]) -> PartitionLine:
    topic, _, number = str(row["partition"]).rpartition("-")
    size, lag = row["size"], row["offsetLag"]
    assert isinstance(size, int)
    assert isinstance(lag, int)
    return PartitionLine(topic, int(number), size, lag, bool(row["isFuture"]))


def test_names_that_json_escapes_stay_one_line() -> None:
    made = log_dirs_json.render(1, [LogDirLine('/a"\n', log_dirs_json.OFFLINE, ())])
    assert "\n" not in made
    assert json.loads(made)["brokers"][0]["logDirs"] == [
        {"partitions": [], "error": log_dirs_json.OFFLINE, "logDir": '/a"\n'}
    ]


def part(number: int, **changed: object) -> PartitionText:
    return PartitionText(number, 1, (1, 2, 3), (1, 2), None, (), ())._replace(**changed)  # type: ignore[arg-type] # fields


def topic(*partitions: PartitionText, name: str = "t", **changed: object) -> TopicText:
    return TopicText(name, None, (), partitions)._replace(**changed)  # type: ignore[arg-type] # fields


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        (None, 3),
        (Reassignment((3,), ()), 2),
        (Reassignment((3,), (1,)), 2),
        (Reassignment((), (1,)), 3),
        (Reassignment((9,), (8,)), 3),
    ],
)
def test_what_is_being_added_does_not_count_as_a_replica(change: Reassignment | None, factor: int) -> None:
    first, *_ = topic_lines.render(topic(part(0, reassignment=change)))
    assert f"\tReplicationFactor: {factor}\t" in first


def test_the_zero_id_is_not_shown() -> None:
    for topic_id in (None, TopicId(bytes(16))):
        first, *_ = topic_lines.render(topic(part(0), topic_id=topic_id))
        assert first == "Topic: t\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: "


def test_some_partitions_of_a_topic_are_counted_with_all() -> None:
    found = list(topic_lines.render(topic(part(0), part(1), part(5)), frozenset((5,))))
    assert "\tPartitionCount: 3\t" in found[0]
    assert [line.split("\t")[2] for line in found[1:]] == ["Partition: 5"]


def test_topics_come_in_the_order_that_was_measured() -> None:
    """Two brokers of 4.3.1 listed them so (tests/kafka/test_describe.py)."""
    names = ["under_score-and.dots-1", "x-y-3", "plain", "on-two-only", "pair", "a.b.c"]
    assert [one.name for one in topic_lines.order(topic(part(0), name=name) for name in sorted(names))] == names


def test_settings_come_in_the_order_that_was_measured() -> None:
    names = [
        "min.insync.replicas", "segment.bytes", "retention.ms", "index.interval.bytes", "min.cleanable.dirty.ratio",
        "unclean.leader.election.enable",
    ]  # fmt: skip
    first, *_ = topic_lines.render(topic(part(0), configs=tuple((name, "1") for name in sorted(names))))
    assert first.split("Configs: ")[1] == ",".join(f"{name}=1" for name in names)
