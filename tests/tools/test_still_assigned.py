"""What is staged while the cluster assigns it here, restored after it was deleted, and purged: on real directories."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from logdir.service.log_dirs.open_broker import OpenBroker
from tests.builders import partition
from tests.logdir.cluster.log_dir import change, noop, register, remove, topic
from tests.logdir.cluster.log_dir import partition as claimed
from tests.tools.assignment_rig import STAGED, THREE, Cluster, slugs
from tests.tools.command_lines import require_parsable
from tests.tools.ctl import ctl, ctl_json, tree
from tests.tools.reconcile_rig import GONE, OTHER, PAY, Rig, age, is_in, raw
from tools.cli.arguments import Exit

HOUR_MS = 60 * 60 * 1000


def test_a48_the_only_in_sync_replica_is_never_staged_unsaid_nor_purged_unnamed(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, isr=(1,))
    before = tree(*cluster.rig.disks)
    said = cluster.stage("--even-if-unknown")
    assert (said.status, slugs(said)) == (Exit.REFUSED, ["last-in-sync"])
    assert "empty replica at once" in said.err
    assert tree(*cluster.rig.disks) == before
    plan = ctl("stage", "pay-0", *cluster.named, "--even-if-last")
    assert (plan.status, "empty replica at once" in plan.out) == (Exit.DONE, True)
    assert "--even-" not in plan.out.splitlines()[-1]
    assert cluster.stage("--even-if-last", "--delay", "0s").status == Exit.DONE
    item = cluster.item()
    assert (item["state"], item["assigned"], item["delay_ms"]) == ("held", "here", None)
    assert item["evidence"]["kind"] == "present"
    assert "still assigned" in item["detail"]
    assert "--even-if-last" in item["detail"]
    for words in ((), ("pay-0",), ("pay-0", "--even-if-early", "--include-held"), ("pay-0", "--even-if-assigned")):
        said = ctl("staged", "purge", *words, *cluster.named, "--apply")
        assert said.status == (Exit.REFUSED if words else Exit.DONE), words
        assert "--even-if-last" in said.out + said.err
        assert cluster.rig.deleting() == [STAGED]
    assert ctl("staged", "purge", STAGED, *cluster.named, "--even-if-last", "--apply").status == Exit.DONE
    assert cluster.rig.deleting() == []


def test_a48_where_nobody_knows_nothing_is_staged_unsaid_nor_ever_due(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    said = ctl("stage", "pay-0", *rig.named, "--even-if-last", "--apply")
    assert (said.status, slugs(said)) == (Exit.REFUSED, ["assignment-unknown"])
    assert ctl("stage", "pay-0", *rig.named, "--even-if-unknown", "--delay", "0s", "--apply").status == Exit.DONE
    _, result = ctl_json("staged", "ls", *rig.named)
    assert [(one["state"], one["assigned"]) for one in result["items"]] == [("held", "unknown")]
    assert ctl("staged", "purge", *rig.named, "--apply").status == Exit.DONE
    assert rig.deleting() == [STAGED]


def test_a48_what_other_brokers_have_in_sync_goes_only_once_it_is_live_and_in_the_isr_here(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    said = cluster.stage("--delay", "0s")
    assert (said.status, "replicates it again" in said.out) == (Exit.DONE, True)
    item = cluster.item()
    assert (item["state"], item["assigned"]) == ("held", "here")
    assert (item["evidence"]["kind"], item["evidence"]["proof"]) == ("removed", "in-sync-elsewhere")
    assert "--even-if-assigned" in item["detail"]
    purging = ("staged", "purge", *cluster.named, "--apply")
    said = ctl(*purging)
    assert (said.status, cluster.rig.deleting()) == (Exit.DONE, [STAGED])
    assert "still assigned here" in said.out
    # Started: an empty replica, not in the ISR yet; then in it, and the log tells of it later.
    age(partition(cluster.rig.disks[0] / "pay-0", topic_id=PAY))
    cluster.log.append(change(raw(PAY), 0, isr=(2,)))
    cluster.log.time_ms += HOUR_MS
    cluster.log.append(noop())
    ctl(*purging)
    assert cluster.rig.deleting() == [STAGED]
    cluster.log.append(change(raw(PAY), 0, isr=(1, 2)))
    assert cluster.item()["state"] == "due"
    assert ctl(*purging).status == Exit.DONE
    assert cluster.rig.deleting() == []
    assert cluster.is_live()


def test_a48_what_is_in_sync_elsewhere_goes_by_name_and_word_alone(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    named = ("staged", "purge", "pay-0", *cluster.named, "--even-if-early")
    said = ctl(*named, "--apply")
    assert (said.status, slugs(said)) == (Exit.REFUSED, ["still-assigned"])
    assert ctl("staged", "purge", *cluster.named, "--even-if-assigned", "--apply").status == Exit.USAGE
    assert ctl(*named, "--even-if-assigned", "--apply").status == Exit.DONE
    assert cluster.rig.deleting() == []


@pytest.mark.parametrize("again", [None, OTHER], ids=["deleted", "and re-created"])
@pytest.mark.parametrize("word", [(), ("--even-if-unknown",)], ids=["no word", "every word"])
def test_a47_what_was_deleted_meanwhile_is_never_renamed_back(
    again: str | None, word: tuple[str, ...], tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    cluster.log.append(remove(raw(PAY)))
    if again is not None:
        cluster.log.append(topic("pay", raw(again)), claimed(raw(again), 0, (1, 2)))
    before = tree(*cluster.rig.disks)
    said = cluster.restore(*word)
    assert (said.status, slugs(said)) == (Exit.REFUSED, ["topic-gone"])
    assert "export" in said.err
    assert "erases it" in said.err
    item = cluster.item()
    assert (item["assigned"], item["restore"]) == ("gone", "adopt")
    said = ctl("uninstall", *cluster.named, "--restore", *word, "--apply")
    assert "topic-gone" in slugs(said)
    assert tree(*cluster.rig.disks) == before
    assert is_in(cluster.rig.disks[0], STAGED)


def test_a47_the_only_voter_knows_and_says_its_kind_first(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    before = tree(*cluster.rig.disks)
    assert cluster.stage().status == Exit.DONE
    plan = ctl("staged", "restore", "pay-0", *cluster.named)
    assert (plan.status, "rename: it is assigned here at offset" in plan.out) == (Exit.DONE, True)
    said = cluster.restore()
    assert (said.status, "pay-0: rename: " in said.err) == (Exit.DONE, True)
    assert tree(*cluster.rig.disks) == before


def test_a47_a_list_of_log_dirs_does_not_say_which_metadata_log_is_its_own(tmp_path: Path) -> None:
    """A ``metadata.log.dir`` outside them may hold the newer one, in which the topic was deleted."""
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    configured, cluster.named = cluster.named, cluster.rig.named
    before = tree(*cluster.rig.disks)
    said = cluster.restore()
    assert (said.status, slugs(said)) == (Exit.REFUSED, ["assignment-unknown"])
    assert "--server-properties" in said.err
    said = ctl("uninstall", *cluster.named, "--restore", "--apply")
    assert "assignment-unknown" in slugs(said)
    assert tree(*cluster.rig.disks) == before
    cluster.named = configured
    assert (cluster.restore().status, cluster.is_live()) == (Exit.DONE, True)


def test_a47_uninstall_says_its_kind_first_too(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    said = ctl("uninstall", *cluster.named, "--restore", "--apply")
    assert (said.status, cluster.is_live()) == (Exit.DONE, True)
    assert "pay-0: rename: it is assigned here at offset" in said.err


def test_a47_a_broker_that_starts_while_its_log_is_read_makes_a_restore_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes its metadata log before it asks for the locks."""
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    real = OpenBroker.batch
    calls: list[int] = []

    @contextmanager
    def meanwhile(self: OpenBroker) -> Iterator[Any]:
        calls.append(1)
        if len(calls) == 2:  # the first is recovery's
            cluster.log.append(remove(raw(PAY)))
        with real(self) as held:
            yield held

    monkeypatch.setattr(OpenBroker, "batch", meanwhile)
    said = cluster.restore()
    assert (said.status, cluster.is_live()) == (Exit.REFUSED, False)
    assert "it was written since" in said.err


