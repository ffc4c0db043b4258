"""Opening a broker's log dirs for changes: whose they are, what is re-read, and what stops a batch."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from logdir.disk.kernel.host import HostDisk
from logdir.disk.locks import BATCH_MS
from logdir.disk.record import start_block
from logdir.disk.replica import staging
from logdir.disk.root.true_root import open_true_root
from logdir.errors import (
    ConfigError,
    ForeignLogDirError,
    LockHeldError,
    LogDirOfflineError,
    LogDirReplacedError,
    RefusedError,
    UnsupportedVersionError,
    WorkRootOwnedError,
)
from logdir.formats.own import layout_file, own_json
from logdir.formats.own.layout_file import LayoutFile, LayoutState
from logdir.refusal_slug import Why
from logdir.service import stage
from logdir.service.batch.unlocked import unlocked
from logdir.service.log_dirs.opening import opened
from logdir.service.log_dirs.request import BrokerRequest
from tests.builders import CLUSTER, TOPIC_ID, log_dir, partition
from tests.tools.ctl import ctl, ctl_json, held, is_locked, tree, two_disks
from tests.whole_refusal import require_whole
from tools.cli.arguments import Exit


def request(*disks: Path, properties: Path | None = None, without: tuple[str, ...] = ()) -> BrokerRequest:
    if properties is not None:
        return BrokerRequest(server_properties=str(properties), skipped=without)
    return BrokerRequest(log_dirs=",".join(map(str, disks)), skipped=without)


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    found = two_disks(tmp_path)
    assert ctl("init", "--log-dirs", f"{found[0]},{found[1]}", "--apply").status == Exit.DONE
    return found


def test_a45_a_server_properties_that_is_edited_stops_the_next_batch(disks: tuple[Path, Path], tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    whole = f"node.id=1\nlog.dirs={disks[0]},{disks[1]}\nbroker.rack=a\n"
    properties.write_text(whole)
    with opened(request(properties=properties), changes=True) as broker:
        with broker.batch():
            pass
        for edited, found in (
            (whole.replace(f",{disks[1]}", ""), f"log.dirs={disks[0]}"),
            (whole.replace("node.id=1", "node.id=2"), "node.id=2"),
            (whole + f"metadata.log.dir={disks[1]}\n", f"metadata.log.dir={disks[1]}"),
            ("log.dirs=\n", "no path"),
        ):
            properties.write_text(edited)
            with pytest.raises(RefusedError) as raised, broker.batch():
                pytest.fail("a batch on an old list of log dirs")
            require_whole(
                raised.value,
                Why.CONFIGURATION_CHANGED,
                path=str(properties),
                expected="log.dirs, node.id and metadata.log.dir as when the command began",
                found=found,
                fix="nothing more was changed; check the file, then repeat the command",
            )
        properties.write_text(whole.replace("rack=a", "rack=b"))
        with broker.batch():
            pass
        properties.unlink()
        with pytest.raises(RefusedError), broker.batch():
            pytest.fail("a batch without a configuration")


def test_a19_owner_locks_are_for_life_and_kafkas_for_a_batch(disks: tuple[Path, Path]) -> None:
    with opened(request(*disks), changes=True) as broker:
        with pytest.raises(WorkRootOwnedError), opened(request(*disks), changes=True):
            pytest.fail("two owners")
        with opened(request(*disks), changes=False):
            pass  # who only looks needs no lock
        with broker.batch() as batch:
            assert batch.log_dirs == tuple(map(str, disks))
            assert not batch.expired(batch.began_boottime_ms + BATCH_MS - 1)
            assert batch.expired(batch.began_boottime_ms + BATCH_MS)
            for disk in disks:
                assert is_locked(disk / ".lock")
        assert not is_locked(disks[0] / ".lock")
        with held(disks[1] / ".lock"), pytest.raises(LockHeldError, match="pid"), broker.batch():
            pytest.fail("beside a broker")
    with opened(request(*disks), changes=True):
        pass


@pytest.mark.parametrize("is_put_back", [False, True], ids=["gone", "put back"])
def test_a19_nobody_goes_on_under_an_owner_lock_that_has_lost_its_name(
    disks: tuple[Path, Path], is_put_back: bool
) -> None:
    lock = Path(f"{disks[1]}.logdird/owner.lock")
    with opened(request(*disks), changes=True) as broker, unlocked(broker) as held_by_none:
        held_by_none.require_held()
        lock.unlink()
        if is_put_back:
            assert ctl("init", "--log-dirs", disks[1], "--apply").status == Exit.DONE
        with pytest.raises(LogDirReplacedError), broker.batch():
            pytest.fail("a batch under no lock")
        with pytest.raises(LogDirReplacedError):
            held_by_none.require_held()


def test_a26_a_log_dir_that_was_replaced_stops_the_batch(disks: tuple[Path, Path], tmp_path: Path) -> None:
    with opened(request(*disks), changes=True) as broker:
        disks[1].rename(tmp_path / "away")
        log_dir(disks[1])
        with pytest.raises((LogDirReplacedError, LockHeldError)), broker.batch():
            pytest.fail("on another directory")


def test_a25_log_dirs_of_two_brokers_and_dead_ones_are_refused(disks: tuple[Path, Path], tmp_path: Path) -> None:
    other = log_dir(tmp_path / "other", node=2)
    ctl("init", "--log-dirs", other, "--apply")
    with pytest.raises(ForeignLogDirError), opened(request(disks[0], other), changes=True):
        pytest.fail("two brokers as one")
    dead = tmp_path / "dead"
    with pytest.raises(LogDirOfflineError), opened(request(disks[0], dead), changes=True):
        pytest.fail("a dead disk nobody spoke of")
    with pytest.raises(ConfigError), opened(request(disks[0], without=(str(dead),)), changes=True):
        pytest.fail("a disk that is none of the broker's")
    with pytest.raises(RefusedError), opened(request(dead, without=(str(dead),)), changes=True):
        pytest.fail("no disk at all")
    with opened(request(disks[0], dead, without=(str(dead),)), changes=True) as broker:
        assert (broker.missing, [open_dir.log_dir for open_dir in broker.open_dirs]) == ((str(dead),), [str(disks[0])])


def test_a07_a_file_system_that_is_not_on_the_list_is_refused_at_every_start(
    disks: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A work root does not vouch for the disk it was carried to, but for the operator's word at its making."""
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    monkeypatch.setattr("logdir.service.log_dirs.open_broker.fs_type_at", lambda path: "nfs4")
    before = tree(*disks)
    said = ctl("stage", "pay", "--even-if-unknown", *named, "--apply")
    assert (said.status, "--even-on-unsupported-fs" in said.err) == (Exit.REFUSED, True)
    assert tree(*disks) == before
    assert ctl("init", *named, "--even-on-unsupported-fs", "--apply").status == Exit.DONE
    assert ctl("stage", "pay", "--even-if-unknown", *named, "--apply").status == Exit.DONE


