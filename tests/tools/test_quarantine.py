"""Disks that answer and are left alone: away while the broker ran on its others (A25), or sick since a sync failed."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdir import clock
from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.host import Call, HostDirectory, HostDisk
from logdir.disk.locks import OwnerLock
from logdir.formats.own import heartbeat_file, quarantine_file
from logdir.formats.own.heartbeat_file import Boot
from tests.builders import TOPIC_ID, log_dir, partition
from tests.tools.cluster_log import elsewhere
from tests.tools.ctl import ctl, ctl_json, tree, two_disks
from tools.cli.arguments import Exit

HOUR_MS = 60 * 60 * 1000
Named = tuple[str, str]


@pytest.fixture
def named(tmp_path: Path) -> Named:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert ctl("stage", "pay", *elsewhere(tmp_path), *named, "--apply", "--delay-ms", 0).status == Exit.DONE
    return named


def put_back(tmp_path: Path, hours: int) -> None:
    """Make the second disk one that was last seen so many hours ago, in the boot before this one."""
    now = clock.now_ms()
    for name, boots, ago in (("d1", ("before", clock.boot_id()), 0), ("d2", ("before",), hours)):
        path = tmp_path / f"{name}.logdird" / "heartbeat.json"
        known = heartbeat_file.parse(path.read_bytes())
        lived = tuple(Boot(boot_id=boot, seen_ms=60_000, credited_ms=0) for boot in boots)
        value = replace(known, boots=lived, wall_ms=now - ago * HOUR_MS, steady=None, gap_from_ms=None)
        path.write_bytes(heartbeat_file.render(value))


def second(tmp_path: Path) -> dict[str, tuple[object, ...]]:
    return tree(tmp_path / "d2", tmp_path / "d2.logdird")


def states(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(os.path.basename(item["log_dir"]), item["state"]) for item in result["items"]]


def test_a25_a_disk_that_returned_is_told_and_nothing_of_it_changed_until_somebody_looked(
    named: Named, tmp_path: Path
) -> None:
    put_back(tmp_path, 5)
    partition(tmp_path / "d2" / "new-0", topic_id="AAAAAAAAAAAAAAAAAAAAZQ")
    before = second(tmp_path)
    said = ctl("staged", "ls", *named)
    assert said.status == Exit.PROBLEMS
    assert f"stale-disk: {tmp_path}/d2: " in said.err
    assert "5 hours behind" in said.err
    for argv, expected in (
        (("stage", "new", "--even-if-unknown"), [("d2", "refused")]),
        (("staged", "hold", "pay"), [("d1", "done"), ("d1", "done"), ("d2", "refused")]),
        (("staged", "restore", "pay", "--even-if-unknown"), [("d1", "done"), ("d1", "done"), ("d2", "refused")]),
        (("staged", "purge", "pay", "--even-if-early", "--include-held"), [("d2", "refused")]),
    ):
        for apply in ((), ("--apply",)):
            status, result = ctl_json(*argv, *named, *apply)
            want = expected if apply else [(disk, state.replace("done", "planned")) for disk, state in expected]
            assert sorted(states(result)) == sorted(want), argv
            assert status in (Exit.PROBLEMS, Exit.REFUSED)
    for words in (("init",), ("uninstall",)):
        said = ctl(*words, *named, "--apply")
        assert (said.status, "hours behind" in said.err) == (Exit.REFUSED, True)
    assert second(tmp_path) == before
    assert (
        ctl("stage", "new", *elsewhere(tmp_path), *named, "--even-if-stale-disk", tmp_path, "--apply").status
        == Exit.USAGE
    )
    # The word is for the disk that is named; from then on it lives with the others.
    said = ctl("staged", "restore", "pay", "--even-if-unknown", *named, "--even-if-stale-disk", tmp_path / "d2")
    assert "--even-" not in said.out.splitlines()[-1]
    assert (
        ctl(
            "staged", "restore", "pay", "--even-if-unknown", *named, "--even-if-stale-disk", tmp_path / "d2", "--apply"
        ).status
        == Exit.DONE
    )
    assert ctl("stage", "new", *elsewhere(tmp_path), *named, "--apply", "--even-over-limit").status == Exit.DONE


@pytest.mark.parametrize(
    "words",
    [
        ("staged", "hold", "pay"),
        ("staged", "purge", "pay"),
        ("staged", "restore", "pay", "--even-if-unknown"),
        ("layout", "rollback"),
    ],
    ids=" ".join,
)
def test_a25_a_command_that_changes_something_accepts_the_disk_for_those_after_it(
    words: tuple[str, ...], named: Named, tmp_path: Path
) -> None:
    put_back(tmp_path, 5)
    stale = ("--even-if-stale-disk", tmp_path / "d2")
    assert ctl(*words, *named, *stale, "--apply").status == Exit.DONE
    said = ctl("staged", "ls", *named)
    assert (said.status, said.err) == (Exit.DONE, ""), said


def test_a25_what_lives_on_a_returned_disk_keeps_its_name(named: Named, tmp_path: Path) -> None:
    put_back(tmp_path, 5)
    partition(tmp_path / "d2" / "pay-0")
    said = ctl("staged", "restore", "pay-0", "--even-if-unknown", *named, "--apply")
    assert (said.status, f"{tmp_path}/d2/pay-0" in said.err) == (Exit.REFUSED, True)


def test_a_disk_half_an_hour_behind_is_none_that_was_away(named: Named, tmp_path: Path) -> None:
    put_back(tmp_path, 0)
    assert ctl("staged", "ls", *named).status == Exit.DONE
    assert ctl("staged", "restore", "pay", "--even-if-unknown", *named, "--apply").status == Exit.DONE


class Sick(HostDisk):
    """Making the entries of directories below a path durable fails."""

    def __init__(self, below: Path) -> None:
        self._below = f"{below}"
        super().__init__(self._observe)

    def _observe(self, call: Any) -> None:
        if call.name == "fsync-dir" and call.path.startswith(self._below):
            raise OSError(errno.EIO, os.strerror(errno.EIO), call.path)


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Two log dirs of one broker on two file systems."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs a second file system in /dev/shm")
    with tempfile.TemporaryDirectory(prefix="logdird-", dir=shared) as made:
        one = log_dir(tmp_path / "d1")
        two = log_dir(Path(made) / "d2", directory="AAAAAAAAAAAAAAAAAAAABA")
        for number in range(4):
            partition((one, two)[number % 2] / f"pay-{number}")
        yield one, two


def test_a_sync_that_failed_closes_its_disk_for_the_next_process_of_this_boot(
    apart: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = apart
    named = ("--log-dirs", f"{one},{two}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    with monkeypatch.context() as patch:
        sick = one.with_name("d1.logdird") / "deleting"
        patch.setattr("logdir.worker.state.HostDisk", lambda: Sick(sick))
        status, result = ctl_json("stage", "pay", "--even-if-unknown", *named, "--apply", "--even-over-limit")
    assert status == Exit.PROBLEMS
    assert sorted(states(result)) == [("d1", "undone")] * 2 + [("d2", "done")] * 2
    told = two.with_name("d2.logdird") / "quarantine.json"
    (disk,) = quarantine_file.parse(told.read_bytes()).disks
    assert (disk.log_dir, "Input/output error" in disk.found) == (str(one), True)
    assert not (one.with_name("d1.logdird") / "quarantine.json").exists()
    before = tree(one, one.with_name("d1.logdird"))
    said = ctl("staged", "ls", *named)
    assert (said.status, f"sync-failed: {one}: " in said.err) == (Exit.PROBLEMS, True)
    status, result = ctl_json("staged", "restore", "pay", "--even-if-unknown", *named, "--apply")
    assert sorted(states(result)) == [("d1", "refused")] * 2 + [("d2", "done")] * 2
    for words in (("staged", "purge", "pay", "--even-if-early"), ("staged", "hold", "pay"), ("init",), ("uninstall",)):
        said = ctl(*words, *named, "--apply", *(("--even-if-stale-disk", one) if words == ("init",) else ()))
        assert (said.status, str(one) in said.err) == (Exit.REFUSED, True), words
    status, result = ctl_json("init", *named, "--skip-log-dir", one, "--apply")
    assert (status, [root["state"] for root in result["items"]]) == (Exit.PROBLEMS, ["undone", "done"])
    assert tree(one, one.with_name("d1.logdird")) == before
    # In another boot what is read is what the disk holds.
    file = quarantine_file.parse(told.read_bytes())
    told.write_bytes(quarantine_file.render(file._replace(boot_id="before")))
    assert ctl("staged", "restore", "pay", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    assert sorted(path.name for path in one.glob("pay-*")) == ["pay-0", "pay-2"]
    assert ctl("uninstall", *named, "--apply").status == Exit.DONE
    assert not told.exists()


def read_only(monkeypatch: pytest.MonkeyPatch, below: Path, since: str) -> None:
    """Let a disk be remounted read-only before one of the things that are done to every disk."""
    number = errno.EIO if since == "versions" else errno.EROFS
    real_lock, real_read = HostDirectory.open_lock, HostDirectory.read

    def refuse(path: str) -> None:
        if path.startswith(f"{below}"):
            raise OSError(number, os.strerror(number), path)

    def observe(call: Call) -> None:
        begins = {
            "recover": lambda: call.name == "unlink" and call.path.endswith("replica.new.json"),
            "heartbeat": lambda: "heartbeat.json" in call.path,
        }
        if begins.get(since, lambda: "fsync" not in call.name)():
            refuse(call.path)

    def open_lock(self: HostDirectory, name: str, owner: Owner | None = None) -> int:
        if (name, since) in (("owner.lock", "owner lock"), (".lock", "owner lock"), (".lock", "lock")):
            refuse(self.path)
        return real_lock(self, name, owner)

    def read(self: HostDirectory, name: str, limit: int) -> bytes:
        if since == "versions" and name == "heartbeat.json":
            refuse(self.path)
        return real_read(self, name, limit)

    monkeypatch.setattr(HostDirectory, "open_lock", open_lock)
    monkeypatch.setattr(HostDirectory, "read", read)
    if since != "lock":
        monkeypatch.setattr("logdir.worker.state.HostDisk", lambda: HostDisk(observe))


CHANGES = {
    "stage": (("stage", "new", "--even-over-limit", "--even-if-unknown"), [("d1", "done"), ("d2", "refused")]),
    "hold": (("staged", "hold", "pay"), [("d1", "done"), ("d1", "done"), ("d2", "refused")]),
    "restore": (("staged", "restore", "pay", "--even-if-unknown"), [("d1", "done"), ("d1", "done"), ("d2", "refused")]),
    "purge": (("staged", "purge"), [("d1", "done"), ("d1", "done"), ("d2", "kept")]),
}
SINCE = ("owner lock", "versions", "lock", "prove", "recover", "heartbeat")
BEATS = {"stage", "restore", "purge"}


@pytest.mark.parametrize(
    ("since", "change"),
    [(since, change) for since in SINCE for change in CHANGES if since != "heartbeat" or change in BEATS],
)
def test_a23_a_disk_remounted_read_only_is_named_and_the_others_are_worked_on(
    since: str, change: str, named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv, expected = CHANGES[change]
    for disk in ("d1", "d2"):
        partition(tmp_path / disk / f"new-{disk[1]}", topic_id="AAAAAAAAAAAAAAAAAAAAZQ")
    if since == "recover":
        staged = tmp_path / "d2.logdird" / "deleting" / f"{TOPIC_ID}_1"
        (staged / "replica.new.json").write_bytes(b"half a mar")
    replicas = (tmp_path / "d1", tmp_path / "d1.logdird" / "deleting")
    before, first = second(tmp_path), tree(*replicas)
    read_only(monkeypatch, tmp_path / "d2", since)
    said = ctl(*argv, *named, "--apply")
    assert said.status == Exit.PROBLEMS
    assert ("Input/output error" if since == "versions" else "Read-only file system") in said.err
    # Who can mount it for writing again is not sent to look for a dead disk.
    assert ("log-dir-offline" in said.err, "disk-read-only" in said.err) == (since == "versions", since != "versions")
    assert ("--skip-log-dir" if since == "lock" else f"--skip-log-dir {tmp_path}/d2") in said.err
    assert tree(*replicas) == first
    assert second(tmp_path) == before
    status, result = ctl_json(*argv, *named, "--skip-log-dir", tmp_path / "d2", "--apply")
    assert (status, sorted(states(result))) == (Exit.PROBLEMS, expected)
    assert second(tmp_path) == before


@pytest.mark.parametrize("since", ["owner lock", "heartbeat", "its first directory"])
def test_a23_init_mends_the_others_beside_a_disk_remounted_read_only(
    since: str, named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for disk in ("d1", "d2"):
        if since == "its first directory":
            shutil.rmtree(tmp_path / f"{disk}.logdird")
        else:
            (tmp_path / f"{disk}.logdird" / "reserve").unlink()
    before = second(tmp_path) if since == "its first directory" else None
    read_only(monkeypatch, tmp_path / "d2", since)
    said = ctl("init", *named, "--apply")
    assert (said.status, "Read-only file system" in said.err) == (Exit.PROBLEMS, True)
    assert f"--skip-log-dir {tmp_path}/d2" in said.err
    status, result = ctl_json("init", *named, "--skip-log-dir", tmp_path / "d2", "--apply")
    made = [(os.path.basename(root["log_dir"]), root["state"]) for root in result["items"]]
    assert (status, made) == (Exit.PROBLEMS, [("d1", "done"), ("d2", "undone")])
    assert (tmp_path / "d1.logdird" / "reserve").stat().st_size == result["items"][0]["reserve_bytes"]
    assert before in (None, second(tmp_path))
    said = ctl("init", *named, "--skip-log-dir", tmp_path / "d2", "--apply")
    assert (said.status, said.err.count("Read-only file system")) == (Exit.PROBLEMS, 1)


@pytest.mark.parametrize(("since", "becomes"), [("owner lock", "done"), ("versions", "undone")])
def test_a23_what_lies_on_a_disk_remounted_read_only_can_be_copied_elsewhere(
    since: str, becomes: str, named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    argv = ("staged", "export", "pay", *named, "-o", tmp_path / "out", "--apply")
    read_only(monkeypatch, tmp_path / "d2", since)
    more: tuple[object, ...] = ()
    if since == "versions":
        assert f"--skip-log-dir {tmp_path}/d2" in ctl(*argv).err
        more = ("--skip-log-dir", tmp_path / "d2")
    status, result = ctl_json(*argv, *more)
    assert (status, states(result)) == (Exit.PROBLEMS, [("d1", "done"), ("d1", "done"), ("d2", becomes)])


@pytest.mark.parametrize("argv", [("staged", "restore", "pay", "--apply"), ("staged", "hold", "pay", "--apply")])
def test_the_next_command_after_one_without_a_disk_can_be_typed(
    argv: tuple[str, ...], named: Named, tmp_path: Path
) -> None:
    (tmp_path / "d2").rename(tmp_path / "away")
    said = ctl(*argv, *named, "--skip-log-dir", tmp_path / "d2")
    line = said.out.rpartition("next: logdirctl ")[2]
    assert line, said
    assert ctl(*shlex.split(line)).status is not Exit.USAGE


def test_a23_one_that_another_of_us_works_on_stops_the_command_also_when_it_is_said_to_have_failed(
    named: Named, tmp_path: Path
) -> None:
    with HostDisk().open_top(f"{tmp_path}/d2.logdird") as work, OwnerLock.take(work):
        before = tree(tmp_path)
        said = ctl(
            "staged", "restore", "pay", "--even-if-unknown", *named, "--skip-log-dir", tmp_path / "d2", "--apply"
        )
        assert (said.status, "work-root-owned" in said.err) == (Exit.REFUSED, True)
    assert tree(tmp_path) == before


def test_nothing_is_decided_while_a_suspect_file_cannot_be_read(named: Named, tmp_path: Path) -> None:
    (tmp_path / "d1.logdird" / "quarantine.json").write_bytes(b"torn")
    before = tree(tmp_path)
    for words in (("staged", "restore", "pay", "--even-if-unknown"), ("init",)):
        said = ctl(*words, *named, "--apply")
        assert (said.status, "quarantine.json" in said.err) == (Exit.PROBLEMS, True)
    assert tree(tmp_path) == before
    assert "malformed-file" in ctl("staged", "ls", *named).err
    assert f"{TOPIC_ID}_0" in os.listdir(tmp_path / "d1.logdird" / "deleting")
