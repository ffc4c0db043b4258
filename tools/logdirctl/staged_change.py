"""What changes what was set aside: taken back, removed for good, or kept from that.

Restore works under every lock and looks again before each batch. Purge and hold touch only what no broker sees, so they
work beside a running one; what an interruption left is then recovered by a later command.

Spec: design §2 laws 1, 4, §3.3, §6; attacks A15, A17, A18, A22.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from logdir.clock import Instant
from logdir.decide.purge import Purge, PurgePlan, PurgeRequest, plan_purge, room_of
from logdir.decide.refusal import Refusal, at, refuse_closed
from logdir.decide.restore import RestoreRequest, plan_restore
from logdir.decide.selector import EVERYTHING, Selector, parse
from logdir.disk import heartbeat, staging
from logdir.disk.kernel_clock import read_instant
from logdir.disk.outcome import Outcome
from logdir.disk.pace import FILES_PER_SECOND, Pace
from logdir.disk.site import Site
from logdir.errors import ConfigError, LockHeldError, Problem, WorkRootOwnedError
from logdir.formats.inventory import Kind
from logdir.observe.facts import LogDirFacts, SetAside
from tools.cli import Exit, Streams, say
from tools.logdirctl.broker import OpenBroker, next_words, opened, told
from tools.logdirctl.cluster_state import cluster_of, require_source, stamp_of
from tools.logdirctl.naming import words_of
from tools.logdirctl.report import KEPT, PLANNED, Row, finish, nothing_selected, refused, utc
from tools.logdirctl.source import named_words
from tools.logdirctl.staged import none_closely, set_aside
from tools.logdirctl.staged_purge import purge_all
from tools.logdirctl.staged_restore import planned_restore, restore_all, say_kinds
from tools.logdirctl.staged_unlocked import each
from tools.render import quoted

if TYPE_CHECKING:
    from tools.logdirctl import second_look


def next_line(arguments: argparse.Namespace, rows: Sequence[Row]) -> str:
    """Return the next command to type."""
    where = next_words(arguments)
    if arguments.apply or not any(row.state == PLANNED for row in rows):
        return f"logdirctl staged ls {words_of(arguments)}"
    flags = named_words(arguments)
    if getattr(arguments, "disk", None) is not None:
        flags += f" --disk {quoted(arguments.disk)}"
    if getattr(arguments, "output", None) is not None:
        flags += f" -o {quoted(arguments.output)}"
    flags += "".join(f" --name {quoted(name)}" for name in getattr(arguments, "name", ()))
    selector = "" if arguments.selector is None else f" {quoted(arguments.selector)}"
    return f"logdirctl {arguments.title}{selector} {where}{flags} --apply"


def chosen(arguments: argparse.Namespace, selector: Selector, items: Sequence[SetAside]) -> tuple[SetAside, ...]:
    """Return what ``--disk`` and ``--name`` leave of what a selector found."""
    disk = None if arguments.disk is None else os.path.abspath(arguments.disk)
    return tuple(
        item for item in items if disk in (None, item.log_dir) and (not arguments.name or item.name in arguments.name)
    )


def found_nothing(
    arguments: argparse.Namespace, streams: Streams, facts: Sequence[LogDirFacts], broker: OpenBroker
) -> Exit:
    """Say that there is nothing of that kind; return the exit status."""
    problems = [
        *(one.problem for one in facts if one.problem is not None),
        nothing_selected(arguments.selector, "staged ls", set_aside(facts, None, Kind.STAGED, Kind.PURGING)),
    ]
    return finish(arguments, streams, [], [*broker.notes, *problems], next_line(arguments, []), status=Exit.PROBLEMS)


def row_of(item: SetAside, state: str, says: str, undo_until_ms: int | None = None) -> Row:
    """Return a row for one thing that is set aside."""
    return Row(
        log_dir=item.log_dir,
        path=f"deleting/{item.name}",
        state=state,
        topic=item.topic,
        topic_id=item.topic_id,
        partition=item.partition,
        undo_until_ms=undo_until_ms,
        says=says,
    )


# Restore.


def restore(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged restore``; return the exit status."""
    selector = parse(arguments.selector)
    require_source(arguments)
    with opened(arguments, changes=arguments.apply) as broker:
        if arguments.apply:
            broker.recover()
        facts = broker.look(none_closely)
        items = chosen(arguments, selector, set_aside(facts, selector, Kind.STAGED, Kind.PURGING))
        if not items:
            return found_nothing(arguments, streams, facts, broker)
        stamp = stamp_of(broker, facts)
        request = RestoreRequest(
            selected=tuple((item.log_dir, item.name) for item in items),
            cluster=cluster_of(arguments, broker, facts),
            is_choice=bool(arguments.name) or arguments.disk is not None,
            is_even_if_unknown=arguments.even_if_unknown,
        )
        plan = plan_restore(request, facts)
        problems: list[Problem] = []
        rows = [*planned_restore(plan), *refused(plan.refusals)]
        if arguments.apply:
            say_kinds(arguments, plan, streams)
            rows, problems = restore_all(broker, request, plan, streams, stamp)
        line = next_line(arguments, rows)
        return finish(arguments, streams, rows, [*broker.notes, *problems], line, are_said=arguments.apply)


# Hold and purge.


def _recover_if_stopped(broker: OpenBroker) -> None:
    """Recover, unless a broker runs: what is changed here it does not see."""
    try:
        broker.recover()
    except WorkRootOwnedError:
        raise
    except LockHeldError:
        return


