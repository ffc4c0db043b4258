"""One log dir's steps in a layout change: its ``layout.json``, its empty prefix directories, its last sync.

The caller holds every lock of the broker.

Not here: moving replicas (``relayout``), the order of steps over all log dirs (``logdir.service.batch.layout_phases``).

Spec: design §2 law 6, §3.1; attacks A21.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from logdir.disk.kernel.failure import calling, full_disk, is_full
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.small_file import read_file, remove_file, replace_file
from logdir.disk.replica.layout_view import identity
from logdir.disk.replica.relayout import remove_empty_prefixes
from logdir.disk.root.open_log_dir import LogDirTop, OpenLogDir
from logdir.errors import DiskError, RefusedError
from logdir.formats.own import layout_file
from logdir.formats.own.layout_file import FILE_NAME, LayoutFile, LayoutState
from logdir.paths import TEMPORARY
from logdir.refusal_slug import Why


@contextmanager
def map_os_errors(one: LogDirTop) -> Iterator[None]:
    """Turn an ``OSError`` of the body into an error that names the log dir.

    Raises:
        ReadOnlyDiskError: the disk is sick.
        DiskFullError: the disk is full.
        DiskError: any other call failed.
    """
    try:
        with calling(one.top):
            yield
    except OSError as error:
        if is_full(error):
            raise full_disk(one.log_dir, error) from error
        raise DiskError(
            one.log_dir,
            expected="a call that succeeds",
            found=error.strerror or error,
            fix="remove the cause, then repeat the command",
        ) from error


def write_state(open_dir: OpenLogDir, state: LayoutState, plan_sha256: str, for_broker: str | None = None) -> None:
    """Write ``layout.json`` durably.

    Args:
        open_dir: The log dir.
        state: The state of the layout change.
        plan_sha256: SHA-256 in the footer of the plan document.
        for_broker: The broker that reads topic-id directories, as the operator named it.

    Raises:
        ReadOnlyDiskError: a sync failed or the disk is sick.
        LogDirError: as ``layout_view.identity``, or as ``replace_file``.
        OSError: another call failed.
    """
    before = read_file(open_dir.top, FILE_NAME)
    cluster_id, node_id = identity(open_dir)
    data = layout_file.render(LayoutFile(state, plan_sha256, cluster_id, node_id, for_broker))
    if state is LayoutState.APPLIED:
        # The renames of a killed process must be durable, too, before the file has ``applied``. It is measured
        # (reliability §4.1), not promised, that the sync of the log dir below covers these renames.
        with syncing(open_dir.top):
            open_dir.top.sync_disk()
    replace_file(
        open_dir.top, FILE_NAME, data, before=before, owner=open_dir.owner.for_file(), work=open_dir.work, keep=False
    )


def remove_state(open_dir: OpenLogDir) -> None:
    """Remove ``layout.json`` and its temporary file. Raises ``OSError``, ``ReadOnlyDiskError``."""
    for name in (FILE_NAME + TEMPORARY, FILE_NAME):
        remove_file(open_dir.top, name)


def require_no_prefixes(open_dir: OpenLogDir) -> None:
    """Remove the empty prefix directories, and make all changes of the disk durable.

    Raises:
        RefusedError: a prefix directory is not empty: no stock broker starts beside it.
        ReadOnlyDiskError: a sync failed or the disk is sick.
        OSError: the log dir cannot be listed.
    """
    if left := remove_empty_prefixes(open_dir):
        raise RefusedError(
            f"{open_dir.log_dir}/{left[0]}",
            why=Why.PREFIX_NOT_EMPTY,
            expected="an empty prefix directory",
            found="something in it",
            fix="inspect it and move it out of the log dir; the start block stays until then",
        )


def sync(open_dir: OpenLogDir) -> None:
    """Make the entries of the log dir durable, including changes of a killed process. Raises ``ReadOnlyDiskError``."""
    with syncing(open_dir.top):
        open_dir.top.sync()
