"""The stories KIP-516 tells, step by step; each test bears the name of its section."""

from __future__ import annotations

import pytest

from logdir.cluster.image import ZERO_ID, Image, Source
from logdir.decide.reconcile_action import Rule, StageReplica
from logdir.evidence import Absent, Proof, Removed
from logdir.ids import TopicId
from logdir.reasons import Reason
from tests.reconcile.disk import HOUR_MS, WALL_MS, disk, live
from tests.reconcile.stories import Broker, codes, given, staged, why
from tests.reconcile.universe import BOTH, OTHER, RIGHT, document, listed, stopped

ID0, ID1 = OTHER["a"], RIGHT["a"]
FULL, INCREMENTAL = 2, 1


def test_immediate_delete_scenarios_stale_reads() -> None:
    """Step 4: B1 still leads A_p0_id0. Nothing said so far names another id, so nothing is done, and reads by id are
    the broker's to refuse; step 5's request for id0 is no news to B1 either.
    """
    broker = Broker(disk(live("a", ID0)))
    decided = broker.receives(document(listed(a=(ID0, (0,))), type=INCREMENTAL, sequence=1))
    assert codes(decided) == [0]
    assert decided.plan is not None
    assert (decided.plan.actions, decided.plan.refusals) == ((), ())
    assert broker.live() == ["a-0"]


def test_immediate_delete_scenarios_stale_state() -> None:
    # 1. B1 is a replica for A_p0_id0 (and holds another topic, so that not all of it goes).
    others = [live("b", RIGHT["b"], partition) for partition in BOTH]
    broker = Broker(disk(live("a", ID0), live("a", ID1, 1), *others))
    # 2. and 3. Topic A id0 is deleted, and B1 hears nothing of it. 4. Topic A id1 is created.
    # 5. B1 receives a LeaderAndIsrRequest containing A_p0_id1.
    decided = broker.receives(document(listed(a=(ID1, (0,))), type=INCREMENTAL, sequence=1))
    # The response says INCONSISTENT_TOPIC_ID, and A_p0_id0 is moved to the deleting directory.
    assert codes(decided) == [103]
    assert staged(decided.plan) == [("a-0", "topic-id-mismatch", False)]
    assert broker.deleting() == [f"{ID0}_0"]
    assert broker.live() == ["a-1", "b-0", "b-1"]
    # Divergence: no deadline, for the request does not prove that id0 is gone (attacks A4).
    assert decided.plan is not None
    (action,) = decided.plan.actions
    assert isinstance(action, StageReplica)
    assert action.evidence == Absent(as_of_ms=WALL_MS)
    assert action.rule is Rule.ID_DIFFERS
    # The broker creates A_p0_id1; the same request again changes nothing and is answered as before.
    again = broker.receives(document(listed(a=(ID1, (0,))), type=INCREMENTAL, sequence=1))
    assert (codes(again), again.plan) == ([103], None)
    # And the next one has nothing to complain of.
    assert codes(broker.receives(document(listed(a=(ID1, (0,))), type=INCREMENTAL, sequence=2))) == [0]


def test_leader_and_isr_full_stages_what_is_not_contained_and_what_differs() -> None:
    """Stale requests 1 and 2."""
    replicas = [live("a", ID0), live("a", ID1, 1), live("b", RIGHT["b"]), live("b", RIGHT["b"], 1)]
    broker = Broker(disk(*replicas))
    full = document(listed(a=(ID1, BOTH), b=(RIGHT["b"], (1,))), type=FULL, sequence=1)
    decided = broker.receives(full)
    assert codes(decided) == [103, 0, 0]
    assert staged(decided.plan) == [("a-0", "topic-id-mismatch", False), ("b-0", "absent", True)]
    assert broker.live() == ["a-1", "b-1"]


def test_leader_and_isr_incremental_stages_only_what_differs() -> None:
    broker = Broker(disk(live("a", ID0), live("a", ID1, 1), live("b", RIGHT["b"])))
    decided = broker.receives(document(listed(a=(ID1, (0,))), type=INCREMENTAL, sequence=1))
    assert staged(decided.plan) == [("a-0", "topic-id-mismatch", False)]


@pytest.mark.parametrize("version", [0, 1, 2, 4, 5, 7])
def test_leader_and_isr_older_requests_default_to_previous_behaviour(version: int) -> None:
    """Type 0 and versions below 5: answered as before, nothing is staged."""
    broker = Broker(disk(live("a", ID0), live("b", RIGHT["b"])))
    states = listed(a=(ID1, (0,)))
    if version < 5:
        for topic in states:
            del topic["topicId"]
    one = document(states, sequence=1) | {"version": version}
    if version < 2:
        body = one["body"]
        body["ungroupedPartitionStates"] = [
            {"topicName": topic["topicName"], **part} for topic in states for part in topic["partitionStates"]
        ]
        del body["topicStates"], body["brokerEpoch"]
    decided = broker.receives(one)
    assert codes(decided) == ([103] if version >= 5 else [0])
    assert staged(decided.plan) == []


