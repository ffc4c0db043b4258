r"""A setting of a topic as Kafka's own tools print it: not as typed, but as a broker parsed it and wrote it again.

Not here: which settings a topic has (``topic_detail``). Not read: hexadecimal floating numbers.

Spec: org.apache.kafka.common.config.ConfigDef (parseType, convertToString); the types are those of
org.apache.kafka.storage.internals.log.LogConfig, 3.3 to 4.3.

>>> shown("min.cleanable.dirty.ratio", "0.50"), shown("cleanup.policy", "compact, delete"), shown("flush.ms", "1 s")
('0.5', 'compact,delete', '1 s')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from logdir.java_number import parse_java_int
from logdir.wire.json_text import double

# Java's String.trim(): everything up to the blank, control characters included.
_TRIMMED: Final = "".join(map(chr, range(0x21)))
_COMMA: Final = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")
_DOUBLE: Final = re.compile(r"[-+]?(?:NaN|Infinity|((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)[fFdD]?)")


def _whole(text: str, bits: int) -> str | None:
    value = parse_java_int(text, bits)
    return None if value is None else str(value)


def _floating(text: str) -> str | None:
    found = _DOUBLE.fullmatch(text)
    if found is None:
        return None
    return double(float(text if found[1] is None else text.rstrip("fFdD")))


def _boolean(text: str) -> str | None:
    return {"TRUE": "true", "FALSE": "false"}.get(text.upper())


def _list(text: str) -> str:
    return ",".join(_COMMA.split(text))


def _string(text: str) -> str:
    return text


_INT: Final = partial(_whole, bits=32)
_LONG: Final = partial(_whole, bits=64)

TYPES: Final[Mapping[str, Callable[[str], str | None]]] = MappingProxyType({
    "cleanup.policy": _list,
    "compression.gzip.level": _INT,
    "compression.lz4.level": _INT,
    "compression.type": _string,
    "compression.zstd.level": _INT,
    "delete.retention.ms": _LONG,
    "file.delete.delay.ms": _LONG,
    "flush.messages": _LONG,
    "flush.ms": _LONG,
    "follower.replication.throttled.replicas": _list,
    "index.interval.bytes": _INT,
    "leader.replication.throttled.replicas": _list,
    "local.retention.bytes": _LONG,
    "local.retention.ms": _LONG,
    "max.compaction.lag.ms": _LONG,
    "max.message.bytes": _INT,
    "message.downconversion.enable": _boolean,
    "message.format.version": _string,
    "message.timestamp.after.max.ms": _LONG,
    "message.timestamp.before.max.ms": _LONG,
    "message.timestamp.difference.max.ms": _LONG,
    "message.timestamp.type": _string,
    "min.cleanable.dirty.ratio": _floating,
    "min.compaction.lag.ms": _LONG,
    "min.insync.replicas": _INT,
    "preallocate": _boolean,
    "remote.log.copy.disable": _boolean,
    "remote.log.delete.on.disable": _boolean,
    "remote.storage.enable": _boolean,
    "retention.bytes": _LONG,
    "retention.ms": _LONG,
    "segment.bytes": _INT,
    "segment.index.bytes": _INT,
    "segment.jitter.ms": _LONG,
    "segment.ms": _LONG,
    "unclean.leader.election.enable": _boolean,
})  # fmt: skip
"""By setting the function that parses a value and writes it again; it returns ``None`` for a value of another type.
Internal settings are missing: they are printed as they were set.
"""


def shown(name: str, value: str) -> str:
    """Return the value of a setting as Kafka's own tools print it; unchanged if setting or value is not known.

    Args:
        name: Name of the topic's setting.
        value: The value as it was set, for the topic or for a broker.
    """
    if name not in TYPES:
        return value
    written = TYPES[name](value.strip(_TRIMMED))
    return value if written is None else written
