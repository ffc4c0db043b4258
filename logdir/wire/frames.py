"""Frames of requests and responses: header and body, without the four bytes of length before them.

A response does not contain its API and version, so the caller passes those of the request. Bodies are dictionaries
as the codec reads them; ``to_json`` converts one to Kafka's own JSON, ``from_json`` converts it back.

Special header rules: the client id of a request is never compact; a request of version 0 of ControlledShutdown has
none; the header of an ApiVersions response is never flexible; an unknown version of ApiVersions is to be answered in
version 0 with error 35 (``decode_header`` reads the header of such a request).

Not here: sockets, the length before a frame, the choice of versions.

Spec: kafka-formats §11; design §4, "request document"; org.apache.kafka.common.protocol.ApiMessageType,
clients/src/main/resources/common/message/{RequestHeader,ResponseHeader}.json.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from logdir.wire import json_form
from logdir.wire.codec import Codec
from logdir.wire.errors import UnknownMessageError, WireError
from logdir.wire.message import Direction, Form, Message
from logdir.wire.messages import (
    broker_requests,
    client_requests,
    log_dir_requests,
    log_requests,
    quorum_requests,
    replica_requests,
    topic_requests,
)
from logdir.wire.primitives import too_short
from logdir.wire.reading import TAGS
from logdir.wire.schema import parse_fields

_MODULES: Final = (
    broker_requests,
    client_requests,
    log_dir_requests,
    log_requests,
    quorum_requests,
    replica_requests,
    topic_requests,
)

MESSAGES: Final[Mapping[tuple[int, Direction, Form], Message]] = MappingProxyType(
    {(one.key, one.direction, one.form): one for module in _MODULES for one in module.MESSAGES}
)
"""Messages by API key, direction and form; form "kip" exists only if the KIP differs from the shipped message."""

_BY_NAME: Final = {(one.name, one.direction, one.form): one for one in MESSAGES.values()}

API_VERSIONS: Final = 18
_CONTROLLED_SHUTDOWN: Final = 7
_START: Final = struct.Struct(">hhi")
_CORRELATION: Final = struct.Struct(">i")
_CLIENT_ID: Final = Codec(parse_fields("clientId string null 0+"), 0, flexible=False)
_NO_FIELDS: Final = Codec((), 0, flexible=True)

_Tags = tuple[tuple[int, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeader:
    """The header of a request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None
    tags: _Tags = ()
    """Tagged fields of a flexible header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseHeader:
    """The header of a response."""

    correlation_id: int
    tags: _Tags = ()
    """Tagged fields of a flexible header."""


def message(name: str, direction: Direction, version: int, form: Form = Form.SHIPPED) -> Message:
    """Return the request or response of an API by the name of the API.

    Raises:
        UnknownMessageError: this release knows no such message or version.
    """
    return _checked(_BY_NAME.get((name, direction, form)), name, direction, version, form)


def newest(name: str, direction: Direction) -> Message:
    """Return the shipped request or response of an API by its name, to ask for the versions of it.

    Raises:
        UnknownMessageError: this release knows no such message.
    """
    found = _BY_NAME.get((name, direction, Form.SHIPPED))
    return _checked(found, name, direction, 0 if found is None else found.versions.high, Form.SHIPPED)


def _of_key(key: int, direction: Direction, version: int, form: Form) -> Message:
    return _checked(MESSAGES.get((key, direction, form)), f"API {key}", direction, version, form)


def _checked(found: Message | None, name: str, direction: Direction, version: int, form: Form) -> Message:
    if found is None:
        text = "of a KIP's text" if form is Form.KIP else "of Kafka's releases"
        raise UnknownMessageError(
            f"{name} {direction}",
            expected=f"a message that this release knows, {text}",
            found="no such message",
        )
    if version not in found.versions:
        low, high = found.versions
        raise UnknownMessageError(
            f"{found.name} {direction}", expected=f"a version from {low} to {high}", found=version
        )
    return found


@cache
def _codec(key: int, direction: Direction, version: int, form: Form) -> Codec:
    one = MESSAGES[key, direction, form]
    return Codec(one.fields, version, flexible=version in one.flexible)


def decode_header(frame: bytes) -> tuple[RequestHeader, int]:
    """Decode the header of a request, even if its API or version is unknown.

    The header of an unknown API is read as flexible; that of an unknown version as in the newest known version.

    Args:
        frame: A request, without its length.

    Returns:
        The header, and the start position of the body.

    Raises:
        WireError: the bytes are no header.
    """
    try:
        return _decode_header(frame)
    except WireError as error:
        raise error.within("request header") from None


def _decode_header(frame: bytes) -> tuple[RequestHeader, int]:
    if len(frame) < _START.size:
        raise too_short(frame, 0, f"the {_START.size} bytes of a request header")
    key, version, correlation_id = _START.unpack_from(frame)
    position = _START.size
    if key == _CONTROLLED_SHUTDOWN and version == 0:
        return RequestHeader(api_key=key, api_version=version, correlation_id=correlation_id), position
    fields, position = _CLIENT_ID.read_part(frame, position)
    tags: _Tags = ()
    if _is_flexible(key, version):
        rest, position = _NO_FIELDS.read_part(frame, position)
        tags = rest.get(TAGS, ())
    header = RequestHeader(
        api_key=key, api_version=version, correlation_id=correlation_id, client_id=fields["clientId"], tags=tags
    )
    return header, position


def _is_flexible(key: int, version: int, form: Form = Form.SHIPPED) -> bool:
    # A message of a KIP has its own header rules only if it has its own API key.
    one = MESSAGES.get((key, Direction.REQUEST, form)) or MESSAGES.get((key, Direction.REQUEST, Form.KIP))
    return one is None or min(version, one.versions.high) in one.flexible


def decode_request(frame: bytes, form: Form = Form.SHIPPED) -> tuple[RequestHeader, dict[str, Any]]:
    """Decode a request.

    Args:
        frame: Header and body, without the length before them.
        form: The schema of the body: KIP or shipped.

    Raises:
        UnknownMessageError: an API or version that this release does not know.
        WireError: the bytes are no such request.
    """
    header, position = decode_header(frame)
    one = _of_key(header.api_key, Direction.REQUEST, header.api_version, form)
    return header, _read(one, header.api_version, frame, position)


def _read(one: Message, version: int, frame: bytes, position: int) -> dict[str, Any]:
    try:
        return _codec(one.key, one.direction, version, one.form).read(frame, position)
    except WireError as error:
        raise error.within(f"{one.name} {one.direction} v{version}") from None


def encode_request(header: RequestHeader, body: dict[str, Any], form: Form = Form.SHIPPED) -> bytes:
    """Return a request's frame, without its length.

    Raises:
        UnknownMessageError: an API or version that this release does not know.
        WireError: a field is missing, has a wrong value, or is not in this version.
    """
    one = _of_key(header.api_key, Direction.REQUEST, header.api_version, form)
    out = bytearray(_START.pack(header.api_key, header.api_version, header.correlation_id))
    if not (header.api_key == _CONTROLLED_SHUTDOWN and header.api_version == 0):
        _CLIENT_ID.write({"clientId": header.client_id}, out)
        if header.api_version in one.flexible:
            _NO_FIELDS.write({TAGS: header.tags}, out)
    return _written(one, header.api_version, body, out)


def _written(one: Message, version: int, body: dict[str, Any], out: bytearray) -> bytes:
    try:
        _codec(one.key, one.direction, version, one.form).write(body, out)
    except WireError as error:
        raise error.within(f"{one.name} {one.direction} v{version}") from None
    return bytes(out)


def decode_response(
    api_key: int, api_version: int, frame: bytes, form: Form = Form.SHIPPED
) -> tuple[ResponseHeader, dict[str, Any]]:
    """Decode a response.

    Args:
        api_key: API key of the request.
        api_version: Version of the request.
        frame: Header and body, without the length before them.
        form: The schema of the body: KIP or shipped.

    Raises:
        UnknownMessageError: an API or version that this release does not know.
        WireError: the bytes are no such response.
    """
    one = _of_key(api_key, Direction.RESPONSE, api_version, form)
    where = f"{one.name} response v{api_version}"
    if len(frame) < _CORRELATION.size:
        raise too_short(frame, 0, "the correlation id of a response").within(where)
    (correlation_id,) = _CORRELATION.unpack_from(frame)
    position, tags = _CORRELATION.size, ()
    if _has_flexible_response_header(one, api_version):
        try:
            rest, position = _NO_FIELDS.read_part(frame, position)
        except WireError as error:
            raise error.within(where) from None
        tags = rest.get(TAGS, ())
    body = _read(one, api_version, frame, position)
    return ResponseHeader(correlation_id=correlation_id, tags=tags), body


def _has_flexible_response_header(one: Message, version: int) -> bool:
    # A client that does not know which versions a broker speaks must be able to read this one.
    return version in one.flexible and one.key != API_VERSIONS


def encode_response(
    api_key: int, api_version: int, header: ResponseHeader, body: dict[str, Any], form: Form = Form.SHIPPED
) -> bytes:
    """Return a response's frame, without its length.

    Raises:
        UnknownMessageError: an API or version that this release does not know.
        WireError: a field is missing, has a wrong value, or is not in this version.
    """
    one = _of_key(api_key, Direction.RESPONSE, api_version, form)
    out = bytearray(_CORRELATION.pack(header.correlation_id))
    if _has_flexible_response_header(one, api_version):
        _NO_FIELDS.write({TAGS: header.tags}, out)
    return _written(one, api_version, body, out)


def to_json(one: Message, version: int, body: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a message in Kafka's own JSON form; ``records`` are base64 text."""
    return json_form.to_json(one.fields, version, body)


def from_json(one: Message, version: int, document: object, path: str = "") -> dict[str, Any]:
    """Return the body that a document in Kafka's JSON form stands for, as :func:`decode_request` returns it.

    Args:
        one: The message; see :func:`message`.
        version: Version of the body.
        document: The result of ``json.loads``.
        path: The file it comes from, for the errors.

    Raises:
        UnknownMessageError: the message has no such version.
        WireError: a field is missing, unknown, of the wrong type or out of range; the path names it.
    """
    _checked(one, one.name, one.direction, version, one.form)
    return json_form.from_json(one.fields, version, document, path)
