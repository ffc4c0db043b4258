"""The names of topics and of partition directories, in both layouts.

Names are parsed from the right, because topics and ids may contain ``-``, ``_`` and dots. There are two parsers.
``parse_stock`` accepts exactly what a stock broker accepts, and so shows whether it starts. ``parse_partition_dir`` is
stricter: the name must be one that Kafka would write; it is rebuilt and compared.

Not here: what lies inside a directory, and what kind of entry it is in an inventory (``observe``).

Spec: kafka-formats §6; design §3.1; LocalLog (companion object), LogManager, Topic.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from logdir.errors import InvalidIdError, InvalidNameError
from logdir.ids import TopicId
from logdir.java_number import parse_java_int
from logdir.paths import DELETE_SUFFIX, FUTURE_SUFFIX, STRAY_SUFFIX

MAX_NAME = 255
"""Bytes in one file name."""
MAX_TOPIC = 249
"""Characters in a topic name."""
MAX_PARTITION = 2**31 - 1

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)
_SUFFIXED = re.compile(r"(\S+)-(\S+)\.(\S+)-(delete|future|stray)", re.ASCII)
_UNIQUE = re.compile(r"[0-9a-f]{32}", re.ASCII)
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_PREFIX = re.compile(r"[A-Za-z0-9_-]{2}", re.ASCII)
_COUNTER = re.compile(r"[2-9]|[1-9][0-9]{1,9}", re.ASCII)


class DirForm(Enum):
    """The kind of a partition directory, by its suffix."""

    CURRENT = ""
    DELETE = "delete"
    FUTURE = "future"
    STRAY = "stray"


class PartitionDir(NamedTuple):
    """The parts of a directory name of the topic-name layout."""

    topic: str
    """The topic in the name: only a prefix of the topic if ``is_truncated``."""
    partition: int
    form: DirForm
    unique: str | None
    """32 hex digits; ``None`` for a current directory."""

    @property
    def is_truncated(self) -> bool:
        """Whether Kafka may have cut the topic to make the name fit (only ``-delete`` and ``-stray`` are
        cut).
        """
        return self.form in (DirForm.DELETE, DirForm.STRAY) and len(render_partition_dir(self)) >= MAX_NAME


class IdDir(NamedTuple):
    """The parts of a directory name made of a topic id and a partition."""

    topic_id: TopicId
    partition: int


class WorkDir(NamedTuple):
    """The parts of a name under ``deleting/`` or ``incoming/``."""

    topic_id: TopicId | None
    topic: str | None
    """Only for ``no-id.{topic}_{partition}``."""
    partition: int
    counter: int
    """1, or the number that makes a taken name unique."""
    mark: str
    """``""``; ``"purging"``: its removal has begun; ``"ready"``: an incoming copy that is complete."""


def is_legal_topic(topic: str) -> bool:
    """Whether Kafka would create a topic of this name.

    >>> is_legal_topic("a.b-c_9"), is_legal_topic(".."), is_legal_topic("é")
    (True, False, False)
    """
    return _TOPIC.fullmatch(topic) is not None and topic not in (".", "..")


def require_legal_topic(topic: str, path: str = "") -> str:
    """Return ``topic`` if it is legal.

    Raises:
        InvalidNameError: Kafka would refuse to create it.
    """
    if not is_legal_topic(topic):
        raise InvalidNameError(
            path, expected="1 to 249 of a-z A-Z 0-9 . _ - (not . or ..)", found=topic or "an empty name"
        )
    return topic


def collides(one: str, other: str) -> bool:
    """Whether two topics have one name in Kafka's metrics, so that it refuses to create both (kafka-formats §6.4)."""
    return one.replace(".", "_") == other.replace(".", "_")


def parse_index(text: str) -> int | None:
    """Return a partition number as Kafka writes it (no sign, no leading zero, 31 bits), or ``None``."""
    if _INDEX.fullmatch(text) is None:
        return None
    index = int(text)
    return index if index <= MAX_PARTITION else None


def parse_stock(name: str, path: str = "") -> PartitionDir:
    """Read a name exactly as a stock broker does.

    Args:
        name: One path component.
        path: Its path, for the error.

    Returns:
        The parts; the topic may be illegal, and ``unique`` may be no hex.

    Raises:
        InvalidNameError: a stock broker would abort its start over this directory.
    """
    if "-" not in name:
        raise _refused(name, path)
    form, unique, rest = DirForm.CURRENT, None, name
    if name.endswith((DELETE_SUFFIX, FUTURE_SUFFIX, STRAY_SUFFIX)):
        matched = _SUFFIXED.fullmatch(name)
        if matched is None:
            raise _refused(name, path)
        form = DirForm(matched[4])
        rest, _, tail = name.rpartition(".")
        unique = tail[: -len(form.value) - 1]
    topic, _, digits = rest.rpartition("-")
    partition = parse_java_int(digits)
    if not topic or partition is None:
        raise _refused(name, path)
    return PartitionDir(topic, partition, form, unique)


def _refused(name: str, path: str) -> InvalidNameError:
    expected = "{topic}-{partition}, or that with .{hex}-delete"
    return InvalidNameError(path or name, expected=expected, found=name or "an empty name")


def render_partition_dir(parts: PartitionDir) -> str:
    """Return the name of a directory in the topic-name layout; the topic is not cut, however long the name gets."""
    current = f"{parts.topic}-{parts.partition}"
    return current if parts.form is DirForm.CURRENT else f"{current}.{parts.unique}-{parts.form.value}"


