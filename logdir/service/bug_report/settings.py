r"""The settings of properties files, without what may be a secret: for a bug report.

A value is shown only if its key is in the table and the value has the form that the table has for it. A backslash at
the end of a line joins the next one to a value, and that line may hold a password: such a value does not have the form.
Of all other keys the name is shown, if it has the form of Kafka's.

What may be a secret is collected, too (``secrets_of``), and taken out of everything else that a report holds
(``without``): it may have got into a message or a file name.

Not here: reading the files (``report``).

Spec: design §6 ``bug-report``; java.util.Properties.

>>> shown(b"node.id=1\nssl.key.password=x\nlog.dirs=/a,/b\n", BROKER)
['node.id=1', 'ssl.key.password: set, not shown', 'log.dirs=/a,/b']
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from logdir.errors import FormatError
from logdir.formats.kafka import java_properties

_NUMBER: Final = re.compile(r"-?[0-9]{1,19}(?:\.[0-9]{1,9})?")
_WORDS: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}(?: *, *[A-Za-z0-9_.-]{1,64}){0,63}")
_FLAG: Final = re.compile(r"true|false")
_PATHS: Final = re.compile(r"[^\s=:\\,]{1,4096}(?: *, *[^\s=:\\,]{1,4096}){0,255}")
_LISTENERS: Final = re.compile(
    r"(?:[A-Za-z0-9_]+://)?[A-Za-z0-9_.\[\]-]*:[0-9:.\]]{1,9}"
    r"(?: *, *(?:[A-Za-z0-9_]+://)?[A-Za-z0-9_.\[\]-]*:[0-9:.\]]{1,9}){0,63}"
)
_VOTERS: Final = re.compile(
    r"[0-9]{1,10}@[A-Za-z0-9_.-]+:[0-9]{1,5}(?: *, *[0-9]{1,10}@[A-Za-z0-9_.-]+:[0-9]{1,5}){0,63}"
)
_PROTOCOLS: Final = re.compile(r"[A-Za-z0-9_]+:[A-Z_]+(?: *, *[A-Za-z0-9_]+:[A-Z_]+){0,63}")
_KEY: Final = re.compile(r"[a-z0-9_-]{1,64}(?:[.][a-z0-9_-]{1,64}){1,15}")
_SECRET: Final = re.compile(r"passw|secret|jaas|credential|private|keystore\.key$|token$|\.auth\b")
_QUOTED: Final = re.compile(r"[\"']([^\"']+)[\"']")
_LEAST: Final = 4
"""Shorter texts are no secrets that are looked for: they are in every file."""
REMOVED: Final = b"(removed)"

BROKER: Final[Mapping[str, re.Pattern[str]]] = {
    **dict.fromkeys(("log.dirs", "log.dir", "metadata.log.dir"), _PATHS),
    **dict.fromkeys(
        (
            "node.id", "broker.id", "log.segment.delete.delay.ms", "log.segment.bytes", "log.retention.hours",
            "log.retention.minutes", "log.retention.ms", "log.retention.bytes", "log.retention.check.interval.ms",
            "log.flush.offset.checkpoint.interval.ms", "log.flush.start.offset.checkpoint.interval.ms",
            "replica.high.watermark.checkpoint.interval.ms", "initial.broker.registration.timeout.ms",
            "broker.session.timeout.ms", "broker.heartbeat.interval.ms", "num.recovery.threads.per.data.dir",
            "log.initial.task.delay.ms", "default.replication.factor", "min.insync.replicas", "num.partitions",
            "metadata.log.max.record.bytes.between.snapshots", "log.dir.failure.timeout.ms", "delete.topic.delay.ms",
            "log.cleaner.threads", "file.delete.delay.ms", "log.message.format.version",
        ),
        _NUMBER,
    ),
    **dict.fromkeys(
        (
            "log.cleaner.enable", "auto.create.topics.enable", "delete.topic.enable", "unclean.leader.election.enable",
            "zookeeper.metadata.migration.enable", "remote.log.storage.system.enable", "controlled.shutdown.enable",
        ),
        _FLAG,
    ),
    **dict.fromkeys(
        ("process.roles", "broker.rack", "controller.listener.names", "inter.broker.protocol.version",
         "inter.broker.listener.name", "security.inter.broker.protocol", "log.cleanup.policy"),
        _WORDS,
    ),
    "listener.security.protocol.map": _PROTOCOLS,
    **dict.fromkeys(("listeners", "advertised.listeners", "controller.quorum.bootstrap.servers"), _LISTENERS),
    "controller.quorum.voters": _VOTERS,
}  # fmt: skip
"""Keys of ``server.properties`` whose values are shown, and the form of the values."""
CLIENT: Final[Mapping[str, re.Pattern[str]]] = {
    **dict.fromkeys(
        ("security.protocol", "sasl.mechanism", "client.id", "ssl.truststore.type", "ssl.keystore.type"), _WORDS
    ),
    **dict.fromkeys(("request.timeout.ms", "socket.connection.setup.timeout.ms"), _NUMBER),
    "bootstrap.servers": _LISTENERS,
}
"""Keys of a client properties file whose values are shown, and the form of the values."""


def shown(data: bytes, known: Mapping[str, re.Pattern[str]]) -> list[str]:
    """Return a line for each key of a properties file, in the order of the file.

    Args:
        data: The whole file.
        known: The keys whose values are shown, and the form of the values.
    """
    lines = []
    for key, value in _parsed(data).items():
        if key in known and known[key].fullmatch(value.strip()) is not None:
            lines.append(f"{key}={value.strip()}")
        elif key in known or (_KEY.fullmatch(key) is not None and value.strip()):
            lines.append(f"{key}: set, not shown")
        else:
            # A line without a value may be one of a password that goes over several lines.
            lines.append("a line without a key of Kafka's form, or without a value: not shown")
    return lines


def secrets_of(data: bytes) -> frozenset[bytes]:
    """Return the texts of a properties file that may be secrets: values of such keys, and what is quoted in them."""
    found: set[str] = set()
    for key, value in _parsed(data).items():
        _, separator, joined = value.partition("=")
        if _SECRET.search(key.lower()) is not None:
            found |= {value.strip(), *_QUOTED.findall(value)}
        elif separator and _SECRET.search(value.lower()) is not None:
            found.add(joined.strip())  # A line that a backslash joined to a value.
    return frozenset(form for text in found if _is_told_apart(text) for form in _forms(text))


def _is_told_apart(text: str) -> bool:
    """Whether a text is long enough, and no number or flag, so that it is not taken out of what is no secret."""
    return len(text) >= _LEAST and _NUMBER.fullmatch(text) is None and _FLAG.fullmatch(text) is None


def _forms(text: str) -> Iterator[bytes]:
    """Yield the bytes of a text as they are in its file, and as JSON has them."""
    data = text.encode("latin-1", "replace")
    yield data
    for is_ascii in (True, False):
        yield json.dumps(data.decode("utf-8", "replace"), ensure_ascii=is_ascii)[1:-1].encode()


def without(data: bytes, secrets: Iterable[bytes]) -> bytes:
    """Return data without these texts, the longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        data = data.replace(secret, REMOVED)
    return data


def _parsed(data: bytes) -> Mapping[str, str]:
    try:
        return java_properties.parse(data)
    except FormatError:
        return {}
