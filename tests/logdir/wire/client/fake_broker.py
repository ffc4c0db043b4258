"""A server on loopback that speaks Kafka's protocol as a test tells it to: it may lie, stall, or cut off."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from logdir.wire import frames
from logdir.wire.frames import MESSAGES, ResponseHeader
from logdir.wire.message import Direction, Form
from logdir.wire.schema import defaults

CLUSTER_ID = "Z5vDpYMzQ3q0r0fW5B1zLg"
VERSIONS = {
    one.key: (one.versions.low, one.versions.high)
    for one in MESSAGES.values()
    if one.direction is Direction.REQUEST and one.form is Form.SHIPPED
}


class Talk:
    """One request, and the connection on which its answer goes."""

    def __init__(self, stream: socket.socket, broker: FakeBroker, frame: bytes) -> None:
        self.stream, self.broker, self.frame = stream, broker, frame
        self.key, self.version = struct.unpack_from(">hh", frame)
        self.header, self.body = frames.decode_request(frame)
        self.name = next(one.name for one in MESSAGES.values() if one.key == self.key)

    def framed(
        self, body: Mapping[str, Any], *, version: int | None = None, correlation_id: int | None = None
    ) -> bytes:
        """Return an answer with its length; fields that are left out have their defaults."""
        version = self.version if version is None else version
        header = ResponseHeader(correlation_id=self.header.correlation_id if correlation_id is None else correlation_id)
        message = frames.message(self.name, Direction.RESPONSE, version)
        whole = {**defaults(message.fields, version), **body}
        frame = frames.encode_response(self.key, version, header, whole)
        return struct.pack(">i", len(frame)) + frame

    def answer(self, body: Mapping[str, Any], **changed: int) -> None:
        """Send an answer, as the broker has it on the wire."""
        data = self.framed(body, **changed)
        if self.broker.damage is None or (damaged := self.broker.damage(self, data)) == data:
            self.stream.sendall(data)
        else:
            self.stream.sendall(damaged)
            self.cut()  # Nobody is to wait for what a damaged length promises.

    def cut(self) -> None:
        """End the connection."""
        self.stream.shutdown(socket.SHUT_RDWR)


Reply = Callable[[Talk], None]


def api_versions(changed: Mapping[int, tuple[int, int] | None]) -> Reply:
    """Return the answer to ApiVersions with other versions of some APIs, or without them."""

    def reply(talk: Talk) -> None:
        told = {key: span for key, span in {**VERSIONS, **changed}.items() if span is not None}
        keys = [{"apiKey": key, "minVersion": low, "maxVersion": high} for key, (low, high) in told.items()]
        talk.answer({"apiKeys": tuple(keys)})

    return reply


def cluster(talk: Talk) -> None:
    """Answer DescribeCluster: this server is broker 1, and the only one."""
    brokers = ({"brokerId": 1, "host": "127.0.0.1", "port": talk.broker.port, "rack": None, "isFenced": False},)
    if talk.version < 2:
        brokers[0].pop("isFenced")
    talk.answer({"clusterId": CLUSTER_ID, "controllerId": 1, "brokers": brokers})


class FakeBroker:
    """Serves until the block ends."""

    def __init__(self, replies: Mapping[str, Reply] | None = None, context: ssl.SSLContext | None = None) -> None:
        self.replies: dict[str, Reply] = {"ApiVersions": api_versions({}), "DescribeCluster": cluster}
        self.replies.update(replies or {})
        self.asked: list[tuple[str, int, dict[str, Any]]] = []
        """Name, version and body of each request."""
        self.damage: Callable[[Talk, bytes], bytes] | None = None
        """What becomes of an answer, with its length, on its way; after one that was changed the connection ends."""
        self.connections = 0
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._streams: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._streams.append(stream)
            self._start(self._serve, stream)

    def _serve(self, stream: socket.socket) -> None:
        with contextlib.suppress(OSError), stream:
            if self._context is not None:
                stream = self._context.wrap_socket(stream, server_side=True)
                self._streams.append(stream)
            with stream:
                while (size := _exactly(stream, 4)) is not None:
                    frame = _exactly(stream, int.from_bytes(size, "big"))
                    if frame is None:
                        return
                    talk = Talk(stream, self, frame)
                    self.asked.append((talk.name, talk.version, talk.body))
                    self.replies[talk.name](talk)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)


def _exactly(stream: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        chunk = stream.recv(size - len(data))
        if not chunk:
            return None
        data += chunk
    return data
