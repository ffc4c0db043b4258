"""The log dirs of one broker opened for a command, and its locks during changes.

Opening only reads. A changing command takes the owner lock of every work root for its whole run, and Kafka's lock of
every log dir in batches of at most two seconds. Before each batch it reads the broker's configuration again and
compares every path with the open directory. Crash recovery comes first. A quarantined log dir (``quarantine``) is read,
but not changed. A log dir that ``--skip-log-dir`` names is quarantined as soon as it cannot be locked or changed, for
example after a read-only remount.

Not here: the changes, and whether they are allowed (``logdir.decide``).

Spec: design §2 laws 4, 6, 9; attacks A19, A22, A23, A25, A26, A31, A45.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Concatenate, ParamSpec, TypeVar, cast

from logdir import clock
from logdir.clock import Instant
from logdir.decide.staged import deadline
from logdir.decide.stale_disk import STALE_DISK
from logdir.disk.kernel.calls import Disk
from logdir.disk.kernel.file_system import fs_type_at, require_supported_fs
from logdir.disk.record import heartbeat
from logdir.disk.recover_broker import recover_broker
from logdir.disk.root.open_log_dir import LogDirTop, OpenLogDir
from logdir.disk.root.work_root import WorkRoot
from logdir.errors import DiskFullError, LogDirError, LogDirSuspectError, Problem, RefusedError, in_words
from logdir.formats.own.heartbeat_file import Heartbeat
from logdir.observe.facts import LogDirFacts, Replica
from logdir.paths import HEARTBEAT
from logdir.refusal_slug import Why
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.glances import Glances
from logdir.service.log_dirs.kafka_locks import HeldLocks, hold_all
from logdir.service.log_dirs.last_look import LastLook, Place
from logdir.service.log_dirs.os_errors import map_os_errors_or_quarantine
from logdir.service.log_dirs.ports import BrokerPorts
from logdir.service.log_dirs.quarantine import unlocked
from logdir.service.log_dirs.refill import refill
from logdir.service.log_dirs.request import BrokerRequest
from logdir.worker.glance import Since, glance
from logdir.worker.look import EVERY_LIVE, Deep
from logdir.worker.port import Pending
from logdir.worker.remote import gather, took_ns
from logdir.worker.state import WorkerState, require_in_place, require_owner_lock

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=LogDirTop)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBroker:
    """The open log dirs of one broker."""

    ports: BrokerPorts
    request: BrokerRequest
    all_roots: tuple[WorkRoot, ...]
    missing: tuple[str, ...]
    """Log dirs that did not answer or could not be opened, and without which the command continues."""
    rootless: tuple[str, ...] = ()
    """Log dirs without a whole work root, if the command allows that."""
    quarantined: dict[str, Problem] = field(default_factory=dict)
    """Quarantined log dirs and why; entries may be added later."""
    unwritten: dict[str, Heartbeat] = field(default_factory=dict)
    """Heartbeats that a full disk kept from being written, by log dir."""
    owned: Mapping[str, str] = field(default_factory=dict)
    """Path of the owner lock file of each log dir; empty if the command changes nothing."""
    last_look: LastLook = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "last_look", LastLook(self.ports))

    @property
    def named(self) -> BrokerConfig:
        """Return the broker's configuration."""
        return self.ports.named

    @property
    def without(self) -> frozenset[str]:
        """Return the log dirs that ``--skip-log-dir`` names."""
        return self.ports.skipped

    @property
    def notes(self) -> list[Problem]:
        """Remarks beside the result."""
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
        """Return the log dirs that answer and may be changed."""
        return tuple(open_dir for open_dir in self.open_dirs if open_dir.log_dir not in self.quarantined)

    def site_of(self, log_dir: str) -> OpenLogDir:
        """Return the open log dir that has a path.

        Raises:
            LogDirSuspectError: the log dir does not answer.
            KeyError: the broker has no such log dir, or it has no work root.
        """
        if log_dir in self.ports.suspect:
            raise LogDirSuspectError.of(self.ports.why_suspect(self.ports.port(log_dir)))
        return {open_dir.log_dir: open_dir for open_dir in self.open_dirs}[log_dir]

    def path_of(self, log_dir: str, path: str) -> str:
        """Return an absolute path, for messages: by ``OpenLogDir.path_of`` if the log dir answers, else below the log
        dir.
        """
        return next(
            (open_dir.path_of(path) for open_dir in self.open_dirs if open_dir.log_dir == log_dir), f"{log_dir}/{path}"
        )

    def look(self, deep: Deep = EVERY_LIVE) -> tuple[LogDirFacts, ...]:
        """Scan every configured log dir; the facts have the broker's own node id, also while a start block is set."""
        # Replicas to change are scanned again under the locks.
        return self._as_ours(self.last_look.look(deep) if self.owned else self.ports.look(deep))

    def look_again(
        self, deep: Deep, places: Collection[Place], *, named: Iterable[str] = (), partitions: Iterable[int] = ()
    ) -> tuple[LogDirFacts, ...]:
        """Scan every configured log dir again under the locks, as ``LastLook.again``."""
        return self._as_ours(self.last_look.again(deep, places, named=named, partitions=partitions))

    def births_of(self, replicas: Iterable[Replica]) -> Mapping[Place, int]:
        """Return creation times as ``BrokerPorts.births_of``, from the cache during a change."""
        return self.last_look.births_of(replicas) if self.owned else self.ports.births_of(replicas)

    def _as_ours(self, facts: Iterable[LogDirFacts]) -> tuple[LogDirFacts, ...]:
        true = {root.open_dir.log_dir: root.belongs.node_id for root in self.roots}
        return tuple(
            replace(one, node_id=true.get(one.log_dir, one.node_id), quarantined=self.quarantined.get(one.log_dir))
            for one in facts
        )

    def begin_at(
        self, call: Callable[Concatenate[S, P], R], open_dir: S, /, *args: P.args, **kwargs: P.kwargs
    ) -> Pending[R]:
        """Start a call of one log dir in its worker."""
        asked = cast("Callable[Concatenate[OpenLogDir, P], R]", call)  # An OpenLogDir also satisfies LogDirTop.
        return self.ports.port(open_dir.log_dir).begin_at(asked, *args, **kwargs)

    def on_all(self, call: Callable[[Sequence[OpenLogDir]], R]) -> R:
        """Run a call over all log dirs with a work root, as ``BrokerPorts.on_all``."""
        return self.ports.on_all({open_dir.log_dir: open_dir for open_dir in self.open_dirs}, call)

    def write_all(self, write: Callable[[Sequence[OpenLogDir]], object]) -> None:
        """Write the same record to every changeable log dir; repeat without a log dir that stops answering.

        Args:
            write: Writes the record; may be repeated.

        Raises:
            LogDirError: as ``write``, or as ``on_all``.
        """
        self.ports.on_all({open_dir.log_dir: open_dir for open_dir in self.changeable}, write)

    def require_unchanged(self) -> None:
        """Check that the broker's configuration, apart from its rack, is as when the command began.

        Raises:
            RefusedError: it was changed, or cannot be read any more.
        """
        try:
            now = self.request.config()
        except LogDirError as error:
            raise _edited(str(self.request.server_properties), error.found) from error
        if now._replace(rack=None) != self.named._replace(rack=None):
            raise _edited(str(self.request.server_properties), _changed(self.named, now))

    def require_owned(self) -> None:
        """Check that every owner lock is still ours: another process may own a recreated ``owner.lock``.

        Raises:
            LogDirReplacedError: an owner lock was replaced.
        """
        self._require(require_owner_lock, self._owned())

    def _owned(self) -> Mapping[str, str]:
        """Return the owner locks that must still be ours: captures are made on a stale disk, too."""
        others = {log_dir for log_dir, why in self.quarantined.items() if why.slug != STALE_DISK}
        return {log_dir: path for log_dir, path in self.owned.items() if log_dir not in others}

    def glance(self, since: Mapping[str, Since], *, is_same_required: bool) -> Glances:
        """Glance at every log dir; return the answers of those that answer.

        Args:
            since: What is known from the last glance, by log dir.
            is_same_required: Whether owner locks and paths are compared with it.

        Raises:
            LogDirError: as ``require_owned``, ``require_in_place``.
        """
        at_ms, owned = clock.boottime_ms(), self._owned() if is_same_required else {}
        begun = {
            port.log_dir: port.begin_opened(
                glance,
                port.log_dir,
                since.get(port.log_dir, Since()),
                is_owner_required=port.log_dir in owned,
                is_place_required=is_same_required,
            )
            for port in self.ports.ports
        }
        gather(begun.values())
        found = {}
        for log_dir, pending in begun.items():
            with self._map_os_errors(log_dir):
                found[log_dir] = pending.result()
        return Glances(at_ms, found, took_ns(begun))

    def require_in_place(self) -> None:
        """Check that the paths of every log dir and its work root still lead to the open directories.

        Raises:
            LogDirReplacedError: a directory was mounted, unmounted or renamed.
        """
        self._require(require_in_place, {root.open_dir.log_dir: root.open_dir.log_dir for root in self.roots})

    def _require(self, call: Callable[[WorkerState], None], paths: Mapping[str, str]) -> None:
        """Make a call on log dirs side by side; ``paths``: what it is about, by log dir."""
        begun = {log_dir: self.ports.port(log_dir).begin_opened(call) for log_dir in paths}
        gather(begun.values())
        for log_dir, pending in begun.items():
            with self._map_os_errors(log_dir, paths[log_dir]):
                pending.result()

    @contextmanager
    def _map_os_errors(self, log_dir: str, path: str | None = None) -> Iterator[None]:
        """Translate errors as ``map_os_errors_or_quarantine``; skip a log dir that stops answering, if the command
        allows that.
        """
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
        """Hold Kafka's lock in every log dir that answers; start no step after the batch has ``expired``.

        A skipped log dir whose lock cannot be held is quarantined.

        Raises:
            LockHeldError: a broker runs.
            RefusedError: as ``require_unchanged``.
            LogDirReplacedError: a path leads to another directory now.
            LogDirOfflineError, ReadOnlyDiskError: a log dir fails and ``--skip-log-dir`` does not name it.
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
        """Hold the locks as ``batch``, right after a scan without locks, so that the scan under the locks finds little
        new.

        Args:
            look: Scans the replicas that may be changed.
        """
        look()
        with self.batch() as held:
            yield held

    def disk_of(self, log_dir: str) -> Disk:
        """Return the disk interface that opens directories of a log dir."""
        return self.ports.port(log_dir).disk

    def recover(self) -> None:
        """Run crash recovery, and prove that replicas can be renamed, in one batch; again if a log dir falls silent.

        Raises:
            LogDirError: as ``batch``, ``prove``, the recoveries and ``BrokerPorts.require_answering``.
        """
        suspect = self.ports.suspect
        try:
            self._recover()
        except RefusedError:
            if self.ports.suspect == suspect:
                raise
            return self.recover()  # The locks were released for a log dir that fell silent: once more, without it.
        return self.ports.require_answering()

    def _recover(self) -> None:
        with self.batch() as held:
            for root in self.roots:
                if (log_dir := root.open_dir.log_dir) not in self.quarantined:
                    held.require_unreleased()  # Another log dir may have kept us waiting.
                    with self._map_os_errors(log_dir):
                        fs_type = self.ports.port(log_dir).run(fs_type_at, log_dir)
                        require_supported_fs(log_dir, fs_type, unsupported_fs=root.unsupported_fs)
                        root.prove()
            # A missing or quarantined log dir may hold the replica that forbids finishing an adoption.
            is_whole = not (self.missing or self.rootless or self.quarantined or self.without or self.ports.suspect)
            held.require_unreleased()
            self.notes.extend(
                recover_broker(
                    self.changeable,
                    is_whole=is_whole,
                    map_os_errors=self._map_os_errors,
                    run_at=lambda call, open_dir: self.begin_at(call, open_dir).result(),
                ).troubled
            )

    def refill(self) -> None:
        """Restore the reserves that a full disk used; failures are noted."""
        refill(self.changeable, self.notes)

    def beat(self, now: Instant) -> None:
        """Advance the heartbeat of every log dir that may be changed; note each lost one: nothing is purged there.

        Raises:
            UnsupportedVersionError: a newer release wrote a heartbeat.
            DiskError: a heartbeat cannot be written, and ``--skip-log-dir`` does not name its log dir.
        """
        for open_dir in self.changeable:
            with self._map_os_errors(open_dir.log_dir, open_dir.work.path):
                if self.beat_of(open_dir, now) is None:
                    self.notes.append(heartbeat_lost(open_dir))

    def beat_of(self, open_dir: OpenLogDir, now: Instant) -> Heartbeat | None:
        """Advance the heartbeat of a log dir; return it, ``None`` if there is none to advance.

        A full disk needs a purge to free space: there the heartbeat counts although it is not written.

        Raises:
            LogDirError, OSError: as ``heartbeat.beat``, but for a full disk.
        """
        log_dir = open_dir.log_dir
        try:
            written = heartbeat.beat(open_dir, now, self.unwritten.get(log_dir))
        except DiskFullError:
            known = self.heartbeat_of(open_dir)
            if known is not None:
                known = self.unwritten[log_dir] = deadline.beat(known, now)
            return known
        self.unwritten.pop(log_dir, None)
        return written

    def heartbeat_of(self, open_dir: OpenLogDir) -> Heartbeat | None:
        """Return the heartbeat of a log dir, as ``heartbeat.read``; a later one if that could not be written."""
        return self.unwritten.get(open_dir.log_dir) or heartbeat.read(open_dir)


def heartbeat_lost(open_dir: OpenLogDir) -> Problem:
    """Return the problem that the heartbeat of a log dir cannot be read: no deadline on its disk passes."""
    fix = "run logdirctl init to recreate it: until then nothing is purged on this log dir"
    path = f"{open_dir.work.path}/{HEARTBEAT}"
    return Problem(Why.HEARTBEAT_LOST.value, path, "a heartbeat", "no file that can be read", fix)


def _changed(before: BrokerConfig, now: BrokerConfig) -> str:
    """Return the settings that differ, each with its value now."""
    settings = (
        ("log.dirs", before.log_dirs, now.log_dirs),
        ("node.id", before.node_id, now.node_id),
        ("metadata.log.dir", before.metadata_log_dir, now.metadata_log_dir),
    )
    changed = (f"{key}={in_words(value)}" for key, old, value in settings if old != value)
    return "; ".join(changed) or "a change of its roles, its voters, or a variable"


def _edited(path: str, found: str) -> RefusedError:
    return RefusedError(
        path,
        why=Why.CONFIGURATION_CHANGED,
        expected="log.dirs, node.id and metadata.log.dir as when the command began",
        found=found,
        fix="nothing more was changed; check the file, then repeat the command",
    )
