"""What a listing tells of the source that the cluster's word was read from.

Spec: design §4, §6; docs/json.md.
"""

from __future__ import annotations

from logdir.desired.image import Image, Source
from logdir.errors import Problem
from tools import render
from tools.logdirctl.report import utc


def source_json(uri: str, image: Image) -> dict[str, object]:
    """Return a source as JSON.

    Args:
        uri: As it was typed, or what stood for it.
        image: Of it.
    """
    return {
        "from": render.utf8(uri),
        "kind": image.source.value,
        "origin": render.utf8(image.origin),
        "cluster_id": image.cluster_id,
        "epoch": image.epoch,
        "offset": image.offset,
        "as_of_ms": image.as_of_ms,
        "certainty": image.certainty.value,
    }


def source_line(image: Image) -> str:
    """Return a source as a line for people."""
    where = f"{image.source.value} {image.origin}, cluster {image.cluster_id or 'not named'}"
    if image.epoch >= 0:
        where += f", epoch {image.epoch}, offset {image.offset} ({image.certainty.value})"
    return render.printable(f"the cluster's word: {where}, as of {utc(image.as_of_ms)}")


def against_blank(image: Image) -> Problem | None:
    """Return what is needed where a metadata log holds nothing that is known to be committed, ``None`` otherwise."""
    if image.source is not Source.METADATA_LOG or image.offset > 0 or image.ended is not None:
        return None
    return Problem(
        "config-error",
        image.origin,
        "a snapshot, or what the quorum says of how far the log is committed",
        "neither",
        "say --high-watermark and --leader-epoch, as kafka-metadata-quorum describe --status prints them",
    )
