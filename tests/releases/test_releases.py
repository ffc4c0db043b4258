"""What every release left on disk is read and finished by this one: nothing is lost, nothing needs a hand.

``python -m tests.releases.make WHEEL`` makes the trees of a release.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from pathlib import Path

import pytest

from logdir.disk.kernel.kernel_clock import read_instant
from tests.releases.older import is_read_by_0_2_0
from tests.releases.rig import RELEASES, unpack
from tests.tools.ctl import Said, ctl, ctl_json, tree
from tools.cli.arguments import Exit

OLD, NEW = "eXOy6xj-Q8ivrWAlsZGnkw", "Sx1N2n2bQ6mQ1b8R3gXv7A"
LATER, HELD, CUT, GOING = (f"AAAAAAAAAAAAAAAAAAAB{letter}A" for letter in "BCDE")
FOUR_HOURS_MS = 14_400_000

pytestmark = pytest.mark.parametrize("release", RELEASES)


def digest(path: Path) -> str:
    """Return the digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def segments_of(replica: Path) -> dict[str, str]:
    """Return the name and the digest of every segment of a replica."""
    return {path.name: digest(path) for path in replica.glob("*.log")}


def replicas_of(log_dir: Path) -> dict[str, dict[str, str]]:
    """Return what every replica of a log dir is under its topic name: its files, name and digest.

    Of one that lies under its topic id, what it was: ``relayout.json`` says so of its ``partition.metadata``.
    """
    found = {}
    for directory in {path.parent for path in log_dir.rglob("*.log")}:
        files = {path.name: digest(path) for path in directory.iterdir()}
        name = directory.name
        if directory.parent != log_dir:
            metadata = (directory / "partition.metadata").read_text()
            name = f"{metadata.partition('topic_name: ')[2].strip()}-{name.rpartition('_')[2]}"
        if files.pop("relayout.json", None) is not None:
            was = json.loads((directory / "relayout.json").read_text())["partition_metadata"]
            del files["partition.metadata"]
            if was is not None:
                files["partition.metadata"] = hashlib.sha256(b64decode(was)).hexdigest()
        found[name] = files
    return found


def unblocked(log_dir: Path) -> bytes:
    """Return what ``meta.properties`` was before the start block, which changes one number in it."""
    blocked = (log_dir / "meta.properties").read_bytes()
    assert blocked.count(b"broker.id=2147483647\n") == 1
    was = blocked.replace(b"broker.id=2147483647\n", b"broker.id=1\n")
    assert b64decode(json.loads((log_dir / "start-block.json").read_text())["meta_properties"]) == was
    return was


