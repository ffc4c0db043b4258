"""One TCP or TLS connection to a broker: requests go out and answers come in, until the deadline of the call.

The length before an answer is judged before a byte of it is read. After any error a connection is closed: what follows
in it belongs to nothing that was asked.

Not here: authentication (``sasl``), the choice of versions (``session``), the content of an answer (``answers``).

Spec: kafka-formats §11; design §4; style §4, the client is the only network code of its ring.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from logdir.wire import frames
from logdir.wire.client.deadline import Deadline
from logdir.wire.client.errors import (
    AnswerTooLargeError,
    AskError,
    ClusterTimeoutError,
    ClusterUnreachableError,
    MalformedAnswerError,
    TlsFailedError,
)
from logdir.wire.client.settings import Address, ClientSettings
from logdir.wire.errors import WireError
from logdir.wire.frames import RequestHeader
from logdir.wire.message import Direction
from logdir.wire.schema import defaults

MAX_ANSWER_BYTES: Final = 64 << 20
_LENGTH: Final = struct.Struct(">i")
_MIN_ANSWER_BYTES: Final = 4
"""The correlation id."""
_CHUNK: Final = 1 << 16
_AUTHENTICATES: Final = "SaslAuthenticate"

_Infos = list[tuple[Any, ...]]


class Connection:
    """A connection; ``open_connection`` makes it."""

    def __init__(self, stream: socket.socket, where: str, client_id: str) -> None:
        self._stream = stream
        self._client_id = client_id
        self._correlation_id = 0
        self.where = where
        """The broker, for errors."""
        self.is_open = True
        """Whether it may be used for another request."""

    def close(self) -> None:
        """Close the connection; may be called twice."""
        self.is_open = False
        self._stream.close()

    def ask(self, name: str, version: int, body: dict[str, Any], deadline: Deadline) -> dict[str, Any]:
        """Send a request and return the body of its answer. Blocks until the deadline at most.

        Args:
            name: The API, such as ``Metadata``.
            version: A version that both sides know.
            body: Fields of the request; those left out have their defaults.
            deadline: Of the whole call.

        Raises:
            AskError: there is no usable answer; the connection is closed.
        """
        frame = self.ask_frame(name, version, body, deadline)
        with self._closed_on_error():
            return self.decoded(name, version, frame)

    def ask_frame(self, name: str, version: int, body: dict[str, Any], deadline: Deadline) -> bytes:
        """Send a request and return the frame of its answer, with its correlation id checked; as :meth:`ask`."""
        message = frames.message(name, Direction.REQUEST, version)
        self._correlation_id += 1
        header = RequestHeader(
            api_key=message.key,
            api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        sent = frames.encode_request(header, defaults(message.fields, version) | body)
        with self._closed_on_error(), reported(self.where, deadline):
            self._send(_LENGTH.pack(len(sent)) + sent, deadline)
            frame = self._receive(self._length(deadline), deadline)
            found = int.from_bytes(frame[:4], "big", signed=True)
            if found != self._correlation_id:
                raise MalformedAnswerError(
                    self.where, expected=f"the answer to request {self._correlation_id}", found=f"one to {found}"
                )
        return frame

    def decoded(self, name: str, version: int, frame: bytes) -> dict[str, Any]:
        """Return the body of an answer.

        Raises:
            MalformedAnswerError: the bytes are no such answer.
        """
        key = frames.message(name, Direction.RESPONSE, version).key
        try:
            return frames.decode_response(key, version, frame)[1]
        except WireError as error:
            # An answer to a password is not shown.
            found = "other bytes" if name == _AUTHENTICATES else error.found
            expected = f"in {error.path} {error.expected}"
            raise MalformedAnswerError(self.where, expected=expected, found=found) from None

    def _send(self, data: bytes, deadline: Deadline) -> None:
        view = memoryview(data)
        while view:
            self._stream.settimeout(deadline.left_s())
            view = view[self._stream.send(view) :]

    def _length(self, deadline: Deadline) -> int:
        (length,) = _LENGTH.unpack(self._receive(_LENGTH.size, deadline))
        if length > MAX_ANSWER_BYTES:
            raise AnswerTooLargeError(
                self.where,
                expected=f"an answer of at most {MAX_ANSWER_BYTES} bytes",
                found=f"{length} bytes",
                fix="check security.protocol: a listener with TLS answers so to a client without",
            )
        if length < _MIN_ANSWER_BYTES:
            raise MalformedAnswerError(
                self.where, expected=f"the length of an answer, at least {_MIN_ANSWER_BYTES}", found=length
            )
        return int(length)

    def _receive(self, size: int, deadline: Deadline) -> bytes:
        # The memory grows with what arrives, not with what is promised.
        data = bytearray()
        while len(data) < size:
            self._stream.settimeout(deadline.left_s())
            chunk = self._stream.recv(min(_CHUNK, size - len(data)))
            if not chunk:
                raise ClusterUnreachableError(
                    self.where,
                    expected=f"an answer of {size} bytes",
                    found=f"the end of the connection after {len(data)}",
                    fix="check security.protocol, and the log of the broker",
                )
            data += chunk
        return bytes(data)

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise


@contextmanager
def reported(where: str, deadline: Deadline) -> Iterator[None]:
    """Turn errors of sockets and of TLS into errors of this client that name the broker."""
    try:
        yield
    except AskError:
        raise
    except TimeoutError as error:
        raise ClusterTimeoutError(
            where,
            expected=f"an answer within {deadline.timeout_ms} ms",
            found="none",
            fix="check that the broker runs and is not overloaded; request.timeout.ms waits longer",
        ) from error
    except ssl.SSLCertVerificationError as error:
        raise TlsFailedError(
            where,
            expected="a certificate that is trusted, for this host",
            found=error.verify_message,
            fix="check ssl.truststore.location; the host name must stand in the certificate",
        ) from error
    except ssl.SSLError as error:
        raise TlsFailedError(
            where,
            expected="a TLS connection",
            found=(error.reason or "an error of TLS").lower().replace("_", " "),
            fix="check security.protocol and ssl.keystore.location",
        ) from error
    except (OSError, OverflowError, ValueError) as error:  # the last two: a host or port that cannot be one
        raise ClusterUnreachableError(
            where,
            expected="a connection to the broker",
            found=(error.strerror if isinstance(error, OSError) else None) or type(error).__name__,
            fix="check bootstrap.servers, and that the broker runs",
        ) from error


def open_connection(
    address: Address, settings: ClientSettings, context: ssl.SSLContext | None, deadline: Deadline, where: str = ""
) -> Connection:
    """Connect to a broker. Blocks until the deadline at most.

    Args:
        address: Where it listens; every address of its host name is tried.
        settings: The client's name, and the time for one address.
        context: Of TLS; ``None``: the connection is not encrypted.
        deadline: Of the whole call.
        where: The broker, for errors; empty: its address.

    Raises:
        AskError: no connection.
    """
    where = where or str(address)
    with reported(where, deadline):
        stream = _connected(address, settings.setup_timeout_ms, deadline)
        try:
            if context is not None:
                stream.settimeout(deadline.left_s())
                stream = context.wrap_socket(stream, server_hostname=address.host, do_handshake_on_connect=False)
                stream.settimeout(deadline.left_s())
                stream.do_handshake()
        except BaseException:
            stream.close()
            raise
    return Connection(stream, where, settings.client_id)


def _connected(address: Address, setup_timeout_ms: int, deadline: Deadline) -> socket.socket:
    error: OSError = OSError(0, "no address")
    for family, kind, number, _, target in _resolved(address, setup_timeout_ms, deadline):
        try:
            stream = socket.socket(family, kind | socket.SOCK_CLOEXEC, number)
        except OSError as other:  # the host has no such family, as IPv6
            error = other
            continue
        try:
            stream.settimeout(deadline.left_s(setup_timeout_ms))
            stream.connect(target)
            return stream
        except TimeoutError:
            stream.close()
            deadline.left_s()
            error = OSError(0, f"no connection within {setup_timeout_ms} ms")
        except OSError as other:
            stream.close()
            error = other
    raise error


def _resolved(address: Address, setup_timeout_ms: int, deadline: Deadline) -> _Infos:
    """Return the addresses of a host; a resolver that hangs is left behind in its thread."""
    try:
        return socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (socket.gaierror, UnicodeError):
        pass
    found: _Infos = []
    errors: list[Exception] = []

    def resolve() -> None:
        try:
            found.extend(socket.getaddrinfo(*address, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            errors.append(error)

    thread = threading.Thread(target=resolve, daemon=True)
    thread.start()
    thread.join(deadline.left_s(setup_timeout_ms))
    if thread.is_alive():
        raise TimeoutError
    if errors:
        reason = errors[0].strerror if isinstance(errors[0], OSError) else None
        raise OSError(0, reason or "no host name")
    return found
