"""The section *Log dirs* of the status page: how each stands, its bytes by kind, free space and floor, what is staged.

Not here: other sections (``sections``, ``windows``).

Spec: issue "The daemon at home on a host", status page: disks by kind.
"""

from __future__ import annotations

from typing import Final

from logdir.daemon.page.words import STANDINGS, at
from logdir.daemon.report.status import LogDirStatus, StatusResult
from logdir.markup import (
    KIND_CLASSES,
    KIND_WORDS,
    SCALE,
    bar,
    cell_size,
    grouped,
    kind_shares,
    percent,
    plural,
    size,
    text,
)

_OTHER: Final = "ko"
_ELSEWHERE: Final = "ku"
"""The colour of what fills a disk beside the log dir."""


def log_dirs(status: StatusResult) -> str:
    """Return every configured log dir, in the order of the configuration, and its bytes by kind in numbers."""
    if not status.log_dirs:
        return '<p class="none">The log dirs were not looked at yet.</p>'
    legend = "".join(f'<li><i class="dot {css}"></i>{kind}</li>' for kind, css in KIND_CLASSES)
    floor = (
        "" if status.least_free_percent is None else f", the line is the floor of {status.least_free_percent} % free"
    )
    rows = "".join(
        _log_dir(number, one, status.least_free_percent) for number, one in enumerate(status.log_dirs, start=1)
    )
    return (
        f'<ul class="legend">{legend}<li><i class="dot {_OTHER}"></i>other kinds</li><li><i class="dot {_ELSEWHERE}">'
        '</i>not in the log dir</li></ul><table class="big" id="disks"><caption>Bytes by kind; a full bar is a full '
        f'disk{floor}</caption><thead><tr><th scope="col">Log dir</th><th scope="col" class="wide">Bytes</th>'
        f'<th scope="col" class="n">Staged</th></tr></thead><tbody>{rows}</tbody></table>{_numbers(status)}'
    )


def _log_dir(number: int, one: LogDirStatus, floor: int | None) -> str:
    standing = STANDINGS[one.state]
    return (
        f'<tr><th scope=row>{number} <span class="mono"><bdi>{text(one.log_dir)}</bdi></span><br>'
        f'<span class="pill {standing.css}">{standing.mark} {text(one.state.value)}</span>{_notes(one)}'
        f"<td>{_bytes(one, floor)}<td>{_staged(one)}"
    )


def _notes(one: LogDirStatus) -> str:
    """Return what is to be known of a log dir beside its state."""
    meaning = STANDINGS[one.state].meaning
    notes = [text(meaning)] if meaning else []
    if one.problem is not None:
        notes.append(f"<code>{text(one.problem.slug)}</code>: {text(one.problem.reason())}")
    if one.is_undo_off:
        notes.append('<b class="unknown">! undo is off</b>: the disk is below the floor, and nothing is captured there')
    if not one.is_watched:
        notes.append("no watch: deletions are found by the sweep alone")
    return "".join(f"<small>{note}</small>" for note in notes)


def _bytes(one: LogDirStatus, floor: int | None) -> str:
    held = {figures.kind.value: figures.log_bytes for figures in one.kinds}
    own = sum(held.values())
    total, free = one.total_bytes, one.free_bytes
    if total is None or free is None:
        drawn, space = bar(kind_shares(held), own, ""), "free space is not known"
    else:
        # A captured replica shares its bytes with the broker's directory, so that the sum may exceed what is used.
        parts = [*kind_shares(held), (_ELSEWHERE, max(0, total - free - own))]
        mark = None if floor is None else SCALE - SCALE * floor // 100
        drawn = bar(parts, max(total, own), "", mark=mark)
        space = f"{cell_size(free)} of {size(total)} free ({percent(free, total)} %)"
    inodes = "" if one.free_inodes is None else f"<small>{grouped(one.free_inodes)} inodes free</small>"
    shown = f"{cell_size(own)} in the log dir" if one.read_at_ms is not None else "not read in full yet"
    return f"{drawn}{shown}<small>{space}</small>{inodes}"


def _staged(one: LogDirStatus) -> str:
    notes = [
        f"{grouped(count)} {words}"
        for count, words in (
            (one.held, "held"),
            (one.purging, "being purged"),
            (one.partial, plural(one.partial, "partial capture")),
        )
        if count
    ]
    if one.next_due_ms is not None:
        notes.append(f"next purge {at(one.next_due_ms)}")
    small = "".join(f"<small>{note}</small>" for note in notes)
    return f"<data value={one.staged}>{grouped(one.staged)}</data><small>{cell_size(one.staged_bytes)}</small>{small}"


def _numbers(status: StatusResult) -> str:
    """Return the bars once more as a table of numbers, for who cannot see them."""
    css = dict(KIND_CLASSES)
    rows = []
    for number, one in enumerate(status.log_dirs, start=1):
        for place, figures in enumerate(one.kinds):
            first = ""
            if not place:
                read = "" if one.read_at_ms is None else f"<small>read in full at {at(one.read_at_ms)}</small>"
                first = (
                    f'<th scope=row rowspan="{len(one.kinds)}">{number} <span class="mono"><bdi>'
                    f"{text(one.log_dir)}</bdi></span>{read}</th>"
                )
            kind = figures.kind.value
            rows.append(
                f'<tr>{first}<th scope=row><i class="dot {css.get(kind, _OTHER)}"></i>{text(kind)}'
                f"<small>{text(KIND_WORDS[kind])}</small><td class=n><data value={figures.entries}>"
                f"{grouped(figures.entries)}</data><td class=n>{cell_size(figures.log_bytes)}"
            )
    if not rows:
        return ""
    return (
        '<details class="numbers"><summary>Bytes by kind, in numbers</summary><table class="kinds"><caption>What lies '
        "in each log dir and its work root, and the bytes of its segments when it was read in full. A captured "
        'replica shares its bytes with the broker until the broker removes it</caption><thead><tr><th scope="col">'
        'Log dir</th><th scope="col">Kind</th><th scope="col" class="n">Directories</th><th scope="col" class="n">'
        f"Bytes</th></tr></thead><tbody>{''.join(rows)}</tbody></table></details>"
    )
