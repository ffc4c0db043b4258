"""One file system of the model: what each call does to it at once, as edits that may later turn out not to be durable.

Every method checks what the kernel checks, in its order, raises the kernel's errno, and otherwise makes a few edits.
``write``, ``make`` and ``adopt`` are several edits, because they are several system calls: a process can be killed
between them. A file is written before it has its name, as ``logdir.disk.kernel.host`` does it. The owner of an inode
that had no name until then is never lost without the name: ext4 and XFS write both through one journal in order, btrfs
logs the inode with the name.

Not here: numbering, recording and failing of calls (``model``).

Spec: reliability §4.4 (state); the errnos of ``logdir.disk.kernel.host``, held against it by ``test_model``.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from logdir.disk.kernel.calls import Owner
from logdir.observe.classify import Type
from tests.crash.tree import Edit, Log, Node, Sync, Volume, bits, step, union

_NAME_BYTES = 255
_INODES_OF_GENERATION = 1_000_000


def failure(number: int, path: str) -> OSError:
    """Return the error of this number, as the kernel's."""
    return OSError(number, os.strerror(number), path)


def _is_too_long(name: str) -> bool:
    # A character is four bytes at most: most names need no encoding to be short enough.
    return len(name) * 4 > _NAME_BYTES and len(os.fsencode(name)) > _NAME_BYTES


