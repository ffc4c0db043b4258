"""Message framing between a process and its worker: a length of four bytes, then one JSON value.

Not here: what the values mean (``codec``, ``child``, ``port``).

Spec: design §5 "A port per log dir".
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from struct import Struct
from typing import Any, Final

_LENGTH = Struct(">I")
_AT_ONCE = 1 << 18
_DESCRIPTORS = 4
ENOUGH: Final[list[object]] = ["enough"]
"""Message to a worker: the process that started it wants no more parts of a stream."""
READY: Final = "ready"
"""First message of a worker in a new interpreter: it has started, and waits for calls."""
MAX_BYTES = 1 << 30
"""Size limit of one frame; a larger one is an error."""


def frame(value: object) -> bytes:
    """Return a JSON value as one frame."""
    data = json.dumps(value, separators=(",", ":")).encode("ascii")
    return _LENGTH.pack(len(data)) + data


class Inbox:
    """Received bytes of a socket, split into complete frames."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> Iterator[Any]:
        """Add received bytes; yield the values that are complete.

        Raises:
            ValueError: the bytes are no frames.
        """
        self._parts.append(data)
        self._size += len(data)
        while self._size >= _LENGTH.size:
            if len(self._parts[0]) < _LENGTH.size:
                self._parts = [b"".join(self._parts)]
            (length,) = _LENGTH.unpack_from(self._parts[0])
            if length > MAX_BYTES:
                raise ValueError(f"a frame of {length} bytes")
            if self._size < _LENGTH.size + length:
                return
            whole = b"".join(self._parts)
            end = _LENGTH.size + length
            self._parts, self._size = [whole[end:]], len(whole) - end
            yield json.loads(whole[_LENGTH.size : end])


def receive(connection: socket.socket, inbox: Inbox, descriptors: list[int]) -> list[Any] | None:
    """Wait for bytes and return the values that are complete, possibly none; ``None`` at the end of the stream.

    Args:
        connection: The socket.
        inbox: The bytes received before.
        descriptors: Received descriptors are appended.

    Raises:
        ValueError: the bytes are no frames.
        OSError: the connection is broken.
    """
    data, came, _, _ = socket.recv_fds(connection, _AT_ONCE, _DESCRIPTORS)
    descriptors.extend(came)
    return list(inbox.add(data)) if data else None
