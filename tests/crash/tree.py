"""Trees of the model disk as immutable nodes: shared between thousands of states, digested once each.

A node is one inode; directories name their entries by inode number, so hard links and moves need no special case. The
digest of a tree holds names, inode numbers, contents, owners and the times of files; not the times of directories,
which no recovery may rest on.

Not here: how trees change (``filesystem``), which changes survive (``persistence``).

Spec: reliability §4.4 (state).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from logdir.disk.kernel.calls import Owner
from logdir.observe.classify import Type


class Node:
    """One inode as it is at one instant; never changed once made."""

    __slots__ = ("_key", "ctime_ns", "data", "entries", "inode", "mtime_ns", "owner", "type")

    def __init__(
        self,
        kind: Type,
        inode: int,
        owner: Owner,
        mtime_ns: int,
        ctime_ns: int,
        *,
        data: bytes = b"",
        entries: Mapping[str, int] | None = None,
    ) -> None:
        self.type = kind
        self.inode = inode
        self.owner = owner
        self.mtime_ns = mtime_ns
        self.ctime_ns = ctime_ns
        self.data = data
        """Content of a file, target of a symlink."""
        self.entries: Mapping[str, int] = {} if entries is None else entries
        """Names and inode numbers of a directory."""
        self._key = 0

    @property
    def key(self) -> int:
        """A digest of what this node itself says, 128 bits."""
        if not self._key:
            head = f"{self.type.value} {self.inode} {self.owner.uid} {self.owner.gid} {self.owner.mode} "
            if self.type is Type.DIRECTORY:
                body = "".join(f"{name}\0{self.entries[name]}\0" for name in sorted(self.entries))
            else:
                body = f"{self.mtime_ns} {self.ctime_ns} "
            text = (head + body).encode("utf-8", "surrogateescape") + self.data
            self._key = int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "little")
        return self._key


class Edit(NamedTuple):
    """One atomic effect of a call: entries set and removed together, or one change of one inode."""

    tick_ns: int = 0
    touches: frozenset[int] = frozenset()
    """The inodes it makes dirty."""
    slots: tuple[tuple[int, str, int], ...] = ()
    """Directory, name and the inode the name then leads to; 0 for none."""
    inode: int = 0
    """Whose owner, time, size or content changes."""
    owner: Owner | None = None
    mtime_ns: int | None = None
    size_bytes: int | None = None
    data: bytes | None = None
    needs: int = 0
    """The edits, as bits, without which this one cannot be: the same names before it, a directory emptied."""
    roots: int = 0
    """The edits that made the directories it lies in."""


class Sync(NamedTuple):
    """One call that makes something durable."""

    inode: int
    """Of the file or directory; 0 for the whole file system."""
    edits: int
    """How many edits there were when it was called."""
    failed: bool = False


class Log(NamedTuple):
    """What was done to a disk since all of it was last durable."""

    base: Mapping[int, Node]
    """What is durable."""
    births: Mapping[int, Node]
    """The inodes made since, each as it was born."""
    edits: tuple[Edit, ...] = ()
    syncs: tuple[Sync, ...] = ()


class Volume(NamedTuple):
    """One file system at one instant."""

    mount: str
    device: int
    root: int
    nodes: Mapping[int, Node]
    """What a process sees."""
    log: Log
    """Of that, what a power cut may take."""
    status: str = "ok"
    """``ok``, ``absent``, ``read-only`` or ``empty`` (another, empty file system in its place)."""
    capacity_bytes: int = 1 << 40
    capacity_inodes: int | None = None
    """How many files and directories it holds, its top included; ``None``: no end of them."""
    makes_unnamed: bool = True
    """Whether it makes files without a name: all do that we change unasked."""
    folds_case: bool = False
    """Whether names that differ in case are one."""

    def digest(self) -> int:
        """Return a digest of everything reachable from its root."""
        return tree_digest(self.nodes, self.root)

    def durable(self) -> Volume:
        """Return the same with nothing left to lose."""
        return self._replace(log=Log(self.nodes, {}))

    def tree(self) -> Iterator[tuple[str, Node]]:
        """Yield absolute path and node of everything, directories before what is in them, in order of names."""
        pending = [(self.mount, self.root)]
        while pending:
            path, inode = pending.pop()
            node = self.nodes[inode]
            yield path, node
            pending += [(f"{path}/{name}", node.entries[name]) for name in sorted(node.entries, reverse=True)]


class World(NamedTuple):
    """A whole host at one instant: its disks and what boot it is in."""

    volumes: tuple[Volume, ...]
    uid: int = 0
    gid: int = 0
    boot: int = 0
    """Counts the boots."""
    booted: int = 0
    """The generation of the first process of this boot."""
    generation: int = 0
    """Counts the processes, so that no two make inodes of the same number."""
    rebooted: bool = False
    """Whether the boot changed since the process before this one."""

    def digest(self) -> tuple[object, ...]:
        """Return what tells two hosts apart for a recovery."""
        return (
            self.rebooted,
            *((volume.status, volume.digest()) for volume in self.volumes if volume.status != "absent"),
        )

    def tree(self) -> dict[str, Node]:
        """Return every path of every disk that is there."""
        return {path: node for volume in self.volumes if volume.status != "absent" for path, node in volume.tree()}

    def files(self) -> dict[str, bytes]:
        """Return path and content of every regular file."""
        return {path: node.data for path, node in self.tree().items() if node.type is Type.FILE}


def tree_digest(nodes: Mapping[int, Node], root: int) -> int:
    """Return a digest of everything reachable from ``root``: the sum of the nodes' own, once for each name."""
    node = nodes[root]
    total = node.key
    pending = [node]
    while pending:
        for inode in pending.pop().entries.values():
            node = nodes[inode]
            total += node._key or node.key
            if node.entries:
                pending.append(node)
    return total % (1 << 128)


def step(node: Node, edit: Edit, half: bool = False) -> Node:
    """Return what an edit that touches a node makes of it.

    Args:
        node: Before.
        edit: The edit.
        half: Whether only the first half of its data arrived.
    """
    entries, data, mtime_ns, owner = node.entries, node.data, node.mtime_ns, node.owner
    slots = [slot for slot in edit.slots if slot[0] == node.inode]
    if slots:
        changed = dict(entries)
        for _, name, child in slots:
            if child:
                changed[name] = child
            else:
                changed.pop(name, None)
        entries, mtime_ns = changed, edit.tick_ns
    if edit.inode == node.inode:
        if edit.owner is not None:
            owner = edit.owner
        if edit.data is not None:
            data, mtime_ns = edit.data[: len(edit.data) // 2] if half else edit.data, edit.tick_ns
        if edit.size_bytes is not None:
            data, mtime_ns = data[: edit.size_bytes], edit.tick_ns
        if edit.mtime_ns is not None:
            mtime_ns = edit.mtime_ns
    return Node(node.type, node.inode, owner, mtime_ns, edit.tick_ns, data=data, entries=entries)


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits set, lowest first.

    >>> list(bits(0b1010))
    [1, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def union(masks: Iterator[int]) -> int:
    """Return all bits of all masks."""
    return functools.reduce(int.__or__, masks, 0)
