"""The read-only client beside what stock clients say of the same brokers, over TLS with SCRAM and PLAIN.

Two brokers with an authorizer: ``admin`` may see everything, ``alice`` one topic.

Spec: design §4, source "the live cluster"; KIP-516 (an id is looked up before the right to see its topic is).
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from logdir.ids import TopicId
from logdir.wire.client.answers import Existence
from logdir.wire.client.cluster_client import ClusterClient
from logdir.wire.client.errors import AskError, BrokerAnswerError
from logdir.wire.client.settings import parse
from tests.kafka.client import ReplicaKey
from tests.kafka.rig import Broker, Rig, await_true, free_ports
from tests.kafka.rotation import releases_of
from tests.logdir.wire.client.authority import Authority, make
from tests.tools.ctl import ctl_json

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

SECURE = "listener.name.secure"
MODULES = "org.apache.kafka.common.security"
PLAIN = f'{MODULES}.plain.PlainLoginModule required username="admin" password="admin-secret"'
SCRAM = f'{MODULES}.scram.ScramLoginModule required username="alice" password="secret"'


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make(tmp_path_factory.mktemp("certificates"))


def secure(broker: Broker, authority: Authority, *scram: str) -> int:
    """Give a broker a listener with TLS and SASL, and an authorizer; return the port."""
    (port,) = free_ports(1)
    certificate, key = authority.server()
    store = authority.folder / "broker.pem"
    store.write_text(key.read_text() + certificate.read_text())
    own = broker.properties
    listeners = own["listeners"].split(",")
    listeners.insert(1, f"SECURE://localhost:{port}")
    own["listeners"] = ",".join(listeners)
    own["listener.security.protocol.map"] += ",SECURE:SASL_SSL"
    own["inter.broker.listener.name"] = "PLAINTEXT"
    own[f"{SECURE}.sasl.enabled.mechanisms"] = ",".join((*scram, "PLAIN"))
    for mechanism in scram:
        own[f"{SECURE}.{mechanism.lower()}.sasl.jaas.config"] = f"{MODULES}.scram.ScramLoginModule required;"
    own[f"{SECURE}.plain.sasl.jaas.config"] = f'{MODULES}.plain.PlainLoginModule required user_admin="admin-secret";'
    own[f"{SECURE}.ssl.keystore.type"] = "PEM"
    own[f"{SECURE}.ssl.keystore.location"] = str(store)
    own["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    own["super.users"] = "User:ANONYMOUS;User:admin"
    return port


@pytest.fixture(scope="module", params=releases_of("client"))
def scene(request: pytest.FixtureRequest, make_rig: Callable[[str], Rig], authority: Authority) -> Iterator[Scene]:
    with make_rig(request.param) as rig:
        ports = []
        for scram in (("SCRAM-SHA-256", "SCRAM-SHA-512"), ("SCRAM-SHA-512",)):
            broker = rig.add_broker(log_dirs=2)
            ports.append(secure(broker, authority, *scram))
            broker.start()
        yield Scene(rig, ports, authority)


class Scene:
    """Two brokers, with the topics ``pay`` (both), ``hidden`` and ``gone``, which was deleted."""

    def __init__(self, rig: Rig, ports: list[int], authority: Authority) -> None:
        self.rig, self.ports, self.authority = rig, ports, authority
        client = rig.client
        self.pay = TopicId.parse(client.create_on("pay", [[1, 2], [2, 1]]))
        self.hidden = TopicId.parse(client.create_on("hidden", [[1]]))
        self.gone = TopicId.parse(client.create_on("gone", [[1]]))
        await_true("both replicas are in sync", lambda: sorted(client.in_sync("pay", 0)) == [1, 2])
        client.produce("pay", records=100)
        client.delete("gone")
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            client.set_scram("alice", is_there=True, mechanism=mechanism)
        client.set_acl("alice", "pay", "DESCRIBE", is_allowed=True)
        with self.admin() as admin:
            for node_id in (1, 2):
                await_true("the deletion is known", lambda: existence(admin, self.gone, node_id) is Existence.GONE)  # noqa: B023
                await_true("the topic is known", lambda: existence(admin, self.hidden, node_id) is Existence.PRESENT)  # noqa: B023

    def properties(self, mechanism: str, login: str, *more: str, brokers: Sequence[int] = (1, 2)) -> bytes:
        lines = (
            f"bootstrap.servers={','.join(f'localhost:{self.ports[node_id - 1]}' for node_id in brokers)}",
            "security.protocol=SASL_SSL",
            f"sasl.mechanism={mechanism}",
            f"sasl.jaas.config={login};",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={self.authority.trusted}",
            *more,
        )
        return "\n".join(lines).encode()

    def admin(self) -> ClusterClient:
        return ClusterClient(parse(self.properties("PLAIN", PLAIN)))

    def alice(self) -> ClusterClient:
        return ClusterClient(parse(self.properties("SCRAM-SHA-512", SCRAM)))


def existence(client: ClusterClient, topic_id: TopicId, node_id: int) -> Existence:
    return client.topics([topic_id], node_id).topics[topic_id].existence


def test_the_cluster_its_brokers_and_the_listener_of_this_client(scene: Scene) -> None:
    with scene.admin() as admin:
        cluster = admin.cluster()
    assert cluster.cluster_id == scene.rig.cluster_id
    assert [(node.node_id, node.address.host, node.address.port) for node in cluster.nodes] == [
        (1, "localhost", scene.ports[0]),
        (2, "localhost", scene.ports[1]),
    ]


def test_a_topic_by_its_id_has_the_replicas_and_the_isr_that_a_stock_client_shows(scene: Scene) -> None:
    with scene.admin() as admin:
        for node_id in (1, 2):
            found = admin.topics([scene.pay], node_id)
            state = found.topics[scene.pay]
            assert (found.cluster_id, state.name) == (scene.rig.cluster_id, "pay")
            assert [part.partition for part in state.partitions] == [0, 1]
            for part in state.partitions:
                assert list(part.replicas) == scene.rig.client.replicas("pay", part.partition)
                assert sorted(part.in_sync) == sorted(scene.rig.client.in_sync("pay", part.partition))


def test_the_log_start_after_records_were_deleted_at_the_leader_and_at_the_follower(scene: Scene) -> None:
    assert scene.rig.client.trim("pay", 0, 40) == 40
    with scene.admin() as admin:
        for node_id in (1, 2):

            def start() -> int | None:
                found = admin.log_starts(scene.pay, [0], node_id)  # noqa: B023
                return None if found is None else found.offsets.get(0)

            await_true("the log start is 40", lambda: start() == 40)
        elsewhere = admin.log_starts(scene.hidden, [0], 2)  # It lies on broker 1 alone.
        assert elsewhere is not None
        assert (elsewhere.offsets, set(elsewhere.errors)) == ({}, {0})
        assert admin.log_starts(scene.gone, [0], 1) is None


def test_the_high_watermark_of_the_quorum_lies_where_a_stock_client_sees_it(scene: Scene) -> None:
    with scene.admin() as admin:
        before = admin.quorum()
        epoch, watermark = scene.rig.client.quorum()
        after = admin.quorum()
    assert before.leader_epoch == epoch == after.leader_epoch
    assert before.high_watermark is not None
    assert after.high_watermark is not None
    assert 0 < before.high_watermark <= watermark <= after.high_watermark
    assert (after.leader_id, after.voters) == (1, (1,))


def test_log_dirs_are_those_that_a_stock_client_shows(scene: Scene) -> None:
    with scene.admin() as admin:
        for node_id in (1, 2):
            ours = {
                ReplicaKey(one.log_dir, str(replica.ref.topic), replica.ref.partition, replica.is_future): (
                    replica.size_bytes,
                    replica.offset_lag,
                )
                for one in admin.log_dirs(node_id)
                for replica in one.replicas
            }
            theirs = scene.rig.client.log_dirs(node_id)
            assert ours == {key: tuple(value) for key, value in theirs.items()}
            log_dirs = scene.rig.brokers[node_id - 1].log_dirs
            assert [one.log_dir for one in admin.log_dirs(node_id)] == sorted(map(str, log_dirs))
            assert all(one.total_bytes and one.error == 0 for one in admin.log_dirs(node_id))


def test_an_id_is_present_hidden_or_gone_for_a_user_with_the_right_to_one_topic(scene: Scene) -> None:
    with scene.alice() as alice:
        for node_id in (1, 2):
            found = alice.topics([scene.pay, scene.hidden, scene.gone], node_id).topics
            assert [(found[one].existence, found[one].error) for one in (scene.pay, scene.hidden, scene.gone)] == [
                (Existence.PRESENT, 0),
                (Existence.HIDDEN, 29),
                (Existence.GONE, 100),
            ]
        for ask in (alice.quorum, lambda: alice.log_dirs(1)):
            with pytest.raises(BrokerAnswerError) as caught:
                ask()
            assert caught.value.number == 31


WRONG = {
    "another password": (1, "SCRAM-SHA-512", SCRAM.replace('"secret"', '"wrong-secret"'), "authentication-failed"),
    "another user": (1, "SCRAM-SHA-512", SCRAM.replace("alice", "bob"), "authentication-failed"),
    "another password of PLAIN": (1, "PLAIN", PLAIN.replace("admin-secret", "wrong-secret"), "authentication-failed"),
    "another password of SCRAM-SHA-256": (
        1, "SCRAM-SHA-256", SCRAM.replace('"secret"', '"wrong-secret"'), "authentication-failed",
    ),
    "a mechanism that the listener has not": (2, "SCRAM-SHA-256", SCRAM, "authentication-failed"),
}  # fmt: skip


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_that_is_let_in_by_scram(scene: Scene, mechanism: str) -> None:
    with ClusterClient(parse(scene.properties(mechanism, SCRAM, brokers=[1]))) as client:
        assert client.cluster().cluster_id == scene.rig.cluster_id


@pytest.mark.parametrize("case", WRONG)
def test_a_user_that_is_refused(scene: Scene, case: str) -> None:
    node_id, mechanism, login, slug = WRONG[case]
    text = scene.properties(mechanism, login, brokers=[node_id])
    with ClusterClient(parse(text)) as client, pytest.raises(AskError) as caught:
        client.cluster()
    assert caught.value.slug == slug
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_a_broker_of_another_authority_is_refused(scene: Scene) -> None:
    text = (
        scene.properties("PLAIN", PLAIN).decode().replace(str(scene.authority.trusted), str(scene.authority.stranger))
    )
    with ClusterClient(parse(text.encode())) as client, pytest.raises(AskError, match="tls-failed"):
        client.cluster()


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT"])
def test_another_protocol_than_that_of_the_listener_ends_in_one_error(scene: Scene, protocol: str) -> None:
    text = scene.properties("PLAIN", PLAIN, "request.timeout.ms=8000").decode().replace("SASL_SSL", protocol)
    with ClusterClient(parse(text.encode())) as client, pytest.raises(AskError) as caught:
        client.cluster()
    assert caught.value.slug in ("cluster-unreachable", "answer-too-large", "cluster-timeout")
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_a_listener_without_tls_and_without_users(scene: Scene) -> None:
    with ClusterClient(parse(f"bootstrap.servers={scene.rig.brokers[0].address}".encode())) as client:
        assert client.cluster().cluster_id == scene.rig.cluster_id
        assert existence(client, scene.pay, 2) is Existence.PRESENT


def test_strays_of_a_topic_that_this_user_may_not_see_are_unknown(scene: Scene, tmp_path: Path) -> None:
    broker = scene.rig.brokers[0]
    words = ("strays", "hidden", "--server-properties", broker.write_configuration(), "--from")
    alice, admin = tmp_path / "alice.properties", tmp_path / "admin.properties"
    alice.write_bytes(scene.properties("SCRAM-SHA-512", SCRAM))
    admin.write_bytes(scene.properties("PLAIN", PLAIN))
    _, found = ctl_json(*words, f"cluster:{alice}")
    assert [(one["topic"], one["state"], one["evidence"]["kind"]) for one in found["items"]] == [
        ("hidden", "unknown", "unknown")
    ]
    _, found = ctl_json(*words, f"cluster:{admin}")
    assert found.get("items", []) == []
