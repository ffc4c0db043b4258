"""``logdirctl staged export``: verified copies of what is set aside, at a place outside the log dirs.

What is set aside stays as it is. It works beside a running broker: only the owner locks are held, against a purge.

Spec: design §3.3 "Restore" class (c), §6.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from logdir.decide.refusal import Why, at, refuse
from logdir.decide.selector import parse
from logdir.disk.export import export
from logdir.disk.outcome import Outcome, done, undone
from logdir.disk.site import Site
from logdir.errors import LogDirError, ReadOnlyDiskError
from logdir.formats.inventory import Kind
from logdir.observe.facts import SetAside
from tools.cli import Streams
from tools.logdirctl.broker import OpenBroker, opened
from tools.logdirctl.report import DONE, PLANNED, Row, finish, refused
from tools.logdirctl.staged import none_closely, set_aside
from tools.logdirctl.staged_change import chosen, found_nothing, next_line, row_of
from tools.logdirctl.staged_unlocked import each

_UNDONE = "no copy was made"


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged export``; return the exit status."""
    selector = parse(arguments.selector)
    into = os.path.abspath(arguments.output)
    with opened(arguments, changes=arguments.apply) as broker:
        facts = broker.look(none_closely)
        items = chosen(arguments, selector, set_aside(facts, selector, Kind.STAGED))
        if not items:
            return found_nothing(arguments, streams, facts, broker)
        good, rows = _sorted_out(items)
        planned = [
            row_of(item, PLANNED, f"copy at {_destination(into, item)}, {item.log_bytes} bytes in its segments")
            for item in good
        ]
        problems = [one.problem for one in facts if one.problem is not None]
        if arguments.apply:
            calls = [(row, _exporting(broker, into, item)) for row, item in zip(planned, good, strict=True)]
            done_rows, more = each(broker, calls, streams)
            planned = [row if row.state == DONE else replace(row, says=_UNDONE) for row in done_rows]
            problems += more
        rows = [*planned, *rows]
        return finish(arguments, streams, rows, [*broker.notes, *problems], next_line(arguments, rows))


def _sorted_out(items: Sequence[SetAside]) -> tuple[list[SetAside], list[Row]]:
    """Return what has one name of its own there, and refusals of the rest."""
    taken = Counter((item.topic, item.partition) for item in items)
    good, refusals = [], []
    for item in items:
        where = item.log_dir, f"deleting/{item.name}"
        if item.marker is None or item.problem is not None or item.topic is None:
            found = "none" if item.problem is None else item.problem.found
            refusals.append(at(item.place, refuse(*where, Why.HELD, "a marker to be used", found, "held: look at it")))
        elif taken[item.topic, item.partition] > 1:
            several = refuse(*where, Why.CHOICE, "one copy of it", "several", "choose one: --disk, --name")
            refusals.append(at(item.place, several))
        else:
            good.append(item)
    return good, refused(refusals)


def _destination(into: str, item: SetAside) -> str:
    return os.path.join(into, f"{item.topic}-{item.partition}")


def _exporting(broker: OpenBroker, into: str, item: SetAside) -> Callable[[Site], Outcome]:
    def copy(site: Site) -> Outcome:
        place = f"deleting/{item.name}"
        forbidden = [*broker.named.log_dirs, *(one.work.path for one in broker.sites)]
        try:
            export(site, place, _destination(into, item), forbidden)
        except ReadOnlyDiskError:
            raise
        except LogDirError as error:
            return undone(place, error)
        return done(place, place)

    return copy
