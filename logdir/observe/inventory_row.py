"""Conversion of an entry of a scan to its row in an inventory file; all other code uses the entry itself.

Not here: the file (``formats.own.inventory``), writing it (``worker.inventory``).

Spec: design §7.1.
"""

from __future__ import annotations

from functools import lru_cache

from logdir.formats.own.inventory import Entry, Kind, Root
from logdir.ids import TopicId
from logdir.observe.entry import ScannedEntry

_LOG_DIR, _WORK_ROOT = Root.LOG_DIR.value, Root.WORK_ROOT.value
_Count = int | None
_Figures = tuple[_Count, _Count, _Count, _Count, _Count, _Count, _Count, _Count]
_NO_FIGURES: _Figures = (None, None, None, None, None, None, None, None)


def row_of(entry: ScannedEntry) -> Entry:
    """Return the row of an inventory file for an entry of a scan."""
    name, name_hex, root, (kind, topic, _, partition, problems, _), metadata_id, contents = entry
    if problems and kind_in_row(entry) is not kind:
        kind, topic, partition = Kind.UNKNOWN, None, None
    return Entry._make((
        kind._value_, _LOG_DIR if root is None else _WORK_ROOT, name, name_hex, topic,
        None if metadata_id is None else _text_of(metadata_id), partition,
        *(_NO_FIGURES if contents is None else contents[:8]), problems,
    ))  # fmt: skip


def kind_in_row(entry: ScannedEntry) -> Kind:
    """Return the kind of an entry in an inventory, where a link with the name of a ``-future`` is unknown."""
    kind = entry.named.kind
    return Kind.UNKNOWN if kind is Kind.FUTURE and "symlink" in entry.named.problems else kind


# Cached, because the partitions of a topic have equal ids.
_text_of = lru_cache(maxsize=4096)(TopicId.__str__)
