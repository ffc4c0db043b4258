"""Processing of one request document (a LeaderAndIsr or StopReplica request as JSON): admitted or refused, merged into
the known image, reconciled, and answered as KIP-516 asks.

Every partition of the document gets an answer. A partition that is refused on this node, or may lie on an unreadable
disk, is answered STORAGE_ERROR (56). The plan's ``last_applied`` becomes durable when all its actions are done; an
interrupted document, or one that waits for the staging limit, can be given again.

Not here: the three steps themselves (``admission``, ``logdir.cluster.requests``, ``reconcile``).

Spec: design §4; KIP-516, "LeaderAndIsrResponse v5", "StopReplicaResponse v4"; kafka-behaviour §4.2, §4.3, §7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from logdir.cluster import requests
from logdir.cluster.image import Image
from logdir.cluster.request_document import Api, Item, RequestDocument
from logdir.cluster.requests import Receipt
from logdir.decide.image.admission import Admitted, Code, Rejected, Repeated, admit
from logdir.decide.reconcile import ReconcilePlan, ReconcileRequest, plan_reconcile
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts, Replica, StagedReplica
from logdir.reasons import Reason
from logdir.replica_ref import ReplicaKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer for one partition of a request."""

    item: Item
    code: Code


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPlan:
    """What follows from a request document: its answers, the new image and the actions."""

    code: Code
    """The code of the whole request."""
    answers: tuple[Answer, ...]
    """In the order of the request's partitions."""
    problem: Problem | None
    """Why the whole request is refused."""
    image: Image | None
    """The image after it; unchanged if it was refused or repeated."""
    plan: ReconcilePlan | None
    """The actions; ``None`` if the document was refused or repeated."""


def plan_document(
    document: RequestDocument,
    known: Image | None,
    request: ReconcileRequest,
    facts: Sequence[LogDirFacts],
    *,
    node_id: int,
    cluster_id: str | None,
    written_ms: int,
) -> DocumentPlan:
    """Decide the actions and answers of a request document.

    Args:
        document: The document, just read.
        known: The image from earlier documents; ``None`` after a start.
        request: The input of the reconcile, not the document; its image is ignored.
        facts: Facts of every configured log dir, in the configured order.
        node_id: Node id of this broker.
        cluster_id: Cluster id of its log dirs.
        written_ms: Wall clock time at which the document was written; a later one than now counts as now.
    """
    host_context = request.host_context
    admission = admit(
        document,
        node_id=node_id,
        cluster_id=cluster_id,
        last_applied=host_context.last_applied,
        readable=host_context.readable,
        staged=[item for one in facts for item in one.staged],
        is_confirmed=host_context.is_position_confirmed,
    )
    match admission:
        case Rejected():
            answers = tuple(Answer(item=item, code=admission.code) for item in document.items)
            return DocumentPlan(code=admission.code, answers=answers, problem=admission.problem, image=known, plan=None)
        case Repeated():
            answers = tuple(_answers(document, known, facts, refused=frozenset(), is_repeated=True))
            return DocumentPlan(code=Code.NONE, answers=answers, problem=None, image=known, plan=None)
        case Admitted():
            # A document may wait for days until its broker stops: the instant at which it is followed proves nothing
            # about a directory that was created meanwhile (A1).
            receipt = Receipt(
                node_id=node_id,
                cluster_id=cluster_id,
                written_ms=min(written_ms, max(0, request.now.wall_ms)),
                acts=admission.acts,
                is_after_gap=admission.is_after_gap,
            )
            return _follow(document, known, request, facts, admission, receipt)


def _follow(
    document: RequestDocument,
    known: Image | None,
    request: ReconcileRequest,
    facts: Sequence[LogDirFacts],
    admitted: Admitted,
    receipt: Receipt,
) -> DocumentPlan:
    image = requests.fold(known, document, receipt)
    image_before = None if admitted.is_after_gap else known
    plan = plan_reconcile(replace(request, image=image), facts)
    # Actions held by the staging limit are not done: the document can be given again once they are confirmed.
    is_done = plan.refused is None and plan.over_limit is None
    # A document without actions asks nothing of a replica: no refusal of one is an answer.
    refused = frozenset((one.log_dir, one.path) for one in plan.refusals if admitted.acts)
    last_applied = admitted.last_applied
    if last_applied is not None and image.conflicting:
        last_applied = replace(last_applied, is_full_wanted=True)
    return DocumentPlan(
        code=Code.NONE,
        answers=tuple(_answers(document, image_before, facts, refused=refused, is_repeated=False)),
        problem=None,
        image=image,
        plan=replace(
            plan,
            last_applied=last_applied if is_done else None,
            unrecorded=admitted.unrecorded,
        ),
    )


def _answers(
    document: RequestDocument,
    known: Image | None,
    facts: Sequence[LogDirFacts],
    *,
    refused: frozenset[tuple[str, str]],
    is_repeated: bool,
) -> Iterator[Answer]:
    conflicting = requests.contradicting(document.items)
    places = _Places(document, facts, refused=refused, is_repeated=is_repeated)
    for item in document.items:
        if not conflicting.isdisjoint(item.ref.keys):
            code = Code.INVALID_REQUEST
        elif places.differs(item):
            code = Code.INCONSISTENT_TOPIC_ID
        elif requests.is_fenced(known, item):
            is_stop = document.api is Api.STOP_REPLICA
            code = Code.FENCED_LEADER_EPOCH if is_stop else Code.STALE_CONTROLLER_EPOCH
        elif places.is_refused(item) or places.may_be_unseen(item):
            code = Code.STORAGE_ERROR
        else:
            code = Code.NONE
        yield Answer(item=item, code=code)


class _Places:
    """Topic ids of a document's partitions on disk, and which of them are refused there."""

    def __init__(
        self,
        document: RequestDocument,
        facts: Sequence[LogDirFacts],
        *,
        refused: frozenset[tuple[str, str]],
        is_repeated: bool,
    ) -> None:
        self._is_unread = any(one.problem is not None for one in facts)
        self._refused: set[ReplicaKey] = set()
        self._ids: dict[ReplicaKey, set[TopicId | None]] = {
            key: set() for item in document.items for key in item.ref.keys
        }
        for one in facts:
            for replica in one.replicas:
                if replica.kind is Kind.LIVE:
                    self._add(replica)
                    if (replica.log_dir, replica.path) in refused:
                        self._refused.update(self._keys(replica))
            for item in one.staged:
                # A replica staged for its different id is answered as before its staging.
                if is_repeated and item.marker is not None and item.marker.reason is Reason.TOPIC_ID_MISMATCH:
                    self._add(item)

    def _add(self, item: Replica | StagedReplica) -> None:
        for key in self._keys(item):
            self._ids[key].add(item.ref.topic_id)

    def _keys(self, item: Replica | StagedReplica) -> Iterator[ReplicaKey]:
        return (key for key in item.ref.keys if key in self._ids)

    def is_refused(self, item: Item) -> bool:
        """Whether the requested change of a replica of it is refused."""
        return any(key in self._refused for key in item.ref.keys)

    def differs(self, item: Item) -> bool:
        """Whether a replica of the item's name has another id; a zero id differs from no id."""
        ref = item.ref
        if ref.topic is None or ref.topic_id is None:
            return False
        return bool(self._ids[ref.topic, ref.partition] - {None, ref.topic_id})

    def may_be_unseen(self, item: Item) -> bool:
        """Whether no replica of it was found, and an unreadable log dir may hold one."""
        return self._is_unread and not any(self._ids[key] for key in item.ref.keys)