@pytest.mark.parametrize(
    ("name", "newer"), [("controller.json", 2), ("heartbeat.json", 2), ("staging-limit.json", 2), ("work-root.json", 3)]
)
def test_a_file_of_a_newer_release_is_refused_by_name(
    disks: tuple[Path, Path], tmp_path: Path, name: str, newer: int
) -> None:
    kind = name.removesuffix(".json").replace("-", "_")
    (tmp_path / "d2.logdird" / name).write_bytes(own_json.render(kind, newer, {"x": 1}))
    before = tree(tmp_path)
    with pytest.raises(UnsupportedVersionError, match=name), opened(request(*disks), changes=True):
        pytest.fail("a guess")
    said = ctl(
        "stage", "pay", "--even-if-unknown", "--log-dirs", f"{disks[0]},{disks[1]}", "--apply", "--even-over-limit"
    )
    assert (said.status, "unsupported-version" in said.err) == (Exit.PROBLEMS, True)
    assert tree(tmp_path) == before


def test_many_replicas_are_staged_in_several_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    disks = two_disks(tmp_path, replicas=12)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    ctl("init", *named, "--apply")
    before = tree(*disks)
    batches = 0

    def expired(self: object, now_boottime_ms: int) -> bool:
        nonlocal batches
        batches += 1
        return True

    monkeypatch.setattr(staging, "AT_ONCE", 2)
    monkeypatch.setattr("logdir.service.log_dirs.kafka_locks.HeldLocks.expired", expired)
    assert ctl("stage", "*", "--even-if-unknown", *named, "--apply", "--even-over-limit").status == Exit.DONE
    assert batches > 6
    assert len(os.listdir(tmp_path / "d1.logdird" / "deleting")) == 7
    assert ctl("staged", "restore", "*", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    assert tree(*disks) == before


def test_what_changed_between_plan_and_batch_is_not_swept_along(
    disks: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    real = stage.apply

    def meanwhile(*given: Any) -> object:
        partition(disks[1] / "pay-9")
        return real(*given)

    monkeypatch.setattr(stage, "apply", meanwhile)
    assert ctl("stage", "pay", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    assert (disks[1] / "pay-9").is_dir()
    assert not (disks[1] / "pay-1").exists()


def test_no_layout_is_worked_on_behind_its_start_block_and_a_final_one_has_none(tmp_path: Path) -> None:
    tops = [log_dir(tmp_path / "d1"), log_dir(tmp_path / "d2", directory="AAAAAAAAAAAAAAAAAAAABA")]
    partition(tops[0] / "eX" / f"{TOPIC_ID}_0", topic_name="pay")
    partition(tops[1] / "eX" / f"{TOPIC_ID}_1", topic_name="pay")
    named = ("--log-dirs", f"{tops[0]},{tops[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    for state in sorted(LayoutState, key=lambda one: one is LayoutState.FINAL):
        with ExitStack() as stack:
            open_dirs = [stack.enter_context(open_true_root(HostDisk(), str(top))).open_dir for top in tops]
            (start_block.lift_block if state is LayoutState.FINAL else start_block.set_block)(open_dirs)
        for top in tops:
            (top / "layout.json").write_bytes(layout_file.render(LayoutFile(state, "0" * 64, CLUSTER, 1)))
        before = tree(*tops)
        said = ctl("stage", "pay-1", "--even-if-unknown", *named, "--apply", "--even-over-limit")
        if state is not LayoutState.FINAL:
            assert (said.status, "layout" in said.err) == (Exit.REFUSED, True)
            assert tree(*tops) == before
            continue
        assert said.status == Exit.DONE, said
        status, result = ctl_json("staged", "ls", *named)
        assert (status, [item["state"] for item in result["items"]]) == (Exit.DONE, ["held"])
        said = ctl("staged", "restore", f"{TOPIC_ID}_1", "--even-if-unknown", *named, "--apply")
        assert said.status == Exit.DONE, said
        after = tree(*tops)
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        # The work root is the log dir itself.
        assert {os.path.basename(path) for path in changed} <= {"staging-limit.json", "heartbeat.json"}
