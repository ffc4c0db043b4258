"""HTML pages of ours: text that is safe in them, numbers for people, bars of bytes by kind of directory.

Everything is integer arithmetic on what is passed in, so equal values give equal bytes. The file ``markup.css`` beside
this module is the style that all pages share; it names the colours that ``bar`` refers to.

Not here: the report of a plan (``migrate.report.page``), the status page (``daemon.page.render``).

Spec: design §7.7 "Report"; issue "The daemon at home on a host", status page.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_FORMAT_MARKS = frozenset("\u00ad\u061c\u200e\u200f\u2028\u2029")
STYLE = "markup.css"
"""The name of the style that all pages share, a file of the package ``logdir``."""
SCALE = 1000
"""Units of a bar's full length: tenths of a percent."""
KIND_CLASSES = (("live", "kl"), ("delete", "kd"), ("stray", "ks"), ("future", "kf"), ("staged", "kg"))
"""Kinds of directories with a colour of their own, in drawing order; all others share ``ko``."""
KIND_WORDS = {
    "live": "replicas in service",
    "delete": "deleted by the broker, not yet removed",
    "stray": "renamed by the broker: no assignment",
    "future": "unfinished moves between disks",
    "staged": "staged deletions, can still be restored",
    "purging": "staged deletions being purged",
    "incoming": "incoming copies",
    "metadata": "the metadata log of the cluster",
    "file": "files of Kafka and of logdird",
    "unknown": "unknown entries; never changed",
}
"""What lies in a directory of each kind, for people."""


def text(value: object) -> str:
    r"""Return ``value`` as HTML text: markup and invisible characters are escaped.

    >>> text("<script>"), text("a\n\u202eb")
    ('&lt;script&gt;', 'a\\n\\u202eb')
    """
    shown = "".join(c if c.isprintable() and c not in _FORMAT_MARKS else repr(c)[1:-1] for c in str(value))
    return html.escape(shown)


def grouped(value: int) -> str:
    """Return an integer with thousands separators.

    >>> grouped(1234567)
    '1,234,567'
    """
    return f"{value:,}"


def size(value: int) -> str:
    """Return bytes in three significant digits, rounded half up, in powers of 1,024.

    >>> size(0), size(1023), size(1536), size(999 * 1024), size(1023 * 1024 + 1023), size(12 * 1024**4)
    ('0 B', '1,023 B', '1.50 KiB', '999 KiB', '1.00 MiB', '12.0 TiB')
    """
    if value < 1024:
        return f"{value:,} B"
    power = min((value.bit_length() - 1) // 10, len(_UNITS) - 1)
    while True:
        unit = 1024**power
        for digits, bound in ((2, 1000), (1, 1000), (0, 1024)):
            scaled = (value * 10**digits * 2 + unit) // (2 * unit)
            if scaled < bound or (digits == 0 and power == len(_UNITS) - 1):
                whole, rest = divmod(scaled, 10**digits)
                return f"{whole:,}{f'.{rest:0{digits}d}' if digits else ''} {_UNITS[power]}"
        power += 1


def cell_size(value: int) -> str:
    """Return a number of bytes as the HTML of a table cell, with the exact number as its value."""
    return f"<data value={value}>{size(value)}</data>"


def duration(value_ms: int) -> str:
    """Return milliseconds as a readable duration.

    >>> duration(0), duration(1583), duration(75_000), duration(2 * 3_600_000 + 61_000)
    ('0 ms', '1.6 s', '1 min 15 s', '2 h 1 min')
    """
    if value_ms < 1000:
        return f"{value_ms} ms"
    if value_ms < 59_950:
        tenths = (value_ms + 50) // 100
        return f"{tenths // 10}.{tenths % 10} s"
    seconds = (value_ms + 500) // 1000
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600:,} h {seconds % 3600 // 60} min"


def percent(part: int, whole: int) -> int:
    """Return a share in whole percent, rounded half up; only all of it is 100, only none of it is 0."""
    if whole <= 0 or part <= 0:
        return 0
    if part >= whole:
        return 100
    return min(99, max(1, (200 * part + whole) // (2 * whole)))


def plural(count: int, one: str, many: str = "") -> str:
    """Return ``one`` for a count of 1, else ``many``, which is ``one`` with an *s* if not given."""
    return one if count == 1 else many or f"{one}s"


def sentence(parts: Iterable[str]) -> str:
    """Return the parts in one phrase, as ``a, b and c``."""
    listed = list(parts)
    return " and ".join([", ".join(listed[:-1]), listed[-1]]) if len(listed) > 1 else "".join(listed)


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending whole numbers, runs of three and more joined.

    >>> ranges([1, 2, 3, 4, 7, 9, 10])
    '1–4, 7, 9, 10'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else [str(number) for number in run]
    return ", ".join(parts)


def kind_shares(held: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return CSS class and bytes of each kind of directory, as ``bar`` takes them; kinds without a colour as one.

    Args:
        held: Bytes by kind.
    """
    named = dict(KIND_CLASSES)
    parts = [(css, held.get(kind, 0)) for kind, css in KIND_CLASSES]
    return [*parts, ("ko", sum(of_kind for kind, of_kind in held.items() if kind not in named))]


def bar(parts: Sequence[tuple[str, int]], whole: int, css: str = "bar", least: int = 0, mark: int | None = None) -> str:
    """Return a horizontal stacked bar, hidden from screen readers: it stands beside the numbers that it shows.

    Args:
        parts: CSS class and value of each part, from the left; what rounds to nothing is left out.
        whole: The value of the full length.
        css: CSS class of the drawing; empty where the table styles it.
        least: Tenths of a percent that a part above zero takes at least.
        mark: Tenths of a percent at which a line is drawn; ``None``: none is.
    """
    drawn, left = [], 0
    for name, value in parts:
        length = (2 * SCALE * value + whole) // (2 * whole) if whole > 0 else 0
        length = min(max(length, least if value > 0 else 0), SCALE - left)
        if length:
            offset = f' x="{length_of(left)}"' if left else ""
            drawn.append(f'<rect class={name}{offset} width="{length_of(length)}"/>')
            left += length
    if mark is not None:
        drawn.append(f'<rect class=mark x="{length_of(mark)}" width="2"/>')
    of_class = f' class="{css}"' if css else ""
    return f"<svg{of_class} aria-hidden=true>{''.join(drawn)}</svg>"


def length_of(tenths: int) -> str:
    """Return tenths of a percent as a length of SVG.

    >>> length_of(125), length_of(1000)
    ('12.5%', '100%')
    """
    whole, rest = divmod(tenths, 10)
    return f"{whole}.{rest}%" if rest else f"{whole}%"


def digest(part: str) -> str:
    """Return the source by which a content security policy allows a style or a script of this text."""
    import base64
    import hashlib  # Loads OpenSSL, which a page alone asks for.

    return "sha256-" + base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
