"""One long-lived JVM (``Helper.java``) that is admin client, producer and consumer of the tests.

It answers a line per line, so a command costs milliseconds and not the second a stock tool takes to start.
What the stock tools themselves print is had through ``rig.Broker.tool``.

Not here: brokers, and any judgement of what is read.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from tests.kafka.jvm import RigError, java_command

_HEAP_MIB = 256
_QUIT_SECONDS = 5


class ClientError(RigError):
    """The cluster, or the client library, refused; the message starts with the Java exception's name."""


class ReplicaKey(NamedTuple):
    """What is unique among the replicas of one broker."""

    log_dir: str
    topic: str
    partition: int
    is_future: bool


class Reported(NamedTuple):
    """What a broker says of one replica."""

    size_bytes: int
    offset_lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed:
    """What lay in a partition between its log start and its end when asked."""

    begin: int
    end: int
    first: int
    """Offset of the first record, -1 without one."""
    last: int
    records: int
    crc32: int
    """Over the values, in order."""


class Digest(NamedTuple):
    """All that is in a partition between its log start and its end: every field of every record."""

    begin: int
    end: int
    records: int
    sha256: str
    """Over partition, offset, timestamp and its type, key, value and headers of each record, in order."""


class Written(NamedTuple):
    """What was acknowledged of all that was written to a partition."""

    records: int
    crc32: int
    """Over the values, in order."""


