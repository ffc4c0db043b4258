"""An export: what it does to a real directory, heard call by call, done again on the model disk and cut off there.

``logdir.disk.kernel.atomic_directory`` writes outside all log dirs, through descriptors of its own: no model disk can
stand in for what it writes to. The calls it makes of ``os`` and of ``HostDisk`` are written down; they are the
operation.

Spec: design §3.3 "Restore" class (c), "one writer for files elsewhere"; reliability §4.4 (prior art: traces).
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from logdir.disk.kernel import atomic_directory
from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.replica.capture import capture
from logdir.disk.replica.capture_item import CaptureItem
from logdir.disk.replica.export import MANIFEST, NOTE, export
from tests.crash.enumerate import State
from tests.crash.model import ModelHost
from tests.crash.recording import Acks
from tests.crash.tree import World
from tests.logdir.disk.rescue import DELAY_MS, DELETED, OLD, instant, make_root, meta, open_site, put, quick_path
from tests.operations import functions
from tests.operations.case import DONE, Case, readable
from tests.operations.operation import Make, Operation, Syncs, Trait
from tests.operations.seeded import Change, Seeded, call, drop, moved, yielding

_FILES = {"00000000000000000000.log": b"first", "partition.metadata": f"version: 0\ntopic_id: {OLD}".encode()}
_NAME = "rescued"
_FILE = Owner(0, 0, 0o600)
_DIRECTORY = Owner(0, 0, 0o700)


class Heard(NamedTuple):
    """One call."""

    call: str
    name: str
    """Of a file in the new directory, or of that in its parent."""
    to: str = ""
    data: bytes = b""


class _Os:
    """The module ``os``, as it is, but for what it writes down."""

    def __init__(self, heard: list[Heard]) -> None:
        self._heard = heard
        self._new: dict[int, str] = {}
        self._synced: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        descriptor = os.open(path, flags, mode, dir_fd=dir_fd)
        if flags & os.O_CREAT:
            self._new[descriptor] = path
        return descriptor

    def _wrote(self, descriptor: int) -> str:
        name = self._new[descriptor]
        if name not in self._synced:
            self._synced.add(name)
            size = os.fstat(descriptor).st_size
            with open(f"/proc/self/fd/{descriptor}", "rb") as file:
                self._heard.append(Heard("write", name, data=file.read(size)))
        return name

    def fsync(self, descriptor: int) -> None:
        self._heard.append(Heard("fsync", self._wrote(descriptor)))
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        if descriptor in self._new:
            self._wrote(descriptor)
            del self._new[descriptor]
        os.close(descriptor)


@functools.cache
def heard() -> tuple[Heard, ...]:
    """Export for real; return what was done outside the log dirs, in order."""
    found: list[Heard] = []

    def tell(call: Call) -> None:
        found.append(Heard(call.name, Path(call.path).name, Path(call.to).name))

    with tempfile.TemporaryDirectory() as made, quick_path(Path(made)) as base:
        put(base / "kafka", {"meta.properties": meta(0)})
        make_root(HostDisk(), str(base / "kafka"))
        put(base / "kafka" / DELETED, _FILES)
        (base / "out").mkdir()
        with open_site(HostDisk(), str(base / "kafka")) as root:
            capture(root.open_dir, [CaptureItem(name=DELETED, delay_ms=DELAY_MS)], instant)
            with (
                mock.patch.object(atomic_directory, "os", _Os(found)),
                mock.patch.object(atomic_directory, "HostDisk", return_value=HostDisk(tell)),
            ):
                export(root.open_dir, f"deleting/{OLD}_0", str(base / "out" / _NAME), ())
        assert sorted(os.listdir(base / "out" / _NAME)) == sorted([*_FILES, MANIFEST, NOTE, "replica.json"])
    assert [one.call for one in found].count("rename") == 1, found
    return tuple(found)


def _run(host: ModelHost, acks: Acks) -> None:
    with host.open_top("/d0/out") as parent:
        made = heard()[0]
        assert made.call == "mkdir", made
        parent.make(made.name, _DIRECTORY)
        with parent.open(made.name) as directory:
            for one in heard()[1:]:
                match one.call:
                    case "write":
                        directory.write(one.name, one.data, _FILE)
                    case "fsync":
                        directory.sync_file(one.name)
                    case "fsync-dir":
                        (parent if one.name == "out" else directory).sync()
                    case "rename":
                        parent.rename(one.name, parent, one.to)
                    case other:
                        raise AssertionError(f"a call that is not known here: {other}")
    acks.ack(DONE)


def _nothing(host: ModelHost) -> None:
    """Nobody recovers a copy: what has its name is whole, anything else is called partial."""


def _judge(before: World, state: State, acks: Acks) -> list[str]:
    tree = state.recovered.tree()
    if not readable(state):
        return []
    if f"/d0/out/{_NAME}" not in tree:
        return ["lost: the copy"] if DONE in acks else []
    files = {path.rpartition("/")[2]: node.data for path, node in tree.items() if path.startswith(f"/d0/out/{_NAME}/")}
    manifest = files.pop(MANIFEST, b"").decode()
    lines = sorted(f"{hashlib.sha256(data).hexdigest()}  {name}" for name, data in files.items())
    if lines != sorted(manifest.splitlines()) or not set(_FILES) < set(files):
        return [f"half: the copy holds {sorted(files)} and a manifest of {len(manifest.splitlines())} lines"]
    return []


def _export(name: str) -> Case:
    host = ModelHost.with_disks("/d0")
    host.plant("/d0/out/neighbour", b"untouched")
    return Case(name, host, _run, _nothing, _judge)


_CASES: dict[str, Make] = {"export": _export}
OPERATIONS = (
    Operation(
        name="export",
        family="copies",
        cases=_CASES,
        traits={Trait.OUTSIDE: ("export",)},
        on_kernels=(),
        syncs=tuple(
            Syncs(of=function, cases=("export",))
            for function in (functions.EXPORT_WRITE, functions.EXPORT_COPY, functions.EXPORT_DIRECTORY)
        ),
        seeded=(
            Seeded(
                name="a copy with its name before it is whole",
                changes=(
                    Change(functions.EXPORT_DIRECTORY, drop(call("sync", nth=1))),
                    Change(functions.EXPORT_DIRECTORY, moved(call("rename"), before=yielding())),
                ),
                tried=("export", "--models", "KJBP"),
                caught_by=frozenset({"K", "J", "B", "P"}),
            ),
        ),
    ),
)
"""The descriptor; on real kernels it has a start and a judge of its own (``tests.kernel.operations``)."""
