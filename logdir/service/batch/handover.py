"""The use case *handover*: before a broker starts, finish or undo what is unfinished, and lift the start block.

Refused while a log dir of the broker is lacking (law 5), or something that must be finished is left. Other trouble is a
problem of the result and refuses nothing: it keeps no broker down. The checkpoint files are compared with their copies
and copied, because a broker that does not get through its start empties two of them.

Not here: how a layout change is ended (``decide.layout.handover``), crash recovery (``disk.recover_broker``), what
checkpoint files lost (``checkpoint_losses``), how long a daemon keeps away afterwards (``daemon.start_awaited``).

Spec: design §2 laws 4, 5, §6 ``handover``, §8; attacks A16, A22, A30, A37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from logdir.decide.layout.action import Decision
from logdir.decide.layout.handover import hand_over
from logdir.disk.batch_loop import Held
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.record import handover, start_block
from logdir.disk.record.start_block import StartBlockState
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import ConfigError, LogDirError, LogDirSuspectError, Problem, RefusedError
from logdir.names import parse_work_dir
from logdir.paths import INCOMING
from logdir.refusal_slug import Why
from logdir.service.batch.checkpoint_losses import LogStarts, compared, problems_of, put_back, restorable
from logdir.service.batch.layout_phases import carry_out, look_all
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.log_dirs.quarantine import require_none_quarantined
from logdir.service.log_dirs.request import require_log_dirs
from logdir.service.report.exit_status import Exit
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import HandoverResult, ItemResult, ItemState
from logdir.service.report.use_case import Ran
from logdir.text import quoted

NOT_KEPT: Final = "checkpoints-not-kept"
"""Slug of the problem that the checkpoint files of a log dir were not copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoverRequest:
    """A request to hand the log dirs over to a broker."""

    skipped: tuple[str, ...] = ()
    """Log dirs that may be lacking: the operator has seen to it that their partitions come back."""
    log_starts: LogStarts | None = None
    """What becomes of log starts that a start of the broker lost; ``None``: they are reported."""
    is_recovery_only: bool = False
    """Whether only what was interrupted is finished or undone: no broker starts next."""

    def require_valid(self) -> None:
        """Check that no log starts are to be changed where only recovery is asked for. Raises ``ConfigError``."""
        if self.is_recovery_only and self.log_starts is not None:
            expected, fix = "a recovery alone", "leave one of the options out"
            raise ConfigError((Problem("config-error", "--recover-only", expected, "--log-starts beside it", fix),))


def run(broker: OpenBroker, asked: HandoverRequest, *, is_applied: bool, reporter: Reporter) -> Ran:
    """Decide what has to be ended before a broker may start, and, if it is to be applied, end it.

    Args:
        broker: The broker, opened with a start block allowed.
        asked: The request.
        is_applied: Whether to do it, which needs Kafka's locks.
        reporter: Receives progress.

    Raises:
        LockHeldError: a broker runs.
        RefusedError: a log dir is lacking; replicas lie under topic ids and may not be taken back unasked; or what is
            unfinished cannot be finished.
        LogDirError: as ``OpenBroker.recover``, or a log dir cannot be read.
    """
    if asked.is_recovery_only:
        return _recovered(broker, is_applied=is_applied)
    _require_whole(broker, asked)
    if is_applied:
        broker.recover()
        _require_whole(broker, asked)
    _require_finished(broker, is_recovered=is_applied)
    block = _start_block(broker)
    views = look_all(broker.open_dirs, broker.begin_at)
    decision = hand_over(views, is_begun=block is not StartBlockState.NONE)
    _require_allowed(broker, decision)
    details = _layout_details(broker, decision, is_applied=is_applied)
    if is_applied and decision.phases:
        _end(broker, asked, decision, reporter)
    if asked.log_starts is LogStarts.RESTORE:
        details = _restore_log_starts(broker, details, is_applied=is_applied)
    if is_applied:
        problems: Sequence[Problem] = _keep(broker, is_accepted=asked.log_starts is LogStarts.ACCEPT)
        _require_whole(broker, asked)
    else:
        problems = compared(broker, broker.open_dirs)
    return _ran(broker, details, problems, block, _line(broker, is_applied=is_applied), is_applied=is_applied)


