"""The rows of the fast reader, made from the tables' records by code of its own."""

from __future__ import annotations

from typing import Any

from logdir.wire.metadata_fast import PartitionChangeRow, PartitionRow, Row, TopicRow
from logdir.wire.metadata_records import MetadataRecord

_NAMES = {
    "partitionId": "partition",
    "topicId": "topic_id",
    "removingReplicas": "removing_replicas",
    "addingReplicas": "adding_replicas",
    "leaderEpoch": "leader_epoch",
    "partitionEpoch": "partition_epoch",
    "leaderRecoveryState": "leader_recovery_state",
    "eligibleLeaderReplicas": "eligible_leader_replicas",
    "lastKnownElr": "last_known_elr",
}
_ROWS: dict[str, Any] = {
    "TOPIC_RECORD": TopicRow,
    "PARTITION_RECORD": PartitionRow,
    "PARTITION_CHANGE_RECORD": PartitionChangeRow,
}


def row_of(record: MetadataRecord) -> Row:
    """Return what the fast reader should say of a record."""
    if record.name not in _ROWS:
        return record
    fields = {_NAMES.get(name, name): value for name, value in record.fields.items() if name != "_tags"}
    if record.name == "PARTITION_RECORD":
        fields.setdefault("directories", ())
    row: Row = _ROWS[record.name](**fields)
    return row
