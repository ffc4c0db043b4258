"""Disks that hang, turn read-only, stop answering or end too early while an operation runs: nothing is lost.

A call that hangs is in a sleep that no signal ends: a kill waits for it, and it is still made. The outcome of such a
call is unknown until its process is gone; then recovery starts by looking.

Spec: issue "Build 6", (c); design §2 law 6, §3.4; reliability §4.3, §6.1; attacks A40.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path

import pytest

from logdir.disk.replica.staging import StageItem, stage
from logdir.errors import ReadOnlyDiskError
from tests.crash.recording import Acks
from tests.crash.starts import A, C, Sites, marker_for
from tests.kernel.cuts import Machine, opens, recovered, roots_of, run_to
from tests.kernel.host import KernelHost, seen, world_of
from tests.kernel.images import FILE_SYSTEMS, Mounted
from tests.kernel.operations import kernel_operation, names
from tests.kernel.runner import Runner
from tests.kernel.schedule import SEED
from tests.proof.claims import DISKS_GONE, HUNG_CALLS, SHORT_WRITES
from tests.proof.plugin import Recorder

pytestmark = pytest.mark.root

_PATIENCE_S = 20
_A_WHILE_S = 0.02


@cache
def changing() -> tuple[str, ...]:
    """Return the operations that change anything."""
    return tuple(name for name in names() if kernel_operation(name).calls)


def chosen(count: int, what: str) -> Iterator[tuple[str, str, int]]:
    """Yield operation, file system and the number of a call: operations and file systems take turns."""
    rng = random.Random(f"{SEED} {what}")
    left: list[str] = []
    for number in range(count):
        left = left or rng.sample(changing(), len(changing()))
        name = left.pop()
        yield name, FILE_SYSTEMS[number % len(FILE_SYSTEMS)], rng.randrange(kernel_operation(name).calls)


def _state(pid: int) -> str:
    """Return the state of a process: ``D`` is a sleep that no signal ends, ``Z`` an end nobody has asked for yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or before it was read
        return "Z"


def _await_rest(pid: int) -> str:
    """Return the state of a process once it hangs or has ended."""
    end = time.monotonic() + _PATIENCE_S
    while (state := _state(pid)) not in "DZ" and time.monotonic() < end:
        time.sleep(0.001)
    # It may wait for a moment only, for memory or the like.
    time.sleep(_A_WHILE_S)
    return state if _state(pid) == state else _await_rest(pid)


def test_a40_a_call_that_hangs_is_made_after_the_kill_and_recovered_from(
    machine: Machine, runner: Runner, record_proof: Recorder
) -> None:
    count = HUNG_CALLS.count("frozen disks")
    outcomes: Counter[str] = Counter()
    for name, kind, at in chosen(count, "hung"):
        one = kernel_operation(name)
        with machine.mounted(one, kind) as mounts:
            roots = roots_of(mounts)
            start = world_of(roots)
            runner.start(name, roots, pause=at)
            runner.go()
            runner.wait_paused()
            for mounted in mounts.values():
                mounted.freeze()
            try:
                runner.go()
                hangs = _await_rest(runner.pid) == "D"
                before = seen(world_of(roots))
                runner.kill()
                time.sleep(_A_WHILE_S)
                assert not hangs or _state(runner.pid) == "D", "a kill must not end a call that hangs"
                assert seen(world_of(roots)) == before
            finally:
                for mounted in mounts.values():
                    mounted.thaw()
            ended = runner.ended()
            outcomes["hung and killed" if hangs else "came to their end"] += 1
            outcomes["made after the kill"] += hangs and seen(world_of(roots)) != before
            wrong = recovered(one, start, roots, Acks(ended.said))
            assert not wrong, (name, kind, at, wrong)
    assert outcomes["hung and killed"] > count // 2
    record_proof(HUNG_CALLS, {"frozen disks": count, **outcomes}, seeds=SEED)


def _remount(mounts: Mapping[str, Mounted], at: int, number: int) -> None:
    if number == at:
        for mounted in mounts.values():
            mounted.remount(read_only=True)


def _shut(mounts: Mapping[str, Mounted], at: int, number: int) -> None:
    if number == at:
        for mounted in mounts.values():
            mounted.cut()


