"""``logdirctl stage``: set replicas aside because an operator says so, to be restored or purged later.

The plan shows what goes from view and until when it can be undone, and what the next start of the broker does where the
cluster still assigns it here. With ``--apply`` the brake's record is made durable first; then every batch looks again
and decides again under the locks, for what was shown and for nothing else.

Spec: design §2 laws 1, 4, §3.3, §6; attacks A22, A38, A45, A48.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

from logdir.decide import brake as brake_rule
from logdir.decide.deadline import DelayPolicy
from logdir.decide.selector import Selector, parse, select
from logdir.decide.stage import Stage, StagePlan, StageRequest, plan_stage
from logdir.disk import batch_loop, brake, staging
from logdir.disk.batch_loop import Turn, nothing_decided
from logdir.disk.batches import Batches
from logdir.disk.kernel_clock import read_instant
from logdir.disk.outcome import Outcome
from logdir.errors import Problem
from logdir.evidence import Proof, Removed
from logdir.formats.inventory import Entry, Kind
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts, Replica
from logdir.reasons import Reason
from tools.cli import Exit, Streams
from tools.logdirctl.broker import OpenBroker, add_change, next_words, opened, sick_disks, told
from tools.logdirctl.cluster_state import cluster_of, require_source
from tools.logdirctl.delay import add_delay, delay_of, delay_words
from tools.logdirctl.desired_source import births_of
from tools.logdirctl.naming import words_of
from tools.logdirctl.protection import add_protection, protected_of, protection_words
from tools.logdirctl.report import PLANNED, UNDONE, WAITING, Progress, Row, after, finish, nothing_selected, refused
from tools.logdirctl.source import add_source, named_words
from tools.render import quoted

_CONFIRMS = "--even-over-limit"


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "stage",
        help="set replicas aside, to be restored or purged later",
        description="Set live replicas of a stopped broker aside. They can be restored until they are purged.",
        epilog="exit status: 0 done, 1 not all was done, 2 usage or configuration, 3 a broker runs, 4 refused",
        allow_abbrev=False,
    )
    parser.add_argument("selector", metavar="SELECTOR", help="a topic name, a topic id, name-p, id_p or a glob")
    add_change(parser)
    add_delay(parser)
    parser.add_argument("--hold", action="store_true", help="without a deadline: until an operator purges it")
    add_protection(parser)
    add_source(parser)
    parser.add_argument(
        "--even-if-last", action="store_true", help="also the only in-sync replica; it never gets a deadline"
    )
    parser.add_argument(
        "--even-if-unknown",
        action="store_true",
        help="also where nothing says whether the cluster assigns it here; it never gets a deadline",
    )
    parser.add_argument(_CONFIRMS, action="store_true", help="yes to what the brake held back")
    parser.set_defaults(run=act, title="stage")


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    selector, delays = parse(arguments.selector), DelayPolicy(default_ms=delay_of(arguments))
    require_source(arguments)
    with opened(arguments, changes=arguments.apply) as broker:
        if arguments.apply:
            broker.recover()
        facts = broker.look(_closely(selector))
        chosen = select(selector, _candidates(facts))
        if not chosen:
            problems = [
                *(one.problem for one in facts if one.problem is not None),
                nothing_selected(selector.text, "describe", _candidates(facts)),
            ]
            line = f"logdirctl describe {words_of(arguments)}"
            return finish(arguments, streams, [], [*broker.notes, *problems], line, status=Exit.PROBLEMS)
        now = read_instant()
        request = StageRequest(
            selected=tuple((one.log_dir, one.path) for one in chosen),
            reason=Reason.OPERATOR,
            evidence=Removed(proof=Proof.OPERATOR, as_of_ms=max(0, now.wall_ms)),
            now=now,
            delays=delays,
            is_held=arguments.hold,
            protected=protected_of(arguments),
            record=brake_rule.highest(brake.read_records(broker.sites)),
            is_confirmed=arguments.even_over_limit,
            cluster=cluster_of(arguments, broker, facts),
            births=births_of(chosen),
            is_even_if_last=arguments.even_if_last,
            is_even_if_unknown=arguments.even_if_unknown,
        )
        plan = plan_stage(request, facts)
        rows, problems = _apply(broker, request, plan, selector, streams) if arguments.apply else _planned(plan)
        return finish(arguments, streams, rows, [*broker.notes, *problems], _next(arguments, rows))


def _closely(selector: Selector) -> Any:
    def is_meant(entry: Entry) -> bool:
        topic_id = None if entry.topic_id is None else TopicId.parse_any(entry.topic_id)
        return entry.kind == Kind.LIVE.value and selector.may_find(entry.topic, topic_id, entry.partition)

    return is_meant


def _candidates(facts: Sequence[LogDirFacts]) -> list[Replica]:
    # The metadata log is found, too, so that it is refused by name.
    return [r for one in facts for r in one.replicas if r.kind in (Kind.LIVE, Kind.METADATA)]


def _row(action: Stage, state: str) -> Row:
    marker = action.marker
    return Row(
        log_dir=action.log_dir,
        path=action.path,
        state=state,
        topic=marker.topic,
        topic_id=marker.topic_id,
        partition=marker.partition,
        undo_until_ms=action.undo_until_ms,
        says=action.loses,
    )


def _planned(plan: StagePlan) -> tuple[list[Row], list[Problem]]:
    rows = [_row(action, PLANNED) for action in plan.actions] + [_row(action, WAITING) for action in plan.waiting]
    problems = list(plan.unseen) if plan.braked is None else [*plan.unseen, _confirmed_by_flag(plan.braked)]
    return [*rows, *refused(plan.refusals)], problems


def _confirmed_by_flag(problem: Problem) -> Problem:
    return problem._replace(fix=f"look at the plan, then say {_CONFIRMS}")


_Place = tuple[str, str]
"""Log dir, and path relative to it."""


@dataclass(slots=True, kw_only=True)
class _Work:
    """Where one command stands."""

    broker: OpenBroker
    request: StageRequest
    selector: Selector
    progress: Progress
    rows: list[Row] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    sick: set[str] = field(default_factory=set)
    batches: Batches = field(default_factory=staging.batches)
    is_counted: bool = False
    """The brake has counted all of them."""
    braked: StagePlan | None = None

    def decide(self, left: Collection[_Place]) -> Turn[_Place, Row]:
        """Look and decide again about what is left; the brake's record is made durable first."""
        facts = self.broker.look(_closely(self.selector))
        again = replace(self.request, selected=tuple(left), now=read_instant())
        if self.is_counted:
            # The brake spoke, and counted, of all of them before the first.
            again = replace(again, is_confirmed=True)
        plan = plan_stage(again, facts)
        if not self.is_counted:
            if plan.record is not None:
                with told("brake.json of every work root"):
                    brake.write_record(self.broker.changeable, plan.record)
            if plan.braked is not None:
                self.braked = plan
                return Turn(is_over=True)
            self.problems += plan.unseen
            self.is_counted = True
        settled = {(row.log_dir, row.path): row for row in refused(plan.refusals)}
        return Turn(settled=settled, steps=partial(self._steps, plan))

    def _steps(self, plan: StagePlan) -> Iterator[Callable[[], Mapping[_Place, Row]]]:
        for _, group in groupby(plan.actions, key=lambda action: action.log_dir):
            for part in self.batches.of(list(group)):
                yield partial(self._stage, part)

    def _stage(self, part: Sequence[Stage]) -> Mapping[_Place, Row]:
        log_dir = part[0].log_dir
        if log_dir in self.sick:
            rows = [_row(action, UNDONE) for action in part]
        else:
            rows = _stage(self.broker, log_dir, part, self.problems, self.sick)
        return {(action.log_dir, action.path): row for action, row in zip(part, rows, strict=True)}

    def report(self, rows: Sequence[Row]) -> None:
        """Note what became of some."""
        self.rows += rows
        self.progress.add(len(rows))