@pytest.mark.parametrize("uptime_ms", [3_600_000, FOUR_HOURS_MS])
def test_what_was_staged_held_cut_off_and_half_purged_is_listed_as_such(
    release: str, uptime_ms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = unpack(release, "staged", tmp_path)
    words = ("--server-properties", top / "server.properties")
    # However long this machine runs: its disk may have come from another.
    monkeypatch.setattr(
        "logdir.service.staged_listing.read_instant",
        lambda: read_instant()._replace(boot_id="of today", boottime_ms=uptime_ms),
    )
    status, listed = ctl_json("staged", "ls", *words)
    assert status == Exit.DONE, listed
    found = {one["topic_id"]: (one["state"], one["reason"], one["delay_ms"]) for one in listed["items"]}
    assert found == {
        LATER: ("counting", "topic-removed", FOUR_HOURS_MS),
        HELD: ("held", "topic-removed", None),
        GOING: ("purging", "operator", None),
        CUT: ("incoming", "captured", None),
    }


def test_a_half_purged_replica_goes_and_an_unfinished_capture_is_finished(release: str, tmp_path: Path) -> None:
    top = unpack(release, "staged", tmp_path)
    words = ("--server-properties", top / "server.properties")
    assert ctl("staged", "purge", *words, "--apply").status == Exit.DONE
    assert ctl("capture", *words, "--apply").status == Exit.DONE
    assert sorted(path.name for path in (top / "d1.logdird" / "deleting").iterdir()) == sorted(
        [f"{CUT}_0", f"{LATER}_0", f"{HELD}_0"]
    )
    assert not list((top / "d1.logdird" / "incoming").iterdir())
    segment = f"{7:020}.log"
    before = top / "d1" / "cut-0.0123456789abcdef0123456789abcdef-delete" / segment
    assert (top / "d1.logdird" / "deleting" / f"{CUT}_0" / segment).samefile(before)


def test_an_adoption_that_was_certain_is_finished(release: str, tmp_path: Path) -> None:
    top = unpack(release, "adopting", tmp_path)
    assert not (top / "d1" / "pay-0").exists()
    staged = segments_of(top / "d1.logdird" / "deleting" / f"{OLD}_0")
    recreated = segments_of(top / "d2.logdird" / "deleting" / f"{NEW}_0")
    assert staged.keys() == {f"{0:020}.log"}
    words = ("--server-properties", top / "server.properties")
    said = ctl("staged", "adopt", OLD, "--as", "pay", *words, "--apply")
    assert said.status == Exit.DONE, said
    live = top / "d1" / "pay-0"
    assert f"topic_id: {NEW}" in (live / "partition.metadata").read_text()
    assert segments_of(live) == staged
    status, listed = ctl_json("staged", "ls", *words)
    assert (status, [one["topic_id"] for one in listed["items"]]) == (Exit.DONE, [NEW])
    assert segments_of(top / "d2.logdird" / "deleting" / f"{NEW}_0") == recreated != staged


def test_a_change_of_layout_that_was_cut_off_is_shown_and_rolled_back(release: str, tmp_path: Path) -> None:
    top = unpack(release, "start-block", tmp_path) / "broker"
    words = ("--log-dirs", f"{top / 'd1'},{top / 'd2'}")
    status, shown = ctl_json("layout", "status", *words)
    assert status == Exit.DONE
    assert {(one["state"], one["start_block"]) for one in shown["items"]} == {("applying", "set")}
    by_id, by_name = (sum(one[key] for one in shown["items"]) for key in ("by_id", "by_name"))
    assert by_id > 0
    assert by_name > 0
    log_dirs = top / "d1", top / "d2"
    before = {path: unblocked(path) for path in log_dirs}
    replicas = {path: replicas_of(path) for path in log_dirs}
    assert ctl("layout", "rollback", *words, "--apply").status == Exit.DONE
    _, after = ctl_json("layout", "status", *words)
    assert {(one["start_block"], one["by_id"]) for one in after["items"]} == {("none", 0)}
    assert sum(one["by_name"] for one in after["items"]) == by_id + by_name
    assert {path: (path / "meta.properties").read_bytes() for path in log_dirs} == before
    assert {path: replicas_of(path) for path in log_dirs} == replicas
    assert all((path / name).is_dir() for path in log_dirs for name in replicas[path])
    assert not list(top.rglob("relayout.json"))


def work_roots(top: Path) -> list[Path]:
    """Return the work roots of a tree."""
    return sorted(top.rglob("*.logdird"))


def kept_in(top: Path) -> dict[str, tuple[object, ...]]:
    """Return what is staged, incoming, claimed or half done: all of the work roots but the files at their top."""
    return {path: seen for root in work_roots(top) for path, seen in tree(root / "deleting", root / "incoming").items()}


def upgrading(top: Path, *command: object) -> Said:
    """Type a command that changes something for the first time; nothing that is kept is lost by the upgrade itself."""
    assert all(map(is_read_by_0_2_0, work_roots(top)))
    assert ctl(*command).status in (Exit.DONE, Exit.PROBLEMS)
    assert all(map(is_read_by_0_2_0, work_roots(top))), "a plan changes nothing"
    said = ctl(*command, "--apply")
    assert not any(map(is_read_by_0_2_0, work_roots(top))), said
    return said


def test_the_first_change_upgrades_the_work_root_and_says_what_is_kept_and_where(release: str, tmp_path: Path) -> None:
    top = unpack(release, "staged", tmp_path)
    words = ("--server-properties", top / "server.properties")
    before = kept_in(top)
    said = upgrading(top, "staged", "hold", HELD, *words)
    assert said.status == Exit.DONE, said
    first = "What is kept on this host, and where (logdirctl uninstall takes it back):"
    assert said.err.startswith(f"logdirctl staged hold: {first}\n")
    assert f"nowhere else: {top / 'd1.logdird'}\n" in said.err
    assert "until their deadline (4 h after the staging" in said.err
    assert kept_in(top) == before
    assert "What is kept" not in ctl("staged", "hold", LATER, *words, "--apply").err
    # In JSON it stands beside the one object, as every message does.
    other = unpack(release, "staged", tmp_path / "again")
    status, out, err = ctl(
        "staged", "hold", HELD, "--server-properties", other / "server.properties", "--apply", "--json"
    )
    assert (status, out.count("\n"), "What is kept" in out, first in err) == (Exit.DONE, 1, False, True)


def test_what_is_staged_held_cut_off_and_half_purged_is_finished_in_an_upgraded_work_root(
    release: str, tmp_path: Path
) -> None:
    top = unpack(release, "staged", tmp_path)
    words = ("--server-properties", top / "server.properties")
    upgrading(top, "staged", "hold", HELD, *words)
    assert ctl("staged", "purge", *words, "--apply").status == Exit.DONE
    assert ctl("capture", *words, "--apply").status == Exit.DONE
    assert sorted(path.name for path in (top / "d1.logdird" / "deleting").iterdir()) == sorted(
        [f"{CUT}_0", f"{LATER}_0", f"{HELD}_0"]
    )
    assert not list((top / "d1.logdird" / "incoming").iterdir())


def test_an_adoption_that_was_certain_is_finished_by_the_gate_that_upgrades(release: str, tmp_path: Path) -> None:
    top = unpack(release, "adopting", tmp_path)
    words = ("--server-properties", top / "server.properties")
    assert len(work_roots(top)) == 2
    said = ctl("handover", *words)
    assert (said.status, "What is kept on this host" in said.err) == (Exit.DONE, True), said
    assert not any(map(is_read_by_0_2_0, work_roots(top)))
    assert f"topic_id: {NEW}" in (top / "d1" / "pay-0" / "partition.metadata").read_text()


def test_a_start_block_stands_over_the_upgrade_until_the_rollback_is_done(release: str, tmp_path: Path) -> None:
    top = unpack(release, "start-block", tmp_path) / "broker"
    words = ("--log-dirs", f"{top / 'd1'},{top / 'd2'}")
    log_dirs = top / "d1", top / "d2"
    before = {path: unblocked(path) for path in log_dirs}
    assert upgrading(top, "layout", "rollback", *words).status == Exit.DONE
    assert {path: (path / "meta.properties").read_bytes() for path in log_dirs} == before
    assert len(work_roots(top)) == 2


def test_a_command_that_only_reads_upgrades_nothing(release: str, tmp_path: Path) -> None:
    top = unpack(release, "staged", tmp_path)
    words = ("--server-properties", top / "server.properties")
    before = tree(top)
    for command in ("staged ls", "describe", "inventory", "handover --plan", "uninstall", "init"):
        ctl(*command.split(), *words)
    assert tree(top) == before
