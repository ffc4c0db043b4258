"""Read-only view of one log dir for a layout change, through ``Directory``.

Not here: the decision (``decide.layout.transitions``), inventories (``observe.scan``), entries inside a partition
directory other than ``partition.metadata`` (``relayout`` checks them).

Spec: design §3.1; attacks A13, A42, A44.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from logdir.decide.layout.action import LayoutView, Replica
from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import is_sick
from logdir.disk.kernel.small_file import read_file
from logdir.disk.record import start_block
from logdir.disk.replica.relayout_metadata import read_bytes
from logdir.disk.root.open_log_dir import LogDirTop
from logdir.disk.root.work_root import DIRECTORIES
from logdir.errors import FormatError, LogDirError
from logdir.formats.kafka import meta_properties, partition_metadata
from logdir.formats.own import layout_file
from logdir.formats.own.inventory import Kind
from logdir.formats.own.layout_file import FILE_NAME
from logdir.ids import TopicId
from logdir.names import render_id_dir
from logdir.observe.classify import Inside, Named, Place, Type, classify
from logdir.paths import META_PROPERTIES
from logdir.replica_ref import ReplicaRef
from logdir.worker_call import worker_call


def identity(one: LogDirTop) -> tuple[str | None, int | None]:
    """Return cluster id and node id of a log dir, the original ones if it is blocked; ``None``: it has none.

    Raises:
        LogDirError: the original values are lost.
        OSError: a file cannot be read.
    """
    data = start_block.true_properties(one.top)
    if data is None:
        return None, None
    properties = meta_properties.parse(data, f"{one.log_dir}/{META_PROPERTIES}")
    return properties.cluster_id, properties.node_id


@worker_call
def look(one: LogDirTop) -> LayoutView:
    """Return what a layout change must know of a log dir: its ``layout.json``, its replicas, its ``-future`` ones.

    Raises:
        FormatError: ``layout.json``, ``start-block.json`` or ``meta.properties`` is malformed, or of a newer version.
        StateError: the log dir is blocked, and its original bytes are lost.
        OSError: the log dir cannot be listed, or the disk is sick.
    """
    data = read_file(one.top, FILE_NAME)
    file = None if data is None else layout_file.parse(data, f"{one.log_dir}/{FILE_NAME}")
    cluster_id, node_id = identity(one)
    replicas: list[Replica] = []
    futures: list[tuple[str, int]] = []
    types = one.top.types()
    for name, kind in types.items():
        found = classify(name, kind, Place.TOP)
        if isinstance(found, Named) and found.topic is not None and found.partition is not None:
            if found.kind is Kind.LIVE:
                replicas.append(_under_name(one.top, name, found.topic, found.partition, kind))
            elif found.kind is Kind.FUTURE:
                futures.append((found.topic, found.partition))
        elif found is Inside.PREFIX:
            with one.top.open(name) as prefix:
                replicas += _under_ids(prefix, name)
    return LayoutView(one.log_dir, cluster_id, node_id, file, tuple(replicas), tuple(futures), inside(types))


def inside(types: Mapping[str, Type]) -> tuple[str, ...]:
    """Return the work root directories, whole or not, at the top of a log dir.

    Args:
        types: The entries of the log dir.
    """
    return tuple(name for name in DIRECTORIES if types.get(name) is Type.DIRECTORY)


def _under_name(top: Directory, name: str, topic: str, partition: int, kind: Type) -> Replica:
    topic_id, _, trouble = _own_metadata(top, name, kind)
    return Replica(name, ReplicaRef(topic=topic, topic_id=topic_id, partition=partition), trouble)


def _under_ids(prefix: Directory, name: str) -> Iterator[Replica]:
    for inner, kind in prefix.types().items():
        found = classify(inner, kind, Place.PREFIX, name)
        if not isinstance(found, Named) or found.kind is not Kind.LIVE:
            continue
        if found.topic_id is None or found.partition is None:
            continue
        topic_id = found.topic_id
        path = f"{name}/{inner}"
        own_id, topic, trouble = _own_metadata(prefix, inner, kind)
        if not trouble and path != render_id_dir(topic_id, found.partition):
            trouble = "a topic id in a different spelling"
        if not trouble and own_id != topic_id:
            trouble = f"partition.metadata with id {own_id}"
        if not trouble and topic is None:
            trouble = "partition.metadata without the topic's name"
        yield Replica(path, ReplicaRef(topic=topic, topic_id=topic_id, partition=found.partition), trouble)


def _own_metadata(parent: Directory, name: str, kind: Type) -> tuple[TopicId | None, str | None, str]:
    """Return topic id and topic name from ``partition.metadata``, and why the replica may not be changed (empty: it
    may).
    """
    if kind is not Type.DIRECTORY:
        return None, None, kind.words
    try:
        with parent.open(name) as directory:
            data = read_bytes(directory)
        if data is None:
            return None, None, ""
        value = partition_metadata.parse(data, f"{parent.path}/{name}")
    except FormatError:
        return None, None, "a partition.metadata that is malformed"
    except LogDirError as error:
        return None, None, error.found
    except OSError as error:
        if is_sick(error):
            raise
        return None, None, f"something that cannot be read ({error.strerror})"
    return value.topic_id, value.topic_name, ""
