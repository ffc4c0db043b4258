r"""``meta.properties``: which cluster, node and log dir a directory belongs to.

Read as Kafka since 3.7 reads it. Keys we do not know survive a rewrite (Kafka drops them). Not here: whether
the files of one node agree with each other (``decide``).

Spec: kafka-formats §3.1, §3.3, §3.4; KIP-631, "meta.properties"; KIP-858, "directory.id".

>>> parse(b"version=1\nnode.id=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk").node_id
1
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from logdir.errors import InvalidIdError, MalformedFileError, UnsupportedVersionError
from logdir.formats.kafka import java_properties
from logdir.formats.kafka.java_properties import Style
from logdir.ids import ClusterId, DirectoryId
from logdir.java_number import parse_java_int

VERSION_KEY = "version"
CLUSTER_KEY = "cluster.id"
BROKER_KEY = "broker.id"
NODE_KEY = "node.id"
DIRECTORY_KEY = "directory.id"
START_BLOCK_NODE_ID = 2**31 - 1
"""A node id that no broker has: ``meta.properties`` has it while ``start-block.json`` keeps the original
(``start_block_file``).
"""

# Java's String.trim() removes every character up to the blank, including control characters.
_TRIMMED = "".join(map(chr, range(0x21)))


class MetaVersion(Enum):
    """The versions of ``meta.properties``, and which keys each has."""

    V0 = 0
    """Written by ZooKeeper brokers; everything is optional."""
    V1 = 1
    """Written by ``kafka-storage format``."""

    @property
    def node_key(self) -> str:
        """``broker.id`` or ``node.id``: the key of the node id in this version; the other is an unknown key."""
        return BROKER_KEY if self is MetaVersion.V0 else NODE_KEY

    @property
    def always_has_node_id(self) -> bool:
        """Whether a file of this version without a node id is malformed."""
        return self is MetaVersion.V1

    @property
    def always_has_cluster_id(self) -> bool:
        """Whether a file of this version without a cluster id is malformed."""
        return self is MetaVersion.V1

    @property
    def is_written_by_format(self) -> bool:
        """Whether ``kafka-storage format`` writes this version."""
        return self is MetaVersion.V1

    @property
    def known_keys(self) -> tuple[str, ...]:
        """The keys with a meaning in this version, in Kafka's order."""
        return (VERSION_KEY, CLUSTER_KEY, self.node_key, DIRECTORY_KEY)


class MetaProperties(NamedTuple):
    """The content of ``meta.properties``."""

    version: MetaVersion
    cluster_id: ClusterId | None
    """Free text, compared as it stands; ``None`` only in v0."""
    node_id: int | None
    """``node.id``, in v0 ``broker.id``; ``None`` only in v0."""
    directory_id: DirectoryId | None = None
    """Absent before 3.7. Reserved ids are read, for Kafka reads them and refuses them later; they are not
    written.
    """
    unknown: tuple[tuple[str, str], ...] = ()
    """Keys without a meaning in this version and their values, in the order of the file."""


@lru_cache(maxsize=64)  # A broker has few of these files, and every scan of its layout reads them again.
def parse(data: bytes, path: str = "") -> MetaProperties:
    r"""Parse ``meta.properties``. An empty file is v0 without any id, as for Kafka.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Returns:
        The value; ids may be reserved and numbers negative: whether they are allowed is not checked here.

    Raises:
        UnsupportedVersionError: a version other than 0 and 1.
        InvalidIdError: ``directory.id`` is no id.
        MalformedFileError: a broken ``\u``, a version or node id that is no number, or a key that this version
            always has is missing.
    """
    properties = java_properties.parse(data, path)
    version = _version(properties.get(VERSION_KEY, "0"), path)
    cluster_id = properties.get(CLUSTER_KEY)
    node_text = properties.get(version.node_key)
    if cluster_id is None and version.always_has_cluster_id:
        raise MalformedFileError(path, expected=f"{CLUSTER_KEY} in version {version.value}", found="no such key")
    if node_text is None and version.always_has_node_id:
        raise MalformedFileError(path, expected=f"{NODE_KEY} in version {version.value}", found="no such key")
    node_id = None if node_text is None else parse_java_int(node_text)
    if node_text is not None and node_id is None:
        expected = f"a whole number of 32 bits without blanks in {version.node_key}"
        raise MalformedFileError(path, expected=expected, found=repr(node_text))
    return MetaProperties(
        version,
        None if cluster_id is None else ClusterId(cluster_id),
        node_id,
        _directory_id(properties.get(DIRECTORY_KEY), path),
        tuple(pair for pair in properties.items() if pair[0] not in version.known_keys),
    )


def _version(text: str, path: str) -> MetaVersion:
    number = parse_java_int(text.strip(_TRIMMED))
    if number is None:
        raise MalformedFileError(path, expected="a whole number in version", found=repr(text))
    try:
        return MetaVersion(number)
    except ValueError:
        raise UnsupportedVersionError(
            path, expected="meta.properties version 0 or 1", found=number, fix="use a logdird release that knows it"
        ) from None


def _directory_id(text: str | None, path: str) -> DirectoryId | None:
    if text is None:
        return None
    try:
        return DirectoryId.parse(text, path)
    except InvalidIdError as error:
        raise InvalidIdError(path, expected=f"{DIRECTORY_KEY}: {error.expected}", found=repr(text)) from None


def render(value: MetaProperties, *, written_at_ms: int | None = None, style: Style = Style.ESCAPED) -> bytes:
    """Return the bytes Kafka on Java 9 to 17 writes for this value.

    Args:
        value: What to write.
        written_at_ms: Instant of the date line, epoch milliseconds; ``None`` leaves the line out.
        style: What to do with characters beyond ASCII; only ``ESCAPED`` reads back equal.

    Raises:
        ValueError: an id that the version always has is missing, the directory id is reserved, or an unknown
            key is a known one.
    """
    version = value.version
    if (value.node_id is None and version.always_has_node_id) or (
        value.cluster_id is None and version.always_has_cluster_id
    ):
        raise ValueError(f"meta.properties version {version.value} always has a node id and a cluster id")
    if value.directory_id is not None and value.directory_id.is_reserved:
        raise ValueError(f"{value.directory_id} is reserved by Kafka and no log dir's id")
    properties = {VERSION_KEY: str(version.value)}
    if value.cluster_id is not None:
        properties[CLUSTER_KEY] = value.cluster_id
    if value.node_id is not None:
        properties[version.node_key] = str(value.node_id)
    if value.directory_id is not None:
        properties[DIRECTORY_KEY] = str(value.directory_id)
    for key, text in value.unknown:
        if key in version.known_keys:
            raise ValueError(f"{key} is not an unknown key in version {version.value}")
        properties[key] = text
    return java_properties.render(properties, written_at_ms=written_at_ms, style=style)
