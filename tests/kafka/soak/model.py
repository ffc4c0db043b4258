"""What must lie on the disks: every log that was written, where it is to be, and until when; and the judge.

The judge knows what the test asked for and the clock, and none of the product's decisions.

Spec: design §3.3; kafka-behaviour §10.5.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from tests.kafka.soak.disk import MARKER, NEW_MARKER, Found
from tests.kafka.soak.observer import Observer

SECOND_MS: Final = 1000
HOUR_MS: Final = 60 * 60 * SECOND_MS
DELAYS_MS: Final = {"s": 3 * SECOND_MS, "m": 12 * SECOND_MS, "l": HOUR_MS}
"""By the first letter of a topic: how long it is kept once it was deleted."""
REPLACED_MS: Final = 5 * SECOND_MS
"""How long what an adoption replaced is kept."""
OVERDUE_MS: Final = 30 * SECOND_MS
"""A purge is late so long after its deadline: the machine may be busy, and the daemon is killed all the time."""
_KEPT_FILES: Final = ("partition.metadata", "leader-epoch-checkpoint")


def now_ms() -> int:
    """Return the wall clock."""
    return time.time_ns() // 1_000_000


class Place(Enum):
    """Where a log is to be."""

    LIVE = "live"
    DELETED = "deleted"
    """Its topic was deleted: it is to be captured, and kept for the delay of its topic."""
    STAGED = "staged"
    """An operator staged it, or an adoption replaced it."""


@dataclass(eq=False, slots=True)
class Log:
    """The records of one partition of one topic; an adoption gives them another topic id."""

    topic: str
    topic_id: str
    partition: int
    content: str
    """Digest of its records."""
    records: int
    crc32: int
    """Over the values, as the consumer of the tests computes it."""
    place: Place = Place.LIVE
    since_ms: int = 0
    """When its topic was deleted, or an adoption replaced it."""
    delay_ms: int | None = None
    """How long it is kept at least; ``None``: until somebody asks for more."""
    is_held: bool = False
    may_go: bool = False
    """Whether an operator asked for its purge."""
    is_excused: bool = False
    """Whether the daemon was down for so long after its deletion that its broker may have removed it. The daemon has to
    say so: it names a time without a look, or counts a miss.
    """
    former_ids: frozenset[str] = frozenset()
    """Topic ids it was deleted with and adopted from; its broker or another capture may have it under one of them."""
    files: frozenset[str] = frozenset()
    """What it had as it was last seen live, of what its records need."""

    @property
    def key(self) -> str:
        """Its name below ``deleting/``."""
        return f"{self.topic_id}_{self.partition}"

    def is_in(self, one: Found) -> bool:
        """Whether a directory has these records, and not under a topic id that they were adopted from."""
        return one.content == self.content and one.topic_id not in self.former_ids

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} ({self.key}, {self.place.value})"


@dataclass(slots=True)
class Model:
    """Every log there is."""

    logs: list[Log] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    """Digests of what was purged in time; its broker may still have it, about to be removed."""
    captured: set[str] = field(default_factory=set)
    """Digests of what was seen captured."""
    partial: set[str] = field(default_factory=set)
    """Topic ids and partitions that the broker removed while the daemon was down, or was killed amid the removal of; a
    part may stay in ``incoming/``.
    """
    purged: int = 0
    excused: int = 0
    restored: int = 0
    adopted: int = 0

    def at(self, place: Place) -> list[Log]:
        """Return the logs that are to be somewhere."""
        return [log for log in self.logs if log.place is place]

    def of(self, topic_id: str) -> list[Log]:
        """Return the logs of a topic id that are not live."""
        return [log for log in self.logs if log.topic_id == topic_id and log.place is not Place.LIVE]

    def topics(self, place: Place) -> dict[str, str]:
        """Return names by topic id of logs that are to be somewhere."""
        return {log.topic_id: log.topic for log in self.at(place)}


class Judge:
    """Compares a look with the model; forgets what was purged in time."""

    def __init__(self, model: Model, observer: Observer, is_named: Callable[[Log], bool]) -> None:
        """Take the model, the observer, and what tells whether the daemon names the loss of a log."""
        self._model, self._observer, self._is_named = model, observer, is_named
        self.is_broker_running = True
        """Whether it may rename and remove directories: it does so with every log of a deleted topic."""
        self.is_recovered = False
        """Whether recovery has just run, which needs Kafka's locks: it removes what a killed capture had only begun."""

    def judge(self, found: Collection[Found], odd: Iterable[str], *, is_settled: bool) -> list[str]:
        """Return what is wrong, one line each.

        Args:
            found: Every partition directory.
            odd: Names that belong to nothing.
            is_settled: Whether everything runs again and is done; else only that nothing is lost.
        """
        by_content: dict[str, list[Found]] = defaultdict(list)
        for one in found:
            by_content[one.content].append(one)
        wrong: list[str] = []
        for log in tuple(self._model.logs):
            there = [one for one in by_content.get(log.content, ()) if one.place != "purging"]
            there = [one for one in there if one.place == "live" or log.is_in(one)]
            wrong += self._against(log, there, is_settled=is_settled)
        wrong += self._against_unknown(found)
        if is_settled:
            wrong += [f"odd: {path}" for path in odd]
            for one in found:
                if one.place == "purging" or (one.place == "incoming" and not self._may_stay(one, found)):
                    wrong.append(f"left behind: {one.place}/{one.name} of disk {one.disk} with {sorted(one.inodes)}")
                elif one.place == "live" and {MARKER, NEW_MARKER} & one.inodes.keys():
                    wrong.append(f"left behind: a marker in {one.name} of disk {one.disk}")
        return wrong

    def _may_stay(self, one: Found, found: Collection[Found]) -> bool:
        """Whether a directory may lie in ``incoming/`` though nothing is in progress."""
        is_bare = not one.marker and one.inodes.keys() <= {MARKER, NEW_MARKER}
        if not self.is_broker_running and self._is_all_that_is_left(one, found):
            self._model.partial.add(one.name)
        return one.name in self._model.partial or (is_bare and not self.is_recovered)

    def _is_all_that_is_left(self, one: Found, found: Collection[Found]) -> bool:
        """Whether it holds just what is left of a ``-delete`` directory whose broker was killed amid its removal.

        A daemon that was killed, too, does not know that it had captured that directory while it was whole.
        """
        mine = _own_inodes(one)
        is_cut = not any(name.endswith(".log") for name in mine)
        return is_cut and any(
            (other.place, other.disk, other.topic_id, other.partition)
            == ("delete", one.disk, one.topic_id, one.partition)
            and other.inodes == mine
            for other in found
        )

    def _against_unknown(self, found: Iterable[Found]) -> list[str]:
        known = {log.content for log in self._model.logs}
        return [
            f"foreign: {one.place} {one.name} of disk {one.disk} has records that were never written so"
            for one in found
            if one.content and one.content not in known and one.place not in ("incoming", "purging")
            if one.content not in self._model.gone or one.place == "live"
        ]

    def _against(self, log: Log, there: list[Found], *, is_settled: bool) -> list[str]:
        if log.place is Place.DELETED and any(one.place == "staged" for one in there):
            self._model.captured.add(log.content)
        if not there:
            return self._against_missing(log)
        if log.place is Place.LIVE and is_settled:
            return self._against_live(log, there)
        staged = [one for one in there if one.place == "staged"]
        if not is_settled:
            return []
        if not staged:
            if log.is_excused and all(one.place == "incoming" for one in there):
                return self._against_missing(log)
            if log.place is Place.DELETED and not self.is_broker_running and there[0].place == "live":
                return []  # Its broker was killed before it renamed it.
            if log.content in self._model.captured and self._may_be_gone(log):
                return self._against_missing(log)  # Purged before its broker removed it.
            return [f"not captured: {log} lies only at {_places(there)}"]
        # A broker that starts makes the indexes of a -delete again: what is captured then is another directory.
        if len(staged) > len({tuple(sorted(_own_inodes(one).items())) for one in staged}):
            return [f"doubled: {log} lies at {_places(there)}"]
        return self._against_staged(log, staged[0], there)

    def _against_missing(self, log: Log) -> list[str]:
        model = self._model
        was_kept = log.place is Place.STAGED or log.content in model.captured or self._observer.has_seen(log.key)
        if log.is_excused and not was_kept:
            if not self._is_named(log):
                return [f"unnamed: {log} was removed by its broker uncaptured, and the daemon says nothing of it"]
            model.excused += 1
            model.partial.add(log.key)
        elif not was_kept or not self._may_be_gone(log):
            return [f"lost: {log} lies nowhere, held {log.is_held}, purge asked {log.may_go}, kept once {was_kept}"]
        else:
            model.purged += 1
            model.captured |= {log.content} if log.place is Place.DELETED else set()
        model.gone.add(log.content)
        model.logs.remove(log)
        return []

    def _may_be_gone(self, log: Log) -> bool:
        if log.may_go:
            return True
        if log.place is Place.LIVE or log.is_held or log.delay_ms is None:
            return False
        return now_ms() >= log.since_ms + log.delay_ms

    def _against_live(self, log: Log, there: list[Found]) -> list[str]:
        if len(there) != 1 or there[0].place != "live":
            return [f"not live once: {log} lies at {_places(there)}"]
        (one,) = there
        if (one.topic, one.topic_id, one.partition) != (log.topic, log.topic_id, log.partition):
            return [f"changed: {log} lies at {_places(there)} with id {one.topic_id}"]
        log.files = frozenset(name for name in one.inodes if name.endswith(".log") or name in _KEPT_FILES)
        return []

    def _against_staged(self, log: Log, one: Found, there: Iterable[Found]) -> list[str]:
        wrong = []
        lives = [other for other in there if other.place == "live"]
        if lives:
            wrong.append(f"doubled: {log} lies at {_places((one, *lives))}")
        if one.topic_id != log.topic_id or one.partition != log.partition:
            wrong.append(f"changed: {log} is staged as {one.name} with id {one.topic_id}")
        if missing := log.files - one.inodes.keys():
            wrong.append(f"incomplete: {log} is staged without {sorted(missing)}")
        for other in there:
            # A broker that starts loads a -stray, and makes some small files again.
            lacking = _own_inodes(other).keys() - one.inodes.keys()
            if other.place == "delete" and lacking:
                wrong.append(f"incomplete: {log} is captured without {sorted(lacking)} of {other.name}")
        marker = one.marker or {}
        if log.is_held and marker.get("delay_ms") is not None:
            wrong.append(f"held no more: {log} has a delay of {marker['delay_ms']}")
        is_stray = any(other.place == "stray" for other in there)
        if log.place is Place.DELETED and not log.is_held and not is_stray:
            wrong += self._against_deadline(log, marker)
        return wrong

    def _against_deadline(self, log: Log, marker: dict[str, object]) -> list[str]:
        delay, staged_at = marker.get("delay_ms"), marker.get("staged_at_ms")
        if delay != log.delay_ms or not isinstance(staged_at, int) or staged_at < log.since_ms:
            asked = f"was deleted at {log.since_ms} and is kept for {log.delay_ms} ms"
            return [f"deadline: {log} {asked}; its marker says {staged_at} and {delay}"]
        if log.delay_ms is not None and now_ms() > staged_at + log.delay_ms + OVERDUE_MS:
            return [f"overdue: {log} was due at {staged_at + log.delay_ms}, and it is {now_ms()}"]
        return []


def _own_inodes(one: Found) -> dict[str, int]:
    """Return the files of a replica: no marker of ours, and nothing that its broker is just writing."""
    left_out = MARKER, NEW_MARKER
    return {name: inode for name, inode in one.inodes.items() if name not in left_out and not name.endswith(".tmp")}


def _places(found: Iterable[Found]) -> str:
    return ", ".join(f"disk {one.disk} {one.place} {one.name}" for one in found) or "no place"
