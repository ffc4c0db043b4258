"""``logdirctl strays``: what lies on the disks of a broker and no metadata claims, and what is missing for a proof.

Reads only, beside a running broker too, and needs no work root. Not here: what is a stray (``decide.strays``), what the
cluster says (``desired_source``), setting any of it aside (``reconcile``).

Spec: design §4, §6; attacks A1, A2, A20, A27, A43.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from logdir.decide.document import plan_document
from logdir.decide.reconcile import ReconcileRequest
from logdir.decide.selector import EVERYTHING, parse, select
from logdir.decide.strays import State, Stray, StrayView, unclaimed, view_strays
from logdir.desired.image import Certainty, Image
from logdir.disk.kernel_clock import read_instant
from logdir.errors import ConfigError, Problem, RefusedError
from logdir.observe.facts import LogDirFacts
from tools import render
from tools.cli import Exit, Streams, envelope, say
from tools.logdirctl.desired_source import (
    Desired,
    add_source,
    births_of,
    is_running,
    parse_uri,
    read_desired,
    source_words,
)
from tools.logdirctl.host import look_at_host
from tools.logdirctl.naming import add_broker, broker_of, words_of
from tools.logdirctl.protection import add_protection, protected_of, protection_words
from tools.logdirctl.report import evidence_json, nothing_selected
from tools.logdirctl.source_report import against_blank, source_json, source_line

_SELECTOR = "a topic name, a topic id, name-p, id_p or a glob"
_ORDER = (State.WANTED, State.PROVEN, State.HELD, State.REFUSED, State.UNPROVEN, State.UNKNOWN, State.LEAVING)
_STEPS = (("d", 24 * 60 * 60 * 1000), ("h", 60 * 60 * 1000), ("min", 60 * 1000), ("s", 1000))


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "strays",
        help="list what no metadata claims, and how far that is proven",
        description="List what lies on the disks of one broker and the cluster does not claim, with what is missing "
        "for a proof. Reads only, beside a running broker too.",
        epilog="exit status: 0 done, 1 a disk could not be read, or something needs a look, 2 usage or "
        "configuration, 4 the source says nothing about these disks",
        allow_abbrev=False,
    )
    parser.add_argument("selector", metavar="SELECTOR", nargs="?", help=f"{_SELECTOR}; everything if there is none")
    add_broker(parser)
    add_source(parser)
    add_protection(parser, "topics that nothing may touch")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.set_defaults(run=act, title="strays")


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    selector = None if arguments.selector is None else parse(arguments.selector)
    parse_uri(arguments.source)
    named = broker_of(arguments)
    host, now = look_at_host(named), read_instant()
    desired = read_desired(
        arguments,
        named,
        host.facts,
        host.used,
        now_ms=now.wall_ms,
        is_broker_running=is_running(named.log_dirs),
        is_end_needed=True,
    )
    blank = against_blank(desired.image)
    if blank is not None:
        # Until its first snapshot, an hour, a log is read as it lies: that tells much, and proves nothing.
        if desired.latest is None or against_blank(desired.latest) is not None:
            raise ConfigError((blank,))
        desired = replace(desired, image=replace(desired.latest, certainty=Certainty.LOCAL))
    request = ReconcileRequest(
        image=desired.image,
        now=now,
        standing=desired.standing(),
        births={},
        protected=protected_of(arguments),
        record=host.record,
    )
    try:
        request = replace(request, image=_followed(desired, request, host.facts))
    except RefusedError:
        _tell_source(request.image, streams)
        raise
    request = replace(request, births=births_of(unclaimed(request.image, host.facts)))
    view = view_strays(request, host.facts, desired.latest)
    if view.refused is not None:
        _tell_source(request.image, streams)
        raise RefusedError.of(view.refused)
    strays = view.strays
    problems = [*_told(view, request.image)]
    if selector is not None and selector.text != EVERYTHING:
        strays = select(selector, view.strays)
        if not strays:
            problems.append(nothing_selected(selector.text, "strays", view.strays))
    problems += [stray.missing for stray in strays if stray.state is State.WANTED and stray.missing is not None]
    status = Exit.PROBLEMS if problems else Exit.DONE
    if view.uncommitted is not None:
        problems.append(view.uncommitted)  # it is no trouble of these disks
    for problem in problems:
        say(streams, f"logdirctl strays: {problem.line()}")
    if arguments.json:
        result = {"source": source_json(str(desired.uri), request.image), "strays": [_json(stray) for stray in strays]}
        streams.out.write(envelope("strays", status, problems, result))
        return status
    _table(strays, request.image, streams)
    streams.out.write(render.printable(f"next: {_next(arguments, strays, view)}") + "\n")
    return status


def _tell_source(image: Image, streams: Streams) -> None:
    """Say what it is, before it is said why it is refused."""
    say(streams, f"logdirctl strays: {source_line(image)}")


def _followed(desired: Desired, request: ReconcileRequest, facts: Sequence[LogDirFacts]) -> Image:
    """Return what a source would say if it were followed now.

    Raises:
        RefusedError: it is a request document that would be refused.
    """
    if desired.document is None:
        return desired.image
    planned = plan_document(
        desired.document, None, request, facts, node_id=desired.node_id, cluster_id=desired.cluster_id
    )
    if planned.problem is not None:
        raise RefusedError.of(planned.problem)
    # One that was followed before changes nothing any more: it is listened to.
    return desired.image if planned.image is None else planned.image


def _told(view: StrayView, image: Image) -> list[Problem]:
    found = [*view.unseen, *(refusal.problem for refusal in view.passed_over)]
    if image.ended is not None:
        found.append(image.ended)
    if view.unplaced is not None:
        found.append(view.unplaced)
    if view.braked is not None:
        found.append(view.braked)
    return found


def _next(arguments: argparse.Namespace, strays: Sequence[Stray], view: StrayView) -> str:
    where = words_of(arguments)
    states = {stray.state for stray in strays}
    if states & {State.PROVEN, State.HELD} or (view.unplaced is not None and strays):
        return f"logdirctl reconcile {where} {source_words(arguments)}{protection_words(arguments)}"
    for stray in strays:
        if stray.state is State.WANTED and stray.topic_id is not None:
            # An id may begin like a flag.
            return f"logdirctl describe id:{stray.topic_id}_{stray.partition} {where} {source_words(arguments)}"
    return f"logdirctl inventory {where}"


def _json(stray: Stray) -> dict[str, object]:
    missing = stray.missing
    return {
        "log_dir": render.utf8(stray.log_dir),
        "path": render.utf8(stray.path),
        "kind": stray.kind.value,
        "topic": stray.topic,
        "topic_id": None if stray.topic_id is None else str(stray.topic_id),
        "partition": stray.partition,
        "log_bytes": stray.log_bytes,
        "age_ms": stray.age_ms,
        "state": stray.state.value,
        "says": stray.says.value,
        "reason": None if stray.reason is None else stray.reason.value,
        "evidence": evidence_json(stray.evidence),
        "rule": None if stray.rule is None else stray.rule.value,
        "missing": None if missing is None else {key: render.utf8(text) for key, text in missing._asdict().items()},
        "undo_until_ms": stray.undo_until_ms,
        "tiered": stray.is_tiered,
    }


def age(age_ms: int | None) -> str:
    """Return a time span for people.

    >>> age(93_600_000), age(61_000), age(10), age(None)
    ('26 h', '61 s', '0 s', '-')
    """
    if age_ms is None:
        return "-"
    name, step = next((pair for pair in _STEPS if age_ms >= 2 * pair[1]), _STEPS[-1])
    return f"{age_ms // step} {name}"


def _proof(stray: Stray) -> str:
    said = evidence_json(stray.evidence)
    if stray.state in (State.PROVEN, State.REFUSED):
        return str(said["proof"])
    return "no proof"


def _table(strays: Sequence[Stray], image: Image, streams: Streams) -> None:
    streams.out.write(f"{source_line(image)}\n")
    if not strays:
        streams.out.write("nothing is unclaimed\n")
        return
    headers = [
        "state",
        "topic",
        "p",
        "id",
        "kind",
        "bytes",
        "age",
        "says",
        "reason",
        "proof",
        "missing",
        "disk",
        "path",
    ]
    rows = []
    for stray in sorted(strays, key=lambda one: _ORDER.index(one.state)):
        missing = stray.missing
        rows.append([
            stray.state.value,
            stray.topic or "?",
            str(stray.partition),
            "-" if stray.topic_id is None else str(stray.topic_id),
            stray.kind.value + (", tiered" if stray.is_tiered else ""),
            render.size(stray.log_bytes),
            age(stray.age_ms),
            stray.says.value,
            "-" if stray.reason is None else stray.reason.value,
            _proof(stray),
            "-" if missing is None else f"{missing.expected}; {missing.found}",
            stray.log_dir,
            stray.path,
        ])  # fmt: skip
    render.table(streams.out, headers, rows, frozenset((2, 5, 6)))
    counts = Counter(stray.state for stray in strays)
    words = ", ".join(f"{counts[state]} {state.value}" for state in _ORDER if counts[state])
    total = sum(stray.log_bytes or 0 for stray in strays)
    streams.out.write(f"{len(strays)} directories, {render.size(total)}: {words}\n")
