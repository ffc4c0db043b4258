"""Remove everything of ours from the log dirs of one broker, so that a stock broker can start on them.

Staged replicas are listed, or restored on request. Work roots are removed only if all of them can be removed; otherwise
all stay, so that staged replicas can still be restored, purged and exported. A start block is lifted after the
directories of a work root inside a log dir, which also keep a broker out, are removed. Entries that are not ours are
never changed.

Spec: design §2 laws 1, 7, §6, §8.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from logdir.decide import staging_limit as limit_rule
from logdir.decide.layout.transitions import rollback
from logdir.decide.staged.restore import RestorePlan, RestoreRequest, plan_restore
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.kernel.small_file import read_file
from logdir.disk.record import layout, staging_limit, start_block
from logdir.disk.record.start_block import StartBlockState
from logdir.disk.replica.layout_view import inside
from logdir.disk.root.open_log_dir import LogDirTop, OpenTop
from logdir.disk.root.removal import remove_root, require_ours, require_removable, require_rights
from logdir.disk.root.work_root import open_log_dir, path_of
from logdir.errors import LogDirError, Problem, RefusedError
from logdir.formats.own import layout_file, start_block_file
from logdir.formats.own.inventory import Kind
from logdir.formats.own.layout_file import LayoutState
from logdir.formats.own.replica_marker import BY_HAND
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.observe.facts import LogDirFacts, StagedReplica
from logdir.refusal_slug import Why
from logdir.service.batch.layout_phases import carry_out, look_all
from logdir.service.cluster.cluster_state import Stamp, cluster_with_own_logs, stamp_of
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.log_dirs.quarantine import require_none_quarantined
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemResult, ItemState, refused
from logdir.service.report.staged import staged_replicas
from logdir.service.restore import log_ends, planned_restore, restore_all, warn_of_kinds
from logdir.worker.look import NOTHING

_KINDS = (Kind.STAGED, Kind.PURGING, Kind.INCOMING)
_STAYS = "work root stays"
_GOES = "work root removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallRequest:
    """A request to uninstall."""

    is_restore: bool
    """Whether to restore staged replicas first, as far as possible."""
    source: SourceRequest
    """The source of cluster metadata for restoring."""
    is_even_if_unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallPlanned:
    """The plan of an uninstall."""

    items: tuple[ItemResult, ...]
    """The staged replicas, then one item per work root."""
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    """Shown before any change: what is lost with the work roots."""
    staying: tuple[StagedReplica, ...]
    """Replicas that keep a work root from being removed."""
    found_block: StartBlockState
    """The state of the start block before any change."""
    facts: tuple[LogDirFacts, ...]
    listed: tuple[ItemResult, ...]
    """Staged replicas that are not restored."""
    restoring: tuple[RestoreRequest, RestorePlan, Stamp | None] | None = None
    """The arguments of ``restore_all``; ``None``: nothing is restored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallDone:
    """The result of an uninstall."""

    items: tuple[ItemResult, ...]
    problems: tuple[Problem, ...]
    staying: tuple[StagedReplica, ...]
    """Replicas that were still staged after the restores."""


def prepare(broker: OpenBroker) -> None:
    """Make a broker ready for an uninstall.

    Raises:
        LogDirError: as ``OpenBroker.recover``.
        RefusedError: a log dir is quarantined.
    """
    require_none_quarantined(broker.quarantined)
    broker.recover()


