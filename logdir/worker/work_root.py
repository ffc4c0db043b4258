"""The making and mending of the work root of one log dir, as its worker does it.

Not here: where a work root can be, making one (``logdir.disk``), all log dirs of a broker (``service.init``).

Spec: design §2 law 4, §3.2, §5 "A port per log dir"; attacks A22, A31.
"""

from __future__ import annotations

from contextlib import ExitStack

from logdir.disk.kernel.failure import as_disk_error
from logdir.disk.kernel.file_system import fs_type_at
from logdir.disk.root import init
from logdir.disk.root.init import InitDone
from logdir.disk.root.plan import InitPlan, plan_init
from logdir.disk.root.work_root import open_log_dir, open_work_root
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.worker.state import WorkerState


def plan_root(opened: WorkerState, log_dir: str, requested: WorkRootKind | None, *, unsupported_fs: bool) -> InitPlan:
    """Decide where the work root of a log dir may be made; only reads. Raises as ``plan_init``."""
    fs_type = fs_type_at(log_dir)
    return plan_init(opened.disk, log_dir, requested=requested, fs_type=fs_type, unsupported_fs=unsupported_fs)


def make_root(opened: WorkerState, plan: InitPlan, made_at_ms: int) -> InitDone:
    """Make a work root, or what is missing in it. Raises as ``work_root_init.init``."""
    return init.init(opened.disk, plan, made_at_ms=made_at_ms)


def put_back(opened: WorkerState, plan: InitPlan) -> None:
    """Put back what a whole work root lacks, under Kafka's lock of its log dir; the worker holds the lock afterwards.

    Raises:
        LockHeldError: a broker runs, or another process of ours is in a batch.
        LogDirError: as ``open_log_dir``, ``WorkerState.lock`` and ``put_back_missing``.
        OSError: the work root cannot be opened.
    """
    with ExitStack() as stack:
        top = stack.enter_context(open_log_dir(opened.disk, plan.log_dir))
        work = stack.enter_context(open_work_root(opened.disk, plan.candidates[0].kind, plan.log_dir, top))
        opened.lock(plan.log_dir, work)
        try:
            init.put_back_missing(work, top.own_stat().owner)
        except OSError as error:
            raise as_disk_error(work.path, error) from error
