"""A broker that starts in the middle, and what it must find untouched: A22, A30, A33."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from logdir.disk.replica import staging
from logdir.service.log_dirs import kafka_locks
from tests.builders import TOPIC_ID, partition
from tests.tools.ctl import ctl, ctl_json, held, tree, two_disks
from tools.cli.arguments import Exit

CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
Named = tuple[str, str]


@pytest.fixture
def named(tmp_path: Path) -> Named:
    disks = two_disks(tmp_path, replicas=8)
    for disk in disks:
        for name in CHECKPOINTS:
            (disk / name).write_text("0\n2\nother 0 5\npay 0 3\n")
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    return named


def live(tmp_path: Path) -> set[str]:
    return {path.name for disk in ("d1", "d2") for path in (tmp_path / disk).glob("pay-*")}


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_a22_a_broker_that_starts_between_two_batches_finds_whole_replicas_and_ends_the_command(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """Locks are held for a batch, not for the command: it gets its own, and what is not done is as it was."""
    count = 0
    real = kafka_locks.hold_all
    with ExitStack() as stack:

        def counted(*given: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count == 1 + batch:  # the first is the recovery's
                stack.enter_context(held(tmp_path / "d2" / ".lock"))
            return real(*given, **more)

        monkeypatch.setattr("logdir.service.log_dirs.open_broker.hold_all", counted)
        monkeypatch.setattr(staging, "AT_ONCE", 1)
        monkeypatch.setattr("logdir.service.log_dirs.kafka_locks.HeldLocks.expired", lambda self, now: True)
        before = tree(tmp_path / "d1", tmp_path / "d2")
        said = ctl("stage", "pay", "--even-if-unknown", *named, "--apply")
        assert (said.status, "pid" in said.err) == (Exit.BROKER_RUNS, True)
        after = tree(tmp_path / "d1", tmp_path / "d2")
        assert len(live(tmp_path)) == 8 - (batch - 1)
        assert {path: told for path, told in before.items() if path in after} == after
        assert list(tmp_path.glob("d?/*/replica.json")) == []
    assert ctl("stage", "pay", "--even-if-unknown", *named, "--apply", "--even-over-limit").status == Exit.DONE
    assert live(tmp_path) == set()


@pytest.mark.parametrize(
    "words",
    [
        ("stage", "other", "--even-if-unknown"),
        ("staged", "restore", "pay-0", "--even-if-unknown"),
        ("uninstall", "--restore", "--even-if-unknown"),
    ],
)
def test_a30_no_checkpoint_is_touched_while_a_broker_runs(named: Named, tmp_path: Path, words: tuple[str, ...]) -> None:
    assert ctl("stage", "pay-0", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    for name in CHECKPOINTS:  # the broker wrote it anew, without what is staged
        (tmp_path / "d1" / name).write_text("0\n1\nother 0 9\n")
    before = tree(tmp_path)
    with held(tmp_path / "d2" / ".lock"):
        assert ctl(*words, *named, "--apply").status == Exit.BROKER_RUNS
    assert tree(tmp_path) == before
    assert ctl("staged", "restore", "pay-0", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    for name in CHECKPOINTS:
        assert sorted((tmp_path / "d1" / name).read_text().splitlines()[2:]) == ["other 0 9", "pay 0 3"]
        assert (tmp_path / "d1" / f"{name}.old").read_text() == "0\n1\nother 0 9\n"


def test_a33_a_tiered_replica_is_said_to_be_the_local_part_and_the_index_cache_stays(
    named: Named, tmp_path: Path
) -> None:
    cache = tmp_path / "d1" / "remote-log-index-cache"
    cache.mkdir()
    (cache / f"7_{TOPIC_ID}.index").write_bytes(b"cached")
    partition(tmp_path / "d1" / "tiered-0", topic_id="AAAAAAAAAAAAAAAAAAAAZQ", segments={700: 10})
    (tmp_path / "d1" / "log-start-offset-checkpoint").write_text("0\n1\ntiered 0 5\n")
    before = tree(cache)
    said = ctl("stage", "tiered", "--even-if-unknown", *named, "--apply")
    assert (said.status, "the local part only" in said.out) == (Exit.DONE, True)
    _, result = ctl_json("staged", "ls", *named)
    assert [item["tiered"] for item in result["items"]] == [True]
    (tmp_path / "d1" / "log-start-offset-checkpoint").write_text("0\n0\n")
    said = ctl("staged", "restore", "tiered", "--even-if-unknown", *named, "--apply")
    assert (said.status, "local part only: the rest lay in remote storage" in said.err) == (Exit.DONE, True)
    # Without its log start it would begin at its first local segment, and lose the rest.
    assert "tiered 0 5" in (tmp_path / "d1" / "log-start-offset-checkpoint").read_text()
    assert tree(cache) == before
    assert "remote-log-index-cache" in os.listdir(tmp_path / "d1")
