"""``logdirctl staged restore`` of a topic that is gone ends with a guide through its adoption."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.logdir.cluster.log_dir import noop, register, remove
from tests.tools.adopt_rig import NEW, OLD, TWO_VOTERS, UNIQUE, AdoptRig, filled
from tests.tools.ctl import Said, ctl, ctl_json, tree
from tests.tools.reconcile_rig import raw
from tools.cli.arguments import Exit


def gone(rig: AdoptRig) -> AdoptRig:
    """Let the topic not be created again yet."""
    rig.log.append(remove(raw(NEW)))
    for number in range(rig.new_partitions):
        shutil.rmtree(rig.live(number))
    return rig


def restore(rig: AdoptRig, *more: object, selector: str = "pay") -> Said:
    return ctl("staged", "restore", selector, *rig.named, *more)


def printed(said: Said) -> list[str]:
    """Return the lines of the guide."""
    lines = said.out.splitlines()
    return lines[next(at for at, line in enumerate(lines) if line.startswith("1. ")) : -1]


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AdoptRig:
    """A broker whose configuration has a path as short as on a host."""
    rig = gone(AdoptRig(tmp_path))
    monkeypatch.chdir(tmp_path)
    rig.named = ("--server-properties", "server.properties")
    return rig


def test_a16_a_topic_of_one_replica_is_led_through_its_adoption_in_80_columns(short: AdoptRig) -> None:
    before = tree(short.folder)
    said = restore(short)
    assert (said.status, "topic-gone" in said.err) == (Exit.REFUSED, True)
    assert tree(short.folder) == before
    adopt = f"logdirctl staged adopt {OLD} --as pay"
    lines = printed(said)
    assert [*lines[:15], *lines[-6:]] == [
        "1. Hold the staged replicas, so that none is purged meanwhile:",
        f"     logdirctl staged hold {OLD} \\",
        "       --server-properties server.properties --apply",
        "2. Start broker 1: systemctl start kafka",
        "3. Stop the clients of pay, then create it again, with its 1 partition:",
        "     kafka-topics.sh --bootstrap-server h1:9092 --create --topic pay \\",
        "       --replica-assignment 1 --config retention.ms=-1 \\",
        "       --config retention.bytes=-1",
        "4. Once it has made its replicas, stop broker 1: systemctl stop kafka",
        "5. Look at the plan:",
        f"     {adopt} \\",
        "       --server-properties server.properties",
        "   Adopt:",
        f"     {adopt} \\",
        "       --server-properties server.properties --apply",
        "6. Start broker 1: systemctl start kafka",
        "   This must print the log ends pay:0:100:",
        "     kafka-get-offsets.sh --bootstrap-server h1:9092 --topic pay",
        "   This must print the log starts pay:0:0:",
        "     kafka-get-offsets.sh --bootstrap-server h1:9092 --topic pay --time -2",
        "   Then set retention.ms and retention.bytes, which are -1 now, as they were.",
    ]
    place = f"987 B: {short.staged()} -> {short.disks[0]}/pay-0"
    assert " ".join(" ".join(lines[15:-6]).split()) == place  # broken only where a path is longer than a line
    assert said.out.splitlines()[-1] == "next: logdirctl staged ls --server-properties server.properties"


def test_the_guide_is_data_too_planned_and_applied(short: AdoptRig) -> None:
    status, plan = ctl_json("staged", "restore", "pay", *short.named)
    assert (status, set(plan)) == (Exit.REFUSED, {"applied", "items", "guide"})
    assert {frozenset(one) for one in plan["guide"]} == {frozenset({"step", "text", "command"})}
    assert [one["step"] for one in plan["guide"]] == [1, 2, 3, 4, 5, 5, 5, 6, 6, 6, 6]
    words = f"--server-properties {short.named[1]}"
    typed = [one["command"] for one in plan["guide"] if one["command"] is not None]
    assert typed[4:6] == [f"logdirctl staged adopt {OLD} --as pay {words}{more}" for more in ("", " --apply")]
    (place,) = [one["text"] for one in plan["guide"] if " -> " in one["text"]]
    assert place == f"987 B: {short.staged()} -> {short.disks[0]}/pay-0"
    status, done = ctl_json("staged", "restore", "pay", *short.named, "--apply")
    assert (status, done["applied"]) == (Exit.REFUSED, True)
    assert done["guide"] == plan["guide"]
    assert printed(restore(short, "--apply")) == printed(restore(short))


def test_its_commands_adopt_once_the_topic_is_there_again(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path, partitions=2)
    _, plan = ctl_json("staged", "restore", "pay-1", *rig.named)
    assert f"It is there again (id {NEW}): what it holds is replaced." in plan["guide"][2]["text"]
    for one in plan["guide"]:
        if (one["command"] or "").startswith("logdirctl "):
            said = ctl(*shlex.split(one["command"])[1:])
            assert said.status == Exit.DONE, said
    assert [(rig.adopted(number) / "partition.metadata").is_file() for number in (0, 1)] == [True, True]
    _, plan = ctl_json("staged", "restore", NEW, *rig.named)
    assert plan["guide"] == []  # the staged duplicates are of the topic as it is


def test_a_broker_that_is_no_voter_needs_a_source_and_sees_its_replicas(tmp_path: Path) -> None:
    rig = gone(AdoptRig(tmp_path, node=2, replicas=(1, 2, 3), quorum=TWO_VOTERS))
    said = restore(rig)
    assert said.status == Exit.REFUSED, said
    text = "\n".join(printed(said))
    assert "--replica-assignment 1:2:3" in text
    assert "stop brokers 3, 2, 1 in this order:" in text
    assert "Set QUORUM as docs/undo.md says" in text
    assert f"logdirctl staged adopt {OLD} --as pay \\" in text
    assert "--with /var/tmp/pay.broker-1.json" in text
    assert "--with /var/tmp/pay.broker-3.json" in text
    assert "$QUORUM" in text
    assert "> /var/tmp/pay.broker-2.json" in text


def test_after_the_log_was_emptied_its_other_brokers_are_not_known(tmp_path: Path) -> None:
    rig = gone(AdoptRig(tmp_path, partitions=2, replicas=(1, 2)))
    old = rig.log.segment
    rig.log.roll()
    rig.log.snapshot(register(1), register(2))
    old.unlink()
    rig.log.append(noop())
    said = " ".join(restore(rig).out.split())
    assert "create it again, with at least 2 partitions; its other brokers are not known:" in said


def test_a17_only_a_part_is_exported(tmp_path: Path) -> None:
    rig = gone(AdoptRig(tmp_path))
    staged = rig.staged()
    staged.rename(staged.parent.parent / "incoming" / staged.name)
    said = restore(rig)
    assert said.status == Exit.PROBLEMS
    assert "1. pay-0 cannot be adopted: expected a complete replica, found a partial" in said.out
    assert "2. Copy the files into a directory outside the log dirs:" in said.out
    _, plan = ctl_json("staged", "restore", OLD, *rig.named, "--apply")
    assert (plan["items"], [one["step"] for one in plan["guide"]]) == ([], [1, 2])
    assert "staged restore" not in ctl("staged", "ls", *rig.named).out


def test_a_choice_of_one_copy_is_kept_and_without_one_it_is_asked_for(tmp_path: Path) -> None:
    rig = gone(AdoptRig(tmp_path))
    filled(rig.disks[0] / f"pay-0.{UNIQUE[::-1]}-delete", OLD, 50)
    assert ctl("capture", "pay", *rig.named, "--apply").status == Exit.DONE
    shutil.rmtree(rig.disks[0] / f"pay-0.{UNIQUE[::-1]}-delete")
    assert "choose one with --name and --disk" in " ".join(restore(rig).out.split())
    said = " ".join(restore(rig, "--name", f"{OLD}_0.2").out.replace(" \\\n", " ").split())
    assert f"--name {OLD}_0.2 --apply" in said
    assert "log ends pay:0:50:" in said


def test_several_topics_are_led_through_one_by_one(tmp_path: Path) -> None:
    rig = gone(AdoptRig(tmp_path))
    third = "7f0t7kV0TYqv8m3Jbq4pkA"
    filled(rig.disks[1] / f"old-0.{UNIQUE[::-1]}-delete", third, 50)
    assert ctl("capture", "old", *rig.named, "--apply").status == Exit.DONE
    shutil.rmtree(rig.disks[1] / f"old-0.{UNIQUE[::-1]}-delete")
    _, plan = ctl_json("staged", "restore", "*", *rig.named)
    typed = [one["command"] for one in plan["guide"]]
    assert typed == [f"logdirctl staged restore {one} {' '.join(rig.named)}" for one in (OLD, third)]
    _, plan = ctl_json(*shlex.split(typed[1])[1:])
    assert any("log ends old:0:50" in one["text"] for one in plan["guide"])


def test_the_listing_leads_to_the_guide(tmp_path: Path) -> None:
    rig = gone(AdoptRig(tmp_path))
    line = ctl("staged", "ls", *rig.named).out.splitlines()[-1]
    assert line == f"next: logdirctl staged restore {OLD} {' '.join(rig.named)}"
    assert printed(ctl(*shlex.split(line)[2:]))


def test_what_is_restored_and_what_is_not_there_has_no_guide(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    assert ctl("stage", "pay-0", *rig.named, "--even-if-last", "--even-over-limit", "--apply").status == Exit.DONE
    status, plan = ctl_json("staged", "restore", NEW, *rig.named)
    assert (status, plan["guide"]) == (Exit.DONE, [])
    status, plan = ctl_json("staged", "restore", "nope", *rig.named)
    assert (status, set(plan)) == (Exit.PROBLEMS, {"applied", "items"})
