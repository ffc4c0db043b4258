"""The client against a server that answers, lies, stalls or cuts off: values, or one typed error without a secret."""

from __future__ import annotations

import socket
import struct
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from logdir.ids import TopicId
from logdir.wire.client.answers import Existence
from logdir.wire.client.cluster_client import ClusterClient
from logdir.wire.client.errors import AskError
from logdir.wire.client.settings import parse
from tests.logdir.wire.client.fake_broker import CLUSTER_ID, FakeBroker, Reply, Talk, api_versions
from tests.logdir.wire.client.scram_server import PASSWORD, ScramServer, handshake, plain, refusing

ONE, TWO, THREE = (TopicId(bytes([number]) * 16) for number in (1, 2, 3))
SCRAM = (
    "security.protocol=SASL_PLAINTEXT",
    "sasl.mechanism=SCRAM-SHA-512",
    f'sasl.jaas.config=a.ScramLoginModule required username="alice" password="{PASSWORD}";',
)
PLAIN = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", SCRAM[2].replace("Scram", "Plain"))


def client_of(*addresses: str, lines: tuple[str, ...] = (), timeout_ms: int = 20_000) -> ClusterClient:
    text = (f"bootstrap.servers={','.join(addresses)}", f"request.timeout.ms={timeout_ms}", *lines)
    return ClusterClient(parse("\n".join(text).encode()))


def partition(number: int, **changed: Any) -> dict[str, Any]:
    usual = {
        "errorCode": 0, "partitionIndex": number, "leaderId": 1, "leaderEpoch": 7, "replicaNodes": (1, 2),
        "isrNodes": (1,), "offlineReplicas": (),
    }  # fmt: skip
    return usual | changed


def topic(topic_id: TopicId, **changed: Any) -> dict[str, Any]:
    usual = {
        "errorCode": 0, "name": "pay", "topicId": bytes(topic_id), "isInternal": False, "partitions": (partition(0),),
        "topicAuthorizedOperations": -(2**31),
    }  # fmt: skip
    return usual | changed


def gone(topic_id: TopicId, error_code: int = 100) -> dict[str, Any]:
    return topic(topic_id, errorCode=error_code, name=None, partitions=())


def metadata(*topics: Mapping[str, Any], **changed: Any) -> Reply:
    return lambda talk: talk.answer({"brokers": (), "clusterId": CLUSTER_ID, "topics": topics, **changed})


def failed(broker: FakeBroker, *, lines: tuple[str, ...] = (), timeout_ms: int = 20_000) -> str:
    """Ask for two topic ids; return the one line of the error. No secret is in it or in what it was raised from."""
    with (
        broker,
        client_of(broker.address, lines=lines, timeout_ms=timeout_ms) as client,
        pytest.raises(AskError) as caught,
    ):
        client.topics([ONE, TWO])
    shown = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in shown
    assert caught.value.path == broker.address
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value).replace(broker.address, "BROKER")


# What is answered.


def test_topics_by_id_present_gone_and_hidden() -> None:
    replies = {
        "Metadata": metadata(
            topic(ONE, partitions=(partition(1, leaderId=-1, errorCode=5), partition(0))),
            gone(TWO),
            gone(THREE, 29),
            gone(TopicId(bytes([4]) * 16), 4711),
        )
    }
    with FakeBroker(replies) as broker, client_of(broker.address) as client:
        found = client.topics([ONE, TWO, THREE, TopicId(bytes([4]) * 16)])
    assert found.cluster_id == CLUSTER_ID
    one, two, three, four = (found.topics[key] for key in sorted(found.topics))
    assert (one.existence, one.name) == (Existence.PRESENT, "pay")
    assert [(part.partition, part.leader, part.replicas, part.in_sync) for part in one.partitions] == [
        (0, 1, (1, 2), (1,)),
        (1, None, (1, 2), (1,)),
    ]
    assert (two.existence, two.error) == (Existence.GONE, 100)
    assert (three.existence, three.error) == (Existence.HIDDEN, 29)
    assert (four.existence, four.error) == (Existence.UNKNOWN, 4711)
    name, version, body = broker.asked[-1]
    assert (name, version) == ("Metadata", 13)
    assert body["allowAutoTopicCreation"] is False
    assert [one["name"] for one in body["topics"]] == [None] * 4


