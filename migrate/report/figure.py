"""The drawings of the report: inline SVG without text, so that it scales with the page, and numbers as ``<data>``.
Every drawing stands beside the numbers it shows and is hidden from screen readers. Lengths are whole tenths
of a percent, so the bytes of a drawing depend on the plan's numbers alone.

Not here: which numbers are drawn (``sections``, ``tables``); colours (the file ``page.css``).

Spec: design §7.7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from logdir.markup import SCALE, bar, duration, grouped, kind_shares, length_of, percent, plural, size, text
from migrate.report.model import Counted, disk_bytes
from migrate.report.plan import Disk

_FULLNESS = (50, 70, 80, 90)
"""Percent at which the disk map takes the next colour."""


def number(value: int, at: str, show: Callable[[int], str] = grouped) -> str:
    """Return a number of the embedded JSON as HTML.

    Args:
        value: The number.
        at: Its place in the embedded JSON, a JSON pointer; the browser test compares the two.
        show: Formats the number for people.
    """
    return f'<data value="{value}" data-at="{at}">{show(value)}</data>'


def size_at(value: int, at: str) -> str:
    """Return a number of bytes of the embedded JSON as HTML; ``at`` as for ``number``."""
    return number(value, at, size)


def duration_at(value: int, at: str) -> str:
    """Return a number of milliseconds of the embedded JSON as HTML; ``at`` as for ``number``."""
    return number(value, at, duration)


def span(start: int, length: int, whole: int) -> str:
    """Return one bar of a timeline: ``length`` from ``start`` on, on an axis from 0 to ``whole``."""
    left = min(SCALE * start // whole, SCALE - 6) if whole else 0
    wide = min(max(6, SCALE * length // whole), SCALE - left) if whole else 6
    drawn = f'<rect class="kl" x="{length_of(left)}" width="{length_of(wide)}"/>'
    return f'<svg class="span" aria-hidden="true">{drawn}</svg>'


def kind_parts(kinds: dict[str, Counted]) -> list[tuple[str, int]]:
    """Return CSS class and bytes of each kind of entry, as ``bar`` takes them; kinds without a colour as one."""
    return kind_shares({kind: held for kind, (_, held) in kinds.items()})


def strip(values: Sequence[int], median: int) -> str:
    """Return a strip of one tick per value, on an axis from 0 to the largest, the median marked.

    Args:
        values: Ascending.
        median: Drawn taller.
    """
    most = values[-1] if values else 0
    places = sorted({SCALE * value // most if most else 0 for value in values})
    ticks = "".join(f"M{place} 6v12" for place in places)
    middle = SCALE * median // most if most else 0
    return (
        f'<svg class="strip" viewBox="0 0 {SCALE} 24" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="axis" d="M0 23.5h{SCALE}"/><path class="tick" d="{ticks}"/>'
        f'<path class="median" d="M{middle} 0v24"/></svg>'
    )


def used_percent(disk: Disk) -> int | None:
    """Return how full a disk is, in percent; ``None`` if not known."""
    total, free = disk["total_bytes"], disk["free_bytes"]
    return None if total is None or free is None or total <= 0 else percent(total - free, total)


def disk_bar(disk: Disk, kinds: dict[str, Counted]) -> str:
    """Return the bar of one disk relative to its capacity: its kinds, other data, and free space."""
    total, free = disk["total_bytes"], disk["free_bytes"]
    parts, own = kind_parts(kinds), disk_bytes(disk)
    if total is None or free is None:
        return bar(parts, own, "")
    return bar([*parts, ("ku", max(0, total - free - own))], max(total, own), "")


def map_cells(label: str, disks: Sequence[Disk]) -> str:
    """Return one broker of the disk map: a cell per disk, by how full it is.

    Args:
        label: The broker, for the tooltip.
        disks: Its disks in order.
    """
    places: dict[str, list[int]] = {}
    shares = [used_percent(disk) if disk["status"] == "ok" else None for disk in disks]
    for place, (disk, share) in enumerate(zip(disks, shares, strict=True)):
        if disk["status"] != "ok":
            css = "fx"
        elif share is None:
            css = "fn"
        else:
            css = f"f{sum(share >= bound for bound in _FULLNESS)}"
        places.setdefault(css, []).append(place * 11)
    known = [share for share in shares if share is not None]
    title = f"{label}: {len(disks)} {plural(len(disks), 'disk')}"
    if known:
        title += f", fullest {max(known)} %"
    paths = "".join(
        f'<path class="{css}" d="{"".join(f"M{x} 8h10" for x in xs)}"/>' for css, xs in sorted(places.items())
    )
    return f'<svg width="{11 * len(disks) - 1}" height="16"><title>{text(title)}</title>{paths}</svg>'