def test_a47_one_of_three_voters_knows_nothing_since_its_stop(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, quorum=THREE)
    cluster.log.snapshot(
        register(1), register(2), topic("pay", raw(PAY)), *(claimed(raw(PAY), number, (1, 2)) for number in range(12))
    )
    offset = cluster.log.offset
    cluster.log.append(noop())
    assert cluster.stage().status == Exit.DONE
    for words in (
        (),
        ("--high-watermark", offset, "--leader-epoch", 1),
        # Its own log ends there: it may have been printed just before a kill -9.
        ("--high-watermark", cluster.log.offset, "--leader-epoch", 1),
        ("--high-watermark", 10_000, "--leader-epoch", 1),
    ):
        said = cluster.restore(*words)
        assert (said.status, slugs(said)) == (Exit.REFUSED, ["assignment-unknown"]), words
        assert (
            f"not known since offset {offset + any(type(word) is int and word > offset for word in words)}" in said.err
        )
        for text in ("-stray", "erases it", "--even-if-unknown"):
            assert text in said.err
    said = ctl("uninstall", *cluster.named, "--restore", "--apply")
    assert "assignment-unknown" in slugs(said)
    assert not cluster.is_live()
    assert ctl("init", *cluster.named, "--apply").status == Exit.DONE
    said = cluster.restore("--even-if-unknown")
    assert (said.status, cluster.is_live()) == (Exit.DONE, True)
    assert "not known since offset" in said.err


