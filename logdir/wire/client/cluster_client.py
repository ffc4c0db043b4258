"""Asks the brokers of a cluster: which topics exist, where logs start, which log dirs there are, who leads the quorum.

Read-only: none of these requests changes anything, and none creates a topic. Every call has one deadline,
``request.timeout.ms``, for all it does. A client serves one thread.

Not here: what follows from an answer (``logdir.cluster``).

Spec: design §4, source "the live cluster"; KIP-516; KIP-700; KIP-836.
"""

from __future__ import annotations

import ssl
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Any, Final, Self

from logdir.ids import TopicId
from logdir.paths import METADATA_TOPIC
from logdir.wire.client import answers, tls
from logdir.wire.client.answers import Cluster, Existence, Offsets, Quorum, ReportedLogDir, Topics, TopicState
from logdir.wire.client.deadline import Deadline
from logdir.wire.client.errors import AskError, AuthenticationFailedError, ClusterUnreachableError
from logdir.wire.client.session import Session, open_session
from logdir.wire.client.settings import Address, ClientSettings

_BY_TOPIC_ID: Final = 12
"""Versions 10 and 11 of Metadata have the field for the id, and a broker does not look it up."""
_IDS_PER_REQUEST: Final = 500
_LOG_START: Final = -2
_ANY_REPLICA: Final = -2
"""As replica id of ListOffsets: the broker answers from its own replica, also if it is not the leader."""


