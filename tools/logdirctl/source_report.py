"""What a listing tells of the source that the cluster's word was read from.

Spec: design §4, §6; docs/json.md.
"""

from __future__ import annotations

from logdir.desired.image import Image
from logdir.text import printable, utc, utf8


def source_json(uri: str, image: Image) -> dict[str, object]:
    """Return a source as JSON.

    Args:
        uri: As it was typed, or what stood for it.
        image: Of it.
    """
    return {
        "from": utf8(uri),
        "kind": image.source.value,
        "origin": utf8(image.origin),
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
    return printable(f"the cluster's word: {where}, as of {utc(image.as_of_ms)}")
