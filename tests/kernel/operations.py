"""The cases that run on real kernels: those of the registry, and an export, which works outside all log dirs.

Each is what its operation has it be: on what it starts, what it does, what a start does after it was cut off, and who
judges. Nothing of that is said again here.

Not here: running them (``cuts``, ``runner``).

Spec: issue "Build 6", (b) and (c); reliability §4.4.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import NamedTuple, cast

from logdir.disk.kernel.atomic_directory import PARTIAL
from logdir.disk.kernel.host import Call
from logdir.disk.replica.export import MANIFEST, NOTE, export
from logdir.observe.outside import kept_free
from tests.crash.enumerate import Judge, State
from tests.crash.model import ModelHost
from tests.crash.recording import Acks, Recording, record
from tests.crash.starts import FILES, A, Sites, staged
from tests.crash.tree import World
from tests.kernel.host import KernelHost
from tests.logdir.disk import layout_crash as layout
from tests.operations import registry
from tests.operations.operation import Trait


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


def _of_registry(name: str) -> KernelOperation:
    one = registry.case(name)
    is_raw = name in registry.having(Trait.RAW)
    return KernelOperation(name, one.start, one.do, one.recovery, one.holds, is_raw, one.leads_elsewhere)


def names() -> tuple[str, ...]:
    """Return the names of all that the model knows too."""
    return registry.on_kernels()


_COPY = "copy"


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
    return (REAL_ONLY.get(name) or _of_registry)(name)


@functools.cache
def _recorded(name: str) -> Recording:
    one = kernel_operation(name)
    recording = record(one.world(), one.run)
    if recording.error:
        raise AssertionError(f"{name} fails on the model: {recording.error}")
    return recording