def test_deletion_says_what_it_loses_and_until_when_it_can_be_undone() -> None:
    """Step 1: what will be deleted and when; step 2: where to; step 3: after the delay."""
    broker = Broker(disk(live("a", ID1), live("b", RIGHT["b"]), live("b", RIGHT["b"], 1)))
    decided = broker.decide(document(listed(a=(ID1, (0,)), b=(RIGHT["b"], (0,))), type=FULL, sequence=1))
    assert decided.plan is not None
    (action,) = decided.plan.actions
    assert isinstance(action, StageReplica)
    assert action.undo_until_ms == WALL_MS + 4 * HOUR_MS
    assert action.loses == "b-1: 1000 bytes in 1 segments from offset 0"
    assert action.rule.value.startswith("KIP-516, LeaderAndIsr")
    assert action.reason is Reason.ABSENT
    assert action.evidence == Removed(proof=Proof.FULL_REQUEST, as_of_ms=WALL_MS)


def test_delete_topics_stop_replica_with_delete_is_the_garbage_collection() -> None:
    """Step 2: StopReplica v4 names ids; a re-created topic of the name is not meant."""
    broker = Broker(disk(live("a", ID1), live("a", ID0, 1), live("b", RIGHT["b"])))
    stop = document(stopped(delete=True, a=(ID0, BOTH)), api="StopReplica", form="kip", sequence=1)
    decided = broker.receives(stop)
    assert codes(decided) == [0, 0]
    assert staged(decided.plan) == [("a-1", "stop-replica", True)]


def test_delete_topics_a_failed_stop_replica_is_made_good_by_the_next_full() -> None:
    """The controller may give up on StopReplica: the first FULL request after a start cleans up."""
    broker = Broker(disk(live("a", ID1), live("b", RIGHT["b"]), live("b", RIGHT["b"], 1)))
    broker.receives(document(listed(b=(RIGHT["b"], BOTH)), type=INCREMENTAL, sequence=1))
    broker.restarts()
    decided = broker.receives(document(listed(b=(RIGHT["b"], BOTH)), type=FULL, sequence=9, epoch=6))
    assert staged(decided.plan) == [("a-0", "absent", True)]
    assert broker.last_applied is not None
    assert not broker.last_applied.is_full_wanted


def test_stop_replica_without_delete_stages_nothing() -> None:
    broker = Broker(disk(live("a", ID1), live("b", RIGHT["b"])))
    stop = document(stopped(delete=False, a=(None, (0,))), api="StopReplica", sequence=1)
    decided = broker.receives(stop)
    assert (codes(decided), staged(decided.plan)) == ([0], [])


def test_storage_and_migration_a_partition_without_an_id_gets_that_of_the_request() -> None:
    broker = Broker(disk(live("a", None), live("a", None, 1), live("b", RIGHT["b"])))
    decided = broker.receives(document(listed(a=(ID1, (0,))), type=INCREMENTAL, sequence=1))
    assert codes(decided) == [0]
    assert given(decided.plan) == [("a-0", ID1)]
    # At this point the local partition is migrated: the next request finds the id.
    assert given(broker.receives(document(listed(a=(ID1, BOTH)), type=FULL, sequence=2)).plan) == [("a-1", ID1)]


def test_migration_a_zero_id_changes_nothing() -> None:
    broker = Broker(disk(live("a", ID0), live("a", None, 1), live("b", RIGHT["b"])))
    zero = str(ZERO_ID)
    decided = broker.receives(document(listed(a=(zero, BOTH), b=(RIGHT["b"], (0,))), type=FULL, sequence=1))
    assert codes(decided) == [0, 0, 0]
    assert decided.plan is not None
    assert decided.plan.actions == ()
    assert why(decided.plan) == {}


def test_uuid_an_unknown_topic_has_the_zero_id() -> None:
    """``Cluster.topicId`` returns ``ZERO_UUID`` for a topic it does not know."""
    image = Image(source=Source.LIVE_CLUSTER, origin="", node_id=1, cluster_id=None)
    assert image.topic_id("a") == ZERO_ID
    assert image.topic_of(ZERO_ID) is None
    assert image.topic("a") is None
    broker = Broker(disk(live("a", ID1)))
    known = broker.receives(document(listed(a=(ID1, (0,))), type=INCREMENTAL, sequence=1)).image
    assert known is not None
    assert known.topic_id("a") == TopicId.parse(ID1)
