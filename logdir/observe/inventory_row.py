"""The row of an inventory file for an entry of a scan; everything else holds the entry itself.

Not here: the file (``formats.own.inventory``), writing it (``worker.inventory``).

Spec: design §7.1.
"""

from __future__ import annotations

from functools import lru_cache

from logdir.formats.own.inventory import Entry, Kind, Root
from logdir.ids import TopicId
from logdir.observe.entry import ScannedEntry

_ROOTS = (Root.LOG_DIR.value, Root.WORK_ROOT.value)
_Count = int | None
_Figures = tuple[_Count, _Count, _Count, _Count, _Count, _Count, _Count, _Count]
_NO_FIGURES: _Figures = (None, None, None, None, None, None, None, None)


def row_of(entry: ScannedEntry) -> Entry:
    """Return the row of an inventory for an entry."""
    name, name_hex, root, kind, ref, metadata_id, contents, problems = entry
    if kind_in_row(entry) is not kind:
        kind, ref, metadata_id = Kind.UNKNOWN, None, None
    figures: _Figures = _NO_FIGURES if contents is None else contents[:8]
    return Entry(
        kind.value, _ROOTS[root is not None], name, name_hex,
        None if ref is None else ref.topic,
        None if metadata_id is None else _text_of(metadata_id),
        None if ref is None else ref.partition,
        *figures,
        problems,
    )  # fmt: skip


def kind_in_row(entry: ScannedEntry) -> Kind:
    """Return the kind of an entry in an inventory, where a link with the name of a ``-future`` is unknown."""
    return Kind.UNKNOWN if entry.kind is Kind.FUTURE and "symlink" in entry.problems else entry.kind


# Cached, because the partitions of a topic have equal ids.
_text_of = lru_cache(maxsize=4096)(TopicId.__str__)
