"""Preconditions of the layout verbs on a broker's log dirs.

Not here: the actions of a verb (``transitions``).

Spec: design §3.1, §7.7, §8; attacks A21, A51.
"""

from __future__ import annotations

from collections.abc import Sequence

from logdir.decide.layout.action import LayoutView
from logdir.errors import ANOTHERS_DISK, RefusedError, in_words
from logdir.formats.own.layout_file import MAX_BROKER_CHARACTERS, LayoutFile, LayoutState
from logdir.formats.own.plan_document import PlanDocument
from logdir.paths import LAYOUT
from logdir.refusal_slug import Why

RELEASES = "2.8 to 4.3"
"""Kafka releases; none of them reads topic-id directories (design §8)."""


def files_of(broker: Sequence[LayoutView]) -> dict[str, LayoutFile]:
    """Return the ``layout.json`` of each log dir that has one."""
    return {seen.log_dir: seen.file for seen in broker if seen.file is not None}


def require_one_broker(broker: Sequence[LayoutView]) -> None:
    """Require that all log dirs belong to one broker. Raises ``RefusedError`` if not."""
    for seen in broker:
        file, first = seen.file, broker[0]
        if (seen.cluster_id, seen.node_id) != (first.cluster_id, first.node_id):
            raise RefusedError(
                seen.log_dir,
                why=Why.FOREIGN,
                expected=f"{_broker(first)} as in {first.log_dir}",
                found=_broker(seen),
                fix=ANOTHERS_DISK,
            )
        if file is not None and (file.cluster_id, file.node_id) != (seen.cluster_id, seen.node_id):
            raise RefusedError(
                f"{seen.log_dir}/{LAYOUT}",
                why=Why.FOREIGN,
                expected=_broker(seen),
                found=_broker(file),
                fix=ANOTHERS_DISK,
            )


def _broker(of: LayoutView | LayoutFile) -> str:
    return f"cluster {in_words(of.cluster_id)}, node {in_words(of.node_id)}"


def require_known(broker: Sequence[LayoutView], *, confirmed: bool) -> None:
    """Refuse topic-id directories that no ``layout.json`` explains (A21), unless an operator confirmed them."""
    for seen in broker:
        if seen.file is None and seen.is_under_ids and not confirmed:
            code = Why.LAYOUT_FILE_MISSING.value
            raise RefusedError(
                f"{seen.log_dir}/{LAYOUT}",
                why=Why.LAYOUT_FILE_MISSING,
                expected="layout.json, because this log dir has topic-id directories",
                found="no such file",
                fix=f"see logdirctl layout status; if the replicas are this broker's, add --even-if-found {code}",
            )


def require_plan(plan: PlanDocument, broker: Sequence[LayoutView]) -> None:
    """Require that a plan is for this broker and all its log dirs. Raises ``RefusedError`` if not."""
    header, first = plan.header, broker[0]
    for what, wanted, found in (
        ("cluster id", header.cluster_id, first.cluster_id),
        ("node id", header.node_id, first.node_id),
        ("log dirs", sorted(header.log_dirs), sorted(seen.log_dir for seen in broker)),
    ):
        if wanted != found:
            raise RefusedError(
                f"plan of {header.cluster}, node {header.node_id}",
                why=Why.FOREIGN_PLAN,
                expected=f"{what} {in_words(found)}, this broker's",
                found=wanted,
                fix="name the plan document of this broker; it must list exactly the log dirs that answer",
            )


def require_states(broker: Sequence[LayoutView], allowed: set[LayoutState], sha256: str | None, first: str) -> str:
    """Return the SHA-256 of the plan to which every log dir is bound.

    Args:
        broker: All its log dirs.
        allowed: The allowed layout states.
        sha256: The plan to which they must be bound; ``None``: any single plan.
        first: The verb that leads to an allowed state.

    Raises:
        RefusedError: a log dir is in another state, or bound to another plan.
    """
    for seen in broker:
        file = seen.file
        if file is None or file.state not in allowed or (sha256 is not None and file.plan_sha256 != sha256):
            found = "no such file" if file is None else f"{file.state.words}, plan {file.plan_sha256}"
            raise RefusedError(
                f"{seen.log_dir}/{LAYOUT}",
                why=Why.LAYOUT_STATE_DIFFERS,
                expected=" or ".join(state.words for state in LayoutState if state in allowed)
                + ("" if sha256 is None else f", plan {sha256}"),
                found=found,
                fix=f"logdirctl {first} first",
            )
        sha256 = file.plan_sha256
    return sha256 or ""


def require_broker_named(for_broker: str) -> None:
    """Require that a text can name a broker. Raises ``RefusedError`` if not."""
    if for_broker.strip() and for_broker.isprintable() and len(for_broker) <= MAX_BROKER_CHARACTERS:
        return
    raise RefusedError(
        "--for-broker",
        why=Why.FOR_BROKER_MISSING,
        expected=f"the broker that reads topic-id directories, in 1 to {MAX_BROKER_CHARACTERS} printable characters",
        found=for_broker or "no name",
        fix=f"no released Kafka ({RELEASES}) reads them: logdirctl layout rollback takes the replicas back to names",
    )
