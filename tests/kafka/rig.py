"""Stock brokers on loopback: a cluster of one to three KRaft nodes with several log dirs each.

A rig keeps everything under one root, ends what it started by process id and removes the root when it closes.
A broker can be stopped cleanly or killed, and started again on the same log dirs, ports and configuration;
between, its log dirs are the test's to change.

Not here: fetching the jars (``fetch.py``), reading or judging what lies in a log dir.

Spec: design §9, row "real Kafka".
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.kafka.client import Client, ReplicaKey, Reported
from tests.kafka.jvm import RigError, compiled_helper, java_command, take_slot

BROKER_HEAP_MIB: Final = 320
TOOL_HEAP_MIB: Final = 256
MOVE_THROTTLE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
CLEAN_EXIT: Final = 143
"""What a JVM that shut down in order because of SIGTERM exits with: 128 + 15."""
_START_SECONDS: Final = 60
_STOP_SECONDS: Final = 60
_TOOL_SECONDS: Final = 60
_STARTED: Final = re.compile(r"Kafka Server started|\[KafkaServer id=\d+\] started")
_TROUBLE: Final = re.compile(r"^\S+ (ERROR|FATAL) |^(Caused by: )?[a-z]\w*(\.\w+)+(Exception|Error)\b")

_DEFAULTS: Final[Mapping[str, str]] = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "4",
    "log.cleaner.dedupe.buffer.size": "8388608",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "broker.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    # A move's rate is averaged over these windows. Hours of them make a throttle of 1 B/s let one chunk pass
    # and then nothing, so that a future replica stays as it is for as long as a test looks at it.
    "alter.log.dirs.replication.quota.window.size.seconds": "3600",
    # One chunk is not the whole log.
    "replica.fetch.max.bytes": "262144",
}


def free_ports(count: int) -> tuple[int, ...]:
    """Return so many TCP ports nobody listens at on loopback.

    They lie below the range the kernel takes the ports of outgoing connections from: a broker keeps its ports
    over a restart, and none may have been taken meanwhile.
    """
    ports: list[int] = []
    while len(ports) < count:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return tuple(ports)


def new_id() -> str:
    """Return a random id as Kafka writes it: 22 characters of base64, the first no dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def await_true(what: str, condition: Callable[[], bool], *, timeout_seconds: float = 30) -> None:
    """Look ten times a second until ``condition`` holds. Blocks.

    Raises:
        RigError: It did not in time; the message names ``what``.
    """
    until = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > until:
            raise RigError(f"after {timeout_seconds:g} s still not: {what}")
        time.sleep(0.1)


def parse_log_dirs_tool(text: str) -> dict[int, dict[ReplicaKey, Reported]]:
    """Return what ``kafka-log-dirs --describe`` printed, by node id.

    Raises:
        RigError: A log dir has an error, or the output is not what the stock tool prints.
    """
    line = next((ln for ln in text.splitlines() if ln.startswith("{")), None)
    if line is None:
        raise RigError(f"kafka-log-dirs printed no JSON: {text[:300]!r}")
    brokers: dict[int, dict[ReplicaKey, Reported]] = {}
    for broker in json.loads(line)["brokers"]:
        rows = brokers.setdefault(broker["broker"], {})
        for log_dir in broker["logDirs"]:
            if log_dir["error"] is not None:
                raise RigError(f"log dir {log_dir['logDir']}: {log_dir['error']}")
            for row in log_dir["partitions"]:
                topic, _, partition = row["partition"].rpartition("-")
                key = ReplicaKey(log_dir["logDir"], topic, int(partition), row["isFuture"])
                if key in rows:
                    raise RigError(f"kafka-log-dirs lists {key} twice")
                rows[key] = Reported(row["size"], row["offsetLag"])
    return brokers


