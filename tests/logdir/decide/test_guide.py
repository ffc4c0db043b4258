"""The guide through an adoption: every command in its order, or the reasons why there is none (A16, A17, A33)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from logdir.cluster.image import Broker, Image, Partition, Topic
from logdir.decide.image.still_assigned import ClusterState
from logdir.decide.staged.adoption import Gone, gone_of, is_adoptable, outlook_of
from logdir.decide.staged.guide import GuideStep, GuideWords, plan_guide
from logdir.decide.staged.listing import selector_to_restore
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Checkpoints
from logdir.ids import TopicId
from logdir.observe.facts import StagedReplica
from logdir.refusal_slug import Why
from tests.logdir.decide.builders import ID, OTHER_ID, WALL_MS, facts, staged_replicas
from tests.logdir.decide.test_adopt_here import CAPTURED, NEW, image, known

BROKER = "--server-properties /etc/kafka/server.properties"
SETTINGS = "--config retention.ms=-1 --config retention.bytes=-1"
LATER = TopicId.parse("7f0t7kV0TYqv8m3Jbq4pkA")


def item(partition: int = 0, *, log_start: int | None = None, **changed: Any) -> StagedReplica:
    path = f"orders-{partition}.{'0' * 32}-delete"
    points = Checkpoints(log_start=log_start)
    marker = replace(CAPTURED, partition=partition, path=path, checkpoints=points, delay_ms=None)
    return staged_replicas(marker, **{"log_bytes": 1536, "first_offset": 40, **changed})


def partial(partition: int = 0) -> StagedReplica:
    return replace(item(partition), kind=Kind.INCOMING)


def was(*replicas: tuple[int, ...], **changed: Any) -> Image:
    """Return the metadata behind the removal of a topic whose partitions had these replicas."""
    topic = Topic("orders", bytes(ID), {number: Partition(on, on) for number, on in enumerate(replicas)})
    return image(former={bytes(ID): topic} if replicas else {}, **changed)


def asked(items: Sequence[StagedReplica], cluster: ClusterState, log_end: int | None = 100) -> Gone:
    return Gone(
        items=tuple(items),
        cluster=cluster,
        node_id=1,
        now_ms=WALL_MS,
        log_ends={(one.log_dir, one.path): log_end for one in items},
    )


def guide(
    *items: StagedReplica, cluster: ClusterState | None = None, log_end: int | None = 100, **changed: Any
) -> tuple[GuideStep, ...]:
    words = GuideWords(broker=BROKER, is_running=True, is_quorum_known=True)
    made = asked(items, cluster or known(was((1,))), log_end)
    return plan_guide(made, replace(words, **changed), [facts(staged=items)])


def commands(steps: Sequence[GuideStep]) -> list[tuple[int, str]]:
    return [(one.step, one.command) for one in steps if one.command is not None]


def text(steps: Sequence[GuideStep]) -> str:
    return "\n".join(f"{one.step}. {one.text}" for one in steps)


@pytest.mark.parametrize(
    ("replicas", "where"), [((1,), ""), ((1, 2, 3), " on each broker of orders")], ids=["one broker", "three brokers"]
)
def test_what_has_a_deadline_is_held_before_anything_else(replicas: tuple[int, ...], where: str) -> None:
    one = item()
    assert one.marker is not None
    due = replace(one, marker=replace(one.marker, delay_ms=14_400_000))
    first, second, *_ = guide(due, item(1), cluster=known(was(replicas, replicas)))
    assert (first.step, second.step) == (1, 2)
    assert first.text == f"Hold the staged replicas{where}, so that none is purged meanwhile:"
    assert first.command == f"logdirctl staged hold {ID} {BROKER} --apply"


def test_what_can_only_be_exported_is_held_before_and_a_removal_that_has_begun_is_not() -> None:
    tiered, _ = REFUSED["a tiered log"]
    assert tiered.marker is not None
    due = replace(tiered, marker=replace(tiered.marker, delay_ms=14_400_000))
    assert guide(due)[0].command == f"logdirctl staged hold {ID} {BROKER} --apply"
    assert guide(replace(due, kind=Kind.PURGING))[0].command is None


def test_a16_one_partition_of_one_replica_is_led_through_in_its_order() -> None:
    steps = guide(item())
    server = "--bootstrap-server HOST:PORT"
    adopt = f"logdirctl staged adopt {ID} --as orders {BROKER}"
    assert commands(steps) == [
        (1, f"kafka-topics.sh {server} --create --topic orders --replica-assignment 1 {SETTINGS}"),
        (2, "systemctl stop kafka"),
        (3, adopt),
        (3, f"{adopt} --apply"),
        (4, "systemctl start kafka"),
        (4, f"kafka-get-offsets.sh {server} --topic orders"),
        (4, f"kafka-get-offsets.sh {server} --topic orders --time -2"),
    ]
    assert [one.step for one in steps] == sorted(one.step for one in steps)
    said = text(steps)
    assert "Stop the clients of orders, then create it again, with its 1 partition:" in said
    assert "Once it has made its replicas, stop broker 1:" in said
    assert f"1.5 KiB: /d1/deleting/{ID}_0 -> /d1/orders-0" in said
    assert "log ends orders:0:100:" in said
    assert "log starts orders:0:40:" in said


def test_a_broker_that_is_stopped_is_started_first_to_make_its_replica() -> None:
    first, *rest = guide(item(), is_running=False)
    assert (first.step, first.text, first.command) == (1, "Start broker 1:", "systemctl start kafka")
    assert [(one.step - 1, one.text, one.command) for one in rest] == [
        (one.step, one.text, one.command) for one in guide(item(), is_running=None)
    ]


@pytest.mark.parametrize(
    ("log_start", "first", "shown"), [(70, 40, "70"), (None, 40, "40"), (7, 40, "40"), (70, None, "?")]
)
def test_the_log_start_is_that_of_the_marker_or_of_the_first_segment(
    log_start: int | None, first: int | None, shown: str
) -> None:
    assert f"log starts orders:0:{shown}:" in text(guide(item(log_start=log_start, first_offset=first)))


def test_a_log_end_that_is_not_known_is_said() -> None:
    assert "log ends orders:0:?:" in text(guide(item(), log_end=None))


def test_each_partition_has_its_place_and_its_offsets() -> None:
    other = item(2, log_dir="/d2", log_bytes=7, log_start=50)
    steps = plan_guide(
        asked((other, item()), known(was((1,), (1,), (1,)))),
        GuideWords(broker=BROKER, is_running=True, is_quorum_known=True),
        [facts(staged=(item(),)), facts(log_dir="/d2", staged=(other,))],
    )
    assert "--replica-assignment 1,1,1 " in commands(steps)[0][1]
    said = text(steps)
    assert "with its 3 partitions:" in said
    places = [line for line in said.splitlines() if " -> " in line]
    assert places == [
        f"3. 1.5 KiB: /d1/deleting/{ID}_0 -> /d1/orders-0",
        f"3. 7 B: /d2/deleting/{ID}_2 -> /d2/orders-2",
    ]
    assert "log ends orders:0:100 orders:2:100:" in said
    assert "log starts orders:0:40 orders:2:50:" in said


def test_a16_three_replicas_known_by_the_metadata_are_stopped_listed_and_started_as_the_adoption_says() -> None:
    steps = guide(item(), item(1), cluster=known(was((2, 1, 3), (3, 1, 4))))
    typed = commands(steps)
    assert [step for step, _ in typed] == [1, 1, 2, 3, 4, 4, 5, 5, 5]
    assert " --replica-assignment 2:1:3,3:1:4 " in typed[0][1]
    assert typed[1][1] == f"logdirctl staged ls {ID} {BROKER}"
    listing = "/var/tmp/orders.broker-{}.json"
    assert typed[3][1] == f"logdirctl staged ls {ID} {BROKER} --json > {listing.format(1)}"
    others = " ".join(f"--with {listing.format(number)}" for number in (2, 3, 4))
    assert typed[4][1] == f"logdirctl staged adopt {ID} --as orders {others} {BROKER}"
    said = text(steps)
    assert "stop brokers 4, 3, 2, 1 in this order:" in said
    assert "Once all have adopted, start brokers 1, 2, 3, 4 in this order:" in said


def test_a_broker_is_listed_for_no_other_that_shares_none_of_its_partitions() -> None:
    (adopt,) = [one for _, one in commands(guide(item(), cluster=known(was((1, 2), (3, 4))))) if "--apply" in one]
    assert ("broker-2" in adopt, "broker-3" in adopt, "broker-4" in adopt) == (True, False, False)


def test_where_no_metadata_has_the_topic_any_more_it_says_at_least() -> None:
    steps = guide(item(2), cluster=known(was()))
    typed = commands(steps)
    assert " --replica-assignment 1,1,1 " in typed[0][1]
    assert "with at least 3 partitions; its other brokers are not known:" in text(steps)
    assert typed[1][1] == f"logdirctl staged ls {ID} {BROKER}"
    assert "those that list its files, no others" in text(steps)


@pytest.mark.parametrize("replicas", [((1,),), ()], ids=["one of two", "none"])
def test_partitions_that_the_metadata_lacks_make_it_not_known(replicas: tuple[tuple[int, ...], ...]) -> None:
    assert "at least 2 partitions" in text(guide(item(), item(1), cluster=known(was(*replicas))))


def test_metadata_from_before_the_removal_has_the_replicas_too() -> None:
    """The marker knows that the topic is gone; the image is older, and has it under the id that is gone."""
    topic = Topic("orders", bytes(ID), {0: Partition((2, 1), (2, 1))})
    older = image(topic, removed={}, as_of_ms=WALL_MS - 10)
    steps = guide(item(), cluster=known(older, is_current=False))
    assert " --replica-assignment 2:1 " in commands(steps)[0][1]


@pytest.mark.parametrize("place", ["seen", "beside"])
def test_a_log_that_may_not_be_followed_shows_the_replicas_too(place: str) -> None:
    other = was((1, 2))
    cluster = ClusterState(seen=other) if place == "seen" else ClusterState(beside=(ClusterState(latest=other),))
    assert " --replica-assignment 1:2 " in commands(guide(item(), cluster=cluster))[0][1]


def endpoint(host: str) -> dict[int, Broker]:
    return {1: Broker(b"i" * 16, 1, endpoints=(("PLAINTEXT", host, 9092, 0), ("SSL", "other", 9093, 1)))}


@pytest.mark.parametrize(("host", "shown"), [("k1", "k1:9092"), ("fd00::1", "[fd00::1]:9092")])
def test_the_address_is_the_one_that_the_broker_registered(host: str, shown: str) -> None:
    steps = guide(item(), cluster=known(was((1,), brokers=endpoint(host))))
    assert [one for _, one in commands(steps) if "--bootstrap-server" in one and shown not in one] == []
    assert guide(item(), cluster=known(was((1,), brokers={2: endpoint(host)[1]}))) == guide(item())


def test_where_another_source_is_needed_the_commands_that_need_it_have_it() -> None:
    steps = guide(item(), cluster=known(was((1, 2))), is_quorum_known=False)
    assert "Set QUORUM as docs/undo.md says" in text(steps)
    with_it = [one.partition(" --json")[0].split()[2] for _, one in commands(steps) if "$QUORUM" in one]
    assert with_it == ["ls", "adopt", "adopt"]


def test_the_choice_between_copies_goes_on_in_the_adoption() -> None:
    typed = [one for _, one in commands(guide(item(), choice=" --disk /d1 --name x_0.2")) if " adopt " in one]
    assert [one.partition(BROKER)[2] for one in typed] == [
        " --disk /d1 --name x_0.2",
        " --disk /d1 --name x_0.2 --apply",
    ]


def again(*replicas: tuple[int, ...], **changed: Any) -> ClusterState:
    """Return the cluster after a topic of the same name was created."""
    topic = Topic("orders", bytes(NEW), {number: Partition(on, on) for number, on in enumerate(replicas)})
    made = was((1,), (1,))
    return known(replace(image(topic), former=made.former, **changed))


def test_a_topic_that_is_there_again_is_kept_and_its_records_named_as_lost() -> None:
    steps = guide(item(), cluster=again((1,), (2,)))
    assert commands(steps)[0] == (
        1,
        (
            "kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name orders "
            "--add-config retention.ms=-1,retention.bytes=-1"
        ),
    )
    assert f"It is there again (id {NEW}): what it holds is replaced." in text(steps)
    assert "--create" not in str(commands(steps))


def test_a_topic_that_is_there_again_and_does_not_fit_refuses_with_what_to_do() -> None:
    steps = guide(item(1), cluster=again((1,)))
    assert "orders-1 cannot be adopted: expected a partition of orders, found partition 1 of a topic with" in text(
        steps
    )
    assert "create the topic again with as many partitions as it had" in text(steps)
    assert commands(steps) == [(2, f"logdirctl staged export {ID} -o /var/tmp/undo {BROKER}")]


REFUSED: Mapping[str, tuple[StagedReplica, str]] = {
    "a partial capture": (partial(), "found a partial capture"),
    "a tiered log": (
        replace(item(), marker=replace(CAPTURED, partition=0, tiered=True, delay_ms=None)),
        "found the local part only",
    ),
    "a removal that has begun": (replace(item(), kind=Kind.PURGING), "its removal has begun"),
}


@pytest.mark.parametrize(("gone", "reason"), REFUSED.values(), ids=REFUSED)
def test_a17_a33_what_cannot_be_adopted_has_its_reason_and_an_export(gone: StagedReplica, reason: str) -> None:
    steps = guide(gone)
    assert [one.step for one in steps] == [1, 2]
    assert reason in steps[0].text
    assert steps[0].text.startswith("orders-0 cannot be adopted: expected ")
    assert steps[0].command is None
    assert steps[1].command == f"logdirctl staged export {ID} -o /var/tmp/undo {BROKER}"


def test_two_copies_of_a_partition_are_a_choice() -> None:
    steps = guide(item(), item(counter=2))
    assert "several on broker 1" in steps[0].text
    assert "--name" in steps[0].text
    assert len(steps) == 2


def test_partitions_of_one_reason_are_one_line() -> None:
    first, last = guide(partial(1), partial())
    assert first.text.startswith("orders-0, orders-1 cannot be adopted: ")
    assert last.step == 2


def test_a17_a_partition_that_has_only_a_part_is_named_beside_those_that_are_adopted() -> None:
    steps = guide(item(), partial(1), cluster=known(was((1,), (1,))))
    (line,) = [one for one in steps if "orders-1 cannot be adopted" in one.text]
    assert (line.step, "logdirctl staged export" in line.text) == (3, True)
    outlook = outlook_of(asked((item(), partial(1)), known(was((1,), (1,)))), [facts(staged=(item(), partial(1)))])
    assert [one.ref.partition for one in outlook.adopted] == [0]
    assert [one.why for one in outlook.refusals] == [Why.PARTIAL_CAPTURE]


def test_a_part_beside_the_whole_is_left_out() -> None:
    items = (partial(), item(), partial(1))
    assert gone_of(known(was((1,))), items) == (item(), partial(1))


def test_what_is_still_there_is_not_led_through_an_adoption() -> None:
    topic = Topic("orders", bytes(ID), {0: Partition((1,), (1,))})
    here = known(image(topic, removed={}, as_of_ms=WALL_MS + 1))
    assert gone_of(here, (item(),)) == ()
    assert is_adoptable(item(), known(was((1,))), [facts(staged=(item(),))])
    assert not is_adoptable(item(), here, [facts(staged=(item(),))])


def test_several_topics_are_led_through_one_by_one() -> None:
    other = item(topic_id=OTHER_ID, topic="other", name=f"{OTHER_ID}_0")
    assert [(one.step, one.text, one.command) for one in guide(item(), item(1), other)] == [
        (1, "orders is gone; 2 partitions staged here:", f"logdirctl staged restore {ID} {BROKER}"),
        (2, "other is gone; 1 partition staged here:", f"logdirctl staged restore {OTHER_ID} {BROKER}"),
    ]


def test_the_next_restore_is_one_that_restores_else_one_that_leads_through_an_adoption() -> None:
    gone = known(was((1,)))
    for one, expected in ((item(), str(ID)), (partial(), None), (REFUSED["a tiered log"][0], None)):
        assert selector_to_restore((one,), gone, [facts(staged=(one,))]) == expected
    dashed = TopicId.parse("-f0t7kV0TYqv8m3Jbq4pkA")
    one = staged_replicas(replace(CAPTURED, topic_id=dashed))
    assert selector_to_restore((one,), gone, [facts(staged=(one,))]) == f"id:{dashed}"
    topic = Topic("orders", bytes(LATER), {3: Partition((1,), (1,))})
    here = staged_replicas(replace(CAPTURED, topic_id=LATER))
    both = known(replace(image(topic), as_of_ms=WALL_MS + 1))
    assert selector_to_restore((item(), here), both, [facts(staged=(item(), here))]) == f"{LATER}_3"
