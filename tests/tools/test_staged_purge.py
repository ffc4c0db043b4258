"""``staged purge`` in batches: how much waits, who is concerned by what goes wrong, and a kill at any call."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from logdir.disk.kernel.host import Call, HostDirectory, HostDisk
from logdir.disk.replica import purge, staging
from logdir.disk.replica.outcome import Outcome
from logdir.disk.replica.rate_limiter import AT_ONCE, RateLimiter
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import ReadOnlyDiskError
from logdir.formats.own.replica_marker import FILE_NAME, ReplicaMarker
from logdir.service.batch import purge_batches
from tests.tools.cluster_log import elsewhere
from tests.tools.ctl import ctl, ctl_json, held, tree, two_disks
from tools.cli.arguments import Exit

REPLICAS = 9
Named = tuple[str, str]


@pytest.fixture
def named(tmp_path: Path) -> Named:
    """Five that are due on one disk, four on the other, and one that lives."""
    disks = two_disks(tmp_path, replicas=REPLICAS)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert (
        ctl("stage", "pay", *elsewhere(tmp_path), *named, "--apply", "--even-over-limit", "--delay-ms", 0).status
        == Exit.DONE
    )
    return named


def deleting(tmp_path: Path, disk: str = "d1") -> Path:
    return tmp_path / f"{disk}.logdird" / "deleting"


def names(tmp_path: Path, disk: str = "d1") -> list[str]:
    return sorted(os.listdir(deleting(tmp_path, disk)))


def purged(named: Named, *more: object) -> tuple[int, dict[str, str]]:
    """Type the command; return its status and the state of each, by its path."""
    status, result = ctl_json("staged", "purge", *named, "--apply", *(more or ("--bytes-per-second", 0)))
    places = [item["new_path"] for item in result["items"]]
    assert places == [None] * len(places)
    return status, {f"{item['log_dir'][-2:]}/{item['path'][9:]}": item["state"] for item in result["items"]}


def told(monkeypatch: pytest.MonkeyPatch, tell: Callable[[Call], None]) -> None:
    """Let a command tell of each call that changes something, before it is made."""
    monkeypatch.setattr("logdir.worker.state.HostDisk", lambda: HostDisk(tell))


def before_claims(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[OpenLogDir, Mapping[str, ReplicaMarker]], None]
) -> None:
    """Do something before each batch is claimed."""

    def claim_all(open_dir: OpenLogDir, items: Mapping[str, ReplicaMarker], **more: Any) -> tuple[Outcome, ...]:
        act(open_dir, items)
        return purge.claim_all(open_dir, items, **more)

    monkeypatch.setattr("logdir.worker.operations.claim_all", claim_all)


def test_a_batch_has_one_sync_each_way_and_the_rows_are_in_the_order_of_the_plan(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Call] = []
    told(monkeypatch, calls.append)
    monkeypatch.setattr("logdir.decide.staged.purge.MOST_PARTITIONS", 3)
    _, plan = ctl_json("staged", "purge", *named)
    del calls[:]
    status, rows = purged(named)
    assert (status, list(rows.values())) == (Exit.DONE, ["done"] * REPLICAS)
    assert list(rows) == [f"{item['log_dir'][-2:]}/{item['path'][9:]}" for item in plan["items"]]
    for disk, batches in (("d1", (3, 2)), ("d2", (3, 1))):
        mine = [call for call in calls if call.path.startswith(str(deleting(tmp_path, disk)))][1:]  # the probe's
        assert [call.name for call in mine if call.name != "unlink"] == [
            name for count in batches for name in (*["rename"] * count, "fsync-dir", *["rmdir"] * count, "fsync-dir")
        ]
    assert names(tmp_path) == names(tmp_path, "d2") == []


@pytest.mark.parametrize(
    ("rate", "waiting"),
    [(1, 1), (250, 2), (400, 4), (0, 5)],
)
def test_what_waits_is_claimed_no_earlier_than_about_a_second_before_it_goes(
    rate: int, waiting: int, named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica has a good hundred bytes of log here, and a marker of several hundred: by its bytes few fit."""
    sizes = {sum(f.stat().st_size for f in path.iterdir()) for path in deleting(tmp_path).iterdir()}
    most: list[int] = []

    def tell(call: Call) -> None:
        if call.name == "unlink":
            most.append(sum(name.endswith(".purging") for name in names(tmp_path)))

    told(monkeypatch, tell)
    monkeypatch.setattr(RateLimiter, "__call__", lambda self, freed, files: None)
    # The rate in hundredths of the biggest.
    assert purged(named, "--bytes-per-second", rate * max(sizes) // 100)[0] == Exit.DONE
    assert max(most) == waiting
    assert names(tmp_path) == []


def test_a18_one_that_was_held_since_and_one_that_is_gone_concern_no_other(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[str] = []

    def change(open_dir: OpenLogDir, items: Mapping[str, ReplicaMarker]) -> None:
        if not changed:
            changed.extend(list(items)[1:3])
            staging.hold(open_dir, changed[0])
            (deleting(tmp_path) / changed[1]).rename(tmp_path / "elsewhere")

    before_claims(monkeypatch, change)
    status, rows = purged(named)
    assert status == Exit.PROBLEMS
    assert {path for path, state in rows.items() if state != "done"} == {f"d1/{name}" for name in changed}
    assert {rows[f"d1/{name}"] for name in changed} == {"undone"}
    assert names(tmp_path) == [changed[0]]
    said = ctl("staged", "purge", "pay", *named, "--apply")
    assert (said.status, names(tmp_path)) == (Exit.REFUSED, [changed[0]])


def test_one_sick_disk_keeps_what_it_has_and_does_not_stop_the_others(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def sick(open_dir: OpenLogDir, items: Mapping[str, ReplicaMarker]) -> None:
        begun.append(open_dir.log_dir[-2:])
        if open_dir.log_dir == f"{tmp_path}/d1" and len(names(tmp_path)) < 5:
            raise ReadOnlyDiskError(open_dir.log_dir, expected="a sync that succeeds", found="Input/output error")

    before_claims(monkeypatch, sick)
    monkeypatch.setattr("logdir.decide.staged.purge.MOST_PARTITIONS", 2)
    status, rows = purged(named)
    assert (status, sorted(rows.values())) == (Exit.PROBLEMS, ["done"] * 6 + ["undone"] * 3)
    assert {path[:2] for path, state in rows.items() if state == "undone"} == {"d1"}
    assert (len(names(tmp_path)), names(tmp_path, "d2")) == (3, [])
    # Of three batches the second met the failure: no third one begins.
    assert begun == ["d1", "d1", "d2", "d2"]


def test_a26_a_work_root_that_is_another_by_now_is_left_alone_and_the_others_go(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(open_dir: OpenLogDir, items: Mapping[str, ReplicaMarker]) -> None:
        if open_dir.log_dir == f"{tmp_path}/d1" and not (tmp_path / "away").exists():
            deleting(tmp_path).rename(tmp_path / "away")
            deleting(tmp_path).mkdir()

    before_claims(monkeypatch, change)
    monkeypatch.setattr("logdir.decide.staged.purge.MOST_PARTITIONS", 2)
    status, rows = purged(named)
    assert (status, sorted(rows.values())) == (Exit.PROBLEMS, ["done"] * 6 + ["undone"] * 3)
    assert (len(os.listdir(tmp_path / "away")), names(tmp_path), names(tmp_path, "d2")) == (3, [], [])


def test_what_was_claimed_before_goes_first_and_its_name_is_free_then(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logdir.decide.staged.purge.MOST_PARTITIONS", 2)
    whole = names(tmp_path)
    for name in whole[:2]:
        (deleting(tmp_path) / name).rename(deleting(tmp_path) / f"{name}.purging")
    first = deleting(tmp_path) / whole[0]
    (deleting(tmp_path) / whole[4]).rename(first)  # of the same name as one that was claimed
    status, rows = purged(named)
    assert (status, set(rows.values()), len(rows)) == (Exit.DONE, {"done"}, REPLICAS)
    assert names(tmp_path) == []


def test_a22_a_broker_that_starts_meanwhile_is_not_hindered(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While what was claimed is removed, the broker takes all of its locks."""
    taken: list[int] = []
    first = iter([True])

    def start(call: Call) -> None:
        if ".purging/" in call.path and next(first, False):
            for disk in ("d1", "d2"):
                with held(tmp_path / disk / ".lock") as pid:
                    taken.append(pid)

    told(monkeypatch, start)
    assert purged(named)[0] == Exit.DONE
    assert len(taken) == 2


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("at", [0, 1, 2, 3, 4, 5, 9, 10, 14, 16, 17, 18, 19, 22, 30])
def test_killed_at_a_call_and_typed_again_it_is_finished_and_nothing_else_went(
    at: int, named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logdir.decide.staged.purge.MOST_PARTITIONS", 3)
    live = tree(tmp_path / "d1", tmp_path / "d2")
    whole = {name: tree(deleting(tmp_path) / name) for name in names(tmp_path)}
    calls: list[Call] = []

    def kill(call: Call) -> None:
        if "/deleting" in call.path and not call.path.endswith("/probe"):
            calls.append(call)
            if len(calls) > at:
                raise Killed

    with monkeypatch.context() as patch:
        told(patch, kill)
        with pytest.raises(Killed):
            purged(named)
    assert at < len(calls) <= at + AT_ONCE  # each of them came to a last call of its own
    # Whole and unclaimed, or claimed; the claims of one batch at most.
    left = names(tmp_path)
    assert sum(name.endswith(".purging") for name in left) <= 3
    kept = {name: told for name, told in whole.items() if name in left}
    assert {name: tree(deleting(tmp_path) / name) for name in kept} == kept
    assert purged(named)[0] == Exit.DONE
    assert names(tmp_path) == names(tmp_path, "d2") == []
    assert tree(tmp_path / "d1", tmp_path / "d2") == live


def test_a_removal_that_fails_leaves_its_replica_claimed_and_says_so(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = names(tmp_path)[1]
    real = purge._remove

    def remove(open_dir: OpenLogDir, claimed: str, *rest: Any) -> None:
        if claimed == f"{bad}.purging":
            raise PermissionError(1, "Operation not permitted", claimed)
        real(open_dir, claimed, *rest)

    monkeypatch.setattr(purge, "_remove", remove)
    status, result = ctl_json("staged", "purge", *named, "--apply", "--bytes-per-second", 0)
    undone = [item for item in result["items"] if item["state"] == "undone"]
    assert (status, [item["path"] for item in undone]) == (Exit.PROBLEMS, [f"deleting/{bad}"])
    assert [item["new_path"] for item in undone] == [f"deleting/{bad}.purging"]
    assert names(tmp_path) == [f"{bad}.purging"]
    # Once more it lies where it lay before.
    assert purged(named) == (Exit.PROBLEMS, {f"d1/{bad}.purging": "undone"})
    monkeypatch.undo()
    assert purged(named) == (Exit.DONE, {f"d1/{bad}.purging": "done"})


def three_copies(folder: Path) -> tuple[Named, list[str]]:
    """Stage one partition three times, as after it was put back by hand; return their names."""
    disks = two_disks(folder, replicas=12)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    copies = [folder / f"copy-{number}" for number in range(2)]
    for copy in copies:
        shutil.copytree(disks[0] / "pay-0", copy)
    for number in range(3):
        said = ctl("stage", "pay-0", *named, "--even-if-unknown", "--even-over-limit", "--apply")
        assert said.status == Exit.DONE, said
        if number < len(copies):
            copies[number].rename(disks[0] / "pay-0")
    return named, names(folder)


def test_of_several_staged_copies_the_one_that_is_named_goes_alone(tmp_path: Path) -> None:
    named, three = three_copies(tmp_path)
    assert len(three) == 3
    word = ("--even-if-last",)
    _, result = ctl_json("staged", "purge", "pay-0", *named, *word)
    assert len(result["items"]) == 3  # the plan says that all would go
    status, result = ctl_json("staged", "purge", "pay-0", *named, "--name", three[1], *word)
    assert (status, [item["path"] for item in result["items"]]) == (Exit.DONE, [f"deleting/{three[1]}"])
    assert ctl("staged", "purge", "pay-0", *named, "--name", three[1], *word, "--apply").status == Exit.DONE
    assert names(tmp_path) == [three[0], three[2]]
    # What keeps the next one names it alone, too: without its name both would go.
    said = ctl("staged", "purge", "pay-0", *named, "--name", three[2], "--apply")
    assert (said.status, f"--name {three[2]} --even-if-last" in said.err) == (Exit.REFUSED, True), said
    assert ctl("staged", "purge", "pay-0", *named, "--name", three[2], *word, "--apply").status == Exit.DONE
    assert names(tmp_path) == [three[0]]


@pytest.mark.parametrize("apply", [(), ("--apply",)])
def test_a_name_or_a_disk_that_holds_nothing_purges_nothing(apply: tuple[str, ...], tmp_path: Path) -> None:
    named, three = three_copies(tmp_path)
    for words in (
        ("pay-0", "--name", "nope", "--even-if-last"),
        ("pay-0", "--disk", tmp_path / "d2", "--even-if-last"),
        ("--name", "nope"),
    ):
        said = ctl("staged", "purge", *words, *named, *apply)
        assert (said.status, "nothing-selected" in said.err) == (Exit.PROBLEMS, True), said
    assert names(tmp_path) == three


def test_an_override_asks_for_a_selector_beside_a_name(tmp_path: Path) -> None:
    named, three = three_copies(tmp_path)
    said = ctl("staged", "purge", "--name", three[0], "--even-if-last", *named, "--apply")
    assert (said.status, names(tmp_path)) == (Exit.USAGE, three)


def test_what_is_due_on_one_disk_goes_alone(named: Named, tmp_path: Path) -> None:
    status, states = purged(named, "--disk", tmp_path / "d2")
    assert (status, {state[:2] for state in states}, len(states)) == (Exit.DONE, {"d2"}, 4)
    assert (len(names(tmp_path)), names(tmp_path, "d2")) == (5, [])


@pytest.mark.parametrize(("number", "slug"), [(errno.EPERM, "disk-error"), (errno.ENOSPC, "disk-full")])
def test_no_removal_that_has_begun_is_said_to_be_as_it_was(
    number: int, slug: str, named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = names(tmp_path)[1]
    real = HostDirectory.unlink

    def unlink(self: HostDirectory, name: str) -> None:
        if self.path.endswith(f"{bad}.purging") and name == FILE_NAME:
            raise OSError(number, os.strerror(number), name)
        real(self, name)

    monkeypatch.setattr(HostDirectory, "unlink", unlink)
    said = ctl("staged", "purge", *named, "--apply", "--bytes-per-second", 0)
    monkeypatch.undo()
    (line,) = (line for line in said.err.splitlines() if f": {slug}: " in line)
    assert (said.status, "as it was" in line, "logdirctl staged purge" in line) == (Exit.PROBLEMS, False, True)
    assert f"{deleting(tmp_path)}/{bad}.purging" in line
    assert os.listdir(deleting(tmp_path) / f"{bad}.purging") == [FILE_NAME]
    # As it says: not to be restored, and gone on with.
    assert ctl("staged", "restore", bad, *named, "--apply", "--even-if-unknown").status != Exit.DONE
    assert purged(named) == (Exit.DONE, {f"d1/{bad}.purging": "done"})


def test_a_claim_that_fails_is_said_to_be_as_it_was(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = names(tmp_path)[1]
    real = purge._claim

    def claim(open_dir: OpenLogDir, name: str, claimed: str) -> None:
        if name == bad:
            raise PermissionError(errno.EPERM, "Operation not permitted", name)
        real(open_dir, name, claimed)

    monkeypatch.setattr(purge, "_claim", claim)
    _, envelope = ctl_json("staged", "purge", *named, "--apply", "--bytes-per-second", 0)
    assert [item["new_path"] for item in envelope["items"] if item["state"] == "undone"] == [None]
    assert names(tmp_path) == [bad]


def test_what_a_batch_says_nothing_of_is_named_by_its_path_and_the_command_ends(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge_batches, "_batch", lambda *given: None)
    whole = names(tmp_path)
    said = ctl("staged", "purge", *named, "--apply")
    assert said.status == Exit.PROBLEMS
    assert all(f"{deleting(tmp_path)}/{name}: " in said.err for name in whole)
    assert "report this message as a bug" in said.err
    assert names(tmp_path) == whole


def test_a26_why_a_replaced_directory_is_left_alone_is_said_once(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(open_dir: OpenLogDir, items: Mapping[str, ReplicaMarker]) -> None:
        if open_dir.log_dir == f"{tmp_path}/d1" and not (tmp_path / "away").exists():
            deleting(tmp_path).rename(tmp_path / "away")
            deleting(tmp_path).mkdir()

    before_claims(monkeypatch, change)
    monkeypatch.setattr("logdir.decide.staged.purge.MOST_PARTITIONS", 2)
    said = ctl("staged", "purge", *named, "--apply", "--bytes-per-second", 0)
    told = [line for line in said.err.splitlines() if f"{tmp_path}/d1" in line]
    assert len(told) == 1, (said.err, said.out)
