"""One entry of a log dir or work root as a scan found it, and its form on the pipe between two scanning processes.

Rows are named tuples, because a scan makes one per partition directory and must not be slower than ``find``.

Not here: the row of an inventory file (``inventory_row``), walking (``walk``).

Spec: design §7.1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from logdir.formats.own.inventory import Kind
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.ids import TopicId
from logdir.observe.replica import Contents
from logdir.replica_ref import ReplicaRef


class ScannedEntry(NamedTuple):
    """One entry of a log dir or work root."""

    name: str
    """Relative to its root; bytes that are not UTF-8 are U+FFFD here and complete in ``name_hex``."""
    name_hex: str | None
    root: WorkRootKind | None
    """The root that holds it; ``None``: the log dir's own tree, with a work root inside it."""
    kind: Kind
    """A link with the name of a ``-future`` is a future replica: a broker follows and promotes it."""
    ref: ReplicaRef | None
    """The id is that of the name, else of ``partition.metadata``; ``None``: it is no partition directory."""
    metadata_id: TopicId | None
    """The topic id in ``partition.metadata``; the one in the name if that file was not read."""
    contents: Contents | None
    """``None``: not read."""
    problems: tuple[str, ...]
    """Sorted slugs."""


Plain = tuple[
    str,
    str | None,
    str,
    tuple[str | None, bytes | None, int] | None,
    bytes | None,
    tuple[int | None, ...] | None,
    tuple[str, ...],
]
"""An entry without its root, in types that ``marshal`` writes: a pipe carries 25,000 of them."""

_KINDS = {kind.value: kind for kind in Kind}


def to_plain(entry: ScannedEntry) -> Plain:
    """Return an entry as ``marshal`` writes it; ``from_plain`` is the inverse."""
    name, name_hex, _, kind, ref, metadata_id, contents, problems = entry
    known = None
    if ref is not None:
        known = (ref.topic, None if ref.topic_id is None else bytes(ref.topic_id), ref.partition)
    read = None if metadata_id is None else bytes(metadata_id)
    return name, name_hex, kind.value, known, read, None if contents is None else tuple(contents), problems


def from_plain(plain: Plain, root: WorkRootKind | None) -> ScannedEntry:
    """Return the entry of a root that ``to_plain`` converted."""
    name, name_hex, kind, known, read, contents, problems = plain
    ref = None
    if known is not None:
        topic, topic_id, partition = known
        ref = ReplicaRef(topic=topic, topic_id=None if topic_id is None else _id(topic_id), partition=partition)
    return ScannedEntry(
        name, name_hex, root, _KINDS[kind], ref, None if read is None else _id(read),
        None if contents is None else Contents._make(contents), problems,
    )  # fmt: skip


# Cached, because the partitions of a topic have equal ids.
_id = lru_cache(maxsize=4096)(TopicId)
