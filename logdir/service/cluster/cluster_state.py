"""What the cluster says of the replicas here, read for ``stage``, ``staged restore`` and ``staged ls``.

The source is the broker's own metadata log, or what ``--from`` names. Where there is none, or it may not be used, that
is an answer too: nothing is known.

Reads only. Not here: what follows (``decide.assignment``), the recheck before a purge (``purge_recheck``).

Spec: design §3.3, §4; attacks A29, A43, A47, A48.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from logdir.cluster.image import Source
from logdir.cluster.metadata_files import one_reading
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
from logdir.service.cluster.image_source import Desired, against_blank, read_desired
from logdir.service.cluster.own_log import is_same, own_log, own_logs
from logdir.service.cluster.source import OWN_LOG, Scheme, SourceRequest, Uri, parse_uri, quorum_word
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.ports import metadata_path

_CONFIGURATION = (
    "name the broker with --server-properties: only its configuration says which metadata log it writes, and a log dir "
    "may hold one that a moved metadata.log.dir left behind"
)


def require_source(source: SourceRequest) -> None:
    """Return if the source may answer how the cluster is now.

    Raises:
        ConfigError: it is not named right, or is a request document, from which something follows once.
    """
    if parse_uri(source.uri).scheme is Scheme.REQUEST:
        raise ConfigError((Problem("config-error", "--from", "metadata:[DIR] or znodes:FILE", source.uri),))
    quorum_word(source)


def own_log_there(named: BrokerConfig, facts: Sequence[LogDirFacts]) -> bool:
    """Whether the broker's own metadata log is on a disk that answers."""
    own = own_log(named, facts)
    return own is not None and os.path.isdir(own)  # noqa: PTH112 - unlike Path's it never raises


def cluster_with_own_logs(source: SourceRequest, broker: OpenBroker, facts: tuple[LogDirFacts, ...]) -> ClusterState:
    """Return what the cluster says to an open broker, and what its own metadata logs know beside that.

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


def read_cluster_state(
    source: SourceRequest,
    named: BrokerConfig,
    facts: tuple[LogDirFacts, ...],
    used: ControllerFile | None,
    *,
    is_broker_running: bool | Problem,
) -> ClusterState:
    """Read what the cluster says, and what the broker's own metadata logs know beside that; changes nothing.

    Args:
        source: Which source.
        named: The broker.
        facts: Of every log dir configured for it.
        used: Of ``decide.position.highest``.
        is_broker_running: Of ``BrokerPorts.running``.

    Raises:
        LogDirError: a source that ``--from`` names cannot be read.
    """
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
    """Return what the cluster says together with what the broker's own metadata logs know; changes nothing.

    Whatever source was named, a removal may stand in one of them, or what assigns a replica here.

    Args:
        state: Of ``source``.
        source: Which source; what it says of the quorum holds for these logs, too.
        named: The broker.
        facts: Of every log dir configured for it.
        used: Of ``decide.position.highest``.
        is_broker_running: Of ``BrokerPorts.running``.
    """
    asked = None if state.seen is None else state.seen.origin
    others = [path for path in own_logs(named, facts) if asked is None or not is_same(path, asked)]
    found = []
    for directory in others:
        other = source._replace(uri=str(Uri(Scheme.METADATA, directory)))
        now_ms = max(0, read_instant().wall_ms)
        # What cannot be read shows no removal, and may hold anything else.
        try:
            desired = read_source(other, named, facts, used, now_ms=now_ms, is_broker_running=is_broker_running)
        except LogDirError as error:
            desired = error.problem()
        found.append(ClusterState(blind=desired) if isinstance(desired, Problem) else usable(desired, facts, now_ms))
    return replace(state, beside=tuple(found))


Stamp = tuple[tuple[str, int, int], ...]
"""Names, sizes and times of change of the files of a metadata log."""


def stamp_of(broker: OpenBroker, facts: tuple[LogDirFacts, ...]) -> Stamp | None:
    """Return what tells whether the broker wrote its own metadata log meanwhile, ``None`` if it has none.

    A broker that starts writes it before it asks for Kafka's locks (design §8).
    """
    path = metadata_path(broker.named, "")
    try:
        return broker.ports.apart(path, read_stamp, broker.named, facts)
    except LogDirSuspectError:
        return None


def require_unwritten(broker: OpenBroker, facts: tuple[LogDirFacts, ...], stamp: Stamp | None) -> None:
    """Return if the broker's own metadata log is as it was read: what was decided on it still holds.

    Args:
        broker: Open.
        facts: Of every log dir, just looked at.
        stamp: Of ``stamp_of``, before the log was read.

    Raises:
        RefusedError: the broker wrote it since.
    """
    if stamp_of(broker, facts) != stamp:
        path = broker.ports.apart(metadata_path(broker.named, ""), own_log, broker.named, facts)
        raise RefusedError(
            path or "",
            why=Why.METADATA_LOG_CHANGED,
            expected="the metadata log as it was read",
            found="it was written since",
        )


def read_stamp(named: BrokerConfig, facts: tuple[LogDirFacts, ...]) -> Stamp | None:
    """As ``stamp_of``, of this process's own look."""
    own = own_log(named, facts)
    try:
        if own is None:
            return None
        with os.scandir(own) as entries:
            found = [(entry.name, told.st_size, told.st_mtime_ns) for entry in entries if (told := entry.stat())]
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
    """Read what the cluster says; changes nothing.

    Args:
        source: Which source.
        named: The broker.
        facts: Of every log dir configured for it.
        used: Of ``decide.position.highest``.
        is_broker_running: Of ``BrokerPorts.running``.

    Raises:
        LogDirError: a source that ``--from`` names cannot be read.
    """
    require_source(source)
    if parse_uri(source.uri) == OWN_LOG and not own_log_there(named, facts):
        where = own_log(named, facts) or METADATA_DIR
        return ClusterState(blind=Problem("config-error", where, "a metadata log, or --from", "no metadata log"))
    now_ms = max(0, read_instant().wall_ms)
    desired = read_source(source, named, facts, used, now_ms=now_ms, is_broker_running=is_broker_running)
    return usable(desired, facts, now_ms) if isinstance(desired, Desired) else ClusterState(blind=desired)


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
    """Read how the cluster is now; changes nothing.

    Args:
        source: Which source.
        named: The broker.
        facts: Of every log dir configured for it.
        used: Of ``decide.position.highest``.
        now_ms: This moment (wall clock).
        is_broker_running: Of ``BrokerPorts.running``.
        is_past_needed: As for ``read_desired``.

    Returns:
        It, or why the broker's own metadata log does not say it.

    Raises:
        LogDirError: a source that ``--from`` names cannot be read.
    """
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
    """Return what was read without what may not be used.

    Args:
        desired: Read with ``is_end_needed``.
        facts: Of every log dir configured for the broker.
        now_ms: This moment (wall clock).
    """
    host_context = desired.host_context(max_age_ms=ANY_AGE_MS)
    image, latest = desired.image, desired.latest
    blank = against_blank(image)
    rejection = None if blank is not None else check_image(image, facts, host_context, now_ms)
    problem = blank if rejection is None else rejection.problem
    if latest is not None and (latest.epoch < 0 or check_image(latest, facts, host_context, now_ms) is not None):
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
