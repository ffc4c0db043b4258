"""Opening the work root of one log dir for a command, also behind a start block; only reads.

Not here: all log dirs together, and their locks (``service.log_dirs.open_broker``).

Spec: design §3.2, §8; attacks A25, A37.
"""

from __future__ import annotations

from contextlib import ExitStack

from logdir.disk.kernel.calls import Disk
from logdir.disk.record import start_block
from logdir.disk.root.work_root import WorkRoot, locate, open_log_dir, open_root, open_site, path_of, require_accepted
from logdir.errors import NoWorkRootError, Problem, RefusedError
from logdir.formats.kafka import meta_properties
from logdir.formats.own import start_block_file, work_root_file
from logdir.paths import META_PROPERTIES
from logdir.refusal_slug import Why


def open_true_root(disk: Disk, log_dir: str, *, is_start_block_allowed: bool = True) -> WorkRoot:
    """Open the work root of a log dir, also of a blocked one; only reads.

    Args:
        disk: The file systems.
        log_dir: Absolute path as configured.
        is_start_block_allowed: Whether to open it during a layout change.

    Returns:
        The open root; the caller closes it.

    Raises:
        RefusedError: a layout change is under way.
        LogDirError: as ``open_root`` and ``start_block.true_properties``.
        OSError: a part of it cannot be opened.
    """
    with ExitStack() as stack:
        top = stack.enter_context(open_log_dir(disk, log_dir))
        data = start_block.true_properties(top)
        path = f"{log_dir}/{META_PROPERTIES}"
        if data is None or not start_block_file.is_blocked(top.read(META_PROPERTIES, 1 << 20), path):
            return open_root(disk, log_dir)
        if not is_start_block_allowed:
            raise RefusedError.of(blocked(log_dir))
        belongs = work_root_file.belonging(meta_properties.parse(data, path))
        located = locate(disk, log_dir, top)
        if located.found is None or located.file is None:
            raise NoWorkRootError(
                log_dir, expected="a work root", found="no work root", fix="check that the right disk is mounted"
            )
        require_accepted(located.file, belongs, path_of(located.found, log_dir))
        open_dir = open_site(stack, disk, located.found, log_dir, top, belongs)
        word = located.file.unsupported_fs
        return WorkRoot(
            kind=located.found, open_dir=open_dir, belongs=belongs, opened=stack.pop_all(), unsupported_fs=word
        )


def blocked(where: str) -> Problem:
    """Return the problem that a start block is set, so that only a change of layout may go on."""
    return Problem(
        Why.LAYOUT_CHANGE_UNDER_WAY.value,
        where,
        "log dirs that are not blocked",
        "a start block: a change of layout is under way",
        "logdirctl layout status",
    )
