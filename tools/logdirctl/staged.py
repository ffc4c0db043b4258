"""``logdirctl staged ls | restore | purge | hold | export``: what was set aside, and what becomes of it.

Not here: the changes themselves (``staged_change``).

Spec: design §3.3, §6.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from logdir.clock import Instant
from logdir.decide.assignment import Assigned, assignment_of
from logdir.decide.deadline import Due, Held, NotYet, due
from logdir.decide.position import highest
from logdir.decide.restore import class_of
from logdir.decide.second_look import against_purge
from logdir.decide.selector import EVERYTHING, Selector, parse, select
from logdir.disk import controller, heartbeat
from logdir.disk.io import HostDisk
from logdir.disk.kernel_clock import read_instant
from logdir.disk.pace import BYTES_PER_SECOND
from logdir.errors import LogDirError, NoWorkRootError, Problem
from logdir.formats.controller_file import ControllerFile
from logdir.formats.heartbeat_file import Heartbeat
from logdir.formats.inventory import Entry, Kind
from logdir.observe.facts import LogDirFacts, SetAside
from tools import render
from tools.cli import Exit, Streams, envelope, say
from tools.logdirctl.broker import add_change, look_at, told
from tools.logdirctl.closed import closed_of
from tools.logdirctl.cluster_state import require_source
from tools.logdirctl.host import unformatted
from tools.logdirctl.naming import Broker, broker_of, words_of
from tools.logdirctl.report import evidence_json, nothing_selected, utc
from tools.logdirctl.root import open_true_root
from tools.logdirctl.source import add_source, named_words

if TYPE_CHECKING:
    from tools.logdirctl.second_look import Looked

_SELECTOR = "a topic name, a topic id, name-p, id_p or a glob"
COUNTING, DUE, HELD, PURGING, INCOMING, BROKEN = "counting", "due", "held", "purging", "incoming", "broken"


class Listed(NamedTuple):
    """One line of the listing."""

    item: SetAside
    state: str
    undo_until_ms: int | None
    """Wall clock; ``None``: for good, or not any more."""
    restore_class: str | None
    why: str
    assigned: Assigned | None = None
    """Whether it is still assigned here; ``None`` where that is not asked."""


def add_parser(commands: Any) -> None:
    """Add the commands to the parser."""
    group = commands.add_parser(
        "staged",
        help="list, restore, purge, hold or export what was set aside",
        description="What was set aside: list it, take it back, remove it for good, or keep it from being removed.",
        allow_abbrev=False,
    )
    below = group.add_subparsers(dest="staged_command", metavar="COMMAND", required=True)
    ls = below.add_parser(
        "ls",
        help="list what is set aside, and until when it can be undone",
        description="List what is set aside on every log dir of one broker. Reads only, beside a running broker too.",
        epilog="exit status: 0 done, 1 a disk could not be read, 2 usage or configuration",
        allow_abbrev=False,
    )
    ls.add_argument("selector", metavar="SELECTOR", nargs="?", help=f"{_SELECTOR}; everything if there is none")
    add_change(ls, changes=False)
    add_source(ls)
    ls.set_defaults(run=act_ls, title="staged ls")
    for name, text, description in (
        ("restore", "take replicas back", "Take replicas of a stopped broker back to where they were."),
        ("hold", "keep replicas from being purged", "Take the deadline from what is set aside."),
        ("export", "copy replicas to a place outside the log dirs", "Copy what is set aside, verified, elsewhere."),
        ("purge", "remove for good what is due", "Remove for good what was set aside and whose time has come."),
    ):
        parser = below.add_parser(
            name,
            help=text,
            description=description,
            epilog="exit status: 0 done, 1 not all was done, 2 usage or configuration, 3 a broker runs, 4 refused",
            allow_abbrev=False,
        )
        optional = {"nargs": "?"} if name == "purge" else {}
        more = "; everything that is due if there is none" if optional else ""
        parser.add_argument("selector", metavar="SELECTOR", help=_SELECTOR + more, **optional)
        add_change(parser)
        _add_own(parser, name)
        parser.set_defaults(run=_change, title=f"staged {name}")


def _add_own(parser: Any, name: str) -> None:
    if name != "purge":
        parser.add_argument("--disk", metavar="DIR", help="only what lies on this log dir")
        parser.add_argument(
            "--name",
            metavar="NAME",
            action="append",
            default=[],
            help="of several copies this one (name in staged ls)",
        )
    if name == "export":
        parser.add_argument("-o", "--output", metavar="DIR", required=True, help="where to; it must be there")
    if name == "restore":
        add_source(parser)
        parser.add_argument(
            "--even-if-unknown",
            action="store_true",
            help="rename back also what is not known to be still assigned here; never what is known to be gone",
        )
    if name == "purge":
        add_source(parser)
        parser.add_argument(
            "--even-if-assigned",
            action="store_true",
            help="also what is still assigned here, if a live replica of it is in the ISR of another broker",
        )
        parser.add_argument(
            "--even-if-last",
            action="store_true",
            help="also what was staged as the only in-sync replica, or with nothing known",
        )
        parser.add_argument(
            "--even-if-early", action="store_true", help="also before its time what an operator set aside"
        )
        parser.add_argument(
            "--include-held", action="store_true", help="with --even-if-early: also what has no deadline"
        )
        parser.add_argument(
            "--bytes-per-second",
            type=int,
            metavar="N",
            default=BYTES_PER_SECOND,
            help=f"how fast disks are freed (default {BYTES_PER_SECOND}); 0: as fast as it goes",
        )


def _change(arguments: argparse.Namespace, streams: Streams) -> int:
    from tools.logdirctl import staged_change, staged_export

    acts = {
        "staged export": staged_export.act,
        "staged restore": staged_change.restore,
        "staged hold": staged_change.hold,
        "staged purge": staged_change.purge,
    }
    return acts[arguments.title](arguments, streams)


def none_closely(entry: Entry) -> bool:
    """Open no live replica: a listing of what is set aside asks nothing of them."""
    return False


def set_aside(facts: Sequence[LogDirFacts], selector: Selector | None, *kinds: Kind) -> tuple[SetAside, ...]:
    """Return what is set aside on all disks.

    Args:
        facts: Of every log dir.
        selector: Which of it; ``None``: all.
        kinds: Of these kinds.

    Raises:
        ConfigError: as ``select``.
    """
    items = [item for one in facts for item in one.set_aside if item.kind in kinds]
    # A glob for everything finds also what nobody can name.
    return tuple(items) if selector is None or selector.text == EVERYTHING else select(selector, items)


class Roots(NamedTuple):
    """What the work roots of a broker hold."""

    beats: dict[str, Heartbeat | None]
    """By log dir; ``None`` where there is none to read."""
    used: ControllerFile | None
    """How far the cluster was followed."""
    problems: list[Problem]
    """Which work roots are missing, and which log dirs may not be changed."""


def read_roots(named: Broker, unread: Collection[str] = ()) -> Roots:
    """Read what the work roots hold of a broker.

    Args:
        named: The broker.
        unread: Log dirs of which it is known that they cannot be read.
    """
    beats: dict[str, Heartbeat | None] = {}
    problems: list[Problem] = []
    disk = HostDisk()
    with ExitStack() as stack:
        sites = []
        used: list[ControllerFile | None] = []
        for log_dir in named.log_dirs:
            beats[log_dir] = None
            try:
                with told(log_dir):
                    site = stack.enter_context(open_true_root(disk, log_dir)).site
                    beats[log_dir] = heartbeat.read(site)
                    used += controller.read_records([site])
                    sites.append(site)
            except LogDirError as error:
                if log_dir not in unread:
                    problems.append(error.problem())
        try:
            with told(named.log_dirs[0]):
                problems += closed_of(sites).values()
        except LogDirError as error:
            problems.append(error.problem())
    whole = used if len(used) == len(named.log_dirs) else [None]
    return Roots(beats, highest(whole), problems)


def listed(
    item: SetAside, beat: Heartbeat | None, now: Instant, looked: Looked, facts: Sequence[LogDirFacts]
) -> Listed:
    """Say of one staged replica until when it can be undone, and what keeps it from being purged.

    Args:
        item: The replica.
        beat: Of its log dir.
        now: This moment.
        looked: What the cluster says.
        facts: Of every log dir.
    """
    marker = item.marker
    if item.kind is Kind.PURGING:
        return Listed(item, PURGING, None, None, "its removal has begun")
    if marker is None or item.problem is not None:
        found = "no marker" if item.problem is None else item.problem.found
        return Listed(item, BROKEN, None, None, f"held: {found}")
    if item.kind is Kind.INCOMING:
        return Listed(item, INCOMING, None, None, "on its way in")
    assignment = assignment_of(looked.cluster, item)
    restore_class = class_of(assignment.state).value
    about = "still assigned here" if assignment.state is Assigned.HERE else assignment.why
    gate = against_purge(looked.look, item, facts)
    against = "" if gate is None else f"; {gate.problem.found}; {gate.problem.fix}"
    until: int | None = None
    match due(marker, beat, now):
        case Due() if gate is None:
            state, until, why = DUE, now.wall_ms, f"may be purged at any time; {about}"
        case Due():
            state, why = HELD, f"{about}{against}"
        case NotYet(at_earliest_wall_ms=at_ms):
            state, until, why = COUNTING, at_ms, f"{about}{against}"
        case Held(why=found):
            state, why = HELD, f"{about}{against or '; ' + found}"
    return Listed(item, state, until, restore_class, why, assignment.state)


def act_ls(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged ls``; return the exit status."""
    from tools.logdirctl.second_look import look_again

    selector = None if arguments.selector is None else parse(arguments.selector)
    require_source(arguments)
    named = broker_of(arguments)
    facts = look_at(named, none_closely)
    kinds = Kind.STAGED, Kind.PURGING, Kind.INCOMING
    items = set_aside(facts, selector, *kinds)
    unread = [one.log_dir for one in facts if one.problem is not None]
    roots, now = read_roots(named, unread), read_instant()
    # Nothing staged asks nothing of the cluster.
    looked = look_again(arguments, named, facts, roots.used, is_past_needed=True) if items else None
    lines = [] if looked is None else [listed(one, roots.beats.get(one.log_dir), now, looked, facts) for one in items]
    problems = [*roots.problems, *(one.problem for one in facts if one.problem is not None), *unformatted(facts)]
    # Of one whose removal was cut off the marker may be gone already.
    problems += [item.problem for item in items if item.problem is not None and item.kind is not Kind.PURGING]
    status = Exit.PROBLEMS if problems else Exit.DONE
    if selector is not None and not items:
        problems.append(nothing_selected(selector.text, "staged ls", set_aside(facts, None, *kinds)))
        status = Exit.PROBLEMS
    for problem in problems:
        say(streams, f"logdirctl staged ls: {problem.line()}")
    if arguments.json:
        streams.out.write(envelope("staged ls", status, problems, {"items": [_json(line) for line in lines]}))
        return status
    _table(lines, streams)
    streams.out.write(render.printable(f"next: {_next(arguments, lines, problems)}") + "\n")
    return status


