"""The sections of the status page in words: how the daemon stands and what waits, history, gaps, failed replicas.

Every function takes the status and returns HTML; text that comes from a disk or a file is escaped by
``logdir.markup.text``.

Not here: log dirs (``disks``), the undo window (``windows``).

Spec: issue "The daemon at home on a host", status page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from logdir.daemon.page.words import STATE_WORDS, at, config_option, left, since, span
from logdir.daemon.report.status import StatusResult
from logdir.daemon.state import DaemonState
from logdir.errors import Problem
from logdir.markup import cell_size, grouped, plural, ranges, text

_MOST_WAITING: Final = 100
"""How many problems are shown; the others are counted."""
_OPEN_WAITING: Final = 12
"""How many of them are shown unfolded: the log dirs come after them."""
_MOST_TOPICS: Final = 100
"""How many topics of failed replicas are shown; the others are counted."""
_BROKER_WORDS: Final = {True: "runs", False: "is stopped", None: "is not known to run"}


def verdict(status: StatusResult, now_ms: int) -> str:
    """Return the head of the page: one sentence, whose daemon this is, its figures, what waits for an operator."""
    count = len(status.waiting)
    does = STATE_WORDS.get(status.state, "is in a state that this page does not know")
    waits = "nothing waits for an operator"
    if count:
        waits = f"{_number(count)} {plural(count, 'problem waits', 'problems wait')} for an operator"
    is_well = status.state == DaemonState.RUNNING.name and not count
    css, mark = ("clean", "✓") if is_well else ("unknown", "!")
    return (
        f'<h1><b class="{css}" aria-hidden="true">{mark}</b> <bdi>{text(status.name)}</bdi> {does}; {waits}</h1>'
        f'<p class="lead">{_lead(status, now_ms)}</p>'
        f'<dl class="figures">{_figures(status, now_ms)}</dl>'
        f'<div class="next"><h2>What waits for an operator</h2>{_waiting(status)}</div>'
    )


def _number(value: int) -> str:
    return f'<data value="{value}">{grouped(value)}</data>'


def _lead(status: StatusResult, now_ms: int) -> str:
    node = "Its node is not known yet" if status.node_id is None else f"Node {status.node_id}"
    cluster = "" if status.cluster_id is None else f" of cluster <bdi>{text(status.cluster_id)}</bdi>"
    looked = "It has not looked at the log dirs yet."
    if status.looked_at_ms is not None:
        looked = f"It looked at the log dirs at {since(status.looked_at_ms, now_ms)}."
    lag = ""
    if status.metadata_lag:
        records = plural(status.metadata_lag, "record", "records")
        lag = f" {_number(status.metadata_lag)} {records} of the metadata log not read yet."
    return (
        f"{node}{cluster}; the broker {_BROKER_WORDS[status.broker_runs]}. State {text(status.state or '–')} since "
        f"{since(status.since_ms, now_ms)}; logdird {text(status.version)}, process {status.pid}. {looked}{lag}"
    )


def _figures(status: StatusResult, now_ms: int) -> str:
    is_looked = status.looked_at_ms is not None
    staged = sum(one.staged for one in status.log_dirs)
    staged_bytes = sum(one.staged_bytes for one in status.log_dirs)
    following = ("–", "nothing has a deadline" if is_looked else "not known yet")
    if status.next_due_ms is not None:
        value_ms = max(0, status.next_due_ms - now_ms)
        following = (
            f'<data value="{value_ms}">{left(status.next_due_ms, now_ms)}</data>',
            f"at {at(status.next_due_ms)}",
        )
    started = "since this logdird started"
    undo = ("–", "not known yet")
    if is_looked:
        undo = (_number(staged), f"staged {plural(staged, 'replica')}, {cell_size(staged_bytes)}")
    tiles = (
        ("Next purge", *following),
        ("Can be undone", *undo),
        ("Captured", _number(status.captured), f"{plural(status.captured, 'directory', 'directories')} {started}"),
        ("Missed", _number(status.missed), "the broker removed them before they were captured"),
        ("Purged", _number(status.purged), f"{plural(status.purged, 'replica')} {started}"),
        ("Requests", _number(status.queued), "wait for their turn"),
    )
    return "".join(
        f"<div><dt>{name}</dt><dd><b{_colour(name, status)}>{value}</b><span>{note}</span></dd></div>"
        for name, value, note in tiles
    )


def _colour(tile: str, status: StatusResult) -> str:
    """Return the attribute that colours the count of missed directories, unless it is 0: they cannot be restored."""
    return ' class="blocked"' if tile == "Missed" and status.missed else ""


def _waiting(status: StatusResult) -> str:
    if not status.waiting:
        return '<p class="none">Nothing.</p>'
    shown = status.waiting[:_MOST_WAITING]
    first, folded = shown[:_OPEN_WAITING], shown[_OPEN_WAITING:]
    more = len(status.waiting) - len(shown)
    rest = ""
    if folded:
        words = f"{grouped(len(folded))} more {plural(len(folded), 'problem')}"
        rest = f"<details><summary>{words}</summary>{_problems(folded)}</details>"
    if more > 0:
        command = text(f"logdirctl status {config_option(status)}")
        rest += f'<p class="note">{grouped(more)} more: <code>{command}</code></p>'
    return f"{_problems(first)}{rest}"


def _problems(problems: Sequence[Problem]) -> str:
    return f'<ol class="waiting">{"".join(map(_problem, problems))}</ol>'


def _problem(problem: Problem) -> str:
    fix = f"<p>→ {text(problem.fix)}</p>" if problem.fix else ""
    return (
        f'<li><code class="blocked">{text(problem.slug)}</code> <span class="mono"><bdi>{text(problem.path)}</bdi>'
        f"</span>: {text(problem.mismatch())}{fix}</li>"
    )


def history(status: StatusResult) -> str:
    """Return the newest events, the newest first."""
    if not status.events:
        return '<p class="none">Nothing has happened since this logdird started.</p>'
    rows = "".join(
        f"<tr><th scope=row>{at(one.at_ms)}<td><code>{text(one.event)}</code>"
        f"<small><bdi>{text(one.detail)}</bdi></small>"
        for one in reversed(status.events)
    )
    return (
        '<table class="events"><caption>The newest events, the newest first; all of them are in <code>history.jsonl'
        '</code> of the state directory</caption><thead><tr><th scope="col">When (UTC)</th><th scope="col">Event</th>'
        f"</tr></thead><tbody>{rows}</tbody></table>"
    )


def gaps(status: StatusResult) -> str:
    """Return how often no look for deletions came in time."""
    counted = f"since {at(status.gaps_since_ms)}" if status.gaps_since_ms else "so far"
    if not status.gaps and status.looked_at_ms is None:
        return '<p class="none">Deletions were not looked for yet.</p>'
    if not status.gaps:
        return f'<p class="clean">✓ No gap {counted}: every look for deletions came in time.</p>'
    last = ""
    if status.last_gap_from_ms is not None and status.last_gap_to_ms is not None:
        length = span(status.last_gap_to_ms - status.last_gap_from_ms)
        last = f", the last from {at(status.last_gap_from_ms)} to {at(status.last_gap_to_ms)} ({length})"
    return (
        f'<p class="blocked">! {_number(status.gaps)} {plural(status.gaps, "gap")} {counted}{last}.</p>'
        '<p class="note">In a gap logdird did not look for deletions for nearly as long as the broker keeps what it '
        "deletes: what was deleted then may be gone for good. <code>logdirctl explain look-too-late</code> says more."
        "</p>"
    )


def failed(status: StatusResult) -> str:
    """Return the replicas on failed disks; empty if no disk has failed."""
    found = status.failed_replicas
    if found is None:
        return ""
    count = sum(len(topic.partitions) for topic in found.topics)
    rows = "".join(
        f'<tr><th scope=row class="mono">{text(topic.topic_id)}<td>{ranges(topic.partitions)}'
        for topic in found.topics[:_MOST_TOPICS]
    )
    more = len(found.topics) - _MOST_TOPICS
    rest = f'<p class="note">{grouped(more)} more {plural(more, "topic")}.</p>' if more > 0 else ""
    return (
        f'<section id="failed"><h2>Replicas on failed disks</h2><p class="blocked">✕ {_number(count)} '
        f"{plural(count, 'replica')} lay there when the disks were last read: the broker cannot serve "
        f'{plural(count, "it", "them")}.</p><table><caption>By topic id</caption><thead><tr><th scope="col">Topic id'
        f'</th><th scope="col">Partitions</th></tr></thead><tbody>{rows}</tbody></table>{rest}</section>'
    )
