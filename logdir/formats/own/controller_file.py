"""``controller.json``: the last applied position of the cluster metadata, so that nothing older is applied.

It holds the (controller epoch, sequence) of the last accepted request document (a LeaderAndIsr or StopReplica request
as JSON), the highest (epoch, offset) of an applied metadata image, and the incarnation of the broker that last ran
here. The file may only make us refuse or hold: without it, request documents only add knowledge, and images change
nothing until an operator confirms. ``logdirctl init`` writes the first one (``begin``), so a file that is missing later
was lost.

Not here: comparing positions (``decide.image.position``), writing the file (``disk.record.controller``).

Spec: design §2 law 2, §4; attacks A3, A20, A28, A43.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdir.errors import MalformedFileError
from logdir.formats.own import own_json
from logdir.paths import CONTROLLER

FILE_NAME = CONTROLLER
VERSION = 1
MAX_BYTES = own_json.MAX_BYTES
_KIND = "controller"
_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class RequestMark:
    """Controller epoch and sequence of the last accepted request document; a higher mark is newer."""

    controller_epoch: int
    sequence: int


REQUESTS_UNKNOWN = RequestMark(controller_epoch=0, sequence=0)
"""The mark of a record that replaces a lost one: how far requests were followed is not known. Every document has a
sequence of 1 or more.
"""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class MetadataMark:
    """The last applied position in the metadata log; a higher mark is newer."""

    epoch: int
    """Epoch of the last record that counts."""
    offset: int
    """The offset after that record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFile:
    """The content of ``controller.json``; ``None``: nothing of that kind was applied yet."""

    cluster_id: str | None
    node_id: int
    requests: RequestMark | None
    broker_epoch: int | None
    """The highest broker epoch in a request: the registration of our broker that the request was addressed to."""
    is_full_wanted: bool
    """Whether a LeaderAndIsr request of type FULL may have been missed."""
    metadata: MetadataMark | None
    incarnation_id: str | None
    """Incarnation id of the broker that last ran on this host, 22 characters."""


def begin(cluster_id: str | None, node_id: int) -> ControllerFile:
    """Return the first ``controller.json`` of a host: nothing was applied yet."""
    return ControllerFile(
        cluster_id=cluster_id,
        node_id=node_id,
        requests=None,
        broker_epoch=None,
        is_full_wanted=True,
        metadata=None,
        incarnation_id=None,
    )


def render(value: ControllerFile) -> bytes:
    """Return the bytes of ``controller.json``.

    Raises:
        ValueError: the file would exceed ``MAX_BYTES``.
    """
    requests, metadata = value.requests, value.metadata
    data = own_json.render(
        _KIND,
        VERSION,
        {
            "cluster_id": value.cluster_id,
            "node_id": value.node_id,
            "controller_epoch": None if requests is None else requests.controller_epoch,
            "sequence": None if requests is None else requests.sequence,
            "broker_epoch": value.broker_epoch,
            "full_wanted": value.is_full_wanted,
            "metadata_epoch": None if metadata is None else metadata.epoch,
            "metadata_offset": None if metadata is None else metadata.offset,
            "incarnation_id": value.incarnation_id,
        },
    )
    if len(data) > MAX_BYTES:
        raise ValueError(f"{FILE_NAME} has at most {MAX_BYTES} bytes, not {len(data)}")
    return data


def parse(data: bytes, path: str = "") -> ControllerFile:
    """Parse the bytes of ``controller.json``.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        MalformedFileError: cut off, altered, too large, or a key is missing or has a wrong value.
        UnsupportedVersionError: the file has another version.
    """
    values = own_json.parse(data, path, _KIND, VERSION, most_bytes=MAX_BYTES)
    requests = _pair(values, path, "controller_epoch", "sequence")
    metadata = _pair(values, path, "metadata_epoch", "metadata_offset")
    return ControllerFile(
        cluster_id=values.text_or_none("cluster_id"),
        node_id=values.number("node_id", _INT32),
        requests=None if requests is None else RequestMark(controller_epoch=requests[0], sequence=requests[1]),
        broker_epoch=values.number_or_none("broker_epoch"),
        is_full_wanted=values.flag("full_wanted"),
        metadata=None if metadata is None else MetadataMark(epoch=metadata[0], offset=metadata[1]),
        incarnation_id=values.text_or_none("incarnation_id"),
    )


def _pair(values: own_json.Values, path: str, one: str, other: str) -> tuple[int, int] | None:
    first, second = values.number_or_none(one), values.number_or_none(other)
    if first is None and second is None:
        return None
    if first is None or second is None:
        raise MalformedFileError(
            path, expected=f"{one} and {other} both set or both null", found=f"{first} and {second}"
        )
    return first, second
