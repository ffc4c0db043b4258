"""Asking the live cluster: about the topic ids of these disks, and how far its metadata quorum has committed.

One deadline for all of it: ``request.timeout.ms`` of the client properties file, and at most ten seconds, because a
daemon that answers a request captures nothing meanwhile. No lock of Kafka's is held while a broker is asked.

Not here: what the answers mean (``cluster.live``, ``decide``), the client (``wire.client``).

Spec: design §4, source "the live cluster"; KIP-516; KIP-836; attacks A2, A20.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from logdir.clock import monotonic_ms
from logdir.cluster.live import LiveAnswers, LiveImages, images_of
from logdir.errors import LogDirError, Problem, RefusedError
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts
from logdir.refusal_slug import Why
from logdir.service.cluster.read_whole import read_whole
from logdir.service.cluster.source import QuorumWord, SourceRequest
from logdir.wire.client.answers import Cluster, Topics
from logdir.wire.client.cluster_client import ClusterClient
from logdir.wire.client.errors import AskError, AuthenticationFailedError
from logdir.wire.client.settings import MAX_BYTES, ClientSettings, parse

MOST_MS: Final = 10 * 1000
"""Time for all questions of one reading."""
_BROKERS: Final = 2


def read_settings(path: str, option: str = "--from") -> ClientSettings:
    """Read a client properties file.

    Args:
        path: The file.
        option: What names the file, for the error.

    Raises:
        ConfigError: it cannot be read or does not fit; all problems at once.
    """
    return parse(read_whole(path, MAX_BYTES, option), path)


def require_client(path: str, option: str) -> None:
    """Check that a client properties file and its stores can be used; no broker is asked.

    Args:
        path: The file.
        option: What names the file, for the error.

    Raises:
        ConfigError: they cannot; all problems at once.
    """
    ClusterClient(read_settings(path, option)).close()


def read_live(path: str, facts: Iterable[LogDirFacts], node_id: int, now_ms: int) -> LiveImages:
    """Ask the cluster about the topic ids of these disks. Blocks.

    Args:
        path: The client properties file.
        facts: Facts of every configured log dir.
        node_id: The node of this host.
        now_ms: Current wall clock time, milliseconds.

    Raises:
        ConfigError: the file cannot be read or does not fit.
        AskError: no broker gave a usable answer.
        RefusedError: two brokers of one cluster do not name one cluster id.
    """
    settings, until_ms = read_settings(path), monotonic_ms() + MOST_MS
    partitions = partitions_of(facts)
    with _client(settings, until_ms) as client:
        cluster = client.cluster()
    answers = _ask_two(settings, until_ms, cluster, sorted(partitions), node_id) if partitions else {}
    for number, answer in answers.items():
        if answer.cluster_id != cluster.cluster_id:
            raise _another(f"broker {number}", cluster.cluster_id, answer.cluster_id)
    return images_of(LiveAnswers(origin=path, asked_ms=now_ms, cluster=cluster, topics=answers), partitions, node_id)


def partitions_of(facts: Iterable[LogDirFacts]) -> Mapping[TopicId, set[int]]:
    """Return the topic ids of these disks, staged ones included, with their partitions there."""
    found: dict[TopicId, set[int]] = {}
    for one in facts:
        refs = [item.ref for item in one.replicas] + [item.ref for item in one.staged]
        refs += [item.marker.ref for item in one.staged if item.marker is not None]
        for ref in refs:
            if ref.topic_id is not None and any(bytes(ref.topic_id)):
                found.setdefault(ref.topic_id, set()).add(ref.partition)
    return found


def ask_quorum(settings: ClientSettings, cluster_id: str | None) -> QuorumWord | None:
    """Ask how far the metadata quorum has committed its log. Blocks.

    Args:
        settings: How the cluster is asked.
        cluster_id: Cluster id of the log dirs.

    Returns:
        ``None``: the leader of the quorum does not know it yet.

    Raises:
        AskError: there is no usable answer; a cluster with ZooKeeper has no quorum.
        RefusedError: the brokers are of another cluster.
    """
    until_ms = monotonic_ms() + MOST_MS
    with _client(settings, until_ms) as client:
        found = client.cluster().cluster_id
        if cluster_id is None or found != cluster_id:
            raise _another("client.properties", cluster_id or "not known", found)
        quorum = client.quorum()
    return None if quorum.high_watermark is None else QuorumWord(quorum.high_watermark, quorum.leader_epoch)


def committed_source(source: SourceRequest, path: str | None, cluster_id: str | None) -> SourceRequest:
    """Return a source; the broker's own metadata log up to the high watermark of the quorum, if that can be asked.

    Args:
        source: The source that the operator named, or the default.
        path: The client properties file; ``None``: no broker is asked.
        cluster_id: Cluster id of the log dirs.
    """
    if path is None or source != SourceRequest():
        return source
    try:
        word = ask_quorum(read_settings(path, "client.properties"), cluster_id)
    except LogDirError:
        return source  # The log is read as without a client; logdirctl status of the daemon shows why.
    return (
        source if word is None else source._replace(high_watermark=word.high_watermark, leader_epoch=word.leader_epoch)
    )


def _client(settings: ClientSettings, until_ms: int) -> ClusterClient:
    left_ms = max(1, min(settings.request_timeout_ms, until_ms - monotonic_ms()))
    return ClusterClient(replace(settings, request_timeout_ms=left_ms))


def _ask_two(
    settings: ClientSettings, until_ms: int, cluster: Cluster, topic_ids: list[TopicId], node_id: int
) -> dict[int, Topics]:
    """Return the answers of two brokers, of fewer if no others answer; the broker of this host comes last.

    Raises:
        AskError: none answers.
    """
    answers: dict[int, Topics] = {}
    addresses = set()
    error: AskError | None = None
    for node in sorted(cluster.nodes, key=lambda one: (one.node_id == node_id, one.node_id)):
        # Two node ids at one address are one server.
        if len(answers) == _BROKERS or monotonic_ms() >= until_ms or node.address in addresses:
            continue
        addresses.add(node.address)
        try:
            with _client(settings, until_ms) as client:
                answers[node.node_id] = client.topics(topic_ids, node.node_id)
        except AuthenticationFailedError:
            raise
        except AskError as found:
            error = error or found
    if not answers and error is not None:
        raise error
    return answers


def _another(where: str, expected: str, found: str | None) -> RefusedError:
    fix = "name brokers of the cluster of the log dirs in bootstrap.servers"
    return RefusedError.of(Problem(Why.SOURCE_FOREIGN.value, where, f"cluster {expected}", found or "none", fix))
