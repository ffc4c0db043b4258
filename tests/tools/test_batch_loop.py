"""Commands end where a replica holds what is no regular file, and take no lock without work."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from logdir.disk.replica import staging
from logdir.disk.replica.staging import StageItem
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.service.log_dirs.open_broker import OpenBroker
from tests.builders import TOPIC_ID, partition
from tests.tools.ctl import Said, ctl, ctl_json, two_disks
from tests.tools.reconcile_rig import GONE, Rig, age
from tools.cli.arguments import Exit

Named = tuple[str, str]
pytestmark = pytest.mark.timeout(60)
"""A loop without an end is a failed test soon."""


def a_directory(path: Path) -> None:
    path.mkdir()


def a_link(path: Path) -> None:
    path.symlink_to("00000000000000000000.log")


def a_fifo(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket has a hundred bytes
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


STRANGERS = (a_directory, a_link, a_fifo, a_socket)
"""What law 7 holds a replica for."""
Stranger = Callable[[Path], None]
every_stranger = pytest.mark.parametrize("stranger", STRANGERS, ids=lambda one: one.__name__[2:])


@pytest.fixture
def named(tmp_path: Path) -> Named:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    return named


@contextmanager
def counting_holds(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count how often Kafka's locks are taken."""
    holds: list[int] = []
    real = OpenBroker.batch

    @contextmanager
    def counted(self: OpenBroker) -> Iterator[Any]:
        holds.append(1)
        with real(self) as held:
            yield held

    with monkeypatch.context() as patch:
        patch.setattr(OpenBroker, "batch", counted)
        yield holds


def listed(folder: Path) -> list[tuple[str, int, int]]:
    """Return what is in a folder; nothing is opened: a FIFO would wait."""
    return sorted((path.name, path.lstat().st_ino, path.lstat().st_mtime_ns) for path in folder.iterdir())


def states(result: dict[str, Any]) -> dict[str, str]:
    return {os.path.basename(item["path"]): item["state"] for item in result["items"]}


def names_it(said: Said, path: Path) -> bool:
    """Whether one line, and no other, is about what is in the way."""
    lines = [line for line in said.err.splitlines() if str(path) in line]
    return len(lines) == 1 and not any(
        words in lines[0] for words in ("look again", "it changed", "run the command again")
    )