def _ran(
    broker: OpenBroker,
    details: Mapping[str, str],
    problems: Sequence[Problem],
    block: StartBlockState,
    line: str,
    *,
    is_applied: bool,
) -> Ran:
    state = ItemState.DONE if is_applied else ItemState.PLANNED
    items = tuple(
        ItemResult(log_dir=open_dir.log_dir, path=".", state=state, detail=details.get(open_dir.log_dir, ""))
        for open_dir in broker.open_dirs
    )
    result = HandoverResult(applied=is_applied, items=items, start_block=block)
    return Ran(exit=Exit.DONE, problems=(*broker.notes, *problems), result=result, lines=(line,))


def _recovered(broker: OpenBroker, *, is_applied: bool) -> Ran:
    """Finish or undo what was interrupted, and nothing else: whether a broker may start is the next handover's."""
    if is_applied:
        broker.recover()
    detail = "what was interrupted is finished or undone" if is_applied else "what was interrupted would be ended"
    details = {open_dir.log_dir: detail for open_dir in broker.changeable}
    line = "recovered" if is_applied else "would be recovered"
    ran = _ran(broker, details, (), _start_block(broker), f"{_counted(broker)} {line}", is_applied=is_applied)
    is_whole = not (broker.notes or broker.missing or broker.ports.suspect)
    return ran if is_whole else replace(ran, exit=Exit.PROBLEMS)


def _require_whole(broker: OpenBroker, asked: HandoverRequest) -> None:
    """Refuse while a log dir is lacking: its partitions would come back empty elsewhere (law 5)."""
    skipped = require_log_dirs("--skip-log-dir", asked.skipped, broker.named)
    for log_dir in broker.named.log_dirs:
        is_lacking = log_dir in broker.missing or log_dir in broker.ports.suspect
        if is_lacking and log_dir not in skipped:
            raise lacking_error(log_dir, _why_lacking(broker, log_dir), "repair it")


def _why_lacking(broker: OpenBroker, log_dir: str) -> str:
    port = broker.ports.port(log_dir)
    if port.is_suspect:
        why: Problem | None = broker.ports.why_suspect(port)
    else:
        why = next((note for note in broker.notes if note.path == log_dir), None)
    return "no answer" if why is None else found_and_expected(why)


def found_and_expected(problem: Problem) -> str:
    """Return what was found, with what was expected, for the text of another problem: both may be bare values."""
    return f"{problem.found} where {problem.expected} was expected"


def lacking_error(log_dir: str, found: str, fix: str) -> RefusedError:
    """Return the error that a log dir is missing before a broker starts; ``fix``: how it is brought back."""
    return RefusedError(
        log_dir,
        why=Why.LOG_DIRS_INCOMPLETE,
        expected="every log dir of the broker, before it starts",
        found=found,
        fix=f"{fix}; to start without it (its partitions come back empty elsewhere) remove it from log.dirs "
        f"or add --skip-log-dir {quoted(log_dir)}",
    )


def _require_finished(broker: OpenBroker, *, is_recovered: bool) -> None:
    """Refuse while an adoption is left that crash recovery cannot end: a broker might make its replica anew."""
    unchanged = [log_dir for log_dir in broker.named.log_dirs if log_dir not in _changeable(broker)]
    if not is_recovered and not unchanged:
        return  # Crash recovery would end it.
    for open_dir in broker.open_dirs:
        with map_os_errors(open_dir.log_dir):
            names = _ready(open_dir)
        for name in names:
            path = open_dir.path_of(f"{INCOMING}/{name}")
            found = next((note.found for note in broker.notes if note.path == path), "")
            raise RefusedError(
                path,
                why=Why.RECOVERY_FAILED,
                expected="no adoption half done, before a broker starts",
                found=found or "one",
                fix=f"it is finished or taken back once {', '.join(unchanged) or 'it'} may be changed: its replica may "
                "live there",
            )


def _changeable(broker: OpenBroker) -> set[str]:
    """Return the log dirs in which crash recovery may change something."""
    return {open_dir.log_dir for open_dir in broker.changeable} - broker.without


