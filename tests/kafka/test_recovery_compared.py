"""What a broker in RECOVERY compares, step by step beside a real one that does it at its start.

A node is down while a topic is deleted, another is deleted and made again under its name, and partitions are taken
from it: a reassignment is in flight, is cancelled, comes to its end. At each point its disks are judged; at last the
stock broker is started, and what it keeps is what we would have kept.

Spec: KIP-631, "Broker State Machine" (RECOVERY), "Topic Identifiers"; kafka-behaviour §3.3; attacks A2, A38.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kafka.fetch import RELEASES
from tests.kafka.judging import await_fenced, begin, held, set_aside
from tests.kafka.rig import CLEAN_EXIT, Rig, await_true
from tests.proof.metadata_claims import RECOVERY_COMPARED
from tests.proof.plugin import Recorder
from tests.proof.sizes import SIZE, Size

pytestmark = pytest.mark.kafka

TOPICS = ("kept", "gone", "again", "away", "cancelled")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", RELEASES if SIZE is Size.FULL else RELEASES[-1:])
def test_what_a_broker_keeps_at_its_start_is_what_we_would_keep(
    version: str, make_rig: Callable[[str], Rig], record_proof: Recorder
) -> None:
    with make_rig(version) as rig:
        for number in (1, 2, 3):
            broker = rig.add_broker(log_dirs=2)
            if number == 3:
                begin(broker)
            broker.start()
        client, second, broker = rig.client, rig.brokers[1], rig.brokers[2]
        ids = {topic: client.create_on(topic, [[1, 3]]) for topic in TOPICS}
        for topic in TOPICS:
            client.produce(topic, records=5)
        await_true("all of it is there", lambda: {topic for topic, _ in held(broker)} == set(ids.values()))
        assert set_aside(rig, broker) == set()
        assert second.stop() == CLEAN_EXIT
        assert broker.stop() == CLEAN_EXIT
        await_fenced(rig, broker)
        assert set_aside(rig, broker) == set()

        # The topic deleted while the broker was down.
        client.delete("gone")
        aside = {(ids["gone"], 0)}
        assert set_aside(rig, broker) == aside

        # Re-created under the same name: what lies here is of the former one.
        client.delete("again")
        aside |= {(ids["again"], 0)}
        assert set_aside(rig, broker) == aside
        former, ids["again"] = ids["again"], client.create_on("again", [[1, 3]])
        assert former != ids["again"]
        assert set_aside(rig, broker) == aside

        # In flight: the new node is down, so that the old one is still counted on.
        for topic in ("away", "cancelled"):
            client.reassign(topic, 0, [1, 2])
            assert sorted(client.replicas(topic, 0)) == [1, 2, 3]
            assert set_aside(rig, broker) == aside
        client.reassign("cancelled", 0, None)
        assert sorted(client.replicas("cancelled", 0)) == [1, 3]
        assert set_aside(rig, broker) == aside

        # Come to its end: reassigned away.
        second.start()
        await_true("the new one has caught up", lambda: sorted(client.replicas("away", 0)) == [1, 2])
        aside |= {(ids["away"], 0)}
        assert set_aside(rig, broker) == aside

        kept = held(broker).keys() - aside
        assert kept == {(ids["kept"], 0), (ids["cancelled"], 0)}
        broker.start()
        await_true(
            "the broker has made up its mind",
            lambda: held(broker).keys() == {*kept, (ids["again"], 0)},
            timeout_seconds=60,
        )
        assert set_aside(rig, broker) == set()
        assert broker.stop() == CLEAN_EXIT
    record_proof(RECOVERY_COMPARED, {"releases": 1})
