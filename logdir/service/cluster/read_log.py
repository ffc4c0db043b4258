"""Reading one metadata log into an image, up to what is known to be committed, or to its end.

Only reads. Not here: which log is read, and whether its image may be used (``image_source``).

Spec: design §4; kafka-formats §8; attacks A2, A29.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from logdir.cluster import metadata_log
from logdir.cluster.image import Image
from logdir.cluster.metadata_log import Watermark
from logdir.formats.kafka import meta_properties
from logdir.formats.own.controller_file import ControllerFile, MetadataMark
from logdir.paths import META_PROPERTIES
from logdir.service.cluster.read_whole import read_whole, readable

WHOLE: Final = Watermark(offset=2**63 - 1, epoch=0, is_prefix_checked=True)
"""A watermark beyond the end of any log."""


def read_log(
    directory: str,
    node_id: int,
    watermark: Watermark | None,
    last_applied: ControllerFile | None,
    *,
    is_past_needed: bool = False,
    known: Image | None = None,
) -> Image:
    """Read a metadata log.

    Args:
        directory: Path of ``__cluster_metadata-0``.
        node_id: The node whose replicas are looked up in the image.
        watermark: How far the log is committed; ``None``: up to its newest snapshot.
        last_applied: From ``decide.image.position.highest``; its position was committed, too.
        is_past_needed: Whether to search the log before its newest snapshot for removals.
        known: An image read from this log earlier, to be folded forward.

    Returns:
        An image, as ``metadata_log.read``.

    Raises:
        ConfigError: the log cannot be read.
        FormatError: the log or the ``meta.properties`` beside it is malformed.
        StateError: a file vanished in every attempt.
    """
    mark: MetadataMark | None = None if last_applied is None else last_applied.metadata
    with readable(directory):
        cluster_id = _cluster_of(directory)
        past = known
        if is_past_needed:
            past = metadata_log.read_with_past(directory, node_id=node_id, cluster_id=cluster_id)
        image = metadata_log.read(
            directory, node_id=node_id, cluster_id=cluster_id, watermark=watermark, known=past, last_applied=mark
        )
        if watermark is None or mark is None or image.offset >= mark.offset:
            return image
        # The given watermark is older than the last applied position, which was committed, too.
        farther = Watermark(offset=mark.offset, epoch=mark.epoch)
        return metadata_log.read(
            directory, node_id=node_id, cluster_id=cluster_id, watermark=farther, known=image, last_applied=mark
        )


def _cluster_of(directory: str) -> str | None:
    path = f"{os.path.dirname(os.path.abspath(directory))}/{META_PROPERTIES}"
    if not Path(path).exists():
        return None
    return meta_properties.parse(read_whole(path, 1 << 20), path).cluster_id
