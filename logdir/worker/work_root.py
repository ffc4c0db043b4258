"""Creating and repairing the work root of one log dir: calls that its worker process makes.

Not here: the choice of a place, creating a work root (``logdir.disk.root``), all log dirs of a broker
(``service.init``).

Spec: design §2 law 4, §3.2, §5 "A port per log dir"; attacks A22, A31.
"""

from __future__ import annotations

from contextlib import ExitStack

from logdir.disk.kernel.failure import as_disk_error
from logdir.disk.kernel.file_system import fs_type_at
from logdir.disk.root import init, probe
from logdir.disk.root.init import InitDone
from logdir.disk.root.plan import InitPlan, plan_init
from logdir.disk.root.work_root import open_log_dir, open_work_root
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.worker.state import WorkerState
from logdir.worker_call import worker_call


@worker_call
def plan_root(opened: WorkerState, log_dir: str, requested: WorkRootKind | None, *, unsupported_fs: bool) -> InitPlan:
    """Plan where the work root of a log dir may be created; only reads. Raises as ``plan_init``."""
    fs_type = fs_type_at(log_dir)
    return plan_init(opened.disk, log_dir, requested=requested, fs_type=fs_type, unsupported_fs=unsupported_fs)


@worker_call
def make_root(opened: WorkerState, plan: InitPlan, made_at_ms: int) -> InitDone:
    """Create a work root, or its missing parts. Raises as ``disk.root.init.init``."""
    return init.init(opened.disk, plan, made_at_ms=made_at_ms)


@worker_call
def prove_use(opened: WorkerState) -> None:
    """Prove in the open work root that files of the broker can be linked and leased.

    Raises:
        LogDirError: as ``disk.root.probe.prove_use``.
        ValueError: no work root is open.
    """
    root = opened.root
    if root is None:
        raise ValueError("no work root is open")
    probe.prove_use(root.kind, root.open_dir, unsupported_fs=root.unsupported_fs)


@worker_call
def put_back(opened: WorkerState, plan: InitPlan) -> None:
    """Recreate the missing files of a work root that was complete once; the worker takes and keeps Kafka's lock.

    Raises:
        LockHeldError: a broker runs, or another logdird process is in a batch.
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