def plan(broker: OpenBroker, asked: UninstallRequest) -> UninstallPlanned:
    """Scan a broker and return the plan; changes nothing.

    Args:
        broker: Opened with a start block and with missing work roots allowed.
        asked: The request.

    Raises:
        RefusedError: a stock broker could not start afterwards, or a start block cannot be lifted everywhere.
        LogDirError: a source that the operator named, or a log dir, cannot be read.
    """
    facts = broker.look(NOTHING)
    with _seen(broker) as tops:
        _require_names(facts, tops)
        with map_os_errors(broker.named.log_dirs[0]):
            found_block = start_block.state(tops) if tops else StartBlockState.NONE
    if found_block is not StartBlockState.NONE and (broker.missing or broker.rootless):
        raise RefusedError(
            ", ".join((*broker.missing, *broker.rootless)),
            why=Why.LOG_DIRS_INCOMPLETE,
            expected="every log dir and its work root, to remove the start block from all of them or from none",
            found="no work root, or no answer",
            fix="logdirctl init makes a missing work root; repair a log dir that does not answer",
        )
    items = staged_replicas(facts, None, *_KINDS)
    restoring = None
    returning: set[tuple[str, str]] = set()
    rows: list[ItemResult] = []
    if asked.is_restore and items:
        stamp = stamp_of(broker, facts)
        staged = [item for item in items if item.kind is Kind.STAGED]
        request = RestoreRequest(
            selected=tuple((item.log_dir, item.name) for item in staged),
            cluster=cluster_with_own_logs(asked.source, broker, facts),
            is_even_if_unknown=asked.is_even_if_unknown,
            log_ends=log_ends(broker, staged),
        )
        made = plan_restore(request, facts)
        restoring = request, made, stamp
        returning = {(action.log_dir, action.name) for action in made.actions}
        rows = [*planned_restore(made), *refused(made.refusals)]
    listed = tuple(_listed(item) for item in items if not (restoring and item.kind is Kind.STAGED))
    staying = tuple(item for item in items if (item.log_dir, item.name) not in returning)
    blocked = _blocked(broker, staying, is_planned=True, is_restore=restoring is not None)
    return UninstallPlanned(
        items=(*listed, *rows, *_root_rows(broker, blocked)),
        problems=tuple(one.problem for one in facts if one.problem is not None),
        warnings=() if blocked else _forgotten(broker),
        staying=staying,
        found_block=found_block,
        facts=facts,
        listed=listed,
        restoring=restoring,
    )


def apply(broker: OpenBroker, shown: UninstallPlanned, reporter: Reporter) -> UninstallDone:
    """Restore the planned replicas, lift the start block, and remove the work roots if all of them can be removed.

    Args:
        broker: Opened for changes; ``prepare`` has run.
        shown: The plan, from ``plan``.
        reporter: Receives progress and warnings.

    Raises:
        LogDirError: as ``OpenBroker.batch``; changes made by then stay.
    """
    rows, problems = list(shown.listed), list(shown.problems)
    if shown.restoring is not None:
        request, made, stamp = shown.restoring
        warn_of_kinds(made, reporter)
        done, more = restore_all(broker, request, made, reporter, stamp)
        rows += done
        problems += more
    _finish_rollback(broker)
    items = staged_replicas(broker.look(NOTHING), None, *_KINDS)
    with broker.batch():
        require_none_quarantined(broker.quarantined)  # A log dir may have failed meanwhile.
        blocked = _blocked(broker, items, is_planned=False, is_restore=shown.restoring is not None)
        if not blocked:
            for line in _forgotten(broker):
                reporter.warn(line)
        rows += _take_back(broker, blocked, shown.found_block)
    return UninstallDone(items=tuple(rows), problems=tuple(problems), staying=items)


@contextmanager
def _seen(broker: OpenBroker) -> Iterator[tuple[LogDirTop, ...]]:
    """Yield every log dir that answers, also those without a work root, which may be blocked, too."""
    with ExitStack() as stack:
        rootless = []
        for log_dir in broker.rootless:
            with map_os_errors(log_dir):
                rootless.append(OpenTop(log_dir, stack.enter_context(open_log_dir(broker.disk_of(log_dir), log_dir))))
        yield (*broker.open_dirs, *rootless)


def _require_names(facts: Sequence[LogDirFacts], tops: Sequence[LogDirTop]) -> None:
    """Raise ``RefusedError`` if a replica lies under its topic id, or a layout change is not complete."""
    for one in facts:
        if one.layout in ("topic-id", "mixed"):
            raise _in_layout(one.log_dir, one.layout)
    files = {one.log_dir: state for one in tops if (state := _layout_state(one)) is not None}
    # A rollback stops early if a work root lies inside a log dir; this command finishes it.
    is_at_its_end = set(files.values()) <= {LayoutState.ROLLING_BACK} and any(_inside(one) for one in tops)
    if files and not is_at_its_end:
        raise _in_layout(f"{next(iter(files))}/{layout_file.FILE_NAME}", "a change of layout under way")


