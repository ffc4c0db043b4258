"""Proofs of what works between a log dir and its work root: a replica can be renamed, a file linked, a lease taken.

The probe moves from the work root to the log dir, to ``deleting/``, to ``incoming/`` and back, never over another
entry. At each place its name is looked up with the case of its letters swapped, because topic ids may differ in case
alone. In the log dir it has a name that stock brokers ignore, so it does not harm a broker that starts meanwhile or
after a crash. After a crash the next proof first moves the probe back. Nothing is synced: begin and end are the same
state.

A capture links files of the broker and a purge takes leases on them; the kernel allows both to the owner of a file
(``fs.protected_hardlinks``, ``F_SETLEASE``). Proven with ``meta.properties``, which each formatted log dir has: it gets
a second name in the probe directory, which is removed again. That changes its ctime, on which nothing here relies, and
no byte of it. After a crash the next proof removes the second name.

Not here: when to prove (at ``init`` and at each start), what follows from a failure (``init``).

Spec: design §2 law 10, §3.2; kafka-behaviour §2.8; proc_sys_fs(5), fcntl(2); attacks A5, A6, A7, A17.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import is_full, is_sick, read_only
from logdir.disk.kernel.in_use import prove_lease
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import DiskError, NoWorkRootError, RefusedError
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.paths import META_PROPERTIES, PROBE, PROBE_IN_LOG_DIR, PROBE_LINK
from logdir.refusal_slug import Why

_CROSSING = (errno.EXDEV,)
_RIGHTS = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_FLAGS = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
NOT_HERE = frozenset((*_CROSSING, *_RIGHTS))
"""Errors that another place for the work root may not cause."""


class _Stop(NamedTuple):
    directory: Directory
    name: str

    def holds_probe(self) -> bool:
        try:
            self.directory.stat(self.name)
        except FileNotFoundError:
            return False
        return True

    def send(self, to: _Stop) -> None:
        self.directory.rename(self.name, to.directory, to.name)

    def folds_case(self) -> bool:
        """Whether the directory finds the probe under a name in the other case."""
        try:
            self.directory.stat(self.name.swapcase())
        except FileNotFoundError:
            return False
        return True

    @property
    def path(self) -> str:
        return f"{self.directory.path}/{self.name}"


def _stops(kind: WorkRootKind, open_dir: OpenLogDir) -> tuple[_Stop, ...]:
    home = _Stop(open_dir.work, PROBE)
    through_log_dir = () if kind is WorkRootKind.INSIDE else (_Stop(open_dir.top, PROBE_IN_LOG_DIR),)
    return (home, *through_log_dir, _Stop(open_dir.deleting, PROBE), _Stop(open_dir.incoming, PROBE))


def bring_home(kind: WorkRootKind, open_dir: OpenLogDir) -> bool:
    """Move the probe back to its place in the work root, if it lies elsewhere.

    Returns:
        Whether there is a probe.

    Raises:
        OSError: it cannot be renamed, or a second probe is not empty.
    """
    home, *away = _stops(kind, open_dir)
    is_home = home.holds_probe()
    for stop in away:
        if not stop.holds_probe():
            continue
        empty(stop.directory, stop.name)
        if is_home:
            stop.directory.remove(stop.name)
        else:
            stop.send(home)
            is_home = True
    return is_home


def _require_home(kind: WorkRootKind, open_dir: OpenLogDir) -> None:
    if not bring_home(kind, open_dir):
        path = f"{open_dir.work.path}/{PROBE}"
        raise NoWorkRootError(
            path,
            expected="the empty directory that is renamed as a proof",
            found="no such directory",
            fix="logdirctl init",
        )


def empty(above: Directory, name: str) -> None:
    """Remove the link that an interrupted proof left in a probe directory.

    Args:
        above: Where the probe directory lies.
        name: Its name there.

    Raises:
        OSError: it cannot be opened, or the link cannot be removed.
    """
    with above.open(name) as directory:
        if PROBE_LINK in directory.names():
            directory.unlink(PROBE_LINK)


def round_trip(kind: WorkRootKind, open_dir: OpenLogDir, *, unsupported_fs: bool = False) -> None:
    """Rename the probe to every place a replica is renamed to, and back.

    Args:
        kind: Kind of the work root.
        open_dir: Its directories.
        unsupported_fs: Whether the operator allows any file system.

    Raises:
        OSError: a rename failed; ``filename`` is ``OLD -> NEW``; the probe was moved back if possible.
        RefusedError: a directory folds case; the probe was moved back.
        NoWorkRootError: there is no probe.
    """
    _require_home(kind, open_dir)
    stops = _stops(kind, open_dir)
    for here, there in pairwise((*stops, stops[0])):
        try:
            here.send(there)
        except OSError as error:
            if here is not stops[0]:
                with suppress(OSError):  # The next proof moves the probe back.
                    here.send(stops[0])
            raise OSError(error.errno, error.strerror, f"{here.path} -> {there.path}") from error
        if not unsupported_fs and there.folds_case():
            if there is not stops[0]:
                there.send(stops[0])
            raise RefusedError(
                there.directory.path,
                why=Why.UNSUPPORTED_FILE_SYSTEM,
                expected="a directory in which names that differ in case are two, as topic ids are",
                found="a directory that folds case",
                fix="use one that does not; logdirctl init --even-on-unsupported-fs allows it at your own risk",
            )


def refusal(open_dir: OpenLogDir, error: OSError) -> DiskError:
    """Return the error that names why a proof failed, and the fix; ``error``: of ``round_trip``."""
    path = str(error.filename or open_dir.work.path)
    if error.errno in _RIGHTS and error.errno != errno.EROFS:
        return RefusedError(
            path,
            why=Why.NO_PERMISSION,
            expected="permission to rename",
            found=error.strerror,
            fix="run as the owner of the log dirs",
        )
    if is_sick(error):
        return read_only(open_dir.work, error, "a writable disk")
    if error.errno in _CROSSING:
        return _mounts_differ(open_dir, path, error)
    if error.errno in _NO_FLAGS:
        return RefusedError(
            path,
            why=Why.UNSUPPORTED_FILE_SYSTEM,
            expected="a file system that can rename without replacing (RENAME_NOREPLACE)",
            found=error.strerror,
            fix="use ext4, XFS or btrfs",
        )
    return RefusedError(
        path,
        why=Why.RENAME_FAILED,
        expected="a rename there and back",
        found=error.strerror or error,
        fix="check the kernel log for that disk; no replica was moved",
    )


def _mounts_differ(open_dir: OpenLogDir, path: str, error: OSError) -> RefusedError:
    return RefusedError(
        path,
        why=Why.MOUNTS_DIFFER,
        expected="log dir and work root on one mount, in one subvolume or quota tree",
        found=f"{error.strerror}: {_mounts(open_dir)}",
        fix="mount both through one mount point (systemd: one ReadWritePaths above both), or logdirctl init "
        "--work-root in-place",
    )


def _mounts(open_dir: OpenLogDir) -> str:
    log_dir, work = open_dir.top.identity(), open_dir.work.identity()
    if log_dir.mount_id != work.mount_id:
        return f"mounts {log_dir.mount_id} and {work.mount_id} of mountinfo"
    return f"devices {log_dir.device} and {work.device}" if log_dir.device != work.device else "one mount"


def prove(kind: WorkRootKind, open_dir: OpenLogDir, *, unsupported_fs: bool = False) -> None:
    """Rename the probe to every place a replica is renamed to, and back.

    Args:
        kind: Kind of the work root.
        open_dir: Its directories.
        unsupported_fs: As for ``round_trip``.

    On a full disk it may return without a proof.

    Raises:
        RefusedError: a rename is not possible, or a directory folds case; nothing was changed.
        ReadOnlyDiskError: the disk is read-only.
        NoWorkRootError: there is no probe.
    """
    try:
        round_trip(kind, open_dir, unsupported_fs=unsupported_fs)
    except OSError as error:
        # ENOSPC does not show whether a rename between the two is possible. A later rename of a replica
        # fails by itself then, and is undone. Otherwise staged data on a full disk could never be purged.
        if not is_full(error):
            raise refusal(open_dir, error) from error


def prove_use(kind: WorkRootKind, open_dir: OpenLogDir, *, unsupported_fs: bool = False) -> None:
    """Link a file of the broker into the work root, remove the link, and take and give back a lease on that file.

    Args:
        kind: Kind of the work root.
        open_dir: Its directories.
        unsupported_fs: Whether the operator allows any file system: then nothing is proven.

    On a full disk it may return without a proof of the link.

    Raises:
        RefusedError: no link is possible, or no lease; nothing was changed.
        ReadOnlyDiskError: the disk is read-only.
        NoWorkRootError: there is no probe.
    """
    if unsupported_fs:
        return
    name = f"{open_dir.top.path}/{META_PROPERTIES}"
    try:
        _require_home(kind, open_dir)
        _link_there_and_back(open_dir)
    except OSError as error:
        if not is_full(error):
            raise _link_refusal(open_dir, name, error) from error
    try:
        prove_lease(open_dir.top, META_PROPERTIES)
    except OSError as error:
        if is_sick(error):
            raise read_only(open_dir.top, error, "a disk that answers") from error
        raise RefusedError(
            name,
            why=Why.LEASE_NOT_PERMITTED,
            expected="a lease (F_SETLEASE), by which a purge sees whether a file is open",
            found=error.strerror or error,
            fix="run as the owner of the log dirs and of the files there, on ext4, XFS or btrfs",
        ) from error


def _link_there_and_back(open_dir: OpenLogDir) -> None:
    empty(open_dir.work, PROBE)
    with open_dir.work.open(PROBE) as directory:
        open_dir.top.link(META_PROPERTIES, directory, PROBE_LINK)
        directory.unlink(PROBE_LINK)


def _link_refusal(open_dir: OpenLogDir, name: str, error: OSError) -> DiskError:
    if is_sick(error):
        return read_only(open_dir.work, error, "a writable disk")
    if error.errno in _CROSSING:
        return _mounts_differ(open_dir, name, error)
    return RefusedError(
        name,
        why=Why.LINK_NOT_PERMITTED,
        expected="a hard link into the work root, as a capture makes it",
        found=error.strerror or error,
        fix="run as the owner of the log dirs and of the files there (fs.protected_hardlinks), on ext4, XFS or btrfs",
    )
