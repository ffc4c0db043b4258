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
from logdir.observe.classify import Named
from logdir.observe.replica import Contents
from logdir.replica_ref import ReplicaRef


class ScannedEntry(NamedTuple):
    """One entry of a log dir or work root."""

    name: str
    """Relative to its root; bytes that are not UTF-8 are U+FFFD here and complete in ``name_hex``."""
    name_hex: str | None
    root: WorkRootKind | None
    """The root that holds it; ``None``: the log dir's own tree, with a work root inside it."""
    named: Named
    """The information in the name, completed from ``partition.metadata`` and the marker; problems sorted."""
    metadata_id: TopicId | None
    """The topic id in ``partition.metadata``; the one in the name if that file was not read."""
    contents: Contents | None
    """``None``: not read."""

    @property
    def kind(self) -> Kind:
        """Return its kind; a link with the name of a ``-future`` is a future replica, as a broker sees it."""
        return self.named.kind

    @property
    def problems(self) -> tuple[str, ...]:
        """Return its problems, sorted slugs."""
        return self.named.problems

    @property
    def ref(self) -> ReplicaRef | None:
        """Return topic, id and partition of a partition directory; ``None``: it is none.

        The id in the name goes before the id in ``partition.metadata``.
        """
        _, topic, topic_id, partition, _, _ = self.named
        return None if partition is None else ReplicaRef(topic=topic, topic_id=topic_id, partition=partition)


_Id = bytes | None
Plain = tuple[
    str, str | None, str, str | None, _Id, int | None, tuple[str, ...], bool, _Id | bool, tuple[int | None, ...] | None
]
"""An entry without its root, in types that ``marshal`` writes; ``True`` as ``metadata_id``: it equals the topic id."""

_KINDS = {kind.value: kind for kind in Kind}


def to_plain(entry: ScannedEntry) -> Plain:
    """Return an entry as ``marshal`` writes it; ``from_plain`` is the inverse."""
    name, name_hex, _, (kind, topic, topic_id, partition, problems, needs), metadata_id, contents = entry
    return (
        name, name_hex, kind._value_, topic, None if topic_id is None else bytes(topic_id), partition, problems, needs,
        metadata_id is topic_id or (None if metadata_id is None else bytes(metadata_id)),
        None if contents is None else tuple(contents),
    )  # fmt: skip


def from_plain(plain: Plain, root: WorkRootKind | None) -> ScannedEntry:
    """Return the entry of a root that ``to_plain`` converted."""
    name, name_hex, kind, topic, bits, partition, problems, needs, metadata_bits, contents = plain
    topic_id = None if bits is None else _id(bits)
    metadata_id = topic_id
    if not isinstance(metadata_bits, bool):
        metadata_id = None if metadata_bits is None else _id(metadata_bits)
    return ScannedEntry(
        name, name_hex, root, Named(_KINDS[kind], topic, topic_id, partition, problems, needs), metadata_id,
        None if contents is None else Contents._make(contents),
    )  # fmt: skip


# Cached, because the partitions of a topic have equal ids.
_id = lru_cache(maxsize=4096)(TopicId)
