"""``logdirctl layout status``: in which layout each log dir of a broker is, and how far a change of it is.

Needs no work root, no lock and no plan, and goes on where one log dir is in trouble: who asks may not know what is
wrong. Reads only.

Spec: design §3.1, §6, §8; attacks A21, A37.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from logdir.decide.layout_action import Seen
from logdir.disk import bar
from logdir.disk.bar import BarState
from logdir.disk.io import HostDisk
from logdir.disk.look_layout import look
from logdir.disk.site import Site
from logdir.disk.work_root import open_log_dir
from logdir.errors import LayoutFileMissingError, LogDirError, Problem, WorkRootInsideError
from logdir.formats.layout_file import LayoutState
from logdir.service.os_errors import told
from logdir.text import printable, utf8
from tools import render
from tools.cli import Exit, Streams, envelope, say
from tools.logdirctl.layout_report import NOT_READ_BY_KAFKA
from tools.logdirctl.naming import broker_of, words_of

_NOT_READ = frozenset((LayoutState.ROLLING_BACK, LayoutState.FINALIZING, LayoutState.FINAL))
"""What only a rollback ends for a released Kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One log dir."""

    log_dir: str
    seen: Seen | None = None
    bar: BarState | None = None
    problem: Problem | None = None

    @property
    def layout(self) -> str | None:
        """Which layout its replicas are in."""
        if self.seen is None:
            return None
        under_ids = {replica.is_under_id for replica in self.seen.replicas}
        if len(under_ids) == 2:
            return "mixed"
        return "topic-id" if True in under_ids else "topic-name" if under_ids else "empty"

    @property
    def is_inside(self) -> bool:
        """Whether a work root, or a part of one, lies inside the log dir: a stock broker stops over it."""
        return self.seen is not None and bool(self.seen.inside)

    @property
    def state(self) -> LayoutState | None:
        """What ``layout.json`` says."""
        return None if self.seen is None or self.seen.file is None else self.seen.file.state


def look_at(log_dir: str) -> Found:
    """Look at one log dir; what cannot be read is a problem in what is returned."""
    with ExitStack() as stack:
        try:
            with told(log_dir):
                top = stack.enter_context(open_log_dir(HostDisk(), log_dir))
                # Only looked at: whoever looks asks nothing of a work root.
                site = Site.bare(log_dir, top)
                return Found(log_dir=log_dir, seen=look(site), bar=bar.state([site]))
        except LogDirError as error:
            return Found(log_dir=log_dir, problem=error.problem())


def _problems(found: Sequence[Found]) -> list[Problem]:
    problems = [one.problem for one in found if one.problem is not None]
    known = [one for one in found if one.problem is None]
    problems += _bar_problems(known)
    for one in known:
        if one.seen is not None and one.seen.file is None and one.seen.is_under_ids:
            code = LayoutFileMissingError.code
            expected = "the file, since replicas of this log dir lie under topic ids"
            fix = f"if the replicas are this broker's: logdirctl layout rollback, with --even-if-found {code}"
            problems.append(Problem(code, f"{one.log_dir}/layout.json", expected, "no such file", fix))
    plans = {one.seen.file.plan_sha256 for one in known if one.seen is not None and one.seen.file is not None}
    if len(plans) > 1:
        where = ", ".join(one.log_dir for one in known if one.state is not None)
        problems.append(Problem("refused", where, "one plan", " and ".join(sorted(plans)), "apply the later one again"))
    return problems


def _bar_problems(known: Sequence[Found]) -> list[Problem]:
    """Return what is wrong with the bar of the log dirs that were looked at, and with what is to stop no broker."""
    barred = [one.log_dir for one in known if one.bar is BarState.BARRED]
    if barred:
        if len(barred) == len(known):
            return []
        fix = "go on with what was cut off, or logdirctl layout rollback"
        return [Problem("half-barred", ", ".join(barred), "a bar in every log dir, or in none", "one in these", fix)]
    problems = []
    # Of one log dir alone, half a bar is a bar.json beside a meta.properties that is true.
    if begun := [one.log_dir for one in known if one.bar is BarState.HALF]:
        expected = "a bar in every log dir, or no bar.json"
        found = "bar.json in these, and no meta.properties that is barred: they keep no broker out"
        fix = "go on with what was cut off, or logdirctl layout rollback"
        problems.append(Problem("bar-begun", ", ".join(begun), expected, found, fix))
    for one in known:
        if one.seen is not None and one.seen.inside and one.state not in _NOT_READ:
            expected = "no part of a work root in a log dir on which a stock broker is to start"
            fix = "logdirctl uninstall takes it away"
            path = f"{one.log_dir}/{one.seen.inside[0]}"
            problems.append(Problem(WorkRootInsideError.code, path, expected, "one", fix))
    return problems


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``layout status``; return the exit status."""
    found = [look_at(log_dir) for log_dir in broker_of(arguments).log_dirs]
    problems = _problems(found)
    status = Exit.PROBLEMS if problems else Exit.DONE
    say(streams, f"logdirctl layout status: {NOT_READ_BY_KAFKA}")
    for problem in problems:
        say(streams, f"logdirctl layout status: {problem.line()}")
    if arguments.json:
        streams.out.write(envelope("layout status", status, problems, {"log_dirs": [_json(one) for one in found]}))
        return status
    headers = ["log dir", "layout", "change", "bar", "by name", "by id", "held"]
    rows = [[one.log_dir, one.layout or "?", _state(one), _bar(one), *_shown_counts(one)] for one in found]
    render.table(streams.out, headers, rows, frozenset((4, 5, 6)))
    if (verb := _goes_on(found)) is not None:
        streams.out.write(f"with its plan it goes on: logdirctl layout {verb} PLAN\n")
    streams.out.write(printable(f"next: {_next(arguments, found)}") + "\n")
    return status