def name_for(topic: str, partition: int, form: DirForm, unique: str | None = None) -> str:
    """Return the name Kafka would give a partition directory, the topic cut to fit where Kafka cuts it.

    Raises:
        InvalidNameError: the topic is not legal, or a ``-future`` name would not fit (Kafka does not cut
            those).
        ValueError: no partition number, or ``unique`` is not what the form needs (32 hex digits, none if
            current).
    """
    require_legal_topic(topic)
    if not 0 <= partition <= MAX_PARTITION:
        raise ValueError(f"no partition number: {partition}")
    if (unique is not None and _UNIQUE.fullmatch(unique) is None) or (unique is None) != (form is DirForm.CURRENT):
        raise ValueError(f"a {form.name.lower()} directory's unique part is not {unique!r}")
    if form in (DirForm.DELETE, DirForm.STRAY):
        suffix = len(f"-{partition}.{unique}-{form.value}")
        topic = topic[: MAX_NAME - suffix]
    name = render_partition_dir(PartitionDir(topic, partition, form, unique))
    if len(name) > MAX_NAME:
        raise InvalidNameError(name, expected=f"at most {MAX_NAME} bytes", found=f"{len(name)} bytes")
    return name


def parse_partition_dir(name: str) -> PartitionDir | None:
    """Read a name of the topic-name layout that Kafka itself would have written; ``None`` for any other.

    >>> parse_partition_dir("x-y-3-0")
    PartitionDir(topic='x-y-3', partition=0, form=<DirForm.CURRENT: ''>, unique=None)
    >>> parse_partition_dir("a-00") is None
    True
    """
    try:
        parts = parse_stock(name)
    except InvalidNameError:
        return None
    if render_partition_dir(parts) != name or not is_legal_topic(parts.topic):
        return None
    if parts.unique is not None and _UNIQUE.fullmatch(parts.unique) is None:
        return None
    return parts


def is_prefix(name: str) -> bool:
    """Whether ``name`` can be a prefix directory of the topic-id layout (two characters of an id's text)."""
    return _PREFIX.fullmatch(name) is not None


def parse_id_dir(name: str) -> IdDir | None:
    """Read ``{topic_id}_{partition}``; the id in base64, plain or dashed hex; ``None`` for any other name."""
    text, separator, digits = name.rpartition("_")
    partition = parse_index(digits)
    if not separator or partition is None:
        return None
    try:
        topic_id = TopicId.parse_any(text)
    except InvalidIdError:
        return None
    # Rebuilt and compared: padded or non-canonical base64 is a name we would never write.
    if text not in (str(topic_id), topic_id.hex(), _dashed(topic_id)) or topic_id.is_zero:
        return None
    return IdDir(topic_id, partition)


def _dashed(topic_id: TopicId) -> str:
    text = topic_id.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def render_id_dir(topic_id: TopicId, partition: int) -> str:
    """Return ``{prefix}/{topic_id}_{partition}``, the path in the topic-id layout.

    >>> render_id_dir(TopicId.parse("eXOy6xj-Q8ivrWAlsZGnkw"), 3)
    'eX/eXOy6xj-Q8ivrWAlsZGnkw_3'
    """
    text = str(topic_id)
    return f"{text[:2]}/{text}_{partition}"


def parse_work_dir(name: str) -> WorkDir | None:
    """Read a name under ``deleting/`` or ``incoming/``; ``None`` for any other (law 7: never touched).

    >>> parse_work_dir("no-id.a.b_0.2.purging")
    WorkDir(topic_id=None, topic='a.b', partition=0, counter=2, mark='purging')
    """
    rest, mark = name, ""
    for known in ("purging", "ready"):
        if rest.endswith(f".{known}"):
            rest, mark = rest[: -len(known) - 1], known
            break
    counter = 1
    head, dot, tail = rest.rpartition(".")
    if dot and _COUNTER.fullmatch(tail) and head.rpartition("_")[1]:
        rest, counter = head, int(tail)
    if rest.startswith("no-id."):
        topic, _, digits = rest[len("no-id.") :].rpartition("_")
        partition = parse_index(digits)
        if partition is None or not is_legal_topic(topic):
            return None
        return WorkDir(None, topic, partition, counter, mark)
    parsed = parse_id_dir(rest)
    if parsed is None:
        return None
    return WorkDir(parsed.topic_id, None, parsed.partition, counter, mark)


def render_work_dir(parts: WorkDir) -> str:
    """Return the name under ``deleting/`` or ``incoming/``.

    >>> render_work_dir(WorkDir(None, "a.b", 0, 2, "purging"))
    'no-id.a.b_0.2.purging'
    """
    head = f"no-id.{parts.topic}" if parts.topic_id is None else str(parts.topic_id)
    counter = "" if parts.counter == 1 else f".{parts.counter}"
    return f"{head}_{parts.partition}{counter}" + (f".{parts.mark}" if parts.mark else "")


def fits_staged(topic_id: TopicId | None, topic: str | None, partition: int) -> bool:
    """Whether the longest name that a replica needs while it is staged and claimed fits into a file name.

    >>> fits_staged(None, "a" * 239, 0), fits_staged(None, "a" * 240, 0)
    (True, False)
    """
    parts = WorkDir(topic_id, None if topic_id is not None else topic, partition, 1, "purging")
    return len(render_work_dir(parts)) <= MAX_NAME
