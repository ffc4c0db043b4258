"""The log dirs of one broker opened for a command, and its locks held while something changes.

Opening reads only. A command that changes something takes the owner lock of every work root for as long as it runs, and
Kafka's lock of every log dir in batches of at most two seconds; before each batch the broker's configuration is read
again and every path is compared with what was opened. What an interruption left is finished or undone first. A log dir
may be closed (``closed``): it is looked at, and nothing of it is changed. So is one that is said to have failed as soon
as it takes no lock of ours or no change, as one does that was remounted read-only.

Not here: what is changed, and whether it may be (``logdir.decide``).

Spec: design §2 laws 4, 6, 9; attacks A19, A22, A23, A25, A26, A31, A45.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Concatenate, ParamSpec, TypeVar, cast

from logdir import clock
from logdir.clock import Instant
from logdir.disk.kernel.calls import Disk
from logdir.disk.kernel.file_system import fs_type_at, require_supported_fs
from logdir.disk.record import heartbeat
from logdir.disk.recover_broker import recover_broker
from logdir.disk.root.open_log_dir import LogDirTop, OpenLogDir
from logdir.disk.root.work_root import WorkRoot
from logdir.errors import (
    DiskFullError,
    LogDirError,
    LogDirSuspectError,
    Problem,
    RefusedError,
)
from logdir.observe.facts import LogDirFacts, Replica
from logdir.paths import HEARTBEAT
from logdir.refusal_slug import Why
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.kafka_locks import HeldLocks, hold_all
from logdir.service.log_dirs.last_look import LastLook, Place
from logdir.service.log_dirs.os_errors import map_os_errors_or_quarantine
from logdir.service.log_dirs.ports import BrokerPorts
from logdir.service.log_dirs.quarantine import unlocked
from logdir.service.log_dirs.refill import refill
from logdir.service.log_dirs.request import BrokerRequest
from logdir.worker.look import EVERY_LIVE, Deep
from logdir.worker.remote import gather
from logdir.worker.state import require_owner_lock

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=LogDirTop)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBroker:
    """Open log dirs of one broker."""

    ports: BrokerPorts
    request: BrokerRequest
    all_roots: tuple[WorkRoot, ...]
    missing: tuple[str, ...]
    """Of ``without``: those that did not answer."""
    rootless: tuple[str, ...] = ()
    """Those without a whole work root, where that is allowed."""
    quarantined: dict[str, Problem] = field(default_factory=dict)
    """Log dirs of which nothing may be changed though they answer, or begin to, and why; there may come more."""
    owned: Mapping[str, str] = field(default_factory=dict)
    """The file of the lock of each work root that is owned, by log dir; none where nothing is changed."""
    last_look: LastLook = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "last_look", LastLook(self.ports))

    @property
    def named(self) -> BrokerConfig:
        """Return the broker's configuration."""
        return self.ports.named

    @property
    def without(self) -> frozenset[str]:
        """Return the log dirs that are said to have failed."""
        return self.ports.skipped

    @property
    def notes(self) -> list[Problem]:
        """What is to be known beside the outcome."""
        return self.ports.notes

    @property
    def roots(self) -> tuple[WorkRoot, ...]:
        """Return the open work roots of log dirs that answer."""
        suspect = self.ports.suspect
        return tuple(root for root in self.all_roots if root.open_dir.log_dir not in suspect)

    @property
    def open_dirs(self) -> tuple[OpenLogDir, ...]:
        """Return the log dirs that answer, in the order of the configuration."""
        return tuple(root.open_dir for root in self.roots)

    @property
    def changeable(self) -> tuple[OpenLogDir, ...]:
        """Return those of them that may be changed."""
        return tuple(open_dir for open_dir in self.open_dirs if open_dir.log_dir not in self.quarantined)

    def site_of(self, log_dir: str) -> OpenLogDir:
        """Return one of them.

        Raises:
            KeyError: it did not answer.
        """
        return {open_dir.log_dir: open_dir for open_dir in self.open_dirs}[log_dir]

    def path_of(self, log_dir: str, path: str) -> str:
        """Return an absolute path, for messages: ``Site.path_of`` of a log dir that answers, else below its own."""
        return next(
            (open_dir.path_of(path) for open_dir in self.open_dirs if open_dir.log_dir == log_dir), f"{log_dir}/{path}"
        )

    def look(self, deep: Deep = EVERY_LIVE) -> tuple[LogDirFacts, ...]:
        """Look at every configured log dir; behind a start block node and cluster are the true ones."""
        # What will be changed is looked at again under the locks.
        return self._as_ours(self.last_look.look(deep) if self.owned else self.ports.look(deep))

    def look_again(
        self, deep: Deep, places: Collection[Place], *, named: Iterable[str] = (), partitions: Iterable[int] = ()
    ) -> tuple[LogDirFacts, ...]:
        """Look at every configured log dir under the locks; as ``LastLook.again``."""
        return self._as_ours(self.last_look.again(deep, places, named=named, partitions=partitions))

    def births_of(self, replicas: Iterable[Replica]) -> Mapping[Place, int]:
        """As ``BrokerPorts.births_of``; as ``LastLook.births_of`` where something is changed."""
        return self.last_look.births_of(replicas) if self.owned else self.ports.births_of(replicas)

    def _as_ours(self, facts: Iterable[LogDirFacts]) -> tuple[LogDirFacts, ...]:
        true = {root.open_dir.log_dir: root.belongs.node_id for root in self.roots}
        return tuple(
            replace(one, node_id=true.get(one.log_dir, one.node_id), quarantined=self.quarantined.get(one.log_dir))
            for one in facts
        )

    def run_at(self, call: Callable[Concatenate[S, P], R], open_dir: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Make a call of one log dir where its port makes calls."""
        asked = cast("Callable[Concatenate[OpenLogDir, P], R]", call)  # an open log dir is more than its top
        return self.ports.port(open_dir.log_dir).run_at(asked, *args, **kwargs)

    def on_all(self, call: Callable[[Sequence[OpenLogDir]], R]) -> R:
        """As ``BrokerPorts.on_all``, of those with a work root."""
        return self.ports.on_all({open_dir.log_dir: open_dir for open_dir in self.open_dirs}, call)

    def write_all(self, write: Callable[[Sequence[OpenLogDir]], object]) -> None:
        """Write the same to every log dir that may be changed; again without one that stops answering meanwhile.

        Args:
            write: May be repeated.

        Raises:
            LogDirError: as ``write``, or as ``on_all``.
        """
        self.ports.on_all({open_dir.log_dir: open_dir for open_dir in self.changeable}, write)

    def require_unchanged(self) -> None:
        """Return if the broker's configuration still says what it said.

        Raises:
            RefusedError: it does not, or cannot be read any more.
        """
        try:
            now = self.request.config()
        except LogDirError as error:
            raise _edited(str(self.request.server_properties), error.found) from error
        if now._replace(rack=None) != self.named._replace(rack=None):
            raise _edited(str(self.request.server_properties), f"{', '.join(now.log_dirs)} of node {now.node_id}")

    def require_owned(self) -> None:
        """Return if every work root is still owned: an ``owner.lock`` that was removed may be another's by now.

        Raises:
            LogDirReplacedError: one is not.
        """
        begun = {
            log_dir: self.ports.port(log_dir).begin_opened(require_owner_lock)
            for log_dir in self.owned
            if log_dir not in self.quarantined
        }
        gather(begun.values())
        for log_dir, pending in begun.items():
            with self._map_os_errors(log_dir, self.owned[log_dir]):
                pending.result()

    @contextmanager
    def _map_os_errors(self, log_dir: str, path: str | None = None) -> Iterator[None]:
        """As ``map_os_errors_or_quarantine``; one that stops answering is passed over where it may be."""
        try:
            with map_os_errors_or_quarantine(log_dir, self.without, self._close, path):
                yield
        except LogDirSuspectError as error:
            self.ports.note(error)

    def _close(self, log_dir: str, why: Problem) -> None:
        if log_dir not in self.quarantined:
            self.quarantined[log_dir] = why
            self.notes.append(why)

    @contextmanager
    def batch(self) -> Iterator[HeldLocks]:
        """Hold Kafka's lock in every log dir that answers; begin nothing more once the batch has ``expired``.

        One that is said to have failed, and whose lock cannot be held, is closed.

        Raises:
            LockHeldError: a broker runs.
            RefusedError: as ``require_unchanged``.
            LogDirReplacedError: a path leads elsewhere by now.
            LogDirOfflineError, ReadOnlyDiskError: a log dir does not answer and is not said to have failed.
        """
        self.require_unchanged()
        with hold_all(self.ports, without=self.without, now_boottime_ms=clock.boottime_ms()) as held:
            for root in self.roots:
                with self._map_os_errors(root.open_dir.log_dir):
                    root.require_same(self.disk_of(root.open_dir.log_dir))
                if root.open_dir.log_dir not in held.log_dirs and not self.ports.port(root.open_dir.log_dir).is_suspect:
                    self._close(root.open_dir.log_dir, unlocked(root.open_dir.log_dir))
            self.require_owned()
            yield held
        self.refill()

    @contextmanager
    def batch_after(self, look: Callable[[], object]) -> Iterator[HeldLocks]:
        """As ``batch``, right after a look without the locks: the one under them then finds little that is new.

        Args:
            look: Looks again at what may be changed.
        """
        look()
        with self.batch() as held:
            yield held

    def disk_of(self, log_dir: str) -> Disk:
        """Return what opens directories on the disk of a log dir."""
        return self.ports.port(log_dir).disk

    def recover(self) -> None:
        """Finish or undo what an interruption left, and prove that replicas can be renamed, in one batch.

        Raises:
            LogDirError: as ``batch``, ``prove``, the recoveries and ``BrokerPorts.require_answering``.
        """
        with self.batch():
            for root in self.roots:
                if root.open_dir.log_dir not in self.quarantined:
                    log_dir = root.open_dir.log_dir
                    with self._map_os_errors(log_dir):
                        fs_type = self.ports.port(log_dir).run(fs_type_at, log_dir)
                        require_supported_fs(log_dir, fs_type, unsupported_fs=root.unsupported_fs)
                        root.prove()
            # A log dir that is away or closed may hold the replica that speaks against finishing an adoption.
            is_whole = not (self.missing or self.rootless or self.quarantined or self.without or self.ports.suspect)
            self.notes.extend(
                recover_broker(
                    self.changeable, is_whole=is_whole, map_os_errors=self._map_os_errors, run_at=self.run_at
                ).troubled
            )
        self.ports.require_answering()

    def refill(self) -> None:
        """Put back what a full disk made us give up; what cannot be is noted."""
        refill(self.changeable, self.notes)

    def beat(self, now: Instant) -> None:
        """Fold every heartbeat forward but those of closed disks; of one that is lost is told: nothing is purged there.

        Raises:
            UnsupportedVersionError: a newer release wrote one.
            DiskError: one cannot be written, and its log dir is not said to have failed.
        """
        for open_dir in self.changeable:
            with self._map_os_errors(open_dir.log_dir, open_dir.work.path):
                try:
                    is_lost = heartbeat.beat(open_dir, now) is None
                except DiskFullError:
                    # One that stays behind only makes deadlines later, and to purge is how a full disk gets room.
                    continue
                if is_lost:
                    path = f"{open_dir.work.path}/{HEARTBEAT}"
                    fix = "nothing there is purged until logdirctl init writes it anew"
                    self.notes.append(
                        Problem(Why.HEARTBEAT_LOST.value, path, "a heartbeat", "no file that can be read", fix)
                    )


def _edited(path: str, found: str) -> RefusedError:
    return RefusedError(
        path,
        why=Why.CONFIGURATION_CHANGED,
        expected="log.dirs, node.id and metadata.log.dir as when the command began",
        found=found,
        fix="nothing more was changed; look at the file, then do it again",
    )
