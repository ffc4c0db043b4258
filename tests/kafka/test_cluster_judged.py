"""One node of a real cluster is judged at random instants while topics are made, deleted and reassigned.

What the test itself asked the cluster for is the measure. While the node is down its disks are judged by the log of the
controller, up to the high watermark; while it runs, by its own. Never is anything to be staged that it may be wanted
for; and what belongs to a topic that was deleted is found by the first look after the deletion was committed.

Spec: design §4, §9; KIP-631, "Broker State Machine"; attacks A1, A2, A4, A27, A42.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pytest

from tests.kafka.fetch import RELEASES
from tests.kafka.judging import Key, await_fenced, begin, held, staged_replicas, words
from tests.kafka.rig import CLEAN_EXIT, Broker, Rig, await_true
from tests.kafka.workload import TOPICS, Workload
from tests.proof.metadata_claims import CLUSTER_JUDGED
from tests.proof.plugin import Recorder
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

pytestmark = pytest.mark.kafka

SEED: Final = 7
NODES: Final = (1, 2, 3)
_PER_ROUND: Final = 20


@dataclass
class Judged:
    """Looks at one node."""

    rig: Rig
    broker: Broker
    work: Workload
    looks: int = 0
    """Those that were answered."""
    found: set[Key] = field(default_factory=set)
    """Replicas of deleted topics, all that were to be found."""
    wrong: list[str] = field(default_factory=list)

    def look(self) -> set[Key]:
        """Judge it now; return what of it would be staged."""
        aside = staged_replicas(self.rig, self.broker)
        if aside is None:
            return set()
        self.looks += 1
        names = {topic_id: name for name, (topic_id, _) in self.work.topics.items()}
        for topic_id, partition in sorted(aside):
            # Asked later than looked: nobody gives it back meanwhile, so who has it now had it then.
            if topic_id in names and self.broker.node_id in self.rig.client.replicas(names[topic_id], partition):
                self.wrong.append(f"look {self.looks}: {names[topic_id]}-{partition} {topic_id}")
        return aside

    def expect_strays(self) -> None:
        """Look once, and expect every replica of a deleted topic among what would be staged."""
        await_fenced(self.rig, self.broker)
        gone = {life.topic_id for life in self.work.deleted}
        strays = {key for key in held(self.broker) if key[0] in gone}
        missed = strays - self.look()
        assert not missed, f"look {self.looks}: {sorted(missed)}"
        self.found |= strays


@pytest.mark.timeout(3000)
def test_a_node_of_a_real_cluster_is_never_judged_wrongly(
    make_rig: Callable[[str], Rig], record_proof: Recorder
) -> None:
    draw = random.Random(SEED)
    looks, strays = CLUSTER_JUDGED.count("looks"), CLUSTER_JUDGED.count("true strays found")
    with make_rig(RELEASES[-1]) as rig:
        for number in NODES:
            broker = rig.add_broker(log_dirs=2)
            if number == NODES[-1]:
                begin(broker)
            broker.start()
        work = Workload(rig.client, seed=SEED, node_ids=NODES, weights=TOPICS)
        judged = Judged(rig, rig.brokers[-1], work)
        rounds = 0
        while judged.looks < looks or len(judged.found) < strays:
            a_round(judged, draw, is_killed=rounds % 2 == 1)
            rounds += 1
            assert rounds < 60, (judged.looks, len(judged.found))
        assert judged.wrong == []
        assert rig.brokers[-1].stop() == CLEAN_EXIT
    assert {"create", "delete", "again", "grow", "reassign"} <= work.asked.keys() or looks < 200, work.refused
    counts = {"looks": judged.looks, "true strays found": len(judged.found), "changes": work.granted, "rounds": rounds}
    record_proof(CLUSTER_JUDGED, counts, seeds=SEED)


def a_round(judged: Judged, draw: random.Random, *, is_killed: bool) -> None:
    """Look at the node while it runs, take it down, look again, let it come back."""
    work, broker = judged.work, judged.broker
    for _ in range(_PER_ROUND // 3):
        changes(work, draw, 3)
        judged.look()
    for _ in range(6):
        work.make("kept")
    await_true("its replicas are there", lambda: len(held(broker)) > 5)
    if is_killed:
        broker.kill()
    else:
        assert broker.stop() == CLEAN_EXIT
    for _ in range(_PER_ROUND // 3):
        changes(work, draw, 3)
        judged.look()
    for _ in range(5):
        work.delete()
    judged.expect_strays()
    if is_killed:
        apply(judged)
    broker.start()
    for _ in range(_PER_ROUND // 3):
        judged.look()
        time.sleep(draw.random() / 2)


def changes(work: Workload, draw: random.Random, most: int) -> None:
    """Ask for a few changes."""
    for _ in range(draw.randrange(most + 1)):
        work.step()


def apply(judged: Judged) -> None:
    """Staged what is to be: the node starts on the rest."""
    before, aside = held(judged.broker).keys(), judged.look()
    said = ctl(*words(judged.rig, judged.broker), "--apply")
    assert said.status in (Exit.DONE, Exit.PROBLEMS), said
    assert held(judged.broker).keys() == before - aside
    assert judged.look() == set()