def test_a_thousand_topic_ids_go_in_requests_of_500() -> None:
    ids = [TopicId(number.to_bytes(16, "big")) for number in range(1, 1002)]

    def reply(talk: Talk) -> None:
        metadata(*(gone(TopicId(one["topicId"])) for one in talk.body["topics"]))(talk)

    with FakeBroker({"Metadata": reply}) as broker, client_of(broker.address) as client:
        assert len(client.topics(ids).topics) == 1001
    assert [len(body["topics"]) for name, _, body in broker.asked if name == "Metadata"] == [500, 500, 1]
    assert broker.connections == 1


def test_a_cluster_and_its_brokers() -> None:
    with FakeBroker() as broker, client_of(broker.address) as client:
        found = client.cluster()
    assert (found.cluster_id, found.controller_id) == (CLUSTER_ID, 1)
    assert [(node.node_id, str(node.address), node.rack) for node in found.nodes] == [(1, broker.address, None)]


def quorum(**changed: Any) -> Reply:
    voter = {
        "replicaId": 1,
        "replicaDirectoryId": bytes(16),
        "logEndOffset": 9,
        "lastFetchTimestamp": 1,
        "lastCaughtUpTimestamp": 1,
    }
    usual = {
        "partitionIndex": 0, "errorCode": 0, "errorMessage": "", "leaderId": 1, "leaderEpoch": 4, "highWatermark": 900,
        "currentVoters": (voter,), "observers": (),
    }  # fmt: skip
    parts = {"topicName": "__cluster_metadata", "partitions": (usual | changed,)}
    return lambda talk: talk.answer({"topics": (parts,)})


def test_the_quorum() -> None:
    with FakeBroker({"DescribeQuorum": quorum()}) as broker, client_of(broker.address) as client:
        found = client.quorum()
        broker.replies["DescribeQuorum"] = quorum(highWatermark=-1)
        unknown = client.quorum()
    assert (found.leader_id, found.leader_epoch, found.high_watermark, found.voters) == (1, 4, 900, (1,))
    assert unknown.high_watermark is None


def test_log_dirs_of_a_broker_addressed_by_its_node_id() -> None:
    part = {"partitionIndex": 3, "partitionSize": 10, "offsetLag": 0, "isFutureKey": True}
    log_dir = {
        "errorCode": 0, "logDir": "/d1", "topics": ({"name": "pay", "partitions": (part,)},), "totalBytes": 100,
        "usableBytes": -1, "isCordoned": False,
    }  # fmt: skip
    broken = log_dir | {"errorCode": 56, "logDir": "/d0", "topics": ()}
    with (
        FakeBroker({"DescribeLogDirs": lambda talk: talk.answer({"results": (log_dir, broken)})}) as broker,
        client_of(broker.address) as client,
    ):
        first, second = client.log_dirs(1)
        with pytest.raises(AskError) as caught:
            client.log_dirs(7)
    assert (first.log_dir, first.error, first.replicas) == ("/d0", 56, ())
    assert (second.log_dir, second.total_bytes, second.usable_bytes) == ("/d1", 100, None)
    (replica,) = second.replicas
    assert (str(replica.ref), replica.is_future, replica.size_bytes, replica.offset_lag) == ("pay-3", True, 10, 0)
    assert str(caught.value) == (
        "cluster-unreachable: broker 7: expected a broker that the cluster lists, found brokers 1; start that broker, "
        "or check bootstrap.servers"
    )


def offsets(*parts: tuple[int, int, int], name: str = "pay") -> Reply:
    told = tuple(
        {"partitionIndex": number, "errorCode": error, "timestamp": -1, "offset": offset, "leaderEpoch": 0}
        for number, error, offset in parts
    )
    return lambda talk: talk.answer({"topics": ({"name": name, "partitions": told},)})


def test_log_starts_are_asked_of_the_replica_and_not_of_the_leader() -> None:
    replies = {"Metadata": metadata(topic(ONE)), "ListOffsets": offsets((0, 0, 40), (2, 6, -1))}
    with FakeBroker(replies) as broker, client_of(broker.address) as client:
        found = client.log_starts(ONE, [2, 0], 1)
    assert found is not None
    assert (found.offsets, found.errors) == ({0: 40}, {2: 6})
    asked = next(body for name, _, body in broker.asked if name == "ListOffsets")
    assert asked["replicaId"] == -2
    assert [(one["partitionIndex"], one["timestamp"]) for one in asked["topics"][0]["partitions"]] == [(0, -2), (2, -2)]


