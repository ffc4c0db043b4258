"""The common wait loop for the calls of several workers: answers, parts of answers, and timeouts.

If a worker gives no sign of life while Kafka's locks are held, the locks of the other log dirs are released
(``Overdue``).

Not here: the ports, whose workers make the calls (``remote``).

Spec: design §2 laws 4, 6, §5 "A port per log dir".
"""

from __future__ import annotations

import select
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, cast

from logdir import clock
from logdir.errors import LogDirSuspectError
from logdir.worker import codec

R = TypeVar("R")

SILENT_MS: Final = 450
"""A working worker gives two signs of life within this time."""


def patience_now(patience_ms: int) -> int:
    """Return how long a worker may give no sign of life: ``patience_ms``, or less while a Ctrl-C ends the command.

    The calls that the Ctrl-C stopped are given up at once. Calls that tidy up begin later, and may hang as well.
    """
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return patience_ms if error is None else min(patience_ms, SILENT_MS)


class Asked(Protocol):
    """The part of a port that the wait loop needs."""

    log_dir: str
    connection: socket.socket
    heard_ms: int
    """Instant of the worker's last sign of life, or of its last call."""
    progress: int

    @property
    def waiting(self) -> Waiting:
        """Return the wait loop that it shares with other ports."""

    @property
    def patient_until_ms(self) -> int:
        """When the worker is killed if it gives no sign of life before then."""

    def hear(self) -> None:
        """Read what has arrived from its worker."""

    def give_up(self, found: str | None = None) -> None:
        """Kill its worker and mark the log dir as SUSPECT; ``found``: why, ``None``: no sign of life in time."""

    def found_suspect(self, error: LogDirSuspectError) -> None:
        """Accept the report of its worker that the log dir does not answer."""


class Overdue(NamedTuple):
    """The function to call when a worker gives no sign of life although Kafka's locks should be released."""

    at_ms: int
    """Deadline on ``clock.monotonic_ms``."""
    act: Callable[[], None]


class Waiting:
    """Waits for the answers of one broker's workers, and gives up on a worker whose time is over."""

    def __init__(self) -> None:
        self.overdue: Overdue | None = None
        self.progress: Callable[[list[int]], None] | None = None
        """Called with the progress of each call whenever a worker has sent something."""

    def gather(self, sent: Sequence[Sent[Any]]) -> None:
        """Wait until each call is answered or given up, in any order.

        An interruption of this wait ends the calls in progress, as a kill would.
        """
        try:
            self._gather(sent)
        except BaseException:
            for one in sent:
                if not one.is_over:
                    one.port.give_up("the call was interrupted")
            raise

    def next_part(self, sent: Sent[Any]) -> None:
        """Wait until a stream has sent a part, or has ended."""
        self._gather([sent])

    def _gather(self, sent: Sequence[Sent[Any]]) -> None:
        while waiting := [one for one in sent if not one.is_ready]:
            overdue = self.overdue
            limits = [one.port.patient_until_ms for one in waiting]
            if overdue is not None:
                limits.append(max(overdue.at_ms, min(one.port.heard_ms for one in waiting) + SILENT_MS))
            poll = select.poll()
            ports = {one.port.connection.fileno(): one.port for one in waiting}
            for descriptor in ports:
                poll.register(descriptor, select.POLLIN)
            ready = poll.poll(max(0, min(limits) - clock.monotonic_ms()))
            for descriptor, _ in ready:
                ports[descriptor].hear()
            if self.progress is not None:
                self.progress([one.port.progress for one in sent])
            if ready:
                continue
            now = clock.monotonic_ms()
            for one in waiting:
                if not one.is_over and now >= one.port.patient_until_ms:
                    one.port.give_up()
            if overdue is not None and now >= limits[-1]:
                self.overdue = None
                overdue.act()


class Sent(Generic[R]):
    """A call that was sent to a worker, with what the worker has answered so far."""

    def __init__(self, port: Asked, what: str, decode: Callable[[object], R]) -> None:
        self.port = port
        self.what = what
        self._decode = decode
        self.parts: deque[Any] = deque()
        """Parts of its results that have arrived and were not yielded yet."""
        self.begun_ns: int | None = None
        """When it was sent (monotonic clock); ``None``: it was not, because the log dir is SUSPECT."""
        self.took_ns: int | None = None
        """From then until it was answered or given up; ``None``: it was not sent, or is not over."""
        self._answer: tuple[str, Any] | None = None
        self._error: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """Whether the call was answered or given up."""
        return self._answer is not None or self._error is not None

    @property
    def is_ready(self) -> bool:
        """Whether the call has ended, or a part of its results has arrived."""
        return bool(self.parts) or self.is_over

    def take(self, kind: str, value: Any) -> None:
        """Store the answer: its kind (``result``, ``refused``, ``kernel`` or ``fault``), and the value or error."""
        self._end()
        if kind == "result":
            # At once: the answers of all log dirs as JSON take several times the memory.
            try:
                value = self._decode(value)
            except BaseException as error:
                # It is the asker's, who may not be the one that waits; a Ctrl-C is for both.
                self._error = error
                if not isinstance(error, Exception):
                    raise
        self._answer = (kind, value)

    def fail(self, error: BaseException) -> None:
        """Store the reason why there is no answer."""
        self._end()
        self._error = error

    def _end(self) -> None:
        if self.begun_ns is not None and self.took_ns is None:
            self.took_ns = clock.monotonic_ns() - self.begun_ns

    def result(self) -> R:
        """Implement ``Pending.result``."""
        self.port.waiting.gather([self])
        if self._error is not None or self._answer is None:
            raise self._error or ValueError("no answer")
        kind, value = self._answer
        if kind == "result":
            return cast("R", value)
        if kind == "refused":
            error = codec.decoded_error(value)
            if isinstance(error, LogDirSuspectError):
                self.port.found_suspect(error)
            raise error
        if kind == "kernel":
            number, text, *names = value
            raise OSError(number, text, names[0], None, *([names[1]] if names[1] is not None else []))
        raise RuntimeError(f"the worker of {self.port.log_dir}: {value}")
