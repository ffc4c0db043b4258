"""``logdirctl describe`` on real directories: the table, JSON, and what stock tools print; nothing changes."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests import trees
from tests.builders import TOPIC_ID, log_dir, partition
from tests.logdir.cluster.log_dir import LogDir, change, record, register, remove, topic
from tests.logdir.cluster.log_dir import partition as claimed
from tests.tools.ctl import Said, ctl, ctl_json, held, tree
from tests.tools.named_tree import tree_of
from tests.tools.reconcile_rig import GONE, OTHER, PAY, Rig, age, raw
from tools.cli.arguments import Exit

KEYS = [
    "cluster", "first_offset", "kind", "log_bytes", "log_dir", "partition", "path", "problems", "segments", "state",
    "tiered", "topic", "topic_id",
]  # fmt: skip
SAID_KEYS = ["adding", "isr", "leader", "leader_epoch", "removing", "replicas"]
UNIQUE = "620e1db281fd429bb71e0c5e2c72578c"
ZERO = "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def items(named: tuple[object, ...], *argv: object) -> tuple[int, list[dict[str, Any]]]:
    status, result = ctl_json("describe", *argv, *named)
    for item in result["items"]:
        assert sorted(item) == KEYS
        assert item["cluster"] is None or sorted(item["cluster"]) == SAID_KEYS
    return status, result["items"]


def states(found: list[dict[str, Any]]) -> dict[str, str]:
    return {item["path"] or f"{item['topic']}-{item['partition']}": item["state"] for item in found}


def next_of(said: Said) -> list[str]:
    """Return the last line of a listing as it would be typed."""
    _, name, *words = shlex.split(said.out.splitlines()[-1])
    assert name == "logdirctl"
    return words


def test_the_table_shows_ids_kinds_bytes_disks_states_and_what_next() -> None:
    named, top = tree_of("4.3.1-kill9")
    said = ctl("describe", "x-y-3-0", *named)
    table = said.out.splitlines()
    cluster_id = trees.manifest("4.3.1-kill9")["cluster_id"]
    word = f"the cluster's word: metadata-log {top}/d1/__cluster_metadata-0, cluster {cluster_id}, epoch 1, offset "
    assert table[0].startswith(word)
    assert table[1].split() == [
        "topic", "p", "id", "kind", "state", "bytes", "disk", "path", "leader", "replicas", "isr"
    ]  # fmt: skip
    assert table[2].split() == [
        "x-y-3", "0", "Sm1aHmjwTdWoYLtZIy5LUw", "live", "leader", "136", "B", f"{top}/d1", "x-y-3-0", "1", "1", "1"
    ]  # fmt: skip
    assert table[3].split()[3:5] == ["future", "future"]
    assert table[4:] == [f"next: logdirctl inventory {' '.join(named)}"]
    assert said.err == ""


def test_every_form_of_selector_finds_the_same(rig: Rig) -> None:
    for selector in ("pay-3", f"{PAY}_3", "part:pay-3", f"id:{PAY}_3", "p*-3"):
        assert states(items(rig.named, selector)[1]) == {"pay-3": "unsaid"}
    for selector in ("pay", PAY, "name:pay", "p?y", "7973b2eb18fe43c8afad6025b191a793"):
        assert len(items(rig.named, selector)[1]) == 12
    assert len(items(rig.named)[1]) == len(items(rig.named, "*")[1]) == 14
    status, found = items(rig.named, "nope")
    assert (status, found) == (Exit.PROBLEMS, [])
    assert ctl("describe", "a b", *rig.named).status == Exit.USAGE


def test_an_id_wins_over_a_name_and_the_zero_id_means_the_name(rig: Rig) -> None:
    one = rig.disks[0]
    partition(one / f"{PAY}-0", topic_id=OTHER)  # a topic that is called as another one's id is written
    partition(one / f"{ZERO}-0", topic_id=GONE)
    assert {item["topic"] for item in items(rig.named, PAY)[1]} == {"pay"}
    assert {item["topic"] for item in items(rig.named, f"name:{PAY}")[1]} == {PAY}
    assert {item["topic"] for item in items(rig.named, ZERO)[1]} == {ZERO}
    status, found = items(rig.named, f"{ZERO}_0")
    assert (status, found) == (Exit.PROBLEMS, [])
    partition(one / "pay-1-0", topic_id=OTHER)  # and a topic that is called as a partition of another
    assert ctl("describe", "pay-1", *rig.named).status == Exit.USAGE
    assert states(items(rig.named, "name:pay-1")[1]) == {"pay-1-0": "unsaid"}


def test_how_replicas_stand_with_the_cluster(rig: Rig) -> None:
    own, elsewhere = b"$E\xd8\xe9\xaa\xb3A\x8d\xfe\xd8\xfeSJ\xdc\xda\x16", b"\x01" * 16
    log = LogDir(rig.disks[0] / "__cluster_metadata-0")
    log.lead(1)
    log.append(register(1), register(2), topic("pay", raw(PAY)))
    said: dict[int, dict[str, Any]] = {
        0: {},
        1: {"leader": 2},
        2: {"leader": 2, "isr": (2,)},
        4: {"leader": -1, "isr": (), "eligible": True},
        6: {"directories": (elsewhere, own)},
        20: {},
        22: {"addingReplicas": (1,), "isr": (2,)},
    }
    for number, fields in said.items():
        is_eligible = fields.pop("eligible", False)
        one = {"directories": (bytes(16), bytes(16))} | fields
        log.append(claimed(raw(PAY), number, (1, 2), **one))
        if is_eligible:
            log.append(
                record(
                    5, 2, partitionId=number, topicId=raw(PAY), isr=(), leader=-1, replicas=None,
                    removingReplicas=None, addingReplicas=None, leaderRecoveryState=-1, directories=None,
                    eligibleLeaderReplicas=(1,), lastKnownElr=None,
                )
            )  # fmt: skip
    log.append(claimed(raw(PAY), 8, (2, 3)))
    end = log.append(topic("gone", raw(GONE)), remove(raw(GONE)))
    partition(rig.disks[1] / f"pay-1.{UNIQUE}-delete", topic_id=PAY)
    partition(rig.disks[1] / f"pay-1.{UNIQUE}-stray", topic_id=PAY)
    (rig.disks[0] / "pay-10" / "partition.metadata").unlink()
    (rig.disks[0] / "pay-98").symlink_to(rig.folder)
    told = ("--high-watermark", end, "--leader-epoch", 1)
    status, found = items(rig.named, *told)
    assert status == Exit.PROBLEMS
    known = states(found)
    assert {f"pay-{number}": known[f"pay-{number}"] for number in (0, 1, 2, 4, 6, 8, 20, 98)} == {
        "pay-0": "leader", "pay-1": "in-sync", "pay-2": "behind", "pay-4": "eligible", "pay-6": "misplaced",
        "pay-8": "unclaimed", "pay-20": "missing", "pay-98": "unusable",
    }  # fmt: skip
    assert "pay-22" not in known  # it is being added, and is not there yet
    assert (known["gone-0"], known[f"pay-1.{UNIQUE}-delete"], known[f"pay-1.{UNIQUE}-stray"]) == (
        "unclaimed", "leaving", "stray",
    )  # fmt: skip
    (missing,) = [item for item in found if item["state"] == "missing"]
    assert (missing["kind"], missing["log_dir"], missing["path"], missing["log_bytes"]) == (None,) * 4
    assert missing["cluster"]["replicas"] == [1, 2]
    said_so = ctl("describe", "pay-20", *rig.named, *told)
    assert "which would make it again, empty" in said_so.err
    assert next_of(ctl("describe", "pay-8", *rig.named, *told)) == [
        "strays", *rig.named, "--from", "metadata:", *map(str, told)
    ]  # fmt: skip


def test_no_replica_that_cannot_be_used_is_without_a_line_of_its_own(rig: Rig) -> None:
    (rig.disks[0] / "pay-98").symlink_to("pay-0")
    for selector in ((), ("pay-98",)):
        said = ctl("describe", *selector, *rig.named)
        assert said.status == Exit.PROBLEMS
        (line,) = [line for line in said.err.splitlines() if f"{rig.disks[0]}/pay-98" in line]
        assert line.startswith(f"logdirctl describe: symlink: {rig.disks[0]}/pay-98: expected ")
        # What to do about a link, and not about rights or a sick disk.
        assert "follows the link" in line
        assert "run as" not in line
        envelope = json.loads(ctl("describe", *selector, *rig.named, "--json").out)
        assert (envelope["exit"], [one["slug"] for one in envelope["problems"]]) == (Exit.PROBLEMS, ["symlink"])
    assert ctl("describe", "pay-0", *rig.named).status == Exit.DONE
    staged = ctl("stage", "pay-98", "--even-if-unknown", *rig.named)
    assert staged.status == Exit.REFUSED
    (line,) = [line for line in staged.err.splitlines() if f"{rig.disks[0]}/pay-98" in line]
    assert ("follows the link" in line, "run as" in line) == (True, False)


def test_what_comes_next_names_the_source_that_was_used(rig: Rig) -> None:
    folder = rig.folder / "else where"
    log = rig.log(folder)
    shutil.copy(rig.disks[0] / "meta.properties", folder)
    end = log.append(register(1, fenced=True), remove(raw(GONE)))
    told = ("--from", f"metadata:{folder}", "--high-watermark", end, "--leader-epoch", 1)
    following = next_of(ctl("describe", "gone", *rig.named, *told))
    assert following == ["strays", *rig.named, *map(str, told)]
    assert ctl(*following).status == Exit.DONE
    # Where nobody was asked nothing is named.
    partition(rig.disks[1] / f"pay-1.{UNIQUE}-stray", topic_id=PAY)
    assert next_of(ctl("describe", "pay-1", *rig.named)) == ["strays", *rig.named]


def test_what_was_staged_and_what_is_tiered(rig: Rig) -> None:
    log = rig.log()
    log.append(change(raw(PAY), 0, isr=(1,)), remove(raw(GONE)))
    rig.snapshot(log)
    assert rig.reconcile("metadata:", "--apply").status == Exit.DONE
    (rig.disks[0] / "pay-2" / f"{0:020}.log").rename(rig.disks[0] / "pay-2" / f"{70:020}.log")
    (rig.disks[0] / "log-start-offset-checkpoint").write_text("0\n1\npay 2 5\n")
    found = {item["path"]: item for item in items(rig.named)[1]}
    assert found[f"deleting/{GONE}_0"]["state"] == "staged"
    assert found[f"deleting/{GONE}_0"]["log_bytes"] == 10
    assert [path for path, item in found.items() if item["tiered"]] == ["pay-2"]
    said = ctl("describe", "gone", *rig.named)
    assert said.out.splitlines()[-1].startswith("next: logdirctl staged ls ")
    assert "live, tiered" in ctl("describe", "pay-2", *rig.named).out


def test_the_topic_id_layout_is_told_by_the_same_names(tmp_path: Path) -> None:
    one = log_dir(tmp_path / "d1")
    partition(one / TOPIC_ID[:2] / f"{TOPIC_ID}_0", topic_name="pay")
    partition(one / OTHER[:2] / f"{OTHER}_1", topic_id=OTHER)  # nothing says its name
    named = ("--log-dirs", str(one))
    for selector in ("pay", "pay-0", TOPIC_ID):
        assert states(items(named, selector)[1]) == {f"{TOPIC_ID[:2]}/{TOPIC_ID}_0": "unsaid"}
    assert [(item["topic"], item["topic_id"]) for item in items(named, OTHER)[1]] == [(None, OTHER)]
    said = ctl("describe", "--kafka-json", *named)
    assert '"partition":"pay-0"' in said.out
    assert f'"partition":"{OTHER}-1"' in said.out


def test_only_what_lies_on_a_disk(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = rig.disks
    rig.snapshot(rig.log())
    shutil.rmtree(two / "pay-1")  # the cluster assigns it here: missing, and so on no disk
    every = items(rig.named)[1]
    monkeypatch.chdir(rig.folder)
    for disk in (two, "d2", f"{two}/"):
        status, found = items(rig.named, "--disk", disk)
        assert found == [item for item in every if item["log_dir"] == str(two)]
        assert status == Exit.DONE
    assert {"pay-3", "gone-1"} < {item["path"] for item in found}
    both = items(rig.named, "--disk", one, "--disk", two)[1]
    assert both == [item for item in every if item["log_dir"] is not None]
    assert [item["path"] for item in items(rig.named, "gone", "--disk", two)[1]] == ["gone-1"]
    said = ctl("describe", "gone", "--disk", two, *rig.named)
    assert (said.out.count("gone-1"), said.out.count("gone-0")) == (1, 0)
    # It lies elsewhere.
    said = ctl("describe", "gone-0", "--disk", two, *rig.named)
    assert (said.status, "nothing-selected" in said.err) == (Exit.PROBLEMS, True)
    # What a selector means is asked of the whole broker.
    partition(one / "pay-3-0", topic_id=OTHER)
    assert ctl("describe", "pay-3", "--disk", two, *rig.named).status == Exit.USAGE


def test_only_the_log_dirs_asked_for_are_in_the_stock_json(rig: Rig) -> None:
    one, two = rig.disks
    partition(two / f"pay-0.{UNIQUE}-future", topic_id=PAY)
    whole = json.loads(ctl("describe", "--kafka-json", *rig.named).out)["brokers"][0]["logDirs"]
    said = ctl("describe", "--kafka-json", "--disk", two, *rig.named)
    (only,) = json.loads(said.out)["brokers"][0]["logDirs"]
    # Also how far a copy lags behind what lies on another disk.
    assert (said.status, only) == (Exit.DONE, next(one for one in whole if one["logDir"] == str(two)))
    assert ctl("describe", "gone-0", "--kafka-json", "--disk", two, *rig.named).status == Exit.PROBLEMS
    assert ctl("describe", "gone-0", "--kafka-json", "--disk", one, *rig.named).status == Exit.DONE


def test_a_disk_that_is_none_of_the_brokers_is_wrong_usage(rig: Rig) -> None:
    for form in ((), ("--json",), ("--kafka-json",)):
        said = ctl("describe", "--disk", rig.disks[0], "--disk", rig.folder, *rig.named, *form)
        assert (said.status, said.err.count("\n")) == (Exit.USAGE, 1)
        assert f"--disk: expected one of the broker's log dirs, found {rig.folder}" in said.err
    said = ctl("describe", "--disk", rig.disks[0], "--kafka-topics", *rig.named)
    assert (said.status, said.out, said.err.count("\n")) == (Exit.USAGE, "", 1)
    assert "--kafka-topics" in said.err


# What may be wrong.


def test_a_damaged_log_of_its_own_is_told_and_the_disks_all_the_same(rig: Rig) -> None:
    log = rig.log()
    rig.snapshot(log)
    (path,) = (rig.disks[0] / "__cluster_metadata-0").glob("*.checkpoint")
    path.write_bytes(b"x" * 100)
    status, found = items(rig.named, "pay")
    assert (status, len(found), {item["state"] for item in found}) == (Exit.PROBLEMS, 12, {"unsaid"})
    said = ctl("describe", "pay", "--from", "metadata:", *rig.named)
    assert (said.status, said.out, said.err.count("\n")) == (Exit.PROBLEMS, "", 1)


def test_a_log_of_which_nothing_is_known_to_be_committed_is_no_trouble(rig: Rig) -> None:
    rig.log()
    said = ctl("describe", "pay", *rig.named)
    assert (said.status, "--high-watermark" in said.err) == (Exit.DONE, True)
    assert "pay-11" in said.out


def test_another_brokers_word_is_refused(rig: Rig) -> None:
    log = rig.log(rig.folder / "other")
    rig.snapshot(log)
    for disk in rig.disks:
        text = (disk / "meta.properties").read_text()
        (rig.folder / "other" / "meta.properties").write_text(text.replace("cluster.id=M", "cluster.id=X"))
    for form in ((), ("--json",), ("--kafka-topics",)):
        said = ctl("describe", "pay", *rig.named, "--from", f"metadata:{rig.folder}/other", *form)
        assert (said.status, "the cluster's word" in said.out) == (Exit.REFUSED, False)
        # What it is comes first, and then why it is refused.
        word, why = said.err.splitlines()
        assert word.startswith(f"logdirctl describe: the cluster's word: metadata-log {rig.folder}/other/")
        assert ", cluster X" in word
        assert ", epoch 1, offset " in word
        assert ", as of 20" in word
        assert "of the cluster of the log dirs" in why


def test_an_unreadable_disk_is_told_and_its_replicas_are_missing(rig: Rig) -> None:
    rig.snapshot(rig.log())
    rig.disks[1].rename(rig.folder / "away")
    status, found = items(rig.named, "pay")
    assert status == Exit.PROBLEMS
    assert {item["state"] for item in found if item["partition"] % 2} == {"missing"}
    # The log names another directory id than these disks have.
    assert {item["state"] for item in found if not item["partition"] % 2} == {"misplaced"}


def test_garbage_is_one_line(rig: Rig) -> None:
    for source in ("nonsense", "request:", "cluster:", f"request:{rig.folder}/none", "metadata:/nowhere"):
        said = ctl("describe", *rig.named, "--from", source)
        assert (said.status, said.out, said.err.count("\n")) == (Exit.USAGE, "", 1), source
    assert ctl("describe", "--kafka-json", "--kafka-topics", *rig.named).status == Exit.USAGE
    assert ctl("describe", "--kafka-json", "--json", *rig.named).status == Exit.USAGE
    assert ctl("describe", *rig.named, "--high-watermark", 5).status == Exit.USAGE


def test_nothing_changes_beside_a_running_broker(rig: Rig) -> None:
    rig.snapshot(rig.log())
    (rig.disks[0] / ".lock").touch()
    with held(rig.disks[0] / ".lock"):
        before = tree(rig.folder)
        for form in ((), ("--json",), ("--kafka-json",), ("--kafka-topics",)):
            assert ctl("describe", "pay", *rig.named, *form).status == Exit.DONE
        assert tree(rig.folder) == before


def test_what_steers_a_terminal_is_escaped(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "a\x1b[31mb\nc")
    rig.snapshot(rig.log())
    age(*rig.disks)
    for form in ((), ("--json",), ("--kafka-json",)):
        said = ctl("describe", "gone", *rig.named, *form)
        assert "\x1b" not in said.out + said.err
    assert len(ctl("describe", "gone", *rig.named).out.splitlines()) == 5
    shutil.rmtree(rig.disks[1])
    assert "\x1b" not in ctl("describe", *rig.named).err