def _next(arguments: argparse.Namespace, lines: Sequence[Listed], problems: Sequence[Problem]) -> str:
    where = words_of(arguments)
    if any(problem.slug == NoWorkRootError.code for problem in problems):
        return f"logdirctl init {where}"
    for line in lines:
        # What is known to be gone is never renamed back.
        if line.state in (COUNTING, DUE, HELD) and line.assigned in (Assigned.HERE, Assigned.UNKNOWN):
            return f"logdirctl staged restore {render.quoted(name_of(line.item))} {where}{named_words(arguments)}"
    return f"logdirctl inventory {where}"


def name_of(item: SetAside) -> str:
    """Return a selector that finds it and its copies; it never looks like a flag."""
    kind, name = "part", f"{item.topic}-{item.partition}"
    if item.topic_id is not None:
        kind, name = "id", f"{item.topic_id}_{item.partition}"
    return f"{kind}:{name}" if name.startswith("-") else name


_ASSIGNED = {
    Assigned.HERE: "still assigned",
    Assigned.NOT_HERE: "not here",
    Assigned.GONE: "gone",
    Assigned.UNKNOWN: "not known",
}


def _table(lines: Sequence[Listed], streams: Streams) -> None:
    headers = [
        "topic",
        "p",
        "id",
        "bytes",
        "reason",
        "evidence",
        "assigned",
        "class",
        "undo until (UTC)",
        "disk",
        "name",
        "why",
    ]
    rows = []
    for line in lines:
        item, marker = line.item, line.item.marker
        until = utc(line.undo_until_ms) if line.state == COUNTING else line.state
        rows.append([
            item.topic or "?",
            str(item.partition),
            "-" if item.topic_id is None else str(item.topic_id),
            render.size(item.log_bytes),
            "?" if marker is None else marker.reason.value,
            "?" if marker is None else _evidence(evidence_json(marker.evidence)),
            "-" if line.assigned is None else _ASSIGNED[line.assigned],
            line.restore_class or "-",
            until,
            item.log_dir,
            item.name,
            line.why,
        ])  # fmt: skip
    if not rows:
        streams.out.write("nothing is set aside\n")
        return
    render.table(streams.out, headers, rows, frozenset((1, 3)))


def _evidence(value: dict[str, object]) -> str:
    return str(value["kind"]) if value["proof"] is None else f"{value['kind']} ({value['proof']})"


def _json(line: Listed) -> dict[str, object]:
    item, marker = line.item, line.item.marker
    problem: Problem | None = item.problem
    return {
        "log_dir": render.utf8(item.log_dir),
        "name": render.utf8(item.name),
        "state": line.state,
        "topic": item.topic,
        "topic_id": None if item.topic_id is None else str(item.topic_id),
        "partition": item.partition,
        "log_bytes": item.log_bytes,
        "reason": None if marker is None else marker.reason.value,
        "evidence": None if marker is None else evidence_json(marker.evidence),
        "assigned": None if line.assigned is None else line.assigned.value,
        "class": line.restore_class,
        "staged_at_ms": None if marker is None else marker.staged_at_ms,
        "delay_ms": None if marker is None else marker.delay_ms,
        "undo_until_ms": line.undo_until_ms,
        "tiered": None if marker is None else marker.tiered,
        "why": line.why if problem is None else problem.line(),
    }
