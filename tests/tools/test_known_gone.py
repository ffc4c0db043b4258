"""What some log on these disks, or its own marker, shows to be gone is not renamed back, whatever ``--from`` names."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import CLUSTER, log_dir
from tests.logdir.cluster.log_dir import LogDir, noop, register, remove, topic
from tests.tools.assignment_rig import STAGED, THREE, Cluster, slugs
from tests.tools.ctl import Said, ctl, ctl_json, tree
from tests.tools.reconcile_rig import GONE, LONG_AGO_S, OTHER, PARTITIONS, PAY, Rig, is_in, raw
from tools.cli.arguments import Exit

Words = tuple[object, ...]


def znodes(folder: Path) -> str:
    """Write a dump of before the removal under a name, and with times, of now."""
    path = folder / "copied.json"
    partitions = {str(number): [1, 2] for number in range(PARTITIONS)}
    value = {"version": 3, "topic_id": PAY, "partitions": partitions, "adding_replicas": {}, "removing_replicas": {}}
    path.write_text(json.dumps({"/brokers/topics/pay": value}))
    return f"znodes:{path}"


def copied(cluster: Cluster, *, is_whole: bool) -> Path:
    """Copy the metadata log as it is now; whole: with the ``meta.properties`` beside it."""
    top = cluster.rig.folder / "copy"
    if is_whole:
        log_dir(top, node=9, directory="AAAAAAAAAAAAAAAAAAAACA", cluster=CLUSTER)
    return Path(shutil.copytree(cluster.log.directory, top / "__cluster_metadata-0"))


def bare(cluster: Cluster) -> Words:
    """Name a copy that nothing says the cluster of."""
    return ("--from", f"metadata:{copied(cluster, is_whole=False)}")


def older(cluster: Cluster) -> Words:
    """Name a copy of before the removal."""
    return ("--from", f"metadata:{copied(cluster, is_whole=True)}")


def older_with_a_watermark(cluster: Cluster) -> Words:
    """Name such a copy, and how far the quorum was then."""
    return (*older(cluster), "--high-watermark", cluster.log.offset, "--leader-epoch", 1)


def dump(cluster: Cluster) -> Words:
    """Name a dump of before the removal."""
    return ("--from", znodes(cluster.rig.folder))


def assert_kept(cluster: Cluster, *words: object) -> None:
    """Check that nothing renames ``pay-0`` back, by any command and with every override, and that each says why."""
    before = tree(*cluster.rig.disks)
    for more in ((), ("--even-if-unknown",)):
        said = cluster.restore(*words, *more)
        assert (said.status, slugs(said)) == (Exit.REFUSED, ["topic-gone"]), said
        assert "--even-" not in said.err
    for more in ((), ("--even-if-unknown",)):
        said = ctl("uninstall", *cluster.named, "--restore", *words, *more, "--apply")
        assert "topic-gone" in slugs(said)
    assert tree(*cluster.rig.disks) == before
    assert is_in(cluster.rig.disks[0], STAGED)


@pytest.mark.parametrize("argv_of", [bare, older, older_with_a_watermark, dump])
def test_a47_what_its_own_log_shows_removed_is_not_renamed_back_with_another_source(
    argv_of: Callable[[Cluster], Words], tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    words = argv_of(cluster)
    cluster.log.append(remove(raw(PAY)))
    _, result = ctl_json("staged", "ls", "pay-0", *cluster.named, *words)
    assert [(one["assigned"], one["restore"]) for one in result["items"]] == [("gone", "adopt")]
    assert_kept(cluster, *words)


def test_a47_what_its_own_log_does_not_name_any_more_is_not_renamed_back_with_an_older_copy(tmp_path: Path) -> None:
    """Its removal lies before the newest snapshot, and the log before that is gone."""
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    words = older(cluster)
    cluster.log.append(remove(raw(PAY)))
    old = cluster.log.segment
    cluster.log.roll()
    cluster.log.snapshot(register(1), topic("gone", raw(GONE)))
    old.unlink()
    cluster.log.append(noop())
    assert_kept(cluster, *words)


def test_a47_a_removal_below_a_watermark_counts_in_its_own_log_too(tmp_path: Path) -> None:
    """One of three voters: what is committed of its own log says the watermark."""
    cluster = Cluster(tmp_path, quorum=THREE)
    assert cluster.stage().status == Exit.DONE
    words = older(cluster)
    cluster.log.append(remove(raw(PAY)))
    assert_kept(cluster, *words, "--high-watermark", cluster.log.offset, "--leader-epoch", 1)


@pytest.mark.parametrize("lost", [1, 2])
def test_a47_a_removal_that_was_seen_is_one_though_its_log_may_not_be_followed(lost: int, tmp_path: Path) -> None:
    """Without a ``controller.json`` nothing follows from a log, and a removal in it is committed all the same."""
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    cluster.log.append(remove(raw(PAY)))
    for disk in cluster.rig.disks[:lost]:
        Path(f"{disk}.logdird/controller.json").unlink()
    assert_kept(cluster)


@pytest.mark.parametrize("is_listed", [False, True], ids=["its configuration names the older", "nothing says which"])
def test_a47_of_two_metadata_logs_on_its_disks_each_removal_counts(is_listed: bool, tmp_path: Path) -> None:
    """One was left behind when ``metadata.log.dir`` changed."""
    cluster = Cluster(tmp_path)
    if is_listed:
        cluster.named = cluster.rig.named
    assert cluster.stage().status == Exit.DONE
    newer = Path(shutil.copytree(cluster.log.directory, cluster.rig.disks[1] / "__cluster_metadata-0"))
    log = LogDir(newer)
    log.offset, log.time_ms = cluster.log.offset, cluster.log.time_ms
    log.append(remove(raw(PAY)))
    assert_kept(cluster)
    assert ctl("init", *cluster.named, "--apply").status == Exit.DONE
    assert_kept(cluster, "--from", f"metadata:{cluster.log.directory}")


def test_a47_what_was_staged_as_removed_is_not_renamed_back_with_an_older_source(tmp_path: Path) -> None:
    """Its marker has the proof; the log that showed it is not there any more."""
    rig = Rig(tmp_path)
    log = rig.log(log_dir(tmp_path / "controller", node=9, directory="AAAAAAAAAAAAAAAAAAAACA", cluster=CLUSTER))
    log.append(register(1, fenced=True))
    old = shutil.copytree(log.directory.parent, tmp_path / "old")
    watermark = log.offset
    log.append(remove(raw(GONE)))
    told = ("--high-watermark", log.offset, "--leader-epoch", 1)
    said = rig.reconcile(f"metadata:{log.directory}", *told, "--apply", "--even-over-limit")
    assert (said.status, rig.deleting()) == (Exit.DONE, [f"{GONE}_0", f"{GONE}_1"])
    for disk in rig.disks:
        Path(f"{disk}.logdird/controller.json").unlink()
    dumped = tmp_path / "dump.json"
    dumped.write_text(
        json.dumps({"/brokers/topics/gone": {"version": 3, "topic_id": GONE, "partitions": {"0": [1], "1": [1]}}})
    )
    sources: tuple[Words, ...] = (
        ("--from", f"metadata:{old}"),
        ("--from", f"metadata:{old}", "--high-watermark", watermark, "--leader-epoch", 1),
        ("--from", f"znodes:{dumped}"),
    )
    for words in sources:
        said = ctl("staged", "restore", "gone", *rig.named, *words, "--even-if-unknown", "--apply")
        assert (said.status, slugs(said)) == (Exit.REFUSED, ["topic-gone"] * 2), words
        assert rig.deleting() == [f"{GONE}_0", f"{GONE}_1"]


def test_what_another_cluster_removed_is_not_gone_here(tmp_path: Path) -> None:
    """A clone of this cluster has the same topic ids, and may remove them."""
    cluster = Cluster(tmp_path, quorum=THREE)
    assert cluster.stage().status == Exit.DONE
    copy = cluster.copy_of_a_controller()
    copy.append(remove(raw(PAY)))
    meta = copy.directory.parent / "meta.properties"
    meta.write_text(meta.read_text().replace(CLUSTER, OTHER))
    words = ("--from", f"metadata:{copy.directory}", "--high-watermark", copy.offset, "--leader-epoch", 1)
    said = cluster.restore(*words)
    assert (said.status, slugs(said)) == (Exit.REFUSED, ["assignment-unknown"])
    assert cluster.restore(*words, "--even-if-unknown").status == Exit.DONE
    assert cluster.is_live()


def test_its_own_log_that_knows_less_takes_nothing_from_what_another_source_knows(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, quorum=THREE)
    assert cluster.stage().status == Exit.DONE
    copy = cluster.copy_of_a_controller()
    cluster.log.snapshot(register(1), topic("other", raw(OTHER)), offset=1)
    said: Said = cluster.restore(
        "--from", f"metadata:{copy.directory}", "--high-watermark", copy.offset, "--leader-epoch", 1
    )
    assert (said.status, cluster.is_live()) == (Exit.DONE, True), said


def dumped(folder: Path, name: str, **topics: dict[str, object]) -> Path:
    path = folder / name
    path.write_text(json.dumps({f"/brokers/topics/{topic}": value for topic, value in topics.items()}))
    return path


@pytest.mark.parametrize("topic_id", [{"topic_id": PAY}, {}], ids=["with its id", "by its name alone"])
def test_a47_no_dump_of_znodes_shows_how_things_are_now(topic_id: dict[str, str], tmp_path: Path) -> None:
    """A copy of an old dump is younger than the stop of the broker, and of before it."""
    rig = Rig(tmp_path)
    if not topic_id:
        (rig.disks[0] / "pay-0" / "partition.metadata").unlink()
    for disk in rig.disks:
        (disk / ".kafka_cleanshutdown").touch()
    value = {"version": 3, "partitions": {"0": [1, 2]}} | topic_id
    old = dumped(tmp_path, "old.json", pay=value)
    os.utime(old, (LONG_AGO_S, LONG_AGO_S))
    said = ctl("stage", "pay-0", *rig.named, "--from", f"znodes:{old}", "--even-if-unknown", "--apply")
    assert said.status == Exit.DONE, said
    copy = Path(shutil.copy(old, tmp_path / "copy.json"))
    for dump_of in (old, copy):
        said = ctl("staged", "restore", "pay-0", *rig.named, "--from", f"znodes:{dump_of}", "--apply")
        assert (said.status, slugs(said)) == (Exit.REFUSED, ["assignment-unknown"]), said
    words = ("--from", f"znodes:{copy}", "--even-if-unknown", "--apply")
    assert ctl("staged", "restore", "pay-0", *rig.named, *words).status == Exit.DONE
    assert (rig.disks[0] / "pay-0").is_dir()


def test_a01_what_a_dump_of_znodes_does_not_name_may_be_younger_than_it(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    source = ("--from", f"znodes:{dumped(tmp_path, 'z.json', other={'version': 2, 'partitions': {'0': [1]}})}")
    said = ctl("stage", "pay-0", *rig.named, *source, "--apply")
    assert (said.status, slugs(said)) == (Exit.REFUSED, ["assignment-unknown"])
