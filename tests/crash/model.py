"""The model disk: ``Disk`` and ``Directory`` in memory, every change numbered, recorded, and made to fail at will.

A host has several file systems, each mounted at a path. Every call that changes something or makes it durable goes
through :meth:`ModelHost.perform`: it is numbered from 0, may be made to fail or to stop the process, and is recorded
even if it fails. The numbers are those an observer of the real disk would count.

Not here: what a call does (``filesystem``), what survives a crash (``persistence``). Permissions are not modelled, nor
other processes; links above a log dir are refused, not followed.

Spec: reliability §4.4; ``logdir.disk.kernel.calls``.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import NamedTuple, Self

from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.host import Call
from logdir.observe.classify import Type
from tests.crash.directory import ModelDirectory, directory_node
from tests.crash.filesystem import FileSystem, failure
from tests.crash.tree import Log, Node, Volume, World

SYNCS = frozenset({"fsync", "fsync-dir", "syncfs"})
_TICK_NS = 1_000_000
_EPOCH_NS = 1_700_000_000 * 10**9
_GENERATION_NS = 3600 * 10**9
_BOOTING_NS = 60 * 10**9


class Killed(BaseException):
    """The process is stopped, in the middle of what it does: not even ``finally`` changes a disk any more."""


class Failure(NamedTuple):
    """What goes wrong."""

    at: int
    """The number of the call, from 0; if ``name`` is set, the number among the calls of that name."""
    errno: int = errno.EIO
    for_ever: bool = False
    """Whether all calls (of that name) after it fail too."""
    name: str = ""
    """Only calls of this name: as in :class:`Call`."""
    is_short: bool = False
    """Whether half of it is done first: half of a file, a directory not yet given away."""


class Record(NamedTuple):
    """One call that was made."""

    call: Call
    errno: int
    """0 if it succeeded."""
    marks: tuple[tuple[int, int], ...]
    """Of each disk, how many edits and syncs there were after it."""

    @property
    def is_change(self) -> bool:
        """Return whether it was to change something, rather than make it durable."""
        return self.call.name not in SYNCS


class ModelHost:
    """A host whose disks are in memory; a :class:`~logdir.disk.kernel.calls.Disk`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.systems = tuple(FileSystem(volume, world.generation) for volume in world.volumes)
        self.records: list[Record] = []
        self.first_marks = self._marks()
        self.failures: list[Failure] = []
        self.kill_at: int | None = None
        """The number of the call before which the process is stopped."""
        self.is_dead = False
        self._counts: dict[str, int] = {}
        self._now_ns = _EPOCH_NS + world.generation * _GENERATION_NS

    @classmethod
    def with_disks(cls, *mounts: str, uid: int = 0, gid: int = 0) -> ModelHost:
        """Return a host with an empty file system mounted at each path, for a process of this owner."""
        volumes = []
        for number, mount in enumerate(mounts):
            top = Node(Type.DIRECTORY, 2, Owner(uid, gid, 0o755), _EPOCH_NS, _EPOCH_NS)
            volumes.append(Volume(mount, 0x800 + number, 2, {2: top}, Log({2: top}, {})))
        return cls(World(tuple(volumes), uid, gid))

    # What kind of boot this is.

    @property
    def rebooted(self) -> bool:
        """Whether the boot changed since the process before this one."""
        return self._world.rebooted

    @property
    def boot_id(self) -> str:
        """As the kernel says it."""
        return f"00000000-0000-4000-8000-{self._world.boot:012d}"

    def boottime_ms(self) -> int:
        """Return the time since boot: a minute at its first process, an hour more for each process after."""
        booted_ns = _EPOCH_NS + self._world.booted * _GENERATION_NS - _BOOTING_NS
        return (self._now_ns - booted_ns) // 10**6

    def now_ms(self) -> int:
        """Return the wall clock: a millisecond for each call, an hour for each process."""
        return self._now_ns // 10**6

    def world(self) -> World:
        """Return what it is now, with what is pending on each disk."""
        return self._world._replace(volumes=tuple(system.volume() for system in self.systems))

    # Building a start.

    def plant(
        self,
        path: str,
        data: bytes = b"",
        *,
        kind: Type = Type.FILE,
        owner: Owner | None = None,
        mtime_ns: int = 0,
    ) -> None:
        """Put an entry there as if it had always been there, with all directories above it; not recorded.

        Args:
            path: Absolute.
            data: Of a file; the target of a symlink.
            kind: What it is.
            owner: Whose; of the process, 0644 or 0755, by default.
            mtime_ns: Last change; some instant before now by default.
        """
        system = self._system(path)
        system.tick_ns = self._now_ns
        mode = 0o755 if kind is Type.DIRECTORY else 0o644
        system.plant(path, kind, data, owner or Owner(self._world.uid, self._world.gid, mode), mtime_ns)
        system.settle()

    # Failing.

    def fail(self, failure: Failure) -> Self:
        """Make a call fail."""
        self.failures.append(failure)
        return self

    def kill(self, at: int) -> Self:
        """Stop the process before the call of this number."""
        self.kill_at = at
        return self

    # The one choke point.

    def _marks(self) -> tuple[tuple[int, int], ...]:
        return tuple((len(system.edits), len(system.syncs)) for system in self.systems)

    def _planned(self, call: Call) -> Failure | None:
        number = len(self.records)
        same = self._counts.get(call.name, 0)
        self._counts[call.name] = same + 1
        for plan in self.failures:
            count = same if plan.name else number
            if plan.name in ("", call.name) and (count == plan.at or (plan.for_ever and count > plan.at)):
                return plan
        return None

    def perform(self, call: Call, system: FileSystem, act: Callable[[], None], short: Callable[[int], None]) -> None:
        """Make one call that changes something or makes it durable.

        Args:
            call: Its name and paths.
            system: Where.
            act: Does it.
            short: Does a part of it and fails with the errno given.

        Raises:
            Killed: The process is to stop here, or has stopped.
            OSError: As the call does, or as planned.
        """
        if self.is_dead or self.kill_at == len(self.records):
            self.is_dead = True
            raise Killed
        self._now_ns += _TICK_NS
        system.tick_ns = self._now_ns
        plan = self._planned(call)
        number = 0
        try:
            if system.status == "absent":
                raise failure(errno.EIO, call.path)
            if plan is None:
                act()
            elif plan.is_short or call.name in SYNCS:
                short(plan.errno)
            else:
                raise failure(plan.errno, call.path)
        except OSError as error:
            number = error.errno or errno.EIO
            raise
        finally:
            self.records.append(Record(call, number, self._marks()))

    # The protocol.

    def _system(self, path: str) -> FileSystem:
        found = [system for system in self.systems if f"{path}/".startswith(f"{system.mount}/")]
        if not found or (best := max(found, key=lambda system: len(system.mount))).status == "absent":
            raise failure(errno.ENOENT, path)
        return best

    def open_top(self, path: str) -> ModelDirectory:
        """Open a directory by its absolute path; no component of it may be a link."""
        if not path.startswith("/"):
            raise ValueError(f"not an absolute path: {path!r}")
        system = self._system(path)
        inode = system.root
        for name in filter(None, path.removeprefix(system.mount).split("/")):
            inode = directory_node(system, inode, name, path).inode
        return ModelDirectory(self, system, inode, path)

    @property
    def process(self) -> Owner:
        """To whom belongs what the process makes."""
        return Owner(self._world.uid, self._world.gid, 0)
