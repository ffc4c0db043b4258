"""A full disk is called one, and what is kept for that day is there again the next time.

Spec: design §2 law 8, §3.2, §3.4; attacks A10.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from logdir.clock import Instant
from logdir.disk.kernel.calls import Owner, Space
from logdir.disk.kernel.host import HostDirectory, HostDisk
from logdir.disk.record import controller, heartbeat, staging_limit
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.work_root import open_root
from logdir.errors import DiskFullError
from logdir.formats.own import controller_file
from logdir.formats.own.staging_limit_file import Count
from tests.builders import log_dir, partition
from tests.tools.ctl import ctl, ctl_json, two_disks
from tools.cli.arguments import Exit

NOW = Instant(boot_id="x", boottime_ms=1, wall_ms=1_700_000_000_000, is_synchronised=False)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A log dir of twenty replicas with its work root."""
    made = log_dir(tmp_path / "d1")
    for number in range(20):
        partition(made / f"pay-{number}")
    assert ctl("init", "--log-dirs", made, "--apply").status == Exit.DONE
    return made


@pytest.fixture
def full(top: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Nothing is kept any more, and files of the names in it take no byte."""
    root = Path(f"{top}.logdird")
    os.truncate(root / "reserve", 0)
    for spare in (root / "spare-inodes").iterdir():
        spare.unlink()
    names: set[str] = set()
    write = HostDirectory.write

    def refusing(self: HostDirectory, name: str, data: bytes, owner: Owner) -> None:
        if name.removesuffix(".tmp").removesuffix(".new.json") in names or name in names:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        write(self, name, data, owner)

    monkeypatch.setattr(HostDirectory, "write", refusing)
    return names


def _site(top: Path, stack: ExitStack) -> OpenLogDir:
    return stack.enter_context(open_root(HostDisk(), str(top))).open_dir


@pytest.mark.parametrize("name", ["staging-limit.json", "heartbeat.json", "controller.json"])
def test_no_record_that_finds_no_room_is_told_as_an_offline_disk(top: Path, full: set[str], name: str) -> None:
    with ExitStack() as stack:
        open_dir = _site(top, stack)
        full.add(name)
        before = Path(open_dir.work.path, name).read_bytes()
        writes: dict[str, Callable[[], object]] = {
            "staging-limit.json": lambda: staging_limit.write_record(
                [open_dir], (Count(instant_ms=6, partitions=1, topics=1),)
            ),
            "heartbeat.json": lambda: heartbeat.beat(open_dir, NOW),
            "controller.json": lambda: controller.write_record([open_dir], controller_file.begin("another", 7)),
        }
        with pytest.raises(DiskFullError) as caught:
            writes[name]()
        assert caught.value.path == f"{open_dir.work.path}/{name}"
        assert "No space left" in caught.value.found
        assert "kernel" not in str(caught.value)
        assert Path(open_dir.work.path, name).read_bytes() == before


def test_no_stage_on_a_full_disk_is_refused_as_an_offline_disk(top: Path, full: set[str]) -> None:
    full |= {"staging-limit.json", "heartbeat.json"}
    status, _ = ctl_json("stage", "pay-0", "--even-if-unknown", "--log-dirs", top, "--apply")
    said = ctl("stage", "pay-0", "--even-if-unknown", "--log-dirs", top, "--apply")
    assert (status, said.status) == (Exit.PROBLEMS, Exit.PROBLEMS)
    (line,) = [line for line in said.err.splitlines() if "No space left" in line]
    assert f"disk-full: {top}.logdird/staging-limit.json: " in line
    assert "kernel" not in said.err
    assert (top / "pay-0").is_dir()


def test_no_replica_that_finds_no_room_for_its_marker_is_undone_without_the_word_full(
    top: Path, full: set[str]
) -> None:
    full |= {"replica.json", "replica"}
    said = ctl("stage", "pay-0", "--even-if-unknown", "--log-dirs", top, "--apply")
    assert said.status == Exit.PROBLEMS
    assert f"disk-full: {top}/pay-0" in said.err
    assert (top / "pay-0").is_dir()


# What is kept for that day.


WORDS: dict[str, tuple[str, ...]] = {
    "stage": ("--even-if-unknown",),
    "staged hold": (),
    "staged purge": ("--even-if-last",),
    "staged restore": ("--even-if-unknown",),
}


def _space(monkeypatch: pytest.MonkeyPatch, free_percent: int) -> None:
    monkeypatch.setattr(HostDirectory, "space", lambda self: Space(free_percent << 30, 1_000_000, 100 << 30, 2_000_000))


def _spend(top: Path) -> Path:
    root = Path(f"{top}.logdird")
    os.truncate(root / "reserve", 0)
    for spare in sorted((root / "spare-inodes").iterdir())[:5]:
        spare.unlink()
    return root


@pytest.mark.parametrize("verb", ["stage", "staged hold", "staged purge", "staged restore"])
def test_a10_the_reserve_is_not_gone_after_the_first_round(
    top: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if verb != "stage":
        assert ctl("stage", "pay-1", "--even-if-unknown", "--log-dirs", top, "--apply").status == Exit.DONE
    for _ in range(3):
        root = _spend(top)
        _space(monkeypatch, 5)
        selector = "pay-0" if verb == "stage" else "pay-1"
        said = ctl(*verb.split(), selector, *WORDS[verb], "--log-dirs", top, "--apply")
        assert "reserve" not in said.err
        assert (root / "reserve").stat().st_size == 4 << 20
        assert (root / "reserve").stat().st_blocks * 512 >= 4 << 20
        assert len(list((root / "spare-inodes").iterdir())) == 64
        if verb != "staged hold":
            break


@pytest.mark.parametrize("verb", ["stage", "staged hold", "staged purge"])
def test_a10_a_reserve_that_cannot_be_refilled_is_not_passed_over_in_silence(
    top: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if verb != "stage":
        assert ctl("stage", "pay-1", "--even-if-unknown", "--log-dirs", top, "--apply").status == Exit.DONE
    root = _spend(top)
    _space(monkeypatch, 4)
    said = ctl(*verb.split(), "pay-0" if verb == "stage" else "pay-1", *WORDS[verb], "--log-dirs", top, "--apply")
    lines = [line for line in said.err.splitlines() if "reserve-spent" in line]
    assert len(lines) == 1, said.err
    assert f": {root}/reserve: " in lines[0]
    assert said.status == Exit.PROBLEMS
    assert (root / "reserve").stat().st_size == 0


def test_a10_a_reserve_that_init_cannot_refill_is_not_passed_over_in_silence(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = _spend(top)
    _space(monkeypatch, 4)
    said = ctl("init", "--log-dirs", top, "--apply")
    assert f"reserve-spent: {root}/reserve: " in said.err
    assert said.status == Exit.PROBLEMS
    _space(monkeypatch, 5)
    assert ctl("init", "--log-dirs", top, "--apply").status == Exit.DONE
    assert (root / "reserve").stat().st_size == 4 << 20


def test_a_plan_refills_nothing(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = _spend(top)
    _space(monkeypatch, 50)
    assert ctl("stage", "pay-0", "--even-if-unknown", "--log-dirs", top).status == Exit.DONE
    assert (root / "reserve").stat().st_size == 0


# A work root that is missing.


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_no_listing_is_silent_of_a_work_root_that_is_missing(tmp_path: Path, form: tuple[str, ...]) -> None:
    one, two = two_disks(tmp_path)
    assert ctl("init", "--log-dirs", f"{one},{two}", "--apply").status == Exit.DONE
    assert (
        ctl("stage", "pay", "--even-if-unknown", "--log-dirs", f"{one},{two}", "--apply", "--even-over-limit").status
        == Exit.DONE
    )
    (tmp_path / "d2.logdird").rename(tmp_path / "away")
    said = ctl("staged", "ls", "--log-dirs", f"{one},{two}", *form)
    assert said.status == Exit.PROBLEMS
    assert f"no-work-root: {two}: " in said.err
    assert f"no-work-root: {one}: " not in said.err


def test_no_listing_of_a_broker_without_any_work_root_says_only_that_nothing_is_staged(tmp_path: Path) -> None:
    one, two = two_disks(tmp_path)
    said = ctl("staged", "ls", "--log-dirs", f"{one},{two}")
    assert said.status == Exit.PROBLEMS
    assert said.err.count("no-work-root") == 2
