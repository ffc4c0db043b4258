"""No staged replica goes because a source is silent, older, refused, or of another disk."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.builders import CLUSTER, log_dir, partition
from tests.logdir.cluster.log_dir import LogDir, change, noop, register
from tests.tools.assignment_rig import STAGED, THREE, Cluster
from tests.tools.ctl import Said, ctl
from tests.tools.reconcile_rig import OTHER, PAY, is_in, raw


def _older_copy(folder: Path) -> LogDir:
    """A controller's log of before the topic."""
    top = log_dir(folder / "controller", node=9, directory="AAAAAAAAAAAAAAAAAAAACA", cluster=CLUSTER)
    log = LogDir(top / "__cluster_metadata-0")
    log.lead(1)
    log.append(register(1, fenced=True), register(2), register(3))
    log.append(noop())
    log.snapshot(register(1, fenced=True), register(2), register(3))
    return log


def _purged_once_due(cluster: Cluster, *source: str) -> Said:
    time.sleep(0.01)
    return ctl("staged", "purge", *cluster.named, *source, "--apply")


@pytest.mark.parametrize("which", ["own log", "copy", "znodes"])
def test_a48_what_was_assigned_here_stays_where_its_source_does_not_name_it(which: str, tmp_path: Path) -> None:
    """The newest snapshot is older than the topic, which stands in the tail; a copy or a dump is of before it."""
    cluster = Cluster(tmp_path, isr=(1, 2), quorum=THREE)
    source: tuple[str, ...] = ()
    match which:
        case "own log":
            cluster.log.snapshot(register(1), register(2), register(3), offset=4)
        case "copy":
            source = ("--from", f"metadata:{_older_copy(tmp_path).directory}")
        case _:
            dump = tmp_path / "znodes.json"
            topic = {"version": 3, "topic_id": OTHER, "partitions": {"0": [1, 2]}}
            dump.write_text(json.dumps({"/brokers/topics/other": topic}))
            source = ("--from", f"znodes:{dump}")
    assert cluster.stage("--delay", "1ms").status == 0
    said = _purged_once_due(cluster, *source)
    assert is_in(cluster.rig.disks[0], STAGED), said.out
    assert "kept" in said.out


@pytest.mark.parametrize("which", ["of no cluster", "of another cluster", "own log, nothing committed"])
def test_a43_a_source_that_is_refused_lets_nothing_go(which: str, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, isr=(1, 2), quorum=THREE)
    cluster.log.append(change(raw(PAY), 0, replicas=(2, 3), isr=(2, 3)))
    assert cluster.stage("--delay", "1ms").status == 0
    source: tuple[str, ...] = ()
    if which != "own log, nothing committed":
        copy = _older_copy(tmp_path)
        source = ("--from", f"metadata:{copy.directory}")
        properties = copy.directory.parent / "meta.properties"
        text = properties.read_text()
        properties.unlink()
        if which == "of another cluster":
            properties.write_text(text.replace(CLUSTER, "b8tRS7h4TJ2Vt43Dp85v2A"))
    said = _purged_once_due(cluster, *source)
    assert said.status == 1
    assert is_in(cluster.rig.disks[0], STAGED), said.out


def test_a48_an_older_copy_does_not_hide_that_the_own_log_has_the_only_replica_in_sync(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, isr=(1, 2))
    copy = cluster.copy_of_a_controller()
    cluster.log.append(change(raw(PAY), 0, isr=(1,)))
    source = ("--from", f"metadata:{copy.directory}")
    said = cluster.stage("--delay", "1ms", *source)
    assert said.status == 4
    assert "last-in-sync" in said.err
    assert cluster.is_live()
    # Of a dump nothing says when it was taken.
    dump = tmp_path / "znodes.json"
    topic = {"version": 3, "topic_id": PAY, "partitions": {"0": [1, 2]}}
    state = {"controller_epoch": 1, "leader": 2, "version": 1, "leader_epoch": 1, "isr": [1, 2]}
    dump.write_text(
        json.dumps({"/brokers/topics/pay": topic, "/brokers/topics/pay/partitions/0/state": state}), "utf-8"
    )
    said = cluster.stage("--delay", "1ms", "--from", f"znodes:{dump}")
    assert (said.status, cluster.is_live()) == (4, True), said.out + said.err


def test_what_is_proposed_for_one_of_two_copies_removes_that_one(tmp_path: Path) -> None:
    """Both are the first of their name, each on its own disk."""
    cluster = Cluster(tmp_path, isr=(1,))
    first, second = cluster.rig.disks[:2]
    assert cluster.stage("--even-if-last").status == 0
    partition(second / "pay-0", topic_id=PAY, segments={0: 0})
    assert cluster.stage("--even-if-last", "--even-over-limit").status == 0
    assert is_in(first, STAGED)
    assert is_in(second, STAGED)
    listed = ctl("staged", "ls", *cluster.named).out
    assert f"staged purge {STAGED} --disk {second} --name {STAGED} --even-if-last" in listed
    said = ctl(
        "staged", "purge", STAGED, "--disk", second, "--name", STAGED, "--even-if-last", *cluster.named, "--apply"
    )
    assert (said.status, is_in(first, STAGED), is_in(second, STAGED)) == (0, True, False)
