"""Trust rules: whether an image may be applied to the disks of this broker at all.

Refused: an image of another cluster, one that does not contain this node, one older than ``reconcile.max.metadata.age``
beside a running broker. Nothing is changed or purged by an image older than the last applied position, or without such
a position. If the node runs on another host, nothing is changed.

Not here: the assignment of one replica (``logdir.cluster.assignment``).

Spec: design §4; attacks A20, A29, A43.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logdir.cluster.image import Broker, Image, Source
from logdir.decide.image.position import against_position
from logdir.errors import Problem
from logdir.formats.own.controller_file import ControllerFile
from logdir.ids import Uuid
from logdir.observe.facts import LogDirFacts
from logdir.paths import META_PROPERTIES
from logdir.refusal_slug import Why

SETTING = "reconcile.max.metadata.age"
DEFAULT_MAX_AGE_MS = 10 * 60 * 1000
YOUNGER_BY_MS = 10 * 60 * 1000
"""How much newer than a directory an image must be, to allow for clocks that differ (A1)."""
ANY_AGE_MS = 2**63
"""For commands that accept an image of any age."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostContext:
    """Facts of this host apart from its disks."""

    last_applied: ControllerFile | None
    """``controller.json``; ``None`` if it is missing or unreadable."""
    is_broker_running: bool
    readable: ControllerFile | None = None
    """From ``position.readable``: what is left of ``controller.json`` where one is lost, to start from."""
    max_age_ms: int = DEFAULT_MAX_AGE_MS
    is_own_log: bool = False
    """Whether the image is from the metadata log that this host's broker writes."""
    is_position_confirmed: bool = False
    """Whether an operator accepts an image or FULL request older than the last applied position, or without such a
    position.
    """
    has_work_roots: bool = True
    """Whether every log dir has the work root that contains ``controller.json``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRejection:
    """Why an image is not used."""

    problem: Problem
    holds_purges: bool
    """Whether nothing may be purged, either."""


def check_image(
    image: Image, facts: Sequence[LogDirFacts], host_context: HostContext, now_ms: int
) -> ImageRejection | None:
    """Return why an image may not be applied; ``None`` if it may.

    Args:
        image: Any image.
        facts: Facts of every configured log dir.
        host_context: Facts of this host.
        now_ms: Current wall clock time, milliseconds.
    """
    problem = _against_cluster(image, facts) or _against_node(image) or _against_age(image, host_context, now_ms)
    if problem is not None:
        return ImageRejection(problem=problem, holds_purges=False)
    problem = _against_twin(image, host_context)
    # Request documents were compared with the same file one by one (``admission``).
    if problem is None and not host_context.is_position_confirmed and image.source is not Source.REQUESTS:
        problem = against_position(image, host_context.last_applied, has_work_roots=host_context.has_work_roots)
    return None if problem is None else ImageRejection(problem=problem, holds_purges=True)


def is_proof_of_removal(image: Image, began_ms: int | None) -> bool:
    """Whether a removal that an image shows counts for a directory or marker.

    A metadata log or a request contains the removal itself. The brokers of a live cluster only know no such topic id,
    which may be because they do not know it yet.

    Args:
        image: Any image that shows the removal.
        began_ms: When the directory or marker began (wall clock); ``None``: not known.
    """
    if image.source is not Source.LIVE_CLUSTER:
        return True
    return began_ms is not None and image.as_of_ms - began_ms > YOUNGER_BY_MS


def is_of_cluster(image: Image, facts: Sequence[LogDirFacts]) -> bool:
    """Whether an image is of the log dirs' cluster, as far as their cluster ids are known."""
    return image.cluster_id is None or _clusters(facts) in ([], [image.cluster_id])


def _clusters(facts: Sequence[LogDirFacts]) -> list[str]:
    return sorted({one.cluster_id for one in facts if one.problem is None and one.cluster_id is not None})


def _against_cluster(image: Image, facts: Sequence[LogDirFacts]) -> Problem | None:
    if image.cluster_id is None:
        # Requests carry no cluster id; the operator is responsible for it.
        if image.source in (Source.REQUESTS, Source.ZNODES):
            return None
        beside = f"{image.origin.rpartition('/')[0]}/{META_PROPERTIES}"
        fix = f"copy {META_PROPERTIES} of the log dir that the metadata log was copied from to {beside}"
        return Problem(
            Why.SOURCE_CLUSTER_UNKNOWN.value,
            image.origin,
            "a metadata log whose cluster is known",
            f"no {beside}",
            fix,
        )
    if is_of_cluster(image, facts):
        return None
    found = f"{image.cluster_id}, while the log dirs are of {' and '.join(_clusters(facts))}"
    return Problem(
        Why.SOURCE_FOREIGN.value,
        image.origin,
        "metadata of the cluster of the log dirs",
        found,
        "name metadata of this cluster with --from",
    )


def _against_node(image: Image) -> Problem | None:
    if image.source is Source.REQUESTS or image.names_node():
        return None  # Each request names the node in every partition, or was refused as a whole (A27).
    expected = f"an image that names node {image.node_id}"
    return Problem(
        Why.NODE_NOT_IN_SOURCE.value,
        image.origin,
        expected,
        "neither a registration nor a replica of it",
        "compare node.id with the cluster",
    )


def _against_age(image: Image, host_context: HostContext, now_ms: int) -> Problem | None:
    # While the broker is stopped its own log ages; then only removals in the log count (attacks A29).
    if image.source is Source.REQUESTS or not host_context.is_broker_running:
        return None
    age_ms = now_ms - image.as_of_ms
    if age_ms <= host_context.max_age_ms:
        return None
    expected = f"an image at most {host_context.max_age_ms} ms old ({SETTING})"
    return Problem(
        Why.METADATA_TOO_OLD.value,
        image.origin,
        expected,
        f"{age_ms} ms",
        "see whether the broker still follows the metadata log",
    )


def _against_twin(image: Image, host_context: HostContext) -> Problem | None:
    registered = image.brokers.get(image.node_id)
    if registered is None or registered.is_fenced or host_context.is_broker_running:
        return None
    if _is_ours(registered, image, host_context):
        return None
    is_live = image.source is Source.LIVE_CLUSTER
    found = "the cluster lists it among its brokers"
    if not is_live:
        incarnation = Uuid(registered.incarnation)
        found = f"registered and unfenced with incarnation {incarnation}, not the last one of this host"
    again = "repeat the command" if is_live else "copy the log again"
    return Problem(
        Why.NODE_RUNS_ELSEWHERE.value,
        image.origin,
        f"node {image.node_id} not running elsewhere while no broker runs here",
        found,
        f"if its broker was stopped or killed here a moment ago, {again} once the cluster has fenced it; "
        "otherwise these disks are a clone, or were detached from the host on which it runs: change nothing here",
    )


def _is_ours(registered: Broker, image: Image, host_context: HostContext) -> bool:
    if image.source is Source.LIVE_CLUSTER:
        return False  # Its answers have no incarnation, and a broker that does not run is soon not listed any more.
    last = None if host_context.last_applied is None else host_context.last_applied.incarnation_id
    if last is not None:
        return last == str(Uuid(registered.incarnation))
    # Only our broker writes its own log: the last registration in it is our broker's.
    return image.source is Source.METADATA_LOG and host_context.is_own_log
