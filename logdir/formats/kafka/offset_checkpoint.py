r"""Kafka's four offset checkpoint files of a log dir: one offset per topic and partition.

``recovery-point-offset-checkpoint``, ``log-start-offset-checkpoint``, ``replication-offset-checkpoint`` and
``cleaner-offset-checkpoint`` share one form. Not here: what an offset or its absence means.

Spec: kafka-formats §4; org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile.

>>> parse(b"0\n1\nfoo 0 42\n")
{TopicPartition(topic='foo', partition=0): 42}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from logdir.formats.kafka.checkpoint_text import parse_entries, parse_number, render_entries
from logdir.paths import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS

NAMES = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANER_OFFSETS)
"""The files with this format at the top of a log dir."""

_FIELDS = ("topic", "partition", "offset")
_MAX_PARTITION = 2**31 - 1
_MAX_OFFSET = 2**63 - 1
# A broker loads a directory even if its topic name is not legal, so the topic here must only read back as written.
_TOPIC = re.compile(r"[^\s\ud800-\udfff]+", re.ASCII)


class TopicPartition(NamedTuple):
    """A topic name and a partition number."""

    topic: str
    partition: int


def parse(data: bytes, path: str = "") -> dict[TopicPartition, int]:
    """Parse an offset checkpoint file; an empty one has no entries, as for Kafka.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Returns:
        The offset of each partition, in the file's order; of a repeated partition the last. Numbers may be negative.

    Raises:
        MalformedFileError: the file is malformed; Kafka refuses it, too (with an IOException or otherwise).
        UnsupportedVersionError: a version other than 0.
    """
    offsets: dict[TopicPartition, int] = {}
    for line, (topic, partition, offset) in parse_entries(data, path, _FIELDS):
        key = TopicPartition(topic, parse_number(partition, 32, path, line))
        offsets[key] = parse_number(offset, 64, path, line)
    return offsets


def render(value: Mapping[TopicPartition, int]) -> bytes:
    """Return the bytes of an offset checkpoint file, entries in the order of ``value``.

    Raises:
        ValueError: a topic that would not read back, a negative number, or one too large.
    """
    entries = []
    for (topic, partition), offset in value.items():
        if _TOPIC.fullmatch(topic) is None:
            raise ValueError(f"a topic in a checkpoint is not empty and has no blanks: {topic!r}")
        if not (0 <= partition <= _MAX_PARTITION and 0 <= offset <= _MAX_OFFSET):
            raise ValueError(f"out of range: partition {partition}, offset {offset} of {topic!r}")
        entries.append(f"{topic} {partition} {offset}")
    return render_entries(entries)