def _layout_state(one: LogDirTop) -> LayoutState | None:
    with map_os_errors(one.log_dir):
        data = read_file(one.top, layout_file.FILE_NAME)
        return None if data is None else layout_file.parse(data, f"{one.log_dir}/{layout_file.FILE_NAME}").state


def _inside(one: LogDirTop) -> tuple[str, ...]:
    with map_os_errors(one.log_dir):
        return inside(one.top.types())


def _in_layout(path: str, found: str) -> RefusedError:
    return RefusedError(
        path,
        why=Why.LAYOUT_DIFFERS,
        expected="the topic-name layout",
        found=found,
        fix="logdirctl layout rollback first",
    )


def _listed(item: StagedReplica) -> ItemResult:
    return ItemResult(
        log_dir=item.log_dir,
        path=item.path,
        state=ItemState.WAITING,
        ref=item.ref,
        detail=_way_out(item, is_restore=False),
    )


def _way_out(item: StagedReplica, *, is_restore: bool) -> str:
    """Return the fix that removes a replica from a work root."""
    if item.kind is Kind.PURGING:
        return "its removal has begun: logdirctl staged purge finishes it"
    if item.kind is Kind.INCOMING:
        return BY_HAND
    if item.marker is None or item.problem is not None:
        return (item.problem.fix if item.problem is not None else "") or BY_HAND
    return (
        "copy it with logdirctl staged export, then logdirctl staged purge"
        if is_restore
        else "logdirctl staged restore or logdirctl staged purge first, or add --restore"
    )


def _blocked(
    broker: OpenBroker, staying: Sequence[StagedReplica], *, is_planned: bool, is_restore: bool
) -> dict[str, Problem]:
    """Return why work roots cannot be removed, by log dir.

    Args:
        broker: Open, with all its log dirs.
        staying: Staged replicas that will not be restored.
        is_planned: Whether the replicas to restore are still staged.
        is_restore: Whether restoring was requested; then the remaining replicas were refused.
    """
    blocked: dict[str, Problem] = {}
    for item in staying:
        if item.log_dir not in blocked:
            count = sum(one.log_dir == item.log_dir for one in staying)
            found = f"{count} entries, {item.name} among them" if count > 1 else item.name
            root = item.root or item.log_dir
            way_out = _way_out(item, is_restore=is_restore)
            blocked[item.log_dir] = Problem("work-root-conflict", root, "an empty work root", found, way_out)
    roots = {root.open_dir.log_dir: root for root in broker.roots}
    for log_dir in (*roots, *broker.rootless):
        if log_dir in blocked:
            continue
        try:
            with map_os_errors(log_dir):
                if is_planned and log_dir in roots:
                    require_ours(roots[log_dir].open_dir.work, roots[log_dir].kind)
                    require_rights(broker.disk_of(log_dir), log_dir)
                else:
                    require_removable(broker.disk_of(log_dir), log_dir)
        except LogDirError as error:
            blocked[log_dir] = error.problem()
    return blocked


def _root_rows(broker: OpenBroker, blocked: Mapping[str, Problem]) -> list[ItemResult]:
    """Return one row per work root, as planned or as kept."""
    rows = []
    for root in broker.roots:
        open_dir = root.open_dir
        problem = blocked.get(open_dir.log_dir)
        if not blocked:
            state, detail = ItemState.PLANNED, _GOES
        elif problem is None:
            state, detail = ItemState.WAITING, f"{_STAYS}: all work roots go together or none"
        else:
            state, detail = ItemState.REFUSED, _STAYS
        rows.append(
            ItemResult(log_dir=open_dir.log_dir, path=open_dir.work.path, state=state, detail=detail, problem=problem)
        )
    rows += [
        ItemResult(log_dir=log_dir, path=log_dir, state=ItemState.REFUSED, detail=_STAYS, problem=blocked[log_dir])
        for log_dir in broker.rootless
        if log_dir in blocked
    ]
    return rows