def _apply(
    broker: OpenBroker, request: StageRequest, shown: StagePlan, selector: Selector, streams: Streams
) -> tuple[list[Row], list[Problem]]:
    """Stage what was shown, in batches; each looks and decides again."""
    left = {(action.log_dir, action.path): action for action in (*shown.actions, *shown.waiting)}
    rows = refused(shown.refusals)
    if not left:
        return rows, list(shown.unseen)
    progress = Progress(streams, "staging", len(left))
    work = _Work(broker=broker, request=request, selector=selector, progress=progress, rows=rows)
    broker.beat(request.now)

    def undecided(place: _Place) -> Row:
        return replace(_row(left[place], UNDONE), problem=nothing_decided("/".join(place)))

    batch_loop.run(left, hold=broker.batch, decide=work.decide, undecided=undecided, report=work.report)
    progress.done()
    if work.braked is not None:
        more, problems = _planned(work.braked)
        return [*rows, *more], problems
    return work.rows, work.problems


def _stage(
    broker: OpenBroker, log_dir: str, actions: Sequence[Stage], problems: list[Problem], sick: set[str]
) -> list[Row]:
    site = broker.site_of(log_dir)
    items = [staging.StageItem(path=action.path, marker=action.marker) for action in actions]
    outcomes: tuple[Outcome, ...] = ()
    with sick_disks(problems, sick, site):
        outcomes = staging.stage(site, items)
    if len(outcomes) < len(actions):
        # Of a disk that gave up in the middle nobody knows what was done: the next look tells.
        return [_row(action, UNDONE) for action in actions]
    return [after(_row(action, PLANNED), outcome) for action, outcome in zip(actions, outcomes, strict=True)]


def _next(arguments: argparse.Namespace, rows: Sequence[Row]) -> str:
    where = next_words(arguments)
    if arguments.apply and any(row.state == "done" for row in rows):
        return f"logdirctl staged ls {words_of(arguments)}"
    flags = delay_words(arguments) + (" --hold" if arguments.hold else "") + protection_words(arguments)
    flags += named_words(arguments)
    states = {row.state for row in rows}
    if WAITING in states:
        return f"logdirctl staged ls {words_of(arguments)}"  # what counts to the limit
    if PLANNED not in states:
        return f"logdirctl inventory {words_of(arguments)}"
    return f"logdirctl stage {quoted(arguments.selector)} {where}{flags} --apply"
