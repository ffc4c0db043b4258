"""A connection to a broker that is authenticated, and whose versions are known.

Spec: KIP-35, KIP-511 (ApiVersions first; an unknown version of it is answered in version 0 with error 35).
"""

from __future__ import annotations

import ssl
from typing import Any, Final

from logdir.wire import frames
from logdir.wire.client import error_codes, sasl
from logdir.wire.client.connection import Connection, open_connection
from logdir.wire.client.deadline import Deadline
from logdir.wire.client.errors import ApiNotSupportedError, BrokerAnswerError
from logdir.wire.client.settings import Address, ClientSettings
from logdir.wire.message import Direction
from logdir.wire.schema import Versions

_API_VERSIONS: Final = "ApiVersions"
_NEWEST: Final = 3
"""Of ApiVersions; version 4 differs in nothing that is read here."""
_NAME: Final = "logdird"
_ERROR: Final = slice(4, 6)
"""The error number in an answer to ApiVersions of any version, after the correlation id."""


class Session:
    """A connection with the versions that its broker supports."""

    def __init__(self, connection: Connection, supported: dict[int, Versions]) -> None:
        self._connection = connection
        self._supported = supported

    @property
    def is_open(self) -> bool:
        """Whether it may be used for another request."""
        return self._connection.is_open

    @property
    def where(self) -> str:
        """The broker, for errors."""
        return self._connection.where

    def close(self) -> None:
        """Close the connection; may be called twice."""
        self._connection.close()

    def ask(self, name: str, body: dict[str, Any], deadline: Deadline, lowest: int = 0) -> dict[str, Any]:
        """Send a request in the newest version that both sides know; return the body of its answer.

        Args:
            name: The API.
            body: Fields of the request; those left out have their defaults.
            deadline: Of the whole call.
            lowest: The oldest version that will do.

        Raises:
            ApiNotSupportedError: there is no such version.
            AskError: there is no usable answer; the connection is closed.
        """
        return self._connection.ask(name, self.version(name, lowest), body, deadline)

    def version(self, name: str, lowest: int = 0) -> int:
        """Return the newest version of an API that both sides know.

        Raises:
            ApiNotSupportedError: there is none, or it is older than ``lowest``.
        """
        ours = frames.newest(name, Direction.REQUEST)
        theirs = self._supported.get(ours.key)
        version = -1 if theirs is None else min(theirs.high, ours.versions.high)
        if theirs is None or version < max(lowest, ours.versions.low, theirs.low):
            found = "no such request" if theirs is None else f"version {theirs.low} to {theirs.high}"
            raise ApiNotSupportedError(
                self.where,
                expected=f"{name} in version {lowest} to {ours.versions.high}",
                found=found,
                fix="ask a broker of a release that supports it",
            )
        return version


def open_session(
    address: Address, settings: ClientSettings, context: ssl.SSLContext | None, deadline: Deadline, where: str = ""
) -> Session:
    """Connect to a broker and authenticate. Blocks until the deadline at most.

    Args:
        address: Where it listens.
        settings: Who asks, and how.
        context: Of TLS; ``None``: the connection is not encrypted.
        deadline: Of the whole call.
        where: The broker, for errors; empty: its address.

    Raises:
        AskError: there is no usable connection.
    """
    connection = open_connection(address, settings, context, deadline, where)
    try:
        session = Session(connection, _supported(connection, deadline))
        if settings.sasl is not None:
            sasl.authenticate(connection, session.version("SaslAuthenticate"), settings.sasl, deadline)
    except BaseException:
        connection.close()
        raise
    return session


def _supported(connection: Connection, deadline: Deadline) -> dict[int, Versions]:
    named = {"clientSoftwareName": _NAME, "clientSoftwareVersion": "1"}
    frame = connection.ask_frame(_API_VERSIONS, _NEWEST, named, deadline)
    version = _NEWEST
    if int.from_bytes(frame[_ERROR], "big", signed=True) == error_codes.UNSUPPORTED_VERSION:
        version = 0
        frame = connection.ask_frame(_API_VERSIONS, version, {}, deadline)
    body = connection.decoded(_API_VERSIONS, version, frame)
    if body["errorCode"] != error_codes.NONE:
        raise BrokerAnswerError(
            connection.where,
            number=body["errorCode"],
            name=error_codes.name_of(body["errorCode"]),
            expected="the versions that the broker supports",
        )
    return {one["apiKey"]: Versions(one["minVersion"], one["maxVersion"]) for one in body["apiKeys"]}
