"""``logdirctl describe`` in the words of stock tools: line for line what they printed of the same disks, or would."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logdir.formats.stock_output.java_map import map_order, partition_hash
from tests import trees
from tests.builders import log_dir, partition
from tests.logdir.cluster.log_dir import LogDir, record, register, topic
from tests.logdir.cluster.log_dir import partition as claimed
from tests.reconcile.universe import document, listed
from tests.tools.ctl import HOME, ctl, tree, two_disks
from tests.tools.named_tree import tree_of
from tests.tools.reconcile_rig import PAY, Rig, raw
from tools.cli.arguments import Exit

RECORDED = HOME / "tests" / "golden" / "log-dirs-tool"
UNIQUE = "620e1db281fd429bb71e0c5e2c72578c"
OFFLINE = "org.apache.kafka.common.errors.KafkaStorageException"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def lines(named: tuple[object, ...], *argv: object) -> list[str]:
    said = ctl("describe", *argv, *named, "--kafka-topics")
    assert (said.status, said.err) == (Exit.DONE, ""), said
    return said.out.splitlines()


# As kafka-log-dirs.


def normal(line: str) -> str:
    """Return a line with log dirs by path, and partitions that share a bin by name: in both the stock order varies."""
    value = json.loads(line)
    for broker in value["brokers"]:
        for one in broker["logDirs"]:
            rows = one["partitions"]
            assert map_order(rows, lambda row: partition_hash(*_parts(row))) == rows  # in the order of the bins
            one["partitions"] = sorted(rows, key=lambda row: str(row["partition"]))
        broker["logDirs"].sort(key=lambda one: str(one["logDir"]))
    return json.dumps(value, separators=(",", ":"))


def _parts(row: dict[str, Any]) -> tuple[str, int]:
    name, _, number = row["partition"].rpartition("-")
    return name, int(number)


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDED.glob("*.txt")))
def test_on_real_trees_the_json_is_what_the_stock_tool_printed(name: str) -> None:
    named, top = tree_of(name)
    said = ctl("describe", "--kafka-json", *named)
    assert (said.status, said.err, said.out.count("\n")) == (Exit.DONE, "", 1)
    recorded = (RECORDED / f"{name}.txt").read_text().splitlines()[-1]
    got = said.out.strip().replace(str(top), "@DIR@")
    assert len(got) == len(recorded)
    assert normal(got) == normal(recorded)
    if name.endswith("kill9"):
        assert '{"partition":"big-0","size":1041658,"offsetLag":514,"isFuture":true}' in got


def test_a_selector_leaves_every_log_dir_in_the_json() -> None:
    named, top = tree_of("4.3.1-kraft")
    said = ctl("describe", "rolled", "--kafka-json", *named)
    row = '{"partition":"rolled-0","size":1067,"offsetLag":0,"isFuture":false}'
    one = f'{{"partitions":[{row}],"error":null,"logDir":"@/d1"}}'
    two = '{"partitions":[],"error":null,"logDir":"@/d2"}'
    wrapped = (f'{{"brokers":[{{"broker":1,"logDirs":[{first},{second}]}}],"version":1}}\n'
               for first, second in ((one, two), (two, one)))  # fmt: skip
    assert said.out.replace(str(top), "@") in wrapped
    assert ctl("describe", "nope", "--kafka-json", *named).status == Exit.PROBLEMS


def test_a_disk_that_cannot_be_read_is_offline_in_the_json(rig: Rig) -> None:
    rig.disks[1].rename(rig.folder / "away")
    said = ctl("describe", "--kafka-json", *rig.named)
    assert (said.status, "log-dir-offline" in said.err) == (Exit.PROBLEMS, True)
    (broker,) = json.loads(said.out)["brokers"]
    found = {one["logDir"]: (one["error"], len(one["partitions"])) for one in broker["logDirs"]}
    assert found == {str(rig.disks[0]): (None, 7), str(rig.disks[1]): (OFFLINE, 0)}


def test_what_a_broker_does_not_serve_is_not_in_the_json(rig: Rig) -> None:
    one = rig.disks[0]
    for kind in ("delete", "stray", "future"):
        partition(one / f"pay-0.{UNIQUE}-{kind}", topic_id=PAY)
    (one / "pay-99").symlink_to(rig.folder)
    (line,) = ctl("describe", "pay-0", "--kafka-json", *rig.named).out.splitlines()
    rows = [row for one in json.loads(line)["brokers"][0]["logDirs"] for row in one["partitions"]]
    # The files hold zeros: both logs end where they begin.
    assert [(row["partition"], row["offsetLag"], row["isFuture"]) for row in rows] == [
        ("pay-0", 0, False),
        ("pay-0", 0, True),
    ]
    partition(one / f"pay-50.{UNIQUE}-future", topic_id=PAY)
    said = ctl("describe", "pay-50", "--kafka-json", *rig.named).out
    assert '{"partition":"pay-50","size":10,"offsetLag":-1,"isFuture":true}' in said


def test_a_node_id_that_nobody_says_is_asked_for(tmp_path: Path) -> None:
    for name, node in (("d1", 1), ("d2", 2)):
        log_dir(tmp_path / name, node=node)
    said = ctl("describe", "--kafka-json", "--log-dirs", f"{tmp_path}/d1,{tmp_path}/d2")
    assert (said.status, said.out) == (Exit.USAGE, "")
    assert "1 and 2" in said.err


# As kafka-topics.


def test_on_a_real_tree_the_lines_of_a_topic() -> None:
    named, _ = tree_of("4.3.1-kraft")
    none = "\tLeader: none\tReplicas: 1\tIsr: \tElr: 1\tLastKnownElr: 1"
    fields = "TopicId: UsRK8XqhRFWpw897f_E7bw\tPartitionCount: 3\tReplicationFactor: 1"
    assert lines(named, "plain") == [
        f"Topic: plain\t{fields}\tConfigs: min.insync.replicas=1",
        f"\tTopic: plain\tPartition: 0{none}",
        f"\tTopic: plain\tPartition: 1{none}",
        f"\tTopic: plain\tPartition: 2{none}",
    ]
    assert lines(named, "compacted")[0].split("Configs: ")[1] == (
        "min.insync.replicas=1,cleanup.policy=compact,min.cleanable.dirty.ratio=0.01,delete.retention.ms=100,"
        "segment.ms=1000"
    )
    assert lines(named, "EmXLFgvfQHqGaPx7OUhU-Q") == lines(named, "x-y-3")
    assert len(lines(named, "x-y-3")) == 9
    assert [line.split("\t")[2] for line in lines(named, "x-y-3-7")[1:]] == ["Partition: 7"]
    everything = lines(named)
    assert sum(line.startswith("Topic: ") for line in everything) == 12
    assert sum(line.startswith("\t") for line in everything) == 26


@pytest.mark.parametrize("name", ["3.3.2-kraft", "3.7.2-kraft", "3.9.2-dynamic", "4.1.2-kraft", "4.3.1-kill9"])
def test_on_real_trees_every_topic_of_the_manifest_is_told_by_its_id(name: str) -> None:
    named, _ = tree_of(name)
    told = trees.manifest(name)["topics"]
    for topic_name, known in told.items():
        found = lines(named, known["id"])
        assert found[0].startswith(f"Topic: {topic_name}\tTopicId: {known['id']}\t")
        assert len(found) == 1 + len(known["partitions"])


def test_a_reassignment_a_missing_leader_and_what_is_eligible(rig: Rig) -> None:
    log = LogDir(rig.disks[0] / "__cluster_metadata-0")
    log.lead(1)
    log.append(register(1), register(2), register(3), topic("pay", raw(PAY)))
    log.append(claimed(raw(PAY), 0, (1, 2, 3), addingReplicas=(3,), removingReplicas=(2,), isr=(1, 2)))
    log.append(claimed(raw(PAY), 1, (2, 1), leader=9))
    log.append(
        record(
            5, 2, partitionId=1, topicId=raw(PAY), isr=(), leader=-1, replicas=None, removingReplicas=None,
            addingReplicas=None, leaderRecoveryState=-1, directories=None, eligibleLeaderReplicas=(2, 1),
            lastKnownElr=(1,),
        )
    )  # fmt: skip
    log.append(record(4, resourceType=2, resourceName="pay", name="retention.ms", value="5"))
    log.append(record(4, resourceType=2, resourceName="pay", name="flush.ms", value="7"))
    log.append(record(4, resourceType=2, resourceName="pay", name="flush.ms", value=None))
    log.append(record(4, resourceType=4, resourceName="", name="log.segment.bytes", value="2000000"))
    end = log.append(record(4, resourceType=4, resourceName="2", name="log.preallocate", value="true"))
    told = ("--high-watermark", end, "--leader-epoch", 1)
    fields = f"TopicId: {PAY}\tPartitionCount: 2\tReplicationFactor: 2"
    change_words = "Adding Replicas: 3\tRemoving Replicas: 2"
    assert lines(rig.named, *told) == [
        f"Topic: pay\t{fields}\tConfigs: segment.bytes=2000000,retention.ms=5",
        f"\tTopic: pay\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2\t{change_words}\tElr: \tLastKnownElr: ",
        "\tTopic: pay\tPartition: 1\tLeader: none\tReplicas: 2,1\tIsr: \tElr: 2,1\tLastKnownElr: 1",
    ]
    properties = rig.folder / "server.properties"
    properties.write_text(
        f"node.id=1\nlog.dirs={rig.disks[0]},{rig.disks[1]}\nlog.retention.ms=9\nlog.flush.interval.ms= 3 \n"
        "log.retention.hours=4\nlog.roll.hours=3\n"
    )
    named = ("--server-properties", properties)
    assert lines(named, *told)[0].split("Configs: ")[1] == "flush.ms=3,segment.bytes=2000000,retention.ms=5"


def test_a_request_and_znodes_say_less(rig: Rig) -> None:
    source = rig.document(document(listed(pay=(PAY, (0,))), sequence=1, type=2))
    assert lines(rig.named, "--from", source) == [
        f"Topic: pay\tTopicId: {PAY}\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: ",
        "\tTopic: pay\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: N/A\tLastKnownElr: N/A",
    ]
    path = rig.folder / "znodes.json"
    path.write_text(json.dumps({"/brokers/topics/old": {"version": 1, "partitions": {"0": [1, 2]}}}))
    assert lines(rig.named, "--from", f"znodes:{path}") == [
        "Topic: old\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: ",
        "\tTopic: old\tPartition: 0\tLeader: none\tReplicas: 1,2\tIsr: \tElr: N/A\tLastKnownElr: N/A",
    ]


def test_without_metadata_the_lines_of_topics_are_refused(rig: Rig) -> None:
    said = ctl("describe", "pay", "--kafka-topics", *rig.named)
    assert (said.status, said.out, said.err.count("\n")) == (Exit.USAGE, "", 1)
    rig.log()  # and no snapshot: nothing of it is known to be committed
    said = ctl("describe", "pay", "--kafka-topics", *rig.named)
    assert (said.status, said.out) == (Exit.USAGE, "")
    assert "--high-watermark" in said.err
    named, _ = tree_of("4.3.1-kraft")
    said = ctl("describe", "to-delete", "--kafka-topics", *named)
    assert (said.status, said.out) == (Exit.PROBLEMS, "")
    assert "nothing-selected" in said.err


# A log dir whose meta.properties cannot be read.


def _directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


UNREADABLE = {
    "a directory": _directory,
    "a link": lambda file: (file.unlink(), file.symlink_to("nowhere")),
    "a version of another release": lambda file: file.write_text("version=7\nnode.id=1\ncluster.id=x\n"),
    "no version": lambda file: file.write_text("version=x\nnode.id=1\ncluster.id=x\n"),
    "no node id": lambda file: file.write_text("version=1\ncluster.id=x\n"),
}


@pytest.mark.parametrize("how", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_no_log_dir_whose_meta_properties_cannot_be_read_is_told_as_online(
    tmp_path: Path, how: Callable[[Path], object]
) -> None:
    one, two = two_disks(tmp_path)
    named = ("--log-dirs", f"{one},{two}")
    how(two / "meta.properties")
    said = ctl("describe", *named, "--kafka-json")
    told = {each["logDir"]: each for each in json.loads(said.out)["brokers"][0]["logDirs"]}
    assert (told[str(two)]["error"], told[str(two)]["partitions"]) == (OFFLINE, [])
    assert told[str(one)]["error"] is None
    assert told[str(one)]["partitions"]
    for verb in (["describe"], ["staged", "ls"], ["describe", "--kafka-json"]):
        said = ctl(*verb, *named)
        assert said.status == Exit.PROBLEMS, verb
        assert sum(f"{two}/meta.properties" in line for line in said.err.splitlines()) == 1, (verb, said.err)
        assert f"log-dir-offline: {two}/meta.properties: " in said.err, verb


def test_an_empty_meta_properties_is_not_told_as_an_offline_log_dir(tmp_path: Path) -> None:
    """No release starts on such a broker, so none can be asked."""
    one, two = two_disks(tmp_path)
    (two / "meta.properties").write_bytes(b"")
    said = ctl("describe", "--log-dirs", f"{one},{two}", "--kafka-json")
    assert OFFLINE not in said.out


@pytest.mark.parametrize("verb", ["stage", "staged restore"])
def test_nothing_is_changed_beside_a_log_dir_whose_meta_properties_cannot_be_read(tmp_path: Path, verb: str) -> None:
    one, two = two_disks(tmp_path)
    named = ("--log-dirs", f"{one},{two}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert ctl("stage", "pay-0", *named, "--apply", "--even-over-limit", "--even-if-unknown").status == Exit.DONE
    _directory(two / "meta.properties")
    before = tree(tmp_path)
    assert ctl(*verb.split(), "pay", *named, "--apply").status in (Exit.PROBLEMS, Exit.REFUSED)
    assert tree(tmp_path) == before