def _state(one: Found) -> str:
    if one.problem is not None:
        return "?"
    if one.seen is None or one.seen.file is None:
        return "none"
    state, for_broker = one.seen.file.state.value, one.seen.file.for_broker
    return state if for_broker is None else f"{state} for {for_broker}"


def _bar(one: Found) -> str:
    return "?" if one.bar is None else one.bar.value


def _counts(one: Found) -> tuple[int, int, int]:
    replicas = () if one.seen is None else one.seen.replicas
    under_ids = sum(replica.is_under_id for replica in replicas)
    return len(replicas) - under_ids, under_ids, sum(bool(replica.trouble) for replica in replicas)


def _shown_counts(one: Found) -> tuple[str, str, str]:
    if one.seen is None:
        return "?", "?", "?"
    by_name, by_id, held = _counts(one)
    return str(by_name), str(by_id), str(held)


def _json(one: Found) -> dict[str, object]:
    by_name, by_id, held = _counts(one)
    seen = one.seen
    return {
        "log_dir": utf8(one.log_dir),
        "layout": one.layout,
        "state": None if one.state is None else one.state.value,
        "plan_sha256": None if seen is None or seen.file is None else seen.file.plan_sha256,
        "for_broker": None if seen is None or seen.file is None else seen.file.for_broker,
        "cluster_id": None if seen is None else seen.cluster_id,
        "node_id": None if seen is None else seen.node_id,
        "bar": None if one.bar is None else one.bar.value,
        "by_name": None if seen is None else by_name,
        "by_id": None if seen is None else by_id,
        "held": None if seen is None else held,
    }


def _is_partly_rolled_back(found: Sequence[Found]) -> bool:
    """Return whether a rollback ended without one of the log dirs.

    ``layout apply`` writes ``layout.json`` in every log dir before its first start block, and before one is applied.
    """
    begun = [one for one in found if one.state is not None]
    return 0 < len(begun) < len(found) and any(
        one.bar is not BarState.OPEN or one.state is not LayoutState.APPLYING for one in begun
    )


def _are_names_back(found: Sequence[Found]) -> bool:
    """Return whether a rollback is at its end, but for what keeps the bar."""
    is_by_name = not any(one.seen is not None and one.seen.is_under_ids for one in found)
    return is_by_name and any(one.state is LayoutState.ROLLING_BACK for one in found)


def _is_not_begun(found: Sequence[Found]) -> bool:
    """Return whether nothing of a change of layout is there."""
    return all(one.state is None and one.seen is not None and not one.seen.is_under_ids for one in found)


def _goes_on(found: Sequence[Found]) -> str | None:
    """Return the verb that goes on with a plan, ``None`` where none does."""
    states = {one.state for one in found}
    if states & {None, *_NOT_READ} or states == {LayoutState.VERIFIED} or not states:
        return None
    return "verify" if states <= {LayoutState.APPLIED, LayoutState.VERIFIED} else "apply"


def _next(arguments: argparse.Namespace, found: Sequence[Found]) -> str:
    where = words_of(arguments)
    if any(one.problem is not None for one in found):
        return f"logdirctl inventory {where}"
    states = {one.state for one in found}
    is_lost = any(one.seen is not None and one.seen.is_under_ids and one.state is None for one in found)
    # A rollback is refused over a work root inside: uninstall removes that, and lifts the bar after it.
    if any(one.is_inside for one in found) and (_are_names_back(found) or _is_not_begun(found)):
        return f"logdirctl uninstall {where}"
    if is_lost or states & _NOT_READ or _is_partly_rolled_back(found):
        return f"logdirctl layout rollback {where}"
    if states == {None} and all(one.bar is BarState.OPEN for one in found):
        return f"logdirctl inventory {where}"  # what a plan is made of
    # Where the plan lies nobody here knows; the other way needs none.
    return f"logdirctl layout rollback {where}"
