"""Admission of request documents (LeaderAndIsr or StopReplica requests as JSON): each is applied once, in order, and
only if it is addressed to this node.

(controller epoch, sequence) must rise; an equal or lower pair changes nothing, unless an operator confirms a lower FULL
request. A document after a gap, or from a new controller that did not begin with a FULL request, is applied without the
earlier knowledge, and *FULL wanted* is set until a FULL request arrives. Without ``controller.json`` only a FULL
request is accepted, and no action or record follows from it until an operator confirms it: it might be an old one. The
records that are left on other disks still count.

Not here: the actions (``document``, ``reconcile``).

Spec: design §4; KIP-516, "LeaderAndIsr", "DeleteTopics"; kafka-behaviour §4.2, §4.3, §7; attacks A3, A27, A28.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from logdir.cluster.request_document import Api, RequestDocument, RequestType
from logdir.errors import Problem
from logdir.formats.own.controller_file import FILE_NAME, REQUESTS_UNKNOWN, ControllerFile, RequestMark, begin
from logdir.formats.own.inventory import Kind
from logdir.ids import TopicId
from logdir.observe.facts import StagedReplica
from logdir.reasons import Reason
from logdir.refusal_slug import Why


class Code(IntEnum):
    """Kafka error codes used in answers (kafka-behaviour §7)."""

    NONE = 0
    STALE_CONTROLLER_EPOCH = 11
    INVALID_REQUEST = 42
    STORAGE_ERROR = 56
    FENCED_LEADER_EPOCH = 74
    STALE_BROKER_EPOCH = 77
    INCONSISTENT_TOPIC_ID = 103


_ANYWAY = "logdirctl reconcile --from request:FILE --even-if-older-metadata --apply"
_STARTS_AGAIN = (
    f"if the controller's epochs start again, as after a restore of ZooKeeper, give its FULL request: {_ANYWAY}"
)
ID_IS_GONE = frozenset((Reason.TOPIC_ID_MISMATCH, Reason.TOPIC_REMOVED))
"""Reasons of staging that mean the id itself was removed: a later request for that id is outdated (attacks A3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The document may be applied."""

    acts: bool
    """Whether actions follow; otherwise the document only adds knowledge."""
    is_after_gap: bool
    last_applied: ControllerFile | None
    """The record to make durable after all its actions are done; until then the document may be given again. ``None``:
    the record is lost, and no operator has confirmed the document.
    """
    unrecorded: Problem | None = None
    """Why there is no such record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """The last document again: answered as before, without actions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The whole request is refused."""

    code: Code
    problem: Problem


Admission = Admitted | Repeated | Rejected


def admit(
    document: RequestDocument,
    *,
    node_id: int,
    cluster_id: str | None,
    last_applied: ControllerFile | None,
    readable: ControllerFile | None = None,
    staged: Iterable[StagedReplica],
    is_confirmed: bool = False,
) -> Admission:
    """Decide whether a document may be applied.

    Args:
        document: The document, just read.
        node_id: Node id of this broker.
        cluster_id: Cluster id of its log dirs.
        last_applied: ``controller.json``; ``None`` if it is missing or unreadable.
        readable: What is left of it then, from ``position.readable``.
        staged: All staged replicas of all log dirs.
        is_confirmed: Whether an operator confirms a FULL request although ``controller.json`` is missing, or holds
            higher epochs, which the document then replaces.
    """
    problem = _against_address(document, node_id)
    if problem is not None:
        return Rejected(code=Code.INVALID_REQUEST, problem=problem)
    is_full = document.type is RequestType.FULL
    is_lost = last_applied is None or last_applied.requests == REQUESTS_UNKNOWN
    if is_lost and not is_full:
        return _full_wanted(document)
    known = last_applied or readable or begin(cluster_id, node_id)
    against = _against_broker_epoch(document, known) or _against_mark(document, known)
    # Epochs start again with a restored ZooKeeper, and one bad document may have raised them beyond any later one.
    is_lowered = against is not None and is_full and is_confirmed
    if against is not None and not is_lowered:
        return against
    if is_lost:
        # An unconfirmed FULL might be an old one. It makes no record whole: what the lost one held would be forgotten.
        followed = _followed(document, known, is_full_wanted=is_lowered) if is_confirmed else None
        return _stale(document, staged) or Admitted(
            acts=is_confirmed,
            is_after_gap=True,
            last_applied=followed,
            unrecorded=None if is_confirmed else _unconfirmed(document),
        )
    if not is_lowered and _mark(document) == known.requests:
        return Repeated()
    is_after_gap = is_lowered or (not is_full and _may_lack_one(document, known))
    # A document that an operator confirmed may be an old one: purges of what it leaves out wait for the next.
    is_full_wanted = is_after_gap or (not is_full and known.is_full_wanted)
    return _stale(document, staged) or Admitted(
        acts=True,
        is_after_gap=is_after_gap,
        last_applied=_followed(document, known, is_full_wanted=is_full_wanted),
    )


def _full_wanted(document: RequestDocument) -> Rejected:
    return Rejected(
        code=Code.STALE_CONTROLLER_EPOCH,
        problem=Problem(
            Why.FULL_REQUEST_NEEDED.value,
            document.path,
            f"a FULL request, since {FILE_NAME} was lost",
            f"{document.api.value} of type {document.type.name}",
            f"give the controller's next FULL request: {_ANYWAY} follows it without the file",
        ),
    )


def _unconfirmed(document: RequestDocument) -> Problem:
    expected, found = "a record of the requests that were followed", f"{FILE_NAME} was lost in a work root"
    fix = f"nothing was done; compare it with the cluster, then {_ANYWAY}"
    return Problem(Why.LAST_APPLIED_UNKNOWN.value, document.path, expected, found, fix)


def _against_mark(document: RequestDocument, last_applied: ControllerFile) -> Rejected | None:
    known, mark = last_applied.requests, _mark(document)
    if known is None or mark >= known:
        return None
    return Rejected(
        code=Code.STALE_CONTROLLER_EPOCH,
        problem=Problem(
            Why.REQUEST_OVERTAKEN.value,
            document.path,
            f"a request after epoch {known.controller_epoch}, sequence {known.sequence}",
            f"epoch {mark.controller_epoch}, sequence {mark.sequence}",
            f"superseded by a newer one; nothing was done; {_STARTS_AGAIN}",
        ),
    )


def _mark(document: RequestDocument) -> RequestMark:
    return RequestMark(controller_epoch=document.controller_epoch, sequence=document.sequence)


def _may_lack_one(document: RequestDocument, last_applied: ControllerFile) -> bool:
    known = last_applied.requests
    if known is None or known.controller_epoch != document.controller_epoch:
        return True  # A new controller begins with a FULL request (KIP-516, "DeleteTopics").
    if document.sequence != known.sequence + 1:
        return True
    # After a new registration the broker receives a FULL request first, too.
    return last_applied.broker_epoch is not None and document.broker_epoch > last_applied.broker_epoch


def _against_address(document: RequestDocument, node_id: int) -> Problem | None:
    if not document.items:
        # An empty listing is an error, not an answer (design §2 law 1).
        return Problem(
            Why.REQUEST_EMPTY.value, document.path, "at least one partition", "no partition", "nothing was done"
        )
    for item in document.items:
        if item.state is not None and node_id not in item.state.replicas:
            return Problem(
                Why.REQUEST_FOR_ANOTHER_BROKER.value,
                document.path,
                f"node {node_id} among the replicas of every partition",
                f"{item.ref.topic}-{item.ref.partition} on {', '.join(map(str, item.state.replicas)) or 'no node'}",
                "it is meant for another broker; nothing was done",
            )
    return None


def _against_broker_epoch(document: RequestDocument, last_applied: ControllerFile) -> Rejected | None:
    known = last_applied.broker_epoch
    is_unsaid = document.broker_epoch < 0
    if known is None or document.broker_epoch == known or (is_unsaid and document.api is not Api.STOP_REPLICA):
        return None
    found = "no broker epoch" if is_unsaid else f"{document.broker_epoch}"
    if not is_unsaid and document.broker_epoch < known:
        expected = f"broker epoch {known} or later"
        fix = f"it is meant for an earlier start; nothing was done; {_STARTS_AGAIN}"
    elif document.api is Api.STOP_REPLICA:
        # The request names no replicas: only the broker epoch shows its addressee.
        expected, fix = (
            f"broker epoch {known}",
            f"it may be meant for another broker: give the controller's next FULL request; {_STARTS_AGAIN}",
        )
    else:
        return None
    return Rejected(
        code=Code.STALE_BROKER_EPOCH,
        problem=Problem(Why.BROKER_EPOCH_DIFFERS.value, document.path, expected, found, fix),
    )


def _stale(document: RequestDocument, staged: Iterable[StagedReplica]) -> Rejected | None:
    asked = {item.ref.topic_id for item in document.items if item.state is not None}
    for one in staged:
        gone = _gone_id(one)
        if gone is not None and gone in asked:
            return Rejected(
                code=Code.STALE_CONTROLLER_EPOCH,
                problem=Problem(
                    Why.STALE_TOPIC_ID.value,
                    document.path,
                    "topic ids whose removal is not known here",
                    f"{gone}, whose replica was staged as {one.place}",
                    "if the request is old, ignore it; if its topic is wanted, restore or purge that replica first",
                ),
            )
    return None


def _gone_id(one: StagedReplica) -> TopicId | None:
    if one.kind is not Kind.STAGED or one.marker is None or one.marker.reason not in ID_IS_GONE:
        return None
    return one.ref.topic_id or one.marker.topic_id


def _followed(document: RequestDocument, last_applied: ControllerFile, *, is_full_wanted: bool) -> ControllerFile:
    # Lower than before only in a FULL request that an operator confirmed; -1 is none.
    broker_epoch = document.broker_epoch if document.broker_epoch >= 0 else last_applied.broker_epoch
    return replace(last_applied, requests=_mark(document), broker_epoch=broker_epoch, is_full_wanted=is_full_wanted)
