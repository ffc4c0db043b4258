"""Which other brokers hold a partition, by a metadata log or the live cluster: no other source shows which brokers are
online.

Spec: design §3.3; attacks A46, A48.
"""

from __future__ import annotations

from logdir.cluster.image import Image, Partition


def holders_elsewhere(image: Image, one: Partition) -> tuple[int, ...]:
    """Return the other online brokers that have a partition in sync, on a log dir that is not known to be offline."""
    found = []
    for node in one.isr:
        broker = image.brokers.get(node)
        if node == image.node_id or broker is None or broker.is_fenced:
            continue
        directory = one.directory(node)
        if directory is None or not broker.log_dirs or bytes(directory) in broker.log_dirs:
            found.append(node)
    return tuple(found)