class ClusterClient:
    """Connections to the brokers of one cluster; ``close`` ends them."""

    def __init__(self, settings: ClientSettings) -> None:
        """Prepare a client; reads the stores of TLS, and connects to no broker yet.

        Raises:
            ConfigError: a store of TLS cannot be used.
        """
        self._settings = settings
        self._context: ssl.SSLContext | None = None if settings.tls is None else tls.context_of(settings.tls)
        self._sessions: dict[int | None, Session] = {}
        self._addresses: dict[int, Address] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; may be called twice."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def cluster(self) -> Cluster:
        """Return the cluster and its brokers, as one of the bootstrap servers describes it. Blocks.

        Raises:
            AskError: there is no usable answer.
        """
        return self._cluster(self._deadline())

    def topics(self, topic_ids: Collection[TopicId], node_id: int | None = None) -> Topics:
        """Return one broker's answer about topics, asked by their ids. Blocks.

        A broker that has started a moment ago may not know every topic yet, so that *gone* from one broker proves
        nothing.

        Args:
            topic_ids: Ids, none of them zero.
            node_id: The broker; ``None``: a bootstrap server.

        Raises:
            AskError: there is no usable answer, or the answers to two requests come from different clusters.
        """
        deadline = self._deadline()
        ids = sorted(set(topic_ids))
        states: dict[TopicId, TopicState] = {}
        cluster_ids: set[str | None] = set()
        for start in range(0, max(len(ids), 1), _IDS_PER_REQUEST):
            part = ids[start : start + _IDS_PER_REQUEST]
            found = self._topics(part, node_id, deadline)
            states.update(found.topics)
            cluster_ids.add(found.cluster_id)
        if len(cluster_ids) > 1:
            raise ClusterUnreachableError(
                self._where(node_id), expected="one cluster", found="several", fix="check bootstrap.servers"
            )
        return Topics(cluster_id=cluster_ids.pop(), topics=states)

    def log_starts(self, topic_id: TopicId, partitions: Collection[int], node_id: int) -> Offsets | None:
        """Return the log start offsets of a broker's own replicas of a topic. Blocks.

        ListOffsets names a topic by its name only. So the id is asked for before and after: a topic id that exists
        both times had this name all the time.

        Args:
            topic_id: The topic.
            partitions: Numbers of its partitions.
            node_id: The broker that has the replicas, as leader or as follower.

        Returns:
            The offsets; ``None`` if the topic id does not exist, is not to be seen by this user, or was removed
            meanwhile.

        Raises:
            AskError: there is no usable answer.
        """
        deadline = self._deadline()
        before = self._topics([topic_id], node_id, deadline).topics[topic_id]
        if before.existence is not Existence.PRESENT or before.name is None:
            return None
        asked = sorted(set(partitions))
        body = {
            "replicaId": _ANY_REPLICA,
            "topics": [
                {
                    "name": before.name,
                    "partitions": [
                        {"partitionIndex": number, "currentLeaderEpoch": -1, "timestamp": _LOG_START}
                        for number in asked
                    ],
                }
            ],
        }
        # Up to version 3 a partition has no epoch, and version 0 answers with a list.
        session, answer = self._ask(node_id, "ListOffsets", body, deadline, lowest=4)
        offsets = answers.offsets_of(session.where, answer, before.name, asked)
        after = self._topics([topic_id], node_id, deadline).topics[topic_id]
        return offsets if after.name == before.name else None

    def quorum(self) -> Quorum:
        """Return the state of the metadata quorum; the broker asks its leader. Blocks.

        Raises:
            AskError: there is no usable answer; a cluster with ZooKeeper has no such request.
        """
        body = {"topics": [{"topicName": METADATA_TOPIC, "partitions": [{"partitionIndex": 0}]}]}
        session, answer = self._ask(None, "DescribeQuorum", body, self._deadline())
        return answers.quorum_of(session.where, answer, METADATA_TOPIC)

    def log_dirs(self, node_id: int) -> tuple[ReportedLogDir, ...]:
        """Return the log dirs of a broker and the replicas in them, by path. Blocks.

        Raises:
            AskError: there is no usable answer.
        """
        session, answer = self._ask(node_id, "DescribeLogDirs", {"topics": None}, self._deadline(), lowest=1)
        return answers.log_dirs_of(session.where, answer)

    def _deadline(self) -> Deadline:
        return Deadline(self._settings.request_timeout_ms)

    def _cluster(self, deadline: Deadline) -> Cluster:
        session, answer = self._ask(None, "DescribeCluster", {}, deadline)
        cluster = answers.cluster_of(session.where, answer)
        self._addresses = {node.node_id: node.address for node in cluster.nodes}
        return cluster

    def _topics(self, topic_ids: Sequence[TopicId], node_id: int | None, deadline: Deadline) -> Topics:
        body = {
            "topics": [{"topicId": bytes(topic_id), "name": None} for topic_id in topic_ids],
            "allowAutoTopicCreation": False,
        }
        session, answer = self._ask(node_id, "Metadata", body, deadline, lowest=_BY_TOPIC_ID)
        return answers.topics_of(session.where, answer, topic_ids)

    def _ask(
        self, node_id: int | None, name: str, body: dict[str, Any], deadline: Deadline, lowest: int = 0
    ) -> tuple[Session, dict[str, Any]]:
        session = self._sessions.get(node_id)
        if session is not None and session.is_open:
            # A broker closes a connection that was idle, or authenticated, for a long time.
            try:
                return session, session.ask(name, body, deadline, lowest)
            except ClusterUnreachableError:
                pass
        session = self._bootstrapped(deadline) if node_id is None else self._connected(node_id, deadline)
        self._sessions[node_id] = session
        return session, session.ask(name, body, deadline, lowest)

    def _connected(self, node_id: int, deadline: Deadline) -> Session:
        if node_id not in self._addresses:
            self._cluster(deadline)
        address = self._addresses.get(node_id)
        if address is None:
            listed = ", ".join(map(str, self._addresses))
            raise ClusterUnreachableError(
                f"broker {node_id}",
                expected="a broker that the cluster lists",
                found=f"brokers {listed}",
                fix="start that broker, or check bootstrap.servers",
            )
        try:
            return open_session(address, self._settings, self._context, deadline, f"broker {node_id} ({address})")
        except AskError:
            del self._addresses[node_id]  # It may have moved.
            raise

    def _bootstrapped(self, deadline: Deadline) -> Session:
        error: AskError | None = None
        for index, address in enumerate(self._settings.bootstrap):
            others = len(self._settings.bootstrap) - index
            try:
                # A server that accepts and never answers leaves time for the others.
                return open_session(address, self._settings, self._context, deadline.part(others))
            except AuthenticationFailedError:
                raise  # The others would refuse, too, and may lock the user out.
            except AskError as found:
                error = error or found
        assert error is not None  # There is at least one address.
        raise error

    def _where(self, node_id: int | None) -> str:
        return "the cluster" if node_id is None else f"broker {node_id}"
