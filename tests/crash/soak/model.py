"""What is known of every replica of a soak: where it lies, by what was acknowledged, and where it may be meanwhile.

A *replica* is a token (what its broker wrote) under a topic id. Its places are ``live``, ``deleted`` (renamed by its
broker), ``staged``, ``held``, ``claimed``, and ``begun`` or ``ready`` under ``incoming/``; it may lie at two of them,
where one is made of links to the other. An operation that was said to begin and not to end leaves alternatives.

Not here: what was found (``looks``), and comparing the two (``oracle``).

Spec: design §3.3, §3.1, §8; reliability §4.4 (oracle).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.crash.soak.broker import LAST_INDEXES, METADATA, Born
from tests.crash.soak.looks import CHECKPOINTS, Dir

Key = tuple[str, str]
"""Token and topic id."""
Places = frozenset[str]
SIDES: Places = frozenset({"staged", "held"})
_MOVING: Places = SIDES | {"live"}
_PURGED: Places = SIDES | {"claimed"}
LAYOUT = frozenset({"relayout", "rollback"})
"""Operations that change where everything lies."""
BARRING = LAYOUT | {"set block", "lift block"}


class Alternative(NamedTuple):
    """Where replicas may lie together."""

    places: Mapping[Key, Places]
    is_end: bool = True
    """Whether a recovery may leave it so."""


@dataclass(slots=True, kw_only=True)
class KnownReplica:
    """What is known of one replica."""

    token: str
    id: str
    topic: str
    partition: int
    disk: int
    files: Mapping[str, bytes]
    mtimes_ns: Mapping[str, int]
    """Of a file that is not named here nothing is known."""
    log_start: int | None
    """Of its checkpoint entry; ``None``: nobody said."""
    places: Places
    indexes: str = "there"
    """Of the last segment, where it is live: ``there``, ``any`` or ``gone``."""
    name: str = ""
    """Under ``deleting/``, without its mark."""
    delay_ms: int | None = None
    staged_ms: int = 0
    is_capture: bool = False

    @property
    def key(self) -> Key:
        """Token and id."""
        return self.token, self.id


@dataclass(slots=True, kw_only=True)
class Pending:
    """An operation that was begun."""

    kind: str
    about: Mapping[str, Any]
    alternatives: tuple[Alternative, ...]

    @property
    def keys(self) -> frozenset[Key]:
        """Return the replicas it moves."""
        return frozenset(key for one in self.alternatives for key in one.places)


@dataclass(slots=True)
class Model:
    """What is known of everything."""

    disks: int
    known: dict[Key, KnownReplica] = field(default_factory=dict)
    pending: list[Pending] = field(default_factory=list)
    """Begun and not ended; those before the last were interrupted, and no recovery came to its end since."""
    layout: str = "names"
    start_block: str = "open"
    offsets: dict[int, dict[str, int]] = field(default_factory=dict)
    """Of the partition that nobody has, by disk and file."""
    heartbeat_ms: dict[int, int] = field(default_factory=dict)
    staging_limit: dict[int, int] = field(default_factory=dict)
    now_ms: int = 0
    done: dict[str, int] = field(default_factory=dict)
    """Operations that came to their end, by kind."""
    ended: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By kind: what the last one that ended said it would do."""
    begun: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """By kind: what those said that were begun since."""

    def is_amid(self, kinds: Iterable[str]) -> bool:
        """Whether an operation of one of these kinds was begun and not ended."""
        return any(pending.kind in kinds for pending in self.pending)

    def places_of(self, key: Key) -> Places:
        """Return every place where a replica may lie at this moment."""
        pending = (one.places[key] for each in self.pending for one in each.alternatives if key in one.places)
        return self.known[key].places.union(*pending)

    # What the broker did.

    def born(self, one: Born) -> None:
        """Hear of a new replica."""
        self.known[one.token, one.id] = KnownReplica(
            token=one.token,
            id=one.id,
            topic=one.topic,
            partition=one.partition,
            disk=one.disk,
            files=one.files,
            mtimes_ns=one.mtimes_ns,
            log_start=one.log_start,
            places=frozenset({"live"}),
        )

    def changed(self, one: Dir, what: str) -> None:
        """Hear what the broker did to a directory: ``deleted``, or ``gone``."""
        known = self.known[one.token or "", one.id or ""]
        known.places = known.places - {"live", "deleted"} | ({"deleted"} if what == "deleted" else set())

    # What our process says it begins.

    def begin(self, kind: str, about: Mapping[str, Any]) -> list[str]:
        """Hear that an operation begins; return what is wrong with that."""
        wrong: list[str] = []
        self.begun.setdefault(kind, []).append(about)
        match kind:
            case "stage":
                made = self._stage(about["items"])
            case "restore":
                key = self._key(about)
                made = self._courses([key], ("live",))
                if about["drops"]:
                    self.known[key].indexes = "any"
            case "hold":
                made = self._courses([self._key(about)], ("held",))
            case "purge":
                key = self._key(about)
                known = self.known[key]
                if about["token"] is not None and not self._is_due(known):
                    wrong.append(
                        f"early: {key} is purged, {known.delay_ms} ms after {known.staged_ms} at {self.now_ms}"
                    )
                known.name = about["name"].removesuffix(".purging")
                # One that was claimed goes; what was captured once more since then stays.
                of = _PURGED if about["token"] is not None else _PURGED - SIDES
                made = self._courses([key], ("claimed",), (), of=of)
            case "capture":
                made = self._capture(self._key(about), about["delay_ms"])
            case "adopt":
                made = self._adoption(about)
            case _:
                made = iter(())
        self.pending.append(Pending(kind=kind, about=about, alternatives=tuple(made)))
        return wrong

    def _key(self, about: Mapping[str, Any]) -> Key:
        if about["token"] is not None:
            return about["token"], about["id"]
        lies = about["disk"], about["name"].removesuffix(".purging")
        return next(key for key, one in self.known.items() if (one.disk, one.name) == lies and "claimed" in one.places)

    def _put_staged(self, known: KnownReplica, delay_ms: int | None, *, is_capture: bool) -> None:
        known.delay_ms, known.staged_ms, known.is_capture = delay_ms, self.now_ms, is_capture

    def _is_due(self, known: KnownReplica) -> bool:
        return known.delay_ms is not None and known.staged_ms + known.delay_ms <= self.now_ms

    def _courses(self, keys: Sequence[Key], *ends: tuple[str, ...], of: Places = _MOVING) -> Iterator[Alternative]:
        """Yield every alternative of replicas that each stay, or go from places ``of`` theirs to one of the ends."""
        ways = []
        for key in keys:
            places = self.known[key].places
            ways.append([places, *(places - of | set(end) for end in ends)])
        return (Alternative(dict(zip(keys, chosen, strict=True))) for chosen in itertools.product(*ways))

    def _stage(self, items: Sequence[Mapping[str, Any]]) -> Iterator[Alternative]:
        keys = [(item["token"], item["id"]) for item in items]
        for key, item in zip(keys, items, strict=True):
            self._put_staged(self.known[key], item["delay_ms"], is_capture=False)
        return self._courses(keys, ("staged",))

    def _capture(self, key: Key, delay_ms: int | None) -> Iterator[Alternative]:
        known = self.known[key]
        yield Alternative({key: known.places})
        if known.places & SIDES:
            return
        self._put_staged(known, delay_ms, is_capture=True)
        # A capture keeps the entry only where no live twin has it; its marker shows that at the next look.
        known.log_start = None
        yield Alternative({key: known.places | {"begun"}})
        yield Alternative({key: known.places - {"begun"} | {"held" if delay_ms is None else "staged"}})

    def _adoption(self, about: Mapping[str, Any]) -> Iterator[Alternative]:
        rescued, present = self._key(about), self._key(about["present"])
        old, new = self.known[rescued], self.known[present]
        made = (rescued[0], present[1])
        kept = {name: data for name, data in old.files.items() if name not in LAST_INDEXES}
        kept[METADATA] = f"version: 0\ntopic_id: {present[1]}".encode()
        self.known[made] = KnownReplica(
            token=made[0],
            id=made[1],
            topic=old.topic,
            partition=old.partition,
            disk=old.disk,
            files=kept,
            mtimes_ns={name: mtime for name, mtime in old.mtimes_ns.items() if name in kept and name != METADATA},
            log_start=old.log_start,
            places=frozenset(),
            indexes="gone",
        )
        self._put_staged(new, about["present"]["delay_ms"], is_capture=False)
        aside = new.places - {"live"} | {"staged"}
        rest = old.places - SIDES

        def one(a: Places, b: Places, *c: str, is_end: bool = False) -> Alternative:
            return Alternative({rescued: a, present: b, made: frozenset(c)}, is_end)

        yield one(old.places, new.places, is_end=True)
        yield one(old.places, new.places, "begun")
        yield one(old.places, new.places, "ready")
        yield one(old.places, aside, "ready")
        yield one(old.places, aside, "live", is_end=True)
        if not about["keeps"]:
            yield one(rest | {"claimed"}, aside, "live", is_end=True)
            yield one(rest, aside, "live", is_end=True)

    # And that it ended.

    def end(self, kind: str, wrong: Sequence[str]) -> list[str]:
        """Hear that an operation ended; return what is wrong with that."""
        pending = self.pending.pop()
        if pending.kind != kind:
            raise ValueError(f"{kind} ends, but {pending.kind} was begun")
        self.done[kind] = self.done.get(kind, 0) + 1
        about = pending.about
        self.ended[kind] = about
        self.begun[kind] = []
        if pending.alternatives:
            for key, places in pending.alternatives[-1].places.items():
                self.known[key].places = places
        match kind:
            case "restore":
                if about["drops"]:
                    self.known[self._key(about)].indexes = "gone"
            case "hold":
                self.known[self._key(about)].delay_ms = None
            case "relayout":
                self.layout, self.start_block = "ids", "blocked"
            case "rollback":
                self.layout, self.start_block = "names", "open"
            case "set block":
                self.start_block = "blocked"
            case "lift block":
                self.start_block = "open"
            case "file":
                self._filed(about)
        return [f"stuck: {kind} is refused: {line}" for line in wrong]

    def _filed(self, about: Mapping[str, Any]) -> None:
        match about["what"]:
            case "entries":
                self.offsets[about["disk"]] = dict(zip(CHECKPOINTS, about["offsets"].values(), strict=True))
            case "heartbeat":
                self.heartbeat_ms[about["disk"]] = about["seen_ms"]
            case "staging-limit":
                self.staging_limit = dict.fromkeys(range(self.disks), about["partitions"])
