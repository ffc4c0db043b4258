"""The use cases that change replicas, by the name of their command, and the one way to run any of them.

``logdirctl`` runs them on log dirs that it opens, and the daemon on those that it has open.

Not here: what each does (a module each beside this one), arguments and output (``tools``).

Spec: design §5 "A use case".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Final, NamedTuple

from logdir.disk.kernel.kernel_clock import read_instant
from logdir.service.batch.unlocked import recover_if_stopped
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.opening import opened
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.exit_status import Exit
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemsResult, status_of
from logdir.service.report.use_case import Ran


class _Options(NamedTuple):
    """How a use case opens a broker."""

    needs_all: bool = False
    is_skip_of_use: bool = True
    is_copy: bool = False
    is_start_block_allowed: bool = False
    is_all_skippable: bool = False


class _Entry(NamedTuple):
    """Where a use case is found; its module is imported when it runs."""

    module: str
    request: str
    result: str = "logdir.service.report.result:ItemsResult"
    options: _Options = _Options()
    prepare: str = "recover"
    """What precedes the plan of a change: ``recover`` on a stopped broker, ``recover-if-stopped``, ``none``, or the
    ``prepare`` of its ``module``.
    """
    is_beside_broker: bool = False
    """Whether it works beside a running broker, without Kafka's locks."""


_HERE: Final = "logdir.service"
HANDOVER: Final = "handover"
"""The one after which a broker is about to start."""
_ENTRIES: Final[Mapping[str, _Entry]] = {
    "stage": _Entry(f"{_HERE}.stage", "StageRequest"),
    "capture": _Entry(f"{_HERE}.capture", "CaptureRequest", prepare="recover-if-stopped", is_beside_broker=True),
    "staged restore": _Entry(
        f"{_HERE}.restore",
        "RestoreRequest",
        f"{_HERE}.restore:RestoreResult",
        _Options(needs_all=True, is_skip_of_use=False),
    ),
    "staged adopt": _Entry(
        f"{_HERE}.adopt",
        "AdoptRequest",
        f"{_HERE}.adopt:AdoptResult",
        _Options(needs_all=True, is_skip_of_use=False),
    ),
    "staged hold": _Entry(f"{_HERE}.hold", "Selection", prepare="recover-if-stopped", is_beside_broker=True),
    "staged export": _Entry(
        f"{_HERE}.export", "ExportRequest", options=_Options(is_copy=True), prepare="none", is_beside_broker=True
    ),
    "staged purge": _Entry(
        f"{_HERE}.purge",
        "PurgeRequest",
        "logdir.service.report.result:PurgeResult",
        prepare="module",
        is_beside_broker=True,
    ),
    "reconcile": _Entry(
        f"{_HERE}.batch.reconcile_case",
        "ReconcileRequest",
        f"{_HERE}.report.reconcile_result:ReconcileResult",
        _Options(needs_all=True),
        prepare="none",
    ),
    HANDOVER: _Entry(
        f"{_HERE}.batch.handover",
        "HandoverRequest",
        "logdir.service.report.result:HandoverResult",
        _Options(is_start_block_allowed=True, is_all_skippable=True),
        prepare="none",
    ),
    "layout": _Entry(
        f"{_HERE}.batch.layout_case",
        "LayoutRequest",
        f"{_HERE}.report.layout_result:LayoutResult",
        _Options(needs_all=True, is_start_block_allowed=True),
        prepare="none",
    ),
}
NAMES: Final = tuple(_ENTRIES)
"""The names of all of them."""
NEED_CLOSED: Final = ("init", "uninstall")
"""Commands that make or remove work roots: no daemon may have the log dirs open."""


class Spec(NamedTuple):
    """One use case."""

    name: str
    case: Any
    """Its module: ``plan`` and ``apply`` as ``UseCase``, or ``run``, which does all of it."""
    request: type
    result: type
    prepare: Callable[[OpenBroker], None]
    options: _Options | None
    """``None``: a daemon alone runs it."""
    is_beside_broker: bool

    def opening(self, request: BrokerRequest, *, changes: bool) -> AbstractContextManager[OpenBroker]:
        """Open a broker for it. Raises ``ValueError``: a daemon alone runs it."""
        if self.options is None:
            raise ValueError(self.name)
        return opened(request, changes=changes, **self.options._asdict())

    def without_locks(self) -> Spec:
        """Return the same without crash recovery, which needs Kafka's locks; what works beside a broker needs none."""
        return self._replace(prepare=lambda broker: None)


def spec_of(name: str) -> Spec:
    """Return a use case. Raises ``KeyError``: there is none of that name."""
    entry = _ENTRIES[name]
    case = import_module(entry.module)
    module, _, result = entry.result.partition(":")
    preparations: Mapping[str, Callable[[OpenBroker], None]] = {
        "recover": OpenBroker.recover,
        "recover-if-stopped": recover_if_stopped,
        "none": lambda broker: None,
    }
    return Spec(
        name=name,
        case=case,
        request=getattr(case, entry.request),
        result=getattr(import_module(module), result),
        prepare=case.prepare if entry.prepare == "module" else preparations[entry.prepare],
        options=entry.options,
        is_beside_broker=entry.is_beside_broker,
    )


def run(spec: Spec, broker: OpenBroker, request: Any, *, is_applied: bool, reporter: Reporter) -> Ran:
    """Plan a use case on an open broker, or plan and do it.

    Args:
        spec: The use case.
        broker: Opened, for a change with its locks.
        request: Its request, valid.
        is_applied: Whether to do it.
        reporter: Receives progress and warnings.

    Raises:
        LogDirError: as the use case.
    """
    if (whole := getattr(spec.case, "run", None)) is not None:
        ran: Ran = whole(broker, request, is_applied=is_applied, reporter=reporter)
        return ran
    if is_applied:
        spec.prepare(broker)
    shown = spec.case.plan(broker, request)
    items, problems = list(shown.items), list(shown.problems)
    if is_applied and not shown.is_empty:
        if broker.request.accepted_stale:
            broker.beat(read_instant())  # An accepted disk is in use with the others from now on.
        items, problems = spec.case.apply(broker, shown, reporter)
    make: Callable[..., ItemsResult] = getattr(shown, "result", ItemsResult)
    problems = [*broker.notes, *problems]
    return Ran(
        exit=Exit.PROBLEMS if shown.is_empty else status_of(items, problems),
        problems=tuple(problems),
        result=make(applied=is_applied, items=tuple(items)),
        lines=(*getattr(shown, "lines", ()), *(() if is_applied else getattr(shown, "plan_lines", ()))),
    )
