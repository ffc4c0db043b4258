"""Reading the source that ``--from URI`` names: the cluster image, and facts of this host to judge it by.

``metadata:[DIR]`` is a metadata log, by default the broker's own; ``request:FILE`` a LeaderAndIsr or StopReplica
request as a JSON document; ``znodes:FILE`` a JSON document of ZooKeeper's znodes; ``cluster:FILE`` the live cluster,
asked by the client properties file. No file on a disk shows how far a
metadata log is committed. By default the log counts up to its newest snapshot, or up to the last applied position; an
operator may give the high watermark of the quorum.

Only reads. Not here: the decisions (``logdir.decide``).

Spec: design §4, §6; attacks A1, A2, A20, A27, A29, A43.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from logdir.cluster import metadata_files, request_document, requests, znodes
from logdir.cluster.assignment import AssignmentState, assignment_in
from logdir.cluster.image import Image, Source, remembering
from logdir.cluster.metadata_log import Watermark
from logdir.cluster.quorum import is_only_voter
from logdir.cluster.request_document import RequestDocument
from logdir.cluster.requests import Receipt
from logdir.decide.image.trust import DEFAULT_MAX_AGE_MS, HostContext
from logdir.errors import (
    ConfigError,
    ForeignLogDirError,
    LogDirOfflineError,
    MetadataLogUnreadError,
    NoPermissionError,
    Problem,
)
from logdir.formats.own.controller_file import ControllerFile
from logdir.formats.own.inventory import Kind
from logdir.ids import TopicId
from logdir.metadata.topic_detail import Details, read_details
from logdir.observe.facts import LogDirFacts, Replica
from logdir.paths import METADATA_DIR
from logdir.service.cluster.own_log import as_ended, ends_now, is_same, own_log, own_logs, reaches
from logdir.service.cluster.read_log import WHOLE, read_log
from logdir.service.cluster.read_whole import read_dated
from logdir.service.cluster.source import Scheme, SourceRequest, Uri, asked, parse_uri, quorum_word
from logdir.service.log_dirs.config import BrokerConfig
from logdir.worker_call import worker_call

_MORE_READS: Final = 3
"""How often the log of a running broker is read on; it appends to it about twice a second."""
_NAME_ONE = "name a source: --from metadata:DIR, cluster:FILE, request:FILE or znodes:FILE"
_QUIET = frozenset((AssignmentState.WANTED, AssignmentState.NOT_COVERED, AssignmentState.ZERO_ID))
"""States of live replicas for which the directory name is enough: they are not opened, and their age is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """The contents of a source of cluster metadata, and the facts of this host by which it is judged."""

    uri: Uri
    image: Image
    """The cluster image. For a request document: the image if the document were the first one applied;
    ``decide.image.document`` builds the real one.
    """
    document: RequestDocument | None
    """The request document of ``request:``; ``None`` for another source."""
    written_ms: int
    """When the request document was written, by the time of its file, but not later than now; 0 for another source."""
    node_id: int
    cluster_id: str | None
    """The cluster id of the log dirs."""
    last_applied: ControllerFile | None
    readable: ControllerFile | None
    """What is left of the last applied position where ``last_applied`` is ``None``; else the same."""
    is_own_log: bool
    is_broker_running: bool
    latest: Image | None = None
    """For a metadata log, if requested: the image to the end of the log, which may not all be committed."""
    is_current: bool = False
    """If requested: whether ``image`` describes the current state of the cluster."""
    is_guessed: bool = False
    """Whether ``image`` may be current, but the broker's unknown configuration may name another metadata log."""
    beyond: tuple[Image, ...] = ()
    """If requested: what metadata logs that reach beyond ``image`` contain at their ends about replicas that left this
    node (``ends.read_with_ends``).
    """
    details: Details | None = None
    """For a metadata log, if requested: the details of every topic that ``image`` leaves out."""

    def host_context(self, *, max_age_ms: int = DEFAULT_MAX_AGE_MS, is_position_confirmed: bool = False) -> HostContext:
        """Return the facts of this host for the trust rules.

        Args:
            max_age_ms: ``reconcile.max.metadata.age``.
            is_position_confirmed: Whether the operator accepts an image or FULL request older than the last applied
                position, or without such a position.
        """
        return HostContext(
            last_applied=self.last_applied,
            readable=self.readable,
            is_broker_running=self.is_broker_running,
            max_age_ms=max_age_ms,
            is_own_log=self.is_own_log,
            is_position_confirmed=is_position_confirmed,
        )


