"""Move the replicas of a stopped broker to topic-id directories by a plan, verify the result, and move them back.

``plan`` scans and decides; ``apply`` scans and decides again, then works in batches under Kafka's locks, and continues
an interrupted run. Steps of a plan that no longer fit are refused by name; the others are done.

Not here: which verb is allowed (``logdir.decide.layout.transitions``), the phases (``layout_phases``), the read-only
status (``layout_status``).

Spec: design §3.1, §6, §7.7, §8; attacks A21, A22, A37.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, assert_never

from logdir.decide.layout import transitions as rule
from logdir.decide.layout.action import Decision, LayoutView, MoveToTopicNames
from logdir.disk.batch_loop import Held
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.record import start_block
from logdir.disk.record.start_block import StartBlockState
from logdir.errors import MalformedMessageError, RefusedError
from logdir.formats.own import plan_document
from logdir.formats.own.plan_document import PlanDocument
from logdir.observe.named_file import read_named
from logdir.refusal_slug import Why
from logdir.service.batch.layout_phases import carry_out, look_all
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.log_dirs.quarantine import require_none_quarantined
from logdir.service.log_dirs.request import require_log_dirs
from logdir.service.report.layout_result import LayoutResult, LayoutVerb, result_of
from logdir.service.report.reporter import Reporter
from logdir.text import quoted

KEPT: Final = """\
What is kept on this host while the layout is changed (logdirctl layout rollback takes it back):
  in each log dir: layout.json (the state of the change), start-block.json (the true meta.properties),
  logdird-start-block.txt (the same for people)
  in a replica whose partition.metadata was missing or strange: relayout.json (what it was)
  once the log dirs are blocked no broker can start until logdirctl layout rollback"""
"""Text for the operator, shown before the first change."""
_MAX_PLAN_BYTES: Final = 1 << 32
"""Size limit of a plan document; a step takes some 300 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutRequest:
    """A request to change the layout of a broker."""

    verb: LayoutVerb
    """What is done."""
    document: str | None = None
    """This broker's plan document, the whole text of its file; for ``check``, ``apply`` and ``verify`` alone."""
    for_broker: str = ""
    """Only for *finalize*: the broker that reads topic-id directories."""
    is_even_if_file_missing: bool = False
    """Whether the operator states that replicas under topic ids belong to this broker although ``layout.json`` is
    missing.
    """
    skipped: tuple[str, ...] = ()
    """Only for *rollback*: log dirs that may be lacking. Their start block and topic-id layout stay."""

    def require_valid(self) -> None:
        """Check that a plan document is given for a verb that takes one, and for no other.

        Raises:
            MalformedMessageError: it is not.
        """
        if (self.document is not None) is not self.verb.has_plan:
            raise MalformedMessageError(
                "LayoutRequest.document",
                expected=f"{'a' if self.verb.has_plan else 'no'} plan document for the verb {self.verb.value}",
                found="none" if self.document is None else "one",
                fix="docs/json.md lists the keys",
            )


def read_plan(path: str) -> str:
    """Read a plan document, and return its text.

    Raises:
        ConfigError: the file does not exist, cannot be read, or is no regular file.
        FormatError: the file is no complete plan document.
    """
    data = read_named(path, _MAX_PLAN_BYTES, "a plan document", "brokers/CLUSTER/NODE.jsonl of a plan directory")
    plan_document.parse(data, path)
    return data.decode()  # Of a whole document every line is UTF-8.


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutPlanned:
    """The plan of a layout change."""

    request: LayoutRequest
    document: PlanDocument | None
    """What the text of the request holds."""
    result: LayoutResult
    is_idle: bool
    """Whether it is a rollback without anything to roll back."""
    is_beginning: bool
    """Whether it makes the first change to a log dir of the broker."""


def plan(broker: OpenBroker, asked: LayoutRequest) -> LayoutPlanned:
    """Scan a broker and decide; changes nothing. Called before crash recovery, so that a complete refusal changes
    nothing at all.

    Args:
        broker: Opened with a start block allowed.
        asked: The request.

    Raises:
        FormatError: the text of the request is no complete plan document.
        RefusedError: nothing may be done; or a log dir is lacking, and it is no *rollback* that names it.
        ConfigError: the request names a path that is no log dir of the broker.
        LogDirError: a log dir cannot be read.
    """
    _require_whole(broker, asked)
    document = _document(asked)
    seen = look_all(broker.open_dirs, broker.begin_at)
    decision = _decide(asked, document, seen)
    is_first = all(one.file is None for one in seen)
    is_idle = asked.verb is LayoutVerb.ROLLBACK and is_first and _is_untouched(broker, decision)
    result = result_of(asked.verb, decision, notes=broker.notes, left_out=_lacking(broker), is_idle=is_idle)
    is_beginning = asked.verb is LayoutVerb.APPLY and is_first and bool(decision.phases)
    return LayoutPlanned(request=asked, document=document, result=result, is_idle=is_idle, is_beginning=is_beginning)


