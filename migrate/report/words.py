"""Texts and numbers of the report: escaping, sizes, durations, lists of node ids, and descriptions of slugs.

Everything is integer arithmetic on the plan's numbers, so the bytes of the page depend on nothing else.

Not here: where the texts stand on the page (``report.sections``, ``report.tables``).

Spec: design §7.4, §7.7.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_FORMAT_MARKS = frozenset("\u00ad\u061c\u200e\u200f\u2028\u2029")


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


def ratio(permille: int) -> str:
    """Return a number of thousandths as a factor with two decimals.

    >>> ratio(1425)
    '1.43×'
    """
    hundredths = (permille + 5) // 10
    return f"{hundredths // 100}.{hundredths % 100:02d}×"


def node_ranges(node_ids: Sequence[int]) -> str:
    """Return ascending node ids, runs of three and more joined.

    >>> node_ranges([1, 2, 3, 4, 7, 9, 10])
    '1–4, 7, 9, 10'
    """
    runs: list[list[int]] = []
    for node_id in node_ids:
        if runs and node_id == runs[-1][-1] + 1:
            runs[-1].append(node_id)
        else:
            runs.append([node_id])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else [str(node_id) for node_id in run]
    return ", ".join(parts)


def plural(count: int, one: str, many: str = "") -> str:
    """Return ``one`` for a count of 1, else ``many``, which is ``one`` with an *s* if not given."""
    return one if count == 1 else many or f"{one}s"


def sentence(parts: Iterable[str]) -> str:
    """Return the parts in one phrase, as ``a, b and c``."""
    listed = list(parts)
    return " and ".join([", ".join(listed[:-1]), listed[-1]]) if len(listed) > 1 else "".join(listed)


READINESS_MARKS = {"clean": "✓", "blocked": "✕", "unknown": "?"}
"""Sign of each readiness, shown in addition to its colour."""
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
SLUG_WORDS = {
    "one-name-two-ids": (
        "One topic name, two ids",
        "Keep the replicas of the id the cluster knows; stage the rest.",
    ),
    "one-id-two-names": (
        "One topic id, two names",
        "A renamed or copied directory: find out which name is true.",
    ),
    "replicas-differ-in-id": (
        "Replicas of one partition differ in id",
        "Some replicas belong to an older topic.",
    ),
    "partition-twice-on-broker": (
        "A partition twice on one broker",
        "A broker does not start if two of its log dirs hold one partition: keep one copy, stage the other.",
    ),
    "id-in-two-clusters": ("One topic id in two clusters", "A disk or a backup has changed clusters."),
    "node-id-twice": ("A node id twice", "Two broker entries claim it: correct the fleet file or the disk."),
    "foreign-node-disk": ("A disk of another broker", "Its meta.properties names another node id."),
    "foreign-cluster-disk": ("A disk of another cluster", "Its meta.properties names another cluster id."),
    "identity-broken": (
        "Identity of a log dir broken",
        "meta.properties is missing or malformed, or two log dirs have its directory id.",
    ),
    "metadata-file-broken": (
        "partition.metadata broken",
        "It cannot be read or contradicts the directory's name.",
    ),
    "missing-id": (
        "No topic id",
        "Blocks a broker only where the plan could not mint one or find it elsewhere.",
    ),
    "leftover": (
        "Left over",
        "Moves, deletions and strays to finish or remove first; what the broker is deleting blocks nothing.",
    ),
    "unknown-entry": ("Unknown entry", "Neither Kafka's nor logdird's: inspect it and move it out by hand."),
    "disk-unread": ("Disk not read", "Take its inventory on the broker, then plan the fleet again."),
}
