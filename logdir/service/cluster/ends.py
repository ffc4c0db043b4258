"""The ends of metadata logs, read for the replicas that left this node by the committed part of one.

It may not be known what was committed last: a replica may have been assigned here again behind the committed part, in
the same log or in one that this host's broker wrote. The end of a log proves nothing; it can only keep a replica
(``decide.candidate``).

Only reads. Not here: the source itself (``image_source``).

Spec: design §2 law 1, §4; attacks A2, A46.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NewType

from logdir.cluster import metadata_files, metadata_log
from logdir.cluster.image import Image, Source, Topic
from logdir.errors import LogDirError
from logdir.formats.own.controller_file import ControllerFile
from logdir.observe.facts import LogDirFacts
from logdir.service.cluster.image_source import Desired, read_desired
from logdir.service.cluster.own_log import as_ended, is_same, own_logs
from logdir.service.cluster.read_log import WHOLE, read_log
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.config import BrokerConfig
from logdir.worker_call import worker_call

_Key = NewType("_Key", tuple[bytes, int])
"""Topic id and partition."""


@worker_call
def read_with_ends(
    source: SourceRequest,
    named: BrokerConfig,
    facts: Sequence[LogDirFacts],
    last_applied: ControllerFile | None,
    *,
    now_ms: int,
    is_broker_running: bool,
    readable: ControllerFile | None = None,
    is_end_needed: bool = False,
) -> Desired:
    """Read a source as ``read_desired``, with ``beyond``; changes nothing.

    Where no replica on these disks left this node, nothing more is read. What is read more of the source is its tail.

    Args:
        source: The source.
        named: The broker.
        facts: Facts of every configured log dir.
        last_applied: From ``decide.image.position.highest``.
        now_ms: Current wall clock time, milliseconds.
        is_broker_running: From ``is_running``.
        readable: As for ``read_desired``.
        is_end_needed: As for ``read_desired``.

    Raises:
        LogDirError: as ``read_desired``.
    """
    with metadata_files.one_reading():
        desired = read_desired(
            source,
            named,
            facts,
            last_applied,
            now_ms=now_ms,
            is_broker_running=is_broker_running,
            readable=readable,
            is_end_needed=is_end_needed,
        )
        keys = _left(desired.image, facts)
        if not keys:
            return desired
        ends = _ends(desired.image, named, facts, last_applied or readable)
        return replace(desired, beyond=tuple(_only(image, keys) for image in ends))


def _left(image: Image, facts: Sequence[LogDirFacts]) -> frozenset[_Key]:
    """Return the replicas on these disks that left this node, by a metadata log; empty for another source."""
    if image.source is not Source.METADATA_LOG or not image.left:
        return frozenset()
    refs = (replica.ref for one in facts for replica in one.replicas)
    keys = (_Key((bytes(ref.topic_id), ref.partition)) for ref in refs if ref.topic_id is not None)
    return frozenset(key for key in keys if key in image.left)


def _ends(
    image: Image, named: BrokerConfig, facts: Sequence[LogDirFacts], last_applied: ControllerFile | None
) -> Iterator[Image]:
    """Yield metadata logs to their ends, where these reach beyond an image, or may; the log of the image is first."""
    own = own_logs(named, facts)
    others = [path for path in own if not is_same(path, image.origin)]
    for directory in (image.origin, *others):
        is_source = directory == image.origin
        is_ours = not is_source or len(others) < len(own)
        if not is_source and _ends_before(directory, image):
            continue
        try:
            end = read_log(directory, image.node_id, WHOLE, last_applied, known=image if is_source else None)
        except LogDirError as error:
            # It may contain anything: like a log that ends before its first record.
            yield Image(
                source=Source.METADATA_LOG,
                origin=directory,
                node_id=image.node_id,
                cluster_id=image.cluster_id,
                ended=error.problem(),
            )
            continue
        end = as_ended(end, directory) if is_ours else end
        if end.offset > image.offset or end.ended is not None:
            yield end


def _ends_before(directory: str, image: Image) -> bool:
    """Whether a log certainly has no record behind an image, so that it need not be read."""
    end = metadata_log.end_of(directory)
    return end is not None and end <= image.offset


def _only(image: Image, keys: Collection[_Key]) -> Image:
    """Return an image with these partitions alone: it may be sent to another process."""
    topics: dict[bytes, Topic] = {}
    for topic_id, partition in keys:
        topic = image.topics.get(topic_id)
        one = None if topic is None else topic.partitions.get(partition)
        if topic is not None and one is not None:
            known = topics.get(topic_id)
            partitions = {partition: one} if known is None else {**known.partitions, partition: one}
            topics[topic_id] = Topic(topic.name, topic_id, partitions)
    return Image(
        source=image.source,
        origin=image.origin,
        node_id=image.node_id,
        cluster_id=image.cluster_id,
        epoch=image.epoch,
        offset=image.offset,
        as_of_ms=image.as_of_ms,
        ended=image.ended,
        topics=topics,
        brokers=image.brokers,
    )
