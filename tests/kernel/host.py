"""The real disk under the names of the model: ``/d0`` is a directory of this machine, a tree is read back as a world.

Operations of ``tests.crash`` are given a ``KernelHost`` instead of a ``ModelHost``: they open the same paths, and every
call that changes something is numbered, kept, and may be the one before which the process stops. What they start on is
planted as the model has it, with the inode numbers the kernel gives; what they leave is read into the model's nodes, so
that the oracle of ``tests.crash`` judges both alike.

Not here: mounting and cutting (``images``), which operations (``operations``).

Spec: reliability §4.4; ``logdir.disk.kernel.calls``.
"""

from __future__ import annotations

import errno
import os
import stat as st
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.host import Call, HostDirectory, HostDisk
from logdir.errors import FormatError
from logdir.formats.own import replica_marker
from logdir.observe.classify import Type
from logdir.paths import MARKER_FILE
from tests.crash.model import Killed, ModelHost
from tests.crash.tree import Log, Node, Volume, World

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PERMISSIONS = 0o7777
_TYPES = {st.S_IFDIR: Type.DIRECTORY, st.S_IFREG: Type.FILE, st.S_IFLNK: Type.SYMLINK}


class System(NamedTuple):
    """One file system, as operations ask for it."""

    mount: str
    """As the model calls it."""
    root: str
    """Where it really is."""
    status: str = "ok"


class KernelHost(HostDisk):
    """A host whose disks are directories of this machine; a :class:`~logdir.disk.kernel.calls.Disk`."""

    def __init__(self, roots: Mapping[str, str], *, stop_before: int | None = None) -> None:
        """Make one.

        Args:
            roots: What the model calls each disk, and where it is.
            stop_before: The number of the call, from 0, before which the process is stopped.
        """
        super().__init__(self._heard)
        self.systems = tuple(System(mount, root) for mount, root in roots.items())
        self.calls: list[Call] = []
        self.is_dead = False
        self.before: Callable[[int], None] = lambda number: None
        """Told the number of each call before it is made."""
        self._stop_before = stop_before

    @property
    def rebooted(self) -> bool:
        """Whether the boot changed since the process before this one: the machine goes on, so never."""
        return False

    def as_model(self) -> ModelHost:
        """Return it as what the operations of the model are given: they ask for no more than this has."""
        return cast(ModelHost, self)

    def _heard(self, call: Call) -> None:
        if self.is_dead or self._stop_before == len(self.calls):
            self.is_dead = True
            raise Killed
        self.before(len(self.calls))
        self.calls.append(call)

    def open_top(self, path: str) -> HostDirectory:
        """Open a directory by its path in the model."""
        for system in self.systems:
            if f"{path}/".startswith(f"{system.mount}/"):
                real = system.root + path.removeprefix(system.mount)
                return HostDirectory(os.open(real, _OPEN), path, self)
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)


# Planting.


def plant(world: World, roots: Mapping[str, str]) -> None:
    """Make the trees of a world in empty directories.

    A marker that speaks of an inode of the model speaks of the real one afterwards.
    """
    for volume in world.volumes:
        top = Path(roots[volume.mount])
        inodes = {volume.root: top.stat().st_ino}
        first: dict[int, Path] = {}
        tree = [(top / path.removeprefix(volume.mount).lstrip("/"), node) for path, node in volume.tree()]
        for path, node in tree:
            if node.type is Type.DIRECTORY:
                path.mkdir(exist_ok=node.inode == volume.root)
                inodes[node.inode] = path.stat().st_ino
        for path, node in tree:
            if node.type is Type.DIRECTORY:
                continue
            if node.inode in first:
                path.hardlink_to(first[node.inode])
                continue
            first[node.inode] = path
            if node.type is Type.SYMLINK:
                path.symlink_to(os.fsdecode(node.data))
                continue
            path.write_bytes(_of_inodes(path.name, node.data, inodes))
            _give(path, node)
            os.utime(path, ns=(node.mtime_ns, node.mtime_ns))
        for path, node in reversed(tree):
            if node.type is Type.DIRECTORY:
                _give(path, node)


def _give(path: Path, node: Node) -> None:
    os.chown(path, node.owner.uid, node.owner.gid)
    path.chmod(node.owner.mode)


def _of_inodes(name: str, data: bytes, inodes: Mapping[int, int]) -> bytes:
    if name != MARKER_FILE:
        return data
    with suppress(FormatError):
        marker = replica_marker.parse(data)
        return replica_marker.render(replace(marker, birth_inode=inodes[marker.birth_inode]))
    return data


# Reading back.


def world_of(roots: Mapping[str, str], *, generation: int = 0, left_out: Collection[str] = ()) -> World:
    """Return what lies on the disks, all of it durable.

    Args:
        roots: What the model calls each disk, and where it is.
        generation: Of the process that will work on it, should the model go on from here.
        left_out: Names of entries, anywhere, that nobody is to judge.
    """
    volumes = []
    for number, (mount, root) in enumerate(roots.items()):
        nodes: dict[int, Node] = {}
        top = _read(root, nodes, left_out)
        volumes.append(Volume(mount, 0x800 + number, top, nodes, Log(nodes, {})))
    return World(tuple(volumes), generation=generation, rebooted=generation > 0)


def _read(path: str, nodes: dict[int, Node], left_out: Collection[str]) -> int:
    found = os.lstat(path)
    kind = _TYPES.get(st.S_IFMT(found.st_mode), Type.OTHER)
    data = b""
    entries = {}
    if kind is Type.DIRECTORY:
        names = [name for name in sorted(os.listdir(path)) if name not in left_out]
        entries = {name: _read(f"{path}/{name}", nodes, left_out) for name in names}
    elif kind is Type.FILE:
        with open(path, "rb") as file:
            data = file.read()
    elif kind is Type.SYMLINK:
        data = os.fsencode(Path(path).readlink())
    owner = Owner(found.st_uid, found.st_gid, found.st_mode & _PERMISSIONS)
    nodes[found.st_ino] = Node(
        kind, found.st_ino, owner, found.st_mtime_ns, found.st_ctime_ns, data=data, entries=entries
    )
    return found.st_ino


def seen(world: World) -> dict[str, tuple[object, ...]]:
    """Return all of a world by its names: what a crash may leave of it is compared by this, not by inode numbers."""
    return {path: (node.type, node.owner, node.data) for path, node in world.tree().items()}