def test_a47_a_watermark_of_after_the_stop_is_knowledge_and_one_of_before_is_none(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, quorum=THREE)
    assert cluster.stage().status == Exit.DONE
    copy = cluster.copy_of_a_controller()
    source = ("--from", f"metadata:{copy.directory}", "--leader-epoch", 1, "--high-watermark")
    # Of before the stop; perhaps of before it; beyond what the copy holds.
    for offset in (cluster.log.offset - 1, cluster.log.offset, copy.offset + 1):
        said = cluster.restore(*source, offset)
        assert (said.status, slugs(said)) == (Exit.REFUSED, ["assignment-unknown"]), offset
    plan = ctl("staged", "restore", "pay-0", *cluster.named, *source, copy.offset)
    assert plan.status == Exit.DONE, plan
    require_parsable(plan.out)
    assert plan.out.splitlines()[-1].endswith(f"--high-watermark {copy.offset} --leader-epoch 1 --apply")
    assert cluster.restore(*source, copy.offset).status == Exit.DONE
    assert cluster.is_live()


def test_a47_a_watermark_of_after_the_stop_shows_that_it_is_gone(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, quorum=THREE)
    assert cluster.stage().status == Exit.DONE
    copy = cluster.copy_of_a_controller()
    copy.append(remove(raw(PAY)))
    words = ("--from", f"metadata:{copy.directory}", "--high-watermark", copy.offset, "--leader-epoch", 1)
    assert slugs(cluster.restore(*words, "--even-if-unknown")) == ["topic-gone"]
    assert not cluster.is_live()


@pytest.mark.parametrize("verb", [("stage",), ("staged", "restore"), ("staged", "purge")])
def test_a_request_document_is_no_word_on_how_the_cluster_is_now(verb: tuple[str, ...], tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    said = ctl(*verb, "pay-0", *cluster.named, "--from", "request:/r")
    assert (said.status, "--from" in said.err) == (Exit.USAGE, True)


def test_no_purge_is_silent_and_no_next_line_leads_back_to_it(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    for words in ((), ("--apply",)):
        said = ctl("staged", "purge", *cluster.named, *words)
        assert (said.status, "nothing is staged" in said.out) == (Exit.DONE, True)
    for number, delay in enumerate(("2h", "1h", "0s")):
        more = ("--delay", delay, "--even-over-limit", "--apply")
        assert ctl("stage", f"pay-{number}", *cluster.named, *more).status == Exit.DONE
    status, result = ctl_json("staged", "purge", *cluster.named, "--apply")
    assert (status, [one["state"] for one in result["items"]]) == (Exit.DONE, ["kept"] * 3)
    assert all(one["detail"] for one in result["items"])
    dues = sorted(one["undo_until_ms"] for one in result["items"] if one["undo_until_ms"] is not None)
    assert (len(dues), result["next_due_ms"]) == (2, dues[0])
    assert 0 < dues[1] - dues[0] - HOUR_MS + 60_000 < 120_000
    said = ctl("staged", "purge", *cluster.named)
    assert "the next staged replica is due 20" in said.out
    seen = {"staged purge"}
    line = said.out.splitlines()[-1]
    while line.startswith("next: logdirctl staged"):
        typed = shlex.split(line.removeprefix("next: logdirctl "))
        assert " ".join(typed[:2]) not in seen, line
        seen.add(" ".join(typed[:2]))
        line = ctl(*[word for word in typed if word != "--apply"]).out.splitlines()[-1]
        if "--apply" in line:
            break


def test_a_listing_says_still_assigned_to_people_too(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    out = ctl("staged", "ls", *cluster.named).out
    assert "still assigned" in out
    assert json.loads(ctl("staged", "ls", *cluster.named, "--json").out)["result"]["items"][0]["assigned"] == "here"


def test_a_listing_does_not_forget_a_removal_that_stands_before_the_newest_snapshot(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    log = rig.log()
    assert ctl("stage", "gone", "--even-if-unknown", *rig.named, "--apply").status == Exit.DONE
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    _, result = ctl_json("staged", "ls", *rig.named)
    assert [(item["topic"], item["assigned"]) for item in result["items"]] == [("gone", "gone")] * 2