def test_the_log_start_of_a_topic_that_was_made_again_meanwhile_is_none_of_its_own() -> None:
    states = [topic(ONE), gone(ONE)]

    def reply(talk: Talk) -> None:
        metadata(states.pop(0))(talk)

    with (
        FakeBroker({"Metadata": reply, "ListOffsets": offsets((0, 0, 40))}) as broker,
        client_of(broker.address) as client,
    ):
        assert client.log_starts(ONE, [0], 1) is None
        states.append(gone(ONE, 29))
        assert client.log_starts(ONE, [0], 1) is None


def cut_once(talk: Talk) -> None:
    talk.broker.replies["Metadata"] = metadata(gone(ONE))
    talk.cut()


def test_a_connection_that_was_idle_too_long_is_replaced_once() -> None:
    with FakeBroker({"Metadata": metadata(gone(ONE))}) as broker, client_of(broker.address) as client:
        client.topics([ONE])
        broker.replies["Metadata"] = cut_once
        client.topics([ONE])
        assert broker.connections == 2


def test_the_second_bootstrap_server_is_asked_when_the_first_is_not_there_or_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as closed:
        absent = f"127.0.0.1:{closed.getsockname()[1]}"
        closed.close()
        mute = f"127.0.0.1:{silent.getsockname()[1]}"
        with (
            FakeBroker() as broker,
            client_of(absent, mute, broker.address, timeout_ms=2000) as client,
        ):
            assert client.cluster().cluster_id == CLUSTER_ID


def test_an_old_broker_answers_the_question_for_its_versions_in_version_0() -> None:
    def reply(talk: Talk) -> None:
        if talk.version:
            talk.stream.sendall(talk.framed({"errorCode": 35, "apiKeys": ()}, version=0))
        else:
            talk.answer({"apiKeys": ({"apiKey": 3, "minVersion": 0, "maxVersion": 12},)})

    replies = {"ApiVersions": reply, "Metadata": metadata(gone(ONE))}
    with FakeBroker(replies) as broker, client_of(broker.address) as client:
        assert client.topics([ONE]).topics[ONE].existence is Existence.GONE
    assert [(name, version) for name, version, _ in broker.asked] == [
        ("ApiVersions", 3),
        ("ApiVersions", 0),
        ("Metadata", 12),
    ]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"])
def test_a_user_is_authenticated(mechanism: str) -> None:
    server = plain if mechanism == "PLAIN" else ScramServer(hash_name=mechanism[6:].replace("-", "").lower())
    lines = PLAIN if mechanism == "PLAIN" else (SCRAM[0], f"sasl.mechanism={mechanism}", SCRAM[2])
    with (
        FakeBroker({"SaslHandshake": handshake, "SaslAuthenticate": server}) as broker,
        client_of(broker.address, lines=lines) as client,
    ):
        assert client.cluster().cluster_id == CLUSTER_ID
    names = [name for name, _, _ in broker.asked]
    assert names[:3] == ["ApiVersions", "SaslHandshake", "SaslAuthenticate"]


# What is no answer.


def raw(data: bytes) -> Reply:
    return lambda talk: talk.stream.sendall(data)


def cut_after(count: int) -> Reply:
    def reply(talk: Talk) -> None:
        talk.stream.sendall(talk.framed({"brokers": (), "clusterId": CLUSTER_ID, "topics": ()})[:count])
        talk.cut()

    return reply


def changed_frame(change: Callable[[bytes], bytes]) -> Reply:
    def reply(talk: Talk) -> None:
        frame = talk.framed({"brokers": (), "clusterId": CLUSTER_ID, "topics": (gone(ONE), gone(TWO))})[4:]
        frame = change(frame)
        talk.stream.sendall(struct.pack(">i", len(frame)) + frame)

    return reply


