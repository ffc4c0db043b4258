"""What the daemon of each broker captured comes back: of three brokers, of a stray, beside a topic that was made again.

Each is a topic with transactions, headers and a log start that is not 0, told by a digest of all its records.

Spec: design §3.3; kafka-behaviour §3.2, §10.4, §10.5; attacks A16, A17, A36.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.kafka.daemon_rig import (
    OFTEN,
    PROPERTIES,
    Side,
    adopt,
    await_all_in_sync,
    await_captured,
    await_log_starts,
    beside,
    copied_quorum,
    deleted,
    fill,
    staged_names,
    told,
    typed,
)
from tests.kafka.rig import Rig
from tests.kafka.rotation import releases_of
from tests.kafka.undo_rig import stop

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

EVERYWHERE: Final = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


@pytest.mark.parametrize("version", releases_of("daemon undo"))
def test_a16_a17_a_topic_of_three_replicas_each_comes_back_on_three_brokers(
    version: str, make_rig: Callable[[str], Rig], tmp_path: Path
) -> None:
    with make_rig(version) as rig, ExitStack() as stack:
        for _ in EVERYWHERE:
            rig.add_broker(log_dirs=2, properties=PROPERTIES)
        for broker in rig.brokers:
            broker.start()
        sides = [
            Side(broker, stack.enter_context(beside(broker, tmp_path / f"logdird-{broker.node_id}", more=OFTEN)))
            for broker in rig.brokers
        ]
        old, written = fill(rig, "lost", EVERYWHERE)
        rig.client.create_on("stays", [[1, 2, 3]])
        for side in sides:
            await_log_starts(side, "lost", EVERYWHERE)
        rig.client.produce("stays", records=50)
        bootstrap = ("--bootstrap-server", rig.brokers[0].address)
        rig.brokers[0].tool("org.apache.kafka.tools.TopicCommand", *bootstrap, "--delete", "--topic", "lost")
        rig.client.produce("stays", records=50)
        for side in sides:
            await_captured(side, old, EVERYWHERE)

        rig.client.create_on("lost", EVERYWHERE)
        await_all_in_sync(rig, "lost", EVERYWHERE)
        one, two, three = sides
        stop(three.broker)
        stop(two.broker)
        quorum = copied_quorum(rig, tmp_path / "quorum").split()
        stop(one.broker)
        asked: dict[Side, list[str]] = {one: [], two: quorum, three: quorum}
        listings = {}
        for side, words in asked.items():
            listings[side] = tmp_path / f"{side.broker.node_id}.json"
            said = typed(side.daemon, "staged", "ls", old, *words, "--json")
            listings[side].write_text(said.out)
        order: list[str] = []
        for side, words in asked.items():
            others = [word for other in sides if other != side for word in ("--with", str(listings[other]))]
            plan = adopt(side.daemon, old, "lost", *others, *words)
            order += re.findall(r"start them as ([\d, ]+\d)", plan.out + plan.err)
        assert order == ["1, 2, 3"] * 3
        for broker in rig.brokers:
            broker.start()
        await_all_in_sync(rig, "lost", EVERYWHERE)
        assert told(rig, "lost", len(EVERYWHERE)) == written
        assert rig.client.consume("stays").records == 100
        for partition in range(len(EVERYWHERE)):
            end = written[partition, "read_uncommitted"].end
            assert rig.client.produce_rich("lost", partition, records=5) == end + 4
        await_all_in_sync(rig, "lost", EVERYWHERE)


@pytest.mark.parametrize("version", releases_of("daemon undo"))
def test_a16_a_topic_that_was_deleted_while_its_broker_was_down_comes_back_from_its_strays(
    version: str, make_rig: Callable[[str], Rig], tmp_path: Path
) -> None:
    replicas = [[2], [2]]
    with make_rig(version) as rig:
        for _ in range(2):
            rig.add_broker(log_dirs=2, properties=PROPERTIES).start()
        broker = rig.brokers[1]
        with beside(broker, tmp_path / "logdird", more=OFTEN) as daemon:
            side = Side(broker, daemon)
            old, written = fill(rig, "lost", replicas)
            await_log_starts(side, "lost", replicas)
            stop(broker)
            rig.client.delete("lost")
            broker.start()
            await_captured(side, old, replicas)
            assert len([path for top in broker.log_dirs for path in top.glob("*-stray")]) == len(replicas)

            rig.client.create_on("lost", replicas)
            await_all_in_sync(rig, "lost", replicas)
            stop(broker)
            adopt(daemon, old, "lost", *copied_quorum(rig, tmp_path / "quorum").split())
            broker.start()
            await_all_in_sync(rig, "lost", replicas)
            assert told(rig, "lost", len(replicas)) == written
            # Its strays stay, and have the same files: a start after a crash recovers both.
            assert rig.client.produce_rich("lost", records=5) == written[0, "read_uncommitted"].end + 4
            grown = told(rig, "lost", len(replicas))
            broker.kill()
            broker.start()
            await_all_in_sync(rig, "lost", replicas)
            assert told(rig, "lost", len(replicas)) == grown


@pytest.mark.parametrize("version", releases_of("daemon undo"))
def test_a16_what_a_topic_held_comes_back_beside_one_that_was_made_under_its_name_at_once(
    version: str, make_rig: Callable[[str], Rig], tmp_path: Path
) -> None:
    replicas = [[1], [1]]
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=2, properties=PROPERTIES)
        broker.start()
        with beside(broker, tmp_path / "logdird", more=OFTEN) as daemon:
            side = Side(broker, daemon)
            old, written = fill(rig, "again", replicas)
            await_log_starts(side, "again", replicas)
            rig.client.delete("again")
            new = rig.client.create_on("again", replicas)
            await_all_in_sync(rig, "again", replicas)
            for partition in range(len(replicas)):
                rig.client.produce_rich("again", partition, records=7)
            newer = told(rig, "again", len(replicas))
            assert deleted(broker)
            await_captured(side, old, replicas)
            assert not any(name.startswith(new) for name in staged_names(broker))

            rig.client.create_on("before", replicas)
            await_all_in_sync(rig, "before", replicas)
            stop(broker)
            adopt(daemon, old, "before")
            broker.start()
            for topic in ("before", "again"):
                await_all_in_sync(rig, topic, replicas)
            assert told(rig, "before", len(replicas)) == written
            assert told(rig, "again", len(replicas)) == newer
