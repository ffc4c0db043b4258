"""What a running cluster says to ``--from cluster:FILE`` and to the daemon of a node that is no voter.

Spec: design §3.3, §4, source "the live cluster"; attacks A2, A20.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kafka.no_rights import require_no_rights_in_proof
from tests.kafka.rig import Broker, Rig, await_true
from tests.kafka.rotation import releases_of
from tests.kafka.undo_rig import await_in_sync, stop
from tests.logdir.daemon.rig import Process
from tests.tools.ctl import ctl, ctl_json
from tests.tools.reconcile_rig import age
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

PROPERTIES: Final = {
    "log.segment.delete.delay.ms": "10000",
    "log.initial.task.delay.ms": "500",
    "offsets.topic.replication.factor": "1",
}
TOPICS: Final = {"kept": [2, 1], "deleted": [2, 1], "moved": [2, 1], "removed": [2, 1]}


def staged(broker: Broker) -> set[str]:
    return {path.name for top in broker.log_dirs for path in Path(f"{top}.logdird/deleting").iterdir()}


def removals(daemon: Process, *more: object) -> dict[str, str]:
    status, result = ctl_json("staged", "ls", "--config", daemon.config, *more)
    assert status == Exit.DONE, result
    return {one["topic"]: one["removal"] for one in result["items"]}


@pytest.mark.parametrize("version", releases_of("live cluster"))
def test_a_node_that_is_no_voter_learns_why_a_replica_was_removed_and_that_an_id_is_gone(
    version: str, make_rig: Callable[[str], Rig], tmp_path: Path
) -> None:
    with make_rig(version) as rig:
        for _ in range(3):
            rig.add_broker(log_dirs=2, properties=PROPERTIES).start()
        node = rig.brokers[1]
        configuration = node.write_configuration()
        assert ctl("init", "--server-properties", configuration, "--apply").status == Exit.DONE
        servers = ",".join(broker.address for broker in rig.brokers)
        client = tmp_path / "client.properties"
        client.write_text(f"bootstrap.servers={servers}\n")
        config = tmp_path / "b2.yaml"
        config.write_text(
            f"server.properties: {configuration}\nstate.dir: state\nsocket: s.sock\nstaged.min.free: 1\n"
            f"client.properties: {client}\n"
        )
        ids = {topic: rig.client.create_on(topic, [nodes]) for topic, nodes in TOPICS.items()}
        for topic, nodes in TOPICS.items():
            await_in_sync(rig, topic, nodes)
            rig.client.produce_rich(topic, records=20)
        with Process(config).running() as daemon:
            assert daemon.process is not None
            require_no_rights_in_proof(node.pid, daemon.process.pid)
            rig.client.delete("deleted")
            rig.client.reassign("moved", 0, [1, 3])
            both = {f"{ids['deleted']}_0", f"{ids['moved']}_0"}
            await_true("both are captured", lambda: staged(node) == both, timeout_seconds=60)
            # Without a watermark nothing is known: the log of this node counts up to its newest snapshot.
            named = ("--server-properties", configuration)
            _, plain = ctl_json("staged", "ls", *named)
            assert {one["removal"] for one in plain["items"]} == {"not-known-yet"}
            await_true(
                "the reasons are known",
                lambda: removals(daemon) == {"deleted": "topic-removed", "moved": "replica-moved-away"},
            )
            left = {f"{ids['deleted']}_0"}
            await_true("what moved away is purged", lambda: staged(node) == left, timeout_seconds=120)
            await_true("it is counted", lambda: daemon.status().purged == 1)
            assert [one for one in daemon.status().waiting if one.slug.startswith("cluster-")] == []
        stop(node)
        rig.client.delete("removed")
        for top in node.log_dirs:
            age(top)
        found = gone(node, client)
        assert found == {"removed-0": ("proven", "live-cluster")}
        # One broker alone proves nothing: what it does not know may be new.
        rig.brokers[2].stop()
        said = ctl("strays", "removed", *named, "--from", f"cluster:{client}", "--json")
        assert said.status == Exit.REFUSED
        assert [one["slug"] for one in json.loads(said.out)["problems"]] == ["node-not-in-source"], said


def gone(node: Broker, client: Path) -> dict[str, tuple[str, str | None]]:
    """Return the strays of a node that has just stopped, once its cluster has fenced it."""
    found: dict[str, Any] = {}

    def is_told() -> bool:
        words = ("strays", "--server-properties", node.write_configuration(), "--from", f"cluster:{client}")
        status, result = ctl_json(*words)
        found.clear()
        found.update(result)
        return status == Exit.DONE and bool(result["items"])

    await_true(
        "the cluster has fenced the node, and its brokers know that the topic is gone", is_told, timeout_seconds=60
    )
    return {one["path"]: (one["state"], one["evidence"]["proof"]) for one in found["items"]}
