"""Check that the marker of a staged replica belongs to its directory, log dir and host.

Not here: decisions about the replica (``restore``, ``adopt_here``), reading the marker (``observe.replicas``).

Spec: design §3.3; attacks A25.
"""

from __future__ import annotations

from logdir.decide.refusal import READ_ONLY, Refusal, refuse
from logdir.errors import ANOTHERS_DISK
from logdir.formats.own.replica_marker import BY_HAND, Intent, ReplicaMarker
from logdir.observe.facts import LogDirFacts, StagedReplica
from logdir.paths import DELETING, METADATA_TOPIC
from logdir.refusal_slug import Why


def refuse_foreign(one: LogDirFacts, item: StagedReplica, marker: ReplicaMarker) -> Refusal | None:
    """Return the refusal of a staged replica whose marker belongs to another directory, log dir or host; otherwise
    ``None``.

    Args:
        one: Its log dir.
        item: The staged replica.
        marker: Its marker.
    """
    where = item.log_dir, f"{DELETING}/{item.name}"
    for word, found, true in (
        ("cluster", marker.cluster_id, one.cluster_id),
        ("node", marker.node_id, one.node_id),
        ("directory id", marker.directory_id, one.directory_id),
    ):
        # A log dir of Kafka before 3.7 has no directory id; it may get one later, but never loses or changes it.
        is_new = word == "directory id" and found is None
        if found != true and not is_new:
            return refuse(*where, Why.FOREIGN_MARKER, f"a marker of {word} {true}", f"{word} {found}", ANOTHERS_DISK)
    if marker.birth_inode != item.inode:
        return refuse(
            *where,
            Why.FOREIGN_MARKER,
            f"a marker of inode {item.inode}",
            f"inode {marker.birth_inode}: the directory was copied",
            BY_HAND,
        )
    if marker.intent is Intent.INCOMING:
        return refuse(*where, Why.INCOMING, "a staged or captured replica", "an incoming replica", BY_HAND)
    if marker.topic == METADATA_TOPIC:
        return refuse(*where, Why.METADATA_LOG, "a topic's replica", "the metadata log of the quorum", READ_ONLY)
    topic_id = item.ref.topic_id
    if (topic_id is not None and topic_id != marker.topic_id) or item.ref.partition != marker.partition:
        found = f"a marker of {marker.topic_id}_{marker.partition}"
        return refuse(*where, Why.FOREIGN_MARKER, "a marker of the directory's name", found, BY_HAND)
    return None
