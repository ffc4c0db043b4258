"""The worker process of one log dir: it makes one call after the other and answers each.

During a call it sends a sign of life five times a second, from a timer's signal handler. Python runs the handler
between two steps of the call, so a call that hangs in the kernel sends none. A worker ends with its starter, the
process that started it. The results of an iterator are sent in parts; a message from the starter meanwhile ends the
call.

Not here: the deadline (``port``), which calls there are (``calls``).

Spec: design §2 law 6, §5 "A port per log dir".
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any, cast

from logdir.disk.kernel.kernel_process import end_with_starter
from logdir.errors import LogDirError
from logdir.observe.awaited import is_getting_on
from logdir.worker import codec
from logdir.worker.calls import Signature, called
from logdir.worker.channel import ENOUGH, READY, Inbox, frame, receive
from logdir.worker.state import WorkerState

ALIVE_S = 0.2
"""Interval between two signs of life."""
_PART_CHARACTERS = 1 << 16
"""Size of a part in characters; at each sign of life a smaller part is sent as well."""
_OF_ANOTHER = 64
"""How many characters of a part a value counts for that is no text."""


class _Life:
    """Sends signs of life during a call."""

    def __init__(self, connection: socket.socket, opened: WorkerState) -> None:
        self._connection, self._opened = connection, opened
        self._is_sending = False
        self._is_part_due = False
        signal.signal(signal.SIGALRM, self._tick)
        # System calls continue after the signal: most are not restarted by themselves.
        signal.siginterrupt(signal.SIGALRM, False)

    def _tick(self, number: int, at: FrameType | None) -> None:
        self._is_part_due = True
        # A part being sent is a sign of life as well, and its bytes must not be interrupted.
        if self._is_sending or not is_getting_on():
            return
        with suppress(OSError):  # The starter may have ended; the call is finished in any case.
            self._connection.sendall(frame(["alive", self._opened.progress]))

    def __enter__(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, ALIVE_S, ALIVE_S)

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)

    def send_all(self, values: Iterator[object], encode: Callable[[object], object]) -> None:
        """Send the results of an iterator in parts; stop when the starter sends any message."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        part: list[object] = []
        characters = 0
        for value in values:
            part.append(value)
            characters += len(value) if isinstance(value, str) else _OF_ANOTHER
            if characters >= _PART_CHARACTERS or self._is_part_due:
                self._send(encode(part))
                part, characters = [], 0
                if poll.poll(0):
                    return
        if part:
            self._send(encode(part))

    def _send(self, part: object) -> None:
        self._is_sending, self._is_part_due = True, False
        try:
            self._connection.sendall(frame(["part", part]))
        except OSError as error:
            raise _StarterGoneError from error
        finally:
            self._is_sending = False


class _StarterGoneError(OSError):
    """The starter closed the connection; no log dir is at fault."""


def settle(connection: socket.socket, starter: int) -> None:
    """Close every descriptor of this worker except ``connection``, and arrange for it to end with its starter.

    A worker that hangs in the kernel outlives its starter nevertheless: a reader of the starter's output must not wait
    for it.

    Args:
        connection: The socket to the starter.
        starter: Process id of the process that started this worker.
    """
    end_with_starter(starter)
    null = os.open(os.devnull, os.O_RDONLY)
    for standard in range(3):
        os.dup2(null, standard)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != connection.fileno():
            with suppress(OSError):  # The descriptor of the listing itself is already closed.
                os.close(int(name))


def serve(connection: socket.socket) -> None:
    """Answer calls until the process that started this worker closes the connection; then release every lock and close
    every directory.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The starter decides when to stop.
    inbox = Inbox()
    opened = WorkerState()
    life = _Life(connection, opened)
    try:
        while (values := receive(connection, inbox, opened.received)) is not None:
            for value in values:
                if value == ENOUGH:
                    continue  # The message belongs to a call that has ended.
                with life:
                    answer = frame(_answer(opened, value, life))
                connection.sendall(answer)
    except OSError:
        return  # The starter has closed the connection.
    finally:
        opened.close()


def answer_one(connection: socket.socket, call: Callable[[], object], signature: Signature) -> None:
    """Make one call in this forked copy of the calling process, and send its answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        with _Life(connection, WorkerState()):
            answer = frame(_answered(lambda: signature.encode_result(call())))
        connection.sendall(answer)


def _answer(opened: WorkerState, value: list[Any], life: _Life) -> list[object]:
    name, arguments = value

    def make() -> object:
        call = called(name)
        signature = Signature.of(call)
        decoded = signature.decode(arguments, opened.received)
        try:
            result = call(*opened.bound(signature.own), **decoded)
            if signature.is_stream:
                life.send_all(result, signature.encode_result)
                return None
        finally:
            for parameter in signature.descriptors & decoded.keys():
                os.close(cast(int, decoded[parameter]))
        return signature.encode_result(result)

    return _answered(make)


def _answered(make: Callable[[], object]) -> list[object]:
    try:
        return ["result", make()]
    except _StarterGoneError:
        raise
    except LogDirError as error:
        return ["refused", codec.encoded_error(error)]
    except OSError as error:
        names = [None if name is None else os.fsdecode(name) for name in (error.filename, error.filename2)]
        return ["kernel", [error.errno, error.strerror or str(error), *names]]
    except Exception as error:  # noqa: BLE001 - a fault of ours is the asker's to report
        return ["fault", f"{type(error).__name__}: {error}"]


def main() -> None:
    """Serve the socket that is standard input, as a worker in a new interpreter; does not return."""
    with socket.socket(fileno=os.dup(0)) as connection:
        settle(connection, int(sys.argv[1]))
        with suppress(OSError):  # The starter may have ended.
            connection.sendall(frame([READY, None]))
        serve(connection)
    os._exit(0)
