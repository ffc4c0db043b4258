"""The section *Undo window* of the status page: what can be undone until when, as a drawing, a table and commands.

Not here: other sections (``sections``, ``disks``); which windows there are (``daemon.report.figures``).

Spec: issue "The daemon at home on a host", status page: the undo window as a timeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from logdir.daemon.page.words import REASON_WORDS, at, config_option, left, restore_command
from logdir.daemon.report.figures import UndoWindow
from logdir.daemon.report.status import StatusResult
from logdir.markup import cell_size, grouped, plural, ranges, text

_OPEN: Final = 40
"""A list with more windows than this is shown folded."""
_MOST_CHARS: Final = 64
"""Longest name of a topic that is shown whole: the id beside it is never cut, and the command has the id."""
_STEPS: Final = 48
"""Number of bars of the timeline."""
_WIDTH: Final = 20
"""Units of the drawing from one bar to the next."""
_HEIGHT: Final = 72
_LEAST: Final = 3
"""Units that a bar above zero is high at least."""
_HOUR_MS: Final = 60 * 60 * 1000
_SPANS: Final = (
    ("due now", 0),
    ("within an hour", _HOUR_MS),
    ("within 4 hours", 4 * _HOUR_MS),
    ("within a day", 24 * _HOUR_MS),
    ("within a week", 7 * 24 * _HOUR_MS),
)
"""Words for what goes up to so many milliseconds from now, and not in the span before."""


def undo(status: StatusResult, now_ms: int) -> str:
    """Return the windows: when they end as a drawing and as a table, then each with the command that restores."""
    if status.looked_at_ms is None:
        return '<p class="none">What is staged is not known yet: the log dirs were not looked at.</p>'
    if not status.windows:
        return '<p class="none">Nothing is staged that could be undone.</p>'
    note = (
        "Until its time what is staged can be taken back; what is held has no deadline, and stays until an operator "
        "takes it back or purges it. Each command prints its plan and the way back that fits, and changes nothing "
        "without <code class=flag>--apply</code>."
    )
    return (
        f'<p class="note">{note}</p>{_drawing(status.windows, now_ms)}{_spans(status.windows, now_ms)}'
        f"{_listed(status, now_ms)}"
    )


def _drawing(windows: Sequence[UndoWindow], now_ms: int) -> str:
    """Return the timeline from now to the last deadline, and beside it one bar of what is held."""
    timed = [(one.due_ms, _weight(one)) for one in windows if one.due_ms is not None]
    held = sum(_weight(one) for one in windows if one.due_ms is None)
    last_ms = max((due_ms for due_ms, _ in timed), default=now_ms)
    length_ms = max(1, last_ms - now_ms)
    bars = [0] * _STEPS
    for due_ms, weight in timed:
        bars[min(_STEPS - 1, max(0, due_ms - now_ms) * _STEPS // length_ms)] += weight
    most = max(*bars, held)
    going = "".join(_bar(_WIDTH * place, height, most) for place, height in enumerate(bars))
    ends = (
        f"<span>now</span><span>{at(last_ms)}, {left(last_ms, now_ms)}</span>" if timed else "<span>no deadline</span>"
    )
    return (
        '<figure class="timeline"><figcaption>What goes when: the higher a bar, the more bytes</figcaption>'
        f'<svg viewBox="0 0 {_WIDTH * _STEPS} {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="kg" d="{going}"/></svg>'
        f'<svg viewBox="0 0 {2 * _WIDTH} {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="kg" d="{_bar(_WIDTH // 2, held, most)}"/></svg>'
        f"<p>{ends}</p><p><span>held</span></p></figure>"
    )


def _weight(one: UndoWindow) -> int:
    """Return how much of the drawing a window takes: its bytes; one without any is there, too."""
    return max(1, one.log_bytes)


def _bar(start: int, weight: int, most: int) -> str:
    if not weight:
        return ""
    height = max(_LEAST, _HEIGHT * weight // most)
    return f"M{start + 1} {_HEIGHT}v-{height}h{_WIDTH - 2}v{height}z"


def _spans(windows: Sequence[UndoWindow], now_ms: int) -> str:
    """Return the drawing once more as a table of numbers."""
    found: dict[str, list[UndoWindow]] = {words: [] for words, _ in _SPANS}
    found |= {"later": [], "held": []}
    for one in windows:
        found[_span_of(one, now_ms)].append(one)
    rows = "".join(_span_row(words, of_span) for words, of_span in found.items() if of_span)
    return (
        '<table class="spans"><caption>When it goes: replicas, and bytes of their segments</caption><thead><tr>'
        '<th scope="col">Until</th><th scope="col" class="n">Replicas</th><th scope="col" class="n">Bytes</th></tr>'
        f"</thead><tbody>{rows}</tbody></table>"
    )


def _span_row(words: str, windows: Sequence[UndoWindow]) -> str:
    count, log_bytes = sum(one.replicas for one in windows), sum(one.log_bytes for one in windows)
    shown = f"<data value={count}>{grouped(count)}</data>"
    return f"<tr><th scope=row>{words}<td class=n>{shown}<td class=n>{cell_size(log_bytes)}"


def _span_of(one: UndoWindow, now_ms: int) -> str:
    if one.due_ms is None:
        return "held"
    ahead_ms = one.due_ms - now_ms
    return next((words for words, most_ms in _SPANS if ahead_ms <= most_ms), "later")


def _listed(status: StatusResult, now_ms: int) -> str:
    numbers = {one.log_dir: number for number, one in enumerate(status.log_dirs, start=1)}
    rows = "".join(_window(status, one, numbers, now_ms) for one in status.windows)
    count = len(status.windows)
    more = ""
    if status.windows_left_out:
        command = text(f"logdirctl staged ls {config_option(status)}")
        words = plural(status.windows_left_out, "entry is", "entries are")
        more = f'<p class="note">{grouped(status.windows_left_out)} more {words} listed by <code>{command}</code>.</p>'
    opened = " open" if count <= _OPEN else ""
    return (
        f"<details{opened}><summary>{grouped(count)} {plural(count, 'entry', 'entries')}, with the command that takes "
        'each back</summary><table class="big windows"><caption>What goes first, first; what is held, last. Numbers of '
        'log dirs are those above</caption><thead><tr><th scope="col">Topic</th><th scope="col">Replicas</th>'
        f'<th scope="col">Until (UTC)</th></tr></thead><tbody>{rows}</tbody></table></details>{more}'
    )


def _window(status: StatusResult, one: UndoWindow, numbers: dict[str, int], now_ms: int) -> str:
    # Hundreds of these rows: end tags and quotes that HTML does not ask for are left out.
    name = "topic not known" if one.topic is None else f"<bdi>{_shortened(one.topic)}</bdi>"
    topic_id = "" if one.topic_id is None else f"<small class=mono>{text(one.topic_id)}</small>"
    staged = "" if one.staged_at_ms is None else f"; staged {at(one.staged_at_ms)}"
    command = restore_command(status, one.topic_id, one.topic)
    typed = "" if command is None else f"<code class=cmd>{text(command)}</code>"
    until = "held<small>no deadline</small>"
    if one.due_ms is not None:
        until = f"{at(one.due_ms)}<small>{left(one.due_ms, now_ms)}</small>"
    return (
        f"<tr><th scope=row>{name}{topic_id}<small>{REASON_WORDS[one.reason]}{staged}</small>{typed}"
        f"<td>{one.replicas:,}<small>{cell_size(one.log_bytes)}</small><small>{_places(one, numbers)}</small>"
        f"<td>{until}"
    )


def _shortened(name: str) -> str:
    return text(name if len(name) <= _MOST_CHARS else f"{name[: _MOST_CHARS - 1]}…")


def _places(one: UndoWindow, numbers: dict[str, int]) -> str:
    """Return the log dirs of a window by their numbers; one without a number by its path."""
    known = sorted(numbers[log_dir] for log_dir in one.log_dirs if log_dir in numbers)
    others = [f"<bdi>{text(log_dir)}</bdi>" for log_dir in one.log_dirs if log_dir not in numbers]
    listed = ", ".join([*([ranges(known)] if known else []), *others])
    return f"log {plural(len(one.log_dirs), 'dir')} {listed}" if listed else ""
