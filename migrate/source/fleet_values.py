"""Value types of a fleet file: clusters, brokers, and their sources.

Not here: parsing them (``fleet``, ``fleet_json``), opening the sources (``data_source``).

Spec: design §7.2.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEntry:
    """One broker entry of the fleet file; two entries may have the same node id."""

    node_id: int
    rack: str | None
    """Overrides the rack in the inventories."""
    log_dirs: tuple[str, ...]
    """Absolute, normalised paths of log dirs that are scanned directly."""
    inventories: tuple[str, ...]
    """Absolute, normalised paths and URIs; globs expanded, each glob's matches sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster and the policy for its migration."""

    name: str
    cluster_id: str | None
    min_insync_replicas: int | None
    """``min.insync.replicas`` of topics that no glob matches; ``None``: one replica at a time may be down."""
    topics: tuple[tuple[str, int], ...]
    """Globs and their ``min.insync.replicas``, in the file's order: the first match wins."""
    racks: Literal["respect", "ignore"]
    brokers: tuple[BrokerEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The content of a fleet file: its clusters."""

    clusters: tuple[Cluster, ...]

    def brokers(self) -> Iterator[tuple[int, Cluster, BrokerEntry]]:
        """Yield every broker entry with its ordinal over the whole file, from 0, in the file's order."""
        ordinal = 0
        for cluster in self.clusters:
            for broker in cluster.brokers:
                yield ordinal, cluster, broker
                ordinal += 1

    def sources(self) -> Iterator[Source]:
        """Yield all sources in the file's order: for each broker its log dirs, then its inventories."""
        number = 0
        for ordinal, cluster, broker in self.brokers():
            for walked, paths in ((True, broker.log_dirs), (False, broker.inventories)):
                for path in paths:
                    yield Source(
                        number=number,
                        broker=ordinal,
                        cluster=cluster.name,
                        entry_node_id=broker.node_id,
                        path=path,
                        is_walked=walked,
                    )
                    number += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One log dir or inventory file that the fleet file lists."""

    number: int
    """Ordinal over the whole fleet."""
    broker: int
    """Ordinal of its broker entry over the whole fleet."""
    cluster: str
    entry_node_id: int
    path: str
    is_walked: bool
    """Whether ``path`` is a log dir to scan rather than an inventory file."""


def min_insync_for(cluster: Cluster, topic: str) -> int | None:
    """Return the ``min.insync.replicas`` of a topic; ``None`` if none is given.

    The first matching glob wins; matching is case-sensitive on every platform.
    """
    for pattern, value in cluster.topics:
        if fnmatch.fnmatchcase(topic, pattern):
            return value
    return cluster.min_insync_replicas


def is_uri(path: str) -> bool:
    """Whether a listed path is a URI rather than a local path."""
    return _URI.match(path) is not None
