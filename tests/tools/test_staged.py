"""``logdirctl stage`` and ``staged ls | restore | purge | hold`` on real directories."""

from __future__ import annotations

import errno
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdir import clock
from logdir.decide.staged.deadline import DEFAULT_DELAY_MS
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.replica import staging
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import ReadOnlyDiskError
from logdir.evidence import Proof, Removed
from logdir.formats.own import heartbeat_file, own_json, replica_marker
from logdir.formats.own.replica_marker import Intent
from logdir.reasons import Reason
from tests import trees
from tests.builders import TOPIC_ID, partition
from tests.tools.cluster_log import elsewhere
from tests.tools.ctl import ctl, ctl_json, ctl_without_rights, held, tree, two_disks
from tests.tools.test_narrow import Terminal
from tools.cli.arguments import Exit
from tools.logdirctl.main import main

HOURS_26_MS = 26 * 60 * 60 * 1000
LS_KEYS = [
    "assigned", "delay_ms", "detail", "evidence", "log_bytes", "log_dir", "log_end", "partition", "path", "problem",
    "reason", "removal", "restore",
    "staged_at_ms", "state", "tiered", "topic", "topic_id", "undo_until_ms",
]  # fmt: skip
ITEM_KEYS = [
    "detail", "log_dir", "new_path", "partition", "path", "problem", "state", "topic", "topic_id", "undo_until_ms",
]  # fmt: skip
Named = tuple[str, str]


@pytest.fixture
def named(tmp_path: Path) -> Named:
    """Two log dirs with work roots, named for a command."""
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    elsewhere(tmp_path)
    return named


def states(result: dict[str, Any]) -> list[str]:
    for item in result["items"]:
        assert sorted(item) == ITEM_KEYS
    return [item["state"] for item in result["items"]]


def names(tmp_path: Path, disk: str = "d1") -> list[str]:
    return sorted(os.listdir(tmp_path / f"{disk}.logdird" / "deleting"))


@pytest.mark.parametrize("name", ["4.3.1-kraft", "2.8.2-zk", "3.3.2-kraft", "4.3.1-kill9"])
def test_there_and_back_gives_the_same_bytes_on_real_trees(name: str, tmp_path: Path) -> None:
    shutil.copytree(trees.unpack(name), tmp_path / "t", symlinks=True)
    disks = [path for path in sorted((tmp_path / "t").iterdir()) if path.is_dir()]
    named = ("--log-dirs", ",".join(map(str, disks)))
    before = tree(*disks)
    assert ctl("init", *named, "--apply").status == Exit.DONE
    status, result = ctl_json(
        "stage", "*", "--internal", "--even-if-last", "--even-if-unknown", *named, "--apply", "--even-over-limit"
    )
    done = states(result).count("done")
    assert done > 3
    # The metadata log, and what is on its way elsewhere, is refused by name.
    assert status == (Exit.DONE if name.endswith("zk") else Exit.PROBLEMS)
    status, listed = ctl_json("staged", "ls", *named)
    assert (status, len(listed["items"])) == (Exit.DONE, done)
    assert tree(*disks) != before
    status, result = ctl_json("staged", "restore", "*", "--even-if-unknown", *named, "--apply")
    assert (status, states(result).count("done")) == (Exit.DONE, done)
    after = tree(*disks)
    if name == "4.3.1-kill9":  # not cleanly closed: a broker makes the index files of last segments again
        gone = before.keys() - after.keys()
        assert all(path.endswith(("index",)) for path in gone)
        before = {path: told for path, told in before.items() if path not in gone}
    assert after == before
    assert ctl("uninstall", *named, "--apply").status == Exit.DONE
    assert tree(*disks) == after


