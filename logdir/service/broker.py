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

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from logdir import clock
from logdir.clock import Instant
from logdir.disk import heartbeat
from logdir.disk.file_system import fs_type_at, require_supported_fs
from logdir.disk.io import HostDirectory, HostDisk
from logdir.disk.locks import Batch, OwnerLock, hold_all, no_owner_lock
from logdir.disk.recovery import recover_broker
from logdir.disk.site import Site
from logdir.disk.work_root import WorkRoot
from logdir.errors import (
    ConfigError,
    DiskFullError,
    LogDirError,
    LogDirOfflineError,
    NoWorkRootError,
    Problem,
    ReadOnlyDiskError,
    RefusedError,
    UnsupportedVersionError,
)
from logdir.formats import brake_file
from logdir.formats.inventory import Entry
from logdir.observe.facts import LogDirFacts
from logdir.observe.replicas import look
from logdir.service.config import BrokerConfig, read_config, require_text
from logdir.service.os_errors import told, told_or_closed
from logdir.service.quarantine import closed_of, failed_of, keep_in_mind, unlocked
from logdir.service.refill import refill
from logdir.service.true_root import open_true_root, require_one_broker


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRequest:
    """Which broker a use case is about, and what an operator says of its disks."""

    server_properties: str | None = None
    """Path of the broker's configuration; ``None`` where its log dirs are listed."""
    log_dirs: str | None = None
    """The log dirs themselves, separated by commas."""
    skipped: tuple[str, ...] = ()
    """Log dirs that are said to have failed and may not answer."""
    accepted_stale: tuple[str, ...] = ()
    """Log dirs that were away and are back, and that an operator has looked at since."""
    named_disk: str | None = None
    """A log dir to which a selection is narrowed; checked only for being one of the broker's."""

    def config(self) -> BrokerConfig:
        """Read the broker's configuration.

        Raises:
            ConfigError: it cannot be read or names nothing usable.
        """
        return read_config(self.server_properties, self.log_dirs)


def skipped_of(request: BrokerRequest, config: BrokerConfig) -> frozenset[str]:
    """Return the absolute paths of the log dirs that are said to have failed.

    Raises:
        ConfigError: one of them is not among the broker's log dirs.
    """
    return _log_dirs("--skip-log-dir", request.skipped, config)


def accepted_of(request: BrokerRequest, config: BrokerConfig) -> frozenset[str]:
    """Return the absolute paths of the log dirs that were away, and that an operator has looked at since.

    Raises:
        ConfigError: one of them is not among the broker's log dirs.
    """
    return _log_dirs("--even-if-stale-disk", request.accepted_stale, config)


