"""The read-only plan of ``init`` for a log dir.

Not here: carrying it out (``init``). The plan excludes places that certainly fail (another mount); only ``init`` proves
that a place works.

Spec: design §3.2; attacks A5, A6, A7.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from logdir.disk.kernel.calls import Directory, Disk
from logdir.disk.kernel.file_system import require_supported_fs
from logdir.disk.kernel.small_file import read_file
from logdir.disk.root.work_root import (
    locate,
    normal,
    open_log_dir,
    open_work_root,
    path_of,
    read_belonging,
    require_accepted,
)
from logdir.errors import RefusedError, WorkRootConflictError
from logdir.formats.own import layout_file
from logdir.formats.own.inventory import Kind
from logdir.formats.own.work_root_file import Belonging, WorkRootKind
from logdir.observe.classify import Inside, Named, Place, Type, classify
from logdir.paths import DELETING, INCOMING, OWNER_LOCK
from logdir.refusal_slug import Why


class Candidate(NamedTuple):
    """A place for a work root."""

    kind: WorkRootKind
    path: str
    detail: str
    """Why this place is tried, or why it cannot be used."""


class InitPlan(NamedTuple):
    """The plan of ``init`` for one log dir: where to create its work root, or what a whole one lacks."""

    log_dir: str
    belongs: Belonging
    layout: str
    """``empty``, ``topic-name``, ``topic-id`` or ``mixed``, by the live directories."""
    candidates: tuple[Candidate, ...]
    """At least one place; they are tried in this order until the proof succeeds."""
    passed: tuple[Candidate, ...]
    """Places that certainly fail."""
    is_whole: bool
    """Whether a whole work root exists; its missing parts are recreated."""
    unsupported_fs: bool = False
    """Whether the operator allows any file system; recorded in the work root."""
    lacks: tuple[str, ...] = ()
    """Missing parts without which a whole work root can be neither opened nor owned."""


def layout_of(top: Directory) -> str:
    """Return the layout of a log dir's live directories. Only reads.

    Returns:
        ``empty``, ``topic-name``, ``topic-id`` or ``mixed``.

    Raises:
        OSError: a directory cannot be listed.
    """
    has_names = has_ids = False
    for name in top.names():
        seen = classify(name, Type.DIRECTORY, Place.TOP)
        if isinstance(seen, Named):
            is_live = seen.kind is Kind.LIVE and not has_names
            has_names = has_names or (is_live and _is_directory(top, name))
        elif seen is Inside.PREFIX and not has_ids and _is_directory(top, name):
            has_ids = _holds_live(top, name)
    if has_names and has_ids:
        return "mixed"
    return "topic-name" if has_names else "topic-id" if has_ids else "empty"


def _is_directory(parent: Directory, name: str) -> bool:
    try:
        return parent.stat(name).type in (Type.DIRECTORY, Type.SYMLINK)
    except FileNotFoundError:
        return False


def _holds_live(top: Directory, prefix: str) -> bool:
    if top.stat(prefix).type is not Type.DIRECTORY:
        return False
    with top.open(prefix) as inside:
        for name in inside.names():
            seen = classify(name, Type.DIRECTORY, Place.PREFIX, prefix)
            if isinstance(seen, Named) and seen.kind is Kind.LIVE and _is_directory(inside, name):
                return True
    return False


@contextmanager
def opened_parent(disk: Disk, log_dir: str) -> Iterator[tuple[Directory, str]]:
    """Open the parent directory of a work root that lies beside its log dir.

    Yields:
        The parent directory, and the name of the work root in it.

    Raises:
        OSError: the parent directory cannot be opened.
    """
    path, name = os.path.split(path_of(WorkRootKind.BESIDE, log_dir))
    # The path may lead through links; "beside" means beside the resolved log dir.
    with disk.open_top(os.path.realpath(path)) as parent:
        yield parent, name


def _against_beside(disk: Disk, log_dir: str, top: Directory) -> str | None:
    """Return what certainly rules out a work root beside the log dir; ``None``: nothing does."""
    if log_dir == "/":
        return "the log dir has no parent"
    own = top.identity()
    try:
        with opened_parent(disk, log_dir) as (parent, name):
            there = parent.identity()
            if (own.device, own.mount_id) != (there.device, there.mount_id):
                return "the log dir is a mount point of its own: nothing can be renamed out of it"
            if name in parent.names():
                parent.open(name).close()
    except OSError as error:
        return f"{error.strerror}: {error.filename or os.path.dirname(log_dir)}"
    return None


def plan_init(
    disk: Disk,
    log_dir: str,
    *,
    requested: WorkRootKind | None = None,
    fs_type: str | None,
    unsupported_fs: bool = False,
) -> InitPlan:
    """Plan where the work root of a log dir may be created. Changes nothing.

    Args:
        disk: The file systems.
        log_dir: Absolute path as configured.
        requested: The kind that ``--work-root`` asks for; ``None`` for ``auto``.
        fs_type: The type of its file system, as ``file_system.fs_type_at`` returns it.
        unsupported_fs: Whether the operator allows any file system.

    Returns:
        The plan for ``init``.

    Raises:
        RefusedError: the file system is not supported, the requested place cannot be used, or the path is a link.
        LogDirOfflineError: the log dir does not answer.
        NotFormattedError: it has no ``meta.properties``.
        ForeignLogDirError: its work root belongs to another log dir, node or cluster.
        WorkRootConflictError: it has two work roots or one of another kind, or another entry lies there.
        FormatError: ``meta.properties`` or ``work-root.json`` is malformed.
        OSError: a part of it cannot be read.
    """
    log_dir = normal(log_dir)
    require_supported_fs(log_dir, fs_type, unsupported_fs=unsupported_fs)
    with open_log_dir(disk, log_dir) as top:
        belongs = read_belonging(top)
        located = locate(disk, log_dir, top)
        layout = layout_of(top)
        if located.found is not None and located.file is not None:
            path = path_of(located.found, log_dir)
            require_accepted(located.file, belongs, path)
            if requested not in (None, located.found):
                raise WorkRootConflictError(
                    path,
                    expected=f"no work root yet, as one {requested.words if requested else ''} is asked for",
                    found=f"a work root {located.found.words}",
                    fix="leave --work-root out, or run logdirctl uninstall first",
                )
            lacks = _lacks(disk, located.found, log_dir, top)
            there = Candidate(
                located.found,
                path,
                "it is there" + (f" but for {', '.join(lacks)}, which init puts back" if lacks else ""),
            )
            word = unsupported_fs or located.file.unsupported_fs
            return InitPlan(log_dir, belongs, layout, (there,), (), is_whole=True, unsupported_fs=word, lacks=lacks)
        against = _against_beside(disk, log_dir, top)
        is_changing = read_file(top, layout_file.FILE_NAME) is not None
    candidates = _candidates(log_dir, requested, is_inside=layout == "topic-id" and not is_changing)
    passed = tuple(c._replace(detail=against) for c in candidates if against and c.kind is WorkRootKind.BESIDE)
    left = tuple(c for c in candidates if not against or c.kind is not WorkRootKind.BESIDE)
    if not left:
        raise RefusedError(
            passed[0].path,
            why=Why.MOUNTS_DIFFER,
            expected="a place on the mount of its log dir",
            found=against,
            fix="logdirctl init --work-root in-place",
        )
    return InitPlan(log_dir, belongs, layout, left, passed, is_whole=False, unsupported_fs=unsupported_fs)


def _lacks(disk: Disk, kind: WorkRootKind, log_dir: str, top: Directory) -> tuple[str, ...]:
    with open_work_root(disk, kind, log_dir, top) as work:
        names = set(work.names())
    return tuple(name for name in (DELETING, INCOMING, OWNER_LOCK) if name not in names)


def require_no_stock_broker(plan: InitPlan) -> None:
    """Return unless a plan creates a work root inside a log dir on which a stock broker may start.

    Raises:
        RefusedError: the plan does so.

    Spec: design §3.2.
    """
    first = plan.candidates[0]
    if first.kind is WorkRootKind.INSIDE and not plan.is_whole and plan.layout != "topic-id":
        raise RefusedError(
            f"{plan.log_dir}/{DELETING}",
            why=Why.WORK_ROOT_INSIDE,
            expected="the topic-id layout, in which no stock broker starts",
            found="an empty log dir" if plan.layout == "empty" else f"the {plan.layout} layout",
            fix="a stock broker stops over deleting/ in a log dir: leave --work-root out; where no broker will ever "
            f"start on it, add --even-if-found {Why.WORK_ROOT_INSIDE.value}",
        )


def _candidates(log_dir: str, requested: WorkRootKind | None, *, is_inside: bool) -> tuple[Candidate, ...]:
    def at(kind: WorkRootKind, why: str) -> Candidate:
        return Candidate(kind, path_of(kind, log_dir), why)

    if requested is not None:
        return (at(requested, "asked for"),)
    if is_inside:
        # With a layout.json the log dir may be moved back to the topic-name layout, and a stock broker start on it.
        return (at(WorkRootKind.INSIDE, "the log dir is in the topic-id layout: no stock broker starts on it"),)
    return (
        at(WorkRootKind.BESIDE, "a stock broker may start on the log dir"),
        at(WorkRootKind.IN_PLACE, "the one sub-directory stock brokers pass over"),
    )