@worker_call
def read_desired(
    source: SourceRequest,
    named: BrokerConfig,
    facts: Sequence[LogDirFacts],
    last_applied: ControllerFile | None,
    *,
    now_ms: int,
    is_broker_running: bool,
    readable: ControllerFile | None = None,
    is_past_needed: bool = True,
    is_end_needed: bool = False,
    is_detail_needed: bool = False,
) -> Desired:
    """Read a source; changes nothing. The files of a metadata log are read once.

    Args:
        source: The source.
        named: The broker.
        facts: Facts of every configured log dir.
        last_applied: From ``decide.image.position.highest``.
        now_ms: Current wall clock time, milliseconds.
        is_broker_running: From ``is_running``.
        readable: From ``decide.image.position.readable``; what it names of the metadata log was committed.
        is_past_needed: Whether to search the log before its newest snapshot for removals.
        is_end_needed: Whether the current state matters: the own log of the only voter then counts to its end, and for
            other logs it is checked that the given high watermark is later than the broker's stop.
        is_detail_needed: Whether to read the topic details that an image leaves out.

    Returns:
        The contents of the source; the image remembers removals only of topic ids that lie on these disks.

    Raises:
        ConfigError: the source is invalid, or does not exist.
        MetadataLogUnreadError: no source is named, and the broker's own metadata log does not exist or cannot be read.
        LogDirOfflineError: the node id is not known because a log dir cannot be read.
        ForeignLogDirError: the log dirs belong to several nodes.
        FormatError: the source is malformed.
    """
    with metadata_files.one_reading():
        desired = _read_desired(
            source,
            named,
            facts,
            last_applied or readable,
            now_ms=now_ms,
            is_broker_running=is_broker_running,
            is_past_needed=is_past_needed,
            is_end_needed=is_end_needed,
        )
        desired = replace(desired, last_applied=last_applied)
        if not is_detail_needed:
            return desired
        return replace(desired, details=read_details(desired.image, desired.image.topics))


def _read_desired(
    source: SourceRequest,
    named: BrokerConfig,
    facts: Sequence[LogDirFacts],
    last_applied: ControllerFile | None,
    *,
    now_ms: int,
    is_broker_running: bool,
    is_past_needed: bool,
    is_end_needed: bool,
) -> Desired:
    """Read a source as ``read_desired`` does, without topic details."""
    uri = parse_uri(source.uri)
    watermark = _watermark(source, last_applied)
    node_id, cluster_id = _host_of(named, facts)
    document = None
    written_ms = 0
    latest = None
    is_own = is_current = is_guessed = False
    match uri.scheme:
        case Scheme.METADATA:
            own = own_log(named, facts)
            if not uri.path:
                _require_own_log(own, facts)
            directory = _metadata_dir(uri.path or own)
            is_own = own is not None and is_same(own, directory)
            is_ours = any(is_same(path, directory) for path in own_logs(named, facts))
            is_alone = is_end_needed and is_ours and is_only_voter(directory, node_id)
            # Everything in the log of the only voter is committed.
            bound = WHOLE if is_alone else watermark
            with _naming_own_log(directory, is_default=not uri.path):
                image = read_log(directory, node_id, bound, last_applied, is_past_needed=is_past_needed)
                if is_alone and is_own and is_broker_running:
                    image = _caught_up(image, named, facts, last_applied)
                if is_end_needed:
                    latest = image if is_alone else read_log(directory, node_id, WHOLE, last_applied, known=image)
                    latest = as_ended(latest, directory) if is_ours else latest
                    word = quorum_word(source)
                    is_current = is_alone and is_own and named.may_be_only_voter and ends_now(image, named, facts)
                    is_current = is_current or (not is_own and reaches(image, word, named, facts))
                    may_be_current = image.ended is None and (is_alone if is_own else word is not None)
                    is_guessed = may_be_current and named.metadata_log_dir is None
        case Scheme.REQUEST:
            read = read_dated(uri.path, request_document.MAX_BYTES)
            document = request_document.parse(read.data, uri.path)
            written_ms = max(0, min(now_ms, read.written_ms))
            receipt = Receipt(node_id=node_id, cluster_id=cluster_id, written_ms=written_ms, acts=False)
            image = requests.fold(None, document, receipt)
        case Scheme.ZNODES:
            read = read_dated(uri.path, znodes.MAX_BYTES)
            # The document has no time of its own, and its file time may be that of a copy: it never counts as current.
            image = znodes.parse(read.data, uri.path, node_id=node_id, as_of_ms=min(now_ms, read.written_ms))
        case Scheme.CLUSTER:
            # Loaded where it is used: TLS takes longer to load than a small log takes to read.
            from logdir.service.cluster.live_source import read_live

            image, latest = read_live(uri.path, facts, node_id, now_ms)
            is_current = True
    return Desired(
        uri=uri,
        image=remembering(image, _ids(facts)),
        document=document,
        written_ms=written_ms,
        node_id=node_id,
        cluster_id=cluster_id,
        last_applied=last_applied,
        readable=last_applied,
        is_own_log=is_own,
        is_broker_running=is_broker_running,
        latest=latest,
        is_current=is_current,
        is_guessed=is_guessed,
    )


def _ids(facts: Iterable[LogDirFacts]) -> frozenset[TopicId]:
    found = [item.ref.topic_id for one in facts for item in one.replicas]
    found += [item.ref.topic_id for one in facts for item in one.staged]
    found += [item.marker.topic_id for one in facts for item in one.staged if item.marker is not None]
    return frozenset(topic_id for topic_id in found if topic_id is not None)