MALFORMED = "malformed-answer: BROKER: expected"
TOO_LARGE = "answer-too-large: BROKER: expected an answer of at most 67108864 bytes, found"
LIES: dict[str, tuple[Reply, str]] = {
    "the answer to another request": (
        lambda talk: talk.answer({"brokers": (), "clusterId": None, "topics": ()}, correlation_id=99),
        f"{MALFORMED} the answer to request 2, found one to 99",
    ),
    "a length of 2 GiB": (
        raw(b"\x7f\xff\xff\xff"),
        f"{TOO_LARGE} 2147483647 bytes; check",
    ),
    "a byte above 64 MiB": (raw(b"\x04\x00\x00\x01"), f"{TOO_LARGE} 67108865 bytes"),
    "a length below 0": (raw(b"\xff\xff\xff\xff"), f"{MALFORMED} the length of an answer"),
    "a length below that of a header": (raw(b"\0\0\0\x03abc"), f"{MALFORMED} the length"),
    "half a length": (cut_after(2), "cluster-unreachable: BROKER: expected an answer of 4 bytes, found the end"),
    "half a frame": (cut_after(9), "cluster-unreachable: BROKER: expected an answer of "),
    "no answer at all": (lambda talk: talk.cut(), "cluster-unreachable: BROKER: expected an answer of 4 bytes"),
    "an answer that ends early": (changed_frame(lambda frame: frame[:-3]), f"{MALFORMED} in Metadata response v13"),
    "an answer with more bytes": (changed_frame(lambda frame: frame + b"\0\0"), f"{MALFORMED} in Metadata"),
    "a count beyond all": (
        changed_frame(lambda frame: frame[:9] + b"\xff\xff\xff\xff\x0f" + frame[10:]),
        f"{MALFORMED} in Metadata response v13",
    ),
    "an id that was not asked for": (metadata(gone(ONE), gone(THREE)), f"{MALFORMED} an answer about each of 2"),
    "an id left out": (metadata(gone(ONE)), f"{MALFORMED} an answer about each of 2 topic ids, found one about 1"),
    "an id twice": (metadata(gone(ONE), gone(ONE)), f"{MALFORMED} topic ids that are each named once"),
    "a topic without name": (metadata(topic(ONE, name=None), gone(TWO)), f"{MALFORMED} the name and the partitions"),
    "a topic without partitions": (metadata(topic(ONE, partitions=()), gone(TWO)), f"{MALFORMED} the name and"),
    "a partition twice": (
        metadata(topic(ONE, partitions=(partition(0), partition(0))), gone(TWO)),
        f"{MALFORMED} partitions of pay that are each named once",
    ),
    "an error that nobody knows": (
        metadata(errorCode=4711), "cluster-answered-error: BROKER: expected the metadata of topics, found error 4711"
    ),
    "an error of the whole answer": (
        metadata(errorCode=31), "found CLUSTER_AUTHORIZATION_FAILED (31)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LIES)
def test_a_server_that_lies(case: str) -> None:
    reply, expected = LIES[case]
    assert expected in failed(FakeBroker({"Metadata": reply}))


VERSIONS: dict[str, tuple[Reply, str]] = {
    "too old for topic ids": (
        api_versions({3: (0, 9)}),
        "api-not-supported: BROKER: expected Metadata in version 12 to 13, found version 0 to 9; ask a broker",
    ),
    "too new": (api_versions({3: (14, 20)}), "expected Metadata in version 12 to 13, found version 14 to 20"),
    "without the request": (api_versions({3: None}), "found no such request"),
    "with an error": (
        lambda talk: talk.answer({"errorCode": 42, "apiKeys": ()}),
        "cluster-answered-error: BROKER: expected the versions that the broker supports, found INVALID_REQUEST (42)",
    ),
    "with bytes that are none": (raw(b"\0\0\0\x06\0\0\0\x01\0\0"), f"{MALFORMED} in ApiVersions response"),
    "with a header alone": (raw(b"\0\0\0\x04\0\0\0\x01"), f"{MALFORMED} in ApiVersions response"),
}  # fmt: skip


@pytest.mark.parametrize("case", VERSIONS)
def test_a_server_with_other_versions(case: str) -> None:
    reply, expected = VERSIONS[case]
    assert expected in failed(FakeBroker({"ApiVersions": reply, "Metadata": metadata()}))


def dripping(talk: Talk, count: int = 500) -> None:
    """Send the start of an answer a byte at a time, for longer than the client waits."""
    for byte in b"\0\0\x02\0" + bytes(count - 1):
        talk.stream.sendall(bytes([byte]))
        time.sleep(0.1)


STALLS: dict[str, Mapping[str, Reply]] = {
    "a byte now and then": {"Metadata": dripping},
    "never": {"Metadata": lambda talk: None},
    "half, then never": {"Metadata": raw(b"\0\0\0\x09\0\0\0")},
    "never, when asked for its versions": {"ApiVersions": lambda talk: None},
    "a byte now and then, when asked for its versions": {"ApiVersions": lambda talk: dripping(talk, 3)},
}


@pytest.mark.parametrize("case", STALLS)
def test_a_server_that_stalls(case: str) -> None:
    line = failed(FakeBroker(STALLS[case]), timeout_ms=600)
    assert line.startswith("cluster-timeout: BROKER: expected an answer within ")
    assert line.endswith(
        " ms, found none; check that the broker runs and is not overloaded; request.timeout.ms waits longer"
    )


def test_a_server_that_is_not_there() -> None:
    broker = FakeBroker()
    with broker:
        pass
    with (
        client_of(broker.address) as client,
        pytest.raises(AskError, match=r"cluster-unreachable: .*Connection refused"),
    ):
        client.cluster()


def test_a_host_name_that_does_not_exist() -> None:
    with client_of("no-such-host.invalid:9092", timeout_ms=5000) as client, pytest.raises(AskError) as caught:
        client.cluster()
    assert caught.value.slug in ("cluster-unreachable", "cluster-timeout")


@pytest.mark.parametrize("host", [".a.b", "a\0b", "x" * 300, "é" * 70])
def test_a_broker_that_advertises_no_host(host: str) -> None:
    def reply(talk: Talk) -> None:
        brokers = ({"brokerId": 1, "host": host, "port": 9092, "rack": None, "isFenced": False},)
        talk.answer({"clusterId": CLUSTER_ID, "controllerId": 1, "brokers": brokers})

    with (
        FakeBroker({"DescribeCluster": reply}) as broker,
        client_of(broker.address, timeout_ms=5000) as client,
        pytest.raises(AskError) as caught,
    ):
        client.log_dirs(1)
    assert caught.value.slug in ("cluster-unreachable", "cluster-timeout")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(("host", "port"), [("", 9092), ("a", 0), ("a", 65536), ("a", -1)])
def test_a_broker_that_advertises_no_port(host: str, port: int) -> None:
    def reply(talk: Talk) -> None:
        brokers = ({"brokerId": 1, "host": host, "port": port, "rack": None, "isFenced": False},)
        talk.answer({"clusterId": CLUSTER_ID, "controllerId": 1, "brokers": brokers})

    with (
        FakeBroker({"DescribeCluster": reply}) as broker,
        client_of(broker.address) as client,
        pytest.raises(AskError, match=r"malformed-answer: .*expected host and port of broker 1"),
    ):
        client.cluster()


OTHERS: dict[str, tuple[str, Reply, Callable[[ClusterClient], object], str]] = {
    "no brokers": (
        "DescribeCluster", lambda talk: talk.answer({"clusterId": "x", "brokers": ()}), lambda one: one.cluster(),
        "malformed-answer",
    ),
    "no right to see log dirs": (
        "DescribeLogDirs", lambda talk: talk.answer({"errorCode": 31, "results": ()}), lambda one: one.log_dirs(1),
        "cluster-answered-error",
    ),
    "no log dirs": (
        "DescribeLogDirs", lambda talk: talk.answer({"results": ()}), lambda one: one.log_dirs(1), "malformed-answer"
    ),
    "no right to see the quorum": (
        "DescribeQuorum", lambda talk: talk.answer({"errorCode": 31, "topics": ()}), lambda one: one.quorum(),
        "cluster-answered-error",
    ),
    "a quorum without leader": ("DescribeQuorum", quorum(leaderId=-1), lambda one: one.quorum(), "malformed-answer"),
    "an error of it": ("DescribeQuorum", quorum(errorCode=6), lambda one: one.quorum(), "cluster-answered-error"),
    "the quorum of nothing": (
        "DescribeQuorum", lambda talk: talk.answer({"topics": ()}), lambda one: one.quorum(), "malformed-answer"
    ),
    "the log start of another topic": (
        "ListOffsets", offsets((0, 0, 1), name="other"), lambda one: one.log_starts(ONE, [0], 1), "malformed-answer"
    ),
    "the log start of another partition": (
        "ListOffsets", offsets((1, 0, 1)), lambda one: one.log_starts(ONE, [0], 1), "malformed-answer"
    ),
    "a log start below 0": (
        "ListOffsets", offsets((0, 0, -1)), lambda one: one.log_starts(ONE, [0], 1), "malformed-answer"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_another_answer_that_is_none(case: str) -> None:
    name, reply, ask, slug = OTHERS[case]
    replies = {"Metadata": metadata(topic(ONE)), name: reply}
    with FakeBroker(replies) as broker, client_of(broker.address) as client, pytest.raises(AskError) as caught:
        ask(client)
    assert caught.value.slug == slug


SCRAM_LIES: dict[str, tuple[Reply, str]] = {
    "a wrong signature": (ScramServer(signature=lambda right: bytes(len(right))), "found another signature"),
    "a signature of another length": (ScramServer(signature=lambda right: right[:-1]), "found another signature"),
    "iterations of hours": (ScramServer(iterations=2**31 - 1), "4096 to 262144 iterations, found 2147483647"),
    "too few iterations": (ScramServer(iterations=1), "4096 to 262144 iterations, found 1"),
    "another nonce": (ScramServer(nonce=lambda ours: "other"), "found another nonce"),
    "a nonce that is ours alone": (ScramServer(nonce=lambda ours: ours), "found another nonce"),
    "an answer that is no SCRAM": (lambda talk: talk.answer({"errorMessage": None, "authBytes": b"\xff"}), "in UTF-8"),
    "an error": (refusing(58), "by SCRAM-SHA-512, found SASL_AUTHENTICATION_FAILED (58)"),
    "another hash": (ScramServer(hash_name="sha256"), "found SASL_AUTHENTICATION_FAILED (58)"),
}  # fmt: skip


@pytest.mark.parametrize("case", SCRAM_LIES)
def test_a_scram_server_that_lies(case: str) -> None:
    reply, expected = SCRAM_LIES[case]
    line = failed(FakeBroker({"SaslHandshake": handshake, "SaslAuthenticate": reply}), lines=SCRAM)
    assert line.startswith("authentication-failed: BROKER: expected ")
    assert expected in line


def test_a_plain_password_that_is_refused_stands_in_no_error() -> None:
    line = failed(FakeBroker({"SaslHandshake": handshake, "SaslAuthenticate": refusing(58)}), lines=PLAIN)
    assert line == (
        "authentication-failed: BROKER: expected the user alice to be authenticated by PLAIN, found "
        "SASL_AUTHENTICATION_FAILED (58); check the user name and the password in sasl.jaas.config, and that the "
        "broker knows the user"
    )


def test_an_answer_to_a_password_that_is_malformed_stands_in_no_error() -> None:
    text = PASSWORD.encode() + b"\xff"
    reply: Reply = lambda talk: talk.stream.sendall(  # noqa: E731
        struct.pack(">iih", 4 + 1 + 2 + 1 + len(text), talk.header.correlation_id, 0)[:8]
        + b"\0\0\0" + bytes([len(text) + 1]) + text
    )  # fmt: skip
    line = failed(FakeBroker({"SaslHandshake": handshake, "SaslAuthenticate": reply}), lines=PLAIN)
    assert line.startswith(f"{MALFORMED} in SaslAuthenticate response v2")
    assert line.endswith("found other bytes")


def test_a_mechanism_that_the_listener_does_not_have() -> None:
    reply: Reply = lambda talk: talk.answer({"errorCode": 33, "mechanisms": ("GSSAPI",)})  # noqa: E731
    line = failed(FakeBroker({"SaslHandshake": reply}), lines=SCRAM)
    assert (
        "the mechanism SCRAM-SHA-512 on this listener, found UNSUPPORTED_SASL_MECHANISM (33), the listener has GSSAPI"
        in line
    )


def test_a_refused_user_is_not_tried_on_the_next_server() -> None:
    replies = {"SaslHandshake": handshake, "SaslAuthenticate": refusing(58)}
    with (
        FakeBroker(replies) as one,
        FakeBroker(replies) as two,
        client_of(one.address, two.address, lines=SCRAM) as client,
    ):
        with pytest.raises(AskError, match="authentication-failed"):
            client.cluster()
        assert two.asked == []


def test_a_server_that_closes_while_it_is_asked_leaves_no_thread_and_no_open_connection() -> None:
    before = threading.active_count()
    with (
        FakeBroker({"Metadata": lambda talk: talk.cut()}) as broker,
        client_of(broker.address) as client,
        pytest.raises(AskError),
    ):
        client.topics([ONE])
    assert threading.active_count() == before
