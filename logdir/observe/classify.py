"""The kind of an entry, by its name and place alone: pure, so that every name can be tested without a disk.

Not here: looking inside (``replica``), walking (``scan``).

Spec: design §7.1 (kinds), §3.1–§3.2; kafka-formats §5, §6.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from logdir import names, paths
from logdir.formats.own.inventory import Kind
from logdir.ids import TopicId
from logdir.names import DirForm

_KAFKA = (
    paths.KAFKA_LOCK,
    paths.CLEAN_MARKER,
    paths.META_PROPERTIES,
    paths.BOOTSTRAP_CHECKPOINT,
    paths.RECOVERY_POINTS,
    paths.LOG_STARTS,
    paths.HIGH_WATERMARKS,
    paths.CLEANER_OFFSETS,
    paths.REMOTE_LOG_OFFSETS,
)
_OURS = (
    paths.OWNER_LOCK,
    paths.RESERVE,
    paths.WORK_ROOT_FILE,
    paths.LAYOUT,
    paths.HEARTBEAT,
    paths.START_BLOCK,
    paths.QUARANTINE,
    paths.CONTROLLER,
    paths.STAGING_LIMIT,
    paths.HANDOVER,
    paths.HISTORY,
    paths.START_BLOCK_NOTE,
)
KNOWN_FILES = frozenset(name + tail for name in _KAFKA + _OURS for tail in ("", paths.TEMPORARY))
"""Plain files of Kafka or logdird at the top of a log dir or work root."""


class Type(Enum):
    """The file type of an entry."""

    DIRECTORY = "directory"
    FILE = "file"
    SYMLINK = "symlink"
    OTHER = "other"

    @property
    def words(self) -> str:
        """The type for the *found* part of a message."""
        return _TYPE_WORDS[self]


_TYPE_WORDS = {
    Type.DIRECTORY: "a directory",
    Type.FILE: "a regular file",
    Type.SYMLINK: "a symbolic link",
    Type.OTHER: "neither a regular file nor a directory",
}


class Place(Enum):
    """Where an entry lies."""

    TOP = "top of a log dir"
    WORK_TOP = "top of a work root"
    PREFIX = "prefix directory"
    DELETING = f"{paths.DELETING}/"
    INCOMING = f"{paths.INCOMING}/"


class Named(NamedTuple):
    """Kind of an entry, and what its name contains; ``walk`` completes it from the files in a partition directory."""

    kind: Kind
    topic: str | None = None
    topic_id: TopicId | None = None
    partition: int | None = None
    """``None``: no partition directory. In those of any kind ``partition.metadata`` and the segments are read."""
    problems: tuple[str, ...] = ()
    needs_topic: bool = False
    """Whether the name holds no topic, so that the metadata file must."""


class Inside(Enum):
    """Directories that are no entries themselves; their content is."""

    PREFIX = Place.PREFIX
    DELETING = Place.DELETING
    INCOMING = Place.INCOMING
    WORK_ROOT = Place.WORK_TOP


UNKNOWN = Named(Kind.UNKNOWN)
_PLAIN = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,8})", re.ASCII)
"""Matches nearly all names of a log dir; other names are parsed fully."""
_NO_TOPICS = frozenset((".", "..", paths.METADATA_TOPIC))
_KIND_OF_FORM = {
    DirForm.CURRENT: Kind.LIVE,
    DirForm.DELETE: Kind.DELETE,
    DirForm.FUTURE: Kind.FUTURE,
    DirForm.STRAY: Kind.STRAY,
}


def _named_dir(name: str) -> Named:
    parts = names.parse_partition_dir(name)
    if parts is None or parts.topic == paths.METADATA_TOPIC:
        return UNKNOWN
    problems = ("name-truncated",) if parts.is_truncated else ()
    return Named(_KIND_OF_FORM[parts.form], parts.topic, None, parts.partition, problems)


def _id_dir(name: str, prefix: str) -> Named:
    parts = names.parse_id_dir(name)
    # Rebuilt and compared: the prefix is that of the text as spelled.
    if parts is None or name[:2] != prefix:
        return UNKNOWN
    return Named(Kind.LIVE, None, parts.topic_id, parts.partition, needs_topic=True)


def _work_dir(name: str, place: Place) -> Named:
    if name == paths.PROBE:
        return Named(Kind.FILE)
    parts = names.parse_work_dir(name)
    allowed = {"": Kind.STAGED, "purging": Kind.PURGING}
    if place is Place.INCOMING:
        allowed = {"": Kind.INCOMING, "ready": Kind.INCOMING}
    if parts is None or parts.mark not in allowed:
        return UNKNOWN
    return Named(allowed[parts.mark], parts.topic, parts.topic_id, parts.partition)


def _directory(name: str, place: Place, prefix: str) -> Named | Inside:
    match place:
        case Place.PREFIX:
            return _id_dir(name, prefix)
        case Place.DELETING | Place.INCOMING:
            return _work_dir(name, place)
        case Place.TOP | Place.WORK_TOP:
            pass
    if place is Place.TOP and (plain := _PLAIN.fullmatch(name)) is not None and plain[1] not in _NO_TOPICS:
        return Named(Kind.LIVE, plain[1], None, int(plain[2]))
    if name == paths.DELETING:
        return Inside.DELETING
    if name == paths.INCOMING:
        return Inside.INCOMING
    if place is Place.WORK_TOP:
        return Named(Kind.FILE) if name in (paths.PROBE, paths.SPARE) else UNKNOWN
    if name == paths.HIDDEN_WORK_ROOT:
        return Inside.WORK_ROOT
    if name == paths.METADATA_DIR:
        return Named(Kind.METADATA, paths.METADATA_TOPIC, None, 0)
    if name in (paths.INDEX_CACHE, paths.PROBE, paths.PROBE_IN_LOG_DIR, paths.SPARE):
        return Named(Kind.FILE)
    if names.is_prefix(name):
        return Inside.PREFIX
    return _named_dir(name)


def classify(name: str, kind: Type, place: Place, prefix: str = "") -> Named | Inside:
    """Return the kind of an entry.

    Args:
        name: Its name, one path component.
        kind: Its file type.
        place: The directory that holds it.
        prefix: The name of the prefix directory that holds it, if any.

    Returns:
        The kind and the information in the name; for a directory that is no entry, what its content is.
    """
    match kind:
        case Type.DIRECTORY:
            return _directory(name, place, prefix)
        case Type.FILE:
            known = place in (Place.TOP, Place.WORK_TOP) and name in KNOWN_FILES
            return Named(Kind.FILE) if known else Named(Kind.UNKNOWN, problems=("plain-file",))
        case Type.SYMLINK:
            # A stock broker follows a link with a live name; we do not, but it counts as a replica.
            seen = _directory(name, place, prefix)
            if isinstance(seen, Named) and seen.kind is Kind.LIVE:
                return seen._replace(problems=("symlink",))
            return Named(Kind.UNKNOWN, problems=("symlink",))
        case Type.OTHER:
            return UNKNOWN


def followed(name: str, seen: Named) -> Named:
    """Return what a broker takes a symbolic link at the top of a log dir for.

    A link with a ``-future`` name counts as a future replica: the broker promotes it.

    Args:
        name: The name of the link.
        seen: What ``classify`` returned for it.
    """
    parts = names.parse_partition_dir(name)
    if seen.kind is not Kind.UNKNOWN or parts is None or parts.form is not DirForm.FUTURE:
        return seen
    return Named(Kind.FUTURE, parts.topic, None, parts.partition, seen.problems)
