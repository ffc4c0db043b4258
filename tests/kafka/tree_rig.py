"""A real tree as a stock broker's log dirs: which trees and releases, the broker's configuration, all it then serves.

A tree is started with the configuration its manifest holds, on ports of this machine. What a broker would change by
the hour or by the calendar (cleaning, retention, transactions and offsets that time out) is put off: two copies are
compared, and a tree grows older from day to day.

Not here: what is done to a tree before it is started (``there_and_back.py``).

Spec: kafka-behaviour §0.4, §10.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests import trees
from tests.kafka.client import Client, Digest
from tests.kafka.fetch import RELEASES, cache_dir
from tests.kafka.rig import Broker, Rig, await_true, free_ports

SEED: Final = 4
KILLED: Final = "4.3.1-kill9"
NEWEST: Final = RELEASES[-1]
_AN_HOUR_MS: Final = "3600000"
_EXPIRING: Final = "rolled"
"""Keeps its records for a day by its own configuration; up to 3.7 the first look at that comes 30 s after a start."""

_QUIET: Final[Mapping[str, str]] = {
    "log.cleaner.enable": "false",
    "log.retention.ms": "-1",
    "log.initial.task.delay.ms": _AN_HOUR_MS,
    "offsets.retention.minutes": "2147483647",
    # Every tree has a transaction that was left open.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": _AN_HOUR_MS,
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
}


class Start(NamedTuple):
    """A tree, and the release it is started by."""

    tree: str
    release: str

    def __str__(self) -> str:
        """Return it as the name of a test."""
        return f"{self.tree}-by-{self.release}"

    @property
    def is_upgrade(self) -> bool:
        """Whether another release wrote it."""
        return writer(self.tree) != self.release


def writer(tree: str) -> str:
    """Return the release that wrote a tree."""
    return str(trees.manifest(tree)["kafka"])


def starts(own: int, upgrades: int) -> list[Start]:
    """Return so many trees with the release that wrote them, and so many of 3.x with the newest release.

    The order is drawn with ``SEED``, but the tree of a killed broker comes first, and then those of the releases that
    other tests need anyhow: fewer than all take no other release.
    """
    draw = random.Random(SEED)
    names = [name for name in trees.NAMES if trees.manifest(name)["mode"] == "kraft"]
    draw.shuffle(names)
    older = [name for name in names if writer(name).startswith("3.")]
    names.sort(key=lambda name: (name != KILLED, writer(name) not in RELEASES))
    draw.shuffle(older)
    return [Start(name, writer(name)) for name in names[:own]] + [Start(name, NEWEST) for name in older[:upgrades]]


def copied(tree: str, folder: Path) -> tuple[Path, ...]:
    """Copy a tree, times of change included; return its log dirs."""
    shutil.copytree(trees.unpack(tree), folder, symlinks=True)
    return tuple(folder / name for name in trees.manifest(tree)["log_dirs"])


def properties_of(tree: str) -> dict[str, str]:
    """Return the configuration of a tree's broker, for free ports of this machine; without its log dirs.

    A quorum of static voters is told its ports by the configuration. One of dynamic voters has them in its metadata
    log, where a broker looks for its controller: there the controller gets its old port.

    Raises:
        RigError: that port is taken, and does not become free.
    """
    found = dict(line.split("=", 1) for line in trees.manifest(tree)["server.properties"])
    port, controller_port = free_ports(2)
    if "controller.quorum.voters" in found:
        found["controller.quorum.voters"] = f"{found['node.id']}@127.0.0.1:{controller_port}"
    else:
        controller_port = int(found["listeners"].rpartition(":")[2])
        await_true(f"port {controller_port} of loopback is free", lambda: _is_free(controller_port))
        found["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{controller_port}"
    found["listeners"] = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}"
    found["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{port}"
    return {**found, **_QUIET}


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def tree_rig(start: Start, *, libs: Path, client_libs: Path, root: Path) -> tuple[Rig, Broker]:
    """Return a rig below ``root`` with the broker of a tree, which has no log dirs yet; the caller closes it."""
    cache = cache_dir(os.environ)
    rig = Rig(version=start.release, libs=libs, client_libs=client_libs, cache=cache, root=root)
    said = trees.manifest(start.tree)
    broker = Broker(
        version=start.release,
        libs=libs,
        cache=cache,
        root=rig.root,
        node_id=said["node_id"],
        properties=properties_of(start.tree),
    )
    rig.brokers.append(broker)
    return rig, broker


class Served(NamedTuple):
    """What a client reads of one partition."""

    uncommitted: Digest
    committed: Digest


def ranges(tree: str) -> dict[tuple[str, int], tuple[int, int]]:
    """Return log start and log end of every partition as the manifest has them.

    But a log start that a killed broker was asked for and had not written down yet died with it: any broker begins
    such a log with its first segment again.
    """
    topics: dict[str, Any] = trees.manifest(tree)["topics"]
    said = {(t, int(p)): (span[0], span[1]) for t, one in topics.items() for p, span in one["partitions"].items()}
    written: dict[tuple[str, int], int] = {}
    first: dict[tuple[str, int], int] = {}
    for name in trees.manifest(tree)["log_dirs"]:
        log_dir = trees.unpack(tree) / name
        for line in (log_dir / "log-start-offset-checkpoint").read_text().splitlines()[2:]:
            topic, partition, offset = line.split()
            written[topic, int(partition)] = int(offset)
        for topic, partition in said:
            if bases := [int(path.stem) for path in (log_dir / f"{topic}-{partition}").glob("*.log")]:
                first[topic, int(partition)] = min(bases)
    return {of: (written.get(of, first[of]), end) for of, (_, end) in said.items()}


def serve(client: Client, partitions: Mapping[tuple[str, int], object]) -> dict[tuple[str, int], Served]:
    """Read partitions from log start to log end, both with open and aborted transactions and without."""
    return {
        (topic, partition): Served(
            client.digest(topic, partition, isolation="read_uncommitted"),
            client.digest(topic, partition, isolation="read_committed"),
        )
        for topic, partition in sorted(partitions, key=lambda one: (one[0] != _EXPIRING, one))
    }
