"""``logdirctl reconcile`` from a metadata log, and from what cannot be read, on real directories."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from logdir.clock import Instant
from logdir.decide.staged.deadline import begin
from logdir.formats.own import heartbeat_file
from logdir.formats.own.controller_file import MetadataMark
from tests.builders import CLUSTER
from tests.logdir.cluster.log_dir import START_MS, noop, register, remove
from tests.reconcile.universe import document, listed
from tests.tools.ctl import ctl_json, held, tree
from tests.tools.reconcile_rig import (
    GONE,
    LONG_AGO_S,
    PARTITIONS,
    PAY,
    Rig,
    age,
    gone_records,
    raw,
)
from tools.cli.arguments import Exit

EVERY = tuple(range(PARTITIONS))
FULL = 2
ITEM_KEYS = [
    "action", "detail", "evidence", "impact", "log_dir", "new_path", "partition", "path", "problem", "reason", "rule",
    "state", "topic",
    "topic_id", "undo_until_ms",
]  # fmt: skip


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture
def removed(rig: Rig) -> Rig:
    return rig.with_removal()


# Metadata logs.


def test_a_removal_that_was_seen_is_shown_and_then_done(removed: Rig) -> None:
    before = tree(removed.folder)
    status, result = ctl_json("reconcile", "--from", "metadata:", *removed.named)
    assert status == Exit.DONE
    assert tree(removed.folder) == before
    assert [sorted(item) for item in result["items"]] == [ITEM_KEYS, ITEM_KEYS]
    assert [(i["path"], i["action"], i["state"], i["reason"]) for i in result["items"]] == [
        ("gone-0", "stage", "planned", "topic-removed"),
        ("gone-1", "stage", "planned", "topic-removed"),
    ]
    for item in result["items"]:
        assert item["evidence"]["proof"] == "metadata-log"
        assert item["rule"].startswith("KIP-631")
        assert "10 bytes in 1 segments" in item["impact"]
        assert item["undo_until_ms"] > 0
    assert result["source"]["cluster_id"] == CLUSTER
    assert result["source"]["certainty"] == "snapshot"
    said = removed.reconcile("metadata:", "--apply")
    assert said.status == Exit.DONE, said
    assert "next: logdirctl staged ls" in said.out
    assert said.err.count("is staged, and can be restored until") == 2
    assert said.err.count(GONE) == 2
    assert removed.deleting() == [f"{GONE}_0", f"{GONE}_1"]
    assert removed.live() == sorted(f"pay-{number}" for number in EVERY)
    assert removed.marker(f"{GONE}_0")["reason"] == "topic-removed"
    assert [one.metadata for one in removed.controller()] == [MetadataMark(epoch=1, offset=21)] * 2


def test_said_again_there_is_nothing_to_do(removed: Rig) -> None:
    removed.reconcile("metadata:", "--apply")
    before = tree(*removed.disks)
    for more in ((), ("--apply",)):
        said = removed.reconcile("metadata:", *more)
        assert (said.status, "nothing to do" in said.out) == (Exit.DONE, True), said
        assert "next: logdirctl staged ls " in said.out
    assert tree(*removed.disks) == before


def test_a_removal_in_the_tail_counts_once_the_quorum_says_so(rig: Rig) -> None:
    log = rig.log()
    rig.snapshot(log, *gone_records())
    log.append(remove(raw(GONE)))
    assert "nothing to do" in rig.reconcile("metadata:").out
    said = rig.reconcile("metadata:", "--high-watermark", log.offset - 1, "--leader-epoch", 1)
    assert "nothing to do" in said.out
    # Of a leader whose batches the log does not hold nothing is known.
    assert "nothing to do" in rig.reconcile("metadata:", "--high-watermark", log.offset, "--leader-epoch", 7).out
    said = rig.reconcile("metadata:", "--high-watermark", log.offset, "--leader-epoch", 1, "--apply")
    assert said.status == Exit.DONE
    assert rig.deleting() == [f"{GONE}_0", f"{GONE}_1"]
    # How far it was followed is remembered: what was committed then stays so, without a word of the quorum.
    status, result = ctl_json("reconcile", "--from", "metadata:", *rig.named)
    assert (status, result["source"]["end_offset"]) == (Exit.DONE, log.offset)


def test_a_log_without_a_word_of_what_is_committed_says_what_is_missing(rig: Rig) -> None:
    log = rig.log()
    log.append(remove(raw(GONE)))
    said = rig.reconcile("metadata:", "--apply")
    assert (said.status, said.err.count("\n")) == (Exit.USAGE, 1)
    assert "--high-watermark and --leader-epoch" in said.err
    assert rig.reconcile("metadata:", "--high-watermark", log.offset, "--leader-epoch", 1).status == Exit.DONE


def test_mere_absence_stages_nothing(rig: Rig) -> None:
    """A snapshot that came from a leader, with nothing before it."""
    log = rig.log()
    log.append(remove(raw(GONE)))
    for segment in log.directory.glob("*.log"):
        segment.unlink()
    log.roll()
    rig.snapshot(log)
    for segment in log.directory.glob("*.checkpoint"):
        segment.rename(log.directory / segment.name)
    (log.directory / f"{log.offset - 1:020d}.log").rename(log.directory / f"{log.offset:020d}.log")
    (log.directory / f"{log.offset:020d}.log").write_bytes(b"")
    said = rig.reconcile("metadata:", "--apply")
    assert said.status == Exit.PROBLEMS, said
    assert said.err.count("expected proof that it was removed") == 2
    assert rig.deleting() == []


def test_a01_a_directory_the_image_is_not_surely_younger_than_is_left(removed: Rig) -> None:
    age(removed.disks[0] / "gone-0", at_s=START_MS // 1000)
    said = removed.reconcile("metadata:", "--apply")
    assert said.status == Exit.PROBLEMS
    assert "more than 600000 ms younger than the directory" in said.err
    assert removed.deleting() == [f"{GONE}_1"]


def test_a29_a_foreign_log_and_one_that_does_not_name_us_are_refused(rig: Rig, tmp_path: Path) -> None:
    other = tmp_path / "other"
    log = rig.log(other)
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    said = rig.reconcile(f"metadata:{other}", "--apply")
    assert (said.status, f"{other}/meta.properties" in said.err) == (Exit.REFUSED, True)
    text = (rig.disks[0] / "meta.properties").read_text()
    (other / "meta.properties").write_text(text.replace(CLUSTER, "AAAAAAAAAAAAAAAAAAAAAA"))
    said = rig.reconcile(f"metadata:{other}", "--apply", "--even-if-older-metadata")
    assert (said.status, "source-foreign: " in said.err) == (Exit.REFUSED, True)
    (other / "meta.properties").write_text(text)
    (rig.folder / "server.properties").write_text(f"log.dirs={rig.disks[0]},{rig.disks[1]}\nnode.id=1\n")
    log.append(noop())
    log.snapshot(register(9))
    said = rig.reconcile(f"metadata:{other}", "--apply", "--even-if-older-metadata")
    assert (said.status, "node-not-in-source: " in said.err) == (Exit.REFUSED, True)
    assert rig.deleting() == []


def test_a20_a_node_that_runs_elsewhere_is_left_alone(rig: Rig, tmp_path: Path) -> None:
    """Unfenced, in the log of another host, while no broker runs here."""
    other = tmp_path / "other"
    log = rig.log(other)
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    (other / "meta.properties").write_text((rig.disks[0] / "meta.properties").read_text())
    said = rig.reconcile(f"metadata:{other}", "--apply")
    assert (said.status, "node-runs-elsewhere" in said.err) == (Exit.REFUSED, True)
    assert rig.deleting() == []


def test_a43_a_log_put_back_holds_everything_until_it_is_confirmed(removed: Rig) -> None:
    assert removed.reconcile("metadata:", "--apply").status == Exit.DONE
    log = removed.disks[0] / "__cluster_metadata-0"
    for path in log.iterdir():
        path.unlink()
    shorter = removed.log()
    before = tree(*removed.disks)
    shorter.snapshot(register(1))
    said = removed.reconcile("metadata:", "--apply")
    assert (said.status, "older, or rolled back" in said.err) == (Exit.REFUSED, True)
    assert {path for path in tree(*removed.disks) if "checkpoint" not in path} == set(before)
    assert removed.controller()[0].metadata == MetadataMark(epoch=1, offset=21)
    said = removed.reconcile("metadata:", "--apply", "--even-if-older-metadata")
    assert said.status == Exit.PROBLEMS
    assert removed.controller()[0].metadata == MetadataMark(epoch=1, offset=shorter.offset)


@pytest.mark.parametrize("lost", ["unlink", "garbage", "half"])
def test_without_a_memory_of_how_far_it_was_followed_nothing_is_done(lost: str, removed: Rig) -> None:
    path = Path(f"{removed.disks[1]}.logdird") / "controller.json"
    data = path.read_bytes()
    if lost == "unlink":
        path.unlink()
    else:
        path.write_bytes(b"\xff" * 20 if lost == "garbage" else data[: len(data) // 2])
    said = removed.reconcile("metadata:", "--apply")
    assert (said.status, "controller.json" in said.err) == (Exit.REFUSED, True)
    assert removed.deleting() == []
    assert removed.reconcile("metadata:", "--apply", "--even-if-older-metadata").status == Exit.DONE
    assert removed.deleting() == [f"{GONE}_0", f"{GONE}_1"]
    assert len(set(removed.controller())) == 1


# Beside a broker.


def test_beside_a_running_broker_it_is_planned_and_not_done(removed: Rig) -> None:
    (removed.disks[1] / ".lock").touch()
    with held(removed.disks[1] / ".lock"):
        before = tree(removed.folder)
        said = removed.reconcile("metadata:", "--max-age-ms", 10**15)
        assert (said.status, "topic-removed" in said.out) == (Exit.DONE, True), said
        assert removed.reconcile("metadata:", "--apply").status == Exit.BROKER_RUNS
        assert tree(removed.folder) == before
    assert removed.deleting() == []


# What it rests on cannot be read.


@pytest.mark.parametrize(
    ("source", "status", "found"),
    [
        ("", Exit.USAGE, "expected metadata:[DIR], cluster:FILE, request:FILE or znodes:FILE"),
        ("cluster:", Exit.USAGE, "expected a file behind cluster:"),
        ("request:", Exit.USAGE, "expected a file behind request:"),
        ("metadata:", Exit.USAGE, "a __cluster_metadata-0 in one of the log dirs"),
        ("metadata:{folder}/none", Exit.USAGE, "No such file"),
        ("metadata:{folder}", Exit.PROBLEMS, "expected a metadata log, found no segment"),
        ("metadata:{folder}/garbage", Exit.USAGE, "Not a directory"),
        ("request:{folder}/none", Exit.USAGE, "No such file"),
        ("request:{folder}", Exit.USAGE, "expected a regular file"),
        ("request:{folder}/pipe", Exit.USAGE, "expected a regular file"),
        ("request:{folder}/garbage", Exit.PROBLEMS, "expected one JSON object"),
        ("request:{folder}/half", Exit.PROBLEMS, "expected one JSON object"),
        ("znodes:{folder}/half", Exit.PROBLEMS, "expected one JSON object"),
        ("znodes:{folder}/empty", Exit.PROBLEMS, "expected at least one /brokers/topics"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_changes_nothing(source: str, status: Exit, found: str, rig: Rig) -> None:
    (rig.folder / "garbage").write_bytes(b"\xff\0garbage")
    whole = json.dumps(document(listed(pay=(PAY, EVERY)), type=FULL, sequence=1))
    (rig.folder / "half").write_text(whole[: len(whole) // 2])
    (rig.folder / "empty").write_text("{}")
    os.mkfifo(rig.folder / "pipe")
    before = tree(*rig.disks)
    said = rig.reconcile(source.format(folder=rig.folder), "--apply")
    assert said.status == status, said
    assert found in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert tree(*rig.disks) == before


@pytest.mark.parametrize(
    "flags",
    [("--delay-ms", 14400), ("--max-staged-percent", 101), ("--max-age-ms", -1), ("--high-watermark", 5),
     ("--leader-epoch", 5), ("--high-watermark", -5, "--leader-epoch", 1), ("--skip-log-dir", "/nowhere")],
)  # fmt: skip
def test_a_number_that_does_not_fit_is_refused(flags: tuple[object, ...], removed: Rig) -> None:
    said = removed.reconcile("metadata:", *flags, "--apply")
    assert (said.status, said.err.count("\n")) == (Exit.USAGE, 1), said
    assert removed.deleting() == []


def test_znodes_prove_nothing_gone(rig: Rig) -> None:
    path = rig.folder / "znodes.json"
    topic = {"version": 3, "id": PAY, "partitions": {str(number): [1, 2] for number in EVERY}}
    path.write_text(json.dumps({"/brokers/topics/pay": topic}))
    os.utime(path, (LONG_AGO_S + 10**8, LONG_AGO_S + 10**8))
    said = rig.reconcile(f"znodes:{path}", "--apply")
    assert (said.status, rig.deleting()) == (Exit.PROBLEMS, [])
    assert said.err.count("expected proof that it was removed") == 2


def test_no_replica_is_staged_in_a_boot_that_the_heartbeats_do_not_hold(removed: Rig) -> None:
    """Of such a boot no time would count once it has ended."""
    earlier = Instant(boot_id="an earlier boot", boottime_ms=1000, wall_ms=1, is_synchronised=True)
    beats = [Path(f"{disk}.logdird/heartbeat.json") for disk in removed.disks]
    for path in beats:
        path.write_bytes(heartbeat_file.render(begin(earlier)))
    assert removed.reconcile("metadata:", "--apply").status == Exit.DONE
    boot = removed.marker(f"{GONE}_0")["boot_id"]
    for path in beats:
        assert [one.boot_id for one in heartbeat_file.parse(path.read_bytes()).boots] == ["an earlier boot", boot]
