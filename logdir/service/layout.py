"""Take the replicas of a stopped broker to topic-id directories by a plan, verify that, and take them back.

``plan`` looks and decides; ``apply`` looks and decides again, then does it in batches under the broker's own locks, and
goes on with whatever a former run left. Steps of a plan that no longer fit are refused by name, the others are done.

Not here: which verb is allowed (``logdir.decide.layout.relayout``), the phases (``layout_phases``), a look beside
any broker (``layout_status``).

Spec: design §3.1, §6, §7.7, §8; attacks A21, A22, A37.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, assert_never

from logdir.decide.layout import relayout as rule
from logdir.decide.layout.action import Decision, LayoutView, MoveToTopicNames
from logdir.disk.batch_loop import Held
from logdir.disk.record import start_block
from logdir.disk.record.start_block import StartBlockState
from logdir.errors import RefusedError
from logdir.formats.own import plan_document
from logdir.formats.own.plan_document import PlanDocument
from logdir.observe.named_file import read_named
from logdir.refusal_slug import Why
from logdir.service.batch.layout_phases import carry_out, look_all
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.log_dirs.quarantine import require_none_quarantined
from logdir.service.report.layout_result import LayoutResult, LayoutVerb, result_of
from logdir.service.report.reporter import Reporter

KEPT: Final = """\
What is kept on this host while the layout is changed (logdirctl layout rollback takes it back):
  in each log dir: layout.json (how far), start-block.json (the true meta.properties), logdird-start-block.txt (the same
  for people)
  in a replica whose partition.metadata was missing or strange: relayout.json (what it was)
  once the log dirs are blocked no broker can start until logdirctl layout rollback"""
"""For the operator, before the first change."""
_MAX_PLAN_BYTES: Final = 1 << 32
"""A step takes some 300."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutRequest:
    """The request of this use case."""

    verb: LayoutVerb
    document: PlanDocument | None = None
    """This broker's plan, of ``read_plan``; of the verbs that take one."""
    for_broker: str = ""
    """Of *finalize*: the broker that reads topic-id directories."""
    is_even_if_file_missing: bool = False
    """Replicas under topic ids are this broker's, though ``layout.json`` is missing."""

    def require_valid(self) -> None:
        """Return if there is a plan where the verb takes one, and nowhere else. Raises ``ValueError``."""
        if (self.document is not None) is not self.verb.has_plan:
            raise ValueError(f"layout {self.verb.value} {'without' if self.verb.has_plan else 'with'} a plan document")


def read_plan(path: str) -> PlanDocument:
    """Read a plan document.

    Raises:
        ConfigError: there is no such file, it may not be read, or is no regular one.
        FormatError: it is no whole document.
    """
    data = read_named(path, _MAX_PLAN_BYTES, "a plan document", "brokers/CLUSTER/NODE.jsonl of a plan directory")
    return plan_document.parse(data, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutPlanned:
    """The plan of this use case."""

    request: LayoutRequest
    result: LayoutResult
    is_idle: bool
    """A way back that has nothing to take back."""
    is_beginning: bool
    """It changes the first log dir of the broker."""


def plan(broker: OpenBroker, asked: LayoutRequest) -> LayoutPlanned:
    """Look at a broker and decide; changes nothing, and is asked before recovery: a refusal of all changes nothing.

    Args:
        broker: Opened behind a start block, too.
        asked: The request.

    Raises:
        RefusedError: nothing may be done; or a log dir does not answer, and the verb is not *rollback*.
        LogDirError: a log dir cannot be looked at.
    """
    if broker.missing and asked.verb is not LayoutVerb.ROLLBACK:
        raise RefusedError(
            ", ".join(broker.missing),
            why=Why.LOG_DIRS_INCOMPLETE,
            expected="every log dir, to change them all or none",
            found="no answer",
            fix="mend it, or take the others back with logdirctl layout rollback",
        )
    seen = look_all(broker.open_dirs, broker.run_at)
    decision = _decide(asked, seen)
    is_first = all(one.file is None for one in seen)
    is_idle = asked.verb is LayoutVerb.ROLLBACK and is_first and _is_untouched(broker, decision)
    result = result_of(asked.verb, decision, notes=broker.notes, left_out=broker.missing, is_idle=is_idle)
    is_beginning = asked.verb is LayoutVerb.APPLY and is_first and bool(decision.phases)
    return LayoutPlanned(request=asked, result=result, is_idle=is_idle, is_beginning=is_beginning)


def prepare(broker: OpenBroker) -> None:
    """Finish or undo what an interruption left, on a broker of which every log dir that answers may be changed.

    Raises:
        RefusedError: one may not be changed; nothing was.
        LogDirError: as ``OpenBroker.recover``: a broker runs, for one.
    """
    require_none_quarantined(broker.quarantined)
    broker.recover()


def apply(broker: OpenBroker, shown: LayoutPlanned, reporter: Reporter) -> LayoutResult:
    """Do what was shown, decided again from a new look.

    Args:
        broker: Opened for changes, and prepared.
        shown: The plan, from ``plan``.
        reporter: For progress.

    Raises:
        RefusedError: nothing may be done any more; nothing was.
        LogDirError: a log dir cannot be looked at, or a lock cannot be taken; changes made by then stay.
    """

    @contextmanager
    def hold() -> Iterator[Held]:
        with broker.batch() as held:
            require_none_quarantined(broker.quarantined)  # one may have failed meanwhile
            yield held

    decision = _decide(shown.request, look_all(broker.open_dirs, broker.run_at))
    report = carry_out(broker.open_dirs, decision, hold, reporter=reporter, run_at=broker.run_at)
    return result_of(
        shown.request.verb,
        decision,
        report,
        notes=broker.notes,
        left_out=broker.missing,
        is_idle=shown.is_idle,
    )


def _decide(asked: LayoutRequest, seen: Sequence[LayoutView]) -> Decision:
    confirmed = asked.is_even_if_file_missing
    match asked.verb:
        case LayoutVerb.CHECK:
            return rule.check(_given(asked), seen, confirmed=confirmed)
        case LayoutVerb.APPLY:
            return rule.apply(_given(asked), seen, confirmed=confirmed)
        case LayoutVerb.VERIFY:
            return rule.verify(_given(asked), seen)
        case LayoutVerb.FINALIZE:
            return rule.finalize(seen, asked.for_broker)
        case LayoutVerb.ROLLBACK:
            return rule.rollback(seen, confirmed=confirmed)
        case never:
            assert_never(never)


def _given(asked: LayoutRequest) -> PlanDocument:
    if asked.document is None:
        raise ValueError(f"layout {asked.verb.value} without a plan document")
    return asked.document


def _is_untouched(broker: OpenBroker, decision: Decision) -> bool:
    """Whether no log dir says that a change of layout ever began."""
    if any(isinstance(action, MoveToTopicNames) for action in decision.actions):
        return False
    with map_os_errors(broker.named.log_dirs[0]):
        return start_block.state(broker.open_dirs) is StartBlockState.NONE
