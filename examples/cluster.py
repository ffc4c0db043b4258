"""One broker's tree spread over a cluster: its metadata log, retold so that several brokers have a replica each.

A tree was written by the one broker of its cluster. Here every partition gets a replica on each broker of the
demonstration, leaders take turns, all are in sync, and the directory ids are those of each broker's own disks; topics
may get other names. Offsets, epochs and instants stay; a NoOp gives its offset to the registration of each further
broker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from logdir.ids import DirectoryId
from logdir.wire.batch_writer import metadata_batch
from logdir.wire.batches import read_batches, read_values
from logdir.wire.metadata_records import MetadataRecord, decode, encode

_CONFIG_OF_TOPIC = 2
_NONE = -1


class Cluster(NamedTuple):
    """What a tree is told as."""

    nodes: tuple[int, ...]
    """Its brokers; the first is the one that wrote the tree."""
    directories: Mapping[bytes, tuple[bytes, ...]]
    """From a directory id of the tree to that of each broker, in their order."""
    topics: Mapping[str, str]
    """Other names."""


def directory_id(folder: str, disk: str) -> DirectoryId:
    """Return the id that a disk of the demonstration has."""
    return DirectoryId(hashlib.sha256(f"{folder}/{disk}".encode()).digest()[:16])


def retell(directory: Path, cluster: Cluster) -> None:
    """Rewrite a ``__cluster_metadata-0``; its indexes go, as brokers make them again."""
    for path in sorted(directory.iterdir()):
        if path.suffix in (".index", ".timeindex"):
            path.unlink()
        elif path.suffix in (".log", ".checkpoint"):
            data = b"".join(_batches(path, cluster))
            path.chmod(0o600)
            path.write_bytes(data)


def _batches(path: Path, cluster: Cluster) -> Iterator[bytes]:
    data = path.read_bytes()
    is_snapshot = path.suffix == ".checkpoint"
    left = list(cluster.nodes[1:])
    first: MetadataRecord | None = None
    shift = 0
    for batch in read_batches(data, str(path)):
        raw = data[batch.position : batch.position + batch.size]
        if batch.is_control:
            # Of a snapshot the footer's offset moves with what was put before it: the first eight bytes.
            yield (batch.base_offset + shift).to_bytes(8, "big") + raw[8:]
            continue
        records: list[MetadataRecord] = []
        for _, value in read_values(batch):
            record = _map_os_errors(decode(value, str(path)), cluster)
            if record.name == "NO_OP_RECORD" and first is not None and left and not is_snapshot:
                record = _registration(first, left.pop(0), cluster)
            records.append(record)
            if record.name == "REGISTER_BROKER_RECORD" and first is None:
                first = record
                if is_snapshot:
                    records += [_registration(first, node, cluster) for node in left]
        yield metadata_batch(
            [encode(record) for record in records],
            base_offset=batch.base_offset + shift,
            epoch=batch.leader_epoch,
            timestamp_ms=batch.max_timestamp,
        )
        shift += len(records) - batch.count


def _map_os_errors(record: MetadataRecord, cluster: Cluster) -> MetadataRecord:
    fields = dict(record.fields)
    match record.name:
        case "TOPIC_RECORD":
            fields["name"] = cluster.topics.get(fields["name"], fields["name"])
        case "CONFIG_RECORD" if fields["resourceType"] == _CONFIG_OF_TOPIC:
            fields["resourceName"] = cluster.topics.get(fields["resourceName"], fields["resourceName"])
        case "PARTITION_RECORD" | "PARTITION_CHANGE_RECORD":
            _spread(fields, cluster)
        case _:
            return record
    return replace(record, fields=fields)


def _spread(fields: dict[str, Any], cluster: Cluster) -> None:
    """Give every broker a replica; one that stopped last is told as before its stop."""
    for key in ("replicas", "isr"):
        if fields[key] is not None:
            fields[key] = cluster.nodes
    if fields["leader"] in (_NONE, cluster.nodes[0]):
        fields["leader"] = cluster.nodes[fields["partitionId"] % len(cluster.nodes)]
    if fields.get("directories"):
        fields["directories"] = cluster.directories.get(fields["directories"][0], fields["directories"])
    for key in ("eligibleLeaderReplicas", "lastKnownElr", "lastKnownELR"):
        if fields.get(key):
            fields[key] = ()


def _registration(first: MetadataRecord, node: int, cluster: Cluster) -> MetadataRecord:
    at = cluster.nodes.index(node)
    fields = dict(first.fields)
    fields |= {
        "brokerId": node,
        "incarnationId": hashlib.sha256(f"{node}".encode()).digest()[:16],
        "endPoints": tuple(dict(point, port=point["port"] + node) for point in first.fields["endPoints"]),
        "fenced": False,
        "inControlledShutdown": False,
    }
    if "logDirs" in fields:
        fields["logDirs"] = tuple(cluster.directories[one][at] for one in first.fields["logDirs"])
    return replace(first, fields=fields)


def rename_topics(log_dir: Path, topics: Mapping[str, str]) -> None:
    """Give the partition directories of some topics another name, and their entries in the checkpoints too."""
    for path in sorted(log_dir.iterdir()):
        topic, dash, _ = path.name.partition(".")[0].rpartition("-")
        if path.is_dir() and topic in topics:
            path.rename(log_dir / f"{topics[topic]}{dash}{path.name[len(topic) + 1 :]}")
        elif path.name.endswith("-offset-checkpoint"):
            lines = [line.split(" ") for line in path.read_text().splitlines()]
            path.write_text("".join(f"{' '.join([topics.get(one[0], one[0]), *one[1:]])}\n" for one in lines))


def properties(lines: Sequence[str], node: int, log_dirs: Sequence[Path], *, is_first: bool) -> str:
    """Return a broker's ``server.properties``, from that of the tree."""
    told = []
    for line in lines:
        key = line.partition("=")[0]
        if key in ("node.id", "broker.id"):
            line = f"{key}={node}"
        elif key == "log.dirs":
            line = f"log.dirs={','.join(map(str, log_dirs))}"
        elif key == "process.roles" and not is_first:
            line = "process.roles=broker"
        told.append(line)
    return "\n".join([*told, ""])
