"""Operations of ours, thousands of them, while two attackers swap what they use for links to sentinel trees.

An operation is one that was begun: it may come to its end, or be refused. Refused it is in words: an error of ours or
of the kernel, nothing else. Nothing outside may be touched: one sentinel tree lies on the same file system, where only
the descriptors are in the way, one on another mount, where the kernel is as well.

The log dirs are made anew after a few operations, for what is swapped at the wrong moment stays where it is.

Spec: reliability §5 "Paths", §7 row 23; design §2 law 10.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from logdir.disk.kernel.host import HostDirectory, HostDisk
from logdir.disk.locks import OwnerLock
from logdir.disk.recover_broker import recover_broker
from logdir.disk.replica import purge
from logdir.disk.root.work_root import open_root
from logdir.errors import LogDirError
from tests.crash.soak.broker import Broker, make_log_dirs
from tests.crash.soak.hands import Hands
from tests.crash.soak.progress import Page, Progress
from tests.crash.soak.tasks import one
from tests.crash.soak.worker import STEP_BYTES, instant
from tests.crash.swaps import sentinel
from tests.crash.swaps.attacker import AtTheDoor, Swapper
from tests.operations.registry import kinds

ROOT = Path(__file__).parents[3]
_AT_A_TIME = 40
_SHARE = 0.06
_TESTS = "/tests/crash/"


@dataclass(slots=True)
class Report:
    """What came of it."""

    seed: int
    operations: int = 0
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    """By the error's name."""
    swaps: int = 0
    """At the door; and by the process."""
    swaps_at_any_time: int = 0
    escapes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Errors that are not in words."""

    def totals(self) -> str:
        """Return one line."""
        return (
            f"{self.operations:,} operations, {sum(self.done.values()):,} done, "
            f"{sum(self.refused.values()):,} refused, {self.swaps:,} swaps at the door, "
            f"{self.swaps_at_any_time:,} at any time, {len(self.escapes)} escapes, {len(self.faults)} faults, "
            f"seed {self.seed}"
        )


@contextmanager
def _attacking(aside: Path, targets: Sequence[str], seed: int) -> Iterator[Callable[[Sequence[str]], int]]:
    """Start the other attacker; yield what tells it where, and returns how often it swapped."""
    said = json.dumps({"seed": f"{seed} any", "aside": str(aside), "targets": list(targets)})
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.swaps.attacker", said],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def tell(roots: Sequence[str]) -> int:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(list(roots)) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    try:
        yield tell
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def attack(base: Path, operations: int, seed: int, sentinels: Sequence[Path]) -> Report:
    """Begin so many operations under attack; return what came of them.

    Args:
        base: Where log dirs are made.
        operations: How many.
        seed: Of all that is drawn here; what the process swaps meanwhile is chance.
        sentinels: Trees to make, each in a directory that is there.
    """
    report = Report(seed)
    for tree in sentinels:
        sentinel.make(tree)
    before = [sentinel.snapshot(tree) for tree in sentinels]
    targets = [target for tree in sentinels for target in sentinel.targets(tree)]
    aside = base / "aside"
    (aside / "links").mkdir(parents=True)
    page = Page.make(aside / "page")
    purge_step, purge.STEP_BYTES = purge.STEP_BYTES, STEP_BYTES
    try:
        with sentinel.watched(sentinels) as watch, _attacking(aside / "links", targets, seed) as tell:
            number = 0
            while report.operations < operations:
                _few(base / f"cycle-{number}", aside, page, report, targets, operations, number, tell)
                report.escapes += watch.heard()
                number += 1
    finally:
        purge.STEP_BYTES = purge_step
        page.close()
    for tree, was in zip(sentinels, before, strict=True):
        now = sentinel.snapshot(tree)
        report.escapes += [f"changed: {tree}/{path}" for path in {**was, **now} if was.get(path) != now.get(path)]
    return report


def _few(
    base: Path,
    aside: Path,
    page: Page,
    report: Report,
    targets: Sequence[str],
    limit: int,
    number: int,
    tell: Callable[[Sequence[str]], int],
) -> None:
    """Make log dirs, work on them for a while, and remove them."""
    draw = random.Random(f"{report.seed} {number}")
    log_dirs = make_log_dirs(base, 2)
    broker = Broker(log_dirs, draw)
    for count in range(8):
        disk = draw.randrange(2)
        broker.make(disk, f"t{count}", 0)
        if draw.random() < 0.3:
            broker.delete(f"{log_dirs[disk]}/t{count}-0", draw.choice(("delete", "stray")))
            if draw.random() < 0.5:
                broker.make(disk, f"t{count}", 0)
    roots = [path for top in log_dirs for path in (top, f"{top}.logdird")]
    swapper = Swapper(aside / "links", targets, draw)
    door = AtTheDoor(swapper, sorted(roots, key=len, reverse=True), _SHARE, draw)
    tell(roots)
    try:
        with ExitStack() as stack:
            hands = _opened(stack, HostDisk(door.tell), log_dirs, aside, page, draw, report)
            if hands is not None:
                until = min(report.operations + _AT_A_TIME, limit)
                quiet = 0
                while report.operations < until and quiet < _AT_A_TIME:
                    at = report.operations
                    _one(hands, report, draw)
                    quiet += report.operations == at
                    if draw.random() < 0.5:
                        door.settle()
    finally:
        door.settle()
        report.swaps_at_any_time = tell(())
        report.swaps += swapper.swapped
        shutil.rmtree(base, ignore_errors=True)


def _opened(
    stack: ExitStack,
    disk: HostDisk,
    log_dirs: Sequence[str],
    aside: Path,
    page: Page,
    draw: random.Random,
    report: Report,
) -> Hands | None:
    """Open the work roots as a worker does at its start, and recover; ``None`` if that is refused."""
    said: dict[str, Any] = {}

    def say(what: dict[str, Any]) -> None:
        said.update(what)
        if "begin" in what:
            report.operations += 1
        if "end" in what:
            if what["wrong"]:
                report.refused[what["wrong"][0].partition(":")[0]] += 1
            else:
                report.done[what["end"]] += 1

    try:
        roots = []
        for path in log_dirs:
            root = stack.enter_context(open_root(disk, path))
            assert isinstance(root.open_dir.work, HostDirectory)
            stack.enter_context(OwnerLock.take(root.open_dir.work))
            root.prove()
            roots.append(root)
        hands = Hands(
            disk=disk,
            roots=roots,
            draw=draw,
            now=instant(10_000_000_000),
            aside=aside,
            say=say,
            progress=Progress(page),
        )
        with hands.locked():
            recover_broker(hands.open_dirs, is_whole=True)
    except (LogDirError, OSError) as error:
        report.operations += 1
        report.refused[type(error).__name__] += 1
        return None
    return hands


def _one(hands: Hands, report: Report, draw: random.Random) -> None:
    try:
        one(hands, draw.sample(kinds(), 3))
    except (LogDirError, OSError) as error:
        report.refused[type(error).__name__] += 1
    except Exception as error:  # noqa: BLE001 - what it is, is judged
        # What the worker of the soak takes for granted does not hold here; what our code raises, must be in words.
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        if _TESTS in last and isinstance(error, AssertionError | ValueError):
            report.refused["what the test takes for granted"] += 1
        else:
            report.faults.append("".join(traceback.format_exception(error)))
    if draw.random() < 0.2:
        hands.is_by_id, hands.is_blocked = False, False
