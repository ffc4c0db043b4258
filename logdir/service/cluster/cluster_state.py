"""Cluster metadata about the replicas of this broker, read for ``stage``, ``staged restore`` and ``staged ls``.

The source is the broker's own metadata log, or the source that ``--from`` names. If there is none, or it may not be
used, the answer is that nothing is known.

Only reads. Not here: the decisions (``cluster.assignment``), the recheck before a purge (``batch.purge_recheck``).

Spec: design §3.3, §4; attacks A29, A43, A47, A48.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from logdir.cluster.image import Source
from logdir.decide.image.position import highest
from logdir.decide.image.still_assigned import ClusterState
from logdir.decide.image.trust import ANY_AGE_MS, check_image, is_of_cluster
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.record import controller
from logdir.errors import ConfigError, LogDirError, LogDirSuspectError, Problem, RefusedError
from logdir.formats.own.controller_file import ControllerFile
from logdir.observe.facts import LogDirFacts
from logdir.paths import METADATA_DIR
from logdir.refusal_slug import Why
from logdir.service.cluster.own_log import is_same, own_log, own_logs
from logdir.service.cluster.source import OWN_LOG, Scheme, SourceRequest, Uri, asked, parse_uri, quorum_word
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.ports import metadata_path
from logdir.worker_call import worker_call

if TYPE_CHECKING:
    from logdir.service.cluster.image_source import Desired
    from logdir.service.log_dirs.open_broker import OpenBroker

_CONFIGURATION = (
    "name the broker with --server-properties: only its configuration shows which metadata log it writes, and a log "
    "dir may contain an old one, left behind when metadata.log.dir was changed"
)


def require_source(source: SourceRequest) -> None:
    """Check that the source can describe the current state of the cluster.

    Raises:
        ConfigError: the source is invalid, or is ``request:``, a document that describes a change and no state.
    """
    if parse_uri(source.uri).scheme is Scheme.REQUEST:
        raise ConfigError((asked("a state, not a change: metadata:[DIR], cluster:FILE or znodes:FILE", source.uri),))
    quorum_word(source)


def own_log_there(named: BrokerConfig, facts: Sequence[LogDirFacts]) -> bool:
    """Whether the broker's own metadata log is on a disk that answers."""
    own = own_log(named, facts)
    return own is not None and os.path.isdir(own)  # noqa: PTH112 - unlike Path's it never raises


def cluster_with_own_logs(source: SourceRequest, broker: OpenBroker, facts: tuple[LogDirFacts, ...]) -> ClusterState:
    """Return the cluster state for an open broker, including what only its own metadata logs contain.

    Raises:
        LogDirError: a source that ``--from`` names cannot be read.
    """
    used = highest(broker.on_all(controller.read_records))
    running = broker.ports.running()
    path = metadata_path(broker.named, parse_uri(source.uri).path)
    try:
        return broker.ports.apart(
            path, read_cluster_state, source, broker.named, facts, used, is_broker_running=running
        )
    except LogDirSuspectError as error:
        if parse_uri(source.uri) != OWN_LOG:
            raise
        return ClusterState(blind=error.problem())


@worker_call
def read_cluster_state(
    source: SourceRequest,
    named: BrokerConfig,
    facts: tuple[LogDirFacts, ...],
    used: ControllerFile | None,
    *,
    is_broker_running: bool | Problem,
) -> ClusterState:
    """Read the cluster state, including what only the broker's own metadata logs contain; changes nothing.

    Args:
        source: The source.
        named: The broker.
        facts: Facts of every configured log dir.
        used: The last applied position, from ``decide.image.position.highest``.
        is_broker_running: Whether the broker runs, or why that is unknown, from ``BrokerPorts.running``.

    Raises:
        LogDirError: a source that ``--from`` names cannot be read.
    """
    # The readers take a third of the start of staged ls, which needs none where there is no metadata log.
    from logdir.cluster.metadata_files import one_reading

    with one_reading():
        state = read_cluster(source, named, facts, used, is_broker_running=is_broker_running)
        return with_own_logs(state, source, named, facts, used, is_broker_running)


def with_own_logs(
    state: ClusterState,
    source: SourceRequest,
    named: BrokerConfig,
    facts: Sequence[LogDirFacts],
    used: ControllerFile | None,
    is_broker_running: bool | Problem,
) -> ClusterState:
    """Add the contents of the broker's own metadata logs to a cluster state; changes nothing.

    Whatever source is named, an own log may contain the removal of a replica, or its assignment to this broker.

    Args:
        state: The state read from ``source``.
        source: The source; its statement about the quorum holds for the own logs, too.
        named: The broker.
        facts: Facts of every configured log dir.
        used: The last applied position, from ``decide.image.position.highest``.
        is_broker_running: Whether the broker runs, or why that is unknown, from ``BrokerPorts.running``.
    """
    asked = None if state.seen is None else state.seen.origin
    others = [path for path in own_logs(named, facts) if asked is None or not is_same(path, asked)]
    found = []
    for directory in others:
        other = source._replace(uri=str(Uri(Scheme.METADATA, directory)))
        now_ms = max(0, read_instant().wall_ms)
        # An unreadable log shows no removal, and may contain any assignment.
        try:
            desired = read_source(other, named, facts, used, now_ms=now_ms, is_broker_running=is_broker_running)
        except LogDirError as error:
            desired = error.problem()
        found.append(ClusterState(blind=desired) if isinstance(desired, Problem) else usable(desired, facts, now_ms))
    return replace(state, beside=tuple(found))


