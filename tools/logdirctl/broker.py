"""The log dirs of one broker opened for a command, and its locks held while something changes.

Opening reads only. A command that changes something takes the owner lock of every work root for as long as it runs, and
Kafka's lock of every log dir in batches of at most two seconds; before each batch the broker's configuration is read
again and every path is compared with what was opened. What an interruption left is finished or undone first.

Not here: what is changed, and whether it may be (``logdir.decide``).

Spec: design §2 laws 4, 6, 9; attacks A19, A22, A23, A26, A31, A45.
"""

from __future__ import annotations

import argparse
import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from logdir import clock
from logdir.clock import Instant
from logdir.disk import bar, heartbeat
from logdir.disk.adopt_recovery import recover_adoptions
from logdir.disk.calls import Directory
from logdir.disk.failure import is_sick, read_only
from logdir.disk.io import HostDirectory, HostDisk
from logdir.disk.locks import Batch, OwnerLock, hold_all
from logdir.disk.recover import recover
from logdir.disk.site import Site
from logdir.disk.small_file import read_file
from logdir.disk.work_root import (
    WorkRoot,
    locate,
    open_log_dir,
    open_root,
    open_site,
    path_of,
    require_accepted,
)
from logdir.errors import (
    ConfigError,
    DiskError,
    ForeignLogDirError,
    LogDirError,
    LogDirOfflineError,
    NoWorkRootError,
    Problem,
    ReadOnlyDiskError,
    RefusedError,
    UnsupportedVersionError,
)
from logdir.formats import bar_file, brake_file, layout_file, meta_properties, work_root_file
from logdir.formats.inventory import Entry
from logdir.formats.layout_file import LayoutState
from logdir.observe.classify import META_PROPERTIES
from logdir.observe.facts import LogDirFacts
from logdir.observe.replicas import look
from tools.logdirctl.naming import Broker, add_broker, broker_of, words_of

_RIGHTS = (errno.EACCES, errno.EPERM)


def add_change(parser: Any, *, changes: bool = True) -> None:
    """Add what every command about a broker's replicas takes."""
    add_broker(parser)
    if changes:
        parser.add_argument(
            "--without", metavar="DIR", action="append", default=[], help="a log dir that has failed and may not answer"
        )
        parser.add_argument("--apply", action="store_true", help="do it; without this the plan is printed")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def next_words(arguments: argparse.Namespace) -> str:
    """Return the broker as it was named, and which of its log dirs have failed, for the next command to type."""
    from tools.render import quoted

    return " ".join([words_of(arguments), *(f"--without {quoted(one)}" for one in getattr(arguments, "without", ()))])


def without_of(arguments: argparse.Namespace, named: Broker) -> frozenset[str]:
    """Return the log dirs that are said to have failed.

    Raises:
        ConfigError: one of them is none of the broker's.
    """
    import os

    said = [os.path.abspath(path) for path in arguments.without]
    problems = tuple(
        Problem("config-error", "--without", "one of the broker's log dirs", path)
        for path in said
        if path not in named.log_dirs
    )
    if problems:
        raise ConfigError(problems)
    return frozenset(said)


@contextmanager
def told(path: str) -> Iterator[None]:
    """Turn an error of the kernel into one of ours."""
    try:
        yield
    except OSError as error:
        raise as_refusal(path, error) from error


