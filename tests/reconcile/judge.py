"""What a broker's disk must look like after request documents: the KIP's rules and the house's, written apart.

It knows nothing of the code it judges: documents are plain JSON objects, replicas plain tuples. Where the KIP says that
something is stale, it is staged; where a rule of the house holds that back, the judge says which (design §4, §11;
attacks A3, A4, A28, A38).

Not here: the universe that is judged (``universe``), running the code (``test_exhaustive``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

NODE = 1
FULL, INCREMENTAL = 2, 1
ZERO = "A" * 22
BROKEN = "?"
"""Instead of an id: a partition.metadata that cannot be read."""


class Copy(NamedTuple):
    """One replica on disk."""

    name: str | None
    """``None``: nothing says its topic."""
    topic_id: str | None
    """``None``: it has none; or ``BROKEN``."""
    partition: int
    state: str = "live"
    """``live``, ``held`` (staged without a deadline) or ``due`` (with one)."""
    why: str = ""


class Ledger(NamedTuple):
    """What is kept over restarts."""

    seen: tuple[int, int] | None = None
    topics: int = 0
    """Staged within 24 hours, each staging counted for itself."""


class Memory(NamedTuple):
    """What is known since the last start."""

    ids: frozenset[tuple[str, str]] = frozenset()
    """Name and the id it has."""
    former: frozenset[tuple[str, str]] = frozenset()
    """Name and an id it had."""
    parts: frozenset[tuple[str, int]] = frozenset()
    """Id, or name of a topic without one, and partition."""
    stopped: frozenset[tuple[str, int]] = frozenset()
    """Id or name, and partition, of what was to be deleted."""


class World(NamedTuple):
    copies: tuple[Copy, ...]
    ledger: Ledger = Ledger()
    memory: Memory = Memory()


def restarted(world: World) -> World:
    return world._replace(memory=Memory())


def after(world: World, document: dict[str, Any], *, is_confirmed: bool) -> World:
    """Return what must be there after a document."""
    body = document["body"]
    position = body["controllerEpoch"], document["sequence"]
    seen = world.ledger.seen
    if seen is not None and position <= seen:
        return world  # equal or lower changes nothing
    kind = body.get("type", 0)
    wanted = _listed(document)
    gone = {copy.topic_id for copy in world.copies if copy.state != "live" and copy.why == "other id"}
    if any(topic_id in gone for _, topic_id, _ in wanted):
        return world  # STALE (A3)
    is_next = seen is not None and (position[0], position[1] - 1) == seen
    memory = world.memory if is_next or kind == FULL else Memory()
    memory = _learn(Memory() if kind == FULL else memory, document, wanted)
    copies = tuple(_kept(_given(copy, wanted), wanted, memory) for copy in world.copies)
    judged = tuple(_judged(copy, copies, kind, wanted, memory) for copy in copies)
    going = [copy for before, copy in zip(copies, judged, strict=True) if before.state != copy.state]
    if going and not is_confirmed and _is_over_limit(going, judged, world.ledger):
        return World(copies, world.ledger, memory)  # not done, and so not used up
    topics = world.ledger.topics + len({copy.name for copy in going})
    return World(judged, Ledger(position, topics), memory)


def _listed(document: dict[str, Any]) -> set[tuple[str, str, int]]:
    if document["api"] != "LeaderAndIsr":
        return set()
    return {
        (topic["topicName"], topic["topicId"], one["partitionIndex"])
        for topic in document["body"]["topicStates"]
        for one in topic["partitionStates"]
    }


def _learn(memory: Memory, document: dict[str, Any], wanted: set[tuple[str, str, int]]) -> Memory:
    ids, parts, stopped = set(memory.ids), set(memory.parts), set(memory.stopped)
    former = set(memory.former)
    for name, topic_id, partition in wanted:
        known = dict(ids).get(name)
        if topic_id == ZERO:
            if known is None:
                parts.add((name, partition))
                stopped.discard((name, partition))
            continue
        if known is not None and known != topic_id:
            former.add((name, known))
            ids.discard((name, known))
        parts -= {(one, partition) for other, one in former if other == name and one != topic_id}
        parts = {(key, index) for key, index in parts if key != name}
        ids.add((name, topic_id))
        parts.add((topic_id, partition))
        stopped -= {(topic_id, partition), (name, partition)}
    if document["api"] == "StopReplica":
        for topic in document["body"]["topicStates"]:
            for one in topic["partitionStates"]:
                if not one["deletePartition"]:
                    continue
                key = topic.get("topicId") or dict(ids).get(topic["topicName"], topic["topicName"])
                parts.discard((key, one["partitionIndex"]))
                if not any(other == key for other, _ in parts):
                    ids = {(name, topic_id) for name, topic_id in ids if topic_id != key}
                stopped.add((key, one["partitionIndex"]))
    return Memory(frozenset(ids), frozenset(former), frozenset(parts), frozenset(stopped))


def _given(copy: Copy, wanted: set[tuple[str, str, int]]) -> Copy:
    """KIP-516, Migration: a partition without an id gets that of the request."""
    if copy.state != "live" or copy.topic_id is not None:
        return copy
    found = [topic_id for name, topic_id, partition in wanted if (name, partition) == (copy.name, copy.partition)]
    if not found or found[0] == ZERO:
        return copy
    return copy._replace(topic_id=found[0])


def _kept(copy: Copy, wanted: set[tuple[str, str, int]], memory: Memory) -> Copy:
    """What was staged and is wanted again loses its deadline (A43)."""
    if copy.state != "due":
        return copy
    is_asked = any((name, partition) == (copy.name, copy.partition) for name, _, partition in wanted)
    key = copy.topic_id, copy.partition
    if copy.topic_id is None:
        is_wanted = is_asked
    else:
        is_nameless = (copy.name, copy.partition) in memory.parts and is_asked and key not in memory.stopped
        is_wanted = key in memory.parts or is_nameless
    return copy._replace(state="held") if is_wanted else copy


def _judged(copy: Copy, copies: tuple[Copy, ...], kind: int, wanted: set[tuple[str, str, int]], memory: Memory) -> Copy:
    if copy.state != "live" or copy.name is None or copy.topic_id == BROKEN:
        return copy  # what has no name, or an id that cannot be read, is for a person to look at
    asked = [topic_id for name, topic_id, partition in wanted if (name, partition) == (copy.name, copy.partition)]
    if copy.topic_id is not None and (copy.topic_id, copy.partition) in memory.parts:
        return copy
    known = dict(memory.ids).get(copy.name)
    is_stopped = (copy.topic_id, copy.partition) in memory.stopped
    # By its name alone, where nothing is known of ids.
    if known is None and (copy.name, copy.partition) not in memory.parts:
        is_stopped = is_stopped or (copy.name, copy.partition) in memory.stopped
    if is_stopped:
        return copy._replace(state="due", why="stopped")
    if asked and asked[0] != ZERO and copy.topic_id is not None and asked[0] != copy.topic_id:
        is_back = any(
            other.state != "live" and (other.topic_id, other.partition) == (asked[0], copy.partition)
            for other in copies
        )
        if kind in (FULL, INCREMENTAL) and not is_back:
            return copy._replace(state="held", why="other id")  # without proof that the old id is gone (A4)
        return copy
    if kind == FULL and not asked:
        return copy._replace(state="due", why="left out")
    return copy


def _is_over_limit(going: list[Copy], copies: tuple[Copy, ...], ledger: Ledger) -> bool:
    """Four partitions have no tenth: one topic may go, and a whole topic only on proof (A38)."""
    staying = {copy.name for copy in copies if copy.state == "live"}
    if any(copy.why != "stopped" and copy.name not in staying for copy in going):
        return True
    return len({copy.name for copy in going}) + ledger.topics > 1
