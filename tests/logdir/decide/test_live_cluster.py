"""What the answers of a live cluster decide: gone is believed only of what is more than 10 minutes older."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdir.cluster.image import AbsenceMeaning, Broker, Image, Partition, Source, Topic
from logdir.decide.image.position import after_image
from logdir.decide.image.still_assigned import Assigned, ClusterState, Sharing, assignment_of, sharing_of
from logdir.decide.image.trust import HostContext, check_image
from logdir.decide.staged.purge_recheck import PurgeRecheck, against_purge
from logdir.decide.staged.removal_reason import removal_reason
from logdir.evidence import Proof, Removed
from logdir.formats.own.controller_file import begin
from logdir.formats.own.replica_marker import Intent, ReplicaMarker
from logdir.observe.facts import ReplicaIndex
from logdir.reasons import Reason
from tests.logdir.decide.builders import CLUSTER, ID, MARKER, WALL_MS, facts, replica, staged_replicas

TEN_MINUTES = 600_000
OPERATOR = replace(
    MARKER,
    reason=Reason.OPERATOR,
    evidence=Removed(proof=Proof.IN_SYNC_ELSEWHERE, as_of_ms=WALL_MS),
    delay_ms=1000,
)
CAPTURED = replace(
    MARKER,
    intent=Intent.CAPTURED,
    reason=Reason.CAPTURED,
    evidence=Removed(proof=Proof.BROKER_DELETED, as_of_ms=WALL_MS),
    path=f"orders-3.{'0' * 32}-delete",
)
LOOKED_UP = replace(MARKER, reason=Reason.TOPIC_REMOVED, evidence=Removed(proof=Proof.LIVE_CLUSTER, as_of_ms=WALL_MS))


def live(after_ms: int, **changed: object) -> Image:
    """Return answers some milliseconds after the staging; brokers 2 and 3 are listed."""
    made = Image(
        source=Source.LIVE_CLUSTER,
        origin="/c",
        node_id=1,
        cluster_id=CLUSTER,
        as_of_ms=WALL_MS + after_ms,
        brokers={node: Broker(b"", -1, is_fenced=False) for node in (2, 3)},
        absence_meaning=AbsenceMeaning.NOTHING,
    )
    return replace(made, **changed)  # type: ignore[arg-type]


def gone(after_ms: int) -> Image:
    seen = Removed(proof=Proof.LIVE_CLUSTER, as_of_ms=WALL_MS + after_ms)
    return live(after_ms, removed={bytes(ID): seen})


def there(after_ms: int, replicas: tuple[int, ...], isr: tuple[int, ...]) -> Image:
    topic = Topic("orders", bytes(ID), {3: Partition(replicas, isr)})
    return live(after_ms, topics={bytes(ID): topic}, names={"orders": bytes(ID)})


def refusal(image: Image, marker: ReplicaMarker) -> str | None:
    look = PurgeRecheck(image=image, last_applied=begin(CLUSTER, 1))
    found = against_purge(look, staged_replicas(marker), ReplicaIndex(()))
    return None if found is None else found.problem.slug


@pytest.mark.parametrize(
    ("image", "marker", "expected"),
    [
        (gone(TEN_MINUTES), LOOKED_UP, "no-evidence"),
        (gone(TEN_MINUTES + 1), LOOKED_UP, None),
        (live(TEN_MINUTES + 1), LOOKED_UP, "no-evidence"),
        (there(TEN_MINUTES + 1, (1, 2), (2,)), LOOKED_UP, "assigned-here"),
        (gone(TEN_MINUTES), OPERATOR, "still-assigned"),
        (gone(TEN_MINUTES + 1), OPERATOR, None),
        (there(TEN_MINUTES + 1, (2, 3), (2,)), OPERATOR, None),
        (there(TEN_MINUTES + 1, (2, 3), ()), OPERATOR, "last-copy"),
        # Node 4 is in the ISR, and the cluster does not list it.
        (there(TEN_MINUTES + 1, (2, 4), (4,)), OPERATOR, "last-copy"),
        (live(TEN_MINUTES + 1), CAPTURED, None),
    ],
)
def test_a_purge_needs_answers_of_ten_minutes_after_the_staging(
    image: Image, marker: ReplicaMarker, expected: str | None
) -> None:
    assert refusal(image, marker) == expected


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (gone(TEN_MINUTES), "not-known-yet"),
        (gone(TEN_MINUTES + 1), "topic-removed"),
        (there(TEN_MINUTES, (2, 3), (2,)), "not-known-yet"),
        (there(TEN_MINUTES + 1, (2, 3), (2,)), "replica-moved-away"),
        (there(TEN_MINUTES + 1, (2, 4), (4,)), "not-known-yet"),
        (live(TEN_MINUTES + 1), "not-known-yet"),
    ],
)
def test_why_a_captured_replica_was_removed(image: Image, expected: str) -> None:
    look = PurgeRecheck(image=image, last_applied=None)
    assert removal_reason(look, staged_replicas(CAPTURED), ReplicaIndex(())).value == expected


@pytest.mark.parametrize(
    ("image", "expected", "words"),
    [
        (gone(TEN_MINUTES + 1), Assigned.GONE, "two brokers of /c know no such topic id"),
        (gone(TEN_MINUTES), Assigned.UNKNOWN, "no two brokers of /c say the same of it, or it was staged too recently"),
        (live(TEN_MINUTES + 1), Assigned.UNKNOWN, "no two brokers of /c say the same of it"),
        (there(1, (1, 2), (2,)), Assigned.HERE, "it is assigned here by the brokers of /c"),
        (there(1, (2, 3), (2,)), Assigned.NOT_HERE, "its partition is assigned to other nodes by the brokers of /c"),
    ],
)
def test_whether_a_staged_replica_is_still_assigned(image: Image, expected: Assigned, words: str) -> None:
    cluster = ClusterState(image=image, seen=image, is_current=True)
    found = assignment_of(cluster, staged_replicas(OPERATOR))
    assert found.state is expected
    assert found.why.startswith(words)


@pytest.mark.parametrize(
    ("image", "birth_ms", "expected"),
    [
        (gone(1), WALL_MS - TEN_MINUTES, Sharing.NOT_HERE),
        (gone(0), WALL_MS - TEN_MINUTES, Sharing.UNKNOWN),
        (gone(TEN_MINUTES + 1), None, Sharing.UNKNOWN),
        (live(1), WALL_MS - TEN_MINUTES, Sharing.UNKNOWN),
        (there(1, (1, 2), (1, 2)), 0, Sharing.IN_SYNC_ELSEWHERE),
        (there(1, (1, 4), (1, 4)), 0, Sharing.LAST),
    ],
)
def test_who_has_a_live_replica(image: Image, birth_ms: int | None, expected: Sharing) -> None:
    cluster = ClusterState(image=image, seen=image, is_current=True)
    assert sharing_of(cluster, replica(), birth_ms).sharing is expected


def test_an_own_log_only_makes_it_the_last_one() -> None:
    image = there(1, (1, 2), (1, 2))
    log = replace(there(0, (2, 3), (2, 3)), source=Source.METADATA_LOG, offset=9, epoch=1)
    alone = replace(there(0, (1, 2), (1,)), source=Source.METADATA_LOG, offset=9, epoch=1)
    for beside, expected in ((log, Sharing.IN_SYNC_ELSEWHERE), (alone, Sharing.LAST)):
        cluster = ClusterState(image=image, is_current=True, beside=(ClusterState(image=beside),))
        assert sharing_of(cluster, replica(), 0).sharing is expected


def test_a20_this_node_is_listed_and_does_not_run_here() -> None:
    listed = live(1, brokers={1: Broker(b"", -1, is_fenced=False)})
    for is_running, expected in ((True, None), (False, "node-runs-elsewhere")):
        context = HostContext(last_applied=begin(CLUSTER, 1), is_broker_running=is_running)
        found = check_image(listed, [facts()], context, WALL_MS)
        assert (None if found is None else found.problem.slug) == expected


def test_no_incarnation_is_recorded() -> None:
    listed = live(1, brokers={1: Broker(b"", -1, is_fenced=False)})
    after = after_image(listed, begin(CLUSTER, 1), is_confirmed=False, is_broker_running=True)
    assert after == begin(CLUSTER, 1)
