"""``logdirctl strays`` on real directories: what is not claimed, how far that is proven, and that nothing changes."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from logdir.errors import Problem
from logdir.refusal_slug import Why
from logdir.service.log_dirs.ports import connected
from logdir.service.log_dirs.request import BrokerRequest
from tests import trees
from tests.builders import CLUSTER, partition
from tests.logdir.cluster.log_dir import LogDir, noop, register, remove, topic
from tests.logdir.cluster.log_dir import partition as claimed
from tests.reconcile.universe import document, listed
from tests.tools.ctl import Said, ctl, ctl_json, ctl_without_rights, held, tree
from tests.tools.reconcile_rig import GONE, OTHER, PAY, Rig, age, raw
from tests.whole_refusal import require_whole
from tools.cli.arguments import Exit

KEYS = [
    "age_ms", "assignment", "evidence", "kind", "log_bytes", "log_dir", "partition", "path", "problem", "reason",
    "rule", "state", "tiered", "topic", "topic_id", "undo_until_ms",
]  # fmt: skip
SOURCE_KEYS = ["as_of_ms", "certainty", "cluster_id", "end_offset", "epoch", "from", "kind", "origin"]
UNIQUE = "620e1db281fd429bb71e0c5e2c72578c"
DASH = "-AAAAAAAAAAAAAAAAAAAAQ"
FULL, INCREMENTAL = 2, 1
KRAFT = [name for name in trees.NAMES if "kraft" in name or "dynamic" in name or "kill9" in name]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture
def removed(rig: Rig) -> Rig:
    """A broker whose own log holds the removal of ``gone`` before its newest snapshot."""
    log = rig.log()
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    return rig


def strays(rig: Rig, *more: object) -> tuple[int, list[dict[str, Any]]]:
    status, result = ctl_json("strays", *rig.named, *more)
    for stray in result.get("items", ()):
        assert sorted(stray) == KEYS
        is_proof = stray["evidence"]["kind"] == "removed"
        assert is_proof == (stray["state"] in ("proven", "refused"))
        assert (stray["evidence"]["proof"] is not None) == is_proof
    return status, result.get("items", [])


def states(found: list[dict[str, Any]]) -> dict[str, str]:
    return {stray["path"]: stray["state"] for stray in found}


def named_of(name: str, folder: Path) -> tuple[tuple[str, str], list[Path]]:
    shutil.copytree(trees.unpack(name), folder, symlinks=True)
    disks = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    return ("--log-dirs", ",".join(map(str, disks))), disks


def test_what_was_removed_is_proven_and_nothing_changes(removed: Rig) -> None:
    before = tree(removed.folder)
    status, result = ctl_json("strays", *removed.named)
    assert status == Exit.DONE
    assert sorted(result["source"]) == SOURCE_KEYS
    assert (result["source"]["from"], result["source"]["end_offset"]) == ("metadata:", 21)
    status, found = strays(removed)
    assert [(one["path"], one["state"], one["assignment"], one["reason"]) for one in found] == [
        ("gone-0", "proven", "removed", "topic-removed"),
        ("gone-1", "proven", "removed", "topic-removed"),
    ]
    first = found[0]
    assert (first["topic"], first["topic_id"], first["partition"]) == ("gone", GONE, 0)
    assert (first["log_bytes"], first["problem"]) == (10, None)
    assert first["evidence"]["proof"] == "metadata-log"
    assert first["rule"].startswith("KIP-631")
    assert first["age_ms"] > 1e11
    assert first["undo_until_ms"] > 0
    assert tree(removed.folder) == before


def test_the_table_says_what_why_how_sure_and_what_next(removed: Rig) -> None:
    said = ctl("strays", *removed.named)
    lines = said.out.splitlines()
    assert lines[0].startswith("the cluster's word: metadata-log ")
    assert f", cluster {CLUSTER}, epoch 1, offset 21 (" in lines[0]
    assert lines[1].split() == [
        "state", "topic", "p", "id", "kind", "bytes", "age", "assignment", "reason", "proof", "missing", "disk", "path"
    ]  # fmt: skip
    assert lines[2].split()[:7] == ["proven", "gone", "0", GONE, "live", "10", "B"]
    assert "removed     topic-removed  metadata-log" in lines[2]
    assert lines[4] == "2 directories, 20 B: 2 proven"
    assert lines[5] == f"next: logdirctl reconcile {' '.join(removed.named)} --from metadata:"
    assert ctl(*lines[5].split()[2:]).status == Exit.DONE
    assert said.err == ""


def test_a_selector_narrows_it(removed: Rig) -> None:
    for selector in ("gone-1", f"{GONE}_1", "g*-1"):
        assert states(strays(removed, selector)[1]) == {"gone-1": "proven"}
    assert len(strays(removed, "*")[1]) == 2
    status, found = strays(removed, "pay")
    assert (status, found) == (Exit.PROBLEMS, [])


def test_a01_what_is_merely_not_named_has_no_proof(rig: Rig) -> None:
    rig.snapshot(rig.log())  # ``gone`` is in the log before it, and then it is not: that is a removal seen
    other = LogDir(rig.folder / "copy" / "__cluster_metadata-0")
    other.lead(1)
    other.append(register(1, fenced=True), topic("pay", raw(PAY)), claimed(raw(PAY), 0, (1, 2)))
    shutil.copy(rig.disks[0] / "meta.properties", rig.folder / "copy")
    snapshot = other.snapshot(register(1, fenced=True), topic("pay", raw(PAY)), claimed(raw(PAY), 0, (1, 2)))
    assert snapshot.exists()
    status, found = strays(rig, "--from", f"metadata:{rig.folder}/copy")
    assert status == Exit.DONE
    assert set(states(found).values()) == {"unproven"}
    assert states(found).keys() == {"gone-0", "gone-1", *(f"pay-{number}" for number in range(1, 12))}
    assert {one["evidence"]["kind"] for one in found} == {"absent"}
    assert found[0]["problem"]["expected"] == "proof that it was removed"
    said = ctl("strays", *rig.named, "--from", f"metadata:{rig.folder}/copy")
    assert "no proof" in said.out
    assert "proven" not in said.out.replace("unproven", "")
    assert said.out.splitlines()[-1] == f"next: logdirctl inventory {' '.join(rig.named)}"


def test_a02_what_is_not_committed_proves_nothing(rig: Rig) -> None:
    log = rig.log()
    log.append(noop())
    log.snapshot(
        register(1),
        topic("pay", raw(PAY)),
        *(claimed(raw(PAY), number, (1, 2)) for number in range(12)),
        topic("gone", raw(GONE)),
        *(claimed(raw(GONE), number, (1, 2)) for number in range(2)),
    )
    end = log.append(remove(raw(GONE)), noop())
    assert strays(rig) == (Exit.DONE, [])
    told = ("--high-watermark", end, "--leader-epoch", 1)
    assert states(strays(rig, *told)[1]) == {"gone-0": "proven", "gone-1": "proven"}
    said = ctl("strays", *rig.named, *told)
    assert said.out.splitlines()[-1].endswith(f"--from metadata: --high-watermark {end} --leader-epoch 1")


@pytest.mark.parametrize("damage", ["gone", "torn", "no-root"])
def test_a20_without_a_position_nothing_is_proven(removed: Rig, damage: str) -> None:
    for disk in removed.disks:
        path = Path(f"{disk}.logdird") / "controller.json"
        if damage == "gone":
            path.unlink()
        elif damage == "torn":
            path.write_bytes(path.read_bytes()[:-5])
        else:
            shutil.rmtree(f"{disk}.logdird")
    status, found = strays(removed)
    assert (status, states(found)) == (Exit.PROBLEMS, {"gone-0": "unproven", "gone-1": "unproven"})
    assert {one["reason"] for one in found} == {None}
    assert "controller.json" in found[0]["problem"]["path"]
    assert "no proof" in ctl("strays", *removed.named).out


def test_a27_a_disk_that_cannot_be_read_is_named_and_nothing_is_said_of_it(removed: Rig) -> None:
    removed.disks[1].rename(removed.folder / "away")
    status, found = strays(removed)
    assert (status, states(found)) == (Exit.PROBLEMS, {"gone-0": "unproven"})
    said = ctl("strays", *removed.named)
    assert f"log-dir-offline: {removed.disks[1]}" in said.err


@pytest.mark.parametrize(
    ("by", "away"),
    [("log-dirs", "d1"), ("server-properties", "d1"), ("server-properties", "d1/__cluster_metadata-0")],
)
def test_no_directory_is_kept_back_because_the_metadata_log_cannot_be_read(removed: Rig, away: str, by: str) -> None:
    partition(removed.disks[1] / "old-0.0123456789abcdef0123456789abcdef-delete", topic_id=OTHER)
    named = removed.named
    if by == "server-properties":
        path = removed.folder / "server.properties"
        path.write_text(f"process.roles=broker\nnode.id=1\nlog.dirs={named[1]}\nmetadata.log.dir={removed.disks[0]}\n")
        named = ("--server-properties", str(path))
    (removed.folder / away).rename(removed.folder / "away")
    before = tree(removed.folder)
    status, result = ctl_json("strays", *named)
    assert (status, result["source"]) == (Exit.PROBLEMS, None)
    on_second = {path.name for path in removed.disks[1].iterdir() if path.is_dir()}
    assert {one["path"] for one in result["items"] if one["log_dir"] == str(removed.disks[1])} == on_second
    assert {one["state"] for one in result["items"] if one["kind"] == "live"} == {"unknown"}
    assert {one["state"] for one in result["items"] if one["kind"] == "delete"} == {"leaving"}
    assert {one["evidence"]["proof"] for one in result["items"]} == {None}
    said = ctl("strays", "gone-1", *named)
    assert said.status == Exit.PROBLEMS
    slugs = [line.split(": ")[1] for line in said.err.splitlines()]
    # The log dir that is away is named; the option that nobody typed is not at fault.
    assert slugs == ["log-dir-offline"] * (away == "d1") + ["metadata-log-unread"]
    assert str(removed.disks[0]) in said.err
    assert " --from: " not in said.err
    assert "--from metadata:DIR" in said.err
    assert said.out.splitlines()[-1].startswith("next: logdirctl inventory ")
    assert tree(removed.folder) == before
    # A source that is named, and is not there, stays a fault of the command line.
    missing = ctl("strays", *named, "--from", f"metadata:{removed.folder}/none")
    assert (missing.status, missing.err.count("\n"), " --from: " in missing.err) == (Exit.USAGE, 1, True)
    told = ctl("describe", *named)
    assert (told.status, "metadata-log-unread: " in told.err, " --from: " in told.err) == (
        Exit.PROBLEMS,
        by != "log-dirs",
        False,
    )


def test_no_broker_is_wrong_usage_because_no_log_dir_of_it_can_be_read(removed: Rig) -> None:
    for disk in removed.disks:
        disk.rename(disk.with_name(f"{disk.name}-away"))
    said = ctl("strays", *removed.named)
    assert said.status == Exit.PROBLEMS
    for disk in removed.disks:
        assert sum(f"log-dir-offline: {disk}: " in line for line in said.err.splitlines()) == 1


def test_no_lock_that_may_not_be_read_is_wrong_usage_while_another_can_be() -> None:
    with tempfile.TemporaryDirectory(prefix="logdird-rights-") as home:
        Path(home).chmod(0o755)
        rig = Rig(Path(home)).with_removal()
        for disk in rig.disks:
            (disk / ".lock").touch()
        os.chown(rig.disks[1], 65534, 65534)
        rig.disks[1].chmod(0o700)
        said = ctl_without_rights("strays", *rig.named)
        assert (said.status, "gone-0" in said.out) == (Exit.PROBLEMS, True), said.err
        assert f"no-permission: {rig.disks[1]}: " in said.err
        assert "config-error" not in said.err
        with held(rig.disks[0] / ".lock"):
            request = BrokerRequest(log_dirs=",".join(map(str, rig.disks)))
            with connected(request) as ports:
                assert ports.is_running()


def test_a_staged_copy_is_not_called_the_only_one_while_a_log_dir_is_unread(rig: Rig) -> None:
    log = rig.log()
    rig.snapshot(log)
    renamed = rig.disks[0] / "pay-1.0123456789abcdef0123456789abcdef-delete"
    partition(renamed, topic_id=PAY)
    assert strays(rig, "pay-1")[1][0]["state"] == "leaving"
    rig.disks[1].rename(rig.folder / "away")
    status, found = strays(rig, "pay-1")
    assert (status, [one["state"] for one in found]) == (Exit.PROBLEMS, ["wanted"])
    assert str(rig.disks[1]) in found[0]["problem"]["found"]
    assert str(rig.disks[1]) in found[0]["problem"]["fix"]
    (rig.folder / "away").rename(rig.disks[1])
    shutil.rmtree(rig.disks[1] / "pay-1")
    assert str(rig.disks[1]) not in str(strays(rig, "pay-1")[1][0]["problem"])


def test_a_log_dir_without_meta_properties_is_not_taken_for_another_hosts(removed: Rig) -> None:
    (removed.disks[1] / "meta.properties").unlink()
    said = ctl("strays", *removed.named)
    assert said.status == Exit.PROBLEMS
    (line,) = [line for line in said.err.splitlines() if str(removed.disks[1]) in line]
    assert line.startswith(f"logdirctl strays: not-formatted: {removed.disks[1]}/meta.properties: ")
    assert "kafka-storage format" in line
    assert "another host" not in line
    assert "None" not in line
    (removed.disks[1] / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\n")
    (line,) = [line for line in ctl("strays", *removed.named).err.splitlines() if str(removed.disks[1]) in line]
    assert line.startswith(f"logdirctl strays: log-dir-offline: {removed.disks[1]}/meta.properties: ")


def test_a29_another_brokers_word_is_refused(removed: Rig) -> None:
    for file in ("d1", "d2"):
        path = removed.folder / file / "meta.properties"
        path.write_text(path.read_text().replace("node.id=1", "node.id=7"))
        (removed.folder / f"{file}.logdird").rename(removed.folder / f"{file}.old")
    said = ctl("strays", *removed.named)
    assert (said.status, said.out) == (Exit.REFUSED, "")
    # What it is comes first, and then why it is refused.
    word, why = said.err.splitlines()
    origin = f"{removed.disks[0]}/__cluster_metadata-0"
    assert word.startswith(f"logdirctl strays: the cluster's word: metadata-log {origin}, cluster {CLUSTER}, epoch 1")
    assert "node 7" in why
    assert ctl_json("strays", *removed.named) == (Exit.REFUSED, {})


def test_a_request_that_is_refused_is_named_first(rig: Rig) -> None:
    states_of_others = listed(pay=(PAY, (0,)))
    states_of_others[0]["partitionStates"][0] |= {"replicas": [2, 3], "isr": [2, 3]}
    source = rig.document(document(states_of_others, sequence=1, type=FULL))
    said = ctl("strays", *rig.named, "--from", source, "--json")
    assert said.status == Exit.REFUSED
    word, why = said.err.splitlines()
    assert word.startswith(
        f"logdirctl strays: the cluster's word: {source.replace('request:', 'requests ')}, cluster {CLUSTER}, "
    )
    assert "request-for-another-broker: " in why


def test_it_works_beside_a_running_broker_and_takes_no_lock(removed: Rig) -> None:
    for disk in removed.disks:
        (disk / ".lock").touch()
    with held(removed.disks[0] / ".lock"):
        before = tree(removed.folder)
        status, found = strays(removed)
        assert tree(removed.folder) == before
    assert (status, states(found)) == (Exit.DONE, {"gone-0": "proven", "gone-1": "proven"})


def test_a29_an_old_word_beside_a_running_broker_proves_nothing(rig: Rig) -> None:
    log = LogDir(rig.disks[0] / "__cluster_metadata-0")
    log.time_ms = 1_700_000_000_000
    log.lead(1)
    log.append(register(1), topic("gone", raw(GONE)), claimed(raw(GONE), 0, (1, 2)), claimed(raw(GONE), 1, (1, 2)))
    log.append(remove(raw(GONE)), topic("pay", raw(PAY)), *(claimed(raw(PAY), n, (1, 2)) for n in range(12)))
    rig.snapshot(log)
    assert states(strays(rig)[1]) == {"gone-0": "proven", "gone-1": "proven"}
    (rig.disks[0] / ".lock").touch()
    with held(rig.disks[0] / ".lock"):
        status, found = strays(rig)
    assert (status, states(found)) == (Exit.PROBLEMS, {"gone-0": "unproven", "gone-1": "unproven"})
    problem = Problem(**found[0]["problem"])
    age_ms = int(problem.found.removesuffix(" ms"))
    assert age_ms > 10 * 60 * 1000
    require_whole(
        problem,
        Why.METADATA_TOO_OLD,
        path=f"{rig.disks[0]}/__cluster_metadata-0",
        expected="an image at most 600000 ms old (reconcile.max.metadata.age)",
        found=f"{age_ms} ms",
        fix="see whether the broker still follows the metadata log",
    )


def test_a_full_request_proves_and_an_incremental_one_does_not(rig: Rig) -> None:
    pay = listed(pay=(PAY, tuple(range(12))))
    full = rig.document(document(pay, sequence=1, type=FULL))
    found = strays(rig, "--from", full)[1]
    assert states(found) == {"gone-0": "proven", "gone-1": "proven"}
    assert {one["evidence"]["proof"] for one in found} == {"full-request"}
    assert {one["reason"] for one in found} == {"absent"}


def test_an_incremental_request_says_nothing_of_what_it_does_not_list(rig: Rig) -> None:
    pay = listed(pay=(PAY, (0, 1)))
    source = rig.document(document(pay, sequence=2, type=INCREMENTAL))
    status, found = strays(rig, "--from", source)
    assert status == Exit.DONE
    assert set(states(found).values()) == {"unknown"}
    assert len(found) == 12
    assert {(one["evidence"]["kind"], one["assignment"]) for one in found} == {("unknown", "unspoken")}


def test_garbage_is_one_line(rig: Rig) -> None:
    before = tree(*rig.disks)
    bad = rig.folder / "bad.json"
    for data in (b"", b"{", b"[]", b'{"document":1}', os.urandom(50)):
        bad.write_bytes(data)
        said = ctl("strays", *rig.named, "--from", f"request:{bad}")
        assert (said.status, said.out, said.err.count("\n")) == (Exit.PROBLEMS, "", 1)
    for source in ("nonsense", "request:", "cluster:", f"request:{rig.folder}/none", "metadata:/nowhere"):
        said = ctl("strays", *rig.named, "--from", source)
        assert (said.status, said.out, said.err.count("\n")) == (Exit.USAGE, "", 1), source
    said = ctl("strays", *rig.named)  # no metadata log of its own
    assert (said.status, "metadata:DIR" in said.err) == (Exit.USAGE, True)
    assert ctl("strays", "a b", *rig.named).status == Exit.USAGE
    assert ctl("strays").status == Exit.USAGE
    assert tree(*rig.disks) == before


def test_a_damaged_snapshot_gives_no_image(removed: Rig) -> None:
    (path,) = (removed.disks[0] / "__cluster_metadata-0").glob("*.checkpoint")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    said = ctl("strays", *removed.named)
    assert (said.status, said.out, said.err.count("\n")) == (Exit.PROBLEMS, "", 1)
    assert "corrupt-batch" in said.err


def test_protected_and_internal_topics_are_refused(rig: Rig) -> None:
    partition(rig.disks[0] / "__consumer_offsets-3", topic_id=OTHER)
    age(*rig.disks)
    log = rig.log()
    log.append(topic("__consumer_offsets", raw(OTHER)), claimed(raw(OTHER), 3, (1, 2)))
    log.append(remove(raw(OTHER)), remove(raw(GONE)))
    rig.snapshot(log)
    found = strays(rig)[1]
    assert states(found) == {"__consumer_offsets-3": "refused", "gone-0": "proven", "gone-1": "proven"}
    assert found[0]["problem"]["expected"] == "a topic that is not protected"
    found = strays(rig, "--protect", "go*", "--internal")[1]
    assert states(found) == {"__consumer_offsets-3": "proven", "gone-0": "refused", "gone-1": "refused"}
    said = ctl("strays", *rig.named, "--protect", "x y*", "--internal")
    assert said.out.splitlines()[-1].endswith(" --from metadata: --protect 'x y*' --internal")


def test_what_brokers_renamed_is_judged_by_its_id(removed: Rig) -> None:
    one, two = removed.disks
    partition(one / f"gone-5.{UNIQUE}-stray", topic_id=GONE)
    partition(one / f"gone-6.{UNIQUE}-delete", topic_id=GONE)
    partition(one / f"gone-7.{UNIQUE}-future", topic_id=GONE)
    partition(two / f"pay-3.{UNIQUE}-stray", topic_id=PAY)  # and pay-3 is live
    partition(two / f"pay-5.{UNIQUE}-future", topic_id=PAY)
    shutil.move(two / "pay-7", two / f"pay-7.{UNIQUE}-stray")
    age(*removed.disks)
    status, found = strays(removed)
    assert status == Exit.PROBLEMS
    assert states(found) == {
        "gone-0": "proven",
        "gone-1": "proven",
        f"gone-5.{UNIQUE}-stray": "proven",
        f"gone-6.{UNIQUE}-delete": "leaving",
        f"gone-7.{UNIQUE}-future": "unproven",
        f"pay-3.{UNIQUE}-stray": "unproven",
        f"pay-7.{UNIQUE}-stray": "wanted",
    }
    said = ctl("strays", "pay", *removed.named)
    following = f"describe id:{PAY}_7 {' '.join(removed.named)} --from metadata:"
    assert said.out.splitlines()[-1] == f"next: logdirctl {following}"
    assert ctl(*following.split()).status == Exit.PROBLEMS
    assert "keep the broker stopped" in said.err


def test_an_id_that_looks_like_a_flag_can_be_typed(rig: Rig) -> None:
    partition(rig.disks[0] / f"dash-0.{UNIQUE}-stray", topic_id=DASH)
    age(*rig.disks)
    log = rig.log(rig.folder / "copy")
    shutil.copy(rig.disks[0] / "meta.properties", rig.folder / "copy")
    end = log.append(register(1, fenced=True), topic("dash", raw(DASH)), claimed(raw(DASH), 0, (1, 2)))
    told = ("--from", f"metadata:{rig.folder}/copy", "--high-watermark", end, "--leader-epoch", 1)
    _, name, *following = ctl("strays", "dash", *rig.named, *told).out.splitlines()[-1].split()
    assert [name, *following] == ["logdirctl", "describe", f"id:{DASH}_0", *rig.named, *map(str, told)]
    said = ctl(*following)
    assert (said.status, f"dash-0.{UNIQUE}-stray" in said.out) == (Exit.PROBLEMS, True)


def test_what_was_staged_is_no_stray_any_more(removed: Rig) -> None:
    assert removed.reconcile("metadata:", "--apply").status == Exit.DONE
    assert strays(removed) == (Exit.DONE, [])
    assert "nothing is unclaimed" in ctl("strays", *removed.named).out


def test_a33_a_tiered_replica_says_so(rig: Rig) -> None:
    log = rig.log()
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    path = rig.disks[0] / "gone-0"
    (path / f"{0:020}.log").rename(path / f"{700:020}.log")
    (rig.disks[0] / "log-start-offset-checkpoint").write_text("0\n1\ngone 0 5\n")
    found = strays(rig)[1]
    assert {one["path"]: one["tiered"] for one in found} == {"gone-0": True, "gone-1": False}
    assert "live, tiered" in ctl("strays", *rig.named).out


def test_what_steers_a_terminal_is_escaped(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "a\x1b[31mb\nc")
    log = rig.log()
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    partition(rig.disks[0] / "x\x1b[2Jy-0", topic_id=OTHER)  # no legal name: unknown, and never listed
    said = ctl("strays", *rig.named)
    assert said.status == Exit.DONE
    assert "\x1b" not in said.out + said.err
    assert "x\\x1b" not in said.out
    assert len(said.out.splitlines()) == 6
    said = ctl("strays", *rig.named[:1], f"{rig.named[1]},{tmp_path}/no\x1bwhere")
    assert "\x1b" not in said.out + said.err


def test_links_and_what_cannot_be_read_are_told_and_have_no_proof(removed: Rig) -> None:
    one = removed.disks[0]
    (one / "gone-0").rename(removed.folder / "elsewhere")
    (one / "gone-0").symlink_to(removed.folder / "elsewhere")
    partition(one / "gone-4", topic_id=GONE)
    (one / "gone-4" / "partition.metadata").write_text("version: 0\ntopic_id: ?")
    age(*removed.disks)
    found = strays(removed)[1]
    assert states(found) == {"gone-0": "unproven", "gone-1": "proven", "gone-4": "unproven"}


@pytest.mark.parametrize("name", KRAFT)
def test_on_real_trees_only_what_brokers_delete_is_left(name: str, tmp_path: Path) -> None:
    named, disks = named_of(name, tmp_path / "t")
    before = tree(*disks)
    status, result = ctl_json("strays", *named)
    leaving = sorted(path.name for disk in disks for path in disk.glob("*-delete"))
    assert status == Exit.DONE
    assert sorted(one["path"] for one in result["items"]) == leaving
    assert {one["state"] for one in result["items"]} <= {"leaving"}
    assert tree(*disks) == before


@pytest.mark.parametrize("name", [name for name in trees.NAMES if name.endswith(("-zk", "-migration"))])
def test_on_real_trees_without_a_word_it_says_what_is_needed(name: str, tmp_path: Path) -> None:
    named, disks = named_of(name, tmp_path / "t")
    said: Said = ctl("strays", *named)
    # Of the migration's log nothing is known to be committed yet.
    is_young = "migration" in name
    assert (said.status, bool(said.out), said.err.count("\n")) == (Exit.DONE if is_young else Exit.USAGE, is_young, 1)
    assert ("--high-watermark" in said.err) == is_young
    # What a ZooKeeper cluster says proves no removal, whatever it leaves out.
    live = {path.name for disk in disks for path in disk.glob("*-[0-9]")} - {"__cluster_metadata-0"}
    znodes = tmp_path / "znodes.json"
    znodes.write_text(json.dumps({"/brokers/topics/plain": {"version": 2, "partitions": {"0": [1], "1": [1]}}}))
    status, result = ctl_json("strays", *named, "--from", f"znodes:{znodes}")
    assert status == Exit.DONE
    found = {one["path"]: one for one in result["items"] if one["kind"] == "live"}
    assert found.keys() == live - {"plain-0", "plain-1"}
    assert {one["state"] for one in found.values()} == {"unproven"}
    assert {one["evidence"]["proof"] for one in result["items"]} == {None}


def test_a_real_trees_deleted_topic_put_back_is_proven(tmp_path: Path) -> None:
    """The directories of a topic that real brokers deleted, as a disk that was away brings them back."""
    named, disks = named_of("4.3.1-kraft", tmp_path / "t")
    for disk in disks:
        for path in disk.glob("to-delete-*-delete"):
            path.rename(disk / path.name.split(".")[0])
    age(*disks)
    assert ctl("init", *named, "--apply").status == Exit.DONE
    status, result = ctl_json("strays", "to-delete", *named)
    assert status == Exit.DONE
    assert [(one["path"], one["state"], one["reason"]) for one in result["items"]] == [
        ("to-delete-0", "proven", "topic-removed"),
        ("to-delete-1", "proven", "topic-removed"),
    ]


# What is not known to be committed.


def _young(rig: Rig) -> LogDir:
    """Give the broker a log of a three node quorum without any snapshot, in which ``gone`` is removed."""
    log = rig.log()
    log.append(remove(raw(GONE)), noop())
    return log


def test_a_broker_without_a_snapshot_is_not_left_without_an_answer(rig: Rig) -> None:
    log = _young(rig)
    partition(rig.disks[0] / "never-0", topic_id=OTHER)
    age(*rig.disks)
    status, found = strays(rig)
    assert status == Exit.DONE
    assert states(found) == {"gone-0": "unproven", "gone-1": "unproven", "never-0": "unproven"}
    assert {one["assignment"] for one in found} == {"removed", "unlisted"}
    missing = {one["path"]: one["problem"] for one in found}
    assert "proof" in missing.pop("never-0")["expected"]
    assert {one["slug"] for one in missing.values()} == {"not-committed"}
    assert all("--high-watermark" in one["fix"] for one in missing.values())
    said = ctl("strays", *rig.named)
    (line,) = [line for line in said.err.splitlines() if "not-committed" in line]
    assert "--high-watermark and --leader-epoch" in line
    assert f"offset {log.offset}" in line
    assert "no proof" in said.out
    source = ctl_json("strays", *rig.named)[1]["source"]
    assert (source["certainty"], source["end_offset"]) == ("local", log.offset)
    told = ("--high-watermark", log.offset, "--leader-epoch", 1)
    assert states(strays(rig, *told)[1])["gone-0"] == "proven"


def test_what_a_young_log_wants_is_not_told_as_lost_for_good(rig: Rig) -> None:
    _young(rig)
    two = rig.disks[1]
    shutil.move(two / "pay-7", two / f"pay-7.{UNIQUE}-stray")
    shutil.move(two / "pay-5", two / f"pay-5.{UNIQUE}-delete")
    age(*rig.disks)
    status, found = strays(rig, "pay")
    assert (status, states(found)) == (
        Exit.DONE,
        {f"pay-7.{UNIQUE}-stray": "unproven", f"pay-5.{UNIQUE}-delete": "leaving"},
    )


@pytest.mark.parametrize(("form", "state"), [("delete", "leaving"), ("stray", "unproven")])
def test_a_topic_deleted_since_an_older_snapshot_is_not_told_as_wanted(rig: Rig, form: str, state: str) -> None:
    log = rig.log()
    end = log.append(noop())
    log.snapshot(
        register(1),
        topic("pay", raw(PAY)),
        *(claimed(raw(PAY), number, (1, 2)) for number in range(12)),
        topic("gone", raw(GONE)),
        *(claimed(raw(GONE), number, (1, 2)) for number in range(2)),
    )
    at = log.offset
    log.append(remove(raw(GONE)), noop())
    for number, disk in enumerate(rig.disks):
        shutil.move(disk / f"gone-{number}", disk / f"gone-{number}.{UNIQUE}-{form}")
    age(*rig.disks)
    status, found = strays(rig)
    assert (status, {one["state"] for one in found}, len(found)) == (Exit.DONE, {state}, 2)
    for one in found:
        assert one["assignment"] == "removed"
        assert f"not known since offset {at}" in one["problem"]["found"]
        assert "--high-watermark" in one["problem"]["fix"]
    said = ctl("strays", *rig.named)
    assert f"not known since offset {at}" in said.out
    assert "wanted;" not in said.out
    assert end <= at


def test_what_is_wanted_to_the_end_of_the_log_is_still_shouted(rig: Rig) -> None:
    log = rig.log()
    rig.snapshot(log, topic("gone", raw(GONE)), *(claimed(raw(GONE), number, (1, 2)) for number in range(2)))
    log.append(noop())
    one = rig.disks[0]
    shutil.move(one / "gone-0", one / f"gone-0.{UNIQUE}-stray")
    age(*rig.disks)
    status, found = strays(rig)
    assert (status, states(found)) == (Exit.PROBLEMS, {f"gone-0.{UNIQUE}-stray": "wanted"})