def _log_dirs(option: str, paths: Sequence[str], config: BrokerConfig) -> frozenset[str]:
    """Return absolute paths, each of which is one of the broker's log dirs; ``option`` is for the message."""
    absolute = [os.path.abspath(path) for path in paths]
    strange = [path for path in absolute if path not in config.log_dirs]
    if strange:
        expected = "one of the broker's log dirs"
        raise ConfigError(tuple(Problem("config-error", option, expected, path) for path in strange))
    return frozenset(absolute)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBroker:
    """Open log dirs of one broker."""

    disk: HostDisk
    request: BrokerRequest
    named: BrokerConfig
    without: frozenset[str]
    roots: tuple[WorkRoot, ...]
    missing: tuple[str, ...]
    """Of ``without``: those that did not answer."""
    rootless: tuple[str, ...] = ()
    """Those without a whole work root, where that is allowed."""
    closed: dict[str, Problem] = field(default_factory=dict)
    """Log dirs of which nothing may be changed though they answer, or begin to, and why; there may come more."""
    notes: list[Problem] = field(default_factory=list)
    """What is to be told beside the outcome."""
    owned: Mapping[str, OwnerLock] = field(default_factory=dict)
    """The lock of each work root that is owned, by log dir; none where nothing is changed."""

    @property
    def sites(self) -> tuple[Site, ...]:
        """Return the log dirs that answer, in the order of the configuration."""
        return tuple(root.site for root in self.roots)

    @property
    def changeable(self) -> tuple[Site, ...]:
        """Return those of them that may be changed."""
        return tuple(site for site in self.sites if site.log_dir not in self.closed)

    def site_of(self, log_dir: str) -> Site:
        """Return one of them.

        Raises:
            KeyError: it did not answer.
        """
        return {site.log_dir: site for site in self.sites}[log_dir]

    def path_of(self, log_dir: str, path: str) -> str:
        """Return an absolute path, for messages: ``Site.path_of`` of a log dir that answers, else below its own."""
        return next((site.path_of(path) for site in self.sites if site.log_dir == log_dir), f"{log_dir}/{path}")

    def look(self, closely: Callable[[Entry], bool] | None = None) -> tuple[LogDirFacts, ...]:
        """Look at every configured log dir; of one that is barred node and cluster are the true ones."""
        true = {root.site.log_dir: root.belongs.node_id for root in self.roots}
        return tuple(
            replace(one, node_id=true.get(one.log_dir, one.node_id), closed=self.closed.get(one.log_dir))
            for one in look_at(self.named, closely)
        )

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
        for log_dir, lock in self.owned.items():
            if log_dir not in self.closed:
                with self._told(log_dir, lock.path):
                    lock.require_held()

    @contextmanager
    def _told(self, log_dir: str, path: str | None = None) -> Iterator[None]:
        """As ``told_or_closed``."""
        with told_or_closed(log_dir, self.without, self._close, path):
            yield

    def _close(self, log_dir: str, why: Problem) -> None:
        if log_dir not in self.closed:
            self.closed[log_dir] = why
            self.notes.append(why)

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Hold Kafka's lock in every log dir that answers; begin nothing more once the batch has ``expired``.

        One that is said to have failed, and whose lock cannot be held, is closed.

        Raises:
            LockHeldError: a broker runs.
            RefusedError: as ``require_unchanged``.
            LogDirReplacedError: a path leads elsewhere by now.
            LogDirOfflineError, ReadOnlyDiskError: a log dir does not answer and is not said to have failed.
        """
        self.require_unchanged()
        began = clock.boottime_ms()
        works = {root.site.log_dir: root.site.work for root in self.roots}
        with hold_all(self.disk, self.named.log_dirs, without=self.without, works=works, now_boottime_ms=began) as held:
            for root in self.roots:
                with self._told(root.site.log_dir):
                    root.require_same(self.disk)
                if root.site.log_dir not in held.log_dirs:
                    self._close(root.site.log_dir, unlocked(root.site.log_dir))
            self.require_owned()
            yield held
        self.refill()

    def recover(self) -> None:
        """Finish or undo what an interruption left, and prove that replicas can be renamed, in one batch.

        Raises:
            LogDirError: as ``batch``, ``prove`` and the recoveries.
        """
        with self.batch():
            for root in self.roots:
                if root.site.log_dir not in self.closed:
                    require_supported_fs(
                        root.site.log_dir, fs_type_at(root.site.log_dir), unsupported_fs=root.unsupported_fs
                    )
                    with self._told(root.site.log_dir):
                        root.prove()
            # A log dir that is away or closed may hold the replica that speaks against finishing an adoption.
            is_whole = not self.missing and not self.rootless and not self.closed and not self.without
            self.notes.extend(recover_broker(self.changeable, is_whole=is_whole, told=self._told).troubled)

    def refill(self) -> None:
        """Put back what a full disk made us give up; what cannot be is noted."""
        refill(self.changeable, self.notes)

    def beat(self, now: Instant) -> None:
        """Fold every heartbeat forward but those of closed disks; of one that is lost is told: nothing is purged there.

        Raises:
            UnsupportedVersionError: a newer release wrote one.
            DiskError: one cannot be written, and its log dir is not said to have failed.
        """
        for site in self.changeable:
            with self._told(site.log_dir, site.work.path):
                try:
                    is_lost = heartbeat.beat(site, now) is None
                except DiskFullError:
                    # One that stays behind only makes deadlines later, and to purge is how a full disk gets room.
                    continue
                if is_lost:
                    path = f"{site.work.path}/heartbeat.json"
                    fix = "nothing there is purged until logdirctl init writes it anew"
                    self.notes.append(Problem("state-error", path, "a heartbeat", "none that can be read", fix))


def look_at(named: BrokerConfig, closely: Callable[[Entry], bool] | None = None) -> tuple[LogDirFacts, ...]:
    """Look at every configured log dir; opens no lock and no work root."""
    if closely is None:
        return tuple(look(log_dir) for log_dir in named.log_dirs)
    return tuple(look(log_dir, closely=closely) for log_dir in named.log_dirs)


def _edited(path: str, found: str) -> RefusedError:
    return RefusedError(
        path,
        expected="log.dirs, node.id and metadata.log.dir as when the command began",
        found=found,
        fix="nothing more was changed; look at the file, then do it again",
    )


@contextmanager
def opened(
    request: BrokerRequest,
    *,
    changes: bool,
    is_bar_allowed: bool = False,
    is_root_needed: bool = True,
    is_skip_of_use: bool = True,
    is_copy: bool = False,
) -> Iterator[OpenBroker]:
    """Open every log dir of a broker and its work root.

    Args:
        request: Which broker.
        changes: Whether the owner locks are taken; without them nothing may be changed.
        is_bar_allowed: Whether the broker may be barred while a change of its layout is under way.
        is_root_needed: Whether each log dir must have a work root that is whole.
        is_skip_of_use: Whether the command can go on without a log dir that does not answer.
        is_copy: Whether what lies there is only read: a disk that takes no changes is told of, and no hindrance.

    Raises:
        ConfigError: the broker is not named right, or the path of a log dir is no UTF-8.
        LogDirOfflineError: a log dir does not answer and is not said to have failed.
        ReadOnlyDiskError: one takes no changes and is not said to have failed.
        NoWorkRootError: one has no work root.
        ForeignLogDirError: they are not all of one broker.
        WorkRootOwnedError: another process of ours works there.
        LogDirError: as ``open_root``.
    """
    named = request.config()
    require_text(named)
    without = skipped_of(request, named)
    accepted = accepted_of(request, named)
    _log_dirs("--disk", () if request.named_disk is None else (request.named_disk,), named)
    disk = HostDisk()
    roots: list[WorkRoot] = []
    missing: list[str] = []
    rootless: list[str] = []
    with ExitStack() as stack:
        for log_dir in named.log_dirs:
            try:
                with told(log_dir):
                    root = stack.enter_context(open_true_root(disk, log_dir, is_bar_allowed=is_bar_allowed))
            except LogDirOfflineError as error:
                if not is_skip_of_use and log_dir not in without:
                    raise  # without the words to go on without it
                failed_of(error, log_dir, without)
                missing.append(log_dir)
                continue
            except NoWorkRootError:
                if is_root_needed:
                    raise
                rootless.append(log_dir)
                continue
            require_one_broker(named, roots[0].belongs if roots else None, root.belongs, log_dir)
            roots.append(root)
        failed: dict[str, Problem] = {}
        owned: dict[str, OwnerLock] = {}
        lockless: list[Problem] = []
        for root in tuple(roots):
            log_dir = root.site.log_dir
            try:
                if changes:
                    owned[log_dir] = stack.enter_context(_owned(root.site))
                else:
                    lockless += _lockless(root.site)
            except (LogDirOfflineError, ReadOnlyDiskError) as error:
                is_readable = is_copy and isinstance(error, ReadOnlyDiskError)
                failed[log_dir] = failed_of(error, log_dir, {log_dir} if is_readable else without)
            try:
                _require_known_versions(root.site)
            except LogDirOfflineError as error:
                failed[log_dir] = failed_of(error, log_dir, without)
                roots.remove(root)
                missing.append(log_dir)
        if not roots and not rootless:
            raise RefusedError(", ".join(sorted(without)), expected="at least one log dir that answers", found="none")
        sites = tuple(root.site for root in roots)
        with told(named.log_dirs[0]):
            closed = closed_of(sites, accepted) | failed
        try:
            yield OpenBroker(
                disk=disk,
                request=request,
                named=named,
                without=without,
                roots=tuple(roots),
                missing=tuple(missing),
                rootless=tuple(rootless),
                closed=closed,
                notes=[*closed.values(), *lockless],
                owned=owned,
            )
        finally:
            if changes:
                keep_in_mind(disk, sites, closed)


def _owned(site: Site) -> OwnerLock:
    if not isinstance(site.work, HostDirectory):
        raise TypeError(f"no directory of this host: {site.work!r}")
    with told(site.work.path):
        return OwnerLock.take(site.work)


def _lockless(site: Site) -> list[Problem]:
    """Say in a plan what would keep it from being done."""
    with told(site.work.path):
        try:
            site.work.stat(OwnerLock.name)
        except FileNotFoundError:
            return [no_owner_lock(site.work.path).problem()]
    return []


def _require_known_versions(site: Site) -> None:
    """Refuse files of a newer release by name, before anything is touched."""
    with told(site.work.path):
        heartbeat.read(site)
        try:
            data = site.work.read(brake_file.FILE_NAME, brake_file.MAX_BYTES)
            brake_file.parse(data, f"{site.work.path}/{brake_file.FILE_NAME}")
        except UnsupportedVersionError:
            raise
        except (FileNotFoundError, LogDirError):
            return  # the brake itself says what follows