def _ready(open_dir: OpenLogDir) -> list[str]:
    """Return the names of adoptions that were ready to be published, and are not."""
    parts = ((name, parse_work_dir(name)) for name in open_dir.incoming.names())
    return [name for name, found in parts if found is not None and found.mark == "ready"]


def _start_block(broker: OpenBroker) -> StartBlockState:
    with map_os_errors(", ".join(open_dir.log_dir for open_dir in broker.open_dirs)):
        return start_block.state(broker.open_dirs)


def _require_allowed(broker: OpenBroker, decision: Decision) -> None:
    """Refuse what may not be done: by the decision, or on a log dir that may not be changed."""
    for refused in decision.refused:
        raise refused
    if decision.phases:
        require_none_quarantined(broker.quarantined)


def _end(broker: OpenBroker, asked: HandoverRequest, decision: Decision, reporter: Reporter) -> None:
    """Carry out a decision as a whole. Raises what kept it from its end."""

    @contextmanager
    def hold() -> Iterator[Held]:
        with broker.batch() as held:
            # A log dir may have failed, fallen silent or been let go meanwhile. The others keep their start block then:
            # nothing else keeps a stock broker from starting without it.
            require_none_quarantined(broker.quarantined)
            _require_whole(broker, asked)
            yield held

    report = carry_out(broker.open_dirs, decision, hold, reporter=reporter, begin_at=broker.begin_at)
    for error in (*report.failed.values(), *report.refused):
        raise error


def _restore_log_starts(broker: OpenBroker, details: Mapping[str, str], *, is_applied: bool) -> Mapping[str, str]:
    """Write lost log starts back into every log dir that may be changed; return the details with what was done."""
    found = dict(details)
    for open_dir in broker.changeable:
        lost = restorable(broker, open_dir)
        count = len(lost.offsets)
        if is_applied and lost.offsets:
            with broker.batch() as held:
                if open_dir.log_dir in held.log_dirs:
                    held.require_held()
                    put_back(broker, open_dir, lost)
                else:
                    count = 0  # It was to be skipped if it fails, and its lock could not be taken.
        done = "restored" if is_applied else "to be restored"
        found[open_dir.log_dir] += f"; log starts {done}: {count}"
        if lost.left:
            why = "left, because the ends of their logs lie before them or are not known"
            found[open_dir.log_dir] += f"; {why}: {len(lost.left)}"
    return found


def _keep(broker: OpenBroker, *, is_accepted: bool) -> list[Problem]:
    """Compare and keep the checkpoint files of every log dir that may be changed; return what they lost, and why some
    could not be kept.
    """
    problems: list[Problem] = []
    for open_dir in broker.changeable:
        with broker.batch():
            try:
                with map_os_errors(open_dir.log_dir):
                    losses = broker.begin_at(handover.keep, open_dir, read_instant(), is_accepted=is_accepted).result()
                problems += problems_of(open_dir.log_dir, losses)
            except LogDirSuspectError as error:
                broker.ports.note(error)
            except LogDirError as error:
                problems += (_not_kept(open_dir.log_dir, error), *compared(broker, (open_dir,)))
    return problems


def _not_kept(log_dir: str, error: LogDirError) -> Problem:
    problem = error.problem()
    fix = f"the broker may start without it; {problem.fix}"
    return Problem(NOT_KEPT, log_dir, "a copy of the four checkpoint files", f"{problem.path}: {problem.found}", fix)


def _layout_details(broker: OpenBroker, decision: Decision, *, is_applied: bool) -> Mapping[str, str]:
    detail = "no change of layout is unfinished"
    if decision.phases:
        ended = "was ended, and the start block lifted" if is_applied else "would be ended"
        detail = f"a change of layout {ended}"
    return {open_dir.log_dir: detail for open_dir in broker.open_dirs}


def _line(broker: OpenBroker, *, is_applied: bool) -> str:
    dirs = _counted(broker)
    return f"{dirs} handed over: a broker may start" if is_applied else f"{dirs} would be handed over"


def _counted(broker: OpenBroker) -> str:
    count = len(broker.open_dirs)
    return f"{count} log dir{'' if count == 1 else 's'}"
