"""Who swaps what an operation is about to use for a link to a sentinel tree, and swaps it back.

Two of them. One is a process that swaps at any time, as fast as it can (``python -m tests.crash.swaps.attacker``). The
other sits at the door of every call (an observer of ``logdir.disk.kernel.host``): it knows the path that is used next
and swaps one component of it after the operation has looked and before it acts, which the first meets only by chance.

A swap is one call, ``renameat2`` with ``RENAME_EXCHANGE``: at no instant is there nothing. Where there is nothing yet,
a link is put.

Spec: reliability §5 "Paths", §7 row 23; CVE-2022-21658.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import random
import select
import signal
import stat as st
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from logdir.disk.kernel.host import Call
from tests.crash.swaps import sentinel

_LIBC = ctypes.CDLL(None, use_errno=True)
_NOREPLACE = 1
_EXCHANGE = 2
_AT = -100
_PR_SET_PDEATHSIG = 1


_NUMBERS = itertools.count()
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def parent_of(root: str, path: str) -> int:
    """Open the directory a path lies in, through no link: the attacker itself must not touch what it leads others to.

    Args:
        root: Above it, or itself the path.
        path: Absolute.
    """
    if path == root:
        return os.open(os.path.dirname(root), _DIRECTORY)
    descriptor = os.open(root, _DIRECTORY)
    for name in path[len(root) :].strip("/").split("/")[:-1]:
        try:
            inner = os.open(name, _DIRECTORY, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _renamed(parent: int, path: str, other: str, flags: int) -> bool:
    name = os.fsencode(os.path.basename(path))
    return bool(_LIBC.renameat2(_AT, os.fsencode(other), parent, name, flags) == 0)


class Swapper:
    """Swaps, and puts back."""

    def __init__(self, aside: Path, targets: Sequence[str], draw: random.Random) -> None:
        """Begin.

        Args:
            aside: A directory of its own, on the file system of what is attacked.
            targets: Where links may lead: files have a dot or a dash in their names, directories have none.
            draw: Says where.
        """
        self._aside, self._draw = aside, draw
        # Told by their names alone: who asks the kernel about them has touched them.
        self._files = [one for one in targets if sentinel.is_file(os.path.basename(one))]
        self._directories = [one for one in targets if not sentinel.is_file(os.path.basename(one))]
        self.swapped = 0

    def _link(self, path: str) -> str:
        """Make a link aside that leads to something of the same kind."""
        # Never a name again: what could not be put back still lies under one.
        link = str(self._aside / f"{os.getpid()}-{next(_NUMBERS)}")
        is_file = "." in os.path.basename(path) and not path.endswith(".logdird")
        Path(link).symlink_to(self._draw.choice(self._files if is_file else self._directories))
        return link

    def swap(self, root: str, path: str) -> Callable[[], None]:
        """Put a link where something or nothing is; return what puts it back.

        Raises:
            OSError: it cannot be reached without following a link.
        """
        link = self._link(path)
        try:
            parent = parent_of(root, path)
        except OSError:
            _forget(link)
            raise
        is_there = _renamed(parent, path, link, _EXCHANGE)
        is_put = is_there or _renamed(parent, path, link, _NOREPLACE)
        self.swapped += is_put
        if not is_put:
            os.close(parent)
            _forget(link)
            return lambda: None

        def back() -> None:
            # Whatever was put in its place meanwhile goes aside; where there was nothing, our link goes.
            if is_there and not _renamed(parent, path, link, _EXCHANGE):
                _renamed(parent, path, link, _NOREPLACE)
            with suppress(OSError):
                name = os.path.basename(path)
                if not is_there and st.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                    os.unlink(name, dir_fd=parent)
            os.close(parent)
            _forget(link)

        return back


def _forget(path: str) -> None:
    with suppress(OSError):
        Path(path).unlink()


class AtTheDoor:
    """An observer that swaps a component of the path a call is about to use, now and then."""

    def __init__(self, swapper: Swapper, roots: Sequence[str], share: float, draw: random.Random) -> None:
        """Begin.

        Args:
            swapper: Does it.
            roots: The log dirs and work roots: what lies below one may be swapped, and a work root itself.
            share: Of the calls before which something is swapped.
            draw: Which.
        """
        self._swapper, self._roots, self._share, self._draw = swapper, roots, share, draw
        self._backs: list[Callable[[], None]] = []

    def tell(self, call: Call) -> None:
        """Hear of a call that is about to be made."""
        if self._draw.random() >= self._share:
            return
        path = self._draw.choice([call.path, *([call.to] if call.to.startswith("/") else [])])
        for root in self._roots:
            if path == root or path.startswith(f"{root}/"):
                with suppress(OSError):
                    self._backs.append(self._swapper.swap(root, self._draw.choice(self._components(root, path))))

    @staticmethod
    def _components(root: str, path: str) -> list[str]:
        inner = path[len(root) :].strip("/").split("/") if path != root else []
        # A log dir itself is the operator's path; a work root is found by us.
        found = [root] if root.endswith(".logdird") or not inner else []
        return found + [f"{root}/{'/'.join(inner[: n + 1])}" for n in range(len(inner))]

    def settle(self) -> None:
        """Put everything back."""
        while self._backs:
            self._backs.pop()()


def _swap_for_ever(swapper: Swapper, draw: random.Random) -> None:
    """Swap below the roots that are said on a line, until others are; each line is answered when nothing is swapped."""
    roots: Sequence[str] = ()
    while True:
        if not roots or select.select([0], [], [], 0)[0]:
            line = sys.stdin.readline()
            if not line:
                return
            roots = json.loads(line)
            print(swapper.swapped, flush=True)
            continue
        root = draw.choice(roots)
        for path in _some(root, draw):
            with suppress(OSError):
                back = swapper.swap(root, path)
                until = time.monotonic() + draw.choice((0, 0, 0.0002, 0.001))
                while time.monotonic() < until:
                    pass
                back()


def _below(directory: int, path: str, depth: int) -> Iterator[str]:
    """Yield every path below an open directory; no link is followed."""
    for name in os.listdir(directory):
        yield f"{path}/{name}"
        if depth:
            with suppress(OSError):
                inner = os.open(name, _DIRECTORY, dir_fd=directory)
                try:
                    yield from _below(inner, f"{path}/{name}", depth - 1)
                finally:
                    os.close(inner)


def _some(root: str, draw: random.Random) -> list[str]:
    """Return a few paths below a root, and names that may come to be."""
    found = [f"{root}/{name}" for name in ("meta.properties.tmp", "recovery-point-offset-checkpoint.tmp", "eX")]
    if root.endswith(".logdird"):
        found.append(root)
    with suppress(OSError):
        directory = os.open(root, _DIRECTORY)
        try:
            found += _below(directory, root, 2)
        finally:
            os.close(directory)
    found += [f"{os.path.dirname(one)}/{name}" for one in found[4:] for name in ("replica.json", "replica.new.json")]
    return draw.sample(found, min(8, len(found)))


def main(text: str) -> None:
    """Swap until there is no more to read."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    said = json.loads(text)
    draw = random.Random(said["seed"])
    _swap_for_ever(Swapper(Path(said["aside"]), said["targets"], draw), draw)


if __name__ == "__main__":
    main(sys.argv[1])