class FileSystem:
    """A volume in use."""

    def __init__(self, volume: Volume, generation: int) -> None:
        self._volume = volume
        self.nodes: dict[int, Node] = dict(volume.nodes)
        self.root = volume.root
        self.births = dict(volume.log.births)
        self.edits = list(volume.log.edits)
        self.syncs = list(volume.log.syncs)
        self.links: dict[int, int] = {}
        self._parents: dict[int, int] = {}
        for node in volume.nodes.values():
            for inode in node.entries.values():
                self.links[inode] = self.links.get(inode, 0) + 1
                self._parents[inode] = node.inode
        # By the edits still pending: who last set a name, made a directory, moved a directory.
        self._last: dict[tuple[int, str], int] = {}
        self._born: dict[int, int] = {}
        self._moved: dict[int, int] = {}
        self._removals = 0
        for number, edit in enumerate(self.edits):
            self._note(number, edit)
        self._next = max(generation * _INODES_OF_GENERATION, *self.nodes) + 1
        self.tick_ns = 0

    @property
    def mount(self) -> str:
        """Where it is mounted."""
        return self._volume.mount

    @property
    def status(self) -> str:
        """``ok``, ``absent``, ``read-only`` or ``empty``."""
        return self._volume.status

    @property
    def device(self) -> int:
        """Its number."""
        return self._volume.device

    @property
    def capacity_bytes(self) -> int:
        """How much fits."""
        return self._volume.capacity_bytes

    def volume(self) -> Volume:
        """Return what it is now, with what is pending."""
        log = Log(self._volume.log.base, dict(self.births), tuple(self.edits), tuple(self.syncs))
        return self._volume._replace(nodes=dict(self.nodes), log=log)

    def used_bytes(self) -> int:
        """Return the size of all files that have a name."""
        return sum(len(node.data) for node in self.nodes.values() if node.data and self.links.get(node.inode))

    def free_inodes(self) -> int:
        """Return how many more files and directories can be made."""
        if self._volume.capacity_inodes is None:
            return 1 << 20
        return max(0, self._volume.capacity_inodes - 1 - sum(map(bool, self.links.values())))

    # Looking.

    def is_removed(self, directory: int) -> bool:
        """Return whether a directory has no name any more."""
        return directory != self.root and not self.links.get(directory)

    def find(self, directory: int, name: str, path: str) -> Node:
        """Return the node of an entry."""
        if _is_too_long(name):
            raise failure(errno.ENAMETOOLONG, path)
        inode = self._entry(directory, name)
        if inode is None:
            raise failure(errno.ENOENT, path)
        return self.nodes[inode]

    def _entry(self, directory: int, name: str) -> int | None:
        entries = self.nodes[directory].entries
        if self._volume.folds_case:
            return next((inode for known, inode in entries.items() if known.lower() == name.lower()), None)
        return entries.get(name)

    def regular(self, directory: int, name: str, path: str) -> Node:
        """Return the node of a regular file."""
        node = self.find(directory, name, path)
        if node.type is Type.SYMLINK:
            raise failure(errno.ELOOP, path)
        if node.type is not Type.FILE:
            raise failure(errno.EINVAL, path)
        return node

    def link_count(self, node: Node) -> int:
        """Return how many names an inode has, as ``stat`` counts them."""
        if node.type is not Type.DIRECTORY:
            return self.links.get(node.inode, 0)
        inner = sum(self.nodes[inode].type is Type.DIRECTORY for inode in node.entries.values())
        return 0 if self.is_removed(node.inode) else 2 + inner

    # Changing.

    def _writable(self, path: str) -> None:
        if self.status == "read-only":
            raise failure(errno.EROFS, path)

    def _free(self, directory: int, name: str, path: str) -> None:
        """Require that a new name can be made."""
        if _is_too_long(name):
            raise failure(errno.ENAMETOOLONG, path)
        if self._entry(directory, name) is not None:
            raise failure(errno.EEXIST, path)

    def _alive(self, directory: int, path: str) -> None:
        if self.is_removed(directory):
            raise failure(errno.ENOENT, path)

    def _note(self, number: int, edit: Edit) -> None:
        if edit.slots and not any(child for _, _, child in edit.slots):
            self._removals |= 1 << number
        for parent, name, child in edit.slots:
            self._last[parent, name] = number
            if child and self.nodes.get(child, self.births.get(child)) is not None:
                if child in self.births and child not in self._born:
                    self._born[child] = number
                elif self.nodes[child].type is Type.DIRECTORY:
                    self._moved[child] = number

    def _ancestors(self, directory: int) -> Iterable[int]:
        while True:
            yield directory
            if directory == self.root or directory not in self._parents:
                return
            directory = self._parents[directory]

    def _set(self, *slots: tuple[int, str, int], touches: Iterable[int] = (), needs: int = 0) -> None:
        """Make one edit of entries."""
        parents = {parent for parent, _, _ in slots}
        roots = 0
        for parent, name, child in slots:
            if (last := self._last.get((parent, name))) is not None:
                needs |= 1 << last
            if child and self._volume.capacity_inodes is not None and child in self.births and child not in self._born:
                # There is room for what is made because something else is gone.
                needs |= self._removals
            if child:
                roots |= union(1 << self._born[above] for above in self._ancestors(parent) if above in self._born)
        edit = Edit(self.tick_ns, frozenset({*parents, *touches}), slots, needs=needs, roots=roots)
        for parent, name, child in slots:
            old = self.nodes[parent].entries.get(name)
            if old is not None:
                self.links[old] -= 1
            if child:
                self.links[child] = self.links.get(child, 0) + 1
                self._parents[child] = parent
        self._apply(edit)

    def _change(self, edit: Edit) -> None:
        """Make one edit of one inode."""
        self._apply(edit._replace(tick_ns=self.tick_ns, touches=frozenset({edit.inode})))

    def _apply(self, edit: Edit) -> None:
        for inode in edit.touches:
            self.nodes[inode] = step(self.nodes[inode], edit)
        self._note(len(self.edits), edit)
        self.edits.append(edit)

    def _birth(self, kind: Type, owner: Owner, path: str = "") -> int:
        if not self.free_inodes():
            raise failure(errno.ENOSPC, path)
        self._next += 1
        node = Node(kind, self._next, owner, self.tick_ns, self.tick_ns)
        self.nodes[self._next] = self.births[self._next] = node
        return self._next

    def _give(self, inode: int, owner: Owner, uid: int, path: str) -> None:
        found = self.nodes[inode].owner
        if found[:2] != owner[:2]:
            if uid != 0:
                raise failure(errno.EPERM, path)
            self._change(Edit(inode=inode, owner=Owner(owner.uid, owner.gid, found.mode)))
        if found.mode != owner.mode:
            self._change(Edit(inode=inode, owner=owner))

    def make(self, at: int, name: str, path: str, owner: Owner, process: Owner, *, short: int = 0) -> None:
        """Make a directory; with ``short``, fail with that errno once it is there."""
        self._free(at, name, path)
        self._writable(path)
        self._alive(at, path)
        made = self._birth(Type.DIRECTORY, process._replace(mode=owner.mode & 0o700), path)
        self._set((at, name, made), touches=[made])
        if short:
            raise failure(short, path)
        self._give(made, owner, process.uid, path)

    def write(
        self,
        at: int,
        name: str,
        path: str,
        data: bytes,
        owner: Owner,
        mtime_ns: int | None,
        process: Owner,
        *,
        short: int = 0,
    ) -> None:
        """Make a file; with ``short``, fail with that errno once half of it is there."""
        self._writable(path)
        left = self.capacity_bytes - self.used_bytes()
        fits = data[: len(data) // 2] if short else data[: max(0, left)]
        if self._volume.makes_unnamed:
            if owner[:2] != process[:2] and process.uid != 0:
                raise failure(errno.EPERM, path)
            if short or len(fits) < len(data):
                raise failure(short or errno.ENOSPC, path)
            self._free(at, name, path)
            self._alive(at, path)
            made = self._birth(Type.FILE, owner, path)
        else:
            self._free(at, name, path)
            self._alive(at, path)
            made = self._birth(Type.FILE, process._replace(mode=owner.mode & 0o600), path)
            self._set((at, name, made), touches=[made])
            self._give(made, owner, process.uid, path)
        if fits:
            self._change(Edit(inode=made, data=fits))
        if short or len(fits) < len(data):
            raise failure(short or errno.ENOSPC, path)
        if mtime_ns is not None:
            self._change(Edit(inode=made, mtime_ns=mtime_ns))
        if self._volume.makes_unnamed:
            self._set((at, name, made), touches=[made])

    def rename(self, at: int, name: str, path: str, to: int, new_name: str, new_path: str) -> None:
        """Rename an entry, never over another."""
        self._writable(path)
        node = self.find(at, name, path)
        self._free(to, new_name, new_path)
        above = list(self._ancestors(to))
        if node.inode in above:
            raise failure(errno.EINVAL, path)
        self._alive(to, new_path)
        needs = 0
        if node.type is Type.DIRECTORY:
            # Else two moves, each with its own directory, could close a circle that was never there.
            needs = union(1 << self._moved[inode] for inode in above if inode in self._moved)
        self._set((at, name, 0), (to, new_name, node.inode), touches=[node.inode], needs=needs)

    def replace(self, at: int, name: str, new_name: str, path: str) -> None:
        """Rename an entry within a directory over another, as rename(2) does."""
        self._writable(path)
        node = self.find(at, name, path)
        if _is_too_long(new_name):
            raise failure(errno.ENAMETOOLONG, path)
        victim = self.nodes.get(self.nodes[at].entries.get(new_name, 0))
        if victim is None:
            self._alive(at, path)
            self._set((at, name, 0), (at, new_name, node.inode), touches=[node.inode])
            return
        if victim.inode == node.inode:
            return
        self._replaceable(node, victim, path)
        needs = self._emptied(victim.inode)
        self._set((at, name, 0), (at, new_name, node.inode), touches=[node.inode, victim.inode], needs=needs)

    def _replaceable(self, node: Node, victim: Node, path: str) -> None:
        is_directory = node.type is Type.DIRECTORY
        if is_directory != (victim.type is Type.DIRECTORY):
            raise failure(errno.ENOTDIR if is_directory else errno.EISDIR, path)
        if victim.entries:
            raise failure(errno.ENOTEMPTY, path)

    def _emptied(self, directory: int) -> int:
        """Return the edits by which a directory became empty."""
        return union(1 << number for (parent, _), number in self._last.items() if parent == directory)

    def link(self, at: int, name: str, path: str, to: int, new_name: str, new_path: str) -> None:
        """Give a file a second name."""
        node = self.find(at, name, path)
        self._free(to, new_name, new_path)
        self._writable(path)
        self._alive(to, new_path)
        if node.type is Type.DIRECTORY:
            raise failure(errno.EPERM, path)
        self._set((to, new_name, node.inode), touches=[node.inode])

    def unlink(self, at: int, name: str, path: str) -> None:
        """Remove a name that is no directory's."""
        self._writable(path)
        node = self.find(at, name, path)
        if node.type is Type.DIRECTORY:
            raise failure(errno.EISDIR, path)
        self._set((at, name, 0), touches=[node.inode])

    def remove(self, at: int, name: str, path: str) -> None:
        """Remove an empty directory."""
        self._writable(path)
        node = self.find(at, name, path)
        if node.type is not Type.DIRECTORY:
            raise failure(errno.ENOTDIR, path)
        if node.entries:
            raise failure(errno.ENOTEMPTY, path)
        self._set((at, name, 0), touches=[node.inode], needs=self._emptied(node.inode))

    def truncate(self, at: int, name: str, path: str, size_bytes: int) -> None:
        """Make a regular file shorter."""
        node = self.find(at, name, path)
        if node.type is Type.DIRECTORY:
            raise failure(errno.EISDIR, path)
        if node.type is Type.OTHER:
            raise failure(errno.ENXIO, path)
        self.regular(at, name, path)
        self._writable(path)
        if not 0 <= size_bytes <= len(node.data):
            raise failure(errno.EINVAL, path)
        self._change(Edit(inode=node.inode, size_bytes=size_bytes))

    def adopt(self, at: int, name: str, path: str, owner: Owner, process: Owner) -> None:
        """Give an entry an owner and a mode."""
        node = self.find(at, name, path)
        if node.type is Type.SYMLINK:
            raise failure(errno.ELOOP, path)
        if node.owner != owner:
            self._writable(path)
        self._give(node.inode, owner, process.uid, path)

    def sync(self, inode: int, path: str, *, failed: int = 0) -> None:
        """Make a file, a directory or (0) all of it durable; ``failed`` loses it instead, once, with that errno."""
        self.syncs.append(Sync(inode, len(self.edits), bool(failed)))
        if failed:
            raise failure(failed, path)

    # Building a start.

    def plant(self, path: str, kind: Type, data: bytes, owner: Owner, mtime_ns: int) -> None:
        """Put an entry there as if it had always been there; directories above it are made."""
        *above, name = path.removeprefix(self.mount).strip("/").split("/")
        at = self.root
        for part in above:
            found = self.nodes[at].entries.get(part)
            if found is None:
                found = self._birth(Type.DIRECTORY, owner._replace(mode=owner.mode | (owner.mode & 0o444) >> 2))
                self._set((at, part, found), touches=[found])
            at = found
        made = self._birth(kind, owner)
        self._set((at, name, made), touches=[made])
        node = self.nodes[made]
        self.nodes[made] = Node(kind, made, owner, mtime_ns or node.mtime_ns, node.ctime_ns, data=data)

    def settle(self) -> None:
        """Forget what is pending: all of it is durable."""
        self._volume = self.volume().durable()
        for table in (self.births, self._last, self._born, self._moved):
            table.clear()
        self._removals = 0
        self.edits.clear()
        self.syncs.clear()


def closure(edits: tuple[Edit, ...], mask: int) -> int:
    """Return these edits and all that they need."""
    todo = mask
    while todo:
        more = union(edits[number].needs | edits[number].roots for number in bits(todo)) & ~mask
        mask |= more
        todo = more
    return mask