@every_stranger
def test_no_stage_goes_on_for_ever_over_what_is_no_regular_file(
    stranger: Stranger, named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger(tmp_path / "d1" / "pay-0" / "odd")
    before = listed(tmp_path / "d1" / "pay-0")
    with counting_holds(monkeypatch) as holds:
        said = ctl("stage", "pay", "--even-if-unknown", *named, "--apply")
    assert said.status == Exit.PROBLEMS
    assert names_it(said, tmp_path / "d1" / "pay-0" / "odd"), said.err
    assert listed(tmp_path / "d1" / "pay-0") == before
    assert not (tmp_path / "d1" / "pay-2").exists()
    assert not (tmp_path / "d2" / "pay-1").exists()
    # Recovery, and one batch.
    assert len(holds) == 2


@every_stranger
def test_no_stage_of_held_replicas_alone_takes_the_locks_for_a_batch(
    stranger: Stranger, named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger(tmp_path / "d1" / "pay-0" / "odd")
    with counting_holds(monkeypatch) as holds:
        status, result = ctl_json("stage", "pay-0", "--even-if-unknown", *named, "--apply")
    assert (status, states(result)) == (Exit.REFUSED, {"pay-0": "refused"})
    assert len(holds) == 1


@every_stranger
def test_no_stage_stumbles_over_what_comes_between_its_look_and_its_batch(
    stranger: Stranger, named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "d1" / "pay-2" / "odd"
    real = OpenBroker.batch
    calls: list[int] = []

    @contextmanager
    def meanwhile(self: OpenBroker) -> Iterator[Any]:
        calls.append(1)
        if len(calls) == 2:  # the first is recovery's
            stranger(odd)
        with real(self) as held:
            yield held

    monkeypatch.setattr(OpenBroker, "batch", meanwhile)
    status, result = ctl_json("stage", "pay", "--even-if-unknown", *named, "--apply")
    assert (status, states(result)) == (Exit.PROBLEMS, {"pay-0": "done", "pay-1": "done", "pay-2": "refused"})


@every_stranger
def test_no_reconcile_has_wrong_words_for_what_is_no_regular_file(
    stranger: Stranger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path).with_removal()
    odd = rig.disks[0] / "gone-0" / "odd"
    stranger(odd)
    age(rig.disks[0])
    with counting_holds(monkeypatch) as holds:
        said = rig.reconcile("metadata:", "--apply")
    assert said.status == Exit.PROBLEMS
    assert names_it(said, odd), said.err
    assert rig.deleting() == [f"{GONE}_1"]
    assert odd.parent.is_dir()
    assert len(holds) == 2
    with counting_holds(monkeypatch) as holds:
        again = rig.reconcile("metadata:", "--apply")
    assert again.status == Exit.PROBLEMS
    assert names_it(again, odd), again.err
    assert len(holds) == 1


@every_stranger
def test_no_reconcile_stumbles_over_what_comes_between_its_look_and_its_batch(
    stranger: Stranger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path).with_removal()
    odd = rig.disks[0] / "gone-0" / "odd"
    real = OpenBroker.batch
    calls: list[int] = []

    @contextmanager
    def meanwhile(self: OpenBroker) -> Iterator[Any]:
        calls.append(1)
        if len(calls) == 2:
            stranger(odd)
            age(rig.disks[0])
        with real(self) as held:
            yield held

    monkeypatch.setattr(OpenBroker, "batch", meanwhile)
    said = rig.reconcile("metadata:", "--apply")
    assert said.status == Exit.PROBLEMS
    assert names_it(said, odd), said.err
    assert rig.deleting() == [f"{GONE}_1"]


@every_stranger
@pytest.mark.parametrize(
    ("verb", "more"),
    [("hold", ()), ("restore", ("--even-if-unknown",)), ("purge", ("--even-if-last",))],
    ids=["hold", "restore", "purge"],
)
def test_no_command_about_staged_replicas_goes_on_for_ever_over_what_is_no_regular_file(
    stranger: Stranger,
    verb: str,
    more: tuple[str, ...],
    named: Named,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ctl("stage", "pay", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    odd = tmp_path / "d1.logdird" / "deleting" / f"{TOPIC_ID}_0" / "odd"
    stranger(odd)
    with counting_holds(monkeypatch) as holds:
        said = ctl("staged", verb, "pay", *named, *more, "--apply")
    # Hold writes its marker beside what it does not know.
    assert said.status == (Exit.DONE if verb == "hold" else Exit.PROBLEMS)
    assert os.path.lexists(odd)
    assert verb == "hold" or f"/{TOPIC_ID}_0: " in said.err
    assert len(holds) <= 2
    left = sorted(os.listdir(odd.parents[1]))
    assert left == ([f"{TOPIC_ID}_0", f"{TOPIC_ID}_2"] if verb == "hold" else [f"{TOPIC_ID}_0"])


def test_no_item_of_which_nothing_is_decided_keeps_a_command_from_its_end(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from logdir.decide.stage import plan_stage
    from logdir.service import stage

    calls: list[int] = []

    def forgetful(*given: Any, **named: Any) -> Any:
        calls.append(1)
        plan = plan_stage(*given, **named)
        if len(calls) == 1:
            return plan
        return replace(plan, actions=tuple(one for one in plan.actions if one.path != "pay-2"))

    monkeypatch.setattr(stage, "plan_stage", forgetful)
    status, result = ctl_json("stage", "pay", "--even-if-unknown", *named, "--apply")
    assert (status, states(result)) == (Exit.PROBLEMS, {"pay-0": "done", "pay-1": "done", "pay-2": "undone"})
    assert (tmp_path / "d1" / "pay-2").is_dir()


def test_no_lock_that_was_replaced_between_batches_goes_unnoticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """128 replicas go in the first batch of a hold; before the second ``.lock`` has another inode."""
    disks = two_disks(tmp_path, replicas=0)
    for number in range(130):
        partition(disks[0] / f"pay-{number}")
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    real = staging.stage
    batches: list[int] = []

    def replacing(open_dir: OpenLogDir, items: list[StageItem]) -> Any:
        batches.append(len(items))
        outcomes = real(open_dir, items)
        for disk in disks[1:]:  # of the disk nothing happens on: every lock of the broker counts
            (disk / ".lock").unlink()
            (disk / ".lock").touch()
        return outcomes

    monkeypatch.setattr(staging, "stage", replacing)
    said = ctl("stage", "pay", "--even-if-unknown", *named, "--apply")
    assert batches == [128]
    assert "log-dir-replaced" in said.err
    assert said.status not in (Exit.DONE, Exit.INTERNAL)
    assert sum(path.name.startswith("pay-") for path in disks[0].iterdir()) == 2
