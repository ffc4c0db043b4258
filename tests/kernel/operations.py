"""The operations that run on real kernels: those of ``tests.crash``, and those with crash tests of their own.

Each is what its crash test has it be: on what it starts, what it does, what a start does after it was cut off, and who
judges. Nothing of that is said again here.

Not here: running them (``cuts``, ``runner``).

Spec: issue "Build 6", (b) and (c); reliability §4.4.
"""

from __future__ import annotations

import errno
import functools
import hashlib
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

from logdir.disk.kernel.atomic_directory import PARTIAL
from logdir.disk.kernel.host import Call
from logdir.disk.replica.export import MANIFEST, NOTE, export
from logdir.disk.root.probe import NOT_HERE
from logdir.observe.outside import kept_free
from tests.crash import operations as small
from tests.crash.enumerate import Judge, State
from tests.crash.model import ModelHost
from tests.crash.recording import Acks, Recording, record
from tests.crash.starts import FILES, A, Sites, staged
from tests.crash.steps import recover_all
from tests.crash.tree import World
from tests.kernel.host import KernelHost
from tests.logdir.disk import test_layout_crash as layout
from tests.logdir.disk import test_rescue_crash as rescue
from tests.logdir.disk import test_work_root_crash as roots


class KernelOperation(NamedTuple):
    """What is cut off."""

    name: str
    start: ModelHost
    run: Callable[[ModelHost, Acks], None]
    recover: Callable[[ModelHost], None]
    judge: Judge
    is_raw: bool = False
    """It begins with bare calls of a process that was stopped, which nobody makes again on a full disk."""
    leads_elsewhere: frozenset[int] = frozenset()
    """Errors after which it ends well at another place, of which the judge knows nothing."""

    @property
    def mounts(self) -> tuple[str, ...]:
        """What the model calls its disks."""
        return tuple(system.mount for system in self.start.systems)

    @property
    def calls(self) -> int:
        """How many calls it makes, by the model."""
        return len(_recorded(self.name).records)

    @property
    def recorded(self) -> tuple[Call, ...]:
        """Which they are."""
        return tuple(made.call for made in _recorded(self.name).records)

    @property
    def acknowledged(self) -> tuple[str, ...]:
        """What it says, by the model."""
        return _recorded(self.name).acks.said

    def world(self) -> World:
        """Return on what it starts; the process is root."""
        return self.start.world()._replace(uid=0, gid=0)


def _of_crash(name: str) -> KernelOperation:
    one = small.operation(name)
    return KernelOperation(name, one.start, one.run, recover_all, one.judge, name in small.CUT_SHORT)


# Capture and adopt.


def _capture(name: str) -> KernelOperation:
    return KernelOperation(name, rescue._deleted(), rescue._capture, rescue._recover_capture, rescue._judge_capture)


def _adopt(name: str, present: int, *, keep: bool) -> KernelOperation:
    return KernelOperation(
        name,
        rescue._made_anew(present),
        rescue._adopt_on(present, keep=keep),
        rescue._recover_adopt,
        rescue._judge_adopt(present, keep=keep),
    )


# Layout and bar.


def _apply(name: str, broker: str, *, on: bool) -> KernelOperation:
    host = layout.broker(broker)
    plan = layout.planned(host)
    run = layout.acknowledged(lambda host: layout.apply(host, plan))
    if not on:
        return KernelOperation(name, host, run, layout.rollback, layout.judge_back)
    end = layout.ended(host, lambda host: layout.apply(host, plan))
    again = lambda host: layout.apply(host, plan)  # noqa: E731 - the same call, as run and as recovery
    return KernelOperation(name, host, run, again, layout.judge_end(end.world()))


def _back_to(first: World) -> Judge:
    """All is as at first; also before any recovery, once it was acknowledged."""

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = layout.differences(layout.seen(first), layout.seen(state.recovered))
        return wrong + (layout.differences(layout.seen(first), layout.seen(state.crashed)) if "done" in acks else [])

    return judge


def _rollback(name: str, broker: str) -> KernelOperation:
    first = layout.broker(broker)
    plan = layout.planned(first)
    applied = layout.ended(first, lambda host: layout.apply(host, plan))
    return KernelOperation(
        name, applied, layout.acknowledged(layout.rollback), layout.rollback, _back_to(first.world())
    )


def _bar(name: str) -> KernelOperation:
    host = layout.start(disks=2)
    end = layout.ended(host, layout.blocked).world()
    return KernelOperation(name, host, layout.acknowledged(layout.blocked), layout.blocked, layout.judge_end(end))


def _unbar(name: str) -> KernelOperation:
    first = layout.start(disks=2)
    blocked = layout.ended(first, layout.blocked)
    return KernelOperation(
        name, blocked, layout.acknowledged(layout.unbarred), layout.unbarred, _back_to(first.world())
    )


# Work roots.


def _made(shape: str, host: ModelHost, acks: Acks) -> None:
    roots.make(host, shape)
    acks.ack("done")


def _removed(shape: str, host: ModelHost, acks: Acks) -> None:
    roots.remove(host, shape)
    acks.ack("done")


_NOT_HERE = NOT_HERE | {errno.ENOENT, errno.ENOSPC, errno.EDQUOT}
"""With which a place for a work root does not do, so that the next is tried, or which takes the reserve just made."""


