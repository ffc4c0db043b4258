"""Creating the work root of a log dir; after an interruption a repetition finishes it.

Order: the directory, synced into its parent; in it ``deleting/``, ``incoming/`` and the probe; the proofs that a
replica can be renamed there and a file be linked; ``owner.lock``, the reserve and the spare inodes; last
``work-root.json``, which marks the work root as whole. A place that fails the proof is left as it was found, and the
next one is tried. None of this needs Kafka's lock: stock brokers ignore the names that are created, or cannot start
where they lie.

Not here: the candidate places (``plan``), removing a work root (``removal``).

Spec: design §3.2; reliability §4.2 "new file", "new directory"; attacks A5, A6, A9, A10.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from logdir.disk.kernel.calls import Directory, Disk, Owner
from logdir.disk.kernel.failure import calling, is_full, is_sick, read_only, remedy_of
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.small_file import read_file, replace_file
from logdir.disk.kernel.whole_path import not_a_file
from logdir.disk.root import probe
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.plan import Candidate, InitPlan, opened_parent
from logdir.disk.root.reserve import RESERVE_BYTES, put_inodes, put_reserve, refill_reserve, spare_names
from logdir.disk.root.work_root import DIRECTORIES, OWNER_LOCK_TEXT, failed_at, open_log_dir, open_site, open_work_root
from logdir.errors import DiskError, DiskFullError, RefusedError, WorkRootConflictError
from logdir.formats.own import work_root_file
from logdir.formats.own.work_root_file import WorkRootFile, WorkRootKind
from logdir.observe.classify import Type
from logdir.paths import DELETING, HIDDEN_WORK_ROOT, INCOMING, OWNER_LOCK, PROBE, RESERVE, SPARE, WORK_ROOT_FILE
from logdir.refusal_slug import Why

_NOT_HERE = probe.NOT_HERE | {errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENAMETOOLONG}


class InitDone(NamedTuple):
    """The result of ``init`` for one log dir: kind and path of its work root."""

    kind: WorkRootKind
    path: str
    passed: tuple[Candidate, ...]
    """The places that were passed over, because the plan excluded them or a proof failed, and why."""


def init(disk: Disk, plan: InitPlan, *, made_at_ms: int, reserve_bytes: int = RESERVE_BYTES) -> InitDone:
    """Create a work root, or its missing parts. Durable when it returns; repeatable at any point.

    Args:
        disk: The file systems.
        plan: From ``plan_init``.
        made_at_ms: The instant to write into ``work-root.json``, epoch milliseconds.
        reserve_bytes: Size of the reserve.

    Returns:
        The place of the work root, and the places that were passed over.

    Raises:
        LogDirOfflineError: the log dir does not answer.
        RefusedError: no place is usable.
        DiskFullError: the disk is full; the unfinished work root stays, and a repetition finishes it.
        ReadOnlyDiskError: the disk is read-only, or a sync failed.
        WorkRootConflictError: another kind of entry has a name that is needed.
    """
    passed = list(plan.passed)
    for number, candidate in enumerate(plan.candidates, 1):
        with ExitStack() as stack:
            top = stack.enter_context(open_log_dir(disk, plan.log_dir))
            try:
                with _map_os_errors(candidate.path, top):
                    open_dir = _begin(stack, disk, plan, candidate, top)
            except _UnsuitableError as unsuitable:
                if number == len(plan.candidates):
                    raise unsuitable.error from unsuitable.__cause__
                why = f"{unsuitable.error.found}, where {unsuitable.error.expected} is expected"
                passed.append(candidate._replace(detail=why))
                continue
            with _map_os_errors(candidate.path, top):
                _finish(plan, candidate.kind, open_dir, made_at_ms, reserve_bytes)
            return InitDone(candidate.kind, candidate.path, tuple(passed))
    raise ValueError("a plan has at least one candidate")


class _UnsuitableError(Exception):
    """A place where no work root can be; it was left as it was found."""

    def __init__(self, error: DiskError) -> None:
        super().__init__()
        self.error = error


@contextmanager
def _map_os_errors(path: str, top: Directory) -> Iterator[None]:
    """Turn an ``OSError`` of the body into an error of this package; ``path``: the place of the work root."""
    try:
        with calling(top):
            yield
    except OSError as error:
        raise _refusal(path, top, error) from error


def _refusal(path: str, top: Directory, error: OSError) -> DiskError:
    if is_sick(error):
        return read_only(top, error, "a writable disk")
    if (something_else := not_a_file(error)) is not None:
        return something_else
    at, found = failed_at(path, error), error.strerror or error
    if is_full(error):
        fix = f"free space on that disk, then logdirctl init finishes what was begun at {path}; uninstall removes it"
        return DiskFullError(at, expected="room on its disk for a work root", found=found, fix=fix)
    expected = "a work root that can be created"
    return RefusedError(at, why=Why.WORK_ROOT_FAILED, expected=expected, found=found, fix=remedy_of(error))


def _begin(stack: ExitStack, disk: Disk, plan: InitPlan, candidate: Candidate, top: Directory) -> OpenLogDir:
    """Create the directories and prove that replicas can be renamed there."""
    kind, owner = candidate.kind, top.own_stat().owner
    ready = None
    try:
        if not plan.is_whole:
            _make_root(disk, kind, plan.log_dir, top, owner)
        with open_work_root(disk, kind, plan.log_dir, top) as work:
            for name in (DELETING, INCOMING):
                _ensure_directory(work, name, owner)
        open_dir = open_site(stack, disk, kind, plan.log_dir, top, plan.belongs)
        _ensure_directory(open_dir.work, PROBE, owner)
        with syncing(open_dir.work):
            open_dir.work.sync()
        ready = open_dir
        probe.round_trip(kind, ready, unsupported_fs=plan.unsupported_fs)
        probe.prove_use(kind, ready, unsupported_fs=plan.unsupported_fs)
    except RefusedError as error:
        if not plan.is_whole:
            _undo(disk, kind, plan.log_dir, top)
        raise _UnsuitableError(error) from error
    except OSError as error:
        refused = _refusal(candidate.path, top, error) if ready is None else probe.refusal(ready, error)
        if error.errno not in _NOT_HERE:
            raise refused from error
        if not plan.is_whole:
            _undo(disk, kind, plan.log_dir, top)
        raise _UnsuitableError(refused) from error
    return ready


def _make_root(disk: Disk, kind: WorkRootKind, log_dir: str, top: Directory, owner: Owner) -> None:
    with _parent(disk, kind, log_dir, top) as found:
        if found is not None:
            parent, name = found
            _ensure_directory(parent, name, owner)
            with syncing(parent):
                parent.sync()


@contextmanager
def _parent(disk: Disk, kind: WorkRootKind, log_dir: str, top: Directory) -> Iterator[tuple[Directory, str] | None]:
    """Yield a work root's open parent directory and its name there; ``None`` if the log dir itself is the work root.

    Raises ``OSError``.
    """
    match kind:
        case WorkRootKind.INSIDE:
            yield None
        case WorkRootKind.IN_PLACE:
            yield top, HIDDEN_WORK_ROOT
        case WorkRootKind.BESIDE:
            with opened_parent(disk, log_dir) as found:
                yield found


def _ensure_directory(parent: Directory, name: str, owner: Owner) -> None:
    """Create a directory, or set the owner of an existing one; not synced into its parent."""
    try:
        found = parent.stat(name)
    except FileNotFoundError:
        parent.make(name, owner)
        return
    if found.type is not Type.DIRECTORY:
        raise WorkRootConflictError(
            f"{parent.path}/{name}", expected="a directory or nothing", found=found.type.words, fix="move it away"
        )
    if found.owner != owner:
        parent.adopt(name, owner)
        with parent.open(name) as directory, syncing(directory):
            directory.sync()


def _undo(disk: Disk, kind: WorkRootKind, log_dir: str, top: Directory) -> None:
    """Remove the empty directories that were created at a place that is not usable."""
    with suppress(OSError), open_work_root(disk, kind, log_dir, top) as work:
        with suppress(OSError):
            probe.empty(work, PROBE)
        for name in reversed(DIRECTORIES):
            with suppress(OSError):
                work.remove(name)
    with suppress(OSError), _parent(disk, kind, log_dir, top) as found:
        if found is not None:
            parent, name = found
            parent.remove(name)
            with syncing(parent):
                parent.sync()


def put_back_missing(work: Directory, owner: Owner) -> None:
    """Recreate the files without which a whole work root can be neither opened nor owned.

    Repeatable. ``init``, which the caller runs next, makes the directories durable.

    Args:
        work: The work root. Kafka's lock of its log dir is held: a process that still holds an ``owner.lock`` that lost
            its name is then in no batch and starts no other one.
        owner: Owner of the log dir.

    Raises:
        WorkRootConflictError: another kind of entry has a name that is needed.
        DiskError: as ``replace_file``.
        OSError: no permission, or no space.
    """
    for name in (DELETING, INCOMING):
        _ensure_directory(work, name, owner)
    _put_owner_lock(work, owner.for_file())


def _put_owner_lock(work: Directory, owner: Owner) -> None:
    if read_file(work, OWNER_LOCK) is None:
        replace_file(work, OWNER_LOCK, OWNER_LOCK_TEXT, before=None, owner=owner, work=work)


def _finish(plan: InitPlan, kind: WorkRootKind, open_dir: OpenLogDir, made_at_ms: int, reserve_bytes: int) -> None:
    """Create the files of a work root, ``work-root.json`` last."""
    work, owner = open_dir.work, open_dir.owner.for_file()
    _put_owner_lock(work, owner)
    if plan.is_whole:
        refill_reserve(work, owner, reserve_bytes)
    else:
        put_reserve(work, owner, reserve_bytes)
    if spare_names(reserve_bytes):
        _ensure_directory(work, SPARE, open_dir.owner)
        with syncing(work):
            work.sync()
        put_inodes(work, owner, reserve_bytes)
    before = read_file(work, WORK_ROOT_FILE)
    file = WorkRootFile(kind, plan.belongs, plan.log_dir, made_at_ms)
    if before is not None:
        file = work_root_file.parse(before, f"{work.path}/{WORK_ROOT_FILE}")._replace(belongs=plan.belongs)
    file = file._replace(unsupported_fs=plan.unsupported_fs)
    replace_file(work, WORK_ROOT_FILE, work_root_file.render(file), before=before, owner=owner, work=work, keep=False)
    for name in (OWNER_LOCK, RESERVE, WORK_ROOT_FILE):
        _give(work, name, owner)


def _give(work: Directory, name: str, owner: Owner) -> None:
    try:
        is_given = work.stat(name).owner == owner
    except FileNotFoundError:
        return  # The reserve, which was released on a full disk.
    if not is_given:
        work.adopt(name, owner)
        with syncing(work):
            work.sync_file(name)
