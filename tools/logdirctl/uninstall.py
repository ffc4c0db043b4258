"""``logdirctl uninstall``: everything of ours taken back, so that a stock broker starts on what is left.

What is set aside is listed, and taken back with ``--restore``; a bar is lifted; work roots that are empty are removed.
One that still holds a replica stays, and is named. Nothing that is not ours is touched.

Spec: design §2 laws 1, 7, §6, §8.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from logdir.decide.restore import RestoreRequest, plan_restore
from logdir.disk import bar
from logdir.disk.bar import BarState
from logdir.disk.small_file import read_file
from logdir.disk.work_root import path_of
from logdir.disk.work_root_removal import remove_root
from logdir.errors import LogDirError, Problem, RefusedError
from logdir.formats import layout_file
from logdir.formats.inventory import Kind
from logdir.observe.facts import LogDirFacts, SetAside
from tools.cli import Streams
from tools.logdirctl.broker import OpenBroker, add_change, next_words, opened, told
from tools.logdirctl.closed import require_none_closed
from tools.logdirctl.cluster_state import cluster_of, require_source, stamp_of
from tools.logdirctl.naming import words_of
from tools.logdirctl.report import DONE, PLANNED, REFUSED, WAITING, Row, finish, refused
from tools.logdirctl.source import add_source, named_words
from tools.logdirctl.staged import none_closely, set_aside
from tools.logdirctl.staged_restore import planned_restore, restore_all, say_kinds

_KINDS = (Kind.STAGED, Kind.PURGING, Kind.INCOMING)


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "uninstall",
        help="take everything of ours back",
        description="List what is set aside, lift a bar, and remove the empty work roots of one stopped broker.",
        epilog="exit status: 0 done, 1 something stays, 2 usage or configuration, 3 a broker runs, 4 refused",
        allow_abbrev=False,
    )
    add_change(parser)
    parser.add_argument("--restore", action="store_true", help="take back what is set aside, as far as that can be")
    add_source(parser)
    parser.add_argument(
        "--even-if-unknown",
        action="store_true",
        help="with --restore: also where nothing says whether the cluster still assigns it here",
    )
    parser.set_defaults(run=act, title="uninstall")


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    require_source(arguments)
    with opened(arguments, changes=arguments.apply, is_bar_allowed=True, is_root_needed=False) as broker:
        if arguments.apply:
            require_none_closed(broker.closed)
            broker.recover()
        facts = broker.look(none_closely)
        _require_names(broker, facts)
        items = set_aside(facts, None, *_KINDS)
        with told(broker.named.log_dirs[0]):
            barred = bar.state(broker.sites) if broker.sites else BarState.OPEN
        if barred is not BarState.OPEN and (broker.missing or broker.rootless):
            raise RefusedError(
                ", ".join((*broker.missing, *broker.rootless)),
                expected="every log dir, to lift the bar in all or in none",
                found="no work root, or no answer",
                fix="logdirctl init, or mend it first",
            )
        rows, problems = _staged(arguments, streams, broker, facts, items)
        if arguments.apply:
            items = set_aside(broker.look(none_closely), None, *_KINDS)
            rows += _take_back(broker, items, barred)
        else:
            left = {(row.log_dir, row.path) for row in rows if row.state != PLANNED}
            rows += [
                _root(site.log_dir, site.work.path, PLANNED, items, left=left if arguments.restore else None)
                for site in broker.sites
            ]
        problems += [one.problem for one in facts if one.problem is not None]
        line = _next(arguments, rows)
        more = {"bar": barred.value}
        return finish(arguments, streams, rows, [*broker.notes, *problems], line, more=more)


def _require_names(broker: OpenBroker, facts: Sequence[LogDirFacts]) -> None:
    """Refuse where a stock broker could not start on what would be left."""
    for one in facts:
        if one.layout in ("topic-id", "mixed"):
            raise _in_layout(one.log_dir, one.layout)
    for site in broker.sites:
        with told(site.log_dir):
            if read_file(site.top, layout_file.FILE_NAME) is not None:
                raise _in_layout(f"{site.log_dir}/{layout_file.FILE_NAME}", "a change of layout under way")


def _in_layout(path: str, found: str) -> RefusedError:
    return RefusedError(path, expected="the topic-name layout", found=found, fix="logdirctl layout rollback first")


def _staged(
    arguments: argparse.Namespace,
    streams: Streams,
    broker: OpenBroker,
    facts: Sequence[LogDirFacts],
    items: Sequence[SetAside],
) -> tuple[list[Row], list[Problem]]:
    """Say, or do, what becomes of everything that is set aside."""
    if not items:
        return [], []
    others = [item for item in items if item.kind is Kind.INCOMING or not arguments.restore]
    rows = [
        Row(
            log_dir=item.log_dir,
            path=f"{'incoming' if item.kind is Kind.INCOMING else 'deleting'}/{item.name}",
            state=WAITING,
            topic=item.topic,
            topic_id=item.topic_id,
            partition=item.partition,
            says="restore or purge it first, or say --restore",
        )
        for item in others
    ]
    if not arguments.restore:
        return rows, []
    stamp = stamp_of(broker, facts)
    request = RestoreRequest(
        selected=tuple((item.log_dir, item.name) for item in items if item.kind is not Kind.INCOMING),
        cluster=cluster_of(arguments, broker, facts),
        is_even_if_unknown=arguments.even_if_unknown,
    )
    plan = plan_restore(request, facts)
    if arguments.apply:
        say_kinds(arguments, plan, streams)
        done, problems = restore_all(broker, request, plan, streams, stamp)
        return [*rows, *done], problems
    return [*rows, *planned_restore(plan), *refused(plan.refusals)], []


def _root(
    log_dir: str, path: str, state: str, items: Sequence[SetAside], *, left: set[tuple[str, str]] | None = None
) -> Row:
    """Say of a work root whether it can go; with ``left`` only what is named there keeps it."""
    staying = [item for item in items if item.log_dir == log_dir]
    if left is not None:
        staying = [item for item in staying if any(one[0] == log_dir and item.name in one[1] for one in left)]
    if not staying:
        return Row(log_dir=log_dir, path=path, state=state, says="work root, removed")
    problem = Problem(
        "work-root-conflict",
        path,
        "an empty work root",
        f"{len(staying)} entries, {staying[0].name} among them",
        "restore or purge what is staged first",
    )
    return Row(log_dir=log_dir, path=path, state=REFUSED, says="work root, stays", problem=problem)


def _take_back(broker: OpenBroker, items: Sequence[SetAside], barred: BarState) -> list[Row]:
    """Lift the bar and remove the work roots that are empty, under every lock."""
    rows: list[Row] = []
    with broker.batch():
        require_none_closed(broker.closed)  # one may have failed meanwhile
        if barred is not BarState.OPEN:
            bar.unbar(broker.sites)
        for site in broker.sites:
            row = _root(site.log_dir, site.work.path, DONE, items)
            rows.append(_removed(broker, site.log_dir, row) if row.state == DONE else row)
        for log_dir in broker.rootless:
            # What a removal that was cut off left, if anything.
            try:
                kinds = remove_root(broker.disk, log_dir)
            except LogDirError as error:
                rows.append(Row(log_dir=log_dir, path=log_dir, state=REFUSED, problem=error.problem()))
                continue
            rows += [
                Row(log_dir=log_dir, path=path_of(kind, log_dir), state=DONE, says="work root, removed")
                for kind in kinds
            ]
    return rows


def _removed(broker: OpenBroker, log_dir: str, row: Row) -> Row:
    from dataclasses import replace

    try:
        remove_root(broker.disk, log_dir)
    except LogDirError as error:
        return replace(row, state=REFUSED, says="work root, stays", problem=error.problem())
    return row


def _next(arguments: argparse.Namespace, rows: Sequence[Row]) -> str:
    where = next_words(arguments)
    if any(row.state in (WAITING, REFUSED) for row in rows):
        return f"logdirctl staged ls {words_of(arguments)}"
    if arguments.apply:
        return f"logdirctl inventory {words_of(arguments)}"
    return f"logdirctl uninstall {where}{' --restore' if arguments.restore else ''}{named_words(arguments)} --apply"
