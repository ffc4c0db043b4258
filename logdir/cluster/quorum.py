"""Whether a node is the only voter of the metadata quorum, so that everything in its own log is committed.

Static voters are in ``quorum-state``; those of a dynamic quorum in control records of the log and its snapshots, where
every leader also records the voters it knows.

Only reads. Not here: the metadata records of the log (``metadata_log``).

Spec: design §3.3 "Restore"; kafka-formats §7.5, §8.1, §8.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from logdir.cluster.metadata_files import MetadataFiles, reading
from logdir.cluster.metadata_log import control_batches
from logdir.cluster.metadata_names import snapshots_of
from logdir.errors import FormatError
from logdir.formats.kafka import quorum_state
from logdir.observe.named_file import read_regular
from logdir.wire.batches import Batch
from logdir.wire.control import decode_control


def is_only_voter(directory: str, node_id: int) -> bool:
    """Whether the metadata quorum consists of one node alone, as far as the directory shows.

    Args:
        directory: ``__cluster_metadata-0`` of that node.
        node_id: The node.

    Returns:
        ``False`` also if the voters are not known or cannot be read.
    """
    try:
        state = _state(directory)
        if state is not None and state.leader_id not in (node_id, -1):
            return False
        voters = _voters_in(directory) if state is None or state.voters is None else state.voters
    except (OSError, FormatError):
        return False
    return voters == (node_id,)


def _state(directory: str) -> quorum_state.QuorumState | None:
    path = f"{directory}/{quorum_state.FILE_NAME}"
    try:
        return quorum_state.parse(read_regular(path, quorum_state.MAX_BYTES), path)
    except FileNotFoundError:
        return None


def _voters_in(directory: str) -> tuple[int, ...]:
    """Return the voters in the last record that names any."""
    found: list[tuple[int, tuple[int, ...]]] = []
    with reading(directory) as files:
        for snapshot in snapshots_of(files.names):
            # Records in the log after the snapshot are newer.
            found += [(snapshot.offset - 1, voters) for _, voters in _voters(_first(files, snapshot.name))]
        found += _voters(control_batches(files))
    return max(found, key=lambda one: one[0], default=(0, ()))[1]


def _first(files: MetadataFiles, name: str) -> Iterator[Batch]:
    """Yield the first record batch of a snapshot, which has the voters."""
    yield from islice(files.batches_in(name), 1)


def _voters(batches: Iterable[Batch]) -> Iterator[tuple[int, tuple[int, ...]]]:
    for batch in batches:
        if not batch.is_control:
            continue
        for record in batch.records():
            fields = decode_control(record, batch.path).fields
            voters = tuple(sorted({one["voterId"] for one in fields.get("voters", ())}))
            if voters:
                yield record.offset, voters
