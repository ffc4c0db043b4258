"""One power cut on a real kernel: an operation runs to call ``i``, the power goes, recovery runs, the oracle judges.

The process is stopped before that call as the model stops it: nothing of it changes a disk any more. Then all disks are
cut at once, unmounted, mounted again; what is found is what the kernel and its log recovery made of it. Recovery runs
twice, and the second time must change nothing.

What is not there is what was never sent to the device. A kernel may have sent more by then, of its own accord: so some
cuts flush the log of metadata first (``flushed``), which lets all names survive and no data that was not synced; and
before some a neighbour syncs a file of its own (``neighbour``), which carries names along on ext4 and XFS, but not on
btrfs. A cut may have a second one in its recovery.

Not here: which cuts (``schedule``), what must hold (the oracles of the operations).

Spec: reliability §4.1, §4.4 (L2), §7 row 2.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

from logdir.disk.kernel.host import Call
from tests.crash.enumerate import State
from tests.crash.model import SYNCS, Killed
from tests.crash.recording import Acks, shown
from tests.crash.tree import World
from tests.kernel.fullness import MAKING, UNJUDGED, fill, furnish
from tests.kernel.host import KernelHost, plant, seen, world_of
from tests.kernel.images import Images, Mounted, copy_sparse
from tests.kernel.operations import KernelOperation, kernel_operation

NEIGHBOUR = "neighbour"
METHODS: Mapping[str, tuple[str, ...]] = {
    "ext4": ("shutdown", "flushed", "copy", NEIGHBOUR),
    "xfs": ("shutdown", "flushed", "copy", NEIGHBOUR),
    "btrfs": ("copy", NEIGHBOUR),
}
"""How the power of each file system is cut; btrfs knows no shutdown."""


class Cut(NamedTuple):
    """One cut."""

    file_system: str
    method: str
    operation: str
    after: int
    """How many calls were made."""
    again: int | None = None
    """How many calls the recovery had made when the power was cut again; ``None``: it was not."""
    full: str = ""
    """Of what the disks are full: one of ``fullness.HOWS``, or nothing."""

    def render(self) -> str:
        """Return it as text, for ``parse``."""
        again = "" if self.again is None else f"+{self.again}"
        full = self.full and f" without {self.full}"
        return f"{self.file_system}{full}/{self.method}/{self.after}{again}/{self.operation}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``render`` wrote.

        >>> Cut.parse("xfs/shutdown/3+1/stage 1").again
        1
        """
        disk, method, calls, operation = text.split("/", 3)
        file_system, _, full = disk.partition(" without ")
        after, _, again = calls.partition("+")
        return cls(file_system, method, operation, int(after), int(again) if again else None, full)


class Violation(NamedTuple):
    """What was wrong after a cut."""

    cut: Cut
    messages: tuple[str, ...]
    calls: tuple[Call, ...]
    """Those that were made."""

    def __str__(self) -> str:
        lines = [f"{number:3} {shown(call)}" for number, call in enumerate(self.calls)]
        again = f"    replay: python -m tests.kernel --replay {self.cut.render()!r}"
        return "\n".join([*self.messages, *lines, f"    power cut, {self.cut.file_system}", again])


def shortest(violations: list[Violation]) -> str:
    """Return, of each operation, the violation with the fewest calls, as text."""
    best: dict[str, Violation] = {}
    for found in violations:
        known = best.setdefault(found.cut.operation, found)
        best[found.cut.operation] = min(known, found, key=lambda one: one.cut.after)
    return "\n\n".join([f"{len(violations)} violations, the shortest of each operation:", *map(str, best.values())])


class _Start(NamedTuple):
    """On what an operation starts, on one file system."""

    images: Mapping[str, Path]
    """By what the model calls the disk."""
    world: World


class Outcome(NamedTuple):
    """What a cut left."""

    messages: tuple[str, ...]
    calls: tuple[Call, ...]
    crashed: World


