"""The source that an image was read from, as an item of a result.

Spec: design §4; docs/json.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from logdir.cluster.image import Certainty, Image, Source
from logdir.service.report.json_form import KEY
from logdir.text import printable, utc


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceItem:
    """The source from which the cluster metadata of a result was read."""

    uri: str = field(metadata={KEY: "from"})
    """The URI as typed, or the default source."""
    kind: Source
    origin: str
    """The path of the directory or file."""
    cluster_id: str | None
    epoch: int
    offset: int = field(metadata={KEY: "end_offset"})
    """The offset after the last record that counts; of a request its sequence."""
    as_of_ms: int
    certainty: Certainty

    @classmethod
    def of(cls, uri: str, image: Image) -> SourceItem:
        """Return the item for the source of an image."""
        return cls(
            uri=uri,
            kind=image.source,
            origin=image.origin,
            cluster_id=image.cluster_id,
            epoch=image.epoch,
            offset=image.offset,
            as_of_ms=image.as_of_ms,
            certainty=image.certainty,
        )


def source_line(image: Image) -> str:
    """Return the source of an image, and as of when it is, as a line for people."""
    where = f"{image.source.value} {image.origin}, cluster {image.cluster_id or 'not named'}"
    if image.epoch >= 0:
        where += f", epoch {image.epoch}, offset {image.offset} ({image.certainty.value})"
    return printable(f"the cluster's word: {where}, as of {utc(image.as_of_ms)}")
