"""Batches and records of a dump, under the names that ``kafka-dump-log`` prints.

Not here: how they are read and printed as lines (``dump``).

Spec: KIP-631, "kafka-dump-log.sh"; org.apache.kafka.tools.DumpLogSegments; docs/json.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedRecord:
    """One record: a metadata record, or a control record."""

    offset: int
    timestamp: int
    key_size: int = field(metadata={"json": "keySize"})
    """-1: it has no key."""
    value_size: int = field(metadata={"json": "valueSize"})
    """-1: it has no value."""
    sequence: int
    header_keys: tuple[str, ...] = field(metadata={"json": "headerKeys"})
    payload: object = None
    """A metadata record in Kafka's JSON; ``None``: it cannot be read, or it is a control record."""
    error: str | None = None
    """Why a metadata record cannot be read; ``None``: it can, or it is a control record."""
    control: str | None = None
    """The type of a control record; ``None``: it is a metadata record."""
    value: object = None
    """A control record in Kafka's JSON; ``None``: it has none, cannot be read, or is a metadata record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedBatch:
    """One record batch, with its records."""

    base_offset: int = field(metadata={"json": "baseOffset"})
    last_offset: int = field(metadata={"json": "lastOffset"})
    count: int
    base_sequence: int = field(metadata={"json": "baseSequence"})
    last_sequence: int = field(metadata={"json": "lastSequence"})
    producer_id: int = field(metadata={"json": "producerId"})
    producer_epoch: int = field(metadata={"json": "producerEpoch"})
    leader_epoch: int = field(metadata={"json": "partitionLeaderEpoch"})
    is_transactional: bool = field(metadata={"json": "isTransactional"})
    is_control: bool = field(metadata={"json": "isControl"})
    delete_horizon_ms: int | None = field(metadata={"json": "deleteHorizonMs"})
    position: int
    """Position of its first byte in the file."""
    timestamp: int
    """Newest timestamp of its records."""
    size: int
    magic: int
    codec: str = field(metadata={"json": "compresscodec"})
    crc: int
    is_valid: bool = field(metadata={"json": "isvalid"})
    """Whether its checksum is right."""
    timestamp_type: str = field(metadata={"json": "timestampType"})
    records: tuple[DumpedRecord, ...]
