"""Staged replicas on the other brokers of a cluster, from listings that an operator made there.

A command reads only the disks of its own broker. The output of ``logdirctl staged ls --json`` on another broker lists
its staged replicas with their log ends, and whether that broker is stopped. Only reads.

Not here: the format of a listing (``formats.own.staged_document``), the decision (``decide.adopt``).

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
from logdir.service.cluster.read_whole import read_whole

OPTION = "--with"
_USABLE = frozenset((ListedState.COUNTING, ListedState.DUE, ListedState.HELD, ListedState.INCOMING))
_AGAIN = "run on each other broker of this cluster, once it is stopped: logdirctl staged ls --json > FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherBrokers:
    """The combined content of the listings."""

    staged: tuple[StagedFiles, ...] = ()
    is_stopped: Mapping[int, bool] = field(default_factory=dict)
    """By node id: whether the broker was stopped when its listing was made."""


def read_listings(paths: Sequence[str], *, cluster_id: str | None, node_id: int) -> OtherBrokers:
    """Read the listings of other brokers.

    Args:
        paths: Paths of the files.
        cluster_id: Cluster id of this host's broker.
        node_id: Node id of this host's broker, of which no listing is accepted.

    Raises:
        ConfigError: a file cannot be read.
        FormatError: a file is no listing.
        RefusedError: a listing is of another cluster or of this broker, two listings are of one broker, or one is
            incomplete.
    """
    staged: list[StagedFiles] = []
    is_stopped: dict[int, bool] = {}
    for path in map(os.path.abspath, paths):
        document = _read(path)
        node = _node_of(document, cluster_id)
        if node == node_id or node in is_stopped:
            found = f"node {node}, {'the broker of this host' if node == node_id else 'as in another file'}"
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
    """Return the node id of another broker's ``staged ls --json``.

    Raises:
        RefusedError: the broker could not read all its log dirs, or is of another cluster than ``cluster_id``.
    """
    if document.exit_status != 0:
        expected = "a listing of a broker whose log dirs can all be read, with exit status 0"
        fix = "run logdirctl staged ls on that broker: it shows what is wrong there"
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
        # Printed beside paths of this host, and never opened.
        log_dir=f"broker {node_id}: {one.log_dir}",
        name=one.name,
        ref=replace(one.ref, topic=one.ref.topic or "?"),
        log_end=one.log_end,
        is_partial=one.state is ListedState.INCOMING,
        is_tiered=one.is_tiered,
        until_ms=one.undo_until_ms,
    )