def hold(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged hold``; return the exit status."""
    selector = parse(arguments.selector)
    with opened(arguments, changes=arguments.apply) as broker:
        if arguments.apply:
            _recover_if_stopped(broker)
        facts = broker.look(none_closely)
        items = chosen(arguments, selector, set_aside(facts, selector, Kind.STAGED))
        if not items:
            return found_nothing(arguments, streams, facts, broker)
        says = "kept until an operator restores or purges it"
        refusals = [_closed(broker, item) for item in items]
        items = tuple(item for item, refusal in zip(items, refusals, strict=True) if refusal is None)
        rows = [row_of(item, PLANNED, says) for item in items]
        problems: list[Problem] = []
        if arguments.apply:
            rows, problems = each(
                broker, [(row, _holding(item)) for row, item in zip(rows, items, strict=True)], streams
            )
        rows += refused(refusal for refusal in refusals if refusal is not None)
        return finish(arguments, streams, rows, [*broker.notes, *problems], next_line(arguments, rows))


def _closed(broker: OpenBroker, item: SetAside) -> Refusal | None:
    closed = refuse_closed(item.log_dir, f"deleting/{item.name}", broker.closed.get(item.log_dir))
    return None if closed is None else at(item.place, closed)


def _holding(item: SetAside) -> Callable[[Site], Outcome]:
    return lambda site: staging.hold(site, item.name)


def purge(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged purge``; return the exit status."""
    from tools.logdirctl import second_look

    _check_purge(arguments)
    require_source(arguments)
    selector = None if arguments.selector is None else parse(arguments.selector)
    with opened(arguments, changes=arguments.apply) as broker:
        now = read_instant()
        if arguments.apply:
            _recover_if_stopped(broker)
            broker.beat(now)
        facts = broker.look(none_closely)
        items = set_aside(facts, selector, Kind.STAGED, Kind.PURGING)
        unread = [one.problem for one in facts if one.problem is not None]
        if not items and selector is not None:
            return found_nothing(arguments, streams, facts, broker)
        looking = second_look.Looking(arguments, broker, facts)
        unread += [] if looking.problem is None else [looking.problem]
        plan = plan_purge(_request(arguments, broker, now, looking), items)
        rows = [_purged(action) for action in plan.actions]
        problems: list[Problem] = []
        if arguments.apply:
            for action in plan.actions:
                say(streams, f"logdirctl staged purge: {action.loses} ({action.why})")
            rates = arguments.bytes_per_second, FILES_PER_SECOND if arguments.bytes_per_second else 0
            planned = list(zip(rows, plan.actions, strict=True))
            rows, problems = purge_all(broker, planned, room_of(*rates), Pace(*rates), streams, against=looking.against)
        # What is not due was not asked for, unless it was named.
        rows += _kept(plan, items) if selector is None else refused(plan.refusals)
        due = plan.next_due_ms
        line = "no other has a deadline to come" if due is None else f"the next one is due {utc(due)}"
        return finish(
            arguments,
            streams,
            rows,
            [*broker.notes, *unread, *problems],
            next_line(arguments, rows),
            more={"next_due_ms": due},
            lines=(line if items else "nothing is set aside",),
            are_said=arguments.apply,
        )


def _kept(plan: PurgePlan, items: Sequence[SetAside]) -> list[Row]:
    """Say of each replica that is left why."""
    by_place = {(item.log_dir, f"deleting/{item.name}"): item for item in items}
    rows = []
    for one in plan.refusals:
        item = by_place[one.log_dir, one.path]
        due = plan.waits.get((item.log_dir, item.name))
        why = f"{one.problem.found}; {one.problem.fix}" if due is None else f"due {utc(due)}"
        rows.append(row_of(item, KEPT, why, due))
    return rows


def _check_purge(arguments: argparse.Namespace) -> None:
    problems = []
    for flag in ("--even-if-early", "--even-if-last", "--even-if-assigned"):
        if getattr(arguments, flag[2:].replace("-", "_")) and arguments.selector in (None, EVERYTHING):
            found = arguments.selector or "none"
            problems.append(Problem("config-error", flag, "a selector that names what goes for good", found))
    if arguments.include_held and not arguments.even_if_early:
        problems.append(Problem("config-error", "--include-held", "--even-if-early beside it", "none"))
    if arguments.bytes_per_second < 0:
        found = str(arguments.bytes_per_second)
        problems.append(Problem("config-error", "--bytes-per-second", "0 or more", found))
    if problems:
        raise ConfigError(tuple(problems))


def _request(
    arguments: argparse.Namespace, broker: OpenBroker, now: Instant, looking: second_look.Looking
) -> PurgeRequest:
    beats = {}
    for site in broker.sites:
        with told(site.work.path):
            beats[site.log_dir] = heartbeat.read(site)
    return PurgeRequest(
        now=now,
        heartbeats=beats,
        is_early=arguments.even_if_early,
        includes_held=arguments.include_held,
        closed=broker.closed,
        look=looking.look,
        facts=looking.facts,
    )


def _purged(action: Purge) -> Row:
    marker = action.marker
    return Row(
        log_dir=action.log_dir,
        path=f"deleting/{action.name}",
        state=PLANNED,
        topic=None if marker is None else marker.topic,
        topic_id=None if marker is None else marker.topic_id,
        partition=None if marker is None else marker.partition,
        says=f"{action.loses} ({action.why})",
    )
