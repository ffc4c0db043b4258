"""What is staged on the other brokers of a cluster, by the listings that an operator made there.

One command sees the disks of one broker. ``logdirctl staged ls --json`` on another one says which staged files it
holds, where each ends, and whether that broker is stopped. Reads only.

Not here: the form of a listing (``formats.staged_document``), what follows from it (``decide.adopt``).

Spec: design §3.3 "Restore"; attacks A16, A25.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from logdir.decide.adopt import StagedFiles
from logdir.errors import FormatError, RefusedError
from logdir.formats.own import staged_document
from logdir.formats.own.staged_document import ListedReplica, ListedState, StagedDocument
from logdir.refusal_slug import Why
from logdir.service.cluster.image_source import read_whole

OPTION = "--with"
_USABLE = frozenset((ListedState.COUNTING, ListedState.DUE, ListedState.HELD, ListedState.INCOMING))
_AGAIN = "type on that broker, once it is stopped: logdirctl staged ls --json > FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherBrokers:
    """What the listings say together."""

    staged: tuple[StagedFiles, ...] = ()
    is_stopped: Mapping[int, bool] = field(default_factory=dict)
    """By node id: whether the broker was stopped when its listing was made."""


def read_listings(paths: Sequence[str], *, cluster_id: str | None, node_id: int) -> OtherBrokers:
    """Read the listings of other brokers.

    Args:
        paths: Of the files.
        cluster_id: Of the broker of this host.
        node_id: Likewise: no listing is of this one.

    Raises:
        ConfigError: a file cannot be read.
        FormatError: one is no listing.
        RefusedError: one is of another cluster or of this broker, two are of one broker, or one does not say all that
            is asked.
    """
    staged: list[StagedFiles] = []
    is_stopped: dict[int, bool] = {}
    for path in map(os.path.abspath, paths):
        document = _read(path)
        node = _node_of(document, cluster_id)
        if node == node_id or node in is_stopped:
            found = f"node {node}, {'this one' if node == node_id else 'as in another file'}"
            raise RefusedError(
                path, why=Why.LISTING_UNUSABLE, expected="one listing for each other broker", found=found, fix=_AGAIN
            )
        is_stopped[node] = document.is_broker_running is False
        staged += [_files(node, one) for one in document.replicas if one.state in _USABLE]
    return OtherBrokers(staged=tuple(staged), is_stopped=is_stopped)


def _read(path: str) -> StagedDocument:
    try:
        return staged_document.parse(read_whole(path, staged_document.MAX_BYTES, OPTION), path)
    except FormatError as error:
        raise type(error)(path, expected=error.expected, found=error.found, fix=_AGAIN) from error


def _node_of(document: StagedDocument, cluster_id: str | None) -> int:
    """Return the node id of a listing that is whole, and of this cluster."""
    if document.exit_status != 0:
        expected = "a listing of a broker whose log dirs can all be read, with exit status 0"
        fix = "type logdirctl staged ls on that broker: it says what is wrong there"
        raise RefusedError(
            document.path,
            why=Why.LISTING_UNUSABLE,
            expected=expected,
            found=f"exit status {document.exit_status}",
            fix=fix,
        )
    if document.cluster_id is None or document.cluster_id != cluster_id:
        expected, found = f"a listing of cluster {cluster_id}", document.cluster_id
        raise RefusedError(document.path, why=Why.LISTING_UNUSABLE, expected=expected, found=found, fix=_AGAIN)
    if document.node_id is None:
        raise RefusedError(
            document.path,
            why=Why.LISTING_UNUSABLE,
            expected="a listing that names its node",
            found="no node id",
            fix=_AGAIN,
        )
    return document.node_id


def _files(node_id: int, one: ListedReplica) -> StagedFiles:
    return StagedFiles(
        node_id=node_id,
        # Shown beside paths of this host, and never opened.
        log_dir=f"broker {node_id}: {one.log_dir}",
        name=one.name,
        ref=replace(one.ref, topic=one.ref.topic or "?"),
        log_end=one.log_end,
        is_partial=one.state is ListedState.INCOMING,
        is_tiered=one.is_tiered,
        until_ms=one.undo_until_ms,
    )
