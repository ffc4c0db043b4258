"""The drawings of the report: inline SVG without text, so that it scales with the page, and numbers as ``<data>``.
Every drawing stands beside the numbers it shows and is hidden from screen readers. Lengths are whole tenths
of a percent, so the bytes of a drawing depend on the plan's numbers alone.

Not here: which numbers are drawn (``sections``, ``tables``); colours (the file ``page.css``).

Spec: design §7.7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from migrate.report.model import Counted, disk_bytes
from migrate.report.plan import Disk
from migrate.report.words import duration, grouped, percent, plural, size, text

SCALE = 1000
"""Units of a bar's full length: tenths of a percent."""
KIND_CLASSES = (("live", "kl"), ("delete", "kd"), ("stray", "ks"), ("future", "kf"), ("staged", "kg"))
"""Kinds with a colour of their own, in drawing order; all others share ``ko``."""
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


def cell_size(value: int) -> str:
    """Return a number of bytes as the HTML of a table cell; rows come in the order of the embedded JSON."""
    return f"<data value={value}>{size(value)}</data>"


def bar(parts: Sequence[tuple[str, int]], whole: int, css: str = "bar", least: int = 0) -> str:
    """Return a horizontal stacked bar.

    Args:
        parts: CSS class and value of each part, from the left; what rounds to nothing is left out.
        whole: The value of the full length.
        css: CSS class of the drawing; empty where the table styles it.
        least: Tenths of a percent that a part above zero takes at least.
    """
    drawn, left = [], 0
    for name, value in parts:
        length = (2 * SCALE * value + whole) // (2 * whole) if whole > 0 else 0
        length = min(max(length, least if value > 0 else 0), SCALE - left)
        if length:
            offset = f' x="{_share(left)}"' if left else ""
            drawn.append(f'<rect class={name}{offset} width="{_share(length)}"/>')
            left += length
    of_class = f' class="{css}"' if css else ""
    return f"<svg{of_class} aria-hidden=true>{''.join(drawn)}</svg>"


def _share(tenths: int) -> str:
    whole, rest = divmod(tenths, 10)
    return f"{whole}.{rest}%" if rest else f"{whole}%"


def span(start: int, length: int, whole: int) -> str:
    """Return one bar of a timeline: ``length`` from ``start`` on, on an axis from 0 to ``whole``."""
    left = min(SCALE * start // whole, SCALE - 6) if whole else 0
    wide = min(max(6, SCALE * length // whole), SCALE - left) if whole else 6
    return f'<svg class="span" aria-hidden="true"><rect class="kl" x="{_share(left)}" width="{_share(wide)}"/></svg>'


def kind_parts(kinds: dict[str, Counted]) -> list[tuple[str, int]]:
    """Return CSS class and bytes of each kind of entry, as ``bar`` takes them; kinds without a colour as one."""
    parts = [(css, kinds.get(kind, [0, 0])[1]) for kind, css in KIND_CLASSES]
    named = {kind for kind, _ in KIND_CLASSES}
    return [*parts, ("ko", sum(counted[1] for kind, counted in kinds.items() if kind not in named))]


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
