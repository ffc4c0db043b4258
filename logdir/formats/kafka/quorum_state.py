"""``quorum-state``: the voters of the metadata quorum, as a node last wrote them beside its metadata log.

Version 0 names the static voters; version 1 (a dynamic quorum) names none, because they are in the log itself.

Not here: the current voters (``logdir.cluster.quorum``).

Spec: kafka-formats §8.6.

>>> parse(b'{"leaderId":1,"leaderEpoch":5,"currentVoters":[{"voterId":1}],"data_version":0}').voters
(1,)
"""

from __future__ import annotations

import json
from typing import NamedTuple

from logdir.errors import MalformedFileError

FILE_NAME = "quorum-state"
MAX_BYTES = 1 << 20


class QuorumState(NamedTuple):
    """The content of ``quorum-state``."""

    leader_id: int
    """Node id of the quorum's leader; -1: not known."""
    leader_epoch: int
    voters: tuple[int, ...] | None
    """Node ids of the voters, ascending; ``None``: the file has no voters (version 1)."""


def parse(data: bytes, path: str = "") -> QuorumState:
    """Parse ``quorum-state``; only its first line counts, and unknown fields are ignored.

    Raises:
        MalformedFileError: line 1 is no JSON object, or leader id, leader epoch or voters have a wrong type.
    """
    try:
        value = json.loads(data.partition(b"\n")[0])
    except ValueError:
        raise MalformedFileError(path, expected="one line of JSON", found="no JSON in line 1") from None
    if not isinstance(value, dict):
        raise MalformedFileError(path, expected="a JSON object", found=value)
    leader, epoch = value.get("leaderId"), value.get("leaderEpoch")
    if type(leader) is not int or type(epoch) is not int:
        raise MalformedFileError(path, expected="whole numbers in leaderId and leaderEpoch", found=value)
    listed = value.get("currentVoters")
    if listed is None:
        return QuorumState(leader, epoch, None)
    voters = [one.get("voterId") if isinstance(one, dict) else None for one in listed] if _is_list(listed) else [None]
    if any(type(one) is not int for one in voters):
        raise MalformedFileError(path, expected="node ids in currentVoters", found=listed)
    return QuorumState(leader, epoch, tuple(sorted({one for one in voters if one is not None})))


def _is_list(value: object) -> bool:
    return isinstance(value, list)