class Client:
    """Speaks to the brokers at ``servers``. Starts a JVM; ``close`` ends it."""

    def __init__(self, *, libs: Path, classes: Path, root: Path, servers: str) -> None:
        command = java_command(libs=libs, root=root, heap_mib=_HEAP_MIB, level="OFF", classes=classes)
        self._stderr = root / "client.err"
        with self._stderr.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*command, "Helper"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                encoding="utf-8",
            )
        self._call("servers", servers)

    @property
    def pid(self) -> int:
        """The process id of the JVM."""
        return self._process.pid

    def _call(self, *words: str) -> object:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with contextlib.suppress(BrokenPipeError):  # the end of its stdout says it better
            stdin.write("\t".join(words) + "\n")
            stdin.flush()
        line = stdout.readline()
        if not line:
            raise RigError(f"the client died at {words[0]}: {self._stderr.read_text(errors='replace')[-500:]}")
        answer = cast(dict[str, object], json.loads(line))
        if "error" in answer:
            raise ClientError(f"{' '.join(words)}: {answer['error']}")
        return answer["ok"]

    def create(
        self, topic: str, partitions: int = 1, *, replication: int = 1, configs: dict[str, str] | None = None
    ) -> str:
        """Create a topic; return its id as base64 text."""
        pairs = [f"{key}={value}" for key, value in (configs or {}).items()]
        return str(self._call("create", topic, str(partitions), str(replication), *pairs))

    def create_on(self, topic: str, replicas: list[list[int]], configs: dict[str, str] | None = None) -> str:
        """Create a topic whose partition i has its replicas on the brokers ``replicas[i]``; return its id."""
        assignment = "@" + "/".join(",".join(map(str, ids)) for ids in replicas)
        pairs = [f"{key}={value}" for key, value in (configs or {}).items()]
        return str(self._call("create", topic, assignment, "0", *pairs))

    def delete(self, *topics: str) -> None:
        """Delete topics by one request. The broker renames and erases their directories later."""
        self._call("delete", *topics)

    def topics(self) -> list[str]:
        """Return the names of all topics, internal ones included, sorted."""
        return cast(list[str], self._call("topics"))

    def in_sync(self, topic: str, partition: int) -> list[int]:
        """Return the node ids of the in-sync replicas; empty without a leader, or while the topic is not known."""
        try:
            return cast(list[int], self._call("in-sync", topic, str(partition)))
        except ClientError as error:
            # The controller has made the topic, and the broker that answers has not read of it yet.
            if "UnknownTopicOrPartitionException" in str(error):
                return []
            raise

    def replicas(self, topic: str, partition: int) -> list[int]:
        """Return the node ids that have a partition, or are to; those it is being taken from too."""
        return cast(list[int], self._call("replicas", topic, str(partition)))

    def produce(
        self,
        topic: str,
        partition: int = 0,
        *,
        records: int,
        value_bytes: int = 20,
        keys: int = 0,
        headers: bool = False,
        transactional_id: str = "",
    ) -> int:
        """Write records and wait until all are acknowledged; return the offset of the last."""
        words = ["produce", topic, str(partition), str(records), str(value_bytes), str(keys), str(int(headers))]
        return int(cast(int, self._call(*words, *([transactional_id] if transactional_id else []))))

    def spread(self, topics: Sequence[str], partitions: int, *, records: int) -> int:
        """Write to each of the first partitions of each topic, each record a batch of its own; return how many."""
        return int(cast(int, self._call("spread", str(records), str(partitions), *topics)))

    def begin_writing(self, topic: str, partitions: int) -> None:
        """Write to each partition of a topic from now on, beside all other calls."""
        self._call("write", "begin", topic, str(partitions))

    def acknowledged(self) -> int:
        """Return how many records of those that write on were acknowledged so far.

        Raises:
            ClientError: A record was not.
        """
        return sum(one.records for one in self._written("on"))

    def end_writing(self) -> list[Written]:
        """Write no more; return what was acknowledged, by partition.

        Raises:
            ClientError: A record was not.
        """
        return self._written("end")

    def _written(self, what: str) -> list[Written]:
        return [Written(*row) for row in cast(list[tuple[int, int]], self._call("write", what))]

    def consume(self, topic: str, partition: int = 0, *, isolation: str = "read_uncommitted") -> Consumed:
        """Read a partition from its log start to its end."""
        answer = cast(dict[str, int], self._call("consume", topic, str(partition), isolation))
        return Consumed(**answer)

    def produce_rich(
        self, topic: str, partition: int = 0, *, records: int, transactional_id: str = "", commit: bool = True
    ) -> int:
        """Write records with and without keys, values and headers, each of another time; return the last offset."""
        end = [transactional_id, "commit" if commit else "abort"] if transactional_id else []
        return int(cast(int, self._call("rich", topic, str(partition), str(records), *end)))

    def digest(self, topic: str, partition: int = 0, *, isolation: str = "read_uncommitted") -> Digest:
        """Read a partition from its log start to its end, and digest every field of every record."""
        answer = cast(dict[str, object], self._call("digest", topic, str(partition), isolation))
        begin, end, records = (int(cast(int, answer[name])) for name in ("begin", "end", "records"))
        return Digest(begin, end, records, str(answer["sha256"]))

    def move(self, topic: str, partition: int, node_id: int, log_dir: Path) -> None:
        """Ask a broker to move its replica to another of its log dirs; returns before that has happened."""
        self._call("move", topic, str(partition), str(node_id), str(log_dir))

    def configure_broker(self, node_id: int, key: str, value: str) -> None:
        """Set a dynamic configuration of one broker."""
        self._call("configure", "BROKER", str(node_id), key, value)

    def configure_topic(self, topic: str, key: str, value: str) -> None:
        """Set a configuration of a topic."""
        self._call("configure", "TOPIC", topic, key, value)

    def unconfigure_topic(self, topic: str, key: str) -> None:
        """Take a configuration of a topic back to its default."""
        self._call("unset", topic, key)

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic so many partitions, more than it has."""
        self._call("grow", topic, str(partitions))

    def reassign(self, topic: str, partition: int, node_ids: list[int] | None) -> None:
        """Ask for other replicas of a partition, or (``None``) cancel that; returns before it has happened."""
        self._call("reassign", topic, str(partition), "-" if node_ids is None else ",".join(map(str, node_ids)))

    def set_quota(self, user: str, bytes_per_second: float | None) -> None:
        """Set or (``None``) remove what a user may produce."""
        self._call("quota", user, "-" if bytes_per_second is None else str(bytes_per_second))

    def set_acl(self, user: str, topic: str, operation: str, *, is_allowed: bool) -> None:
        """Allow an operation on a topic, or take that back. The broker needs an authorizer."""
        self._call("allow" if is_allowed else "disallow", user, topic, operation)

    def set_scram(self, user: str, *, is_there: bool, mechanism: str = "SCRAM-SHA-256") -> None:
        """Give a user a SCRAM credential with the password ``secret``, or remove it. Brokers of 3.5 or newer."""
        self._call("scram", user if is_there else f"-{user}", mechanism)

    def quorum(self) -> tuple[int, int]:
        """Return the leader's epoch and the high watermark of the metadata log."""
        epoch, watermark = cast(list[int], self._call("quorum"))
        return epoch, watermark

    def trim(self, topic: str, partition: int, offset: int) -> int:
        """Delete the records below ``offset``; return the new log start."""
        return int(cast(int, self._call("trim", topic, str(partition), str(offset))))

    def log_dirs(self, node_id: int) -> dict[ReplicaKey, Reported]:
        """Return what a broker reports of every replica it holds."""
        rows = cast(list[tuple[str, str, int, bool, int, int]], self._call("log-dirs", str(node_id)))
        return {ReplicaKey(d, t, p, f): Reported(size, lag) for d, t, p, f, size, lag in rows}

    def close(self) -> None:
        """End the JVM, if need be by force."""
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._process.communicate("quit\n", timeout=_QUIT_SECONDS)
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
