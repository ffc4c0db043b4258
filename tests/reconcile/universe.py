"""Two topics, two partitions, every state of their ids, in both layouts; and the documents that may come.

Not here: what must follow (``judge``), what does (``test_exhaustive``).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from tests.reconcile.judge import BROKEN, ZERO, Copy

RIGHT = {"a": "eXOy6xj-Q8ivrWAlsZGnkw", "b": "b8tRS7h4TJ2Vt43Dp85v2A"}
OTHER = {"a": "MkU3OEVBNTcwNTJENDM2Qg", "b": "JXU9oWORQXexuCoDVTCJZg"}
SLOTS = (("a", 0), ("a", 1), ("b", 0), ("b", 1))
STATES = ("absent", "right", "other", "none", "zero")
LAYOUTS = ("topic-name", "topic-id")
EPOCH = 20
BROKER_EPOCH = 40


def starts() -> Iterator[tuple[str, tuple[Copy, ...]]]:
    """Every layout and every state of every slot."""
    for layout in LAYOUTS:
        for states in itertools.product(STATES, repeat=len(SLOTS)):
            yield (
                layout,
                tuple(
                    _copy(layout, *slot, state) for slot, state in zip(SLOTS, states, strict=True) if state != "absent"
                ),
            )


def _copy(layout: str, topic: str, partition: int, state: str) -> Copy:
    if layout == "topic-name":
        topic_id = {"right": RIGHT[topic], "other": OTHER[topic], "none": None, "zero": BROKEN}[state]
        return Copy(topic, topic_id, partition)
    # The directory's name is the id; without a file that can be read nothing says the topic.
    topic_id = OTHER[topic] if state == "other" else RIGHT[topic]
    return Copy(None if state in ("none", "zero") else topic, topic_id, partition)


def listed(**topics: tuple[str, tuple[int, ...]]) -> list[dict[str, Any]]:
    return [
        {
            "topicName": name,
            "topicId": topic_id,
            "partitionStates": [
                {
                    "partitionIndex": partition,
                    "controllerEpoch": 1,
                    "leader": 1,
                    "leaderEpoch": 0,
                    "isr": [1, 2],
                    "partitionEpoch": 0,
                    "replicas": [1, 2],
                    "addingReplicas": [],
                    "removingReplicas": [],
                    "isNew": False,
                }
                for partition in partitions
            ],
        }
        for name, (topic_id, partitions) in topics.items()
    ]


def stopped(*, delete: bool, leader_epoch: int = -2, **topics: tuple[str | None, tuple[int, ...]]) -> list[Any]:
    """Without an id as shipped, with one as the KIP writes it."""
    return [
        {
            **({"topicName": name} if topic_id is None else {"topicId": topic_id}),
            "partitionStates": [
                {"partitionIndex": partition, "leaderEpoch": leader_epoch, "deletePartition": delete}
                for partition in partitions
            ],
        }
        for name, (topic_id, partitions) in topics.items()
    ]


def document(
    states: list[Any],
    *,
    sequence: int,
    api: str = "LeaderAndIsr",
    type: int = 0,  # noqa: A002
    epoch: int = 5,
    form: str = "shipped",
    broker_epoch: int = BROKER_EPOCH,
) -> dict[str, Any]:
    body = {"controllerId": 1, "controllerEpoch": epoch, "brokerEpoch": broker_epoch, "topicStates": states}
    if api == "LeaderAndIsr":
        body |= {"type": type, "liveLeaders": []}
    return {
        "document": 1,
        "api": api,
        "version": 7 if api == "LeaderAndIsr" else 4,
        "form": form,
        "sequence": sequence,
        "partitions": sum(len(topic["partitionStates"]) for topic in states),
        "body": body,
    }


BOTH = (0, 1)
_FULL = {"type": 2}
_INCREMENTAL = {"type": 1}
_STOP = {"api": "StopReplica"}
# What is asked, and how its position follows on the last one: 1 is the next, 2 leaves one out, 0 is the last again.
DOCUMENTS: tuple[tuple[str, list[Any], dict[str, Any], int, int], ...] = (
    ("full", listed(a=(RIGHT["a"], BOTH), b=(RIGHT["b"], BOTH)), _FULL, 0, 1),
    ("full without b", listed(a=(RIGHT["a"], BOTH)), _FULL, 0, 1),
    ("full of other ids", listed(a=(OTHER["a"], BOTH), b=(ZERO, (0,))), _FULL, 0, 1),
    ("incremental", listed(a=(RIGHT["a"], BOTH)), _INCREMENTAL, 0, 1),
    ("incremental of another id after a gap", listed(a=(OTHER["a"], (0,)), b=(ZERO, (0,))), _INCREMENTAL, 0, 2),
    ("stop by name", stopped(delete=True, a=(None, (0,)), b=(None, (0,))), _STOP, 0, 1),
    ("stop by id", stopped(delete=True, a=(RIGHT["a"], BOTH)), _STOP | {"form": "kip"}, 0, 1),
    ("stop without delete", stopped(delete=False, a=(None, BOTH)), _STOP, 0, 1),
    ("type 0", listed(a=(OTHER["a"], BOTH), b=(RIGHT["b"], (1,))), {}, 0, 1),
    ("older epoch", listed(b=(OTHER["b"], BOTH)), _FULL, -1, 1),
    ("equal position", listed(b=(OTHER["b"], BOTH)), _FULL, 0, 0),
    ("newer epoch", listed(b=(OTHER["b"], BOTH)), _INCREMENTAL, 1, 1),
)


FIRST = 50
"""The sequence number before the first."""


def rise(number: int) -> tuple[int, int]:
    """Return by how much a document moves the position from which the next one counts: epochs, sequence numbers."""
    _, _, _, epochs, step = DOCUMENTS[number]
    return max(epochs, 0), step


def every_document() -> list[dict[str, Any]]:
    """Each document as it comes after one at ``EPOCH`` and ``FIRST``."""
    return [
        document(states, sequence=FIRST + step, epoch=EPOCH + epochs, **options)
        for _, states, options, epochs, step in DOCUMENTS
    ]


def placed(numbers: tuple[int, ...]) -> list[dict[str, Any]]:
    """A sequence of documents, each at the position it has there."""
    epoch, sequence = EPOCH, FIRST
    made = []
    for number in numbers:
        _, states, options, epochs, step = DOCUMENTS[number]
        made.append(document(states, sequence=sequence + step, epoch=epoch + epochs, **options))
        epochs, step = rise(number)
        epoch, sequence = epoch + epochs, sequence + step
    return made


def text(one: dict[str, Any]) -> bytes:
    return json.dumps(one).encode()
