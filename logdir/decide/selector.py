"""Selectors of partitions: a topic name, a topic id, ``name-p``, ``id_p`` or a glob.

A text can have several readings (``a-0`` may be a topic, and an id is a legal topic name). The reading that matches an
existing partition is used; if two readings match, the selector is refused. The prefixes ``name:``, ``part:`` (for
``name-p``) and ``id:`` choose a reading: no topic name contains a colon.

Not here: reading the disks (``observe``), the use of the selected items.

Spec: design §6 "Every command that names a partition takes one selector"; law 8.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar

from logdir.errors import ConfigError, InvalidIdError, Problem
from logdir.ids import TopicId
from logdir.names import is_legal_topic, parse_id_dir, parse_index
from logdir.replica_ref import ReplicaRef

EVERYTHING = "*"
_GLOB = re.compile(r"[*?\[]")
_FORMS = "a topic name, a topic id, name-p, id_p or a glob"


class Reading(Enum):
    """The possible readings of a selector."""

    NAME = "a topic's name"
    NAME_PARTITION = "name-p"
    ID = "a topic id"
    ID_PARTITION = "id_p"
    GLOB = "a glob"


class Selectable(Protocol):
    """An item that a selector can match."""

    @property
    def ref(self) -> ReplicaRef:
        """The topic, topic id and partition that are compared with a selector."""


_T = TypeVar("_T", bound=Selectable)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One reading of a selector, and what an item must have to match it."""

    reading: Reading
    topic: str | None = None
    topic_id: TopicId | None = None
    partition: int | None = None
    """``None``: every partition."""

    def finds(self, topic: str | None, topic_id: TopicId | None, partition: int | None) -> bool:
        if self.reading is Reading.GLOB:
            return _glob_finds(self.topic or "", topic, topic_id, partition)
        if self.partition is not None and partition != self.partition:
            return False
        return topic_id == self.topic_id if self.topic_id is not None else topic == self.topic


def _glob_finds(glob: str, topic: str | None, topic_id: TopicId | None, partition: int | None) -> bool:
    known = [] if topic is None else [topic, f"{topic}-{partition}"]
    if topic is None:
        known = [f"{topic_id}_{partition}"]
    return any(fnmatchcase(one, glob) for one in known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A selector with all its readings."""

    text: str
    ways: tuple[_Way, ...]

    def may_find(self, topic: str | None, topic_id: TopicId | None, partition: int | None) -> bool:
        """Whether any reading matches; ``select`` may still refuse two matching readings."""
        return any(way.finds(topic, topic_id, partition) for way in self.ways)


def parse(text: str) -> Selector:
    """Parse a selector.

    Args:
        text: The text as typed.

    Raises:
        ConfigError: the text has none of the five forms.

    >>> [way.reading.name for way in parse("a-0").ways]
    ['NAME', 'NAME_PARTITION']
    >>> [way.reading.name for way in parse("name:a-0").ways]
    ['NAME']
    """
    kind, colon, rest = text.partition(":")
    if colon and kind not in ("name", "part", "id"):
        raise _refused(text)
    if not colon:
        kind, rest = "", text
    if not kind and _GLOB.search(rest):
        return Selector(text=text, ways=(_Way(reading=Reading.GLOB, topic=rest),))
    ways: list[_Way] = []
    if kind != "id":
        ways += [way for way in _by_name(rest) if (way.partition is None) == (kind == "name") or not kind]
    if kind in ("", "id"):
        ways += _by_id(rest)
    if not ways:
        raise _refused(text)
    return Selector(text=text, ways=tuple(ways))


def _refused(text: str) -> ConfigError:
    return ConfigError((Problem("config-error", "SELECTOR", _FORMS, text or "an empty text"),))


def _by_name(text: str) -> list[_Way]:
    ways = []
    if is_legal_topic(text):
        ways.append(_Way(reading=Reading.NAME, topic=text))
    topic, dash, digits = text.rpartition("-")
    partition = parse_index(digits)
    if dash and partition is not None and is_legal_topic(topic):
        ways.append(_Way(reading=Reading.NAME_PARTITION, topic=topic, partition=partition))
    return ways


def _by_id(text: str) -> list[_Way]:
    parsed = parse_id_dir(text)
    if parsed is not None:
        return [_Way(reading=Reading.ID_PARTITION, topic_id=parsed.topic_id, partition=parsed.partition)]
    try:
        topic_id = TopicId.parse_any(text)
    except InvalidIdError:
        return []
    return [] if topic_id.is_zero else [_Way(reading=Reading.ID, topic_id=topic_id)]


def select(selector: Selector, items: Iterable[_T]) -> tuple[_T, ...]:
    """Return the items that a selector matches, in the order given.

    Args:
        selector: The selector.
        items: All items, of all disks.

    Raises:
        ConfigError: two of its readings match.
    """
    listed = list(items)
    found = {}
    for way in selector.ways:
        hits = tuple(item for item in listed if way.finds(item.ref.topic, item.ref.topic_id, item.ref.partition))
        if hits:
            found[way.reading] = hits
    if len(found) > 1:
        both = " and ".join(reading.value for reading in found)
        raise ConfigError(
            (
                Problem(
                    "config-error",
                    selector.text,
                    "a selector with one matching reading",
                    f"matches of it as {both}",
                    "put name:, part: or id: before the selector",
                ),
            )
        )
    return next(iter(found.values()), ())