def _watermark(source: SourceRequest, last_applied: ControllerFile | None) -> Watermark | None:
    quorum = quorum_word(source)
    if quorum is not None:
        return Watermark(offset=quorum.high_watermark, epoch=quorum.leader_epoch)
    # What was applied before was committed then, and stays committed.
    mark = None if last_applied is None else last_applied.metadata
    return None if mark is None else Watermark(offset=mark.offset, epoch=mark.epoch)


def _host_of(named: BrokerConfig, facts: Sequence[LogDirFacts]) -> tuple[int, str | None]:
    nodes = {one.node_id for one in facts if one.node_id is not None}
    if named.node_id is not None:
        nodes.add(named.node_id)
    clusters = sorted({one.cluster_id for one in facts if one.cluster_id is not None})
    where = ", ".join(named.log_dirs)
    unread = next((one.problem for one in facts if one.is_offline and one.problem is not None), None)
    if not nodes and unread is not None:
        raise LogDirOfflineError(unread.path, expected=unread.expected, found=unread.found, fix=unread.fix)
    if len(nodes) != 1:
        found = " and ".join(map(str, sorted(nodes))) or "no node id"
        raise ForeignLogDirError(
            where,
            expected="log dirs of one node",
            found=found,
            fix="compare node.id in each meta.properties: a disk of another host may be mounted",
        )
    if len(clusters) > 1:
        found = " and ".join(clusters)
        raise ForeignLogDirError(
            where,
            expected="log dirs of one cluster",
            found=found,
            fix="compare cluster.id in each meta.properties: a disk of another cluster may be mounted",
        )
    return nodes.pop(), clusters[0] if clusters else None


def _require_own_log(own: str | None, facts: Sequence[LogDirFacts]) -> None:
    """Check that the broker's metadata log is known, or that every log dir was read and none has one.

    Raises:
        MetadataLogUnreadError: a log dir that cannot be read may contain the log.
    """
    unread = ", ".join(one.log_dir for one in facts if one.is_offline)
    if own is None and unread:
        found = f"no such directory on a log dir that can be read; {unread} cannot be read"
        slugs = {one.problem.slug for one in facts if one.is_offline and one.problem is not None}
        raise _unread_log(METADATA_DIR, found, is_denied=slugs == {NoPermissionError.code})


@contextmanager
def _naming_own_log(directory: str, *, is_default: bool) -> Iterator[None]:
    """Make errors of the default source name the log itself, because the operator typed no ``--from``."""
    try:
        yield
    except ConfigError as error:
        if not is_default:
            raise
        is_denied = isinstance(error.__cause__, PermissionError)
        raise _unread_log(directory, error.found.removesuffix(f": {directory}"), is_denied=is_denied) from error


def _unread_log(where: str, found: str, *, is_denied: bool) -> MetadataLogUnreadError:
    first = "run as the owner of the log dirs" if is_denied else "mount the disk with that log"
    return MetadataLogUnreadError(
        where,
        expected="the broker's own metadata log, to learn what the cluster assigns here",
        found=found,
        fix=f"{first}, or name another source: --from metadata:DIR, cluster:FILE, request:FILE or znodes:FILE",
    )


def _metadata_dir(path: str | None) -> str:
    if path is None:
        expected = f"a {METADATA_DIR} in one of the log dirs"
        raise ConfigError((asked(expected, "none", _NAME_ONE),))
    inner = f"{path}/{METADATA_DIR}"
    # The reader of the log reports a disk that does not answer.
    is_there = os.path.isdir(inner)  # noqa: PTH112 - unlike Path's it never raises
    return inner if os.path.basename(path) != METADATA_DIR and is_there else path


def _caught_up(
    image: Image, named: BrokerConfig, facts: Sequence[LogDirFacts], last_applied: ControllerFile | None
) -> Image:
    """Read the own log of the only voter on to its end, which a running broker moves."""
    if named.metadata_log_dir is None:
        return image  # Where it ends is not known.
    farther = image
    for _ in range(_MORE_READS):
        if ends_now(farther, named, facts):
            break
        with metadata_files.reading(image.origin) as files:
            files.forget()  # So that what was appended since it was opened is seen.
        farther = read_log(image.origin, image.node_id, WHOLE, last_applied, known=farther)
    # A voter added meanwhile may lack what was appended after it.
    return farther if is_only_voter(image.origin, image.node_id) else image


def against_blank(image: Image) -> Problem | None:
    """Return the problem of a metadata log without any known committed content; ``None`` if there is some."""
    if image.source is not Source.METADATA_LOG or image.offset > 0 or image.ended is not None:
        return None
    return Problem(
        "config-error",
        image.origin,
        "a snapshot, or the high watermark of the quorum",
        "no snapshot, and no --high-watermark and --leader-epoch",
        "add --high-watermark and --leader-epoch, as kafka-metadata-quorum describe --status prints them",
    )


def in_doubt(image: Image, facts: Iterable[LogDirFacts]) -> tuple[Replica, ...]:
    """Return the live replicas to open before a decision: those whose state in the image is not in ``_QUIET``."""
    return tuple(
        replica
        for one in facts
        for replica in one.replicas
        if replica.kind is Kind.LIVE and assignment_in(image, replica.ref).state not in _QUIET
    )
