"""Every start of a small world and every sequence of documents ends as the KIP says, or held; judged apart."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from logdir.cluster import request_document
from logdir.cluster.image import Image, Source, Topic
from logdir.cluster.request_document import RequestDocument
from logdir.decide.image.document import DocumentPlan, plan_document
from logdir.decide.image.trust import HostContext
from logdir.decide.reconcile import ReconcileRequest
from logdir.decide.reconcile_action import HoldStaged, StageReplica
from logdir.formats.own import controller_file
from logdir.formats.own.controller_file import ControllerFile, RequestMark
from logdir.formats.own.staging_limit_file import Count
from logdir.observe.facts import LogDirFacts
from tests.proof.metadata_claims import RECONCILE
from tests.proof.plugin import Recorder
from tests.reconcile import judge, universe
from tests.reconcile.disk import CLUSTER, NODE, NOW, apply, births, disk, live
from tests.reconcile.judge import BROKEN, Copy, World

NO_IMAGE = Image(source=Source.REQUESTS, origin="", node_id=NODE, cluster_id=CLUSTER)


class State(NamedTuple):
    """Everything that lives on between two documents."""

    facts: LogDirFacts
    last_applied: ControllerFile | None
    record: tuple[Count, ...]
    known: Image | None


def begin(layout: str, copies: tuple[Copy, ...]) -> State:
    replicas = tuple(
        live(
            copy.name,
            None if copy.topic_id == BROKEN else copy.topic_id,
            copy.partition,
            layout=layout,
            problems=("partition-metadata-broken",) if BROKEN in (copy.topic_id, copy.name) else (),
        )
        for copy in copies
    )
    return State(disk(*replicas, layout=layout), controller_file.begin(CLUSTER, NODE), (), None)


def request_of(state: State, *, is_confirmed: bool) -> ReconcileRequest:
    return ReconcileRequest(
        image=NO_IMAGE,
        now=NOW,
        host_context=HostContext(last_applied=state.last_applied, is_broker_running=False),
        births=births((state.facts,)),
        record=state.record,
        is_confirmed=is_confirmed,
    )


def step(state: State, document: RequestDocument, *, is_confirmed: bool) -> tuple[State, DocumentPlan]:
    facts = (state.facts,)
    request = request_of(state, is_confirmed=is_confirmed)
    decided = plan_document(
        document, state.known, request, facts, node_id=NODE, cluster_id=CLUSTER, written_ms=NOW.wall_ms
    )
    plan = decided.plan
    if plan is None:
        return state._replace(known=decided.image), decided
    (after,) = apply(facts, plan.actions)
    record = state.record if plan.record is None else plan.record
    return State(after, plan.last_applied or state.last_applied, record, decided.image), decided


def copies_of(facts: LogDirFacts) -> tuple[Copy, ...]:
    found = []
    for replica in facts.replicas:
        broken = "partition-metadata-broken" in replica.problems
        known = replica.ref.topic_id
        topic_id = BROKEN if broken and known is None else known and str(known)
        found.append(Copy(replica.ref.topic, topic_id or None, replica.ref.partition))
    for item in facts.staged:
        assert item.marker is not None
        state = "held" if item.marker.delay_ms is None else "due"
        topic_id = None if item.marker.topic_id is None else str(item.marker.topic_id)
        found.append(Copy(item.marker.topic, topic_id, item.ref.partition, state))
    return tuple(sorted(found, key=str))


def expected_of(world: World) -> tuple[Copy, ...]:
    return tuple(sorted((copy._replace(why="") for copy in world.copies), key=str))


def story(state: State, world: World, one: dict[str, Any], decided: DocumentPlan) -> str:
    """Return what happened, to read."""
    refusals = () if decided.plan is None else decided.plan.refusals
    lines = ["before:", *map(str, copies_of(state.facts)), f"judge's: {world}", f"document: {one}"]
    return "\n".join([*lines, f"{decided.problem}", *(refusal.problem.line() for refusal in refusals)])


class Walker:
    """Walks code and judge side by side. Each distinct step is taken once, and counts for every case that takes it.

    Positions are told relative to the last document, so that the same steps later in a sequence are the same steps
    (``test_only_the_order_of_positions_counts`` shows that they are).
    """

    def __init__(self, *, is_confirmed: bool) -> None:
        self.is_confirmed = is_confirmed
        self.places: list[tuple[State, World]] = []
        self.documents = [
            (one, request_document.parse(universe.text(one), "/inbox/1.json")) for one in universe.every_document()
        ]
        self._numbers: dict[object, int] = {}
        self._next: dict[tuple[int, int], int] = {}
        self._restarted: dict[int, int] = {}

    def number(self, state: State, world: World) -> int:
        key = (state.facts.layout, copies_of(state.facts), state.last_applied, state.record, _known(state.known), world)
        found = self._numbers.setdefault(key, len(self.places))
        if found == len(self.places):
            self.places.append((state, world))
        return found

    def restarted(self, place: int) -> int:
        if place not in self._restarted:
            state, world = self.places[place]
            self._restarted[place] = self.number(state._replace(known=None), judge.restarted(world))
        return self._restarted[place]

    def follow(self, place: int, number: int) -> int:
        """Return where a document leads; code and judge must agree."""
        key = place, number
        if key not in self._next:
            state, world = self.places[place]
            one, parsed = self.documents[number]
            after, decided = step(state, parsed, is_confirmed=self.is_confirmed)
            judged = judge.after(world, one, is_confirmed=self.is_confirmed)
            assert copies_of(after.facts) == expected_of(judged), story(state, world, one, decided)
            nothing_wanted_goes(state, one, decided)
            cut_anywhere(state, parsed, after, decided, is_confirmed=self.is_confirmed)
            does_nothing_without_its_memory(state, parsed)
            if self.is_confirmed:
                # The staging limit passes everything: what it counts makes no difference.
                after, judged = after._replace(record=()), judged._replace(ledger=judged.ledger._replace(topics=0))
            self._next[key] = self.number(*shifted(after, judged, *universe.rise(number)))
        return self._next[key]


def shifted(state: State, world: World, epochs: int, numbers: int) -> tuple[State, World]:
    """Return the same seen from the document that came last: what was accepted lies so much further back."""
    last_applied = state.last_applied
    if last_applied is None or last_applied.requests is None or world.ledger.seen is None:
        assert (last_applied is None or last_applied.requests is None) == (world.ledger.seen is None)
        return state, world
    epoch, sequence = last_applied.requests.controller_epoch, last_applied.requests.sequence
    assert (epoch, sequence) == world.ledger.seen
    mark = RequestMark(controller_epoch=epoch - epochs, sequence=sequence - numbers)
    ledger = world.ledger._replace(seen=(epoch - epochs, sequence - numbers))
    return state._replace(last_applied=replace(last_applied, requests=mark)), world._replace(ledger=ledger)


def _known(image: Image | None) -> object:
    if image is None:
        return None
    parts = (image.topics, image.without_id)
    return (
        tuple(sorted((name, tuple(sorted(topic.partitions))) for part in parts for name, topic in _named(part))),
        tuple(sorted(image.names.items())),
        tuple(sorted(image.left, key=str)),
    )


def _named(topics: Mapping[Any, Topic]) -> list[tuple[str, Topic]]:
    return [(f"{topic.name} {topic.topic_id.hex()}", topic) for topic in topics.values()]


def nothing_wanted_goes(state: State, one: dict[str, Any], decided: DocumentPlan) -> None:
    """No partition that the request itself gives to this broker, by its id, is ever staged."""
    asked = {
        (topic["topicId"], part["partitionIndex"])
        for topic in one["body"]["topicStates"]
        if one["api"] == "LeaderAndIsr"
        for part in topic["partitionStates"]
    }
    plan = decided.plan
    for action in () if plan is None else (*plan.actions, *plan.waiting):
        if isinstance(action, StageReplica):
            marker = action.stage.marker
            assert (str(marker.topic_id), marker.partition) not in asked, (state, one)


def cut_anywhere(
    state: State, document: RequestDocument, after: State, decided: DocumentPlan, *, is_confirmed: bool
) -> None:
    """Stopped after any action, and given again after a restart, the document leads to the same disk."""
    plan = decided.plan
    for done in range(1, len(plan.actions) + 1 if plan else 0):
        assert plan is not None
        (facts,) = apply((state.facts,), plan.actions[:done])
        again, _ = step(state._replace(facts=facts), document, is_confirmed=is_confirmed)
        assert copies_of(again.facts) == copies_of(after.facts), (state, document, done)


def does_nothing_without_its_memory(state: State, document: RequestDocument) -> None:
    """With controller.json lost, nothing is staged and no id is given, whatever comes (law 2)."""
    request = request_of(state._replace(last_applied=None), is_confirmed=True)
    plan = plan_document(
        document, state.known, request, (state.facts,), node_id=NODE, cluster_id=CLUSTER, written_ms=NOW.wall_ms
    ).plan
    assert not [action for action in (plan.actions if plan else ()) if not isinstance(action, HoldStaged)]


def walk(walker: Walker, layout: str, copies: tuple[Copy, ...], longest: int) -> int:
    """Walk every sequence from a start, with a restart or none between any two; return how many cases these are."""
    cases = 0
    edge = Counter({walker.number(begin(layout, copies), World(copies)): 1})
    for length in range(longest):
        found: Counter[int] = Counter()
        for place, count in edge.items():
            starts = (place, walker.restarted(place)) if length else (place,)
            for start in starts:
                for number in range(len(walker.documents)):
                    found[walker.follow(start, number)] += count
        cases += found.total()
        edge = found
    return cases


@pytest.mark.parametrize("how", ["confirmed", "limited"])
def test_every_sequence_from_every_start_ends_as_judged(how: str, record_proof: Recorder) -> None:
    every = list(universe.starts())
    stride = len(every) // RECONCILE.count(f"starts {how}")
    starts = every[::stride]
    walker = Walker(is_confirmed=how == "confirmed")
    cases = sum(walk(walker, layout, copies, 3) for layout, copies in starts)
    print(f"{cases} cases from {len(starts)} starts, {len(walker.places)} places")
    record_proof(RECONCILE, {f"starts {how}": len(starts), "cases": cases})


def test_only_the_order_of_positions_counts() -> None:
    """What the walker rests on: sequences with absolute positions end where those with relative ones do."""
    walker = Walker(is_confirmed=True)
    starts = list(universe.starts())[3::97]
    for layout, copies in starts:
        for numbers in itertools.product(range(len(walker.documents)), repeat=2):
            state, place = begin(layout, copies), walker.number(begin(layout, copies), World(copies))
            for document, number in zip(universe.placed(numbers), numbers, strict=True):
                state, _ = step(state, request_document.parse(universe.text(document), "x"), is_confirmed=True)
                place = walker.follow(place, number)
            assert copies_of(state.facts) == copies_of(walker.places[place][0].facts), numbers
