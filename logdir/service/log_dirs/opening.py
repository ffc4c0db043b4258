"""Opening the log dirs of one broker for a use case, with their work roots and, for changes, our locks.

Opening only reads. All log dirs are opened in parallel.

Not here: the use of open log dirs (``open_broker``).

Spec: design §2 laws 4, 6, §3.2; attacks A19, A23, A25, A26, A31.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from logdir.disk.locks import OwnerLock, no_owner_lock
from logdir.disk.record import controller, heartbeat
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.work_root import WorkRoot
from logdir.errors import (
    ForeignLogDirError,
    LogDirError,
    LogDirOfflineError,
    LogDirSuspectError,
    NoWorkRootError,
    Problem,
    ReadOnlyDiskError,
    RefusedError,
    UnsupportedVersionError,
)
from logdir.formats.own import staging_limit_file
from logdir.formats.own.work_root_file import Belonging
from logdir.refusal_slug import Why
from logdir.service.log_dirs.config import require_text
from logdir.service.log_dirs.one_broker import require_one_broker
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.log_dirs.ports import BrokerPorts, connected
from logdir.service.log_dirs.quarantine import failed_of, keep_in_mind, quarantine_of
from logdir.service.log_dirs.request import BrokerRequest, LeftOut, accepted_of, require_log_dirs
from logdir.worker.state import take_owner_lock


@contextmanager
def opened(
    request: BrokerRequest,
    *,
    changes: bool,
    is_start_block_allowed: bool = False,
    is_root_needed: bool = True,
    is_skip_of_use: bool = True,
    is_copy: bool = False,
    needs_all: bool = True,
    is_all_skippable: bool = False,
    left_out: LeftOut | None = None,
    known: Belonging | None = None,
) -> Iterator[OpenBroker]:
    """Open every log dir of a broker and its work root.

    Args:
        request: The broker.
        changes: Whether to take the owner locks; without them nothing may be changed.
        is_start_block_allowed: Whether to open a broker that is blocked during a layout change.
        is_root_needed: Whether each log dir must have a whole work root.
        is_skip_of_use: Whether ``--skip-log-dir`` helps the command to continue without a log dir that does not answer.
        is_copy: Whether the command only reads the log dirs: a read-only disk is then reported, but no error.
        needs_all: Whether a log dir that does not answer in time ends the command, unless ``--skip-log-dir`` names it.
        is_all_skippable: Whether a skipped log dir is left out whatever is wrong with it.
        left_out: Log dirs without a worker, which are SUSPECT; ``None``: there are none.
        known: Cluster and node that every log dir must belong to; ``None``: those of the first that answers.

    Raises:
        ConfigError: the broker is invalid, or the path of a log dir is not UTF-8.
        LogDirOfflineError: a log dir does not answer and ``--skip-log-dir`` does not name it.
        ReadOnlyDiskError: a log dir is read-only and ``--skip-log-dir`` does not name it.
        NoWorkRootError: a log dir has no work root.
        ForeignLogDirError: the log dirs belong to several brokers.
        WorkRootOwnedError: another logdird process works on a log dir.
        LogDirError: as ``open_root``.
    """
    with connected(request, needs_all=needs_all, left_out=left_out) as ports:
        yield from _opened(
            ports,
            request,
            changes=changes,
            is_start_block_allowed=is_start_block_allowed,
            is_root_needed=is_root_needed,
            is_skip_of_use=is_skip_of_use,
            is_copy=is_copy,
            is_all_skippable=is_all_skippable,
            known=known,
        )


def _opened(
    ports: BrokerPorts,
    request: BrokerRequest,
    *,
    changes: bool,
    is_start_block_allowed: bool,
    is_root_needed: bool,
    is_skip_of_use: bool,
    is_copy: bool,
    is_all_skippable: bool,
    known: Belonging | None,
) -> Iterator[OpenBroker]:
    named = ports.named
    require_text(named)
    without = ports.skipped
    accepted = accepted_of(request, named)
    require_log_dirs("--disk", () if request.named_disk is None else (request.named_disk,), named)
    roots: list[WorkRoot] = []
    missing: list[str] = []
    rootless: list[str] = []
    for log_dir, pending in ports.begin_roots(is_start_block_allowed=is_start_block_allowed):
        try:
            with map_os_errors(log_dir):
                root = pending.result()
        except LogDirSuspectError as error:
            if log_dir not in without:
                ports.note(error)
            missing.append(log_dir)
            continue
        except LogDirOfflineError as error:
            if not is_skip_of_use and log_dir not in without:
                raise  # The command cannot continue without it: do not suggest --skip-log-dir.
            failed_of(error, log_dir, without)
            missing.append(log_dir)
            continue
        except NoWorkRootError:
            if is_all_skippable and log_dir in without:
                missing.append(log_dir)
                continue
            if is_root_needed:
                raise
            rootless.append(log_dir)
            continue
        except LogDirError:
            if not (is_all_skippable and log_dir in without):
                raise
            missing.append(log_dir)
            continue
        try:
            require_one_broker(named, known, root.belongs, log_dir)
        except ForeignLogDirError:
            if not (is_all_skippable and log_dir in without):
                raise
            missing.append(log_dir)
            continue
        if log_dir not in without:
            known = known or root.belongs
        roots.append(root)
    failed: dict[str, Problem] = {}
    owned: dict[str, str] = {}
    lockless: list[Problem] = []
    for root in tuple(roots):
        open_dir = root.open_dir
        log_dir = open_dir.log_dir
        try:
            if changes:
                with map_os_errors(open_dir.work.path):
                    owned[log_dir] = ports.port(log_dir).run_opened(take_owner_lock)
            else:
                lockless += _lockless(open_dir)
        except LogDirSuspectError as error:
            ports.note(error)
            continue
        except (LogDirOfflineError, ReadOnlyDiskError) as error:
            is_readable = is_copy and isinstance(error, ReadOnlyDiskError)
            failed[log_dir] = failed_of(error, log_dir, {log_dir} if is_readable else without)
        try:
            _require_known_versions(open_dir)
        except LogDirSuspectError as error:
            ports.note(error)
        except LogDirOfflineError as error:
            failed[log_dir] = failed_of(error, log_dir, without)
            roots.remove(root)
            missing.append(log_dir)
    if not rootless and all(root.open_dir.log_dir in ports.suspect for root in roots):
        where = ", ".join(sorted(without)) or ", ".join(missing)
        raise RefusedError(
            where,
            why=Why.NO_LOG_DIR_ANSWERS,
            expected="at least one log dir that answers",
            found="no log dir that answers",
            fix="mount at least one of them, or list a log dir that answers in log.dirs or --log-dirs",
        )
    broker = OpenBroker(
        ports=ports,
        request=request,
        all_roots=tuple(roots),
        missing=tuple(missing),
        rootless=tuple(rootless),
        owned=owned,
    )
    with map_os_errors(named.log_dirs[0]):
        broker.quarantined.update(broker.on_all(lambda open_dirs: quarantine_of(open_dirs, accepted)) | failed)
    broker.notes.extend([*broker.quarantined.values(), *lockless])
    try:
        yield broker
    finally:
        if changes:
            keep_in_mind(ports.failed_syncs(), broker.open_dirs, broker.quarantined)


def _lockless(open_dir: OpenLogDir) -> list[Problem]:
    """Return the problem that the work root has no ``owner.lock``, so that no plan can be applied; else none."""
    with map_os_errors(open_dir.work.path):
        try:
            open_dir.work.stat(OwnerLock.name)
        except FileNotFoundError:
            return [no_owner_lock(open_dir.work.path).problem()]
    return []


def _require_known_versions(open_dir: OpenLogDir) -> None:
    """Check that no newer release wrote ``controller.json``, the heartbeat or ``staging-limit.json`` of a log dir.

    What such a file holds no change could respect; noticed later, it would end whatever was begun by then.

    Raises:
        UnsupportedVersionError: a newer release wrote the file that the error names.
    """
    with map_os_errors(open_dir.work.path):
        controller.read_records((open_dir,))
        heartbeat.read(open_dir)
        try:
            data = open_dir.work.read(staging_limit_file.FILE_NAME, staging_limit_file.MAX_BYTES)
            staging_limit_file.parse(data, f"{open_dir.work.path}/{staging_limit_file.FILE_NAME}")
        except UnsupportedVersionError:
            raise
        except (FileNotFoundError, LogDirError):
            return  # The staging limit handles this problem itself.