class Machine:
    """Cuts the power again and again; what can be made once is."""

    def __init__(self, images: Images) -> None:
        self._images = images
        self._empty: dict[tuple[str, int, bool], Path] = {}
        self._starts: dict[tuple[str, str, bool], _Start] = {}

    def template(self, file_system: str, disk: int, *, to_fill: bool = False) -> Path:
        """Return the image of an empty file system; no two disks that are mounted together have the same."""
        if (file_system, disk, to_fill) not in self._empty:
            image = self._images.make(file_system, *(MAKING[file_system] if to_fill else ()))
            mounted = self._images.mount(image, file_system)
            for left in mounted.path.iterdir():
                left.rmdir()  # lost+found, which no model has
            mounted.unmount()
            self._empty[file_system, disk, to_fill] = image
        return self._empty[file_system, disk, to_fill]

    def mount_copies(self, images: Mapping[str, Path], file_system: str) -> dict[str, Mounted]:
        """Copy images and mount the copies."""
        mounts = {}
        for name, image in images.items():
            copied = self._images.new("copy.img")
            copy_sparse(image, copied)
            mounts[name] = self._images.mount(copied, file_system)
        return mounts

    @contextmanager
    def mounted(self, one: KernelOperation, file_system: str, *, to_fill: bool = False) -> Iterator[dict[str, Mounted]]:
        """Mount copies of what an operation starts on, by what the model calls them."""
        mounts = self.mount_copies(self.start(one, file_system, to_fill=to_fill).images, file_system)
        try:
            yield mounts
        finally:
            self._images.forget(*mounts.values())

    def start(self, one: KernelOperation, file_system: str, *, to_fill: bool = False) -> _Start:
        """Return on what an operation starts, all of it durable."""
        key = (one.name, file_system, to_fill)
        if key not in self._starts:
            empty = {name: self.template(file_system, disk, to_fill=to_fill) for disk, name in enumerate(one.mounts)}
            mounts = self.mount_copies(empty, file_system)
            roots = roots_of(mounts)
            plant(one.world(), roots)
            if to_fill:
                for mounted in mounts.values():
                    furnish(mounted.path)
            for mounted in mounts.values():
                mounted.sync()
            world = world_of(roots, left_out=UNJUDGED if to_fill else ())
            for mounted in mounts.values():
                mounted.unmount()
            self._starts[key] = _Start({name: mounted.image for name, mounted in mounts.items()}, world)
        return self._starts[key]

    def cut(self, cut: Cut) -> Outcome:
        """Run to a call, cut the power, recover, judge."""
        one = kernel_operation(cut.operation)
        start = self.start(one, cut.file_system, to_fill=bool(cut.full)).world
        left_out = UNJUDGED if cut.full else ()
        acks = Acks()
        with self.mounted(one, cut.file_system, to_fill=bool(cut.full)) as mounts:
            if cut.full:
                for mounted in mounts.values():
                    fill(mounted.path, cut.full)
                    mounted.sync()
            host, error = run_to(one, roots_of(mounts), acks, cut.after)
            self.power_cut(mounts, cut.method)
            crashed = world_of(roots_of(mounts), generation=1, left_out=left_out)
            if cut.again is not None:
                recovery = KernelHost(roots_of(mounts), stop_before=cut.again)
                with suppress(Killed):
                    one.recover(recovery.as_model())
                self.power_cut(mounts, cut.method)
            messages = [f"it fails without any crash: {error}"] if error else []
            if cut.full:
                if not host.is_dead and not one.is_raw and acks.said != one.acknowledged:
                    messages.append(f"on a full disk it says {acks.said}, not {one.acknowledged}")
            elif len(host.calls) != cut.after:
                messages.append(f"unlike the model: it made {len(host.calls)} calls, not {cut.after}")
            messages += recovered(one, start, roots_of(mounts), acks, left_out=left_out)
        return Outcome(tuple(messages), tuple(host.calls), crashed)

    def power_cut(self, mounts: dict[str, Mounted], method: str) -> None:
        """Cut all disks at once, and mount what is left in their places."""
        before = dict(mounts)
        left = {name: self._images.new("cut.img") for name in mounts}
        if method == NEIGHBOUR:
            for mounted in before.values():
                with (mounted.path / NEIGHBOUR).open("xb") as file:
                    file.write(b"its own")
                    file.flush()
                    os.fsync(file.fileno())
        if method == "copy" or any(mounted.kind == "btrfs" for mounted in before.values()):
            for name, mounted in before.items():
                copy_sparse(mounted.image, left[name])
        else:
            for mounted in before.values():
                mounted.cut(log_flush=method == "flushed")
            for name, mounted in before.items():
                mounted.unmount()
                mounted.image.rename(left[name])
        mounts.clear()
        self._images.forget(*before.values())
        for name, mounted in before.items():
            mounts[name] = self._images.mount(left[name], mounted.kind)
            (mounts[name].path / NEIGHBOUR).unlink(missing_ok=True)


def roots_of(mounts: Mapping[str, Mounted]) -> dict[str, str]:
    """Return where each disk of the model is mounted."""
    return {name: str(mounted.path) for name, mounted in mounts.items()}


def _nothing(number: int) -> None:
    """Do nothing."""


def run_to(
    one: KernelOperation,
    roots: Mapping[str, str],
    acks: Acks,
    after: int | None = None,
    before: Callable[[int], None] = _nothing,
) -> tuple[KernelHost, str]:
    """Run an operation until it has made so many calls, or to its end.

    Args:
        one: The operation.
        roots: Where its disks are.
        acks: Told what it acknowledges.
        after: After how many calls it is stopped; ``None``: never.
        before: Told the number of each call before it is made.

    Returns:
        Its host, and with what it failed.
    """
    host = KernelHost(roots, stop_before=after)
    host.before = before
    acks.count = lambda: len(host.calls)
    try:
        one.run(host.as_model(), acks)
    except Killed:
        return host, ""
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        return host, f"{type(error).__name__}: {error}"
    return host, ""


def recovered(
    one: KernelOperation,
    start: World,
    roots: Mapping[str, str],
    acks: Acks,
    *,
    error: str = "",
    left_out: Collection[str] = (),
) -> list[str]:
    """Recover twice, and return what is wrong.

    Args:
        one: The operation that was cut off.
        start: What was there before it.
        roots: Where its disks are.
        acks: What was acknowledged.
        error: With what the operation had ended.
        left_out: Names of entries that nobody is to judge.
    """
    wrong = []
    crashed = world_of(roots, generation=1, left_out=left_out)
    for round_number in range(2):
        host = KernelHost(roots)
        before = seen(world_of(roots, left_out=left_out)) if round_number else {}
        try:
            one.recover(host.as_model())
        except Exception as raised:  # noqa: BLE001 - whatever it is, it is a finding
            wrong.append(f"recovery raises {type(raised).__name__}: {raised}")
            break
        changed = [call for call in host.calls if call.name not in SYNCS]
        if round_number and seen(world_of(roots, left_out=left_out)) != before:
            wrong.append(f"second recovery writes: {shown(changed[0]) if changed else 'something unheard of'}")
    state = State(crashed, world_of(roots, generation=2, left_out=left_out), ("ok",) * len(roots), error=error)
    return wrong + one.judge(start, state, acks)


def opens(one: KernelOperation, error: str) -> bool:
    """Whether what an operation ended with is of its own: one on two disks opens the second when the first is done."""
    return len(one.mounts) < 2 or not error.startswith(("LogDirOfflineError", "OSError"))
