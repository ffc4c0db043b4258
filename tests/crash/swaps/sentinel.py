"""Trees that nobody may touch: what they are, to the last change of an inode, and a watch on what is done to them.

A snapshot tells by the time of an inode's last change whatever was written, renamed, linked, given away or truncated,
and put back again. The watch (inotify) tells what was so much as opened: a link was followed, if only to read.

Spec: reliability §5 "Paths", §7 row 23.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import stat as st
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_EVENT = struct.Struct("iIII")
_WATCHED = {
    0x2: "modified",
    0x4: "attributes changed",
    0x8: "opened for writing",
    0x20: "opened",
    0x40: "moved from",
    0x80: "moved to",
    0x100: "made",
    0x200: "removed",
    0x400: "itself removed",
    0x800: "itself moved",
}
_OVERFLOW = 0x4000
_NONBLOCK = os.O_NONBLOCK | os.O_CLOEXEC


_DIRECTORIES = ("a-0", "deleting", "incoming", "eX", "probe", "spare-inodes", "__cluster_metadata-2147483646")
_FILES = (
    *(
        "meta.properties",
        "start-block.json",
        "layout.json",
        "heartbeat.json",
        "staging-limit.json",
        "reserve",
        "owner.lock",
    ),
    *("log-start-offset-checkpoint", "recovery-point-offset-checkpoint", "work-root.json", "replica.json"),
)


def is_file(name: str) -> bool:
    """Whether a name in the top of a tree is that of a file."""
    return name in _FILES


def make(path: Path) -> None:
    """Make a tree in which everything has a name that an operation of ours may look for."""
    for name in _DIRECTORIES:
        (path / name).mkdir(parents=True)
        for file in ("00000000000000000000.log", "partition.metadata", "replica.json", "replica.new.json"):
            (path / name / file).write_bytes(f"sentinel {name}/{file}".encode() * 20)
    for file in _FILES:
        (path / file).write_bytes(f"sentinel {file}".encode() * 20)


def targets(path: Path) -> tuple[str, ...]:
    """Return where links may lead: the tree itself, and what lies in it."""
    return str(path), *(str(one) for one in sorted(path.iterdir()))


def snapshot(path: Path) -> dict[str, tuple[object, ...]]:
    """Return everything of a tree: kind, owner, links, size, times of change of content and inode, digest."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, names, files in os.walk(path):
        for name in (".", *names, *files):
            one = Path(folder, name)
            said = one.lstat()
            facts = (said.st_ino, said.st_mode, said.st_uid, said.st_gid, said.st_nlink, said.st_size)
            digest = hashlib.sha256(one.read_bytes()).hexdigest() if st.S_ISREG(said.st_mode) else ""
            found[os.path.relpath(one, path)] = (*facts, said.st_mtime_ns, said.st_ctime_ns, digest)
    return found


class Watch:
    """What is done to trees, as the kernel hears it."""

    def __init__(self, trees: Iterable[Path]) -> None:
        """Begin to watch every directory and file of them."""
        self._descriptor = _LIBC.inotify_init1(_NONBLOCK)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        self._paths: dict[int, str] = {}
        mask = sum(_WATCHED)
        # Listed first: who is watched is heard to be listed.
        walks = [list(os.walk(tree)) for tree in trees]
        for one in [
            path for walk in walks for at, _, files in walk for path in (at, *(f"{at}/{file}" for file in files))
        ]:
            number = _LIBC.inotify_add_watch(self._descriptor, os.fsencode(one), mask)
            if number < 0:
                raise OSError(ctypes.get_errno(), "inotify", one)
            self._paths[number] = one

    def close(self) -> None:
        """End watching."""
        os.close(self._descriptor)

    def heard(self) -> Iterator[str]:
        """Yield what was done since it was asked last."""
        while True:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                number, mask, _, size = _EVENT.unpack_from(data, at)
                name = data[at + _EVENT.size : at + _EVENT.size + size].rstrip(b"\0").decode("utf-8", "replace")
                at += _EVENT.size + size
                if mask & _OVERFLOW:
                    yield "more than could be told"
                for bit, word in _WATCHED.items():
                    if mask & bit:
                        yield f"{word}: {self._paths.get(number, '?')}/{name}"


@contextmanager
def watched(trees: Iterable[Path]) -> Iterator[Watch]:
    """Watch trees for as long as the body runs."""
    watch = Watch(list(trees))
    try:
        yield watch
    finally:
        watch.close()
