"""What stories need: requests handed in one by one, and images of metadata logs written for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from logdir.clock import Instant
from logdir.cluster import metadata_log, request_document
from logdir.cluster.image import Image, Source
from logdir.cluster.metadata_log import Watermark
from logdir.decide.image.document import DocumentPlan, plan_document
from logdir.decide.image.trust import HostContext
from logdir.decide.reconcile import ReconcilePlan, ReconcileRequest, plan_reconcile
from logdir.decide.reconcile_action import GiveId, HoldStaged, StageReplica
from logdir.formats.own import controller_file
from logdir.formats.own.controller_file import ControllerFile
from logdir.formats.own.staging_limit_file import Count
from logdir.observe.facts import LogDirFacts
from tests.logdir.cluster.log_dir import LogDir
from tests.reconcile import universe
from tests.reconcile.disk import CLUSTER, NODE, NOW, apply, births

FRESH = controller_file.begin(CLUSTER, NODE)


def host_context(**changed: Any) -> HostContext:
    return replace(HostContext(last_applied=FRESH, is_broker_running=False, is_own_log=True), **changed)


def request(image: Image, facts: Sequence[LogDirFacts], **changed: Any) -> ReconcileRequest:
    made = ReconcileRequest(
        image=image, now=NOW, host_context=host_context(), births=births(facts), record=(), is_confirmed=True
    )
    return replace(made, **changed)


def reconcile(image: Image, *facts: LogDirFacts, **changed: Any) -> ReconcilePlan:
    return plan_reconcile(request(image, facts, **changed), facts)


def up_to(log: LogDir, offset: int | None = None, **changed: Any) -> Image:
    """Read a log up to a watermark of its leader; the end, if nothing else is said."""
    mark = Watermark(offset=log.offset if offset is None else offset, epoch=log.epoch, is_prefix_checked=True)
    return metadata_log.read(str(log.directory), node_id=NODE, cluster_id=CLUSTER, **({"watermark": mark} | changed))


def staged(plan: ReconcilePlan | None) -> list[tuple[str, str, bool]]:
    """Path, reason and whether there is a deadline, of what is staged."""
    return [
        (action.path, action.reason.value, action.undo_until_ms is not None)
        for action in (plan.actions if plan else ())
        if isinstance(action, StageReplica)
    ]


def held(plan: ReconcilePlan | None) -> list[str]:
    return [action.name for action in (plan.actions if plan else ()) if isinstance(action, HoldStaged)]


def given(plan: ReconcilePlan | None) -> list[tuple[str, str]]:
    return [(one.path, str(one.ref.topic_id)) for one in (plan.actions if plan else ()) if isinstance(one, GiveId)]


def why(plan: ReconcilePlan | None) -> dict[str, str]:
    return {refusal.path: refusal.problem.slug for refusal in (plan.refusals if plan else ())}


class Broker:
    """A stopped broker whose disks follow request documents."""

    def __init__(
        self,
        *facts: LogDirFacts,
        last_applied: ControllerFile | None = FRESH,
        readable: ControllerFile | None = None,
    ) -> None:
        self.facts = facts
        self.last_applied = last_applied
        self.readable = readable
        self.is_position_confirmed = False
        self.known: Image | None = None
        self.record: tuple[Count, ...] = ()
        self.now: Instant = NOW
        self.is_confirmed = True
        self.options: dict[str, Any] = {}

    def decide(self, document: dict[str, Any]) -> DocumentPlan:
        """Return what would follow."""
        nothing = Image(source=Source.REQUESTS, origin="", node_id=NODE, cluster_id=CLUSTER)
        asked = request(
            nothing,
            self.facts,
            now=self.now,
            host_context=host_context(
                last_applied=self.last_applied,
                readable=self.readable,
                is_position_confirmed=self.is_position_confirmed,
            ),
            record=self.record,
            is_confirmed=self.is_confirmed,
            **self.options,
        )
        parsed = request_document.parse(universe.text(document), "/inbox/1.json")
        return plan_document(
            parsed,
            self.known,
            asked,
            self.facts,
            node_id=NODE,
            cluster_id=CLUSTER,
            written_ms=self.now.wall_ms,
        )

    def receives(self, document: dict[str, Any]) -> DocumentPlan:
        """Do what follows."""
        decided = self.decide(document)
        self.known = decided.image
        if decided.plan is not None:
            self.facts = apply(self.facts, decided.plan.actions)
            self.last_applied = decided.plan.last_applied or self.last_applied
            self.record = self.record if decided.plan.record is None else decided.plan.record
        return decided

    def restarts(self) -> None:
        self.known = None

    def live(self) -> list[str]:
        return [replica.path for one in self.facts for replica in one.replicas]

    def deleting(self) -> list[str]:
        return [item.name for one in self.facts for item in one.staged]


def codes(decided: DocumentPlan) -> list[int]:
    return [int(answer.code) for answer in decided.answers]
