"""One node of a real cluster is judged at random instants while topics are made, deleted and reassigned.

What the test itself asked the cluster for is the measure. While the node is down its disks are judged by the log of the
controller, up to the high watermark; while it runs, by its own. Never is anything to be set aside that it may be wanted
for; and what belongs to a topic that was deleted is found by the first look after the deletion was committed.

Spec: design §4, §9; KIP-631, "Broker State Machine"; attacks A1, A2, A4, A27, A42.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from logdir.formats import partition_metadata
from tests.kafka.fetch import RELEASES
from tests.kafka.rig import CLEAN_EXIT, Broker, Rig, await_true
from tests.kafka.workload import TOPICS, Workload
from tests.proof.metadata_claims import CLUSTER_JUDGED
from tests.proof.plugin import Recorder
from tests.tools.ctl import ctl
from tools.cli import Exit

pytestmark = pytest.mark.kafka

SEED: Final = 7
NODES: Final = (1, 2, 3)
_PER_ROUND: Final = 20
_ELSEWHERE: Final = "NODE_RUNS_ELSEWHERE"
_SET_ASIDE: Final = ("planned", "waiting")
_OLD_S: Final = 20 * 60
_LOG: Final = "__cluster_metadata-0"


@dataclass
class Judged:
    """Looks at one node."""

    rig: Rig
    broker: Broker
    work: Workload
    looks: int = 0
    """Those that were answered."""
    found: set[tuple[str, int]] = field(default_factory=set)
    """Replicas of deleted topics, all that were to be found."""
    wrong: list[str] = field(default_factory=list)
    said: str = ""
    """Of the last look."""

    def look(self) -> set[tuple[str, int]]:
        """Judge it now, as if all it holds were older than the ten minutes that are waited for before anything is said
        of a directory; return what of it would be set aside, by topic id."""
        self._age()
        words = ["reconcile", "--log-dirs", dirs_of(self.broker), "--max-staged-percent", "100", "--confirm-image"]
        epoch, watermark = self.rig.client.quorum()
        at = ["--high-watermark", str(watermark), "--leader-epoch", str(epoch)]
        source = "" if self.broker.is_running else str(self.rig.brokers[0].log_dirs[0] / _LOG)
        said = ctl(*words, "--from", f"metadata:{source}", *at, "--json")
        self.said = said.err + said.out
        if _ELSEWHERE in said.err:
            # Killed a moment ago, and the controller still takes it for running: it might, with a copy of the disks.
            assert said.status == Exit.REFUSED
            assert not self.broker.is_running
            return set()
        assert said.status in (Exit.DONE, Exit.PROBLEMS), said
        found = json.loads(said.out)["result"]
        self.looks += 1
        items: list[dict[str, Any]] = [one for one in found["items"] if one["do"] == "stage"]
        aside = {(one["topic_id"], one["partition"]) for one in items if one["state"] in _SET_ASIDE}
        names = {topic_id: name for name, (topic_id, _) in self.work.topics.items()}
        for topic_id, partition in sorted(aside):
            # Asked later than looked: nobody gives it back meanwhile, so who has it now had it then.
            if topic_id in names and self.broker.node_id in self.rig.client.replicas(names[topic_id], partition):
                self.wrong.append(f"look {self.looks}: {names[topic_id]}-{partition} {topic_id}")
        return aside

    @property
    def is_answered(self) -> bool:
        """Whether the last look was."""
        return _ELSEWHERE not in self.said

    def held(self) -> set[tuple[str, int]]:
        """Return the live replicas on its disks, by topic id."""
        return {
            (str(partition_metadata.parse(path.read_bytes(), str(path)).topic_id), int(path.parent.name.split("-")[-1]))
            for path in self._named()
        }

    def _named(self) -> Iterator[Path]:
        for top in self.broker.log_dirs:
            for path in top.glob("*/partition.metadata"):
                if path.parent.name.rpartition("-")[2].isdigit():
                    yield path

    def _age(self) -> None:
        then = time.time() - _OLD_S
        for path in self._named():
            with suppress(FileNotFoundError):  # its broker removes it meanwhile
                os.utime(path, (then, then))

    def expect_strays(self) -> None:
        """Look once, and expect every replica of a deleted topic among what would be set aside."""
        gone = {life.topic_id for life in self.work.deleted}
        await_true("the controller knows that it is down", lambda: (self.look(), self.is_answered)[1])
        strays = {key for key in self.held() if key[0] in gone}
        missed = strays - self.look()
        assert not missed, f"look {self.looks}: {sorted(missed)} of {self.said}"
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
                said = ctl("init", "--log-dirs", dirs_of(broker), "--apply")
                assert said.status == Exit.DONE, said
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
    assert {"create", "delete", "again", "grow", "reassign"} <= work.asked.keys(), work.refused
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
    await_true("its replicas are there", lambda: len(judged.held()) > 5)
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


def dirs_of(broker: Broker) -> str:
    """Return its log dirs as a command is told them."""
    return ",".join(map(str, broker.log_dirs))


def changes(work: Workload, draw: random.Random, most: int) -> None:
    """Ask for a few changes."""
    for _ in range(draw.randrange(most + 1)):
        work.step()


def apply(judged: Judged) -> None:
    """Set aside what is to be: the node starts on the rest."""
    epoch, watermark = judged.rig.client.quorum()
    log = judged.rig.brokers[0].log_dirs[0] / _LOG
    at = ["--from", f"metadata:{log}", "--high-watermark", watermark, "--leader-epoch", epoch]
    before = judged.held()
    aside = judged.look()
    said = ctl(
        "reconcile",
        "--log-dirs",
        dirs_of(judged.broker),
        *at,
        "--max-staged-percent",
        "100",
        "--confirm-image",
        "--apply",
    )
    assert said.status in (Exit.DONE, Exit.PROBLEMS), said
    assert judged.held() == before - aside
    assert judged.look() == set()
