"""The fleet as JSON, for snapshots and for the Spark data source.

The JSON is complete, with globs expanded and absolute paths: its reader needs neither the fleet file nor the disks.

Not here: the fleet file that people write (``fleet``).

Spec: design §7.2, §7.7 ("JSON").
"""

from __future__ import annotations

import json
from typing import Any

from migrate.source.fleet import BrokerEntry, Cluster, Fleet


def render_fleet(fleet: Fleet) -> str:
    """Return a fleet as one line of JSON with sorted keys, without LF."""
    clusters = [
        {
            "name": cluster.name,
            "cluster_id": cluster.cluster_id,
            "min_insync_replicas": cluster.min_insync_replicas,
            "topics": [list(pair) for pair in cluster.topics],
            "racks": cluster.racks,
            "brokers": [
                {
                    "node_id": broker.node_id,
                    "rack": broker.rack,
                    "log_dirs": list(broker.log_dirs),
                    "inventories": list(broker.inventories),
                }
                for broker in cluster.brokers
            ],
        }
        for cluster in fleet.clusters
    ]
    return json.dumps({"clusters": clusters}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def parse_fleet_json(text: str) -> Fleet:
    """Parse the output of ``render_fleet``.

    Raises:
        ValueError: the text is no such output.
    """
    try:
        document = json.loads(text)
        return Fleet(clusters=tuple(_cluster(item) for item in document["clusters"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"no fleet: {error!r}") from error


def _cluster(item: Any) -> Cluster:
    racks = item["racks"]
    if racks not in {"respect", "ignore"}:
        raise ValueError(f"racks: {racks!r}")
    return Cluster(
        name=_text(item["name"]),
        cluster_id=_text_or_null(item["cluster_id"]),
        min_insync_replicas=None if item["min_insync_replicas"] is None else _integer(item["min_insync_replicas"]),
        topics=tuple((_text(pattern), _integer(least)) for pattern, least in item["topics"]),
        racks=racks,
        brokers=tuple(
            BrokerEntry(
                node_id=_integer(broker["node_id"]),
                rack=_text_or_null(broker["rack"]),
                log_dirs=tuple(map(_text, broker["log_dirs"])),
                inventories=tuple(map(_text, broker["inventories"])),
            )
            for broker in item["brokers"]
        ),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _text_or_null(value: object) -> str | None:
    return None if value is None else _text(value)


def _integer_or_null(value: object) -> int | None:
    return None if value is None else _integer(value)


def _integer(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no integer")
    return value
