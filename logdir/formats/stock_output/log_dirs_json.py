"""Output of ``kafka-log-dirs --describe`` for one broker: one line of JSON, as releases since 3.6 print it.

Keys, log dirs and partitions are in the order of a Java map (two in one bin: by name).

Not here: the two introductory lines of the stock tool, and reading the disks (``observe``).

Spec: kafka-behaviour §5.1; org.apache.kafka.tools.LogDirsCommand.

>>> one = LogDirLine("/d1", None, (PartitionLine("plain", 1, 188, 0, False),))
>>> render(1, [one])
'{"brokers":[{"broker":1,"logDirs":[{"partitions":[{"partition":"plain-1","size":188,"offsetLag":0,"isFuture":false}],\
"error":null,"logDir":"/d1"}]}],"version":1}'
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, NamedTuple

from logdir.formats.stock_output.java_map import map_order, partition_hash, text_hash

OFFLINE: Final = "org.apache.kafka.common.errors.KafkaStorageException"
"""The ``error`` of a log dir that cannot be used."""
UNKNOWN_LAG: Final = -1


class PartitionLine(NamedTuple):
    """One replica that a broker would serve, or that is being moved here."""

    topic: str
    partition: int
    size: int
    """Size of its segments, in bytes."""
    offset_lag: int
    """Current: high watermark minus log end, at least 0; future: how far it is behind; -1: not known."""
    is_future: bool


class LogDirLine(NamedTuple):
    """One log dir of the broker, with the replicas in it."""

    log_dir: str
    error: str | None
    """Java class name of the error, as ``OFFLINE``; ``None``: the log dir can be used."""
    partitions: tuple[PartitionLine, ...]


def render(broker: int, log_dirs: Iterable[LogDirLine]) -> str:
    """Return the line of JSON, without its LF.

    Args:
        broker: Node id.
        log_dirs: The log dirs of the broker, each path once.
    """
    # The stock client creates this map with one bin per log dir.
    ordered = map_order(sorted(log_dirs), lambda one: text_hash(one.log_dir), bins=1)
    value = {
        "brokers": [{"broker": broker, "logDirs": [_log_dir(one) for one in ordered]}],
        "version": 1,
    }
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _log_dir(one: LogDirLine) -> dict[str, object]:
    ordered = map_order(sorted(one.partitions), lambda line: partition_hash(line.topic, line.partition))
    return {
        "partitions": [
            {
                "partition": f"{line.topic}-{line.partition}",
                "size": line.size,
                "offsetLag": line.offset_lag,
                "isFuture": line.is_future,
            }
            for line in ordered
        ],
        "error": one.error,
        "logDir": one.log_dir,
    }