def prepare(broker: OpenBroker) -> None:
    """Run crash recovery on a broker; every log dir that answers must be changeable. A stale disk that was accepted is
    in use with the others from then on.

    Raises:
        RefusedError: a log dir may not be changed; nothing was changed.
        LogDirError: as ``OpenBroker.recover``, for example because a broker runs.
    """
    _require_none_quarantined(broker)
    broker.recover()
    if broker.request.accepted_stale:
        broker.beat(read_instant())


def apply(broker: OpenBroker, shown: LayoutPlanned, reporter: Reporter) -> LayoutResult:
    """Carry out the planned change, decided again from a new scan.

    Args:
        broker: Opened for changes, and prepared.
        shown: The plan, from ``plan``.
        reporter: Receives progress.

    Raises:
        RefusedError: the change is not allowed any more, or a log dir is lacking now; nothing was changed.
        LogDirError: a log dir cannot be read, or a lock cannot be taken; changes made by then stay.
    """

    @contextmanager
    def hold() -> Iterator[Held]:
        with broker.batch() as held:
            _require_none_quarantined(broker)  # A log dir may have failed meanwhile.
            _require_whole(broker, shown.request)
            yield held

    _require_whole(broker, shown.request)
    decision = _decide(shown.request, shown.document, look_all(broker.open_dirs, broker.begin_at))
    report = carry_out(broker.open_dirs, decision, hold, reporter=reporter, begin_at=broker.begin_at)
    return result_of(
        shown.request.verb,
        decision,
        report,
        notes=broker.notes,
        left_out=_lacking(broker),
        is_idle=shown.is_idle,
    )


def _require_none_quarantined(broker: OpenBroker) -> None:
    """Refuse while a log dir may not be changed; of those that are lacking ``_require_whole`` judges.

    Raises:
        LogDirError: as ``quarantine.require_none_quarantined``.
    """
    lacking = _lacking(broker)
    require_none_quarantined({one: why for one, why in broker.quarantined.items() if one not in lacking})


def _lacking(broker: OpenBroker) -> tuple[str, ...]:
    """Return the log dirs that are not open, do not answer, or were let go, in the order of the configuration."""
    absent = broker.ports.suspect.union(broker.missing)
    return tuple(log_dir for log_dir in broker.named.log_dirs if log_dir in absent)


def _require_whole(broker: OpenBroker, asked: LayoutRequest) -> None:
    """Refuse while a log dir is lacking, unless a rollback names it.

    Where the others lose their start block, nothing else keeps a stock broker from starting without it.
    """
    named = broker.without | require_log_dirs("--skip-log-dir", asked.skipped, broker.named)
    is_skip_of_use = asked.verb is LayoutVerb.ROLLBACK
    lacking = [log_dir for log_dir in _lacking(broker) if not (is_skip_of_use and log_dir in named)]
    if lacking:
        skip = " ".join(f"--skip-log-dir {quoted(log_dir)}" for log_dir in lacking)
        raise RefusedError(
            ", ".join(lacking),
            why=Why.LOG_DIRS_INCOMPLETE,
            expected="every log dir, to change them all or none",
            found="no answer",
            fix=f"repair that log dir, or take the others back with logdirctl layout rollback {skip}",
        )


def _document(asked: LayoutRequest) -> PlanDocument | None:
    """Parse the text of a request: whoever sent it, it is checked against its digest, as a file is."""
    if asked.document is None:
        return None
    # A lone surrogate, which JSON may hold and no file of a planner does, is then no UTF-8.
    return plan_document.parse(asked.document.encode("utf-8", "surrogatepass"), "LayoutRequest.document")


def _decide(asked: LayoutRequest, document: PlanDocument | None, seen: Sequence[LayoutView]) -> Decision:
    confirmed = asked.is_even_if_file_missing
    match asked.verb:
        case LayoutVerb.CHECK:
            return rule.check(_given(asked, document), seen, confirmed=confirmed)
        case LayoutVerb.APPLY:
            return rule.apply(_given(asked, document), seen, confirmed=confirmed)
        case LayoutVerb.VERIFY:
            return rule.verify(_given(asked, document), seen)
        case LayoutVerb.FINALIZE:
            return rule.finalize(seen, asked.for_broker)
        case LayoutVerb.ROLLBACK:
            return rule.rollback(seen, confirmed=confirmed)
        case never:
            assert_never(never)


def _given(asked: LayoutRequest, document: PlanDocument | None) -> PlanDocument:
    if document is None:
        raise ValueError(f"layout {asked.verb.value} without a plan document")
    return document


def _is_untouched(broker: OpenBroker, decision: Decision) -> bool:
    """Whether no log dir shows that a layout change ever began."""
    if any(isinstance(action, MoveToTopicNames) for action in decision.actions):
        return False
    with map_os_errors(broker.named.log_dirs[0]):
        return start_block.state(broker.open_dirs) is StartBlockState.NONE