def as_refusal(path: str, error: OSError) -> DiskError:
    """Return an error of the kernel as one of ours."""
    found = error.strerror or str(error)
    if error.errno in _RIGHTS:
        return RefusedError(path, expected="the right to do it", found=found, fix="run as the owner of the log dirs")
    return LogDirOfflineError(path, expected="a disk that answers", found=found, fix="look at the kernel's log")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBroker:
    """Open log dirs of one broker."""

    disk: HostDisk
    arguments: argparse.Namespace
    named: Broker
    without: frozenset[str]
    roots: tuple[WorkRoot, ...]
    missing: tuple[str, ...]
    """Of ``without``: those that did not answer."""
    rootless: tuple[str, ...] = ()
    """Those without a whole work root, where that is allowed."""
    notes: list[Problem] = field(default_factory=list)
    """What is to be told beside the outcome."""

    @property
    def sites(self) -> tuple[Site, ...]:
        """Return the log dirs that answer, in the order of the configuration."""
        return tuple(root.site for root in self.roots)

    def site_of(self, log_dir: str) -> Site:
        """Return one of them.

        Raises:
            KeyError: it did not answer.
        """
        return {site.log_dir: site for site in self.sites}[log_dir]

    def look(self, closely: Callable[[Entry], bool] | None = None) -> tuple[LogDirFacts, ...]:
        """Look at every configured log dir; of one that is barred node and cluster are the true ones."""
        true = {root.site.log_dir: root.belongs for root in self.roots}
        return tuple(
            replace(one, node_id=true[one.log_dir].node_id) if one.log_dir in true else one
            for one in look_at(self.named, closely)
        )

    def require_unchanged(self) -> None:
        """Return if the broker's configuration still says what it said.

        Raises:
            RefusedError: it does not, or cannot be read any more.
        """
        try:
            now = broker_of(self.arguments)
        except LogDirError as error:
            raise _edited(self.arguments.server_properties, error.found) from error
        if now._replace(rack=None) != self.named._replace(rack=None):
            raise _edited(self.arguments.server_properties, f"{', '.join(now.log_dirs)} of node {now.node_id}")

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Hold Kafka's lock in every log dir that answers; begin nothing more once the batch has ``expired``.

        Raises:
            LockHeldError: a broker runs.
            RefusedError: as ``require_unchanged``.
            LogDirReplacedError: a path leads elsewhere by now.
            LogDirOfflineError: a log dir does not answer and is not said to have failed.
        """
        self.require_unchanged()
        began = clock.boottime_ms()
        with hold_all(self.disk, self.named.log_dirs, without=self.without, now_boottime_ms=began) as held:
            for root in self.roots:
                root.require_same(self.disk)
            yield held

    def recover(self) -> None:
        """Finish or undo what an interruption left, and prove that replicas can be renamed, in one batch.

        Raises:
            LogDirError: as ``batch``, ``prove`` and the recoveries.
        """
        with self.batch():
            for root in self.roots:
                root.prove()
            if self.roots and not self.missing and not self.rootless:
                # A log dir that is not there may hold the replica that speaks against finishing an adoption.
                with told(self.roots[0].site.log_dir):
                    adoptions = recover_adoptions(self.sites)
                self._note("", adoptions.troubled)
            for site in self.sites:
                with told(site.log_dir):
                    self._note(f"{site.log_dir}/", recover(site).troubled)

    def _note(self, base: str, troubled: Sequence[tuple[str, str]]) -> None:
        for path, why in troubled:
            self.notes.append(
                Problem("refused", f"{base}{path}", "something to recover", why, "it is as it was: look at it")
            )

    def beat(self, now: Instant, sites: Sequence[Site] | None = None) -> None:
        """Fold every heartbeat forward; one that is lost is told of, for nothing is purged there.

        Raises:
            UnsupportedVersionError: a newer release wrote one.
            DiskError: one cannot be written.
        """
        for site in self.sites if sites is None else sites:
            with told(site.work.path):
                if heartbeat.beat(site, now) is None:
                    path = f"{site.work.path}/heartbeat.json"
                    fix = "nothing there is purged until logdirctl init writes it anew"
                    self.notes.append(Problem("state-error", path, "a heartbeat", "none that can be read", fix))


def look_at(named: Broker, closely: Callable[[Entry], bool] | None = None) -> tuple[LogDirFacts, ...]:
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
    arguments: argparse.Namespace, *, changes: bool, is_bar_allowed: bool = False, is_root_needed: bool = True
) -> Iterator[OpenBroker]:
    """Open every log dir of a broker and its work root.

    Args:
        arguments: With those of ``add_change``.
        changes: Whether the owner locks are taken; without them nothing may be changed.
        is_bar_allowed: Whether the broker may be barred while a change of its layout is under way.
        is_root_needed: Whether each log dir must have a work root that is whole.

    Raises:
        ConfigError: the broker is not named right.
        LogDirOfflineError: a log dir does not answer and is not said to have failed.
        NoWorkRootError: one has no work root.
        ForeignLogDirError: they are not all of one broker.
        WorkRootOwnedError: another process of ours works there.
        LogDirError: as ``open_root``.
    """
    named = broker_of(arguments)
    without = without_of(arguments, named)
    disk = HostDisk()
    roots: list[WorkRoot] = []
    missing: list[str] = []
    rootless: list[str] = []
    with ExitStack() as stack:
        for log_dir in named.log_dirs:
            try:
                with told(log_dir):
                    root = stack.enter_context(open_true_root(disk, log_dir, is_bar_allowed=is_bar_allowed))
            except LogDirOfflineError:
                if log_dir not in without:
                    raise
                missing.append(log_dir)
                continue
            except NoWorkRootError:
                if is_root_needed:
                    raise
                rootless.append(log_dir)
                continue
            require_one_broker(named, roots[0].belongs if roots else None, root.belongs, log_dir)
            roots.append(root)
        if not roots and not rootless:
            raise RefusedError(", ".join(sorted(without)), expected="at least one log dir that answers", found="none")
        for root in roots:
            if changes:
                stack.enter_context(_owned(root.site))
            _require_known_versions(root.site)
        yield OpenBroker(
            disk=disk,
            arguments=arguments,
            named=named,
            without=without,
            roots=tuple(roots),
            missing=tuple(missing),
            rootless=tuple(rootless),
        )


def require_one_broker(
    named: Broker, first: work_root_file.Belonging | None, found: work_root_file.Belonging, log_dir: str
) -> None:
    """Return if a log dir is of the broker that was named and of the cluster and node of the first one.

    Raises:
        ForeignLogDirError: it is not.
    """
    wanted = found.node_id if named.node_id is None else named.node_id
    if found.node_id != wanted or (first is not None and found[:2] != first[:2]):
        expected = f"node {wanted}" if first is None else str(first)
        raise ForeignLogDirError(
            f"{log_dir}/{META_PROPERTIES}", expected=expected, found=str(found), fix="a disk of another host?"
        )


def _owned(site: Site) -> OwnerLock:
    if not isinstance(site.work, HostDirectory):
        raise TypeError(f"no directory of this host: {site.work!r}")
    with told(site.work.path):
        return OwnerLock.take(site.work)


def open_true_root(disk: HostDisk, log_dir: str, *, is_bar_allowed: bool = True) -> WorkRoot:
    """Open the work root of a log dir, also of one that is barred; reads only.

    Args:
        disk: The file systems.
        log_dir: Absolute path as configured.
        is_bar_allowed: Also while a change of layout is under way; one that is final always may.

    Returns:
        The open root; the caller closes it.

    Raises:
        RefusedError: a change of layout is under way.
        LogDirError: as ``open_root`` and ``bar.true_properties``.
        OSError: a part of it cannot be opened.
    """
    with ExitStack() as stack:
        top = stack.enter_context(open_log_dir(disk, log_dir))
        data = bar.true_properties(top)
        path = f"{log_dir}/{META_PROPERTIES}"
        if data is None or not bar_file.is_barred(top.read(META_PROPERTIES, 1 << 20), path):
            return open_root(disk, log_dir)
        if not is_bar_allowed and not _is_final(top):
            raise RefusedError(
                log_dir,
                expected="log dirs that are not barred",
                found="a bar: a change of layout is under way",
                fix="logdirctl layout status",
            )
        belongs = work_root_file.belonging(meta_properties.parse(data, path))
        located = locate(disk, log_dir, top)
        if located.found is None or located.file is None:
            raise NoWorkRootError(log_dir, expected="a work root", found="none", fix="is the right disk mounted?")
        require_accepted(located.file, belongs, path_of(located.found, log_dir))
        site = open_site(stack, disk, located.found, log_dir, top, belongs)
        return WorkRoot(kind=located.found, site=site, belongs=belongs, opened=stack.pop_all())


def _is_final(top: Directory) -> bool:
    data = read_file(top, layout_file.FILE_NAME)
    path = f"{top.path}/{layout_file.FILE_NAME}"
    return data is not None and layout_file.parse(data, path).state is LayoutState.FINAL


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


@contextmanager
def sick_disks(notes: list[Problem], sick: set[str], site: Site) -> Iterator[None]:
    """Go on with the other disks when one takes no more changes."""
    try:
        yield
    except ReadOnlyDiskError as error:
        sick.add(site.log_dir)
        notes.append(error.problem())
    except OSError as error:
        sick.add(site.log_dir)
        notes.append(
            (
                read_only(site.top, error, "a call that succeeds")
                if is_sick(error)
                else as_refusal(site.log_dir, error)
            ).problem()
        )
