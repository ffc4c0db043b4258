"""SASL authentication on a new connection: SaslHandshake, then SaslAuthenticate once for PLAIN, twice for SCRAM.

No answer of the broker is shown in an error, because it was given the password (PLAIN).

Not here: the messages of SCRAM (``scram``).

Spec: KIP-43, KIP-152; RFC 4616; org.apache.kafka.common.security.authenticator.SaslClientAuthenticator.
"""

from __future__ import annotations

import secrets
from typing import Final

from logdir.wire.client import error_codes
from logdir.wire.client.connection import Connection
from logdir.wire.client.deadline import Deadline
from logdir.wire.client.errors import AuthenticationFailedError
from logdir.wire.client.scram import ScramClient, ScramError
from logdir.wire.client.settings import PLAIN, SaslSettings

_HANDSHAKE_VERSION: Final = 1
"""After version 0 the tokens would travel without headers."""
_NONCE_BYTES: Final = 24


def authenticate(connection: Connection, version: int, settings: SaslSettings, deadline: Deadline) -> None:
    """Authenticate on a connection on which nothing but ApiVersions was asked.

    Args:
        connection: Is closed when this fails.
        version: Of SaslAuthenticate.
        settings: Who asks.
        deadline: Of the whole call.

    Raises:
        AuthenticationFailedError: the broker refuses, or does not prove that it knows the password.
        AskError: there is no usable answer.
    """
    try:
        _handshake(connection, settings.mechanism, deadline)
        if settings.mechanism == PLAIN:
            token = f"\0{settings.username}\0{settings.password.reveal()}".encode()
            _exchange(connection, version, settings, token, deadline)
        else:
            _scram(connection, version, settings, deadline)
    except BaseException:
        connection.close()
        raise


def _handshake(connection: Connection, mechanism: str, deadline: Deadline) -> None:
    body = connection.ask("SaslHandshake", _HANDSHAKE_VERSION, {"mechanism": mechanism}, deadline)
    if body["errorCode"] != error_codes.NONE:
        offered = ", ".join(body["mechanisms"]) or "none"
        raise AuthenticationFailedError(
            connection.where,
            expected=f"the mechanism {mechanism} on this listener",
            found=f"{error_codes.name_of(body['errorCode'])}, the listener has {offered}",
            fix="correct sasl.mechanism, or name another listener in bootstrap.servers",
        )


def _scram(connection: Connection, version: int, settings: SaslSettings, deadline: Deadline) -> None:
    nonce = secrets.token_urlsafe(_NONCE_BYTES)
    client = ScramClient(settings.mechanism, settings.username, settings.password, nonce)
    try:
        final = client.final(_exchange(connection, version, settings, client.first(), deadline))
        client.verify(final, _exchange(connection, version, settings, final.message, deadline))
    except ScramError as error:
        raise AuthenticationFailedError(
            connection.where,
            expected=error.expected,
            found=error.found,
            fix="this is not the broker that knows the user: check bootstrap.servers",
        ) from None


def _exchange(connection: Connection, version: int, settings: SaslSettings, token: bytes, deadline: Deadline) -> bytes:
    body = connection.ask("SaslAuthenticate", version, {"authBytes": token}, deadline)
    if body["errorCode"] != error_codes.NONE:
        raise AuthenticationFailedError(
            connection.where,
            expected=f"the user {settings.username} to be authenticated by {settings.mechanism}",
            found=error_codes.name_of(body["errorCode"]),
            fix="check the user name and the password in sasl.jaas.config, and that the broker knows the user",
        )
    answer: bytes = body["authBytes"]
    return answer
