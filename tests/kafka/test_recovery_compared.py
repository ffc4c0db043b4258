"""What a broker in RECOVERY compares, step by step beside a real one that does it at its start.

A node is down while a topic is deleted, another is deleted and made again under its name, and partitions are taken
from it: a reassignment is in flight, is cancelled, comes to its end. Others are cancelled at each of their points, the
node being one that leaves, one that comes, one that comes back. Every time its disks are judged; at last the stock
broker is started, and what it keeps is what we would have kept.

Spec: KIP-631, "Broker State Machine" (RECOVERY), "Topic Identifiers"; kafka-behaviour §3.3; attacks A2, A38.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kafka.client import Client, ClientError
from tests.kafka.judging import await_fenced, begin, held, staged_replicas
from tests.kafka.rig import CLEAN_EXIT, Rig, await_true
from tests.kafka.rotation import releases_of
from tests.proof.metadata_claims import RECOVERY_COMPARED
from tests.proof.plugin import Recorder

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(900),
    pytest.mark.parametrize("version", releases_of("recovery")),
]

TOPICS = ("kept", "gone", "again", "away", "cancelled")


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
        assert staged_replicas(rig, broker) == set()
        assert second.stop() == CLEAN_EXIT
        assert broker.stop() == CLEAN_EXIT
        await_fenced(rig, broker)
        assert staged_replicas(rig, broker) == set()

        # The topic deleted while the broker was down.
        client.delete("gone")
        aside = {(ids["gone"], 0)}
        assert staged_replicas(rig, broker) == aside

        # Re-created under the same name: what lies here is of the former one.
        client.delete("again")
        aside |= {(ids["again"], 0)}
        assert staged_replicas(rig, broker) == aside
        former, ids["again"] = ids["again"], client.create_on("again", [[1, 3]])
        assert former != ids["again"]
        assert staged_replicas(rig, broker) == aside

        # In flight: the new node is down, so that the old one is still counted on.
        for topic in ("away", "cancelled"):
            client.reassign(topic, 0, [1, 2])
            assert sorted(client.replicas(topic, 0)) == [1, 2, 3]
            assert staged_replicas(rig, broker) == aside
        client.reassign("cancelled", 0, None)
        assert sorted(client.replicas("cancelled", 0)) == [1, 3]
        assert staged_replicas(rig, broker) == aside

        # Come to its end: reassigned away.
        second.start()
        _await_replicas(client, "away", [1, 2])
        aside |= {(ids["away"], 0)}
        assert staged_replicas(rig, broker) == aside

        kept = held(broker).keys() - aside
        assert kept == {(ids["kept"], 0), (ids["cancelled"], 0)}
        broker.start()
        await_true(
            "the broker has made up its mind",
            lambda: held(broker).keys() == {*kept, (ids["again"], 0)},
            timeout_seconds=60,
        )
        assert staged_replicas(rig, broker) == set()
        assert broker.stop() == CLEAN_EXIT
    record_proof(RECOVERY_COMPARED, {"releases": 1})


STAYING = {"stays": [1, 3, 4], "leaves": [1, 4], "leaves-one-in-sync": [1, 2, 4]}
"""Where those are to go that are on nodes 1 and 3; node 4 never comes in sync."""


def test_a_reassignment_cancelled_at_each_point(
    version: str, make_rig: Callable[[str], Rig], record_proof: Recorder
) -> None:
    with make_rig(version) as rig:
        first, second, broker, never = (rig.add_broker(log_dirs=2) for _ in range(4))
        begin(broker)
        for one in (first, second, never):
            one.start()
        # It is known, and no more than three run at a time.
        assert never.stop() == CLEAN_EXIT
        broker.start()
        client = rig.client
        ids = {topic: client.create_on(topic, [[1, 3]]) for topic in (*STAYING, "comes-back")}
        ids |= {topic: client.create_on(topic, [[1]]) for topic in ("comes", "came")}
        ids["alone"] = client.create_on("alone", [[3]])
        for topic in ids:
            client.produce(topic, records=5)
        client.reassign("comes", 0, [1, 3, 4])
        client.reassign("came", 0, [1, 3])
        await_true("it has caught up with one", lambda: client.in_sync("comes", 0) == [1, 3])
        _await_replicas(client, "came", [1, 3])
        everything = {(topic_id, 0) for topic_id in ids.values()}
        await_true("all of it is there", lambda: held(broker).keys() == everything)
        # In flight, this node is one that comes and is in sync: while it runs, and while it is down.
        _await_replicas(client, "comes", [1, 3, 4])
        assert staged_replicas(rig, broker) == set()
        assert broker.stop() == CLEAN_EXIT
        await_fenced(rig, broker)
        assert staged_replicas(rig, broker) == set()

        # In flight, it is one that leaves, or stays: none of those to come is in sync, then one of two.
        for topic, nodes in (*STAYING.items(), ("alone", [1])):
            client.reassign(topic, 0, nodes)
            _await_replicas(client, topic, sorted({1, 3, *nodes}))
        await_true("one of two is in sync", lambda: 2 in client.in_sync("leaves-one-in-sync", 0))
        assert staged_replicas(rig, broker) == set()

        # Back again before it was gone: came to its end without it, asked for once more, not in sync yet.
        aside = {(ids["comes-back"], 0)}
        client.reassign("comes-back", 0, [1])
        _await_replicas(client, "comes-back", [1])
        assert staged_replicas(rig, broker) == aside
        client.reassign("comes-back", 0, [1, 3])
        _await_replicas(client, "comes-back", [1, 3])
        assert staged_replicas(rig, broker) == set()

        # Each is cancelled where it is.
        for topic in STAYING:
            client.reassign(topic, 0, None)
            _await_replicas(client, topic, [1, 3])
            assert staged_replicas(rig, broker) == set(), topic
        # What is on this node alone: where replicas are eligible leaders (KIP-966) it is in sync nowhere by now.
        is_bound_to_go = version.startswith("4.")
        where = [1] if is_bound_to_go else [3]
        if is_bound_to_go:
            with pytest.raises(ClientError, match="unclean leader election"):
                client.reassign("alone", 0, None)
        else:
            client.reassign("alone", 0, None)
            _await_replicas(client, "alone", where)
        assert staged_replicas(rig, broker) == set()
        aside = set()
        for topic in ("comes", "comes-back"):
            client.reassign(topic, 0, None)
            _await_replicas(client, topic, [1])
            aside |= {(ids[topic], 0)}
            assert staged_replicas(rig, broker) == aside, topic

        # What could not be cancelled its start brings to its end: it has been copied when it goes.
        kept = everything - aside - ({(ids["alone"], 0)} if is_bound_to_go else set())
        broker.start()
        await_true("the broker has made up its mind", lambda: held(broker).keys() == kept, timeout_seconds=60)
        _await_replicas(client, "alone", where)
        assert staged_replicas(rig, broker) == set()
        for topic in (*STAYING, "came"):
            _await_in_sync(client, topic)
        assert {topic: client.digest(topic).records for topic in ids} == dict.fromkeys(ids, 5)
        assert broker.stop() == CLEAN_EXIT
    record_proof(RECOVERY_COMPARED, {"reassignments cancelled": len(STAYING) + 2 + (not is_bound_to_go)})


def _await_replicas(client: Client, topic: str, expected: list[int]) -> None:
    """Wait until the brokers know: what the controller has committed reaches them a moment later."""
    await_true(f"{topic} on {expected}", lambda: sorted(client.replicas(topic, 0)) == expected)


def _await_in_sync(client: Client, topic: str) -> None:
    await_true(f"{topic} is in sync again", lambda: 3 in client.in_sync(topic, 0))