@pytest.mark.parametrize("lost", ["root", "disk", "root-rights", "disk-rights"])
def test_no_listing_says_that_nothing_is_staged_while_a_log_dir_or_its_work_root_is_unread(
    lost: str, tmp_path: Path
) -> None:
    two = two_disks(tmp_path)[1]
    named = ("--log-dirs", f"{tmp_path}/d1,{two}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert ctl("stage", "pay-1", "--even-if-unknown", "--even-over-limit", *named, "--apply").status == Exit.DONE
    place = Path(f"{two}.logdird") if "root" in lost else two
    if "rights" in lost:
        place.chmod(0o700)
        os.chown(place, 65534, 65534)
    else:
        place.rename(tmp_path / "away")
    # To describe asks for no work root.
    for argv in (("staged", "ls"), ("describe", "pay-1"))[: 1 if lost == "root" else 2]:
        said = ctl_without_rights(*argv, *named)
        assert said.status == Exit.PROBLEMS
        assert said.out.splitlines()[0] not in ("nothing is staged", "nothing is there"), (argv, said)
        assert "can be read" in said.out.splitlines()[0]
        # Who lacks the right to look is told so, and not to look after the disk.
        if "rights" in lost:
            assert f" no-permission: {place}: " in said.err, said.err
            assert "run as the broker's user" in said.err
            assert "is the disk mounted" not in said.err
            assert "disk is mounted" not in said.err
            assert "expected a log dir " not in said.err.replace(f"{two}: expected a log dir ", "")


def test_the_listing_says_what_why_until_when_and_what_next(named: Named, tmp_path: Path) -> None:
    assert "nothing is staged" in ctl("staged", "ls", *named).out
    ctl("stage", "pay", *elsewhere(tmp_path), *named, "--apply")
    status, result = ctl_json("staged", "ls", *named)
    assert status == Exit.DONE
    assert [(item["topic"], item["partition"], item["log_dir"]) for item in result["items"]] == [
        ("pay", 0, f"{tmp_path}/d1"),
        ("pay", 2, f"{tmp_path}/d1"),
        ("pay", 1, f"{tmp_path}/d2"),
    ]
    first = result["items"][0]
    assert sorted(first) == LS_KEYS
    assert (first["topic_id"], first["log_bytes"], first["reason"]) == (TOPIC_ID, 120, "operator")
    assert first["evidence"] == {"kind": "removed", "proof": "operator", "as_of_ms": first["evidence"]["as_of_ms"]}
    assert (first["restore"], first["state"], first["path"]) == ("rename", "counting", f"deleting/{TOPIC_ID}_0")
    assert first["delay_ms"] == DEFAULT_DELAY_MS
    assert first["tiered"] is False
    assert abs(first["undo_until_ms"] - first["staged_at_ms"] - DEFAULT_DELAY_MS) < 2000
    said = ctl("staged", "ls", "pay-2", *named)
    lines = said.out.splitlines()
    assert lines[0].split()[:4] == ["topic", "p", "id", "bytes"]
    assert lines[1].split()[:5] == ["pay", "2", TOPIC_ID, "122", "B"]
    assert lines[1].split()[6:10] == ["s", "operator", "removed", "(operator)"]
    assert "Z  " in lines[1]
    assert lines[2:] == [f"next: logdirctl inventory {' '.join(named)}"]  # a restore of what is not known is refused


def test_the_listing_says_how_long_ago_and_when_that_is_not_known(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ctl("stage", "pay-1", "--even-if-unknown", "--even-over-limit", *named, "--apply").status == Exit.DONE

    def cell(away_ms: int, **changed: Any) -> str:
        now = read_instant()
        now = now._replace(boottime_ms=now.boottime_ms + away_ms, wall_ms=now.wall_ms + away_ms, **changed)
        monkeypatch.setattr("logdir.service.staged_listing.read_instant", lambda: now)
        headings, row, *_ = ctl("staged", "ls", *named).out.splitlines()
        end = headings.index("age") + len("age")
        return re.split("  +", row[:end])[-1]

    assert cell(HOURS_26_MS) == "26 h"
    assert cell(HOURS_26_MS, boot_id="another", is_synchronised=False).startswith("at least ")
    assert cell(-HOURS_26_MS) == "?"
    (file,) = tmp_path.glob("*.logdird/deleting/*/replica.json")
    kept = file.read_bytes()
    marker = replica_marker.parse(kept, str(file))
    # The clocks in the marker of a copied directory may be those of another host.
    file.write_bytes(replica_marker.render(replace(marker, birth_inode=marker.birth_inode + 1)))
    assert cell(HOURS_26_MS) == "?"
    file.write_bytes(kept)
    assert cell(-HOURS_26_MS) == "?"
    monkeypatch.setenv("COLUMNS", "80")
    out, err = Terminal(), Terminal()
    assert main(["staged", "ls", *map(str, named)], out, err) == Exit.DONE
    (line,) = (line for line in out.getvalue().splitlines() if line.startswith("age "))
    assert line.split() == ["age", "?"]
    heartbeat = Path(f"{str(named[1]).split(',')[1]}.logdird/heartbeat.json")
    heartbeat.unlink()
    assert cell(HOURS_26_MS) == "?"


def test_without_apply_nothing_changes(named: Named, tmp_path: Path) -> None:
    flags, source = ("--delay-ms", 0, "--protect", "x*"), elsewhere(tmp_path)
    said = ctl("stage", "pay-1", *source, *named, *flags)
    assert said.out.splitlines()[-1] == (
        f"next: logdirctl stage pay-1 {' '.join(named)} --delay 0ms --protect 'x*' {' '.join(source)} --apply"
    )
    ctl("stage", "other", *elsewhere(tmp_path), *named, "--apply", "--delay-ms", 0)
    before = tree(tmp_path)
    for argv in (
        ("stage", "pay", *elsewhere(tmp_path)),
        ("staged", "restore", "other", "--even-if-unknown"),
        ("staged", "hold", "other"),
        ("staged", "purge"),
        ("uninstall",),
        ("uninstall", "--restore"),
        ("init",),
    ):
        said = ctl(*argv, *named)
        assert said.out.splitlines()[-1].startswith("next: logdirctl ")
        assert tree(tmp_path) == before, argv


def test_a22_a_running_broker_is_named_and_nothing_is_touched(named: Named, tmp_path: Path) -> None:
    ctl("stage", "other", *elsewhere(tmp_path), *named, "--apply", "--delay-ms", 0)
    before = tree(tmp_path)
    with held(tmp_path / "d2" / ".lock") as pid:
        for argv in (("stage", "pay"), ("staged", "restore", "other"), ("uninstall",)):
            said = ctl(*argv, *named, "--apply")
            assert said.status == Exit.BROKER_RUNS
            assert said.err.count("\n") == 1
            assert f"{tmp_path}/d2/.lock" in said.err
            assert f"pid {pid} (python" in said.err
            assert tree(tmp_path) == before, argv
        status, result = ctl_json("staged", "ls", *named)
        assert (status, len(result["items"])) == (Exit.DONE, 1)
        # What no broker sees may be changed beside it.
        assert ctl("staged", "purge", *named, "--apply").status == Exit.DONE
    assert names(tmp_path) == []


def test_a19_another_of_us_is_refused(named: Named, tmp_path: Path) -> None:
    before = tree(tmp_path)
    with held(tmp_path / "d2.logdird" / "owner.lock"):
        for argv in (("stage", "pay"), ("staged", "purge"), ("init",), ("uninstall",)):
            said = ctl(*argv, *named, "--apply")
            assert (said.status, "work-root-owned" in said.err) == (Exit.REFUSED, True), argv
    assert tree(tmp_path) == before


def test_bad_input_of_all_kinds_changes_nothing(named: Named, tmp_path: Path) -> None:
    ctl("stage", "other", *elsewhere(tmp_path), *named, "--apply")
    before = tree(tmp_path)
    for status, *argv in (
        (Exit.USAGE, "stage", "a b", *named),
        (Exit.USAGE, "stage", "", *named),
        (Exit.USAGE, "stage", "pay", *named, "--delay-ms", "14400"),
        (Exit.USAGE, "stage", "pay", *named, "--delay-ms", "-1"),
        (Exit.USAGE, "stage", "pay", *named, "--delay-ms", "4 weeks"),
        (Exit.USAGE, "stage", *named),
        (Exit.USAGE, "stage", "pay"),
        (Exit.USAGE, "stage", "pay", *elsewhere(tmp_path), *named, "--skip-log-dir", tmp_path),
        (Exit.PROBLEMS, "stage", "none", *elsewhere(tmp_path), *named),
        (Exit.PROBLEMS, "stage", "pay-9", *elsewhere(tmp_path), *named),
        (Exit.REFUSED, "stage", "pay", *elsewhere(tmp_path), *named, "--protect", "p*"),
        (Exit.USAGE, "staged", *named),
        (Exit.USAGE, "staged", "restore", *named),
        (Exit.USAGE, "staged", "export", "other", *named),
        (Exit.PROBLEMS, "staged", "restore", "pay", "--even-if-unknown", *named),
        (Exit.PROBLEMS, "staged", "restore", "other", *named, "--name", "elsewhere"),
        (Exit.PROBLEMS, "staged", "hold", "pay", *named),
        (Exit.REFUSED, "staged", "purge", "other", *named),
        (Exit.USAGE, "staged", "purge", *named, "--even-if-early"),
        (Exit.USAGE, "staged", "purge", "*", *named, "--even-if-early"),
        (Exit.USAGE, "staged", "purge", "other", *named, "--include-held"),
        (Exit.USAGE, "staged", "purge", "other", *named, "--bytes-per-second", "-1"),
        (Exit.PROBLEMS, "staged", "purge", "pay", *named, "--even-if-early"),
        (Exit.REFUSED, "stage", "pay", "--log-dirs", f"{tmp_path}/d1,{tmp_path}/d2.logdird"),
    ):
        said = ctl(*argv, "--apply")
        assert said.status == status, (argv, said)
        assert said.err
        changed = {path for path, told in tree(tmp_path).items() if before.get(path) != told}
        # A heartbeat is folded forward before anything is decided.
        assert {os.path.basename(path) for path in changed} <= {"heartbeat.json"}, argv
        assert tree(tmp_path).keys() == before.keys()


def test_a38_the_staging_limit_holds_until_it_is_confirmed(named: Named, tmp_path: Path) -> None:
    live = sorted(os.listdir(tmp_path / "d1"))
    status, result = ctl_json("stage", "*", *elsewhere(tmp_path), *named, "--apply")
    assert (status, set(states(result))) == (Exit.REFUSED, {"waiting"})
    assert sorted({*os.listdir(tmp_path / "d1")} - {".lock"}) == live
    status, result = ctl_json("stage", "*", *elsewhere(tmp_path), *named, "--apply", "--even-over-limit")
    assert (status, states(result)) == (Exit.DONE, ["done"] * 4)


def test_one_topic_may_go_and_internal_ones_only_when_said(named: Named, tmp_path: Path) -> None:
    partition(tmp_path / "d1" / "__consumer_offsets-0", topic_id="AAAAAAAAAAAAAAAAAAAAZQ")
    status, result = ctl_json("stage", "__consumer_offsets", *elsewhere(tmp_path), *named, "--apply")
    assert (status, states(result)) == (Exit.REFUSED, ["refused"])
    status, result = ctl_json("stage", "__consumer_offsets", *elsewhere(tmp_path), *named, "--apply", "--internal")
    assert (status, states(result)) == (Exit.DONE, ["done"])


def test_purge_takes_what_is_due_and_nothing_else(named: Named, tmp_path: Path) -> None:
    ctl("stage", "pay-0", *elsewhere(tmp_path), *named, "--apply", "--delay-ms", 0)
    ctl("stage", "pay-2", *elsewhere(tmp_path), *named, "--apply", "--even-over-limit")
    ctl("stage", "other", *elsewhere(tmp_path), *named, "--apply", "--even-over-limit", "--hold")
    status, result = ctl_json("staged", "purge", *named)
    assert (status, states(result)) == (Exit.DONE, ["planned", "kept", "kept"])
    said = ctl("staged", "purge", *named, "--apply", "--bytes-per-second", 0)
    assert (said.status, "pay-0: 120 bytes, for good" in said.err) == (Exit.DONE, True)
    assert names(tmp_path) == ["MkU3OEVBNTcwNTJENDM2Qg_0", f"{TOPIC_ID}_2"]
    assert ctl("staged", "purge", "pay-2", *named, "--apply").status == Exit.REFUSED
    assert ctl("staged", "purge", "pay-2", *named, "--apply", "--even-if-early").status == Exit.DONE
    assert ctl("staged", "purge", "other", *named, "--apply", "--even-if-early").status == Exit.REFUSED
    assert ctl("staged", "purge", "other", *named, "--apply", "--even-if-early", "--include-held").status == Exit.DONE
    assert names(tmp_path) == []
    assert (tmp_path / "d2" / "pay-1").is_dir()


def test_hold_takes_the_deadline_away(named: Named, tmp_path: Path) -> None:
    ctl("stage", "pay", *elsewhere(tmp_path), *named, "--apply", "--delay-ms", 0)
    status, result = ctl_json("staged", "hold", "pay-2", *named, "--apply")
    assert (status, states(result)) == (Exit.DONE, ["done"])
    assert ctl("staged", "purge", *named, "--apply").status == Exit.DONE
    assert names(tmp_path) == [f"{TOPIC_ID}_2"]
    _, result = ctl_json("staged", "ls", *named)
    assert [(item["state"], item["delay_ms"], item["undo_until_ms"]) for item in result["items"]] == [
        ("held", None, None)
    ]
    assert ctl("staged", "restore", "pay", "--even-if-unknown", *named, "--apply").status == Exit.DONE


def test_a15_a_live_twin_and_a_second_copy_are_refused_and_shown(named: Named, tmp_path: Path) -> None:
    ctl("stage", "pay-0", *elsewhere(tmp_path), *named, "--apply")
    partition(tmp_path / "d2" / "pay-0", segments={0: 5})
    before = tree(tmp_path / "d1", tmp_path / "d2")
    said = ctl("staged", "restore", "pay-0", "--even-if-unknown", *named, "--apply")
    assert said.status == Exit.REFUSED
    assert f"{tmp_path}/d2/pay-0" in said.err
    assert tree(tmp_path / "d1", tmp_path / "d2") == before
    ctl("stage", "pay-0", *elsewhere(tmp_path), *named, "--apply", "--even-over-limit")
    assert ctl("staged", "restore", "pay-0", "--even-if-unknown", *named, "--apply").status == Exit.REFUSED
    status, result = ctl_json(
        "staged", "restore", "pay-0", "--even-if-unknown", *named, "--apply", "--disk", tmp_path / "d1"
    )
    assert (status, states(result)) == (Exit.DONE, ["done"])
    assert (tmp_path / "d1" / "pay-0" / f"{0:020}.log").stat().st_size == 100
    assert names(tmp_path, "d2") == [f"{TOPIC_ID}_0"]


def test_a25_what_was_altered_copied_or_is_newer_is_shown_and_left_alone(named: Named, tmp_path: Path) -> None:
    ctl("stage", "pay", *elsewhere(tmp_path), *named, "--apply", "--delay-ms", 0)
    deleting = tmp_path / "d1.logdird" / "deleting"
    shutil.copytree(deleting / f"{TOPIC_ID}_0", deleting / f"{TOPIC_ID}_0.2")
    newer = own_json.render("replica", replica_marker.VERSION + 1, {"more": 1})
    (deleting / f"{TOPIC_ID}_2" / "replica.json").write_bytes(newer)
    torn = tmp_path / "d2.logdird" / "deleting" / f"{TOPIC_ID}_1" / "replica.json"
    torn.write_bytes(torn.read_bytes()[:-9])
    (deleting / "mine").mkdir()
    before = tree(deleting, torn.parent)
    status, result = ctl_json("staged", "ls", *named)
    assert status == Exit.PROBLEMS
    assert [item["state"] for item in result["items"]] == ["due", "broken", "broken", "broken"]
    said = ctl("staged", "restore", f"{TOPIC_ID}_2", *named, "--apply", "--even-if-unknown")
    assert said.status == Exit.REFUSED
    assert ctl("staged", "restore", "pay-1", *named, "--apply", "--even-if-unknown").status == Exit.PROBLEMS
    assert ctl("staged", "hold", f"{TOPIC_ID}_2", *named, "--apply").status == Exit.PROBLEMS
    assert tree(deleting, torn.parent) == before
    assert ctl("staged", "purge", *named, "--apply").status == Exit.DONE
    left = [f"{TOPIC_ID}_0.2", f"{TOPIC_ID}_2", "mine"]
    assert names(tmp_path) == left
    assert {path: told for path, told in before.items() if f"{TOPIC_ID}_0/" not in path and path[-2:] != "_0"} == tree(
        deleting, torn.parent
    )


def test_a_lost_heartbeat_holds_every_purge_until_init(named: Named, tmp_path: Path) -> None:
    ctl("stage", "pay-0", *elsewhere(tmp_path), *named, "--apply", "--delay-ms", 0)
    (tmp_path / "d1.logdird" / "heartbeat.json").unlink()
    said = ctl("staged", "purge", "pay-0", *named, "--apply")
    assert (said.status, "heartbeat" in said.err) == (Exit.REFUSED, True)
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert ctl("staged", "purge", "pay-0", *named, "--apply").status == Exit.DONE


def test_a23_a_dead_disk_is_named_and_the_others_are_worked_on(named: Named, tmp_path: Path) -> None:
    (tmp_path / "d2").rename(tmp_path / "away")
    assert ctl("stage", "pay-0", *elsewhere(tmp_path), *named, "--apply").status == Exit.PROBLEMS
    assert (tmp_path / "d1" / "pay-0").is_dir()
    dead = ("--skip-log-dir", f"{tmp_path}/d2")
    status, result = ctl_json("stage", "pay-0", *elsewhere(tmp_path), *named, *dead, "--apply")
    assert (status, states(result)) == (Exit.PROBLEMS, ["done"])
    said = ctl("staged", "restore", "pay-0", "--even-if-unknown", *named, *dead, "--apply")
    assert (said.status, "every configured log dir readable" in said.err) == (Exit.REFUSED, True)
    (tmp_path / "away").rename(tmp_path / "d2")
    assert ctl("staged", "restore", "pay-0", "--even-if-unknown", *named, "--apply").status == Exit.DONE


def test_export_copies_and_leaves_what_is_staged(named: Named, tmp_path: Path) -> None:
    ctl("stage", "pay", *elsewhere(tmp_path), *named, "--apply")
    out = tmp_path / "out"
    before = tree(tmp_path / "d1.logdird" / "deleting")
    argv = ("staged", "export", "pay", *named, "-o", out)
    assert ctl(*argv, "--apply").status == Exit.REFUSED  # nothing is made up: it must be there
    assert not out.exists()
    out.mkdir()
    assert ctl(*argv).out.splitlines()[-1] == f"next: logdirctl staged export pay {' '.join(named)} -o {out} --apply"
    with held(tmp_path / "d1" / ".lock"):  # beside a running broker, too
        status, result = ctl_json(*argv, "--apply")
    assert (status, states(result)) == (Exit.DONE, ["done"] * 3)
    assert sorted(os.listdir(out)) == ["pay-0", "pay-1", "pay-2"]
    log = f"{0:020}.log"
    source = tmp_path / "d1.logdird" / "deleting" / f"{TOPIC_ID}_0"
    assert (out / "pay-0" / log).read_bytes() == (source / log).read_bytes()
    assert "SHA256SUMS" in os.listdir(out / "pay-0")
    assert tree(tmp_path / "d1.logdird" / "deleting") == before
    status, result = ctl_json(*argv, "--apply")  # nothing is replaced
    assert (status, states(result)) == (Exit.REFUSED, ["refused"] * 3)
    for refused, slug in ((tmp_path / "d2", "inside-log-dir"), (tmp_path / "missing" / "folder", "output-invalid")):
        planned = ctl("staged", "export", "pay-0", *named, "-o", refused)
        assert (planned.status, f"{slug}: {refused}/pay-0: " in planned.err) == (Exit.REFUSED, True)
        assert "--apply" not in planned.out
    inside = ctl("staged", "export", "pay-0", *named, "-o", tmp_path / "d2", "--apply")
    assert inside.status == Exit.REFUSED  # as its plan
    assert not (tmp_path / "d2" / "pay-0").exists()


def test_what_is_no_staged_replica_is_refused_by_the_plan_of_an_export_as_by_its_apply(
    named: Named, tmp_path: Path
) -> None:
    ctl("stage", "pay", *elsewhere(tmp_path), *named, "--apply")
    file = tmp_path / "d1.logdird" / "deleting" / f"{TOPIC_ID}_0" / "replica.json"
    marker = replica_marker.parse(file.read_bytes())
    file.write_bytes(replica_marker.render(replace(marker, intent=Intent.INCOMING, delay_ms=None)))
    out = tmp_path / "out"
    out.mkdir()
    argv = ("staged", "export", "pay", *named, "-o", out)
    status, planned = ctl_json(*argv)
    assert status == Exit.PROBLEMS
    by_state = {item["path"].rpartition("_")[2]: item["state"] for item in planned["items"]}
    assert by_state == {"0": "refused", "1": "planned", "2": "planned"}
    (refused,) = (item["problem"] for item in planned["items"] if item["state"] == "refused")
    assert refused["slug"] == "not-staged"
    status, done = ctl_json(*argv, "--apply")
    assert status == Exit.PROBLEMS
    assert [item["problem"] for item in done["items"] if item["state"] == "refused"] == [refused]
    assert sorted(os.listdir(out)) == ["pay-1", "pay-2"]


SICK = (
    ReadOnlyDiskError("d1", expected="a sync that succeeds", found="Input/output error"),
    OSError(errno.EIO, os.strerror(errno.EIO)),
)


@pytest.mark.parametrize("error", SICK, ids=["read-only", "EIO"])
@pytest.mark.parametrize("operation", ["stage", "restore", "hold"])
def test_one_sick_disk_does_not_stop_the_others(
    operation: str, error: Exception, named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if operation != "stage":
        assert ctl("stage", "pay", *elsewhere(tmp_path), *named, "--apply").status == Exit.DONE
    real = getattr(staging, operation)
    calls: list[str] = []

    def sick(open_dir: OpenLogDir, given: Any) -> Any:
        calls.append(open_dir.log_dir)
        if open_dir.log_dir == f"{tmp_path}/d1":
            raise error
        return real(open_dir, given)

    argv = {
        "stage": ("stage", "pay", "--even-if-unknown", "--even-over-limit"),
        "restore": ("staged", "restore", "pay", "--even-if-unknown"),
        "hold": ("staged", "hold", "pay"),
    }[operation]
    with monkeypatch.context() as patch:
        patch.setattr(staging, operation, sick)
        status, result = ctl_json(*argv, *named, "--apply")
    assert (status, states(result)) == (Exit.PROBLEMS, ["undone", "undone", "done"])
    # Nothing more is begun on a disk that takes no changes.
    assert calls == [f"{tmp_path}/d1", f"{tmp_path}/d2"]
    status, result = ctl_json(*argv, *named, "--apply")
    assert (status, states(result)) == (Exit.DONE, ["done"] * (3 if operation == "hold" else 2))


def test_a_listing_of_nothing_says_whether_every_work_root_was_read(named: Named, tmp_path: Path) -> None:
    assert "can be read" not in ctl("staged", "ls", *named).out
    (tmp_path / "d2.logdird").rename(tmp_path / "away")
    assert "can be read" in ctl("staged", "ls", *named).out.splitlines()[0]


@pytest.mark.parametrize("name", ["quarantine.json", "heartbeat.json"])
def test_a_work_root_that_cannot_be_read_does_not_keep_what_is_staged_from_being_listed(
    name: str, named: Named, tmp_path: Path
) -> None:
    assert ctl("stage", "pay", *elsewhere(tmp_path), *named, "--apply").status == Exit.DONE
    path = tmp_path / "d2.logdird" / name
    path.unlink(missing_ok=True)
    path.mkdir()
    status, result = ctl_json("staged", "ls", *named)
    assert (status, len(result["items"])) == (Exit.PROBLEMS, 3)


def test_a_broker_with_one_log_dir_is_no_fault_of_ours_in_any_command(tmp_path: Path) -> None:
    disk, _ = two_disks(tmp_path)
    named = ("--log-dirs", disk)
    for argv in (
        ("init",),
        ("stage", "pay", "--even-if-unknown"),
        ("staged", "ls"),
        ("staged", "hold", "pay"),
        ("staged", "restore", "pay-0", "--even-if-unknown"),
        ("staged", "purge", "pay-2", "--even-if-early", "--even-if-last", "--include-held"),
        ("staged", "ls"),
        ("uninstall",),
    ):
        assert ctl(*argv, *named, *(() if argv[-1] == "ls" else ("--apply",))).status == Exit.DONE, argv


def test_no_listing_rests_on_a_request_document_nor_on_half_a_watermark(named: Named, tmp_path: Path) -> None:
    """Neither with nothing staged: what is wrong is said when it is typed."""
    (tmp_path / "request.json").write_text("{}")
    for words in (("--from", f"request:{tmp_path}/request.json"), ("--high-watermark", 5), ("--from", "nothing:")):
        said = ctl("staged", "ls", *named, *words)
        assert (said.status, said.out) == (Exit.USAGE, ""), words


@pytest.mark.parametrize("command", ["stage", "restore", "purge"])
def test_nothing_is_changed_before_the_heartbeat_of_every_disk_names_this_boot(
    command: str, named: Named, tmp_path: Path
) -> None:
    """What is staged in a boot that no heartbeat names would count from a later boot only."""
    if command != "stage":
        assert ctl("stage", "pay", *elsewhere(tmp_path), *named, "--apply", "--delay-ms", 0).status == Exit.DONE
    paths = [tmp_path / f"{disk}.logdird" / "heartbeat.json" for disk in ("d1", "d2")]
    for path in paths:
        known = heartbeat_file.parse(path.read_bytes())
        before = tuple(replace(boot, boot_id="before", seen_ms=60_000) for boot in known.boots)
        path.write_bytes(heartbeat_file.render(replace(known, boots=before, steady=None)))
    argv = {
        "stage": ("stage", "pay", "--even-if-unknown"),
        "restore": ("staged", "restore", "pay", "--even-if-unknown"),
        "purge": ("staged", "purge"),
    }[command]
    assert ctl(*argv, *named, "--apply").status in (Exit.DONE, Exit.PROBLEMS)
    for path in paths:
        boots = [boot.boot_id for boot in heartbeat_file.parse(path.read_bytes()).boots]
        assert boots == ["before", clock.boot_id()]


def test_a47_what_was_gone_when_it_was_staged_is_refused_on_every_word(named: Named, tmp_path: Path) -> None:
    ctl("stage", "pay-0", *elsewhere(tmp_path), *named, "--apply")
    path = tmp_path / "d1.logdird" / "deleting" / f"{TOPIC_ID}_0" / "replica.json"
    marker = replica_marker.parse(path.read_bytes())
    gone = replace(
        marker, reason=Reason.TOPIC_REMOVED, evidence=Removed(proof=Proof.METADATA_LOG, as_of_ms=marker.staged_at_ms)
    )
    path.write_bytes(replica_marker.render(gone))
    _, result = ctl_json("staged", "ls", *named)
    assert [(item["restore"], item["reason"]) for item in result["items"]] == [("adopt", "topic-removed")]
    said = ctl("staged", "restore", "pay-0", "--even-if-unknown", *named, "--apply")
    assert said.status == Exit.REFUSED
    assert "topic-gone" in said.err
    assert "a follower restored alone truncates" in said.err
    assert (
        ctl("staged", "purge", "pay-0", *named, "--apply", "--even-if-early", "--include-held").status == Exit.REFUSED
    )
    assert path.exists()
    # Known to be gone: no word lifts that.
    assert ctl("staged", "restore", "pay-0", *named, "--apply", "--even-if-unknown").status == Exit.REFUSED
    assert path.exists()


def test_a_hold_that_fails_never_says_that_the_replica_is_kept(named: Named, tmp_path: Path) -> None:
    assert ctl("stage", "other", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    (marker,) = (tmp_path / "d1.logdird" / "deleting").glob("*/replica.json")
    marker.write_text("x")
    status, result = ctl_json("staged", "hold", marker.parent.name, *named, "--apply")
    assert (status, states(result)) == (Exit.PROBLEMS, ["undone"])
    assert "kept" not in result["items"][0]["detail"]
