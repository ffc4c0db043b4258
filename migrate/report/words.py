"""Texts and numbers of the report that no other page has: factors, and descriptions of slugs.

Not here: escaping, sizes and durations (``logdir.markup``); where the texts stand on the page (``report.sections``,
``report.tables``).

Spec: design §7.4, §7.7.
"""

from __future__ import annotations


def ratio(permille: int) -> str:
    """Return a number of thousandths as a factor with two decimals.

    >>> ratio(1425)
    '1.43×'
    """
    hundredths = (permille + 5) // 10
    return f"{hundredths // 100}.{hundredths % 100:02d}×"


READINESS_MARKS = {"clean": "✓", "blocked": "✕", "unknown": "?"}
"""Sign of each readiness, shown in addition to its colour."""
SLUG_WORDS = {
    "one-name-two-ids": (
        "One topic name, two ids",
        "Keep the replicas of the id the cluster knows; stage the rest.",
    ),
    "one-id-two-names": (
        "One topic id, two names",
        "A renamed or copied directory: find out which name is true.",
    ),
    "replicas-differ-in-id": (
        "Replicas of one partition differ in id",
        "Some replicas belong to an older topic.",
    ),
    "partition-twice-on-broker": (
        "A partition twice on one broker",
        "A broker does not start if two of its log dirs hold one partition: keep one copy, stage the other.",
    ),
    "id-in-two-clusters": ("One topic id in two clusters", "A disk or a backup has changed clusters."),
    "node-id-twice": ("A node id twice", "Two broker entries claim it: correct the fleet file or the disk."),
    "foreign-node-disk": ("A disk of another broker", "Its meta.properties names another node id."),
    "foreign-cluster-disk": ("A disk of another cluster", "Its meta.properties names another cluster id."),
    "identity-broken": (
        "Identity of a log dir broken",
        "meta.properties is missing or malformed, or two log dirs have its directory id.",
    ),
    "metadata-file-broken": (
        "partition.metadata broken",
        "It cannot be read or contradicts the directory's name.",
    ),
    "missing-id": (
        "No topic id",
        "Blocks a broker only where the plan could not mint one or find it elsewhere.",
    ),
    "leftover": (
        "Left over",
        "Moves, deletions and strays to finish or remove first; what the broker is deleting blocks nothing.",
    ),
    "unknown-entry": ("Unknown entry", "Neither Kafka's nor logdird's: inspect it and move it out by hand."),
    "disk-unread": ("Disk not read", "Take its inventory on the broker, then plan the fleet again."),
}
