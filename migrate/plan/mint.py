"""Minting topic ids for topics without one: the same inventories always give the same ids.

A topic none of whose replicas in its cluster has an id gets one derived from the digest of the inventories, or the id
from an earlier plan, so that brokers migrated under the earlier plan agree with the remaining ones. No id is minted if
the true id may be on an unread disk.

Not here: finding these topics (``conflicts``), ids of sibling replicas (``steps``), writing ids to disks (``logdir``).

Spec: design §7.6.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from itertools import count
from pathlib import Path

from logdir.errors import InvalidIdError
from logdir.ids import TopicId
from migrate.errors import PlanFormatError
from migrate.plan.summary import MintedId

_FIX = "name the directory of a plan that `logdirctl fleet plan` wrote"


def mint(inventory_sha256: str, cluster: str, topic: str, taken: Collection[str]) -> str:
    """Return the minted id of one topic.

    Args:
        inventory_sha256: Digest of the fleet's inventories, 64 hex digits.
        cluster: The cluster's name.
        topic: The topic's name.
        taken: Ids that must not be used: all that occur in the fleet.

    Returns:
        The base64 text of a v4 UUID, not reserved, not starting with ``-``, not in ``taken``.

    Spec: design §7.6.

    >>> mint("0" * 64, "east", "orders", set())
    'P_LQYc07Qiy4Nn-g5vSuUA'
    """
    for counter in count():
        key = "\0".join((inventory_sha256, cluster, topic, str(counter)))
        # surrogatepass: a name that is not valid Unicode must not stop a plan.
        drawn = TopicId.from_random(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:16])
        if drawn is not None and str(drawn) not in taken:
            return str(drawn)
    raise AssertionError("unreachable: counters do not end")


def assign_ids(
    inventory_sha256: str,
    topics: Iterable[tuple[str, str]],
    *,
    former: Mapping[tuple[str, str], str],
    taken: Collection[str],
    live_elsewhere: Mapping[str, Collection[tuple[str, str]]],
) -> tuple[MintedId, ...]:
    """Return an id for every topic.

    Args:
        inventory_sha256: Digest of the fleet's inventories.
        topics: (cluster name, topic), each once, in any order.
        former: Ids of an earlier plan by (cluster name, topic); used first.
        taken: All ids that occur in the fleet; only for newly minted ids, because an earlier plan's id may occur where
            that plan was carried out.
        live_elsewhere: Topics by the ids of their live replicas. An earlier plan's id is not used again if a different
            topic has it now: one id would have two names.

    Returns:
        The ids, sorted by cluster and topic.
    """
    minted: list[MintedId] = []
    given: set[str] = set(former.values())
    for cluster, topic in sorted(topics):
        earlier = former.get((cluster, topic))
        if earlier is not None and not set(live_elsewhere.get(earlier, ())) - {(cluster, topic)}:
            topic_id = earlier
        else:
            topic_id = mint(inventory_sha256, cluster, topic, _Either(taken, given))
        given.add(topic_id)
        minted.append(MintedId(cluster=cluster, topic=topic, topic_id=topic_id))
    return tuple(minted)


class _Either(Collection[str]):
    """The union of two sets, without a copy."""

    def __init__(self, one: Collection[str], other: Collection[str]) -> None:
        self._one, self._other = one, other

    def __contains__(self, value: object) -> bool:
        return value in self._one or value in self._other

    def __iter__(self):  # type: ignore[no-untyped-def]  # only membership is asked
        yield from self._one
        yield from self._other

    def __len__(self) -> int:
        return len(self._one) + len(self._other)


def read_former(plan_dir: Path) -> dict[tuple[str, str], str]:
    """Read the ids that an earlier plan minted.

    Args:
        plan_dir: The directory of the earlier plan.

    Returns:
        Ids by (cluster name, topic).

    Raises:
        PlanFormatError: the directory has no ``summary.json`` of a plan, or an id in it is invalid or repeated.
    """
    path = plan_dir / "summary.json"
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        listed = [(entry["cluster"], entry["topic"], entry["topic_id"]) for entry in summary["minted"]]
        version = summary["plan"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlanFormatError(str(path), expected="the keys minted and plan", found=error, fix=_FIX) from error
    if version != 1:
        raise PlanFormatError(str(path), expected="plan version 1", found=version, fix=_FIX)
    former: dict[tuple[str, str], str] = {}
    for cluster, topic, topic_id in listed:
        if not all(isinstance(text, str) for text in (cluster, topic, topic_id)) or not _is_id(topic_id):
            raise PlanFormatError(str(path), expected="a valid topic id for each topic", found=topic_id, fix=_FIX)
        if (cluster, topic) in former:
            raise PlanFormatError(
                str(path), expected="one id per topic", found=f"two: {topic!r} of {cluster}", fix=_FIX
            )
        former[cluster, topic] = topic_id
    if len(set(former.values())) != len(former):
        raise PlanFormatError(str(path), expected="each id for one topic only", found="one given twice", fix=_FIX)
    return former


def _is_id(text: str) -> bool:
    try:
        parsed = TopicId.parse(text)
    except InvalidIdError:
        return False
    return str(parsed) == text and not parsed.is_reserved
