"""What the cluster says of the replicas here, read for ``stage``, ``staged restore`` and ``staged ls``.

The source is the broker's own metadata log, or what ``--from`` names. Where there is none, or it may not be used, that
is an answer too: nothing is known.

Reads only. Not here: what follows (``decide.assignment``), the recheck before a purge (``second_look``).

Spec: design §3.3, §4; attacks A29, A43, A47, A48.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from logdir.decide.assignment import ClusterState
from logdir.decide.position import highest
from logdir.decide.trust import ANY_AGE_MS, check_image
from logdir.desired.image import Source
from logdir.disk import controller
from logdir.disk.kernel_clock import read_instant
from logdir.errors import ConfigError, LogDirError, Problem
from logdir.formats.controller_file import ControllerFile
from logdir.observe.facts import LogDirFacts
from tools.logdirctl.broker import OpenBroker
from tools.logdirctl.desired_source import METADATA_DIR, Desired, is_running, own_log, read_desired
from tools.logdirctl.naming import Broker
from tools.logdirctl.source import OWN_LOG, Scheme, parse_uri, quorum_word
from tools.logdirctl.source_report import against_blank


def require_source(arguments: argparse.Namespace) -> None:
    """Return if the source may answer how the cluster is now.

    Raises:
        ConfigError: it is not named right, or is a request document, from which something follows once.
    """
    if parse_uri(arguments.source).scheme is Scheme.REQUEST:
        raise ConfigError((Problem("config-error", "--from", "metadata:[DIR] or znodes:FILE", arguments.source),))
    quorum_word(arguments)


def own_log_there(named: Broker, facts: Sequence[LogDirFacts]) -> bool:
    """Whether the broker's own metadata log is on a disk that answers."""
    own = own_log(named, facts)
    return own is not None and os.path.isdir(own)  # noqa: PTH112 - unlike Path's it never raises


def cluster_of(arguments: argparse.Namespace, broker: OpenBroker, facts: Sequence[LogDirFacts]) -> ClusterState:
    """Return what the cluster says to an open broker.

    Raises:
        LogDirError: a source that ``--from`` names cannot be read.
    """
    return read_cluster(arguments, broker.named, facts, highest(controller.read_records(broker.sites)))


Stamp = tuple[tuple[str, int, int], ...]
"""Names, sizes and times of change of the files of a metadata log."""


def stamp_of(broker: OpenBroker, facts: Sequence[LogDirFacts]) -> Stamp | None:
    """Return what tells whether the broker wrote its own metadata log meanwhile, ``None`` if it has none.

    A broker that starts writes it before it asks for Kafka's locks (design §8).
    """
    own = own_log(broker.named, facts)
    try:
        if own is None:
            return None
        with os.scandir(own) as entries:
            found = [(entry.name, told.st_size, told.st_mtime_ns) for entry in entries if (told := entry.stat())]
    except OSError:
        return None
    return tuple(sorted(found))


def read_cluster(
    arguments: argparse.Namespace, named: Broker, facts: Sequence[LogDirFacts], used: ControllerFile | None
) -> ClusterState:
    """Read what the cluster says; changes nothing.

    Args:
        arguments: With those of ``source.add_source``.
        named: The broker.
        facts: Of every log dir configured for it.
        used: Of ``decide.position.highest``.

    Raises:
        LogDirError: a source that ``--from`` names cannot be read.
    """
    require_source(arguments)
    is_own = parse_uri(arguments.source) == OWN_LOG
    if is_own and not own_log_there(named, facts):
        where = own_log(named, facts) or METADATA_DIR
        return ClusterState(blind=Problem("config-error", where, "a metadata log, or --from", "none"))
    now_ms = max(0, read_instant().wall_ms)
    try:
        desired = read_desired(
            arguments,
            named,
            facts,
            used,
            now_ms=now_ms,
            is_broker_running=is_running(named.log_dirs),
            is_end_needed=True,
        )
    except LogDirError as error:
        if not is_own:
            raise
        return ClusterState(blind=error.problem())
    return usable(desired, facts, now_ms)


def usable(desired: Desired, facts: Sequence[LogDirFacts], now_ms: int) -> ClusterState:
    """Return what was read without what may not be used.

    Args:
        desired: Read with ``is_end_needed``.
        facts: Of every log dir configured for the broker.
        now_ms: This moment (wall clock).
    """
    standing = desired.standing(max_age_ms=ANY_AGE_MS)
    image, latest = desired.image, desired.latest
    blank = against_blank(image)
    distrust = None if blank is not None else check_image(image, facts, standing, now_ms)
    problem = blank if distrust is None else distrust.problem
    if latest is not None and (latest.epoch < 0 or check_image(latest, facts, standing, now_ms) is not None):
        latest = None
    return ClusterState(
        image=image if problem is None else None,
        latest=latest,
        is_current=desired.is_current and problem is None,
        known_offset=image.offset if image.source is Source.METADATA_LOG else None,
        blind=problem,
    )