def test_a_disk_that_turns_read_only_or_is_gone_amid_an_operation_is_written_no_more(
    machine: Machine, record_proof: Recorder
) -> None:
    count = DISKS_GONE.count("disks")
    outcomes: Counter[str] = Counter()
    for number, (name, kind, at) in enumerate(chosen(count, "gone")):
        one = kernel_operation(name)
        is_shut = number % 2 == 1 and kind != "btrfs"
        with machine.mounted(one, kind) as mounts:
            roots = roots_of(mounts)
            start = world_of(roots)
            acks = Acks()
            interfere = partial(_shut if is_shut else _remount, mounts, at)
            _, error = run_to(one, roots, acks, before=interfere)
            assert not error or "ReadOnlyDiskError" in error or not opens(one, error), error
            outcomes["ended read-only" if error else "had nothing left to write"] += 1
            if is_shut:
                machine.power_cut(mounts, "shutdown")
            else:
                for mounted in mounts.values():
                    mounted.remount(read_only=False)
            wrong = recovered(one, start, roots_of(mounts), acks, error=error if opens(one, error) else "")
            assert not wrong, (name, kind, at, is_shut, wrong)
            outcomes["shut down" if is_shut else "read-only"] += 1
    record_proof(DISKS_GONE, {"disks": count, **outcomes}, seeds=SEED)


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_rename_that_is_lost_is_not_said_to_be_durable(machine: Machine, kind: str) -> None:
    """XFS says so of a directory once it has shut down; whoever believed it would retire the other copy of a move."""
    with machine.mounted(kernel_operation("stage 1"), kind) as mounts:
        host = KernelHost(roots_of(mounts))
        with Sites(host.as_model()) as open_dirs:
            open_dir = open_dirs.of(A)
            open_dir.top.rename(A.path, open_dir.deleting, A.place)
            mounts["/d0"].cut()
            for directory in (open_dir.deleting, open_dir.top):
                with pytest.raises(OSError, match="Input/output"):
                    directory.sync()
            with pytest.raises(OSError, match="Input/output"):
                open_dir.top.sync_disk()
        assert len(host.failed) == 1
        machine.power_cut(mounts, "shutdown")
        assert f"/d0/kafka/{A.path}" in world_of(roots_of(mounts)).tree()


@pytest.mark.parametrize("kind", FILE_SYSTEMS)
def test_a_disk_that_ends_too_early_leaves_the_other_alone(machine: Machine, kind: str) -> None:
    """Reads and writes beyond its new end fail with EIO; the batch of the other disk was done before, and stays."""
    one = kernel_operation("stage 3 on two disks")
    with machine.mounted(one, kind) as mounts:
        host = KernelHost(roots_of(mounts))
        with Sites(host.as_model()) as open_dirs:
            items = {
                part.disk: StageItem(path=part.path, marker=marker_for(open_dirs.of(part), part)) for part in (A, C)
            }
            mounts["/d1"].break_off(64 << 10)
            with pytest.raises(ReadOnlyDiskError):
                stage(open_dirs.of(C), [items[C.disk]])
            calls = len(host.calls)
            outcome = stage(open_dirs.of(A), [items[A.disk]])[0]
            assert outcome.error is None
            assert [call.path for call in host.calls[calls:] if call.path.startswith("/d1")] == []
        tree = world_of({"/d0": str(mounts["/d0"].path)}).tree()
        assert f"/d0/kafka.logdird/deleting/{A.place}/replica.json" in tree


def test_a_short_write_is_finished_or_undone(machine: Machine, runner: Runner, record_proof: Recorder) -> None:
    """One byte of a file arrives, and the next write fails: the size of files is limited from that call on."""
    rng = random.Random(SEED)
    writes = [
        (name, at)
        for name in changing()
        for at, call in enumerate(kernel_operation(name).recorded)
        if call.name == "write"
    ]
    todo = [(*write, for_ever) for write in writes for for_ever in (False, True)]
    rng.shuffle(todo)
    count = SHORT_WRITES.count("short writes")
    assert len(todo) >= count
    for name, at, for_ever in todo[:count]:
        one = kernel_operation(name)
        with machine.mounted(one, "ext4") as mounts:
            roots = roots_of(mounts)
            start = world_of(roots)
            runner.start(name, roots, limit=at, for_ever=for_ever)
            runner.go()
            ended = runner.ended()
            wrong = recovered(one, start, roots, Acks(ended.said), error=ended.error)
            assert not wrong, (name, at, for_ever, wrong)
    record_proof(SHORT_WRITES, {"short writes": count}, seeds=SEED)