class Broker:
    """One KRaft node. ``Rig.add_broker`` makes it; its log dirs exist from its first ``format`` on."""

    def __init__(
        self,
        *,
        version: str,
        libs: Path,
        cache: Path,
        root: Path,
        node_id: int,
        properties: Mapping[str, str],
    ) -> None:
        self.version = version
        self.node_id = node_id
        self.properties = dict(properties)
        """What ``server.properties`` holds from the next start on; to be changed while the broker is down."""
        self._libs, self._cache, self._root = libs, cache, root
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    @property
    def log_dirs(self) -> tuple[Path, ...]:
        """The configured log dirs, in the order of ``log.dirs``."""
        return tuple(Path(text) for text in self.properties["log.dirs"].split(","))

    @property
    def address(self) -> str:
        """Where clients reach it: host and port."""
        return self.properties["listeners"].split(",")[0].partition("://")[2]

    @property
    def pid(self) -> int | None:
        """The process id; ``None`` when it does not run."""
        return self._process.pid if self.is_running and self._process else None

    @property
    def is_running(self) -> bool:
        """Whether its process is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def log_text(self) -> str:
        """What it has logged since its last start."""
        path = self._log_path
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def _log_path(self) -> Path:
        return self._root / f"n{self.node_id}.{self._starts}.log"

    def install(self, version: str, libs: Path) -> None:
        """Run this release from the next start on; a process that runs goes on with its own."""
        self.version, self._libs = version, libs

    def write_configuration(self) -> Path:
        """Write ``server.properties``; return its path."""
        path = self._root / f"n{self.node_id}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in self.properties.items()))
        return path

    def tool(self, main_class: str, *arguments: str, check: bool = True) -> str:
        """Run a stock tool of this release in a JVM of its own; return what it printed to stdout. Blocks.

        Raises:
            RigError: It exited with another status than 0, and ``check`` is set.
        """
        command = java_command(libs=self._libs, root=self._root, heap_mib=TOOL_HEAP_MIB, level="OFF")
        done = subprocess.run(
            [*command, main_class, *arguments],
            capture_output=True,
            text=True,
            timeout=_TOOL_SECONDS,
            stdin=subprocess.DEVNULL,
        )
        if check and done.returncode:
            raise RigError(f"{main_class} exit {done.returncode}: {(done.stdout + done.stderr).strip()[-600:]}")
        return done.stdout

    def format(self, cluster_id: str, *options: str) -> None:
        """Format its log dirs with the stock storage tool; those that are formatted stay as they are."""
        conf = self.write_configuration()
        fixed = ["format", "--ignore-formatted", "-t", cluster_id, "-c", str(conf)]
        self.tool("kafka.tools.StorageTool", *fixed, *options)

    def try_start(self) -> int | None:
        """Start it; return ``None`` once it serves, or its exit status if it refused to start. Blocks.

        Raises:
            RigError: It runs already, or did neither in time (it is killed then).
        """
        if self.is_running:
            raise RigError(f"broker {self.node_id} runs already")
        conf = self.write_configuration()
        self._starts += 1
        command = java_command(libs=self._libs, root=self._root, heap_mib=BROKER_HEAP_MIB, level="INFO")
        slot = take_slot(self._cache)
        try:
            with self._log_path.open("wb") as log:
                process = subprocess.Popen(
                    [*command, "kafka.Kafka", str(conf)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=(slot,),
                    start_new_session=True,  # Ctrl-C is for the tests; they end it by its id
                )
        finally:
            os.close(slot)  # the broker has its own copy, and with it the place among those that may run
        self._process = process
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            if _STARTED.search(self.log_text):
                return None
            if (status := process.poll()) is not None:
                return status
            time.sleep(0.05)
        self.kill()
        raise RigError(f"broker {self.node_id} not started in {_START_SECONDS} s: {self.trouble()}")

    def start(self) -> None:
        """Start it and wait until it serves. Blocks.

        Raises:
            RigError: It exited, or did not start in time; with what it logged about it.
        """
        if (status := self.try_start()) is not None:
            raise RigError(f"broker {self.node_id} exited {status}: {self.trouble()}")

    def trouble(self) -> str:
        """Return the errors it logged since its last start, or its last lines, as one text."""
        lines = self.log_text.splitlines()
        return "\n".join([ln for ln in lines if _TROUBLE.search(ln)][:12] or lines[-5:])

    def stop(self) -> int:
        """Ask it to shut down and wait for that; return its exit status (``CLEAN_EXIT``). Blocks.

        Raises:
            RigError: It does not run, or did not end in time (it is killed then).
        """
        process = self._require_running()
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RigError(f"broker {self.node_id} did not stop within {_STOP_SECONDS} s") from None

    def kill(self) -> int:
        """End it at once, as a crash would; return its exit status (-9). Blocks until it is gone.

        Raises:
            RigError: It does not run.
        """
        process = self._require_running()
        process.kill()
        return process.wait()

    def _require_running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise RigError(f"broker {self.node_id} does not run")
        return self._process

    def describe_log_dirs(self) -> dict[ReplicaKey, Reported]:
        """Return what the stock ``kafka-log-dirs --describe`` says of this broker. Starts a JVM."""
        text = self.tool(
            "org.apache.kafka.tools.LogDirsCommand",
            *("--describe", "--bootstrap-server", self.address, "--broker-list", str(self.node_id)),
        )
        return parse_log_dirs_tool(text)[self.node_id]


class Rig:
    """A cluster under ``root``, made here and removed by ``close``. The first broker is the controller."""

    def __init__(self, *, version: str, libs: Path, client_libs: Path, cache: Path, root: Path) -> None:
        root.mkdir()
        self.version, self.root, self.cluster_id = version, root, new_id()
        self.brokers: list[Broker] = []
        self._libs, self._client_libs, self._cache = libs, client_libs, cache
        self._client: Client | None = None

    def add_broker(self, *, log_dirs: int = 3, properties: Mapping[str, str] | None = None) -> Broker:
        """Make the next node, formatted and not started: node ids 1, 2, 3.

        Args:
            log_dirs: How many.
            properties: Override and add to the rig's own.
        """
        node_id = len(self.brokers) + 1
        port, controller_port = free_ports(2)
        listeners = f"PLAINTEXT://127.0.0.1:{port}"
        if self.brokers:
            roles = {"process.roles": "broker", "listeners": listeners}
            voters = self.brokers[0].properties["controller.quorum.voters"]
        else:
            listeners += f",CONTROLLER://127.0.0.1:{controller_port}"
            roles = {"process.roles": "broker,controller", "listeners": listeners}
            voters = f"{node_id}@127.0.0.1:{controller_port}"
        dirs = ",".join(str(self.root / f"n{node_id}" / f"d{i + 1}") for i in range(log_dirs))
        own = {"node.id": str(node_id), "controller.quorum.voters": voters, "log.dirs": dirs}
        broker = Broker(
            version=self.version,
            libs=self._libs,
            cache=self._cache,
            root=self.root,
            node_id=node_id,
            properties={**_DEFAULTS, **roles, **own, **(properties or {})},
        )
        self.brokers.append(broker)
        broker.format(self.cluster_id)
        return broker

    @property
    def client(self) -> Client:
        """The admin, producer and consumer; its JVM starts with the first use."""
        if self._client is None:
            classes = compiled_helper(self._cache, self._client_libs)
            servers = ",".join(broker.address for broker in self.brokers)
            self._client = Client(libs=self._client_libs, classes=classes, root=self.root, servers=servers)
        return self._client

    def close(self) -> None:
        """Kill what still runs and remove the root; may be called twice."""
        if self._client is not None:
            self._client.close()
            self._client = None
        for broker in self.brokers:
            if broker.is_running:
                broker.kill()
        shutil.rmtree(self.root, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