def _init(name: str, shape: str) -> KernelOperation:
    start = roots.start(shape)
    end = layout.ended(start, lambda host: roots.make(host, shape)).world()

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        is_whole = roots.is_never_half_and_called_whole(state.crashed, shape)
        wrong = [] if is_whole or "done" not in acks else ["what was reported done was lost"]
        return wrong + layout.differences(layout.untimed(end), layout.untimed(state.recovered))

    recover = lambda host: roots.make(host, shape)  # noqa: E731 - doing it again
    return KernelOperation(name, start, partial(_made, shape), recover, judge, leads_elsewhere=_NOT_HERE)


def _uninit(name: str, shape: str) -> KernelOperation:
    first = roots.start(shape)
    made = layout.ended(first, lambda host: roots.make(host, shape))

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = layout.differences(layout.untimed(first.world()), layout.untimed(state.recovered))
        if "done" in acks:
            wrong += layout.differences(layout.untimed(first.world()), layout.untimed(state.crashed))
        return wrong

    return KernelOperation(name, made, partial(_removed, shape), lambda host: roots.remove(host, shape), judge)


_COPY = "copy"
FACTORIES: dict[str, Callable[[str], KernelOperation]] = {
    # But for those on a file system that makes no file without a name: none of ours is one.
    **{name: _of_crash for name in small.FACTORIES if not name.endswith(", named at once")},
    "capture": _capture,
    "adopt": partial(_adopt, present=0, keep=False),
    "adopt and keep": partial(_adopt, present=0, keep=True),
    "adopt from another disk": partial(_adopt, present=1, keep=False),
    "apply, then back": partial(_apply, broker="three", on=False),
    "apply, then on": partial(_apply, broker="three", on=True),
    "apply on two disks, then back": partial(_apply, broker="two-disks", on=False),
    "apply on two disks, then on": partial(_apply, broker="two-disks", on=True),
    "rollback": partial(_rollback, broker="three"),
    "rollback on two disks": partial(_rollback, broker="two-disks"),
    "bar": _bar,
    "unbar": _unbar,
    "init beside": partial(_init, shape="beside"),
    "init in place": partial(_init, shape="in-place"),
    "init inside": partial(_init, shape="inside"),
    "uninstall a root": partial(_uninit, shape="beside"),
}
"""Name to what makes it."""


# Export: it works outside all log dirs, so the model has none of it.


def _exported(host: ModelHost, acks: Acks) -> None:
    roots = [system.root for system in cast(KernelHost, host).systems]
    with Sites(host) as open_dirs:
        export(open_dirs.of(A), f"deleting/{A.place}", f"{roots[1]}/{_COPY}", kept_free(f"{roots[0]}/kafka"))
    acks.ack("done")


def _judge_export(before: World, state: State, acks: Acks) -> list[str]:
    """The source is as it was; the copy is whole, or has a name that nobody reads."""
    start, after = before.tree(), state.recovered.tree()
    wrong = layout.differences(
        {path: said for path, said in layout.seen(before).items() if path.startswith("/d0")},
        {path: said for path, said in layout.seen(state.recovered).items() if path.startswith("/d0")},
    )
    source = f"/d0/kafka.logdird/deleting/{A.place}"
    # The indexes of the last segment stay behind (design §3.3).
    last = max(name for name in start[source].entries if name.endswith(".log")).removesuffix(".log")
    expected = {
        name: start[f"{source}/{name}"].data
        for name in start[source].entries
        if not (name.startswith(last) and name.endswith("index"))
    }
    for name in after["/d1"].entries:
        if name == _COPY:
            found = {inner: after[f"/d1/{name}/{inner}"].data for inner in after[f"/d1/{name}"].entries}
            note = found.get(NOTE, b"")
            if A.topic.encode() not in note:
                wrong.append(f"half: {NOTE} holds {note!r}")
            listed = [*sorted(expected.items()), (NOTE, note)]
            sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {inner}\n" for inner, data in listed)
            wrong += layout.differences({**expected, NOTE: note, MANIFEST: sums.encode()}, found)
        elif not name.endswith(PARTIAL):
            wrong.append(f"foreign: {name} was made")
    if "done" in acks and _COPY not in after["/d1"].entries:
        wrong.append("lost: an export that was acknowledged")
    return wrong


def _export(name: str) -> KernelOperation:
    host = staged(A, files=tuple(FILES))
    other = ModelHost.with_disks("/d1")
    world = host.world()._replace(volumes=(*host.world().volumes, other.world().volumes[0]))
    return KernelOperation(name, ModelHost(world), _exported, lambda host: None, _judge_export)


REAL_ONLY: dict[str, Callable[[str], KernelOperation]] = {"export": _export}
"""Those that the model does not know."""


@functools.cache
def kernel_operation(name: str) -> KernelOperation:
    """Return the operation of this name."""
    return {**FACTORIES, **REAL_ONLY}[name](name)


@functools.cache
def _recorded(name: str) -> Recording:
    one = kernel_operation(name)
    recording = record(one.world(), one.run)
    if recording.error:
        raise AssertionError(f"{name} fails on the model: {recording.error}")
    return recording