def _forgotten(broker: OpenBroker) -> tuple[str, ...]:
    """Return the warning that the record of the staging limit is removed with the work roots, if it counts anything."""
    record = limit_rule.highest(broker.on_all(staging_limit.read_records))
    counted = sum(count.partitions for count in limit_rule.recent(record or (), read_instant()))
    if not counted:
        return ()
    what = f"{counted} partition{'s were' if counted > 1 else ' was'} staged within 24 hours"
    return (f"{what}; this count is removed with the work roots, and starts at 0 after the next init",)


def _finish_rollback(broker: OpenBroker) -> None:
    """Move every replica back to its topic name after a rollback that stopped because of a work root inside a log dir.

    Raises:
        RefusedError: not all replicas could be moved back.
    """
    if not any(_layout_state(open_dir) is not None for open_dir in broker.open_dirs):
        return
    decision = rollback(look_all(broker.open_dirs, broker.begin_at))
    report = carry_out(broker.open_dirs, decision, broker.batch, begin_at=broker.begin_at)
    for error in (*report.failed.values(), *report.refused):
        if error.slug != Why.WORK_ROOT_INSIDE.value:
            raise RefusedError.of(error.problem())


def _take_back(broker: OpenBroker, blocked: Mapping[str, Problem], found_block: StartBlockState) -> list[ItemResult]:
    """Lift the start block and remove the work roots, under every lock."""
    within = [open_dir.log_dir for open_dir in broker.open_dirs if _inside(open_dir)]
    if blocked:
        if found_block is StartBlockState.NONE or within:
            return _root_rows(broker, blocked)
        start_block.lift_block(broker.open_dirs)
        lifted = [
            ItemResult(
                log_dir=open_dir.log_dir,
                path=start_block_file.FILE_NAME,
                state=ItemState.DONE,
                detail="start block lifted",
            )
            for open_dir in broker.open_dirs
        ]
        return [*lifted, *_root_rows(broker, blocked)]
    rows = _removed(broker, within)
    if any(row.state is not ItemState.DONE for row in rows):
        return rows  # The start block stays: a stock broker could not start with the remaining work root.
    if found_block is not StartBlockState.NONE:
        start_block.lift_block(broker.open_dirs)
    for open_dir in broker.open_dirs:
        with map_os_errors(open_dir.log_dir):
            layout.remove_state(open_dir)
    left = [open_dir.log_dir for open_dir in broker.open_dirs if open_dir.log_dir not in within]
    # For log dirs without a work root: the rest of an interrupted removal, if any.
    return [*rows, *_removed(broker, left), *_removed(broker, broker.rootless)]


def _removed(broker: OpenBroker, log_dirs: Collection[str]) -> list[ItemResult]:
    rows: list[ItemResult] = []
    works = {open_dir.log_dir: open_dir.work.path for open_dir in broker.open_dirs}
    for log_dir in log_dirs:
        kinds: Sequence[WorkRootKind] = ()
        problem = None
        if any(row.problem is not None for row in rows):  # A whole work root is better than a partly removed one.
            place = works.get(log_dir, log_dir)
            rows.append(ItemResult(log_dir=log_dir, path=place, state=ItemState.WAITING, detail=_STAYS))
            continue
        try:
            kinds = remove_root(broker.disk_of(log_dir), log_dir)
        except LogDirError as error:
            problem = error.problem()
        path = works.get(log_dir)
        paths = [path_of(kind, log_dir) for kind in kinds] if path is None and problem is None else [path or log_dir]
        state, detail = (ItemState.DONE, _GOES) if problem is None else (ItemState.REFUSED, _STAYS)
        rows += [ItemResult(log_dir=log_dir, path=one, state=state, detail=detail, problem=problem) for one in paths]
    return rows
