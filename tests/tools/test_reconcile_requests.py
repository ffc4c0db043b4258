"""``logdirctl reconcile`` from request documents: what KIP-516 says follows, and nothing that was overtaken."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from logdir.formats.own.controller_file import RequestMark
from tests.builders import partition
from tests.reconcile.universe import document, listed, stopped
from tests.tools.ctl import ctl_json, tree
from tests.tools.reconcile_rig import (
    GONE,
    LONG_AGO_S,
    OTHER,
    PARTITIONS,
    PAY,
    Rig,
    age,
)
from tools.cli.arguments import Exit

EVERY = tuple(range(PARTITIONS))
FULL, INCREMENTAL = 2, 1


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_kip516_immediate_delete_stale_reads(rig: Rig) -> None:
    """Nothing that was said names another id: the old replica is served on, and nothing is done."""
    before = tree(*rig.disks)
    source = rig.document(document(listed(gone=(GONE, (0,))), type=INCREMENTAL, sequence=1))
    status, result = ctl_json("reconcile", "--from", source, *rig.named, "--apply")
    assert (status, result["items"], [one["code"] for one in result["answers"]]) == (Exit.DONE, [], [0])
    assert tree(*rig.disks) == before


def test_kip516_immediate_delete_stale_state(rig: Rig) -> None:
    """Steps 4 and 5: the request names the topic with its new id; what has the old one goes, held, answered 103."""
    source = rig.document(document(listed(gone=(OTHER, (0,))), type=INCREMENTAL, sequence=1))
    status, result = ctl_json("reconcile", "--from", source, *rig.named, "--apply", "--even-over-limit")
    assert status == Exit.DONE
    assert [(one["topic"], one["code"]) for one in result["answers"]] == [("gone", 103)]
    (item,) = result["items"]
    assert (item["path"], item["reason"], item["undo_until_ms"], item["detail"]) == (
        "gone-0", "topic-id-mismatch", None, "without a deadline",
    )  # fmt: skip
    assert item["evidence"]["kind"] == "absent"
    assert rig.deleting() == [f"{GONE}_0"]
    assert rig.marker(f"{GONE}_0")["delay_ms"] is None
    # The same again is answered as before, and changes nothing.
    before = tree(rig.folder)
    status, result = ctl_json("reconcile", "--from", source, *rig.named, "--apply")
    assert (status, result["code"], result["items"]) == (Exit.DONE, 0, [])
    assert [one["code"] for one in result["answers"]] == [103]
    assert tree(rig.folder) == before


def test_kip516_a_full_request_stages_what_it_leaves_out(rig: Rig) -> None:
    source = rig.document(document(listed(pay=(PAY, EVERY)), type=FULL, sequence=1))
    said = rig.reconcile(source, "--apply", "--even-over-limit")
    assert said.status == Exit.DONE, said
    assert rig.deleting() == [f"{GONE}_0", f"{GONE}_1"]
    assert rig.marker(f"{GONE}_0")["reason"] == "absent"
    assert rig.marker(f"{GONE}_0")["delay_ms"] == 4 * 60 * 60 * 1000
    (one, other) = rig.controller()
    assert one == other
    assert (one.requests, one.is_full_wanted, one.broker_epoch) == (
        RequestMark(controller_epoch=5, sequence=1),
        False,
        40,
    )


def test_kip516_an_incremental_request_stages_nothing_it_leaves_out(rig: Rig) -> None:
    source = rig.document(document(listed(pay=(PAY, (0,))), type=INCREMENTAL, sequence=1))
    said = rig.reconcile(source, "--apply")
    assert (said.status, "nothing to do" in said.out) == (Exit.DONE, True)
    assert rig.controller()[0].is_full_wanted


def test_kip516_stop_replica_with_delete(rig: Rig) -> None:
    full = document(listed(pay=(PAY, EVERY), gone=(GONE, (0, 1))), type=FULL, sequence=1)
    assert rig.reconcile(rig.document(full), "--apply").status == Exit.DONE
    stop = document(stopped(delete=True, gone=(GONE, (0, 1))), api="StopReplica", form="kip", sequence=2)
    assert rig.reconcile(rig.document(stop), "--apply", "--even-over-limit").status == Exit.DONE
    assert [rig.marker(f"{GONE}_{number}")["reason"] for number in (0, 1)] == ["stop-replica"] * 2
    assert not rig.controller()[0].is_full_wanted


def test_kip516_migration_gives_an_id_to_what_has_none(rig: Rig) -> None:
    partition(rig.disks[0] / "new-0", topic_id=None)
    age(rig.disks[0] / "new-0")
    source = rig.document(document(listed(new=(OTHER, (0,))), type=INCREMENTAL, sequence=1))
    before = tree(rig.folder)
    status, result = ctl_json("reconcile", "--from", source, *rig.named)
    assert (status, [(i["action"], i["state"], i["impact"]) for i in result["items"]]) == (
        Exit.DONE,
        [("give-id", "planned", "nothing")],
    )
    assert tree(rig.folder) == before
    assert rig.reconcile(source, "--apply").status == Exit.DONE
    file = rig.disks[0] / "new-0" / "partition.metadata"
    assert file.read_text() == f"version: 0\ntopic_id: {OTHER}"
    assert rig.deleting() == []


def test_a03_what_was_overtaken_is_refused_and_changes_nothing(rig: Rig) -> None:
    last = document(listed(pay=(PAY, EVERY), gone=(GONE, (0, 1))), type=FULL, sequence=7, epoch=5)
    assert rig.reconcile(rig.document(last), "--apply").status == Exit.DONE
    before = tree(*rig.disks)
    for sequence, epoch in ((6, 5), (9, 4)):
        old = document(listed(pay=(OTHER, EVERY)), type=FULL, sequence=sequence, epoch=epoch)
        status, result = ctl_json("reconcile", "--from", rig.document(old, "old.json"), *rig.named, "--apply")
        assert (status, result["code"], result["items"]) == (Exit.REFUSED, 11, [])
    assert tree(*rig.disks) == before


def test_a27_a_request_meant_for_another_broker_is_refused_whole(rig: Rig) -> None:
    states = listed(pay=(PAY, EVERY))
    states[0]["partitionStates"][5]["replicas"] = [2, 3]
    said = rig.reconcile(rig.document(document(states, type=FULL, sequence=1)), "--apply", "--even-over-limit")
    assert (said.status, "meant for another broker" in said.err) == (Exit.REFUSED, True)
    assert rig.deleting() == []
    assert rig.controller()[0].requests is None


def test_a38_what_the_staging_limit_holds_waits_and_the_document_can_be_given_again(rig: Rig) -> None:
    source = rig.document(document(listed(gone=(GONE, (0, 1))), type=FULL, sequence=1))
    before = tree(rig.folder)
    status, result = ctl_json("reconcile", "--from", source, *rig.named)
    assert (status, {item["state"] for item in result["items"]}) == (Exit.REFUSED, {"waiting"})
    assert tree(rig.folder) == before
    said = rig.reconcile(source, "--apply", "--max-staged-percent", 5)
    assert said.status == Exit.REFUSED
    assert ("--even-over-limit" in said.err, "--even" in said.out) == (True, False)
    assert (rig.deleting(), rig.controller()[0].requests) == ([], None)
    assert rig.reconcile(source, "--apply", "--even-over-limit").status == Exit.DONE
    assert len(rig.deleting()) == PARTITIONS


def test_protected_topics_stay(rig: Rig) -> None:
    partition(rig.disks[0] / "__consumer_offsets-0", topic_id=OTHER)
    age(rig.disks[0] / "__consumer_offsets-0")
    source = rig.document(document(listed(pay=(PAY, EVERY)), type=FULL, sequence=1))
    said = rig.reconcile(source, "--apply", "--even-over-limit", "--protect", "go*")
    assert said.status == Exit.PROBLEMS
    assert rig.deleting() == []
    assert said.err.count("expected a topic that is not protected") == 3


AGED: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "full": (document(listed(pay=(PAY, EVERY), new=(OTHER, (0,))), type=FULL, sequence=7), ["gone-0", "gone-1"], []),
    "stop by name": (
        document(stopped(delete=True, gone=(None, (0,))), api="StopReplica", sequence=7),
        ["gone-0"],
        [],
    ),
    "stop by id": (
        document(stopped(delete=True, gone=(GONE, (0,))), api="StopReplica", form="kip", sequence=7),
        ["gone-0"],
        [],
    ),
    "another id": (document(listed(gone=(OTHER, (0,))), type=INCREMENTAL, sequence=7), ["gone-0"], []),
    "gives an id": (document(listed(new=(OTHER, (0,))), type=INCREMENTAL, sequence=7), [], ["new-0"]),
}


@pytest.mark.parametrize("kind", AGED)
def test_a01_a_document_speaks_only_of_directories_older_than_its_file(rig: Rig, kind: str) -> None:
    """A StopReplica without id, given again a day later, once staged the replica of the topic created since."""
    value, going, given = AGED[kind]
    age(partition(rig.disks[0] / "new-0", topic_id=None))
    if kind == "full":
        (rig.disks[0] / "new-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER}")
    source = rig.document(value)
    file, named = Path(source.removeprefix("request:")), set(going + given)
    paths = sorted(f"{disk}/{name}" for disk in rig.disks for name in named if (disk / name).exists())
    assert len(paths) == len(named)
    # Ten minutes apart are not enough, and one second more is: the clocks of two hosts differ (A1).
    for at_s in (LONG_AGO_S - 24 * 60 * 60, LONG_AGO_S + 600):
        os.utime(file, (time.time(), at_s))
        status, result = ctl_json("reconcile", "--from", source, *rig.named, "--apply", "--even-over-limit")
        assert status == Exit.PROBLEMS
        assert [(item["state"], item["problem"]["slug"]) for item in result["items"]] == [
            ("refused", "replica-too-young")
        ] * len(paths)
        assert sorted(item["problem"]["path"] for item in result["items"]) == paths
        assert (rig.deleting(), rig.controller()[0].requests) == ([], None)
    os.utime(file, (time.time(), LONG_AGO_S + 601))
    status, result = ctl_json("reconcile", "--from", source, *rig.named, "--apply", "--even-over-limit")
    assert (status, {item["state"] for item in result["items"]}) == (Exit.DONE, {"done"})
    assert rig.deleting() == [f"{GONE}_{name[-1]}" for name in going]
    assert {item["evidence"]["as_of_ms"] for item in result["items"]} == {(LONG_AGO_S + 601) * 1000}


def test_a01_no_document_is_dated_later_than_now(rig: Rig) -> None:
    """Its file has the time of a host whose clock is ahead: the directories were made a minute ago."""
    age(rig.disks[0] / "gone-0", at_s=int(time.time()) - 60)
    source = rig.document(document(stopped(delete=True, gone=(None, (0,))), api="StopReplica", sequence=7))
    os.utime(source.removeprefix("request:"), (time.time() + 86400,) * 2)
    said = rig.reconcile(source, "--apply", "--even-over-limit")
    assert (said.status, "replica-too-young" in said.err) == (Exit.PROBLEMS, True), said
    assert rig.deleting() == []
