"""Frames between a process and a worker: a length of four bytes, then one JSON value.

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
"""What a starter says that wants no more of what a call yields."""
MAX_BYTES = 1 << 30
"""Of one frame; more than that is no answer of ours."""


def frame(value: object) -> bytes:
    """Return a JSON value as one frame."""
    data = json.dumps(value, separators=(",", ":")).encode("ascii")
    return _LENGTH.pack(len(data)) + data


class Inbox:
    """What has come in of a socket, as far as it makes whole frames."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> Iterator[Any]:
        """Take bytes in; yield the values that are whole by now.

        Raises:
            ValueError: they are no frames.
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
    """Wait for bytes and return the values that are whole by now, maybe none; ``None`` at the end of the stream.

    Args:
        connection: The socket.
        inbox: What came in of it before.
        descriptors: Those that come along are added.

    Raises:
        ValueError: they are no frames.
        OSError: the connection is broken.
    """
    data, came, _, _ = socket.recv_fds(connection, _AT_ONCE, _DESCRIPTORS)
    descriptors.extend(came)
    return list(inbox.add(data)) if data else None