Stamp = tuple[tuple[str, int, int], ...]
"""Names, sizes and modification times of the files of a metadata log."""


def stamp_of(broker: OpenBroker, facts: tuple[LogDirFacts, ...]) -> Stamp | None:
    """Return the stamp of the broker's own metadata log, to detect later writes.

    ``None``: the broker has no such log, or it cannot be read.

    A starting broker writes this log before it asks for Kafka's locks (design §8).
    """
    path = metadata_path(broker.named, "")
    try:
        return broker.ports.apart(path, read_stamp, broker.named, facts)
    except LogDirSuspectError:
        return None


def require_unwritten(broker: OpenBroker, facts: tuple[LogDirFacts, ...], stamp: Stamp | None) -> None:
    """Check that the broker's own metadata log is unchanged since it was read, so that the decision still holds.

    Args:
        broker: Open.
        facts: Facts of every log dir, from a new scan.
        stamp: From ``stamp_of``, before the log was read.

    Raises:
        RefusedError: the broker has written its log since.
    """
    if stamp_of(broker, facts) != stamp:
        path = broker.ports.apart(metadata_path(broker.named, ""), own_log, broker.named, facts)
        raise RefusedError(
            path or "",
            why=Why.METADATA_LOG_CHANGED,
            expected="the metadata log as it was read",
            found="it was written since",
            fix="repeat the command while the broker is stopped",
        )


@worker_call
def read_stamp(named: BrokerConfig, facts: tuple[LogDirFacts, ...]) -> Stamp | None:
    """Return the stamp as ``stamp_of`` does, read in this process."""
    own = own_log(named, facts)
    try:
        if own is None:
            return None
        with os.scandir(own) as entries:
            found = [(entry.name, stat.st_size, stat.st_mtime_ns) for entry in entries if (stat := entry.stat())]
    except OSError:
        return None
    return tuple(sorted(found))


def read_cluster(
    source: SourceRequest,
    named: BrokerConfig,
    facts: Sequence[LogDirFacts],
    used: ControllerFile | None,
    *,
    is_broker_running: bool | Problem,
) -> ClusterState:
    """Read the cluster state from the source; changes nothing.

    Args:
        source: The source.
        named: The broker.
        facts: Facts of every configured log dir.
        used: The last applied position, from ``decide.image.position.highest``.
        is_broker_running: Whether the broker runs, or why that is unknown, from ``BrokerPorts.running``.

    Raises:
        LogDirError: a source that ``--from`` names cannot be read.
    """
    require_source(source)
    if parse_uri(source.uri) == OWN_LOG and not own_log_there(named, facts):
        where = own_log(named, facts) or METADATA_DIR
        return ClusterState(
            blind=Problem("config-error", where, "a metadata log of the broker, or --from", "no metadata log")
        )
    now_ms = max(0, read_instant().wall_ms)
    desired = read_source(source, named, facts, used, now_ms=now_ms, is_broker_running=is_broker_running)
    return ClusterState(blind=desired) if isinstance(desired, Problem) else usable(desired, facts, now_ms)


def read_source(
    source: SourceRequest,
    named: BrokerConfig,
    facts: Sequence[LogDirFacts],
    used: ControllerFile | None,
    *,
    now_ms: int,
    is_broker_running: bool | Problem,
    is_past_needed: bool = True,
) -> Desired | Problem:
    """Read the current cluster metadata from the source; changes nothing.

    Args:
        source: The source.
        named: The broker.
        facts: Facts of every configured log dir.
        used: The last applied position, from ``decide.image.position.highest``.
        now_ms: Current wall clock time, milliseconds.
        is_broker_running: Whether the broker runs, or why that is unknown, from ``BrokerPorts.running``.
        is_past_needed: As for ``read_desired``.

    Returns:
        The metadata, or why the broker's own metadata log does not provide it.

    Raises:
        LogDirError: a source that ``--from`` names cannot be read.
    """
    from logdir.service.cluster.image_source import read_desired

    try:
        if isinstance(is_broker_running, Problem):
            raise ConfigError((is_broker_running,))
        return read_desired(
            source,
            named,
            facts,
            used,
            now_ms=now_ms,
            is_broker_running=is_broker_running,
            is_past_needed=is_past_needed,
            is_end_needed=True,
        )
    except LogDirError as error:
        if parse_uri(source.uri) != OWN_LOG:
            raise
        return error.problem()


def usable(desired: Desired, facts: Sequence[LogDirFacts], now_ms: int) -> ClusterState:
    """Return the cluster state according to that part of the metadata which the trust rules accept.

    Args:
        desired: The metadata, read with ``is_end_needed``.
        facts: Facts of every configured log dir.
        now_ms: Current wall clock time, milliseconds.
    """
    from logdir.service.cluster.image_source import against_blank

    host_context = desired.host_context(max_age_ms=ANY_AGE_MS)
    image, latest = desired.image, desired.latest
    blank = against_blank(image)
    rejection = None if blank is not None else check_image(image, facts, host_context, now_ms)
    problem = blank if rejection is None else rejection.problem
    is_empty = latest is not None and latest.source is Source.METADATA_LOG and latest.epoch < 0
    if latest is not None and (is_empty or check_image(latest, facts, host_context, now_ms) is not None):
        latest = None
    return ClusterState(
        seen=image if is_of_cluster(image, facts) else None,
        image=image if problem is None else None,
        latest=latest,
        is_current=desired.is_current and problem is None,
        lacks=_CONFIGURATION if desired.is_guessed else "",
        known_offset=image.offset if image.source is Source.METADATA_LOG else None,
        blind=problem,
    )
